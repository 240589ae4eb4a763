//! Guest interrupt files of this hart's IMSIC (AIA, chapter 3; privileged specification, "Hypervisor Guest External Interrupt Registers"). A vCPU has one by
//! its number, from 1 on, and is interrupted by it without the hypervisor while it runs. Of one that doesn't run the hart tells the hypervisor.
use super::hart::Features;
use crate::arch::riscv::csr::{self, file, hstatus};
use ainori_devices::channel::BELL_IDENTITY;

/// Has this hart as many as the one that the features are of?
pub fn are_as_of(features: &Features) -> bool {
    features.guest_files() == 0 || count() >= features.guest_files()
}

/// How many this hart has. While no guest runs here yet, and if it has the registers of the AIA.
pub(super) fn count() -> u8 {
    // SAFETY: concerns only what interrupts the hypervisor, which takes none while it runs itself; afterwards none is watched, as no guest's is yet.
    unsafe {
        csr::write!(csr::HGEIE, u64::MAX);
        let all = csr::read!(csr::HGEIE);
        csr::write!(csr::HGEIE, 0);
        all.count_ones() as u8
    }
}

/// Tells the hypervisor from now on of what comes into these files, a bit each, and of no others.
#[inline]
pub fn watch(files: u64) {
    // SAFETY: concerns only what interrupts the hypervisor; who calls this is on a hart that has such files.
    unsafe { csr::write!(csr::HGEIE, files) }
}

/// One of the watched files that have something: a bit. It isn't watched any more, unless it is in `kept`. 0 if there is none.
pub fn take_pending(kept: u64) -> u64 {
    let pending = csr::read!(csr::HGEIP) & csr::read!(csr::HGEIE);
    let one = pending & pending.wrapping_neg();
    // SAFETY: as in `watch`.
    unsafe { csr::clear!(csr::HGEIE, one & !kept) }
    one
}

/// Of those that are watched, only these still are. Were there others?
pub fn watch_only(files: u64) -> bool {
    let others = csr::read!(csr::HGEIE) & !files;
    // SAFETY: as in `watch`.
    unsafe { csr::clear!(csr::HGEIE, others) }
    others != 0
}

/// A file of a bell says nothing until somebody looks.
pub fn quiet_bell(number: u8) {
    // SAFETY: bells are given files that the hart has, and no vCPU has one of these.
    unsafe { mute(number) }
}

/// It tells of the next ring, and of one that has come meanwhile.
pub fn tell_of_bell(number: u8) {
    // SAFETY: as in `quiet_bell`.
    unsafe {
        change(number, || {
            select_and_write(file::EIE0, 1 << BELL_IDENTITY);
            select_and_write(file::EIDELIVERY, file::FROM_FILE);
        });
    }
}

/// Has it rung since somebody asked last?
pub fn take_ring(number: u8) -> bool {
    // SAFETY: as in `quiet_bell`.
    unsafe {
        change(number, || {
            csr::write!(csr::VSISELECT, file::EIP0);
            csr::take!(csr::VSIREG) >> BELL_IDENTITY & 1 != 0
        })
    }
}

/// Messages of these identities below 64, a bit each, have come for its vCPU: all at once, as there may be many of them.
pub fn post(number: u8, identities: u64) {
    // SAFETY: a vCPU has the file with this number only where its hart has that, and finds there what was sent to it.
    unsafe {
        change(number, || {
            csr::write!(csr::VSISELECT, file::EIP0);
            csr::set!(csr::VSIREG, identities);
        });
    }
}

/// Puts a file with so many identities back to reset, as far as its vCPU can see it.
pub fn reset(features: &Features, number: u8, identities: u32) {
    if number == 0 || number > features.guest_files() {
        return;
    }
    // SAFETY: the hart has this file, as was just asked, and whoever called this wants nothing of what is in it.
    unsafe {
        change(number, || {
            // BOUND: 32 words of each kind at most, 5 instructions each.
            for word in (0..=u64::from(identities) / 32).step_by(2) {
                select_and_write(file::EIE0 + word, 0);
                select_and_write(file::EIP0 + word, 0);
            }
            select_and_write(file::EIDELIVERY, 0);
            select_and_write(file::EITHRESHOLD, 0);
        });
    }
}

/// The file keeps what comes in, but doesn't tell anybody ([`interrupt_again`]).
///
/// # Safety
/// The hart has this file, whose vCPU isn't in the hart.
pub(super) unsafe fn mute(number: u8) {
    // SAFETY: as the caller says, who has it put back before the vCPU could see it.
    unsafe { change(number, || select_and_write(file::EIDELIVERY, 0)) }
}

/// The file that `hstatus.VGEIN` names interrupts the vCPU that is being loaded, as it did before it was [muted](mute); `vsiselect` is changed.
///
/// # Safety
/// It is that vCPU's, and was muted.
pub(super) unsafe fn interrupt_again() {
    // SAFETY: as the caller says.
    unsafe { select_and_write(file::EIDELIVERY, file::FROM_FILE) }
}

/// Changes something of a file, which is named while that is done. What belongs to the loaded vCPU is put back.
///
/// # Safety
/// The hart has this file, and what is changed is as its vCPU may find it.
unsafe fn change<T>(number: u8, how: impl FnOnce() -> T) -> T {
    // SAFETY: concerns only guests, none of which runs now; the rest is as the caller says.
    unsafe {
        let (state, selected) = (csr::read!(csr::HSTATUS), csr::read!(csr::VSISELECT));
        csr::write!(csr::HSTATUS, state & !hstatus::VGEIN | u64::from(number) << hstatus::VGEIN_SHIFT);
        let result = how();
        csr::write!(csr::VSISELECT, selected);
        csr::write!(csr::HSTATUS, state);
        result
    }
}

/// Writes a register of the file that `hstatus.VGEIN` names.
///
/// # Safety
/// There is such a file and such a register, what is written is as the file's vCPU may find it, and nobody relies on what is in `vsiselect`.
unsafe fn select_and_write(register: u64, value: u64) {
    // SAFETY: as the caller says.
    unsafe {
        csr::write!(csr::VSISELECT, register);
        csr::write!(csr::VSIREG, value);
    }
}
