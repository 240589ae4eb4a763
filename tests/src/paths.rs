//! Exact instruction counts of paths through hypervisor and guests, by the plugin `paths.so` (see tools/qemu-plugins).
use crate::{Clock, Run, System, checkout};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

/// A path: instructions from `from` (included) to `to` (excluded), if `via` was executed in between. The latest `from` counts.
#[derive(Debug, Clone)]
pub struct Path {
    /// Its name in the counts.
    pub name: String,
    /// Where it begins.
    pub from: Place,
    /// Where it ends.
    pub to: Place,
    /// What it has to pass.
    pub via: Option<Place>,
}

/// The address of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the hypervisor: a physical address, so that no guest's virtual one is taken for it.
    Hypervisor(u64),
    /// In a guest, by the virtual address that the guest uses.
    Guest(u64),
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hypervisor(address) => write!(f, "p{address:x}"),
            Self::Guest(address) => write!(f, "{address:x}"),
        }
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "path={}:{}:{}", self.name, self.from, self.to)?;
        self.via.iter().try_for_each(|via| write!(f, ":{via}"))
    }
}

/// The lengths of a path's occurrences.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Count {
    /// The path's name.
    pub name: String,
    /// How often it was gone to its end.
    pub count: u64,
    /// (Instructions, occurrences), by rising length.
    pub histogram: Vec<(u64, u64)>,
}

impl Count {
    /// Adds up the counts of paths that mean the same, e.g. of one function that the compiler has copied.
    pub fn merge(name: &str, counts: impl Iterator<Item = Count>) -> Count {
        let mut all: BTreeMap<u64, u64> = BTreeMap::new();
        for (length, times) in counts.flat_map(|count| count.histogram) {
            *all.entry(length).or_default() += times;
        }
        Count { name: name.into(), count: all.values().sum(), histogram: all.into_iter().collect() }
    }

    /// Instructions of the shortest occurrence; 0 if there is none.
    pub fn shortest(&self) -> u64 {
        self.histogram.first().map_or(0, |(length, _)| *length)
    }

    /// The most frequent length; 0 if there is none.
    pub fn typical(&self) -> u64 {
        self.histogram.iter().max_by_key(|(_, times)| times).map_or(0, |(length, _)| *length)
    }

    /// Instructions of the longest occurrence when the `except` longest ones don't count; 0 if none is left.
    pub fn longest_without(&self, except: u64) -> u64 {
        let mut passed = 0;
        let left = self.histogram.iter().rev().find(|(_, times)| {
            passed += times;
            passed > except
        });
        left.map_or(0, |(length, _)| *length)
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} times", self.name, self.count)?;
        self.histogram
            .iter()
            .try_for_each(|(length, times)| writeln!(f, "{length:>8} instructions: {times:>6} times"))
    }
}

/// Runs a system of one hart, counting.
pub fn count(system: System, paths: &[Path]) -> (Run, Vec<Count>) {
    #[derive(Deserialize)]
    struct Counts {
        paths: Vec<Count>,
    }
    let plugin = checkout(".cache/plugins/paths.so");
    let out = tempfile::NamedTempFile::new().expect("a temporary file");
    let mut argument = format!("{},out={}", plugin.display(), out.path().display());
    for path in paths {
        argument.push_str(&format!(",{path}"));
    }
    let run = system.qemu_args(["-plugin".into(), argument]).run(Clock::Icount);
    let counts = std::fs::read(out.path()).expect("the plugin's file can be read");
    match serde_json::from_slice::<Counts>(&counts) {
        Ok(counts) => (run, counts.paths),
        Err(error) => run.fail(format_args!("the plugin's counts can't be read: {error}")),
    }
}
