//! What the checks find wrong, with the place in the manifest.
use core::{fmt, ops::Range};
use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};
use std::sync::Arc;

/// Bytes of the manifest's text.
pub type Span = Range<usize>;

/// One thing that is wrong, or may be: what, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A warning: the system can be run, but hardly does what is wanted.
    pub is_warning: bool,
    /// What is wrong, in one line.
    pub message: String,
    /// Where: the main place first, then others that matter (e.g. the other owner of a device).
    pub places: Vec<Place>,
    /// What would be right, or what to do.
    pub help: Option<String>,
}

/// A place in the manifest, and what it has to do with the finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Bytes of the text.
    pub span: Span,
    /// A few words beside the mark.
    pub text: String,
}

impl Finding {
    /// A finding at one place.
    pub fn at(span: Span, message: impl Into<String>) -> Self {
        Self::of_file(message).and(span, "here")
    }

    /// A finding about the file as a whole.
    pub fn of_file(message: impl Into<String>) -> Self {
        Self { is_warning: false, message: message.into(), places: Vec::new(), help: None }
    }

    /// Makes it a warning.
    pub fn warning(self) -> Self {
        Self { is_warning: true, ..self }
    }

    /// Adds another place.
    pub fn and(mut self, span: Span, text: impl Into<String>) -> Self {
        self.places.push(Place { span, text: text.into() });
        self
    }

    /// Says more about the main place than "here".
    pub fn saying(mut self, text: impl Into<String>) -> Self {
        if let Some(place) = self.places.first_mut() {
            place.text = text.into();
        }
        self
    }

    /// Says what would be right.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Finding {}

impl Diagnostic for Finding {
    fn severity(&self) -> Option<Severity> {
        Some(if self.is_warning { Severity::Warning } else { Severity::Error })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if self.places.is_empty() {
            return None;
        }
        Some(Box::new(self.places.iter().enumerate().map(|(index, place)| {
            let text = Some(place.text.clone());
            match index {
                0 => LabeledSpan::new_primary_with_span(text, place.span.clone()),
                _ => LabeledSpan::new_with_span(text, place.span.clone()),
            }
        })))
    }
}

/// Everything that is wrong with one manifest, or may be; never empty.
#[derive(Debug, Clone)]
pub struct Findings {
    /// Path of the manifest as the user gave it.
    pub file: String,
    source: NamedSource<Arc<str>>,
    list: Vec<Finding>,
    /// There is no text that anything could be wrong with.
    is_unread: bool,
}

impl Findings {
    /// Of a manifest that can't be read.
    pub(super) fn unread(file: &str, why: Finding) -> Self {
        Self { is_unread: true, ..Self::new(file, "", vec![why]) }
    }

    /// Sorts the findings by place.
    pub(super) fn new(file: &str, text: &str, mut list: Vec<Finding>) -> Self {
        list.sort_by_key(|finding| finding.places.first().map_or(0, |place| place.span.start));
        let source = NamedSource::new(file, Arc::from(text)).with_language("TOML");
        Self { file: file.into(), source, list, is_unread: false }
    }

    /// The findings in the order of the manifest's lines.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.list.iter()
    }

    fn count(&self, warnings: bool) -> usize {
        self.iter().filter(|finding| finding.is_warning == warnings).count()
    }

    /// Line and column, both from 1, of a finding's main place; 1, 1 for one about the whole file. The column counts
    /// characters.
    pub fn position(&self, finding: &Finding) -> (usize, usize) {
        let text: &str = self.source.inner();
        let end = finding.places.first().map_or(0, |place| place.span.start);
        let before = text.get(..end).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count, one: &str, many: &str| match count {
            0 => None,
            1 => Some(one.to_owned()),
            _ => Some(format!("{count} {many}")),
        };
        if self.is_unread {
            return write!(f, "{} can't be checked", self.file);
        }
        let errors = counted(self.count(false), "an error", "errors");
        let warnings = counted(self.count(true), "a warning", "warnings");
        let all: Vec<_> = [errors, warnings].into_iter().flatten().collect();
        write!(f, "{} has {}", self.file, all.join(" and "))
    }
}

impl core::error::Error for Findings {}

impl Diagnostic for Findings {
    fn severity(&self) -> Option<Severity> {
        Some(if self.count(false) == 0 { Severity::Warning } else { Severity::Error })
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.list.iter().map(|finding| finding as &dyn Diagnostic)))
    }
}
