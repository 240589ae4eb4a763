//! The machine's one serial line: cut into lines, and each line into mark, text and meaning.
use ainori_report::{CONTINUATION, GUEST_PREFIX, MARK, PREFIX, Record, SEPARATOR};
use serde_json::{Map, Value, error::Category};

/// A JSON object that a guest printed for the report.
pub type GuestResult = Map<String, Value>;

/// Longest line that is kept as one, in bytes: many times the longest record. A guest may write any number of bytes without a
/// line's end.
pub const LONGEST: usize = 1 << 20;

/// Longest text that is quoted in a report, in bytes: enough to recognise a line by. Twenty whole lines of each console may be 20 MiB, and
/// in JSON six times that, as many as a guest likes.
pub const QUOTED: usize = 2000;

/// What a piece of the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A line, or the first [`LONGEST`] bytes of one: its mark is at its beginning.
    Line,
    /// More of a line: of the one before, if that was too long (then it has no mark, whatever its beginning looks like), or of its source's last
    /// one, if the hypervisor had broken that to let others speak.
    More,
}

/// Cuts a stream of bytes into lines.
#[derive(Debug, Default)]
pub struct Lines {
    rest: Vec<u8>,
    /// What is in `rest` belongs to a line whose beginning has been handed on.
    is_more: bool,
}

impl Lines {
    /// Adds bytes, and hands each line that is now complete, or too long, to `each`, without its end (`\n` or `\r\n`).
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8], Part)) {
        for mut piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            while !piece.is_empty() {
                let room = LONGEST - self.rest.len();
                let (now, later) = piece.split_at(piece.len().min(room));
                self.rest.extend_from_slice(now);
                piece = later;
                let part = if self.is_more { Part::More } else { Part::Line };
                if let Some(line) = self.rest.strip_suffix(b"\n") {
                    each(line.strip_suffix(b"\r").unwrap_or(line), part);
                    self.is_more = false;
                } else if self.rest.len() == LONGEST {
                    each(&self.rest, part);
                    self.is_more = true;
                } else {
                    continue;
                }
                self.rest.clear();
            }
        }
    }

    /// The beginning of a line whose end has not come yet; empty if that is not its beginning any more.
    pub fn partial(&self) -> &[u8] {
        if self.is_more { &[] } else { &self.rest }
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
    /// The hypervisor doesn't start on this machine; the text says why.
    Refusal(String),
    /// Begins like a result, but breaks off. Perhaps the hypervisor has broken it, and the rest comes as [`Part::More`]; else it is damaged, and the
    /// text says how.
    Incomplete(String),
    /// Looks like a record or a result, but can't be read; the text says why.
    Damaged(String),
}

/// Splits a line, or the beginning of one, into its source and its text; and is that a line of its source, or more of one? `guests` are the guests'
/// names.
pub fn split<'a>(line: &'a [u8], guests: &[String]) -> (Source, Part, &'a [u8]) {
    let from = |source: Source, mark: &str| {
        let rest = line.strip_prefix(mark.as_bytes())?;
        let text = |separator: &str, part| Some((source, part, rest.strip_prefix(separator.as_bytes())?));
        text(SEPARATOR, Part::Line).or_else(|| text(CONTINUATION, Part::More))
    };
    from(Source::Hypervisor, MARK)
        .or_else(|| guests.iter().enumerate().find_map(|(index, name)| from(Source::Guest(index), name)))
        .unwrap_or((Source::Unmarked, Part::Line, line))
}

/// A text as reports quote it: what is above [`QUOTED`] bytes is only counted.
pub fn quoted(text: &[u8]) -> String {
    let (shown, rest) = text.split_at(text.len().min(QUOTED));
    let shown = String::from_utf8_lossy(shown).into_owned();
    if rest.is_empty() { shown } else { format!("{shown}... and {} bytes more", rest.len()) }
}

/// What a whole line means. More of a line is, by itself, only text.
pub fn meaning(source: Source, part: Part, text: &[u8]) -> Meaning {
    if part == Part::More {
        return Meaning::Text;
    }
    let quote = |error: serde_json::Error| format!("{error} in {:?}", quoted(text));
    let text = String::from_utf8_lossy(text);
    match source {
        Source::Hypervisor => {
            let last_words = |prefix| text.strip_prefix(prefix).map(str::to_owned);
            match text.strip_prefix(PREFIX) {
                Some(json) => serde_json::from_str(json)
                    .map_or_else(|error| Meaning::Damaged(quote(error)), Meaning::Record),
                None => (last_words("panic: ").map(Meaning::Panic))
                    .or_else(|| last_words("error: ").map(Meaning::Refusal))
                    .unwrap_or(Meaning::Text),
            }
        }
        Source::Guest(_) => match text.strip_prefix(GUEST_PREFIX) {
            Some(json) => serde_json::from_str(json).map_or_else(
                |error| match error.classify() {
                    Category::Eof => Meaning::Incomplete(quote(error)),
                    Category::Io | Category::Syntax | Category::Data => Meaning::Damaged(quote(error)),
                },
                Meaning::Result,
            ),
            None => Meaning::Text,
        },
        Source::Unmarked => Meaning::Text,
    }
}

/// Could this beginning of a line become a record or a result? If so it must not be shown yet.
pub fn may_be_hidden(source: Source, part: Part, text: &[u8]) -> bool {
    if part == Part::More {
        return false;
    }
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
