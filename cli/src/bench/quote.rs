//! Figures in pages that people read, made from results: `ainori bench quote`.
//!
//! A page says what is to stand between two marks, which its readers don't see:
//!
//! ```text
//! <!-- quote percent lhp-500ms f=90,burn_period_us=500000: {lhp[policy=ainori].rate} / ideal -->101 % (98.6 to 104)<!-- /quote -->
//! ```
//!
//! | mark | what stands there |
//! |---|---|
//! | `value NAME [PARAMETER=VALUE,...]: EXPRESSION` | median and range over the q's, of `docs/results/NAME.json`; the expression can use its experiment's definitions |
//! | `percent NAME [...]: EXPRESSION` | the same in percent |
//! | `source NAME` | the q's, and hypervisor and date |
//! | `results` | a table of all results: how many bars fail, have no data, are undecided, hold |
//! | `bars fails`, `bars no-data`, `bars undecided` | a table of those bars; undecided ones of at least three q's |
//! | `bars doubtful` | those that fewer q's leave undecided, with a value on the wrong side of the limit |
mod marks;
mod tables;

use super::{
    again,
    experiment::{Experiment, Scalar},
    judge,
    results::Results,
    table,
    template::Values,
};
use crate::checkout;
use miette::{Result, WrapErr, miette};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A checkout's results, judged by the bars of today, by name.
pub struct Quotes {
    experiments: PathBuf,
    results: Vec<(String, Results)>,
}

impl Quotes {
    /// Reads all results of a checkout.
    pub fn load(root: &Path) -> Result<Self> {
        let experiments = root.join("experiments");
        let mut results = Vec::new();
        for path in checkout::list(&root.join("docs/results"), "json")? {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            results.push((name, again::judge(Results::load(&path)?, &experiments)?));
        }
        Ok(Self { experiments, results })
    }

    /// A page with all that stands between its marks made anew. An error: a mark that can't be read, or asks for what isn't there.
    pub fn page(&self, text: &str) -> Result<String> {
        marks::replaced(text, |mark| self.quote(mark).wrap_err_with(|| format!("the mark {mark:?}")))
    }

    fn quote(&self, mark: &str) -> Result<String> {
        let (kind, rest) = mark.split_once(' ').unwrap_or((mark, ""));
        match (kind, rest) {
            ("value", rest) => self.figure(rest, 1.0),
            ("percent", rest) => self.figure(rest, 100.0),
            ("source", name) => Ok(tables::source(self.named(name)?)),
            ("results", "") => Ok(tables::results(&self.results)),
            ("bars", "fails") => Ok(tables::failing(&self.results)),
            ("bars", "no-data") => Ok(tables::without_data(&self.results)),
            ("bars", "undecided") => Ok(tables::undecided(&self.results)),
            ("bars", "doubtful") => Ok(tables::doubtful(&self.results)),
            _ => Err(miette!(
                "it is none of: value, percent, source, results, bars fails, bars no-data, bars undecided, bars doubtful"
            )),
        }
    }

    fn named(&self, name: &str) -> Result<&Results> {
        let found = self.results.iter().find(|(own, _)| own == name);
        found.map(|(_, results)| results).ok_or_else(|| miette!("there are no results {name:?}"))
    }

    /// `NAME PARAMETER=VALUE,...: EXPRESSION`, times `scale`: `1.006 (0.986 to 1.04)`.
    fn figure(&self, text: &str, scale: f64) -> Result<String> {
        let (head, expression) =
            text.split_once(':').ok_or_else(|| miette!("there is no `: EXPRESSION` in it"))?;
        let (name, parameters) = head.split_once(' ').unwrap_or((head, ""));
        let results = self.named(name)?;
        let experiment =
            Experiment::load(&self.experiments.join(&results.experiment).with_extension("toml"))?;
        let bound = parameters.split(',').filter(|pair| !pair.trim().is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').ok_or_else(|| miette!("{pair} is not NAME=VALUE"))?;
            let value = value.trim();
            let scalar = value.parse().map_or_else(|_| Scalar::Text(value.into()), Scalar::Integer);
            Ok((name.trim().to_owned(), scalar))
        });
        let bound: Values = bound.collect::<Result<_>>()?;
        let value = judge::figure(&experiment, &results.cases, expression.trim(), &bound)?
            .ok_or_else(|| miette!("{name} doesn't have all of that"))?;
        let is_share = scale != 1.0;
        let short = |value: f64| match is_share {
            true => format!("{:.1}", value * scale),
            false => table::rounded(value, 3),
        };
        let unit = if is_share { " %" } else { "" };
        Ok(match value.min == value.max {
            true => format!("{}{unit}", short(value.median)),
            false => format!("{}{unit} ({} to {})", short(value.median), short(value.min), short(value.max)),
        })
    }
}

/// Makes pages anew, or with `check` only says which of them are not as they should be. Returns what to print, and whether all is well.
pub fn pages(root: &Path, pages: &[PathBuf], check: bool) -> Result<(String, bool)> {
    let quotes = Quotes::load(root)?;
    let mut all = pages.to_vec();
    if all.is_empty() {
        all.push(root.join("README.md"));
        all.extend(checkout::list(&root.join("docs"), "md")?);
        all.extend(checkout::list(&root.join("experiments"), "md")?);
    }
    let (mut text, mut is_well) = (String::new(), true);
    for page in &all {
        let failed = |error| miette!("{} can't be used: {error}", page.display());
        let old = fs::read_to_string(page).map_err(failed)?;
        let new = quotes.page(&old).wrap_err_with(|| page.display().to_string())?;
        if old == new {
            continue;
        }
        if check {
            is_well = false;
            text += &format!("{}: figures are not those of docs/results\n", page.display());
        } else {
            fs::write(page, new).map_err(failed)?;
            text += &format!("{}: made anew\n", page.display());
        }
    }
    Ok((text, is_well))
}

#[cfg(test)]
mod tests;
