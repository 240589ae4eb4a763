//! What the guest prints (`guests/differ/main.c`): a sum for each program, and the records of one.
use super::Programs;
use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

/// The lines of one run, taken apart.
#[derive(Debug, Default)]
pub(super) struct Console {
    sums: BTreeMap<u64, String>,
    records: Vec<Record>,
    pub(super) traps: u64,
    /// The last line of all.
    pub(super) last: String,
}

/// Names and values of one record, as they were printed.
type Record = Vec<(String, String)>;

/// Where two machines differ.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the record within its program.
    pub record: usize,
    /// Whatever is in both: the bare hart's values, then those that the guest has otherwise.
    pub what: String,
}

impl Console {
    pub(super) fn new<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut console = Self::default();
        for line in lines {
            console.take(line.trim_end());
        }
        console
    }

    fn take(&mut self, line: &str) {
        let behind = |mark: &str| line.split_once(mark).map(|(_, rest)| rest);
        if let Some((program, sum)) = behind("@sum ").and_then(|rest| rest.split_once(' '))
            && let Ok(program) = program.parse()
        {
            self.sums.insert(program, sum.into());
        }
        if let Some((_, values)) = behind("@record ").and_then(|rest| rest.split_once(' ')) {
            let pairs = values.split(' ').filter_map(|pair| pair.split_once('='));
            self.records.push(pairs.map(|(name, value)| (name.into(), value.into())).collect());
        }
        if let Some(result) = behind("@result ")
            && let Some((_, rest)) = result.split_once("\"traps\":")
        {
            self.traps = rest.split(',').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        }
        if !line.is_empty() {
            self.last = line.into();
        }
    }

    /// Programs of both whose sums aren't the same.
    pub(super) fn differing(&self, other: &Self) -> Vec<u64> {
        let differs =
            |(program, sum): &(&u64, &String)| other.sums.get(program).is_some_and(|seen| seen != *sum);
        self.sums.iter().filter(differs).map(|(program, _)| *program).collect()
    }

    /// The first program that has no sum.
    pub(super) fn missing(&self, programs: &Programs) -> Option<u64> {
        (programs.first..programs.first + programs.count).find(|program| !self.sums.contains_key(program))
    }

    /// The first record that isn't the same.
    pub(super) fn first_difference(&self, guest: &Self) -> Option<Difference> {
        let longest = self.records.len().max(guest.records.len());
        (0..longest).find_map(|record| {
            let (bare, seen) = (self.records.get(record), guest.records.get(record));
            (bare != seen).then(|| Difference { record, what: told(bare, seen) })
        })
    }
}

/// Where it was by the bare hart, and what isn't the same.
fn told(bare: Option<&Record>, guest: Option<&Record>) -> String {
    let (Some(bare), Some(guest)) = (bare, guest) else {
        let who = if bare.is_none() { "the bare hart" } else { "the guest" };
        return format!("{who} has none");
    };
    let others: Vec<String> = bare
        .iter()
        .zip(guest)
        .filter(|(bare, guest)| bare != guest)
        .map(|((name, value), (_, seen))| format!("{name} is {seen} rather than {value}"))
        .collect();
    let places = ["cause", "pc", "value", "status", "satp"];
    let place: Vec<String> = bare
        .iter()
        .filter(|(name, _)| places.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("{}: in the guest {}", place.join(" "), others.join(", "))
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "record {}: {}", self.record, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn console(text: &str) -> Console {
        Console::new(text.lines())
    }

    #[test]
    fn the_first_difference_is_told_with_its_place() {
        let bare = console("@record 3/0 cause=2 pc=10 x1=5\n@record 3/1 cause=d pc=14 x1=5\n@sum 3 77\n");
        let guest = console(
            "differ| @record 3/0 cause=2 pc=10 x1=5\ndiffer| @record 3/1 cause=f pc=14 x1=6\ndiffer| @sum 3 78\n",
        );
        assert_eq!(bare.differing(&guest), [3]);
        let difference = bare.first_difference(&guest).expect("they differ");
        assert_eq!(difference.record, 1);
        assert_eq!(
            difference.what,
            "cause=d pc=14: in the guest cause is f rather than d, x1 is 6 rather than 5"
        );
        assert_eq!(bare.first_difference(&bare), None);
        assert!(bare.differing(&bare).is_empty());
    }

    #[test]
    fn a_run_that_ends_early_is_told() {
        let short = console("@sum 5 1\n@record 6/0 cause=2\n");
        assert_eq!(short.missing(&Programs { seed: 1, first: 5, count: 2 }), Some(6));
        assert_eq!(short.missing(&Programs { seed: 1, first: 5, count: 1 }), None);
        assert_eq!(short.last, "@record 6/0 cause=2");
        let longer = console("@record 6/0 cause=2\n@record 6/1 cause=3\n");
        assert_eq!(short.first_difference(&longer).expect("one is longer").what, "the bare hart has none");
    }

    #[test]
    fn traps_are_those_of_the_result() {
        let console =
            console("@result {\"job\":\"differ\",\"programs\":1,\"traps\":140,\"sum\":\"1\",\"ok\":true}");
        assert_eq!(console.traps, 140);
    }
}
