//! The machine's one serial line: cut into lines, and each line into mark, text and meaning.
use ainori_report::{GUEST_PREFIX, MARK, PREFIX, Record, SEPARATOR};
use serde_json::{Map, Value};

/// A JSON object that a guest printed for the report.
pub type GuestResult = Map<String, Value>;

/// Cuts a stream of bytes into lines.
#[derive(Debug, Default)]
pub struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Adds bytes, and hands each line that is now complete to `each`, without its end (`\n` or `\r\n`).
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(piece);
            if let Some(line) = self.rest.strip_suffix(b"\n") {
                each(line.strip_suffix(b"\r").unwrap_or(line));
                self.rest.clear();
            }
        }
    }

    /// The beginning of a line whose end has not come yet.
    pub fn partial(&self) -> &[u8] {
        &self.rest
    }
}

/// Who a line is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The firmware, or anything else that writes without a mark.
    Unmarked,
    /// The hypervisor.
    Hypervisor,
    /// A guest, by its index in the system.
    Guest(usize),
}

/// What a line means.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// Something to read.
    Text,
    /// A record of the hypervisor.
    Record(Box<Record>),
    /// A guest's result.
    Result(GuestResult),
    /// The hypervisor has given up; the text says why.
    Panic(String),
    /// Looks like a record or a result, but can't be read; the text says why.
    Damaged(String),
}

/// Splits a line, or the beginning of one, into its source and its text. `guests` are the guests' names.
pub fn split<'a>(line: &'a [u8], guests: &[String]) -> (Source, &'a [u8]) {
    let from = |mark: &str| line.strip_prefix(mark.as_bytes())?.strip_prefix(SEPARATOR.as_bytes());
    if let Some(text) = from(MARK) {
        return (Source::Hypervisor, text);
    }
    let guest = guests.iter().enumerate().find_map(|(index, name)| Some((Source::Guest(index), from(name)?)));
    guest.unwrap_or((Source::Unmarked, line))
}

/// What a whole line means.
pub fn meaning(source: Source, text: &[u8]) -> Meaning {
    let text = String::from_utf8_lossy(text);
    let damaged = |error: serde_json::Error| Meaning::Damaged(format!("{error} in {text:?}"));
    match source {
        Source::Hypervisor => match (text.strip_prefix(PREFIX), text.strip_prefix("panic: ")) {
            (Some(json), _) => serde_json::from_str(json).map_or_else(damaged, Meaning::Record),
            (_, Some(why)) => Meaning::Panic(why.to_owned()),
            _ => Meaning::Text,
        },
        Source::Guest(_) => match text.strip_prefix(GUEST_PREFIX) {
            Some(json) => serde_json::from_str(json).map_or_else(damaged, Meaning::Result),
            None => Meaning::Text,
        },
        Source::Unmarked => Meaning::Text,
    }
}

/// Could this beginning of a line become a record or a result? If so it must not be shown yet.
pub fn may_be_hidden(source: Source, text: &[u8]) -> bool {
    let prefix = match source {
        Source::Hypervisor => PREFIX,
        Source::Guest(_) => GUEST_PREFIX,
        // Perhaps the mark itself is not complete.
        Source::Unmarked => return true,
    };
    text.starts_with(prefix.as_bytes()) || prefix.as_bytes().starts_with(text)
}

#[cfg(test)]
mod tests;
