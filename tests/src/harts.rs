//! With which harts tests are run that don't say so: with the H extension, or without it.
use crate::checkout;
use ainori::image::Kernel;
use std::path::{Path, PathBuf};

/// The harts of all boards of which nothing else is said, if they aren't to have H: so the tests run without it.
const HARTS: &str = "AINORI_HARTS";
/// Its words.
const WITH_H: &str = "h";
const WITHOUT_H: &str = "no-h";

/// Do the harts lack H that the tests are run with?
///
/// # Panics
/// If that can't be understood.
pub fn usual_lack_h() -> bool {
    let Some(wanted) = std::env::var_os(HARTS) else { return false };
    match wanted.to_str() {
        Some(WITHOUT_H) => true,
        Some(WITH_H) => false,
        _ => panic!("{HARTS} is {wanted:?}: it should be {WITH_H} or {WITHOUT_H}"),
    }
}

/// Until when Linux is up, in milliseconds, if it is by this time with H: without it, booting takes longer (4.3 s where it takes less than 4 s).
pub fn up_by_ms(with_h: u64) -> u64 {
    if usual_lack_h() { 2 * with_h } else { with_h }
}

/// The arguments of an RTOS that measures, unless they say from when on: without H it leaves the first 10 ms out, in which its instructions become breakpoints.
pub(crate) fn measured(args: &str) -> String {
    let says_when = args.split(' ').any(|word| word.starts_with("begin_ms="));
    if usual_lack_h() && !says_when { format!("{args} begin_ms=10") } else { args.to_owned() }
}

/// The hypervisor for the harts that the tests are run with. (Budgets are promised of [another one](crate::hypervisor), if these lack H.)
pub fn usual_hypervisor() -> PathBuf {
    if usual_lack_h() { hypervisor_without_h() } else { crate::hypervisor() }
}

/// The hypervisor for harts without H, as `tools/build-kernel --no-h` leaves it.
pub fn hypervisor_without_h() -> PathBuf {
    checkout(".cache/kernel/ainori-no-h.elf")
}

/// The hypervisor for harts with neither H nor Sstc, as `tools/build-kernel --no-h --sbi-timer --uarts` leaves it. (It drives more serial ports, too.)
pub fn hypervisor_without_h_and_sstc() -> PathBuf {
    checkout(".cache/kernel/ainori-no-h-sbi-timer-uarts.elf")
}

/// Do the harts lack H that this hypervisor is for? `None` of a file that isn't one at all.
pub fn lack_h_for(kernel: &Path) -> Option<bool> {
    let kernel = Kernel::from_elf(&std::fs::read(kernel).ok()?).ok()?;
    Some(kernel.has.without_h)
}

/// A model of harts, as QEMU names it, without H if it is to be.
pub fn model(model: &str, lacks_h: bool) -> String {
    let off = if lacks_h && ainori_manifest::has_h(model) { ",h=false" } else { "" };
    format!("{model}{off}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h_is_taken_from_models_that_have_it() {
        for (before, lacks_h, after) in [
            ("rv64", false, "rv64"),
            ("rv64", true, "rv64,h=false"),
            ("rv64,v=true,vlen=256", true, "rv64,v=true,vlen=256,h=false"),
            ("rv64,h=off", true, "rv64,h=off"),
            ("sifive-u54", true, "sifive-u54"),
        ] {
            assert_eq!(model(before, lacks_h), after);
        }
    }

    #[test]
    fn what_is_no_hypervisor_is_for_no_harts() {
        assert_eq!(lack_h_for(Path::new("/nowhere")), None);
        assert_eq!(lack_h_for(&checkout("Cargo.toml")), None);
    }
}
