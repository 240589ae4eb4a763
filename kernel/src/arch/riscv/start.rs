//! The first instructions of every hart; and what this build has room for, as symbols of its ELF file.
use core::arch::global_asm;
use core::ffi::c_void;

use ainori_limits::Room;

// The image starts with the header of a RISC-V Linux `Image`, so that every boot loader can start it; `ainori build`
// fills in the size. The firmware enters with the hart id in a0 and the device tree in a1.
global_asm!(
    r#"
    .section .text.head, "ax"
    .global _start
_start:
    j       boot_hart
    .balign 8
    .quad   0x200000                // load offset from the start of memory
    .quad   __image_end - _start    // size in memory
    .quad   0                       // flags: little endian
    .word   2                       // header version
    .word   0
    .quad   0
    .ascii  "RISCV\0\0\0"
    .ascii  "RSC\x05"
    .word   0

boot_hart:
    csrw    sie, zero
    csrw    sscratch, zero
    la      t0, trap_entry
    csrw    stvec, t0
    la      t0, __bss_start
    la      t1, __bss_end
1:  bgeu    t0, t1, 2f
    sd      zero, (t0)
    addi    t0, t0, 8
    j       1b
2:  la      sp, __boot_stack_top
    call    {boot}

    // What follows stays. The linker keeps all that start_secondary leads to, and takes the rest to be boot's (tools/link-kernel).
    .section .text.start, "ax"
    .balign 4
    // The boot hart, as start_secondary. All others are there, or will come there from the firmware, which has been asked for that: what
    // only boot needed, its stack too, becomes zeros, which are no instructions, so that whatever would still go there is seen.
    .global leave_boot
leave_boot:
    la      t0, __image_start
    la      t1, __boot_end
1:  sd      zero, (t0)
    addi    t0, t0, 8
    bltu    t0, t1, 1b
    fence.i

    // Every hart as a core: its id in a0, its Cpu in a1.
    .global start_secondary
start_secondary:
    csrw    sie, zero
    csrw    sscratch, zero
    la      t0, trap_entry
    csrw    stvec, t0
    ld      sp, {STACK}(a1)
    mv      a0, a1
    call    {secondary}
    "#,
    STACK = const crate::cpu::Cpu::STACK_OFFSET,
    boot = sym crate::boot::boot,
    secondary = sym crate::boot::secondary,
);

unsafe extern "C" {
    /// Where the firmware enters a secondary hart, with its `Cpu` as the opaque argument.
    ///
    /// # Safety
    /// The hart is the core's, and runs nothing else.
    pub fn start_secondary(hart: u64, cpu: *mut c_void) -> !;

    /// As [`start_secondary`], for the hart that has booted: the code, constants and stack of boot are gone afterwards.
    ///
    /// # Safety
    /// The hart is the core's, and runs nothing else; no other hart uses what is boot's.
    pub fn leave_boot(hart: u64, cpu: *mut c_void) -> !;
}

// What this build has room for, as numbers in the ELF file's table of symbols: the tool that makes the image reads them. They take no memory.
global_asm!(
    ".global __room_harts",
    ".set __room_harts, {harts}",
    ".global __room_vcpus",
    ".set __room_vcpus, {vcpus}",
    ".global __room_guest_vcpus",
    ".set __room_guest_vcpus, {guest_vcpus}",
    harts = const Room::BUILT.harts,
    vcpus = const Room::BUILT.vcpus,
    guest_vcpus = const Room::BUILT.guest_vcpus,
);

// That this build's guests can have shadow tables.
#[cfg(feature = "shadow")]
global_asm!(".global __has_shadow", ".set __has_shadow, 1");

// That it is for harts without Sstc, and for no others.
#[cfg(feature = "sbi-timer")]
global_asm!(".global __for_harts_without_sstc", ".set __for_harts_without_sstc, 1");

// That it drives more kinds of serial ports.
#[cfg(feature = "uarts")]
global_asm!(".global __has_more_uarts", ".set __has_more_uarts, 1");

// That guests can have watchdogs.
#[cfg(feature = "watchdog")]
global_asm!(".global __has_watchdogs", ".set __has_watchdogs, 1");

// That it is for harts without the H extension, and for no others.
#[cfg(feature = "no-h")]
global_asm!(".global __for_harts_without_h", ".set __for_harts_without_h, 1");
