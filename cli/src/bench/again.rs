//! Results that were taken once, judged by the bars and the rules of today. No run is needed: results have each sample's figures.
use super::{
    charts,
    experiment::{Experiment, Form},
    judge,
    results::Results,
    table, verdict,
};
use miette::Result;
use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

/// Judges results again, by the experiment of that name in a folder; its question, bars, derived figures and charts are today's then.
/// An error: there is no such experiment any more, or it can't be read.
pub fn judge(mut results: Results, experiments: &Path) -> Result<Results> {
    let experiment = Experiment::load(&file(&results, experiments))?;
    (results.title, results.question) = (experiment.title.clone(), experiment.question.clone());
    results.bars = judge::bars(&experiment, &results.cases, results.only.is_all())?;
    results.derived = judge::derived(&experiment, &results.cases)?;
    results.charts = charts::again(&experiment, &results.cases)?;
    Ok(results)
}

/// Whose bars and charts a page has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Those that its runs were made for.
    ItsRuns,
    /// Those of the experiment as it is now.
    Today,
    /// Those of when it was taken, as there is no such experiment any more.
    Then,
}

/// Judges results again if their experiment is still there, for a page.
pub fn for_page(results: Results, experiments: &Path) -> Result<(Results, By)> {
    match file(&results, experiments).is_file() {
        true => Ok((judge(results, experiments)?, By::Today)),
        false => Ok((results, By::Then)),
    }
}

fn file(results: &Results, experiments: &Path) -> PathBuf {
    experiments.join(&results.experiment).with_extension("toml")
}

/// Judges files of results; what to print, and the exit code: see [`verdict::code`].
pub fn show(files: &[impl AsRef<Path>], experiments: &Path) -> Result<(String, u8)> {
    let mut text = String::new();
    let mut code = 0;
    for file in files.iter().map(AsRef::as_ref) {
        let results = judge(Results::load(file)?, experiments)?;
        let form = if results.form == Form::Short { ", short form" } else { "" };
        let _ = writeln!(
            text,
            "{}: {}{form}, of {}, hypervisor {}\n",
            file.display(),
            results.experiment,
            results.date,
            results.versions.kernel
        );
        text += &table::judged(&results);
        code = match verdict::code(&results.bars) {
            own if code == 0 || own == verdict::FAILED => own,
            _ => code,
        };
    }
    Ok((text, code))
}
