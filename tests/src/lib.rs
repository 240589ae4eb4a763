//! What the tests in the emulator share. They run real guests on the real hypervisor, through the command-line tool's
//! library, and look at the report that a user would get.
//!
//! | module | subject |
//! |---|---|
//! | [`system`] | a system made by a test: which guests, where, on what board |
//! | [`harts`] | with the H extension or without: what tests are run with |
//! | [`mode`](mod@mode) | ways to translate guests' addresses |
//! | [`disk`] | the same from a disk, started by a boot loader as on a board |
//! | [`outcome`] | a run that has ended, and what tests ask of it |
//! | [`symbols`] | addresses in ELF files by name |
//! | [`bounds`] | what must hold of every run, whatever guests do |
//! | [`differ`] | random programs on the bare hart and in guests, compared |
//! | [`fuzz`] | hostile guests: random ones, and dedicated attacks |
//! | [`budgets`] | how many instructions a path may have |
//! | [`paths`] | exact instruction counts of paths through hypervisor and guests |
//! | [`held`] | interrupts that are held back, counted one by one |
//! | [`random`] | random systems, and what must hold for each |
//! | [`task_sets`] | random sets of tasks: the analysis of their deadlines against runs |
//! | [`seeds`] | work that is made from seeds, some at a time |
//! | [`timeline`] | what a trace tells of a guest's vCPUs |
//! | [`version`] | which programs results are of |
//! | [`terminal`] | the tool itself on a terminal, with somebody who types |
//!
//! The hypervisor, the guests and QEMU's plugins must have been built: `make test` does it; `tools/test kernel guests` too.

pub mod bounds;
pub mod budgets;
pub mod campaign;
pub mod differ;
pub mod disk;
pub mod fuzz;
pub mod harts;
pub mod held;
pub mod mode;
pub mod operator;
pub mod outcome;
pub mod paths;
pub mod random;
pub mod seeds;
pub mod symbols;
pub mod system;
pub mod task_sets;
pub mod terminal;
pub mod timeline;
pub mod version;

pub use ainori::run::ClockChoice as Clock;
pub use outcome::Run;
pub use system::{APLIC, Guest, IMSIC, PLIC, System, TIME_LIMIT, whole_trace};

use std::path::PathBuf;

/// A file of the checkout.
pub fn checkout(relative: &str) -> PathBuf {
    let top = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    top.parent().expect("this crate is a folder of the checkout").join(relative)
}

/// Folders whose contents are not the project's own, or made by it.
const NOT_OURS: [&str; 4] = [".git", ".cache", "target", "results"];

/// All files of the checkout below `folder` whose names end with `suffix`, relative to the checkout.
pub fn files(folder: &str, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(checkout("").join(&folder)).expect("a folder of the checkout") {
            let entry = entry.expect("it can be read");
            let path = folder.join(entry.file_name());
            let is_ours = !NOT_OURS.iter().any(|name| entry.file_name() == *name);
            if entry.file_type().expect("it can be read").is_dir() {
                open.extend(is_ours.then_some(path));
            } else if path.to_string_lossy().ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The hypervisor, as `tools/build-kernel` leaves it, or another one that `AINORI_KERNEL` names.
pub fn hypervisor() -> PathBuf {
    std::env::var_os("AINORI_KERNEL").map_or_else(|| checkout(".cache/kernel/ainori.elf"), PathBuf::from)
}
