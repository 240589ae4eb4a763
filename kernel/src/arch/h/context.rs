//! The registers of a vCPU that every trap saves, and the trap entry itself.
//!
//! The hypervisor follows the interrupt model: there is one stack per core, it runs to completion with interrupts off,
//! and it keeps nothing on that stack between two traps. So the entry saves the guest's registers in the vCPU's
//! own [`Context`], starts on an empty stack, and the Rust side ends with [`enter_guest`], given the vCPU to go on with - the
//! same or another. No callee-saved register needs care.
use core::arch::global_asm;
use core::ffi::c_void;
use core::mem::offset_of;

use ainori_limits::cause;

use super::VcpuState;
use crate::arch::riscv::csr::{self, hstatus, status};
use crate::cpu::Cpu;
use crate::stats::Exit;

/// General registers and trap state of a vCPU. `sscratch` points to it while the vCPU runs and is 0 in the hypervisor.
#[repr(C)]
#[derive(Debug)]
pub(in crate::arch) struct Context {
    /// `x0` to `x31`; the first is always 0.
    pub(in crate::arch) x: [u64; 32],
    /// Guest program counter (`sepc`).
    pub(in crate::arch) pc: u64,
    /// `sstatus`: previous privilege, and the hypervisor's half of the floating-point and vector switches.
    pub(super) sstatus: u64,
    /// `hstatus`: what traps.
    pub(super) hstatus: u64,
    /// The core that runs the vCPU: its [`Cpu`].
    pub(super) cpu: *mut c_void,
}

impl Context {
    /// The state in which SBI HSM starts a hart, in VS-mode. `alone`: no other vCPU can ever want its core, so it may wait there by itself;
    /// otherwise WFI and spin-wait hints trap. `file`: the number of its guest interrupt file, or 0. `shadow`: what else traps, if it has one.
    pub(super) const fn new(alone: bool, file: u8, shadow: u64) -> Self {
        Self {
            x: [0; 32],
            pc: 0,
            sstatus: status::SPP | status::SPIE | status::UXL_64,
            hstatus: hstatus::SPV
                | hstatus::SPVP
                | hstatus::VSXL_64
                | (file as u64) << hstatus::VGEIN_SHIFT
                | if alone { 0 } else { hstatus::VTW }
                | shadow,
            cpu: core::ptr::null_mut(),
        }
    }
}

global_asm!(
    include_str!("../riscv/all_but_a0.S"),
    r#"
    .section .text.trap, "ax"
    .balign 4
    .global trap_entry
trap_entry:
    csrrw   a0, sscratch, a0
    beqz    a0, hypervisor_trap
    for_all_but_a0 sd
    csrrw   t0, sscratch, zero
    csrr    t1, sepc
    csrr    t2, sstatus
    csrr    t3, {CSR_HSTATUS}
    sd      t0, 10*8(a0)
    sd      t1, {PC}(a0)
    sd      t2, {SSTATUS}(a0)
    sd      t3, {HSTATUS}(a0)
    ld      a0, {CPU}(a0)
    csrr    t0, scause
    ld      sp, {STACK}(a0)
    bgez    t0, 1f
    slli    t0, t0, 1
    li      t1, 2 * {TIMER}
    bne     t0, t1, 1f
    li      a1, {EVENT}
    tail    {timer}
1:  tail    {exception}

    // Without a trap, with the core in a0.
    .global begin_again
begin_again:
    ld      sp, {STACK}(a0)
    tail    {nothing}

    // The way back, with the context to go on with in a0.
    .global resume_guest
resume_guest:
    ld      t1, {PC}(a0)
    ld      t2, {SSTATUS}(a0)
    ld      t3, {HSTATUS}(a0)
    csrw    sepc, t1
    csrw    sstatus, t2
    csrw    {CSR_HSTATUS}, t3
    csrw    sscratch, a0
    for_all_but_a0 ld
    ld      a0, 10*8(a0)
    sret

    // A trap while sscratch is 0 is one of the hypervisor itself: an access to guest memory that failed, or a bug.
hypervisor_trap:
    csrrw   a0, sscratch, zero
    addi    sp, sp, -64
    sd      ra,  0(sp)
    sd      t0,  8(sp)
    la      t0, guest_access_begin
    csrr    ra, sepc
    bltu    ra, t0, 1f
    la      t0, guest_access_end
    bgeu    ra, t0, 1f
    la      ra, guest_access_failed
    csrw    sepc, ra
    ld      t0,  8(sp)
    ld      ra,  0(sp)
    addi    sp, sp, 64
    sret
1:  call    {bug}
    "#,
    CSR_HSTATUS = const csr::HSTATUS,
    PC = const offset_of!(Context, pc),
    SSTATUS = const offset_of!(Context, sstatus),
    HSTATUS = const offset_of!(Context, hstatus),
    CPU = const offset_of!(Context, cpu),
    STACK = const Cpu::STACK_OFFSET,
    TIMER = const cause::interrupt::SUPERVISOR_TIMER,
    EVENT = const Exit::Timer as u8,
    timer = sym super::timer::fired,
    exception = sym super::timer::trapped,
    nothing = sym crate::cpu::event::handle_nothing,
    bug = sym super::trap::unexpected_trap,
);

unsafe extern "C" {
    /// Where `stvec` points.
    pub fn trap_entry();
    /// Decides anew what runs on this core, on an empty stack: a loop that costs those nothing who come by only once.
    ///
    /// # Safety
    /// `cpu` is this core's, and nobody needs any more what is on the stack.
    pub fn begin_again(cpu: *mut c_void) -> !;
    /// Leaves the hypervisor for the guest.
    fn resume_guest(context: *mut Context) -> !;
}

/// Leaves the hypervisor for a guest.
///
/// # Safety
/// `state` is that of the vCPU that is loaded on this core.
#[inline(always)]
pub unsafe fn enter_guest(state: *mut VcpuState) -> ! {
    super::timer::settle();
    // SAFETY: as the caller says.
    unsafe { resume_guest(&raw mut (*state).context) }
}
