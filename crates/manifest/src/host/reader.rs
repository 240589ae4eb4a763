//! Reads TOML values into Rust's, keeping the place of each and collecting every error instead of stopping at the first.
use super::findings::{Finding, Span};
use super::units::{self, Wrong};
use std::num::{IntErrorKind, ParseIntError};
use toml::{
    Spanned,
    de::{DeInteger, DeTable, DeValue},
};

/// A value and the place that it came from.
#[derive(Debug, Clone)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

/// A type that a TOML value can be read as.
pub trait FromToml: Sized {
    /// What is expected, for messages: "a string, e.g. \"linux\"".
    const EXPECTED: &'static str;

    /// Reads the value; adds to `findings` what is wrong with it. A plain `None` without any finding means that the
    /// type is wrong, which the caller reports.
    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self>;
}

impl FromToml for String {
    const EXPECTED: &'static str = "a string";

    fn read(value: &DeValue<'_>, _: Span, _: &mut Vec<Finding>) -> Option<Self> {
        value.as_str().map(Self::from)
    }
}

impl FromToml for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(value: &DeValue<'_>, _: Span, _: &mut Vec<Finding>) -> Option<Self> {
        value.as_bool()
    }
}

impl FromToml for u32 {
    const EXPECTED: &'static str = "a whole number, 0 or more";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let integer = value.as_integer()?;
        let number = Self::from_str_radix(integer.as_str(), integer.radix());
        unless_too_large(number, Self::MAX.into(), integer, span, findings)
    }
}

/// An address.
#[derive(Debug, Clone, Copy)]
pub struct Address(pub u64);

impl FromToml for Address {
    const EXPECTED: &'static str = "an address such as 0x80200000";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let integer = value.as_integer()?;
        let address = u64::from_str_radix(integer.as_str(), integer.radix()).map(Self);
        unless_too_large(address, u64::MAX, integer, span, findings)
    }
}

/// What is too large for its type is reported here: the type is right. Any other error is the caller's.
fn unless_too_large<T>(
    parsed: Result<T, ParseIntError>,
    most: u64,
    integer: &DeInteger<'_>,
    span: Span,
    findings: &mut Vec<Finding>,
) -> Option<T> {
    if parsed.as_ref().is_err_and(|error| *error.kind() == IntErrorKind::PosOverflow) {
        let help = format!("a number that can stand here is at most {most}");
        findings.push(Finding::at(span, format!("{integer} is too large")).help(help));
    }
    parsed.ok()
}

impl<T: FromToml> FromToml for Vec<At<T>> {
    const EXPECTED: &'static str = "a list";

    fn read(value: &DeValue<'_>, _: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let items = value.as_array()?;
        // An item that can't be read has been reported and is left out, so that the others are still checked. If there are no others, this isn't an empty list.
        let read: Vec<At<T>> =
            items.iter().filter_map(|item| read(item, "an item of the list", findings)).collect();
        (items.is_empty() || !read.is_empty()).then_some(read)
    }
}

/// Numbers of harts, and a value for each.
#[derive(Debug, Clone)]
pub struct ByHart<T>(pub Vec<(At<u32>, At<T>)>);

impl<T: FromToml> FromToml for ByHart<T> {
    const EXPECTED: &'static str = "a table of harts such as { 0 = 12 }";

    fn read(value: &DeValue<'_>, _: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let mut entries = Vec::new();
        for (key, value) in value.as_table()? {
            let (name, span) = (key.get_ref(), key.span());
            // As TOML takes two spellings for two keys, a hart has one.
            let Some(hart) = name.parse().ok().filter(|hart: &u32| hart.to_string() == **name) else {
                findings.push(
                    Finding::at(span, format!("{name:?} is not the number of a hart"))
                        .help("e.g. { 0 = 12 }"),
                );
                continue;
            };
            // One that can't be read has been reported.
            if let Some(value) = read(value, &format!("the value for hart {hart}"), findings) {
                entries.push((At { value: hart, span }, value));
            }
        }
        Some(Self(entries))
    }
}

/// A size of memory in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Size(pub u64);

impl FromToml for Size {
    const EXPECTED: &'static str = "a size such as \"512MiB\"";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let text = value.as_str()?;
        units::size(text).map(Self).map_err(|wrong| findings.push(not_read(text, wrong, span))).ok()
    }
}

/// A duration in microseconds.
#[derive(Debug, Clone, Copy)]
pub struct Micros(pub u64);

impl FromToml for Micros {
    const EXPECTED: &'static str = "a duration such as \"10ms\"";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let text = value.as_str()?;
        units::duration_us(text).map(Self).map_err(|wrong| findings.push(not_read(text, wrong, span))).ok()
    }
}

fn not_read(text: &str, wrong: Wrong, span: Span) -> Finding {
    Finding::at(span, format!("{text:?} {}", wrong.what)).help(wrong.help)
}

/// Reads one value; `what` names it in messages.
fn read<T: FromToml>(value: &Spanned<DeValue<'_>>, what: &str, findings: &mut Vec<Finding>) -> Option<At<T>> {
    let before = findings.len();
    let span = value.span();
    let result = T::read(value.get_ref(), span.clone(), findings);
    if result.is_none() && findings.len() == before {
        let kind = value.get_ref().type_str();
        let found = match value.get_ref() {
            DeValue::Integer(number) => format!("the integer {number}"),
            _ => format!("{} {kind}", if kind.starts_with(['a', 'i']) { "an" } else { "a" }),
        };
        findings.push(
            Finding::at(span.clone(), format!("{what} must be {}, not {found}", T::EXPECTED))
                .saying(format!("expected {}", T::EXPECTED)),
        );
    }
    result.map(|value| At { value, span })
}

/// A kind of table.
pub struct Kind {
    /// Its name for messages, e.g. `[board]`.
    pub name: &'static str,
    /// Where its keys stand, for who looks for them elsewhere.
    pub place: &'static str,
    /// The keys that it may have.
    pub keys: &'static [&'static str],
}

/// Keys of a table that are there, but of which nobody knows what they say: misspelt, as far as one can guess, or with a value that can't be read.
/// That they aren't as they should be has been reported; what follows from their absence would only add noise.
#[derive(Debug, Default)]
pub struct Lost(Vec<String>);

impl Lost {
    /// Is it one of them?
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|lost| lost == key)
    }

    /// This one, too.
    pub fn add(&mut self, key: &str) {
        self.0.push(key.to_owned());
    }
}

/// A table of the manifest.
pub struct Table<'a> {
    entries: &'a DeTable<'a>,
    kind: &'static Kind,
    /// Where its header, or the inline table, stands.
    pub span: Span,
    /// See [`Lost`].
    pub lost: Lost,
}

impl<'a> Table<'a> {
    /// Opens a table and reports the keys that it can't have; `all` are the kinds of tables where they may belong.
    pub fn open(
        entries: &'a DeTable<'a>,
        span: Span,
        kind: &'static Kind,
        all: &[&Kind],
        findings: &mut Vec<Finding>,
    ) -> Self {
        let Kind { name, keys, .. } = kind;
        let mut lost = Lost::default();
        for key in entries.keys().filter(|key| !keys.contains(&key.get_ref().as_ref())) {
            let found = key.get_ref();
            let homes: Vec<_> = all
                .iter()
                .filter(|kind| kind.keys.contains(&found.as_ref()))
                .map(|kind| kind.place)
                .collect();
            // A letter too many or too few is a slip, even if another table has a key of that name.
            let is_slip = |meant: &&str| {
                strsim::damerau_levenshtein(found, meant) == 1 && !entries.contains_key(*meant)
            };
            let meant = nearest(found, keys).filter(|meant| homes.is_empty() || is_slip(meant));
            let help = match (&homes[..], meant) {
                ([], _) | (_, Some(_)) => suggest(found, keys),
                _ => format!(
                    "it is a key of {}: move it there. Known here: {}",
                    homes.join(", or of "),
                    keys.join(", ")
                ),
            };
            if let Some(meant) = meant {
                lost.add(meant);
            }
            findings.push(
                Finding::at(key.span(), format!("{name} has no key `{found}`"))
                    .saying("unknown key")
                    .help(help),
            );
        }
        Self { entries, kind, span, lost }
    }

    /// Opens a value that must be a table.
    pub fn open_value(
        value: &'a Spanned<DeValue<'a>>,
        kind: &'static Kind,
        all: &[&Kind],
        findings: &mut Vec<Finding>,
    ) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(entries) => Some(Self::open(entries, value.span(), kind, all, findings)),
            other => {
                let name = kind.name;
                let message = format!("{name} must be a table, not a value of type {}", other.type_str());
                findings.push(Finding::at(value.span(), message).saying("expected a table"));
                None
            }
        }
    }

    /// The raw value of a key.
    pub fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.entries.get(key)
    }

    /// Is the key in a table below this one? Who writes it at the end of the file puts it into the last table.
    pub fn has_below(&self, key: &str) -> bool {
        let has = |value: &Spanned<DeValue<'_>>| {
            value.get_ref().as_table().is_some_and(|table| table.contains_key(key))
        };
        let list = |value: &Spanned<DeValue<'_>>| {
            value.get_ref().as_array().is_some_and(|items| items.iter().any(has))
        };
        self.entries.values().any(|value| has(value) || list(value))
    }

    /// The value of a key if it is there and can be read.
    pub fn optional<T: FromToml>(&mut self, key: &str, findings: &mut Vec<Finding>) -> Option<At<T>> {
        let value = read(self.get(key)?, &format!("`{key}`"), findings);
        if value.is_none() {
            self.lost.add(key);
        }
        value
    }

    /// Is the key missing? Not if it is only misspelt, which has been reported.
    pub fn lacks(&self, key: &str) -> bool {
        self.get(key).is_none() && !self.lost.has(key)
    }

    /// The value of a key that must be there; `example` shows how it is written.
    pub fn required<T: FromToml>(
        &mut self,
        key: &str,
        example: &str,
        findings: &mut Vec<Finding>,
    ) -> Option<At<T>> {
        if self.lacks(key) {
            findings.push(
                Finding::at(self.span.clone(), format!("{} needs the key `{key}`", self.kind.name))
                    .saying(format!("`{key}` is missing"))
                    .help(format!("e.g. {key} = {example}")),
            );
        }
        self.optional(key, findings)
    }
}

/// The nearest of some names if it is near enough for a typing error or an abbreviation.
pub fn nearest<'a>(found: &str, names: &[&'a str]) -> Option<&'a str> {
    // All names are in small letters.
    let found = &*found.to_lowercase();
    let near = |distance: usize, name: &str| {
        distance <= name.len().min(found.len()).div_ceil(3) || found.len() >= 3 && name.starts_with(found)
    };
    let names = names.iter().map(|name| (strsim::damerau_levenshtein(found, name), *name));
    names.filter(|(distance, name)| near(*distance, name)).min().map(|(_, name)| name)
}

/// The nearest of some names as [`nearest`], and in any case all names.
pub fn suggest(found: &str, names: &[&str]) -> String {
    let all = if names.is_empty() { "none".into() } else { names.join(", ") };
    match nearest(found, names) {
        Some(name) => format!("did you mean `{name}`? Known: {all}"),
        None => format!("known: {all}"),
    }
}
