//! Results that were taken once, judged by the bars and the rules of today. No run is needed: results have each sample's figures.
use super::{
    experiment::{Experiment, Form},
    judge,
    results::Results,
    table, verdict,
};
use miette::Result;
use std::{fmt::Write, path::Path};

/// Judges results again, by the experiment of that name in a folder; bars and derived figures are today's then. An error: there is no
/// such experiment any more, or it can't be read.
pub fn judge(mut results: Results, experiments: &Path) -> Result<Results> {
    let experiment = Experiment::load(&experiments.join(&results.experiment).with_extension("toml"))?;
    results.bars = judge::bars(&experiment, &results.cases, results.only.is_all())?;
    results.derived = judge::derived(&experiment, &results.cases)?;
    Ok(results)
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
