//! Types lines that were written down beforehand: what is piped to this program, or a file.
//!
//! A guest loses what comes before its driver listens, and an interrupt's worth of typing ahead is little. So the typist does what
//! a person does: it waits for a prompt, types a line, and waits for the next. A prompt is a text without a line's end, or one with
//! a blank at its end (another guest's line may have cut it off), after which nothing more comes. Where no prompt comes, patience
//! ends some time after the guest's last words. A guest that is started again boots again: its next life is waited for as the first was, and nothing is
//! typed between two lives, or after the last one.
use std::{
    collections::VecDeque,
    io::Read,
    time::{Duration, Instant},
};

/// How long a text must stand to be a prompt.
const REST: Duration = Duration::from_millis(150);
/// How long a guest without a prompt is waited for at first in each life, and for as long as it has said nothing in it: a Linux that boots with `quiet`
/// says nothing for some time.
const FIRST_PATIENCE: Duration = Duration::from_secs(60);
/// The same for each later line to a guest that has said something.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes that are typed at once: a serial port holds 16, and the hypervisor 1024 for a guest that is slow.
const PIECE: usize = 64;
/// Longest line that is taken as one.
const LINE: usize = 4096;

/// Where the lines come from.
pub trait Source {
    /// Reads into `buffer` without waiting: `None` if there is nothing for now, 0 at the end.
    fn read(&mut self, buffer: &mut [u8]) -> Option<usize>;
}

/// A file that has been read, or anything else that has all its bytes.
impl Source for std::io::Cursor<Vec<u8>> {
    fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        Read::read(self, buffer).ok()
    }
}

impl Source for Box<dyn Source> {
    fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        (**self).read(buffer)
    }
}

/// See the module.
pub struct Typist<S> {
    source: S,
    /// Read, and not typed yet.
    ahead: VecDeque<u8>,
    /// Of these, so many are being typed.
    under_way: usize,
    ended: bool,
    /// The byte that was read last ends no line.
    unended: bool,
    /// The guest's life, from 0; `None` between two lives, and after the last one.
    life: Option<usize>,
    /// In this life.
    typed_something: bool,
    /// The guest has said something in this life.
    is_up: bool,
    /// When the guest last said something, or something was typed.
    since: Instant,
    /// The guest has said something since the last line was typed.
    heard: bool,
    /// What the guest said last looks like a prompt.
    prompt: bool,
}

impl<S: Source> Typist<S> {
    /// A typist who has heard nothing yet.
    pub fn new(source: S, now: Instant) -> Self {
        let (ended, typed_something, heard, prompt) = (false, false, false, false);
        Self {
            source,
            ahead: VecDeque::new(),
            under_way: 0,
            ended,
            unended: false,
            life: Some(0),
            typed_something,
            is_up: false,
            since: now,
            heard,
            prompt,
        }
    }

    /// The guest has said `text`: a whole line, or the part of one that has come so far.
    pub fn hear(&mut self, text: &[u8], whole: bool, now: Instant) {
        self.prompt = !text.is_empty() && (!whole || text.ends_with(b" "));
        (self.heard, self.is_up) = (true, true);
        self.since = now;
    }

    /// The guest is in this life, see [`Self::life`]. True if that is news: then what was said before, and the rest of a line, were for another life.
    pub fn lives(&mut self, life: Option<usize>, now: Instant) -> bool {
        if life == self.life {
            return false;
        }
        self.ahead.drain(..self.under_way);
        (self.life, self.since, self.under_way) = (life, now, 0);
        (self.typed_something, self.is_up) = (false, false);
        (self.heard, self.prompt) = (false, false);
        true
    }

    /// What is to be typed now; empty if nothing is.
    pub fn next(&mut self, now: Instant) -> Vec<u8> {
        self.read_ahead();
        if self.under_way == 0 && self.may_begin(now) {
            self.under_way = self.line();
            (self.heard, self.prompt) = (false, false);
        }
        let len = self.under_way.min(PIECE);
        if len == 0 {
            return Vec::new();
        }
        self.under_way -= len;
        (self.typed_something, self.since) = (true, now);
        // The Enter key sends a carriage return.
        self.ahead.drain(..len).map(|byte| if byte == b'\n' { b'\r' } else { byte }).collect()
    }

    /// Is there more than was read so far? [`Self::lines_left`] doesn't know of that.
    pub fn has_more(&mut self) -> bool {
        self.read_ahead();
        !self.ended && self.ahead.len() >= LINE
    }

    /// Lines of text that wait to be typed.
    pub fn lines_left(&self) -> usize {
        let unended = usize::from(self.ahead.back().is_some_and(|byte| *byte != b'\n'));
        self.ahead.iter().filter(|byte| **byte == b'\n').count() + unended
    }

    fn may_begin(&self, now: Instant) -> bool {
        let quiet = now.saturating_duration_since(self.since);
        let patience = if self.typed_something && self.is_up { PATIENCE } else { FIRST_PATIENCE };
        self.life.is_some() && (self.heard && self.prompt && quiet >= REST || quiet >= patience)
    }

    /// Length of the next line with its end; 0 if none is complete.
    fn line(&self) -> usize {
        let end = self.ahead.iter().take(LINE).position(|byte| *byte == b'\n');
        match end {
            Some(end) => end + 1,
            None if self.ended || self.ahead.len() >= LINE => self.ahead.len().min(LINE),
            None => 0,
        }
    }

    fn read_ahead(&mut self) {
        let mut buffer = [0; LINE];
        while !self.ended && self.ahead.len() < LINE {
            match self.source.read(&mut buffer) {
                // Nothing more comes behind the last line: that ends it as well as a line's end does.
                Some(0) => {
                    self.ended = true;
                    self.ahead.extend(self.unended.then_some(b'\n'));
                }
                Some(len) => {
                    self.unended = !matches!(buffer[len - 1], b'\n' | b'\r');
                    self.ahead.extend(&buffer[..len]);
                }
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const MS: Duration = Duration::from_millis(1);

    fn typist(text: &str) -> (Typist<Cursor<Vec<u8>>>, Instant) {
        let now = Instant::now();
        (Typist::new(Cursor::new(text.as_bytes().to_vec()), now), now)
    }

    /// A source that has nothing for now.
    struct Silent;

    impl Source for Silent {
        fn read(&mut self, _: &mut [u8]) -> Option<usize> {
            None
        }
    }

    #[test]
    fn a_line_is_typed_at_each_prompt_that_rests() {
        let (mut typist, start) = typist("uname -a\npoweroff -f");
        typist.hear(b"Linux version 6.12", true, start + 1000 * MS);
        assert!(typist.next(start + 9000 * MS).is_empty(), "no prompt yet");
        typist.hear(b"~ # ", false, start + 10_000 * MS);
        assert!(typist.next(start + 10_100 * MS).is_empty(), "perhaps more of the line comes");
        assert_eq!(typist.next(start + 10_200 * MS), b"uname -a\r");
        assert!(typist.next(start + 10_900 * MS).is_empty(), "it is the old prompt that still stands there");
        assert_eq!(typist.lines_left(), 1);
        typist.hear(b"~ # uname -a", true, start + 11_000 * MS);
        typist.hear(b"Linux", true, start + 11_000 * MS);
        assert!(typist.next(start + 11_500 * MS).is_empty());
        // Another guest's line has ended the prompt's.
        typist.hear(b"~ # ", true, start + 11_600 * MS);
        assert_eq!(typist.next(start + 11_800 * MS), b"poweroff -f\r", "the end of input ends the last line");
        assert_eq!((typist.lines_left(), typist.next(start + 99_000 * MS).len()), (0, 0));
    }

    #[test]
    fn the_last_line_is_entered_once() {
        for (text, typed) in [("a", "a\r"), ("a\n", "a\r"), ("a\r", "a\r"), ("", "")] {
            let (mut typist, start) = typist(text);
            typist.hear(b"> ", false, start);
            assert_eq!(typist.next(start + 200 * MS), typed.as_bytes(), "{text:?}");
            typist.hear(b"> ", false, start + 300 * MS);
            assert_eq!((typist.next(start + 99_000 * MS).len(), typist.lines_left()), (0, 0), "{text:?}");
        }
        // More than is read ahead: how many lines there are isn't known.
        let (mut long, start) = typist(&"true\n".repeat(LINE));
        long.hear(b"> ", false, start);
        assert_eq!(long.next(start + 200 * MS), b"true\r");
        assert!(long.has_more() && long.lines_left() < LINE);
        // One that is longer than a line may be, whose end comes last and alone.
        let (mut typist, start) = typist(&"x".repeat(LINE));
        let (mut typed, mut now) = (Vec::new(), start);
        for _ in 0..=LINE / PIECE {
            typist.hear(b"> ", false, now);
            now += 200 * MS;
            typed.extend(typist.next(now));
        }
        assert_eq!((typed.len(), typed.last()), (LINE + 1, Some(&b'\r')));
    }

    #[test]
    fn patience_with_a_guest_that_has_no_prompt_ends() {
        let (mut typist, start) = typist("a\nb\nc\n");
        assert!(typist.next(start + 59_000 * MS).is_empty());
        typist.hear(b"booted", true, start + 59_000 * MS);
        assert!(typist.next(start + 118_000 * MS).is_empty());
        assert_eq!(typist.next(start + 119_000 * MS), b"a\r");
        assert!(typist.next(start + 120_900 * MS).is_empty());
        assert_eq!(typist.next(start + 121_000 * MS), b"b\r");
    }

    /// A Linux that reboots is quiet for longer than a line is waited for.
    #[test]
    fn each_life_is_waited_for_as_the_first_was() {
        let (mut typist, start) = typist("reboot -f\nuname\npoweroff -f\n");
        typist.hear(b"~ # ", false, start);
        assert_eq!(typist.next(start + 200 * MS), b"reboot -f\r");
        typist.hear(b"~ # ", true, start + 300 * MS);
        assert!(typist.lives(None, start + 400 * MS));
        assert!(typist.next(start + 99_000 * MS).is_empty(), "nobody is there");
        assert!(typist.lives(Some(1), start + 99_000 * MS));
        assert!(!typist.lives(Some(1), start + 99_500 * MS), "it is the same life");
        assert!(typist.next(start + 158_000 * MS).is_empty(), "it may be booting silently");
        assert_eq!(typist.next(start + 159_000 * MS), b"uname\r");
        assert!(typist.lives(None, start + 159_100 * MS));
        assert!(
            typist.next(start + 300_000 * MS).is_empty() && typist.lines_left() == 1,
            "it doesn't come back"
        );
    }

    /// That one line was typed at random doesn't make a guest ready that is silent still.
    #[test]
    fn a_guest_that_has_said_nothing_in_its_life_is_waited_for_with_each_line() {
        let (mut typist, start) = typist("reboot -f\na\nb\nc\n");
        typist.hear(b"~ # ", false, start);
        assert_eq!(typist.next(start + 200 * MS), b"reboot -f\r");
        assert!(typist.lives(Some(1), start + 1000 * MS));
        assert_eq!(typist.next(start + 61_000 * MS), b"a\r");
        assert!(typist.next(start + 120_000 * MS).is_empty(), "it may be booting still");
        assert_eq!(typist.next(start + 121_000 * MS), b"b\r");
        typist.hear(b"booted", true, start + 121_500 * MS);
        assert!(typist.next(start + 123_400 * MS).is_empty());
        assert_eq!(typist.next(start + 123_500 * MS), b"c\r");
    }

    #[test]
    fn the_rest_of_a_line_is_not_for_the_next_life() {
        let (mut typist, start) = typist(&format!("{}\nnext\n", "x".repeat(100)));
        typist.hear(b"> ", false, start);
        assert_eq!(typist.next(start + 200 * MS).len(), PIECE);
        assert!(typist.lives(None, start + 201 * MS) && typist.lives(Some(1), start + 202 * MS));
        typist.hear(b"> ", false, start + 300 * MS);
        assert_eq!(typist.next(start + 500 * MS), b"next\r");
    }

    #[test]
    fn long_lines_go_in_pieces_and_an_unended_line_waits() {
        let (mut typist, start) = typist(&format!("{}\n", "x".repeat(100)));
        typist.hear(b"> ", false, start);
        assert_eq!(typist.next(start + 200 * MS).len(), PIECE);
        assert_eq!(typist.next(start + 201 * MS).len(), 101 - PIECE, "without another prompt");

        let mut silent = Typist::new(Silent, start);
        silent.ahead.extend(b"begun");
        silent.hear(b"> ", false, start);
        assert!(silent.next(start + 99_000 * MS).is_empty(), "its end may come");
    }
}
