//! Exact instruction counts of paths through hypervisor and guests, by the plugin `paths.so` (see tools/qemu-plugins).
use crate::{Clock, Run, System, checkout};
use serde::Deserialize;
use std::fmt::{self, Display, Formatter};

/// A path: instructions from `from` (included) to `to` (excluded), if `via` was executed in between. The latest `from` counts.
#[derive(Debug, Clone)]
pub struct Path {
    /// Its name in the counts.
    pub name: String,
    /// A place in the hypervisor.
    pub from: u64,
    /// A place in a guest, by the virtual address that the guest uses.
    pub to: u64,
    /// A place in the hypervisor.
    pub via: u64,
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // The hypervisor's addresses are physical ones (p), so that no guest's virtual address is taken for them.
        write!(f, "path={}:p{:x}:{:x}:p{:x}", self.name, self.from, self.to, self.via)
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
    pub fn merge(counts: Vec<Count>) -> Count {
        let mut all = Count { name: String::new(), count: 0, histogram: Vec::new() };
        for count in counts {
            all.name = if all.name.is_empty() { count.name } else { format!("{}+{}", all.name, count.name) };
            all.count += count.count;
            for (length, times) in count.histogram {
                match all.histogram.binary_search_by_key(&length, |(length, _)| *length) {
                    Ok(at) => all.histogram[at].1 += times,
                    Err(at) => all.histogram.insert(at, (length, times)),
                }
            }
        }
        all
    }

    /// What is left without the occurrences of a path that is a part of this one's.
    pub fn without(&self, part: &Count) -> Count {
        let times_in_part =
            |length| part.histogram.iter().find(|(l, _)| *l == length).map_or(0, |(_, times)| *times);
        let histogram: Vec<(u64, u64)> = self
            .histogram
            .iter()
            .map(|(length, times)| (*length, times.saturating_sub(times_in_part(*length))))
            .filter(|(_, times)| *times != 0)
            .collect();
        let count = histogram.iter().map(|(_, times)| times).sum();
        Count { name: format!("{} without {}", self.name, part.name), count, histogram }
    }

    /// Occurrences longer than `limit`.
    pub fn longer_than(&self, limit: u64) -> u64 {
        self.histogram.iter().filter(|(length, _)| *length > limit).map(|(_, times)| times).sum()
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
