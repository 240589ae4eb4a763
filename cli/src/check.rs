//! `ainori check`: a manifest's findings, or the system that it describes.
use ainori_manifest::{Finding, Findings, Manifest};
use serde::Serialize;

/// What a check found, for machines.
#[derive(Debug, Serialize)]
pub struct CheckReport<'a> {
    /// The manifest keeps all rules.
    pub ok: bool,
    /// What is wrong, in the order of lines.
    pub errors: Vec<Found<'a>>,
    /// What is right, but hardly meant so, in the order of lines.
    pub warnings: Vec<Found<'a>>,
    /// The system, if all is right.
    pub system: Option<&'a Manifest>,
}

/// One thing that is wrong, or may be.
#[derive(Debug, Serialize)]
pub struct Found<'a> {
    /// The manifest.
    pub file: &'a str,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: &'a str,
    /// What would be right.
    pub help: Option<&'a str>,
}

impl<'a> CheckReport<'a> {
    /// The report of what [`Manifest::load`] returned.
    pub fn new(checked: Result<&'a Manifest, &'a Findings>) -> Self {
        let findings = match checked {
            Ok(manifest) => manifest.warnings.as_deref(),
            Err(findings) => Some(findings),
        };
        let list = |warnings: bool| {
            let all =
                findings.into_iter().flat_map(|findings| findings.iter().map(move |one| (findings, one)));
            let wanted = all.filter(|(_, finding)| finding.is_warning == warnings);
            wanted.map(|(findings, finding)| Found::new(findings, finding)).collect()
        };
        Self { ok: checked.is_ok(), errors: list(false), warnings: list(true), system: checked.ok() }
    }
}

impl<'a> Found<'a> {
    fn new(findings: &'a Findings, finding: &'a Finding) -> Self {
        let (line, column) = findings.position(finding);
        let (message, help) = (&*finding.message, finding.help.as_deref());
        Self { file: &findings.file, line, column, message, help }
    }
}
