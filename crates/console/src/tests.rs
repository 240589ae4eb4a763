//! Sources that write, and what comes out of the line.
use proptest::prelude::*;

use super::*;

/// Sources of the tests.
const SOURCES: usize = 3;
const MARKS: [&str; SOURCES] = ["a", "bb", "ccc"];
/// How old an incomplete line is when it is shown.
const PATIENCE: u64 = 10;

/// A serial line, what has come out of it so far, and the time.
struct Line {
    sources: Vec<Source>,
    multiplexer: Multiplexer<SOURCES>,
    now: u64,
    sent: Vec<u8>,
}

impl Line {
    fn new(capacity: usize) -> Self {
        Self {
            sources: MARKS.iter().map(|mark| Source::new(mark, capacity)).collect(),
            multiplexer: Multiplexer::new(),
            now: 1000,
            sent: Vec::new(),
        }
    }

    fn write(&self, source: usize, text: &str) {
        text.bytes().for_each(|byte| _ = self.sources[source].push(byte));
    }

    /// Sends a piece.
    fn piece(&mut self, patience: Option<u64>) -> Rest {
        let mut piece = [0; 16];
        let sources: Vec<&Source> = self.sources.iter().collect();
        let (length, rest) = self.multiplexer.fill(&sources, self.now, patience, &mut piece);
        self.sent.extend_from_slice(&piece[..length]);
        rest
    }

    /// Sends until there is nothing to send, but for what is incomplete.
    fn settle(&mut self) -> Rest {
        loop {
            let rest = self.piece(Some(PATIENCE));
            if rest != Rest::Now {
                return rest;
            }
        }
    }

    fn flush(&mut self) {
        while self.piece(None) == Rest::Now {}
    }

    /// What has been sent since the last time.
    fn take(&mut self) -> String {
        String::from_utf8(std::mem::take(&mut self.sent)).expect("the sources' text")
    }
}

#[test]
fn lines_take_turns() {
    let mut line = Line::new(1024);
    line.write(0, "1\n2\n3\n");
    line.write(2, "x\ny\n");
    assert_eq!(line.settle(), Rest::Nothing);
    assert_eq!(line.take(), "ccc| x\na| 1\nccc| y\na| 2\na| 3\n");
}

#[test]
fn a_prompt_is_shown_after_a_while_and_goes_on_at_once() {
    let mut line = Line::new(1024);
    line.write(0, "# ");
    assert_eq!(line.settle(), Rest::Later(1000 + PATIENCE));
    assert_eq!(line.take(), "");
    line.now += PATIENCE;
    assert_eq!(line.settle(), Rest::Nothing);
    assert_eq!(line.take(), "a| # ");
    line.write(0, "l");
    line.settle();
    assert_eq!(line.take(), "l", "an echo");
    line.write(1, "news\n");
    line.settle();
    assert_eq!(line.take(), "\nbb| news\n");
    line.write(0, "s\n");
    line.settle();
    assert_eq!(line.take(), "a|+s\n", "the rest of the line");
}

/// While one writes line after line, another's prompt is shown all the same.
#[test]
fn a_prompt_is_shown_beside_a_busy_source() {
    let mut line = Line::new(1024);
    line.write(1, "? ");
    for _ in 0..=PATIENCE {
        line.write(0, "busy\n");
        line.settle();
        line.now += 1;
    }
    assert!(line.take().contains("bb| ? \n"));
}

/// Two prompts: the first one's line is left for the second.
#[test]
fn no_open_line_hides_another() {
    let mut line = Line::new(1024);
    line.write(0, "one ");
    line.write(1, "two ");
    line.settle();
    line.now += PATIENCE;
    line.settle();
    assert_eq!(line.take(), "bb| two \na| one ");
}

/// What looks like a result in the rest of a line is none, and is seen to be none.
#[test]
fn the_rest_of_a_line_is_marked() {
    let mut line = Line::new(1024);
    line.write(0, "no ");
    line.settle();
    line.now += PATIENCE;
    line.settle();
    line.write(1, "news\n");
    line.settle();
    line.write(0, "@result {}\n@result {}\n");
    line.settle();
    assert_eq!(line.take(), "a| no \nbb| news\na|+@result {}\na| @result {}\n");
}

#[test]
fn half_a_result_is_not_shown() {
    let mut line = Line::new(1024);
    line.write(0, "@result {");
    assert_eq!(line.settle(), Rest::Nothing);
    line.now += 100 * PATIENCE;
    line.write(1, "others go on\n");
    assert_eq!(line.settle(), Rest::Nothing);
    line.write(0, "}\n");
    line.settle();
    assert_eq!(line.take(), "bb| others go on\na| @result {}\n");
    line.write(0, "@re");
    line.flush();
    assert_eq!(line.take(), "a| @re", "at the end all is shown");
    assert!(line.multiplexer.is_mid_line());
}

/// A source that never ends its line: the lines of others, and a result written bit by bit, come out whole and soon.
#[test]
fn a_line_without_an_end_makes_room() {
    let mut line = Line::new(4 * LONGEST);
    let mut result = "@result {\"ok\":true}\n".chars();
    let mut pieces = 0;
    loop {
        while line.sources[0].room() > 0 {
            line.write(0, "x");
        }
        if let Some(letter) = result.next() {
            line.write(2, &letter.to_string());
        }
        line.piece(Some(PATIENCE));
        line.now += 1;
        pieces += 1;
        assert!(pieces < 2 * LONGEST / 16, "the result has to wait for too long");
        if line.sent.ends_with(b"\nccc| @result {\"ok\":true}\n") {
            break;
        }
    }
    let text = line.take();
    let first = text.lines().next().expect("a line");
    assert!(first.starts_with("a| xxx") && first.len() >= LONGEST, "the line was broken");
}

/// Random system 500360: where there was a piece every 10 ms only, a guest that printed four bytes of a line each 10 ms kept the port for seconds.
#[test]
fn who_has_always_a_little_more_of_a_line_makes_room() {
    let mut line = Line::new(4 * LONGEST);
    line.write(0, "begun");
    line.now += PATIENCE;
    line.piece(Some(PATIENCE));
    line.now += PATIENCE;
    line.piece(Some(PATIENCE));
    line.write(1, "another\n");
    let mut pieces = 0;
    let mut sent = String::new();
    while !sent.contains("bb| another\n") {
        line.write(0, "more");
        line.piece(Some(PATIENCE));
        sent += &line.take();
        pieces += 1;
        assert!(pieces < 6, "{sent}");
    }
}

/// Alone, it isn't broken.
#[test]
fn a_long_line_alone_stays_whole() {
    let mut line = Line::new(4 * LONGEST);
    line.write(0, &"x".repeat(3 * LONGEST));
    line.write(0, "\n");
    line.settle();
    assert_eq!(line.take().matches('\n').count(), 1);
}

#[test]
fn a_full_ring_counts_what_it_loses() {
    let source = Source::new("a", 4);
    assert_eq!(source.room(), 4);
    for byte in *b"1234" {
        source.push(byte);
    }
    assert_eq!((source.room(), source.lost()), (0, 0));
    assert!(source.push(b'5'), "the reader is told");
    assert_eq!(source.lost(), 1);
}

/// At the end of a life: if the end of its last line were lost, the first line of the next life would be the rest of it.
#[test]
fn the_end_of_a_line_waits_for_room() {
    let source = Source::new("a", 4);
    assert_eq!(source.end_line(), Ok(false), "no line has begun");
    for byte in *b"1234" {
        source.push(byte);
    }
    assert_eq!((source.end_line(), source.lost()), (Err(Full), 0));
    assert_eq!(source.take(&mut [0; 2]), (2, false));
    assert_eq!((source.end_line(), source.waiting()), (Ok(true), 3));
    assert_eq!((source.end_line(), source.waiting()), (Ok(false), 3), "it has ended");
}

#[test]
fn what_is_typed_waits_for_room() {
    let (mut input, waits) = (Input::<2>::new(), InputWaits::new());
    assert!(input.push(1) && input.push(2) && !input.push(3));
    let mut passed = Vec::new();
    input.pass_on(&waits, |byte| {
        passed.is_empty() && {
            passed.push(byte);
            true
        }
    });
    assert!(waits.is_set());
    assert_eq!((passed.as_slice(), input.room()), (&[1][..], 1));
    input.pass_on(&waits, |byte| {
        passed.push(byte);
        true
    });
    assert!(!waits.is_set() && input.is_empty());
    assert_eq!(passed, [1, 2]);
}

/// What happens.
#[derive(Debug, Clone)]
enum Step {
    Write(usize, String),
    Piece,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = prop_oneof![
        "[a-z]{0,12}\n?",
        "@[a-z]{0,30}\n",
        (LONGEST - 2..2 * LONGEST).prop_map(|length| "z".repeat(length)),
    ];
    let step = prop_oneof![
        3 => (0..SOURCES, text).prop_map(|(source, text)| Step::Write(source, text)),
        4 => Just(Step::Piece),
        1 => (0..2 * PATIENCE).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    /// Each line that comes out has a mark; per mark the lines are those written, in order, none missing; and lines for programs are whole.
    #[test]
    fn all_comes_out_in_order(steps in steps()) {
        let mut line = Line::new(64 * LONGEST);
        let mut written = [const { String::new() }; SOURCES];
        for step in steps {
            match step {
                Step::Write(source, text) => {
                    line.write(source, &text);
                    written[source] += &text;
                }
                Step::Piece => _ = line.piece(Some(PATIENCE)),
                Step::Wait(time) => line.now += time,
            }
        }
        line.flush();
        let sent = line.take();
        let mut seen = [const { Vec::<String>::new() }; SOURCES];
        let mut whole = [const { Vec::new() }; SOURCES];
        for line in sent.lines() {
            let (mark, text) = line.split_once('|').expect("a mark");
            let source = MARKS.iter().position(|known| *known == mark).expect("a known mark");
            let (separator, text) = text.split_at(1);
            whole[source].push(text);
            match (separator, seen[source].last_mut()) {
                (" ", _) => seen[source].push(text.into()),
                ("+", Some(begun)) => *begun += text,
                _ => prop_assert!(false, "{}", line),
            }
        }
        for source in 0..SOURCES {
            prop_assert_eq!(&seen[source], &written[source].lines().collect::<Vec<_>>());
            prop_assert_eq!(line.sources[source].lost(), 0);
            // A line that is for a program from its first byte to its last.
            for text in written[source].split_inclusive('\n').filter_map(|text| text.strip_suffix('\n')) {
                if text.starts_with('@') && text.len() < LONGEST {
                    prop_assert!(whole[source].contains(&text), "{} of {}", text, MARKS[source]);
                }
            }
        }
    }

    /// However much others have written: a whole line is sent after one turn of each of them.
    #[test]
    fn nobody_waits_for_long(steps in steps(), flood in "[a-z\n]{0,300}") {
        let mut line = Line::new(64 * LONGEST);
        for step in steps {
            match step {
                Step::Write(2, _) => {}
                Step::Write(source, text) => line.write(source, &text),
                Step::Piece => _ = line.piece(Some(PATIENCE)),
                Step::Wait(time) => line.now += time,
            }
        }
        line.write(2, "@result\n");
        line.take();
        while !line.sent.ends_with(b"ccc| @result\n") {
            line.write(0, &flood);
            prop_assert_eq!(line.piece(Some(PATIENCE)), Rest::Now);
            prop_assert!(line.sent.len() <= SOURCES * (LONGEST + 64), "after {} bytes of others", line.sent.len());
        }
    }
}
