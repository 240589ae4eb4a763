//! How much code a policy is: lines of what is only there for policies that make some choice, and of what all policies share. LiSTEE RT's table 4 has such a row.
//!
//! A line counts if there is more on it than a comment. Tests aren't among these files.
use crate::checkout;
use ainori_sched::{Occasion, Policy};
use miette::Result;
use serde_json::{Value, json};
use std::path::Path;

/// What all policies share: the choices and what they decide, the scheduler, and where the kernel asks mechanisms.
const SHARED: [&str; 8] = [
    "crates/sched/src/level.rs",
    "crates/sched/src/lists.rs",
    "crates/sched/src/policy.rs",
    "crates/sched/src/scheduler.rs",
    "crates/sched/src/timers.rs",
    "crates/sched/src/vcpu.rs",
    "kernel/src/cpu/mechanism/mod.rs",
    "kernel/src/cpu/order.rs",
];

/// A file of a mechanism, and whether a policy makes a choice that needs it.
type Mechanism = (&'static str, fn(&Policy) -> bool);

/// All mechanisms, each with the state machines that the portable crates have of it.
const MECHANISMS: [Mechanism; 16] = [
    ("crates/handover/src/parking.rs", Policy::moves),
    ("crates/handover/src/seats.rs", Policy::keeps_apart),
    ("crates/sched/src/calendar.rs", Policy::has_windows),
    ("crates/sched/src/gangs.rs", Policy::co_schedules),
    ("crates/sched/src/spin.rs", looks_for_spins),
    ("kernel/src/cpu/mechanism/apart.rs", Policy::keeps_apart),
    ("kernel/src/cpu/mechanism/confine.rs", Policy::confines),
    ("kernel/src/cpu/mechanism/defer.rs", Policy::defers),
    ("kernel/src/cpu/mechanism/intercept.rs", |policy| policy.confines() || policy.defers()),
    ("kernel/src/cpu/mechanism/migrate.rs", Policy::moves),
    ("kernel/src/cpu/mechanism/pull.rs", Policy::moves),
    ("kernel/src/cpu/mechanism/push.rs", Policy::moves),
    ("kernel/src/cpu/mechanism/settle.rs", Policy::moves),
    ("kernel/src/cpu/mechanism/strays.rs", Policy::moves),
    ("kernel/src/cpu/mechanism/watch.rs", looks_for_spins),
    ("kernel/src/cpu/mechanism/windows.rs", Policy::has_windows),
];

fn looks_for_spins(policy: &Policy) -> bool {
    policy.pulls(Occasion::Spin)
}

/// Lines of code of a policy: `own_lines` of its mechanisms, and `shared_lines`. Counted in the checkout.
///
/// # Errors
/// If one of the files can't be read.
pub fn lines(policy: &Policy) -> Result<Value> {
    let first = SHARED[0];
    let found = checkout::find(first, "the hypervisor's source", "figures are taken in a checkout")?;
    let top = found.ancestors().nth(Path::new(first).components().count()).unwrap_or(Path::new("."));
    let own = MECHANISMS.iter().filter(|(_, needs)| needs(policy)).map(|(file, _)| *file);
    Ok(json!({ "own_lines": sum(top, own)?, "shared_lines": sum(top, SHARED)? }))
}

fn sum(top: &Path, files: impl IntoIterator<Item = &'static str>) -> Result<usize> {
    files.into_iter().map(|file| Ok(count(&String::from_utf8_lossy(&checkout::read(&top.join(file))?)))).sum()
}

fn count(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn own(preset: &str) -> u64 {
        let policy = Policy::preset(preset, 1, 1_000).unwrap();
        lines(&policy).unwrap()["own_lines"].as_u64().unwrap()
    }

    #[test]
    fn comments_and_empty_lines_are_no_code() {
        assert_eq!(count("//! What.\n\n/// Why.\nfn f() { // so\n    // and so\n}\n"), 2);
    }

    #[test]
    fn a_policy_is_what_its_choices_need() {
        assert_eq!(["spumone", "listee", "listee-rt", "partition"].map(own), [0; 4]);
        assert!(own("time-window") > 0);
        assert!(own("ainori") > own("spumone-on-demand").min(own("time-window")));
    }

    /// A mechanism that nobody has listed would be counted for no policy.
    #[test]
    fn all_mechanisms_are_known() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/src/cpu/mechanism");
        let files = checkout::list(&folder, "rs").unwrap();
        let there: BTreeSet<String> = files
            .iter()
            .map(|file| format!("kernel/src/cpu/mechanism/{}", file.file_name().unwrap().to_string_lossy()))
            .collect();
        let known = SHARED.iter().copied().chain(MECHANISMS.iter().map(|(file, _)| *file));
        let known: BTreeSet<String> =
            known.filter(|file| file.contains("/mechanism/")).map(str::to_owned).collect();
        assert_eq!(there, known);
    }
}
