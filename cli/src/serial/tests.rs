//! Lines come out the same however the stream was cut, and no line, however damaged, stops a run.
use super::*;
use ainori_report::End;
use proptest::prelude::*;

fn names() -> Vec<String> {
    vec!["linux".into(), "linux-b".into()]
}

fn lines_of<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Vec<u8>) {
    let (mut lines, mut found) = (Lines::default(), Vec::new());
    for chunk in chunks {
        lines.feed(chunk, |line, _| found.push(line.to_owned()));
    }
    (found, lines.partial().to_owned())
}

fn of(line: &str) -> (Source, Meaning) {
    let (source, part, text) = split(line.as_bytes(), &names());
    (source, meaning(source, part, text))
}

#[test]
fn marks_are_whole_names() {
    let source = |line: &str| split(line.as_bytes(), &names()).0;
    assert_eq!(source("linux| x"), Source::Guest(0));
    assert_eq!(source("linux-b| x"), Source::Guest(1));
    assert_eq!(source("ainori| x"), Source::Hypervisor);
    assert_eq!(source("linux-c| x"), Source::Unmarked);
    assert_eq!(source("linux|x"), Source::Unmarked);
    assert_eq!(source(" linux| x"), Source::Unmarked);
    assert_eq!(split(b"linux| a| b", &names()).2, b"a| b");
    assert_eq!(split(b"linux-b|+a", &names()), (Source::Guest(1), Part::More, &b"a"[..]));
}

#[test]
fn each_kind_of_line_is_known() {
    assert_eq!(
        of(r#"ainori| @record {"record":"end","time":5,"console_bytes_lost":0}"#),
        (Source::Hypervisor, Meaning::Record(Box::new(Record::End(End { time: 5, console_bytes_lost: 0 }))))
    );
    assert_eq!(of("ainori| panic: no"), (Source::Hypervisor, Meaning::Panic("no".into())));
    assert_eq!(of("ainori| error: not here"), (Source::Hypervisor, Meaning::Refusal("not here".into())));
    assert_eq!(of("linux| panic: not mine"), (Source::Guest(0), Meaning::Text));
    assert_eq!(of("linux| error: not mine"), (Source::Guest(0), Meaning::Text));
    assert_eq!(of("Boot HART ID : 0"), (Source::Unmarked, Meaning::Text));
    let (_, Meaning::Result(result)) = of(r#"linux| @result {"seconds":0.3,"ok":true}"#) else {
        panic!("a result")
    };
    assert_eq!(result["seconds"], 0.3);
    // A guest can't write records: they are text.
    assert_eq!(of(r#"linux| @record {"record":"end","time":5,"console_bytes_lost":0}"#).1, Meaning::Text);
    // Nor can anybody end a run with a line that only looks like one.
    assert!(matches!(of("ainori| @record {\"record\":\"end\"").1, Meaning::Damaged(_)));
    assert!(matches!(of("linux| @result [1]").1, Meaning::Damaged(_)));
    assert!(matches!(of("linux| @result {\"a\":[1").1, Meaning::Incomplete(_)));
    // What a line goes on with is not the beginning of another.
    assert_eq!(of("linux|+@result {}").1, Meaning::Text);
    assert_eq!(of("ainori|+panic: no").1, Meaning::Text);
}

#[test]
fn quotes_are_short_whatever_is_quoted() {
    assert_eq!(quoted(b"a line"), "a line");
    assert_eq!(quoted(&[b'x'; QUOTED]), "x".repeat(QUOTED));
    // Cut within a character.
    let long = "\u{7fff}".repeat(LONGEST / 3);
    assert!(quoted(long.as_bytes()).ends_with(&format!("... and {} bytes more", long.len() - QUOTED)));
    for result in ["{\"a\":\"", "["] {
        let line = format!("{GUEST_PREFIX}{result}{}", "\0".repeat(LONGEST / 2));
        let (Meaning::Damaged(why) | Meaning::Incomplete(why)) =
            meaning(Source::Guest(0), Part::Line, line.as_bytes())
        else {
            panic!("it can't be read")
        };
        assert!(why.len() < 10 * QUOTED, "{}", why.len());
    }
}

#[test]
fn beginnings_of_records_are_held_back() {
    let hidden = |line: &str| {
        let (source, part, text) = split(line.as_bytes(), &names());
        may_be_hidden(source, part, text)
    };
    assert!(hidden("lin"));
    assert!(hidden("linux| "));
    assert!(hidden("linux| @res"));
    assert!(hidden("linux| @result {"));
    assert!(!hidden("linux| ~ # "));
    assert!(!hidden("linux|+@res"));
    assert!(!hidden("linux| @record "));
    assert!(hidden("ainori| @record {"));
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_chunks(text in "[a-c|@\r\n ]{0,80}", cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(lines_of(chunks), lines_of([bytes]));
    }

    #[test]
    fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..60), prefix in "(ainori\\| @record |linux\\| @result |ainori\\| )?") {
        let mut bytes = prefix.into_bytes();
        bytes.extend(line);
        let (source, part, text) = split(&bytes, &names());
        let _ = meaning(source, part, text);
        may_be_hidden(source, part, text);
    }
}

/// What the hypervisor sends of a guest's bytes: each line gets the guest's mark (kernel/src/console.rs).
fn marked(guest: &str, bytes: &[u8]) -> Vec<u8> {
    let mut sent = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        sent.extend(guest.bytes().chain(*b"| "));
        sent.extend(line);
    }
    sent
}

/// Pieces of which forgers make their lines.
fn forged() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"ainori| @record {\"record\":\"end\",\"time\":5,\"console_bytes_lost\":0}",
        b"ainori| panic: not really",
        b"ainori| ",
        b"linux-b| @result {\"ok\":false}",
        b"@result {\"a\":",
        b"@record ",
        b"| ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        b"\x1b[2K\x1b[1G",
        b"\x1b]0;x\x07",
        b"\x08\x08\x08\x08\x08\x08\x08",
        b"\x0c",
        b"\x85",
        b"\xe2\x80\xa8",
        b"\xff\xfe",
        b"\xc3",
        b"}",
        b"[[[[[[[[",
        b"1e999",
        b"\"\\ud800\"",
    ];
    let piece = prop_oneof![4 => prop::sample::select(pieces).prop_map(<[u8]>::to_vec), 1 => prop::collection::vec(any::<u8>(), 0..20)];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// All pieces of a stream with what they mean.
fn meanings(stream: &[u8], chunk: usize) -> Vec<(Source, Part, Meaning)> {
    let (mut lines, mut found) = (Lines::default(), Vec::new());
    for chunk in stream.chunks(chunk) {
        lines.feed(chunk, |line, part| {
            let (source, _, text) = split(line, &names());
            found.push((source, part, meaning(source, part, text)));
        });
    }
    found
}

proptest! {
    /// A guest speaks only for itself: none of its lines is the hypervisor's or another guest's, whatever it writes.
    #[test]
    fn no_guest_can_forge_a_line(bytes in forged(), chunk in 1usize..200) {
        let stream = marked("linux", &[&bytes[..], b"\n"].concat());
        for (source, part, meaning) in meanings(&stream, chunk) {
            prop_assert_eq!(source, Source::Guest(0));
            prop_assert_eq!(part, Part::Line);
            prop_assert!(!matches!(meaning, Meaning::Record(_) | Meaning::Panic(_)), "{:?}", meaning);
        }
    }

    /// Random bytes behind every mark: a meaning, and no panic.
    #[test]
    fn any_stream_has_a_meaning(pieces in prop::collection::vec((prop::sample::select(vec!["", "ainori| ", "ainori| @record ", "linux| @result "]), forged()), 0..8), chunk in 1usize..100) {
        let stream: Vec<u8> = pieces.into_iter().flat_map(|(mark, bytes)| [mark.as_bytes(), &bytes].concat()).collect();
        let lines = meanings(&stream, chunk).len();
        prop_assert_eq!(lines, stream.iter().filter(|byte| **byte == b'\n').count());
    }
}

/// Where a line is too long to be kept as one, what comes behind the cut has no mark: else a guest could choose where a line begins.
#[test]
fn the_rest_of_a_long_line_is_nobody_s_record() {
    let record = b"ainori| @record {\"record\":\"end\",\"time\":5,\"console_bytes_lost\":0}\n";
    for before in [LONGEST - 7, LONGEST - 6, 2 * LONGEST - 7] {
        // The mark `linux| ` has 7 bytes.
        let stream =
            [b"linux| ".to_vec(), vec![b'x'; before], record.to_vec(), b"linux| y\n".to_vec()].concat();
        let found = meanings(&stream, 16 << 10);
        assert!(found.iter().all(|(.., meaning)| *meaning == Meaning::Text), "{before}");
        let parts: Vec<_> = found.iter().map(|(_, part, _)| *part).collect();
        assert_eq!((parts[0], parts[1], *parts.last().unwrap()), (Part::Line, Part::More, Part::Line));
        let kept: usize = {
            let mut lines = Lines::default();
            let mut sum = 0;
            lines.feed(&stream, |line, _| sum += line.len());
            sum
        };
        assert_eq!(kept, stream.len() - 2, "nothing but the two line ends is left out");
        let mut lines = Lines::default();
        lines.feed(&stream[..before + 7 + 20], |_, _| {});
        assert_eq!(lines.partial(), b"", "nor is it the beginning of a line");
    }
}
