//! `ainori check`: a manifest's findings, or the system that it describes.
use crate::{
    deadlines::{Deadlines, Problem, Weight},
    image::Build,
};
use ainori_manifest::{Finding, Findings, Manifest};
use serde::Serialize;
use std::borrow::Cow;

/// What a check found, for machines.
#[derive(Debug, Serialize)]
pub struct CheckReport<'a> {
    /// The manifest keeps all rules, and no task may miss its deadline.
    pub ok: bool,
    /// What is wrong, in the order of lines.
    pub errors: Vec<Found<'a>>,
    /// What is right, but hardly meant so, in the order of lines.
    pub warnings: Vec<Found<'a>>,
    /// The system, if all is right.
    pub system: Option<&'a Manifest>,
    /// The build of the hypervisor that it needs, if all is right.
    pub build: Option<Build>,
    /// Answers for the tasks that it declares, if all is right but for them.
    pub deadlines: Option<&'a Deadlines>,
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
    pub message: String,
    /// What would be right.
    pub help: Option<Cow<'a, str>>,
}

impl<'a> CheckReport<'a> {
    /// The report of what [`Manifest::load`] returned for `file`, and of the deadlines.
    pub fn new(
        file: &'a str,
        checked: Result<&'a Manifest, &'a Findings>,
        deadlines: Option<&'a Deadlines>,
    ) -> Self {
        let findings = match checked {
            Ok(manifest) => manifest.warnings.as_deref(),
            Err(findings) => Some(findings),
        };
        let list = |warnings: bool| {
            let all =
                findings.into_iter().flat_map(|findings| findings.iter().map(move |one| (findings, one)));
            let wanted = all.filter(|(_, finding)| finding.is_warning == warnings);
            wanted.map(|(findings, finding)| Found::new(findings, finding)).collect::<Vec<_>>()
        };
        let (mut errors, mut warnings) = (list(false), list(true));
        for problem in deadlines.iter().flat_map(|deadlines| deadlines.problems()) {
            let list = if problem.weight == Weight::Error { &mut errors } else { &mut warnings };
            list.push(Found::of_task(file, problem));
        }
        let build = checked.ok().map(|manifest| Build::for_needs(manifest.needs()));
        Self { ok: errors.is_empty(), errors, warnings, system: checked.ok(), build, deadlines }
    }
}

impl<'a> Found<'a> {
    fn new(findings: &'a Findings, finding: &'a Finding) -> Self {
        let (line, column) = findings.position(finding);
        let (message, help) = (finding.message.clone(), finding.help.as_deref().map(Cow::Borrowed));
        Self { file: &findings.file, line, column, message, help }
    }

    fn of_task(file: &'a str, problem: Problem) -> Self {
        let Problem { line, message, help, .. } = problem;
        Self { file, line, column: 1, message, help: Some(help) }
    }
}
