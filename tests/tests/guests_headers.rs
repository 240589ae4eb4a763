//! What programs in C decide by headers of their own (guests/common), compiled for this computer: which samples count, which pauses a channel allows, and how its queue tells of them.
use ainori_tests::checkout;
use std::{fs, process::Command};

/// What a program prints whose `main` has this body.
fn printed(headers: &[&str], body: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("main.c"), folder.path().join("main"));
    let includes: String = headers.iter().map(|header| format!("#include \"{header}\"\n")).collect();
    fs::write(&source, format!("#include <stdio.h>\n{includes}int main(void)\n{{\n{body}\n}}\n")).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-I"]).arg(checkout("guests/common"));
    let compiled = compiler.arg("-o").arg(&program).arg(&source).status();
    assert!(compiled.expect("cc, with which Rust links as well").success());
    String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap()
}

#[test]
fn the_first_samples_are_taken_but_not_counted() {
    let body = r#"
    for (uint64_t uncounted = 0; uncounted <= 4; uncounted++) {
        struct samples samples = { .uncounted = uncounted };
        printf("%d", samples_leave_some(uncounted, 4));
        for (int i = 0; i < 4; i++)
            putchar(sample_counts(&samples) ? '+' : '-');
        printf("%d\n", (int)samples.taken);
    }"#;
    // Whether any is left, each of four, and how many were taken.
    assert_eq!(printed(&["samples.h"], body), "1++++4\n1-+++4\n1--++4\n1---+4\n0----4\n");
}

#[test]
fn a_pause_is_shorter_than_the_patience_of_who_waits_and_a_number_of_ticks() {
    let body = r#"
    static const uint64_t pauses[] = { 0, 1000, 1500, 999000, 999999, 1000000, 1000500, UINT64_MAX };
    for (unsigned i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        const char *why = channel_pause_refused(pauses[i], 1000);
        printf("%s\n", why ? why : "ok");
    }"#;
    let (ticks, long) = (
        "a pause must be a number of whole ticks",
        "who has sent gives up after a second, so a pause must be shorter",
    );
    let told = printed(&["channel_pause.h"], body);
    assert_eq!(told.lines().collect::<Vec<_>>(), ["ok", "ok", ticks, "ok", ticks, long, long, long]);
}

/// So that a receiver can pause before it takes anything, and the sender know for how long it did.
#[test]
fn a_queue_says_whether_it_is_empty_and_keeps_two_ends_apart() {
    let body = r#"
    static struct channel_queue queues[2];
    struct channel_queue *one = channel_queue_of(queues, 0), *two = channel_queue_of(queues, 1);
    uint64_t item = 0;
    printf("%d", channel_is_empty(one));
    channel_put(one, 7);
    two->kept_ns += 5;
    printf("%d%d%d", channel_is_empty(one), channel_is_empty(two), (int)one->kept_ns);
    channel_take(one, &item);
    printf("%d%d", channel_is_empty(one), (int)item);"#;
    assert_eq!(printed(&["channel_queue.h"], body), "101017");
}
