//! Random programs in S- and U-mode (`guests/differ`) on the bare hart and in guests: what they see must be the same.
//!
//! The machines are made equal where a guest is promised less than the hart has ([`Machine::bare_model`]); what is left out of the programs, and why, is in `guests/differ/README.md`.
mod bare;
mod console;
mod machine;

pub use console::Difference;
pub use machine::{MACHINES, Machine};

use crate::{Clock, Guest, System};
use console::Console;

/// Programs that follow each other in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Programs {
    /// Of which they are made.
    pub seed: u64,
    /// The number of the first one.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl Programs {
    /// What the guest is told. `aloud`: the program of which each record is printed.
    fn args(&self, aloud: Option<u64>) -> String {
        let Self { seed, first, count } = self;
        let aloud = aloud.map(|program| format!(" aloud={program}")).unwrap_or_default();
        format!("seed={seed} first={first} n={count}{aloud}")
    }
}

/// What came of a comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Traps that the programs took.
    pub traps: u64,
    /// The programs that saw something else, in words.
    pub findings: Vec<String>,
}

/// Differences that are looked into: each takes two more runs.
const TOLD: usize = 3;

impl Machine {
    /// The system in which these programs run as a guest.
    pub fn system(&self, programs: &Programs, aloud: Option<u64>) -> System {
        let mut system = System::on(1).cpu(&self.model()).with(self.guest(&programs.args(aloud)));
        if self.has_neighbour {
            system = system.quantum("1ms").with(Guest::probe("fpkeep", "seed=1 ms=10000000").background());
        }
        if self.has_h { system.with_h() } else { system }
    }

    /// Runs these programs on the bare hart and in a guest, and compares what they have seen.
    pub fn compare(&self, programs: &Programs) -> Compared {
        let (bare, guest) = match self.both(programs, None) {
            Ok(both) => both,
            Err(finding) => return Compared { traps: 0, findings: vec![finding] },
        };
        let mut findings = Vec::new();
        for program in bare.differing(&guest) {
            if findings.len() == TOLD {
                findings.push(format!(
                    "{}: seed {}: program {program} and perhaps others, too",
                    self.name, programs.seed
                ));
                break;
            }
            findings.push(self.explain(programs, program));
        }
        if let Some(program) = guest.missing(programs) {
            findings.push(format!(
                "{}: seed {}: the guest ended within program {program}: {}",
                self.name, programs.seed, guest.last
            ));
        }
        Compared { traps: bare.traps, findings }
    }

    fn both(&self, programs: &Programs, aloud: Option<u64>) -> Result<(Console, Console), String> {
        let bare = bare::run(&self.bare_model(), &programs.args(aloud))?;
        if let Some(program) = bare.missing(programs) {
            let Programs { seed, .. } = programs;
            return Err(format!("seed {seed}: the bare hart ended within program {program}: {}", bare.last));
        }
        let run = self.system(programs, aloud).run(Clock::Host);
        Ok((bare, Console::new(run.serial.iter().map(String::as_str))))
    }

    /// The first record in which a program differs: of that program alone, or if that doesn't differ, behind those before it.
    fn explain(&self, programs: &Programs, program: u64) -> String {
        let Programs { seed, first, .. } = *programs;
        let begin = format!("{}: seed {seed}, program {program}", self.name);
        for first in [program, first] {
            let these = Programs { seed, first, count: program + 1 - first };
            let both = self.both(&these, Some(program));
            let difference = both.map(|(bare, guest)| bare.first_difference(&guest));
            match difference {
                Err(finding) => return format!("{begin}: {finding}"),
                Ok(None) => {}
                Ok(Some(difference)) => {
                    return format!("{begin}: {difference}\n    again: {}", self.command(&these));
                }
            }
        }
        format!("{begin}: its sums differ, but none of its records does when they are printed")
    }

    /// How to see it.
    fn command(&self, programs: &Programs) -> String {
        let Programs { seed, first, count } = programs;
        format!("tools/soak differ --machine {} --seed {seed} --first {first} --programs {count}", self.name)
    }
}
