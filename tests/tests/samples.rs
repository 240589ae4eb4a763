//! Which samples the guests' programs count (guests/common/samples.h): the header, compiled for this computer.
use ainori_tests::checkout;
use std::{fs, process::Command};

const PROGRAM: &str = r#"
#include <stdio.h>
#include "samples.h"

int main(void)
{
    for (uint64_t uncounted = 0; uncounted <= 4; uncounted++) {
        struct samples samples = { .uncounted = uncounted };
        printf("%d", samples_leave_some(uncounted, 4));
        for (int i = 0; i < 4; i++)
            putchar(sample_counts(&samples) ? '+' : '-');
        printf("%d\n", (int)samples.taken);
    }
}
"#;

#[test]
fn the_first_samples_are_taken_but_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("samples.c"), folder.path().join("samples"));
    fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-Werror", "-I"]).arg(checkout("guests/common"));
    let compiled = compiler.arg("-o").arg(&program).arg(&source).status();
    assert!(compiled.expect("cc, with which Rust links as well").success());
    let output = Command::new(&program).output().unwrap();
    // Whether any is left, each of four, and how many were taken.
    let wanted = "1++++4\n1-+++4\n1--++4\n1---+4\n0----4\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted);
}
