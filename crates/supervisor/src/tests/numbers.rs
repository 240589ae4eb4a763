//! Each of the 4,096 numbers is of a register that is here, of one that the caller or the hart itself has, or of none.
use ainori_devices::zicsr::AnyCsrInstruction;

use super::examples::RV64GCV;
use crate::*;

/// What can be done with a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// There is none, or not for this guest.
    None,
    /// It is here, for the kernel.
    Here,
    /// `satp`, for the kernel.
    AddressSpace,
    /// A unit's, which all can read and write.
    Unit(Unit),
    /// A unit's, which all can read.
    ReadOnly(Unit),
    /// A counter, which all can read.
    Counter(u8),
}

/// The table: tables "Currently allocated RISC-V unprivileged CSR addresses" and "... supervisor-level CSR addresses", of rv64imafdcv with S and Sstc. All that isn't named is
/// no register of this guest: those of RV32, H, AIA (`stopei`, `stopi`, `siselect`, `sireg`), Smstateen, Ssccfg, Sscofpmf, Ssctr, Ssqosid, Sdtrig, Zicfiss, Zkr, Zcmt, of machine mode and of debuggers.
fn kind(number: u32) -> Kind {
    match number {
        0x001..=0x003 => Kind::Unit(Unit::Float), // fflags, frm, fcsr
        0x008 | 0x009 | 0x00a | 0x00f => Kind::Unit(Unit::Vector), // vstart, vxsat, vxrm, vcsr
        0x100 => Kind::Here,                      // sstatus
        0x104 => Kind::Here,                      // sie
        0x105 => Kind::Here,                      // stvec
        0x106 => Kind::Here,                      // scounteren
        0x10a => Kind::Here,                      // senvcfg
        0x140 => Kind::Here,                      // sscratch
        0x141 => Kind::Here,                      // sepc
        0x142 => Kind::Here,                      // scause
        0x143 => Kind::Here,                      // stval
        0x144 => Kind::Here,                      // sip
        0x14d => Kind::Here,                      // stimecmp
        0x180 => Kind::AddressSpace,              // satp
        0xc00..=0xc1f => Kind::Counter((number - 0xc00) as u8), // cycle, time, instret, hpmcounter3 to 31
        0xc20..=0xc22 => Kind::ReadOnly(Unit::Vector), // vl, vtype, vlenb
        _ => Kind::None,
    }
}

/// `csrr a0, number` and `csrw number, a0`.
fn read_and_write(supervisor: Supervisor, number: u32) -> [Result<Outcome, Illegal>; 2] {
    [number << 20 | 0x2573, number << 20 | 0x5_1073].map(|bits| {
        let instruction = AnyCsrInstruction::decode(bits).expect("it is one");
        let mut copy = supervisor;
        copy.access(instruction, 0, || 0)
    })
}

/// As for a guest whose kernel is `is_kernel` and whose units and counters are all on, or none.
fn check(supervisor: Supervisor, is_kernel: bool, on: bool) {
    for number in 0..4096 {
        let [read, write] = read_and_write(supervisor, number);
        let describe = |outcome| match outcome {
            Ok(Outcome::Done { .. }) => Kind::Here,
            Ok(Outcome::AddressSpace(_)) => Kind::AddressSpace,
            Ok(Outcome::Unit(unit)) => Kind::Unit(unit),
            Ok(Outcome::Counter(counter)) => Kind::Counter(counter),
            Err(Illegal) => Kind::None,
        };
        let (readable, writable) = match kind(number) {
            kind @ (Kind::Here | Kind::AddressSpace) if is_kernel => (kind, kind),
            kind @ Kind::Unit(_) if on => (kind, kind),
            Kind::ReadOnly(unit) if on => (Kind::Unit(unit), Kind::None),
            kind @ Kind::Counter(_) if on || is_kernel => (kind, Kind::None),
            _ => (Kind::None, Kind::None),
        };
        assert_eq!([describe(read), describe(write)], [readable, writable], "{number:#x}, {is_kernel}, {on}");
    }
}

#[test]
fn each_number_is_of_a_register_or_of_none() {
    let mut supervisor = Supervisor::new(RV64GCV);
    for on in [true, false] {
        supervisor.sstatus = if on { 0x2_0000_2200 } else { 0x2_0000_0000 };
        supervisor.scounteren = if on { u32::MAX } else { 0 };
        supervisor.privilege = Privilege::Supervisor;
        check(supervisor, true, on);
        supervisor.privilege = Privilege::User;
        check(supervisor, false, on);
    }
}

#[test]
fn what_a_hart_does_not_have_has_no_registers() {
    let less =
        Features { float: false, vector: false, timer: false, counters: 0b010, environment: None, ..RV64GCV };
    let supervisor = Supervisor::new(less);
    for number in 0..4096 {
        let [read, write] = read_and_write(supervisor, number);
        let expected = match kind(number) {
            Kind::Unit(_) | Kind::ReadOnly(_) | Kind::None => [true, true],
            Kind::Here => [matches!(number, 0x10a | 0x14d); 2],
            Kind::AddressSpace => [false, false],
            Kind::Counter(counter) => [counter != 1, true],
        };
        assert_eq!([read, write].map(|outcome| outcome == Err(Illegal)), expected, "{number:#x}");
    }
}
