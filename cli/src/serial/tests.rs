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
    let (source, text) = split(line.as_bytes(), &names());
    (source, meaning(source, Part::Line, text))
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
    assert_eq!(split(b"linux| a| b", &names()).1, b"a| b");
}

#[test]
fn each_kind_of_line_is_known() {
    assert_eq!(
        of(r#"ainori| @record {"record":"end","time":5,"console_bytes_lost":0}"#),
        (Source::Hypervisor, Meaning::Record(Box::new(Record::End(End { time: 5, console_bytes_lost: 0 }))))
    );
    assert_eq!(of("ainori| panic: no"), (Source::Hypervisor, Meaning::Panic("no".into())));
    assert_eq!(of("linux| panic: not mine"), (Source::Guest(0), Meaning::Text));
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
}

#[test]
fn beginnings_of_records_are_held_back() {
    let hidden = |line: &str| {
        let (source, text) = split(line.as_bytes(), &names());
        may_be_hidden(source, text)
    };
    assert!(hidden("lin"));
    assert!(hidden("linux| "));
    assert!(hidden("linux| @res"));
    assert!(hidden("linux| @result {"));
    assert!(!hidden("linux| ~ # "));
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
        let (source, text) = split(&bytes, &names());
        let _ = meaning(source, Part::Line, text);
        may_be_hidden(source, text);
    }
}
