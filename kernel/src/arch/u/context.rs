//! The registers of a vCPU that every trap saves, and the way to Rust from the [window](super::window), and back.
//!
//! The hypervisor follows the interrupt model: there is one stack per core, it runs to completion with interrupts off,
//! and it keeps nothing on that stack between two traps. So the entry saves the guest's registers in the vCPU's
//! own [`Context`], starts on an empty stack, and the Rust side ends with [`enter_guest`], given the vCPU to go on with - the
//! same or another. No callee-saved register needs care.
use core::arch::global_asm;
use core::ffi::c_void;
use core::mem::offset_of;

use super::VcpuState;
use super::page::Registers;
use super::per_hart::{AT, PerHart};
use super::vcpu::Ready;
use super::window::LEAVE;
use crate::arch::riscv::csr::status;
use crate::cpu::{Cpu, event};
use ainori_supervisor::Units;

/// General registers and trap state of a vCPU.
#[repr(C)]
pub(in crate::arch) struct Context {
    /// `x0` to `x31`; the first is always 0.
    pub(in crate::arch) x: [u64; 32],
    /// Guest program counter (`sepc`).
    pub(in crate::arch) pc: u64,
    /// The hart's `sstatus`: which units are on for the guest.
    pub(super) sstatus: u64,
    /// The core that runs the vCPU: its [`Cpu`].
    pub(super) cpu: *mut c_void,
    /// The units whose registers in the hart are this vCPU's.
    pub(super) loaded: Units,
    /// Those that were written since they were loaded.
    pub(super) dirty: Units,
    /// Its supervisor's registers.
    registers: &'static Registers,
}

impl Context {
    /// All zero, on no core.
    pub(super) const fn new(registers: &'static Registers) -> Self {
        Self {
            x: [0; 32],
            pc: 0,
            sstatus: status::UXL_64,
            cpu: core::ptr::null_mut(),
            loaded: Units::NONE,
            dirty: Units::NONE,
            registers,
        }
    }

    /// The guest has run: which units has it written to?
    #[inline(always)]
    pub(super) fn note_units(&mut self) {
        let dirty = Units::dirty(self.sstatus & self.loaded.fields());
        if !dirty.is_none() {
            self.dirty = self.dirty.and(dirty);
            self.registers.with(|registers| registers.take_units(self.sstatus, self.loaded));
        }
    }
}

global_asm!(
    r#"
    .section .text.trap, "ax"
    // Before a hart has the hypervisor's map: all traps are bugs.
    .balign 4
    .global trap_entry
trap_entry:
    call    {bug}

    // From the window, with the context in a0.
    .balign 4
    .global trap_taken
trap_taken:
    csrrw   t0, sscratch, zero
    csrr    t1, sepc
    csrr    t2, sstatus
    sd      t0, 10*8(a0)
    sd      t1, {PC}(a0)
    sd      t2, {SSTATUS}(a0)
    ld      a0, {CPU}(a0)
    ld      sp, {STACK}(a0)
    tail    {trapped}

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
    ld      t3, {WINDOW}(zero)
    csrw    sepc, t1
    csrw    sstatus, t2
    sd      a0, {CONTEXT}(zero)
    jr      {LEAVE}(t3)
    "#,
    PC = const offset_of!(Context, pc),
    SSTATUS = const offset_of!(Context, sstatus),
    CPU = const offset_of!(Context, cpu),
    STACK = const Cpu::STACK_OFFSET,
    WINDOW = const AT + offset_of!(PerHart, window) as i64,
    CONTEXT = const AT + offset_of!(PerHart, context) as i64,
    LEAVE = const LEAVE,
    trapped = sym super::trap::taken,
    nothing = sym crate::cpu::event::handle_nothing,
    bug = sym super::trap::unexpected_trap,
);

unsafe extern "C" {
    /// Where the window leads to.
    pub(super) fn trap_taken();
    /// Decides anew what runs on this core, on an empty stack: a loop that costs those nothing who come by only once.
    ///
    /// # Safety
    /// `cpu` is this core's, and nobody needs any more what is on the stack.
    pub fn begin_again(cpu: *mut c_void) -> !;
    /// Leaves the hypervisor for the guest with this state, which begins with its context.
    fn resume_guest(context: *mut c_void) -> !;
}

/// Leaves the hypervisor for a guest, which takes an interrupt first if it has one. If its tables have no room yet for where it goes on, a step of making room is done,
/// and the core begins again.
///
/// # Safety
/// `state` is that of the vCPU that is loaded on this core.
#[inline(always)]
pub unsafe fn enter_guest(state: *mut VcpuState) -> ! {
    // SAFETY: as the caller says. Nobody else refers to it any more.
    unsafe {
        match (*state).prepare() {
            Ready::Yes => resume_guest(state.cast()),
            Ready::NotYet => event::begin_later((*state).context.cpu.cast::<Cpu>()),
            Ready::Confined(interrupt) => event::confine((*state).context.cpu.cast::<Cpu>(), interrupt),
        }
    }
}
