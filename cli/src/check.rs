//! `ainori check`: a manifest's findings, or the system that it describes.
use ainori_manifest::{Findings, Manifest};
use serde::Serialize;

/// What a check found, for machines.
#[derive(Debug, Serialize)]
pub struct CheckReport<'a> {
    /// The manifest keeps all rules.
    pub ok: bool,
    /// What is wrong, in the order of lines.
    pub errors: Vec<CheckError<'a>>,
    /// The system, if all is right.
    pub system: Option<&'a Manifest>,
}

/// One thing that is wrong.
#[derive(Debug, Serialize)]
pub struct CheckError<'a> {
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
        match checked {
            Ok(manifest) => Self { ok: true, errors: Vec::new(), system: Some(manifest) },
            Err(findings) => {
                let error = |finding: &'a ainori_manifest::Finding| {
                    let (line, column) = findings.position(finding);
                    let (message, help) = (&*finding.message, finding.help.as_deref());
                    CheckError { file: &findings.file, line, column, message, help }
                };
                Self { ok: false, errors: findings.iter().map(error).collect(), system: None }
            }
        }
    }
}
