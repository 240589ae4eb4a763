//! The files of a report, made from results alone: one HTML page, its charts as SVG, and the JSON that they are made of.
use super::{again::By, chart, html, pages, results::Results};
use crate::{checkout, output};
use miette::{Result, WrapErr, miette};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where the committed results are, in the checkout.
pub const COMMITTED: &str = "docs/results";

/// A report's charts as SVG, each with the name of its file: NAME-N.svg. Those without figures are left out.
pub fn charts(name: &str, results: &Results) -> Result<Vec<(String, String)>> {
    let mut charts = Vec::new();
    for (index, chart) in results.charts.iter().enumerate() {
        let svg = chart::svg(chart, &results.cases)
            .wrap_err_with(|| format!("the chart {:?} of {name}", chart.chart.title))?;
        charts.extend(svg.map(|svg| (format!("{name}-{}.svg", index + 1), svg)));
    }
    Ok(charts)
}

/// Writes NAME.html and all charts into a folder, which is made if needed. `old` says why the results are not of what is built now; empty
/// if they are. Returns the page's path.
pub fn write_page(folder: &Path, name: &str, results: &Results, old: &[String], by: By) -> Result<PathBuf> {
    make(folder)?;
    let charts = charts(name, results)?;
    for (file, svg) in &charts {
        output::write(&folder.join(file), svg.as_bytes())?;
    }
    let charts: Vec<String> = charts.into_iter().map(|(_, svg)| svg).collect();
    let page = folder.join(format!("{name}.html"));
    output::write(&page, html::report(results, &charts, old, by).as_bytes())?;
    Ok(page)
}

/// Writes NAME.json into a folder, which is made if needed.
pub fn write_json(folder: &Path, name: &str, results: &Results) -> Result<()> {
    make(folder)?;
    output::write(&folder.join(format!("{name}.json")), results.json().as_bytes())
}

/// Writes those charts into docs/results that a page shows. Returns their names.
pub fn save_charts(root: &Path, name: &str, results: &Results) -> Result<Vec<String>> {
    let shown = pages::shown_charts(root)?;
    let mut saved = Vec::new();
    for (file, svg) in charts(name, results)?.into_iter().filter(|(file, _)| shown.contains(file)) {
        output::write(&root.join(COMMITTED).join(&file), svg.as_bytes())?;
        saved.push(file);
    }
    Ok(saved)
}

/// The committed results, by name.
pub fn committed(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join(COMMITTED);
    let files = checkout::list(&folder, "json")?;
    if files.is_empty() {
        return Err(miette!(
            help = "name files, or take an experiment with `ainori bench NAME --save`",
            "there are no results in {}",
            folder.display()
        ));
    }
    Ok(files)
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| miette!("{} can't be made: {error}", folder.display()))
}

#[cfg(test)]
mod tests;
