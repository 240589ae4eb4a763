//! Shows the consoles on one terminal: each line with its mark, each guest in its colour.
use crate::serial::{self, Meaning, Part, Source};
use ainori_report::{CONTINUATION, MARK, SEPARATOR};
use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use std::io::{self, IsTerminal, Stdout, Write};

/// What is shown while a system runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Console {
    /// Nothing.
    Quiet,
    /// The guests and the hypervisor.
    Guests,
    /// Also the firmware's banner, records and results.
    Everything,
}

/// Colours of guests, in turn. Red and yellow are left for what went wrong.
const COLOURS: [AnsiColor; 4] = [AnsiColor::Cyan, AnsiColor::Green, AnsiColor::Magenta, AnsiColor::Blue];

/// Writes lines, and the beginnings of lines where a person waits for a prompt.
pub struct Screen {
    console: Console,
    out: AutoStream<Stdout>,
    names: Vec<String>,
    width: usize,
    /// The hypervisor has spoken: what has no mark from now on is not the firmware's banner.
    started: bool,
    /// How much of the text of the line that is not complete has been shown already; `None`: not even its mark.
    shown: Option<usize>,
    interactive: bool,
    /// Nobody reads any more.
    gone: bool,
}

impl Screen {
    /// A screen on stdout. Colours are used only on a terminal, and not if NO_COLOR is set.
    pub fn new(console: Console, names: Vec<String>) -> Self {
        let width = names.iter().map(String::len).chain([MARK.len()]).max().unwrap_or_default();
        let interactive = io::stdout().is_terminal();
        Self {
            console,
            out: AutoStream::auto(io::stdout()),
            names,
            width,
            started: false,
            shown: None,
            interactive,
            gone: false,
        }
    }

    /// True if nobody will read what is shown: the pipe that it went to is closed.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Shows a whole line, or the rest of it.
    pub fn line(&mut self, source: Source, part: Part, text: &[u8], meaning: &Meaning) {
        self.started |= source == Source::Hypervisor;
        let hidden = match meaning {
            Meaning::Record(_) | Meaning::Result(_) => true,
            _ => source == Source::Unmarked && !self.started,
        };
        match self.console {
            Console::Quiet => return,
            Console::Guests if hidden => return,
            Console::Guests | Console::Everything => {}
        }
        let rest = text.get(self.shown.unwrap_or(0)..).unwrap_or_default();
        let loud = matches!(meaning, Meaning::Panic(_) | Meaning::Refusal(_) | Meaning::Damaged(_));
        self.write(source, part, rest, loud);
        self.end_line();
    }

    /// Shows the beginning of a line as far as it is surely to be shown.
    pub fn partial(&mut self, line: &[u8]) {
        if self.console == Console::Quiet || !self.interactive {
            return;
        }
        let (source, part, text) = serial::split(line, &self.names);
        // An escape sequence or a character may be cut in two here: the terminal puts them together again.
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let new = text.get(self.shown.unwrap_or(0)..).unwrap_or_default();
        if new.is_empty() || serial::may_be_hidden(source, part, text) {
            return;
        }
        self.write(source, part, new, false);
        self.shown = Some(text.len());
    }

    /// Ends a line that was shown in part.
    pub fn finish(&mut self) {
        if self.shown.is_some() {
            self.end_line();
        }
    }

    /// Writes text, before it the mark if the line is new. Errors are ignored: a terminal that is gone must not end a run
    /// whose report is wanted.
    fn write(&mut self, source: Source, part: Part, text: &[u8], loud: bool) {
        if self.shown.is_none() {
            let (mark, style) = match source {
                Source::Unmarked => ("", Style::new().dimmed()),
                Source::Hypervisor => (MARK, Style::new().bold()),
                Source::Guest(index) => (&*self.names[index], COLOURS[index % COLOURS.len()].on_default()),
            };
            let width = self.width;
            let separator = if part == Part::More { CONTINUATION } else { SEPARATOR };
            let _ = write!(self.out, "{style}{mark:>width$}{separator}{style:#}");
        }
        let style = if loud { AnsiColor::Red.on_default().bold() } else { Style::new() };
        let written = write!(self.out, "{style}")
            .and_then(|()| self.out.write_all(text))
            .and_then(|()| write!(self.out, "{style:#}"))
            .and_then(|()| self.out.flush());
        self.note(written);
    }

    fn end_line(&mut self) {
        let written = writeln!(self.out).and_then(|()| self.out.flush());
        self.note(written);
        self.shown = None;
    }

    fn note(&mut self, written: io::Result<()>) {
        self.gone |= written.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
    }
}
