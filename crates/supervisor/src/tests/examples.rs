//! What the specification says, sentence by sentence.
use ainori_devices::zicsr::{AnyCsrInstruction, CsrAccess};
use ainori_limits::cause::exception;

use crate::*;

/// A hart with all that a guest can have, as QEMU's `rv64` has it.
pub const RV64GCV: Features = Features {
    float: true,
    vector: true,
    compressed: true,
    timer: true,
    invalidation: true,
    reservation_waits: true,
    counters: u32::MAX,
    counter_enables: u32::MAX,
    environment: Some(u64::MAX),
};

const NOW: u64 = 1000;

/// Executes an instruction of Zicsr whose operand, if it has one in a register, has this value.
fn execute(hart: &mut Supervisor, bits: u32, source: u64) -> Result<Outcome, Illegal> {
    let instruction = AnyCsrInstruction::decode(bits).expect("an instruction of Zicsr");
    hart.access(instruction, source, || NOW)
}

/// `csrrw a0, number, a1`
fn write(hart: &mut Supervisor, number: u32, value: u64) -> Effects {
    match execute(hart, number << 20 | 11 << 15 | 0x1573, value) {
        Ok(Outcome::Done { effects, .. }) => effects,
        other => panic!("{number:#x}: {other:?}"),
    }
}

/// `csrr a0, number`
fn read(hart: &mut Supervisor, number: u32) -> u64 {
    match execute(hart, number << 20 | 0x2573, 0) {
        Ok(Outcome::Done { old, effects: Effects::NONE }) => old,
        other => panic!("{number:#x}: {other:?}"),
    }
}

const SSTATUS: u32 = 0x100;
const SIE: u32 = 0x104;
const STVEC: u32 = 0x105;
const SCOUNTEREN: u32 = 0x106;
const SENVCFG: u32 = 0x10a;
const SEPC: u32 = 0x141;
const SCAUSE: u32 = 0x142;
const STVAL: u32 = 0x143;
const SIP: u32 = 0x144;
const STIMECMP: u32 = 0x14d;

fn kernel() -> Supervisor {
    Supervisor::new(RV64GCV)
}

/// In user mode at 0.
fn program() -> Supervisor {
    let mut hart = kernel();
    assert_eq!(hart.sret(), Some(0));
    assert_eq!(hart.privilege(), Privilege::User);
    hart
}

/// "When a trap is taken, SPP is set to 0 if the trap originated from user mode, or 1 otherwise." "When a trap is taken into supervisor mode, SPIE is set to SIE,
/// and SIE is set to 0."
#[test]
fn a_trap_keeps_where_it_came_from() {
    let mut hart = program();
    write_as_kernel(&mut hart, STVEC, 0x8020_0000);
    assert_eq!(hart.trap(Cause::exception(exception::CALL_FROM_USER), 0, 0x1234), 0x8020_0000);
    assert_eq!(hart.privilege(), Privilege::Supervisor);
    assert_eq!(
        [SEPC, SCAUSE, STVAL].map(|number| read(&mut hart, number)),
        [0x1234, 8, 0],
        "\"sepc is written with the virtual address of the instruction\""
    );
    assert_eq!(read(&mut hart, SSTATUS) & 0x122, 0, "from user mode, where interrupts were off");
    write(&mut hart, SSTATUS, 0x2);
    assert_eq!(hart.trap(Cause::exception(exception::LOAD_PAGE_FAULT), 0xdead, 0x8020_0004), 0x8020_0000);
    assert_eq!(read(&mut hart, SSTATUS) & 0x122, 0x120);
    assert_eq!(read(&mut hart, STVAL), 0xdead);
}

fn write_as_kernel(hart: &mut Supervisor, number: u32, value: u64) {
    let privilege = hart.privilege;
    hart.privilege = Privilege::Supervisor;
    write(hart, number, value);
    hart.privilege = privilege;
}

/// "When an SRET instruction is executed, SIE is set to SPIE, then SPIE is set to 1"; "the privilege level is set to user mode if the SPP bit is 0, or supervisor
/// mode if the SPP bit is 1; SPP is then set to 0".
#[test]
fn sret_goes_back() {
    let mut hart = kernel();
    write(&mut hart, SEPC, 0x1001);
    write(&mut hart, SSTATUS, 0x100);
    assert_eq!(hart.sret(), Some(0x1000), "\"the low bit of sepc is always zero\"");
    assert_eq!(hart.privilege(), Privilege::Supervisor);
    assert_eq!(read(&mut hart, SSTATUS) & 0x122, 0x20);
    assert_eq!(hart.sret(), Some(0x1000));
    assert_eq!(hart.privilege(), Privilege::User);
    assert_eq!(hart.sstatus & 0x122, 0x22);
    assert_eq!(hart.sret(), None);
    assert_eq!(hart.sstatus & 0x122, 0x22, "an illegal instruction changes nothing");
}

/// "On implementations that support only IALIGN=32, the two low bits (sepc[1:0]) are always zero."
#[test]
fn sepc_is_aligned_as_instructions_are() {
    let mut hart = Supervisor::new(Features { compressed: false, ..RV64GCV });
    write(&mut hart, SEPC, u64::MAX);
    assert_eq!(read(&mut hart, SEPC), u64::MAX - 3);
    let mut hart = kernel();
    write(&mut hart, SEPC, u64::MAX);
    assert_eq!(read(&mut hart, SEPC), u64::MAX - 1);
}

/// Table "Encoding of stvec MODE field": "For example, a supervisor-mode timer interrupt causes the pc to be set to BASE+0x14."
#[test]
fn interrupts_can_be_vectored() {
    let mut hart = kernel();
    write(&mut hart, STVEC, 0x8020_0001);
    assert_eq!(hart.trap(Cause::interrupt(5), 0, 0), 0x8020_0014);
    assert_eq!(read(&mut hart, SCAUSE), 0x8000_0000_0000_0005);
    assert_eq!(hart.trap(Cause::exception(5), 0, 0), 0x8020_0000);
    for reserved in [2, 3] {
        write(&mut hart, STVEC, 0x1000 | reserved);
        assert_eq!(read(&mut hart, STVEC), 0x8020_0001, "WARL");
    }
    write(&mut hart, STVEC, 0x8020_0000);
    assert_eq!(hart.trap(Cause::interrupt(9), 0, 0), 0x8020_0000);
}

/// What is written comes back, where there are bits for it; the rest is WPRI, or fixed.
#[test]
fn sstatus_has_the_bits_that_the_features_say() {
    let mut hart = kernel();
    write(&mut hart, SSTATUS, u64::MAX);
    assert_eq!(read(&mut hart, SSTATUS), 0x8000_0002_000c_6722);
    write(&mut hart, SSTATUS, 0);
    assert_eq!(read(&mut hart, SSTATUS), 0x2_0000_0000);
    let mut hart = Supervisor::new(Features { float: false, vector: false, ..RV64GCV });
    assert_eq!(read(&mut hart, SSTATUS), 0x2_0000_0000);
    write(&mut hart, SSTATUS, u64::MAX);
    assert_eq!(read(&mut hart, SSTATUS), 0x2_000c_0122);
}

/// "SD is read-only ... whether either the FS, VS, or XS fields signal a dirty state" ("Extension Context Status in mstatus Register").
#[test]
fn sd_says_that_a_unit_is_dirty() {
    let mut hart = kernel();
    for (written, summary) in [(0x6000, 1), (0x4000, 0), (0x600, 1), (0x400, 0), (0x6600, 1), (0, 0)] {
        write(&mut hart, SSTATUS, written);
        assert_eq!(read(&mut hart, SSTATUS) >> 63, summary, "{written:#x}");
    }
}

/// "SEIP is read-only in sip"; "STIP is read-only in sip"; "SSIP is writable in sip".
#[test]
fn of_sip_ssip_can_be_written() {
    let mut hart = kernel();
    write(&mut hart, SIP, u64::MAX);
    assert_eq!(read(&mut hart, SIP), 0x2);
    hart.set_line(Line::External, true);
    write(&mut hart, SIP, 0);
    assert_eq!(read(&mut hart, SIP), 0x200);
    write(&mut hart, SIE, u64::MAX);
    assert_eq!(
        read(&mut hart, SIE),
        0x222,
        "\"writing one to every bit location in sie, then reading back\""
    );
}

/// "Multiple simultaneous interrupts destined for supervisor mode are handled in the following decreasing priority order: SEI, SSI, STI."
#[test]
fn interrupts_have_an_order() {
    let mut hart = program();
    write_as_kernel(&mut hart, SIE, 0x222);
    write_as_kernel(&mut hart, STIMECMP, NOW);
    hart.set_line(Line::Software, true);
    hart.set_line(Line::External, true);
    for (line, code) in [(Line::External, 9), (Line::Software, 1)] {
        assert_eq!(hart.pending_interrupt(), Some(Cause::interrupt(code)));
        hart.set_line(line, false);
    }
    assert_eq!(hart.pending_interrupt(), Some(Cause::interrupt(5)));
    write_as_kernel(&mut hart, STIMECMP, NOW + 1);
    assert_eq!(hart.pending_interrupt(), None);
    hart.check_timer(NOW + 1);
    assert_eq!(hart.pending_interrupt(), Some(Cause::interrupt(5)));
}

/// "When SIE is clear, interrupts are not taken while in supervisor mode. When the hart is running in user-mode, the value in SIE is ignored." And of WFI: "if
/// an enabled interrupt is present or later becomes present ... regardless of the global interrupt enable at each privilege level".
#[test]
fn sie_counts_in_supervisor_mode() {
    let mut hart = kernel();
    hart.set_line(Line::Software, true);
    assert!(!hart.wakes(), "not enabled");
    assert_eq!(write(&mut hart, SIE, 0x2), Effects::NONE);
    assert!(hart.wakes());
    assert_eq!(hart.pending_interrupt(), None);
    let mut in_user = hart;
    assert_eq!(in_user.sret(), Some(0));
    assert_eq!(in_user.pending_interrupt(), Some(Cause::interrupt(1)));
    assert_eq!(write(&mut hart, SSTATUS, 0x2), Effects::INTERRUPT.and(Effects::UNITS));
    assert_eq!(hart.pending_interrupt(), Some(Cause::interrupt(1)));
}

/// Sstc: "is set by writing stimecmp with a value that is less than or equal to time, and is cleared by writing stimecmp with a value greater than time".
#[test]
fn the_timer_is_due_at_its_time() {
    let mut hart = kernel();
    write(&mut hart, SSTATUS, 0x2);
    assert_eq!(hart.deadline(), None);
    assert_eq!(write(&mut hart, SIE, 0x20), Effects::TIMER);
    assert_eq!(hart.deadline(), None, "never");
    assert_eq!(write(&mut hart, STIMECMP, NOW + 5), Effects::TIMER);
    assert_eq!(hart.deadline(), Some(NOW + 5));
    assert_eq!(read(&mut hart, SIP), 0);
    for (time, pending) in [(NOW + 4, 0), (NOW + 5, 0x20)] {
        hart.check_timer(time);
        assert_eq!(hart.lines, pending);
    }
    assert_eq!(write(&mut hart, STIMECMP, NOW), Effects::TIMER.and(Effects::INTERRUPT));
    assert_eq!(read(&mut hart, SIP), 0x20);
}

/// Without Sstc, "STIP is set and cleared by the execution environment": by calls of the SBI.
#[test]
fn without_stimecmp_the_sbi_has_the_timer() {
    let mut hart = Supervisor::new(Features { timer: false, ..RV64GCV });
    assert_eq!(execute(&mut hart, STIMECMP << 20 | 0x2573, 0), Err(Illegal));
    hart.set_deadline(NOW, NOW);
    assert_eq!(read(&mut hart, SIP), 0x20);
    hart.set_deadline(NOW + 1, NOW);
    assert_eq!(read(&mut hart, SIP), 0);
}

/// "For both CSRRS and CSRRC, if rs1=x0, then the instruction will not write to the CSR at all"; "Attempts to write a read-only CSR raise illegal-instruction
/// exceptions"; a register of zeros is no `x0`.
#[test]
fn instructions_with_x0_do_not_write() {
    let mut hart = kernel();
    let time = 0xc01 << 20 | 0x73;
    for reads in [2 << 12, 3 << 12, 6 << 12, 7 << 12] {
        assert_eq!(execute(&mut hart, time | reads | 10 << 7, 0), Ok(Outcome::Counter(1)));
        assert_eq!(execute(&mut hart, time | reads | 11 << 15, 0), Err(Illegal));
    }
    assert_eq!(execute(&mut hart, time | 1 << 12, 0), Err(Illegal));
    // `csrrw a0, satp, x0` attempts to write zero; `csrrs a0, satp, x0` doesn't.
    let satp = 0x180 << 20 | 10 << 7 | 0x73;
    assert_eq!(execute(&mut hart, satp | 1 << 12, 0), Ok(Outcome::AddressSpace(CsrAccess::Write(0))));
    assert_eq!(execute(&mut hart, satp | 2 << 12, 0), Ok(Outcome::AddressSpace(CsrAccess::Read)));
}

/// "When the CY, TM, IR, or HPMn bit in the scounteren register is clear, attempts to read the ... register while executing in U-mode will cause an
/// illegal-instruction exception."
#[test]
fn programs_read_the_counters_that_they_may() {
    let mut hart = kernel();
    assert_eq!(write(&mut hart, SCOUNTEREN, 0b10), Effects::PROGRAMS);
    assert_eq!(hart.hart_counters(), u32::MAX);
    assert_eq!(execute(&mut hart, 0xc000_2573, 0), Ok(Outcome::Counter(0)));
    assert_eq!(hart.sret(), Some(0));
    assert_eq!(hart.hart_counters(), 0b10);
    assert_eq!(execute(&mut hart, 0xc000_2573, 0), Err(Illegal));
    assert_eq!(execute(&mut hart, 0xc010_2573, 0), Ok(Outcome::Counter(1)));
}

/// What a hart without Zicboz has no bit for can't be written; and no CBO.INVAL but one that flushes is ever allowed.
#[test]
fn cache_block_instructions_are_for_programs_as_the_kernel_says() {
    let mut hart = Supervisor::new(Features { environment: Some(0b0111_0001), ..RV64GCV });
    assert_eq!(write(&mut hart, SENVCFG, u64::MAX), Effects::PROGRAMS);
    assert_eq!(read(&mut hart, SENVCFG), 0b0111_0001);
    assert_eq!(hart.hart_environment(), 0b0101_0000);
    assert_eq!(hart.sret(), Some(0));
    assert_eq!(hart.hart_environment(), 0b0101_0001);
    write_as_kernel(&mut hart, SENVCFG, 0);
    assert_eq!(hart.hart_environment(), 0);
}

/// A write of `sstatus` says what it changes of what the hart does.
#[test]
fn effects_are_of_what_has_changed() {
    let mut hart = kernel();
    assert_eq!(hart.view(), View::Kernel);
    assert_eq!(write(&mut hart, SSTATUS, 0x4_2200), Effects::VIEW);
    assert_eq!(hart.view(), View::KernelSum);
    assert_eq!(write(&mut hart, SSTATUS, 0x4_2200), Effects::NONE);
    assert_eq!(write(&mut hart, SSTATUS, 0xc_2200), Effects::EXECUTABLE);
    assert_eq!(write(&mut hart, SSTATUS, 0x4_6200), Effects::EXECUTABLE.and(Effects::UNITS));
    assert_eq!(hart.sret(), Some(0));
    assert_eq!(hart.view(), View::User);
}

/// Programs execute none of the kernel's instructions ("Supervisor Instructions"); and nobody those of extensions that aren't there.
#[test]
fn instructions_are_for_kernels() {
    let of_kernels = [
        (0x1020_0073, Privileged::Return),
        (0x1050_0073, Privileged::WaitForInterrupt),
        (0x1200_0073, Privileged::Fence { address: 0, asid: 0 }), // sfence.vma
        (0x12b5_0073, Privileged::Fence { address: 10, asid: 11 }), // sfence.vma a0, a1
    ];
    let of_svinval = [
        (0x16b5_0073, Privileged::Invalidate { address: 10, asid: 11 }), // sinval.vma a0, a1
        (0x1800_0073, Privileged::FenceBeforeInvalidations),             // sfence.w.inval
        (0x1810_0073, Privileged::FenceAfterInvalidations),              // sfence.inval.ir
    ];
    let of_zawrs = [
        (0x00d0_0073, Privileged::WaitOnReservation),        // wrs.nto
        (0x01d0_0073, Privileged::WaitOnReservationShortly), // wrs.sto
    ];
    let others = [
        0x0000_0073, // ecall
        0x0010_0073, // ebreak
        0x3020_0073, // mret
        0x0020_0073, // uret
        0x1020_00f3, // sret with a destination
        0x1050_8073, // wfi with a source
        0x1200_00f3, // sfence.vma with a destination
        0x2200_0073, // hfence.vvma
        0x6200_0073, // hfence.gvma
        0x2600_0073, // hinval.vvma
        0x6000_4573, // hlv.b
        0x1820_0073,
        0x0000_0073 | 3 << 20,
        0x0000_9002, // c.ebreak
        0x0000_0013, // nop
        0,
        u32::MAX,
    ];
    let none = Features { invalidation: false, reservation_waits: false, ..RV64GCV };
    let allowed = |instruction| {
        let mut without = Supervisor::new(none);
        let kernel_without = without.allows(instruction);
        assert_eq!(without.sret(), Some(0));
        [
            kernel().allows(instruction),
            program().allows(instruction),
            kernel_without,
            without.allows(instruction),
        ]
    };
    for (bits, instruction) in of_kernels {
        assert_eq!(Privileged::decode(bits), instruction, "{bits:#x}");
        assert_eq!(allowed(instruction), [true, false, true, false], "{bits:#x}");
    }
    for (bits, instruction) in of_svinval {
        assert_eq!(Privileged::decode(bits), instruction, "{bits:#x}");
        assert_eq!(allowed(instruction), [true, false, false, false], "{bits:#x}");
    }
    for (bits, instruction) in of_zawrs {
        assert_eq!(Privileged::decode(bits), instruction, "{bits:#x}");
        assert_eq!(allowed(instruction), [true, true, false, false], "{bits:#x}");
    }
    for bits in others {
        assert_eq!(Privileged::decode(bits), Privileged::Other, "{bits:#x}");
        assert_eq!(allowed(Privileged::Other), [false; 4]);
    }
    assert!(matches!(Privileged::decode(0x1001_74f3), Privileged::Csr(_)), "csrrci s1, sstatus, 2");
}

/// The hart notes what a program writes to; the hypervisor may keep a unit switched off that the guest has on.
#[test]
fn units_that_are_not_loaded_are_off() {
    let mut hart = kernel();
    write(&mut hart, SSTATUS, 0x8_4200);
    assert_eq!(hart.hart_status(Units::NONE), 0x8_0000);
    let float = Units::of(Unit::Float);
    assert_eq!(hart.hart_status(float), 0x8_4000);
    hart.take_units(0x8_4000, float);
    assert_eq!(read(&mut hart, SSTATUS), 0x2_0008_4200);
    hart.take_units(0x8_6000, float);
    assert_eq!(read(&mut hart, SSTATUS), 0x8000_0002_0008_6200);
}
