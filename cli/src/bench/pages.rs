//! Which charts of docs/results the project's pages show: only these are committed beside the results' JSON.
use crate::checkout;
use miette::Result;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// Names of the SVG files in docs/results that README.md or a page in docs/ refers to.
pub fn shown_charts(root: &Path) -> Result<BTreeSet<String>> {
    let mut shown = BTreeSet::new();
    for page in pages(root)? {
        let text = checkout::read(&page)?;
        shown.extend(charts_in(&String::from_utf8_lossy(&text)));
    }
    Ok(shown)
}

/// README.md and the pages of docs/.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = checkout::list(&root.join("docs"), "md")?;
    pages.push(root.join("README.md"));
    Ok(pages)
}

/// The charts that a text links to: `](docs/results/NAME.svg)`, `](results/NAME.svg)`.
fn charts_in(text: &str) -> impl Iterator<Item = String> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    let files = links.filter_map(|link| link.strip_prefix("docs/").unwrap_or(link).strip_prefix("results/"));
    files.filter(|file| file.ends_with(".svg")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_charts_count() {
        let text = "![a](docs/results/NAME-1.svg) [b](results/lhp.json), `results/x.svg`, [c](results/grace-2.svg#g) [d](images/y.svg)";
        assert_eq!(charts_in(text).collect::<Vec<_>>(), ["NAME-1.svg", "grace-2.svg"]);
    }
}
