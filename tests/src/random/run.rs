//! Runs a described system in the emulator, in lockstep time, and judges it.
use super::{
    check::{self, Violation},
    description::Description,
    oracle,
};
use crate::{
    Clock, Run, checkout, operator,
    version::{Programs, hash},
};
use ainori::run::Options;
use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// The rule that [`Runner::twice`] checks.
pub const SAME_TWICE: &str = "the same system gives the same bytes twice";

/// What became of a system.
#[derive(Debug)]
pub struct Judgement {
    /// Everything that is wrong.
    pub violations: Vec<Violation>,
    /// The run, unless the system could not even be started.
    pub run: Option<Run>,
    /// Someone asked for the end.
    pub interrupted: bool,
}

/// How to run systems.
#[derive(Debug, Clone, Default)]
pub struct Runner {
    /// Another hypervisor than the checkout's.
    pub kernel: Option<PathBuf>,
    /// Set it to end a run early.
    pub stop: Arc<AtomicBool>,
    /// Each system runs twice, and both runs must be the same.
    pub twice: bool,
    /// Another limit of the host's time than what is [enough for a system](host_limit).
    pub host_limit: Option<Duration>,
}

impl Runner {
    /// Runs the system and judges it.
    pub fn judge(&self, system: &Description) -> Judgement {
        let run = match self.run(system) {
            Ok(run) => run,
            Err(what) => {
                let violations = vec![Violation { rule: "a generated system is valid and starts", what }];
                return Judgement { violations, run: None, interrupted: false };
            }
        };
        let mut violations = check::violations(system, &run);
        let mut interrupted = run.report.outcome == ainori::report::Outcome::Interrupted;
        if self.twice && !interrupted && run.report.end.is_some() {
            match self.run(system) {
                Ok(again) => {
                    interrupted = again.report.outcome == ainori::report::Outcome::Interrupted;
                    let same = again.serial == run.serial && again.report.clock == run.report.clock;
                    if !same && !interrupted {
                        let first = again.serial.iter().zip(&run.serial).find(|(a, b)| a != b);
                        let what = format!("{:?}, {:?}, {first:?}", run.report.clock, again.report.clock);
                        violations.push(Violation { rule: SAME_TWICE, what });
                    }
                }
                Err(what) => violations.push(Violation { rule: SAME_TWICE, what }),
            }
        }
        Judgement { violations, run: Some(run), interrupted }
    }

    fn run(&self, system: &Description) -> Result<Run, String> {
        let text = system.to_string();
        let folder =
            tempfile::Builder::new().prefix("ainori-random-").tempdir().map_err(|error| error.to_string())?;
        let manifest = folder.path().join("system.toml");
        std::fs::write(&manifest, &text).map_err(|error| error.to_string())?;
        let options = Options {
            kernel: Some(self.kernel.clone().unwrap_or_else(crate::harts::usual_hypervisor)),
            clock: Clock::Lockstep { q: system.slice },
            timeout: Some(self.host_limit.unwrap_or_else(|| host_limit(system))),
            qemu_args: vec!["-plugin".into(), operator(system).into()],
            record_dir: Some(folder.path().to_owned()),
            stop: self.stop.clone(),
            ..Options::new(manifest)
        };
        match ainori::run::run(&options) {
            Ok(report) => Ok(Run::new(report, text, folder)),
            Err(error) => Err(format!("{error:?}")),
        }
    }
}

/// Most time of the host for a run: only against an emulator that hangs, as the machine's time is limited too ([`oracle::machine_limit_ms`]). A busy host must
/// not make a system fail (one with eight busy harts needed more than the four minutes that all had).
fn host_limit(system: &Description) -> Duration {
    /// For each second of a hart. On a host of its own it took the emulator 4 in a system of eight harts, 11 for each that a guest ran.
    const SLOWEST: u64 = 20;
    let harts_ms = oracle::machine_limit_ms(system) * u64::from(system.harts);
    Duration::from_secs(240) + Duration::from_millis(harts_ms * SLOWEST)
}

/// The plugins that runs need.
pub fn plugins() -> Vec<PathBuf> {
    ["lockstep", "operator"].map(|name| checkout(&format!(".cache/plugins/{name}.so"))).into()
}

/// The version of a result: of the programs, of the system, and of how it is run. Ask before a run and after it.
pub fn version(programs: &Programs, system: &Description, twice: bool) -> std::io::Result<String> {
    Ok(format!("{}-{}", programs.version(&system.files())?, parameters(system, twice)))
}

/// All that a result depends on beside the programs, as a hash.
fn parameters(system: &Description, twice: bool) -> String {
    hash([system.to_string(), format!("{:?}", system.typing), format!("{} {twice}", system.slice)])
}

/// The plugin that types and that ends runs, with its options.
pub fn operator(system: &Description) -> String {
    operator::argument(Duration::from_millis(oracle::machine_limit_ms(system)), system.typing.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{operator::Typing, random::generate};

    /// A system that ran once was taken for one that ran twice.
    #[test]
    fn results_with_other_parameters_do_not_count() {
        let system = generate::system(1);
        let first = parameters(&system, false);
        assert_eq!(first, parameters(&system.clone(), false));
        let slower = Description { slice: system.slice + 1, ..system.clone() };
        let louder = Description {
            typing: Some(Typing { text: "x".into(), at: Duration::from_millis(1) }),
            ..system.clone()
        };
        let others = [(&system, true), (&slower, false), (&louder, false), (&generate::system(2), false)];
        for (other, twice) in others {
            assert_ne!(first, parameters(other, twice));
        }
    }

    #[test]
    fn files_are_those_of_the_manifest() {
        for system in (1..40).map(generate::system) {
            let text = system.to_string();
            let files = system.files();
            assert!(files.iter().all(|file| text.contains(&format!("{file:?}"))));
            assert_eq!(files.len(), text.matches("\nimage = ").count() + text.matches("\ninitrd = ").count());
        }
    }
}
