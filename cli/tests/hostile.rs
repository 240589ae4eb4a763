//! The tool among things that are not as they should be: files that are none, a QEMU that is none, a full disk, readers that go away,
//! signals at any moment. It says what is wrong before it begins, ends in time, and leaves nothing behind.
mod support;

use serde_json::Value;
use std::{
    ffi::OsStr,
    fs,
    io::{Read, Write},
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};
use support::Checkout;

const VERSION: &str = "10.0.2 (Debian 1:10.0.2)";
/// Longer than anything here takes, even on a computer that is very busy.
const LONG: Duration = Duration::from_secs(60);

/// Waits for the end of a program, but not for ever.
#[track_caller]
fn end(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() > LONG {
            child.kill().unwrap();
            panic!("the tool hangs");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Exit code, stdout and stderr of a call that must not hang.
#[track_caller]
fn call<A: AsRef<OsStr>>(
    checkout: &Checkout,
    arguments: impl IntoIterator<Item = A>,
) -> (Option<i32>, String, String) {
    let mut command = checkout.ainori(&[]);
    command.args(arguments).stdin(Stdio::null());
    finish(command)
}

#[track_caller]
fn finish(mut command: Command) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| fs::File::create(folder.path().join(name)).unwrap();
    let text =
        |name: &str| String::from_utf8_lossy(&fs::read(folder.path().join(name)).unwrap()).into_owned();
    // Into files: what a pipe's other end does is not the question here.
    let mut child = command.stdout(file("out")).stderr(file("err")).spawn().unwrap();
    let status = end(&mut child);
    (status.code(), text("out"), text("err"))
}

/// A message without the places where it was folded.
fn words(message: &str) -> String {
    message.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Is the process still there? A zombie is not.
fn is_alive(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_is_no_file_holds_nothing_up() {
    let checkout = Checkout::new(1);
    let text = fs::read_to_string(checkout.path("demo.toml")).unwrap();
    make_pipe(&checkout.path("pipe"));
    for (name, what) in [("pipe", "a pipe"), (".", "a folder"), ("/dev/zero", "a device")] {
        let broken = text.replace("image = \"freertos.elf\"", &format!("image = {name:?}"));
        fs::write(checkout.path("broken.toml"), broken).unwrap();
        let (code, _, err) = call(&checkout, ["check", "broken.toml"]);
        assert_eq!(code, Some(1));
        assert!(err.contains(&format!("it is {what}, not a file")), "{err}");
        let (code, _, err) = call(&checkout, ["check", name]);
        assert_eq!(code, Some(1), "as a manifest");
        assert!(err.contains(&format!("it is {what}, not a file")), "{err}");
        let (code, _, err) = call(&checkout, ["build", "demo.toml", "-o", "x.bin", "--kernel", name]);
        assert_eq!(code, Some(2), "as a hypervisor");
        assert!(err.contains(&format!("it is {what}, not a file")), "{err}");
    }
}

#[test]
fn outputs_that_cannot_be_written_are_told_before_anything_runs() {
    let checkout = Checkout::new(1);
    checkout.fake_qemu(VERSION, "touch started; cat $recorded/good.txt");
    make_pipe(&checkout.path("pipe"));
    fs::write(checkout.path("file"), "").unwrap();
    for bad in ["no/folder/x", ".", "pipe", "file/x", "-"] {
        for arguments in [
            &["run", "demo.toml", "--json"][..],
            &["run", "demo.toml", "--trace"],
            &["trace", "demo.toml", "-o"],
            &["build", "demo.toml", "-o"],
            &["check", "demo.toml", "--json"],
        ] {
            let (code, out, err) = call(&checkout, arguments.iter().chain([&bad]));
            assert_eq!((code, &*out), (Some(2), ""), "{arguments:?} {bad}: {err}");
            assert!(err.contains(&format!("{bad} can't be written: ")), "{err}");
        }
    }
    let (code, _, err) = call(&checkout, ["run", "demo.toml", "--record-dir", "file/x"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("file/x can't be made: "), "{err}");
    assert!(!checkout.path("started").exists(), "QEMU was not started");
}

/// Who mixes two names up loses nothing: no input is overwritten, and no output by another.
#[test]
fn no_output_is_an_input_or_another_output() {
    let checkout = Checkout::new(2);
    checkout.fake_qemu(VERSION, "touch started; cat $recorded/good.txt");
    checkout
        .change_manifest(|text| text.replace("image = \"Image\"", "image = \"Image\"\ninitrd = \"disk\""));
    fs::write(checkout.path("disk"), "a disk").unwrap();
    fs::write(checkout.path("keys"), "exit\n").unwrap();
    fs::write(checkout.path("wrong.toml"), "nam = \"x\"\n[[guest]]\nimage = \"disk\"\n").unwrap();
    fs::create_dir(checkout.path("kept")).unwrap();
    fs::copy(checkout.path("Image"), checkout.path("kept/image.bin")).unwrap();
    let kept =
        fs::read_to_string(checkout.path("demo.toml")).unwrap().replace("\"Image\"", "\"kept/image.bin\"");
    fs::write(checkout.path("kept.toml"), kept).unwrap();
    std::os::unix::fs::symlink("demo.toml", checkout.path("link")).unwrap();
    let inputs =
        ["demo.toml", "Image", "disk", "freertos.elf", "kernel.elf", "keys", "wrong.toml", "kept/image.bin"];
    let contents = || inputs.map(|name| fs::read(checkout.path(name)).unwrap());
    let before = contents();
    for arguments in [
        &["check", "demo.toml", "--json", "demo.toml"][..],
        &["check", "demo.toml", "--json", "link"],
        &["check", "demo.toml", "--json", "Image"],
        &["check", "wrong.toml", "--json", "disk"],
        &["build", "demo.toml", "-o", "demo.toml"],
        &["build", "demo.toml", "-o", "freertos.elf"],
        &["build", "demo.toml", "-o", "new", "--json", "disk"],
        &["build", "demo.toml", "-o", "kernel.elf"],
        &["build", "demo.toml", "-o", "new", "--json", "./new"],
        &["run", "demo.toml", "--json", "demo.toml"],
        &["run", "demo.toml", "--trace", "Image"],
        &["run", "demo.toml", "--json", "new", "--trace", "new"],
        &["run", "demo.toml", "--type", "keys", "--json", "keys"],
        &["run", "kept.toml", "--record-dir", "kept"],
        &["run", "demo.toml", "--record-dir", "keeps", "--trace", "keeps/serial.log"],
        &["trace", "demo.toml", "-o", "demo.toml"],
        &["trace", "demo.toml", "-o", "new", "--json", "new"],
    ] {
        let (code, out, err) = call(&checkout, arguments);
        assert_eq!((code, &*out), (Some(2), ""), "{arguments:?}: {err}");
        assert!(
            err.contains("can't be written") && err.contains("a file of its own"),
            "{arguments:?}: {err}"
        );
    }
    assert_eq!(contents(), before);
    for new in ["new", "keeps", "started"] {
        assert!(!checkout.path(new).exists(), "{new}: nothing was done");
    }
    let (code, _, err) = call(&checkout, ["run", "demo.toml", "--json", "/dev/null", "--trace", "/dev/null"]);
    assert!(code != Some(2), "of what nothing stays there may be two: {err}");
}

#[test]
fn a_full_disk_is_told_with_the_file_and_nothing_else_is_lost() {
    let checkout = Checkout::new(1);
    checkout.fake_qemu(VERSION, "cat $recorded/good.txt");
    let (code, _, err) = call(&checkout, ["run", "demo.toml", "--json", "/dev/full"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("/dev/full can't be written: No space left on device"), "{err}");

    fs::create_dir(checkout.path("kept")).unwrap();
    std::os::unix::fs::symlink("/dev/full", checkout.path("kept/serial.log")).unwrap();
    let (code, out, _) = call(&checkout, ["run", "demo.toml", "--record-dir", "kept"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("Problem: kept/serial.log can't be written: No space left on device"), "{out}");
    assert!(out.contains("periods: 5000"), "the run went on: {out}");

    for arguments in [
        &["run", "demo.toml", "--json", "report.json"][..],
        &["check", "demo.toml"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let mut command = checkout.ainori(arguments);
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(err.contains("standard output can't be written: No space left"), "{err}");
    }
    assert!(fs::read_to_string(checkout.path("report.json")).unwrap().contains("\"good\""));
}

#[test]
fn any_path_is_only_a_path() {
    let names: [&[u8]; 6] = [b"a,b", b"a b", b"-version", b"a=b,c=d", b"\xff\xfe,x", b"a'b\"c$(d)"];
    for name in names {
        let checkout = Checkout::new(1);
        let plugins = checkout.path(".cache/plugins");
        fs::create_dir_all(&plugins).unwrap();
        fs::write(plugins.join("lockstep.so"), "").unwrap();
        // As QEMU does it: two commas are one.
        checkout.fake_qemu(
            VERSION,
            "printf '%s\\n' \"$@\" > arguments
             serial=$(printf %s \"$serial\" | sed 's/,,/,/g')
             cat $recorded/good.txt > \"$serial\"
             echo 'lockstep: stuck=0 hash=1' >&2",
        );
        let folder = OsStr::from_bytes(name);
        let mut record_dir = std::ffi::OsString::from("--record-dir=");
        record_dir.push(folder);
        for clock in ["lockstep", "icount"] {
            let arguments = [
                OsStr::new("run"),
                OsStr::new("demo.toml"),
                OsStr::new("--clock"),
                OsStr::new(clock),
                &record_dir,
            ];
            let (code, out, err) = call(&checkout, arguments);
            assert_eq!(code, Some(0), "{folder:?} {clock}: {out}{err}");
            let kept = fs::read_dir(checkout.path("").join(folder)).unwrap().count();
            assert_eq!(kept, 3, "{folder:?}: image, serial log, command");
            assert!(!fs::read(checkout.path("").join(folder).join("serial.log")).unwrap().is_empty());
        }
        let arguments = fs::read(checkout.path("arguments")).unwrap();
        let mut journal = b"rrfile=".to_vec();
        name.iter().for_each(|byte| journal.extend(if *byte == b',' { b",,".to_vec() } else { vec![*byte] }));
        journal.extend(b"/replay.bin");
        assert!(arguments.windows(journal.len()).any(|part| part == journal), "{folder:?}");
    }
}

#[test]
fn a_folder_whose_name_is_no_text_has_a_report() {
    let checkout = Checkout::new(1);
    let folder = checkout.path("").join(OsStr::from_bytes(b"\xff,"));
    fs::create_dir(&folder).unwrap();
    for name in ["demo.toml", "Image", "freertos.elf"] {
        fs::copy(checkout.path(name), folder.join(name)).unwrap();
    }
    let manifest = folder.join("demo.toml");
    let (code, _, err) = call(
        &checkout,
        [OsStr::new("check"), manifest.as_os_str(), OsStr::new("--json"), OsStr::new("x.json")],
    );
    assert_eq!(code, Some(0), "{err}");
    let found: Value = serde_json::from_slice(&fs::read(checkout.path("x.json")).unwrap()).unwrap();
    assert!(found["system"]["files"][0]["image"].as_str().unwrap().ends_with("\u{fffd},/Image"), "{found}");
}

/// A program in QEMU's place for everything, its version included.
fn impostor(checkout: &Checkout, script: &str) {
    checkout.fake_qemu(VERSION, "");
    let text = format!("#!/bin/sh\n{script}\n");
    fs::write(checkout.path("script"), text).unwrap();
    let install = ["-m", "755", "script", "qemu-system-riscv64"];
    assert!(Command::new("install").args(install).current_dir(checkout.path("")).status().unwrap().success());
}

#[test]
fn a_qemu_that_is_none_is_told_in_time() {
    for (script, told) in [
        ("exec cat /dev/zero", "said something unexpected"),
        ("exec yes 'version x'", "said something unexpected: \"version x"),
        ("exit 0", "said something unexpected: \"\""),
        ("kill -9 $$", "said something unexpected: \"\""),
        ("exec yes 'version 10.0.2'", "before the machine ran"),
    ] {
        let checkout = Checkout::new(1);
        let script = script
            .replace("exec yes 'version 10.0.2'", "[ $1 = --version ] && exec yes 'version 10.0.2'; exit 0");
        impostor(&checkout, &script);
        let (code, _, err) = call(&checkout, ["run", "demo.toml", "--timeout", "30s"]);
        let err = words(&err);
        assert_eq!(code, Some(2), "{script}: {err}");
        assert!(err.contains(told), "{script}: {err}");
    }
}

/// Its version is the first thing that QEMU is asked for. A run that ends meanwhile ends as any other does.
#[test]
fn a_run_may_end_while_qemu_is_asked_for_its_version() {
    for script in ["exec sleep 600", "trap '' TERM INT; sleep 600 & sleep 600"] {
        for limit in ["1ms", "500ms"] {
            let checkout = Checkout::new(1);
            impostor(&checkout, script);
            let arguments = ["run", "demo.toml", "--timeout", limit, "--json", "report.json"];
            let (code, out, err) = call(&checkout, arguments);
            assert_eq!((code, &*err), (Some(3), ""), "{script}");
            assert!(out.contains("not started") && out.contains("had not told its version"), "{out}");
            assert!(out.contains("demo: stopped at the time limit."), "{out}");
            assert_eq!(outcome(&checkout), "time-limit");
            no_guest_was_started(&checkout);
        }
    }
    for signal in ending_signals() {
        let checkout = Checkout::new(1);
        impostor(&checkout, "echo $$ >> pids; exec sleep 600");
        let mut child = started(&checkout, &["run", "demo.toml", "--json", "report.json"]);
        wait_until("QEMU is not asked", || checkout.path("pids").exists());
        let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        assert_eq!(end(&mut child).code(), Some(130), "{signal}");
        assert_eq!(outcome(&checkout), "interrupted");
        no_guest_was_started(&checkout);
        nothing_is_left(&checkout);
    }
}

/// The table says so, and the report is the same for programs.
fn no_guest_was_started(checkout: &Checkout) {
    let report: Value = serde_json::from_slice(&fs::read(checkout.path("report.json")).unwrap()).unwrap();
    for guest in report["guests"].as_array().unwrap() {
        assert_eq!((&guest["outcome"], guest.get("started")), (&"not-started".into(), None), "{guest}");
    }
    let problems = report["problems"].as_array().unwrap();
    assert!(problems.iter().any(|problem| problem.as_str().unwrap().contains("started")), "{problems:?}");
}

#[test]
fn guests_are_not_started_before_the_hypervisor_is_up() {
    let checkout = Checkout::new(2);
    checkout.fake_qemu(VERSION, "sed /Platform/q $recorded/good.txt; exec sleep 600");
    let arguments = ["run", "demo.toml", "--timeout", "1s", "--json", "report.json"];
    let (code, out, err) = call(&checkout, arguments);
    assert_eq!(code, Some(3), "{err}");
    assert!(out.contains("not started") && out.contains("Problem: the hypervisor had not told"), "{out}");
    no_guest_was_started(&checkout);
}

/// A report that was there before is of another run, and not left for this one's.
#[test]
fn a_run_that_could_not_be_started_has_a_report_of_that() {
    let checkout = Checkout::new(2);
    checkout.fake_qemu(VERSION, "echo 'no such machine' >&2; exit 1");
    let text = fs::read_to_string(checkout.path("demo.toml")).unwrap();
    fs::write(checkout.path("wrong.toml"), text.replace("priority = 10", "priorty = 10")).unwrap();
    for (system, code, problem) in [
        ("none.toml", 1, "the manifest none.toml can't be read: No such file"),
        ("wrong.toml", 1, "[[guest]] has no key `priorty`"),
        ("demo.toml", 2, "QEMU ended"),
    ] {
        fs::write(checkout.path("report.json"), "{\"outcome\":\"good\"}").unwrap();
        let (found, _, err) = call(&checkout, ["run", system, "--json", "report.json"]);
        assert_eq!(found, Some(code), "{err}");
        let report: Value = serde_json::from_slice(&fs::read(checkout.path("report.json")).unwrap()).unwrap();
        assert_eq!(report["outcome"], "not-started");
        let problems = report["problems"].as_array().unwrap();
        assert!(problems.len() == 1 && problems[0].as_str().unwrap().contains(problem), "{problems:?}");
    }
}

/// What the report says of the whole run.
fn outcome(checkout: &Checkout) -> Value {
    let report = fs::read(checkout.path("report.json")).unwrap();
    serde_json::from_slice::<Value>(&report).unwrap()["outcome"].clone()
}

#[test]
fn a_qemu_that_refuses_the_machine_is_explained() {
    let checkout = Checkout::new(1);
    checkout.change_manifest(|text| text.replace("harts = 1", "harts = 1\ncpu = \"rv64,foo=1\""));
    let said = "qemu-system-riscv64: can't apply global rv64-riscv-cpu.foo=1: Property 'rv64-riscv-cpu.foo' not found";
    checkout.fake_qemu(VERSION, &format!("echo \"{said}\" >&2; exit 1"));
    let (code, _, err) = call(&checkout, ["run", "demo.toml"]);
    let err = words(&err);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("Property 'rv64-riscv-cpu.foo' not found"), "{err}");
    assert!(err.contains("what follows the model in `cpu = \"rv64,foo=1\"` in [board]"), "{err}");
    assert!(err.contains("-device rv64-riscv-cpu,help` lists what it can"), "{err}");
}

#[test]
fn what_qemu_started_does_not_hold_the_end_up() {
    let checkout = Checkout::new(1);
    // It keeps QEMU's pipes open.
    checkout.fake_qemu(VERSION, "sleep 600 & echo $! > pid; cat $recorded/good.txt");
    let (code, out, _) = call(&checkout, ["run", "demo.toml"]);
    assert_eq!(code, Some(0), "{out}");
    let pid = fs::read_to_string(checkout.path("pid")).unwrap();
    wait_until("QEMU's child is left", || !is_alive(&pid));
}

#[test]
fn rubbish_without_end_is_bounded_by_the_time_limit() {
    for script in [
        "exec cat /dev/zero",
        "exec cat /dev/zero >&2",
        "exec yes",
        "yes | tr -d '\\n'",
        "yes 'linux| @result {' ",
    ] {
        let checkout = Checkout::new(1);
        checkout.fake_qemu(VERSION, script);
        let mut child = checkout
            .ainori(&["run", "demo.toml", "--quiet", "--timeout", "1s", "--json", "report.json"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert_eq!(end(&mut child).code(), Some(3), "{script}");
        let report = fs::read(checkout.path("report.json")).unwrap();
        // NULs are six characters each in JSON: a whole megabyte of them took a busy computer a minute to write and to show.
        assert!(report.len() < 1 << 20, "{script}: {} bytes", report.len());
        let report: Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["outcome"], "time-limit");
        assert!(report["problems"].as_array().unwrap().len() < 120, "{script}");
    }
}

#[test]
fn time_limits_have_the_units_of_manifests() {
    let checkout = Checkout::new(1);
    checkout.fake_qemu(VERSION, "echo x; exec sleep 600");
    for limit in ["1", "1s", "1000ms", "1000000us"] {
        let (code, out, err) = call(&checkout, ["run", "demo.toml", "--timeout", limit]);
        assert_eq!(code, Some(3), "{limit}: {out}{err}");
    }
    for (limit, told) in [
        ("0", "zero"),
        ("0s", "zero"),
        ("-1", "expected number at 0; for example 40s"),
        ("-1s", "expected number at 0; for example 40s"),
        ("5 parsecs", "parsecs"),
        ("", "for example 40s"),
    ] {
        for arguments in [vec!["--timeout", limit], vec![&format!("--timeout={limit}")]] {
            let (code, _, err) = call(&checkout, [&["run", "demo.toml"], &arguments[..]].concat());
            assert_eq!(code, Some(2));
            assert!(err.contains(told), "{limit}: {err}");
        }
    }
}

#[test]
fn a_time_limit_shows_what_is_known_and_says_what_is_not() {
    let checkout = Checkout::new(2);
    checkout.fake_qemu(VERSION, "sed '/@result.*periods/q' $recorded/good.txt; exec sleep 600");
    let (code, out, _) =
        call(&checkout, ["run", "demo.toml", "--quiet", "--timeout", "2s", "--json", "report.json"]);
    assert_eq!(code, Some(3));
    for text in [
        "Last lines of freertos:",
        "periods: 5000",
        "running, silent for ",
        "The hypervisor tells what it counted at its end, to which it did not come",
        "demo: stopped at the time limit.",
    ] {
        assert!(out.contains(text), "{text:?} is missing in {out}");
    }
    let report: Value = serde_json::from_slice(&fs::read(checkout.path("report.json")).unwrap()).unwrap();
    assert_eq!(report["guests"][1]["results"][0]["periods"], 5000);
    assert!(report["host"]["silent"]["freertos"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!(report["end"], Value::Null);
}

#[test]
fn a_guest_that_ends_no_line_is_not_silent() {
    let checkout = Checkout::new(2);
    checkout.fake_qemu(
        VERSION,
        "sed '/@record/q' $recorded/good.txt; printf 'freertos| on and on'; exec sleep 600",
    );
    let (code, out, _) =
        call(&checkout, ["run", "demo.toml", "--quiet", "--timeout", "2s", "--json", "report.json"]);
    assert_eq!(code, Some(3));
    assert!(out.contains("on and on") && out.contains("running, silent for "), "{out}");
    let report: Value = serde_json::from_slice(&fs::read(checkout.path("report.json")).unwrap()).unwrap();
    assert!(report["host"]["silent"]["freertos"].as_f64().is_some(), "{report}");
}

/// A guest with a prompt, in the words of the hypervisor.
const SHELL: &str = r#"printf 'ainori| up\r\n'
while printf 'linux| ~ # ' && read line; do
    printf '%s\r\nlinux| you said %s\r\n' "$line" "$line" | tr '\r' '!' | tr '!' '\r'
    case $line in exit*) cat $recorded/good.txt; exit ;; esac
done"#;

#[test]
fn piped_input_is_typed_at_prompts_and_its_end_ends_nothing() {
    let checkout = Checkout::new(2);
    // A line ends with the carriage return of the Enter key.
    checkout.fake_qemu(
        VERSION,
        &format!("tr '\\r' '\\n' | {{ {SHELL}\n }}").replace("tr '\\r'", "stdbuf -o0 tr '\\r'"),
    );
    let mut child = checkout
        .ainori(&["run", "demo.toml", "--timeout", "50s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo\nexit").unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(end(&mut child).code(), Some(0), "{out}");
    for line in ["you said one", "you said two", "you said exit"] {
        assert!(out.contains(line), "{line:?} is missing in {out}");
    }
    let at = |text: &str| out.find(text).unwrap();
    assert!(at("you said one") < at("# two") || at("you said one") < at("you said two"), "{out}");

    fs::write(checkout.path("script.txt"), "three\nexit\nnever\n").unwrap();
    let (code, out, _) = call(&checkout, ["run", "demo.toml", "--timeout", "50s", "--type", "script.txt"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(
        out.contains("you said three") && out.contains("Problem: a line of the input was not typed"),
        "{out}"
    );
}

/// A guest that is started again boots: what it would be typed meanwhile would be lost.
#[test]
fn lines_wait_for_the_next_life_and_are_not_typed_to_nobody() {
    let checkout = Checkout::new(2);
    let booting = r#"cat <<END
ainori| @record {"record":"stopped","guest":"linux","vcpu":0,"life":1,"reason":"reboot","next":"restart","time":1000,"fault":null}
ainori| @record {"record":"restarted","guest":"linux","life":2,"time":2000}
END
    timeout 3 cat > lost;"#;
    let shell = SHELL.replace("case $line in", &format!("case $line in reboot*) {booting} ;;"));
    checkout.fake_qemu(VERSION, &format!("stdbuf -o0 tr '\\r' '\\n' | {{ {shell}\n }}"));
    fs::write(checkout.path("script.txt"), "reboot\nafter\nexit\n").unwrap();
    let (_, out, _) = call(&checkout, ["run", "demo.toml", "--timeout", "50s", "--type", "script.txt"]);
    assert_eq!(fs::read_to_string(checkout.path("lost")).unwrap(), "", "{out}");
    assert!(out.contains("you said after") && out.contains("you said exit"), "{out}");
}

#[test]
fn input_that_cannot_be_typed_is_told() {
    let checkout = Checkout::new(1);
    checkout.fake_qemu(VERSION, "touch started");
    let (code, _, err) = call(&checkout, ["run", "demo.toml", "--type", "none"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("none can't be read"), "{err}");
    let (code, _, err) = call(&checkout, ["run", "demo.toml", "--type", "demo.toml", "--clock", "icount"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("typing needs the host's clock"), "{err}");
    assert!(!checkout.path("started").exists());
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let checkout = Checkout::new(1);
    checkout.fake_qemu(VERSION, "echo $$ > pid; while :; do echo 'linux| x'; echo 'ainori| x'; done");
    let mut child = checkout
        .ainori(&["run", "demo.toml"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 4];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap(); // and then it is closed
    let status = end(&mut child);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((status.code(), &*err), (Some(130), ""));
    assert!(!is_alive(&fs::read_to_string(checkout.path("pid")).unwrap()));

    checkout.fake_qemu(VERSION, "cat $recorded/good.txt; sleep 1; cat $recorded/good.txt");
    let arguments = ["run", "demo.toml", "--json", "report.json"];
    let mut child = checkout.ainori(&arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(end(&mut child).code(), Some(0), "somebody wants the report");
    assert!(checkout.path("report.json").exists());
}

/// Where a run could leave something: its own temporary folder.
fn started(checkout: &Checkout, arguments: &[&str]) -> Child {
    fs::create_dir_all(checkout.path("tmp")).unwrap();
    let mut command = checkout.ainori(arguments);
    command
        .env("TMPDIR", checkout.path("tmp"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

#[track_caller]
fn nothing_is_left(checkout: &Checkout) {
    let left: Vec<_> =
        fs::read_dir(checkout.path("tmp")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?} is left");
    let hidden = |name: &std::ffi::OsString| name.as_bytes().starts_with(b".ainori-");
    assert!(!fs::read_dir(checkout.path("")).unwrap().any(|entry| hidden(&entry.unwrap().file_name())));
    for pid in fs::read_to_string(checkout.path("pids")).unwrap_or_default().split_whitespace() {
        wait_until(&format!("process {pid} is left"), || !is_alive(pid));
    }
}

/// It tells its process and goes on for a while; sometimes it has a child, sometimes it doesn't want to end.
const BUSY: &str = "echo $$ >> pids; cat $recorded/good.txt | while read -r line; do echo \"$line\"; sleep 0.01; done; exec sleep 600";

/// Signals that end a tool which wasn't started with them ignored, as `nohup` and a shell's `&` do: it leaves these alone.
fn ending_signals() -> Vec<&'static str> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    let signals = [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)];
    signals.iter().filter(|(_, number)| ignored >> (number - 1) & 1 == 0).map(|(name, _)| *name).collect()
}

#[test]
fn nothing_is_left_behind_whenever_a_signal_comes() {
    let signals = ending_signals();
    let mut random = 0x2545_f491_4f6c_dd1du64;
    for round in 0..24 {
        let checkout = Checkout::new(1);
        checkout.fake_qemu(
            VERSION,
            if round % 8 == 6 { "echo $$ >> pids; trap '' TERM; echo x; exec sleep 600" } else { BUSY },
        );
        let clock = ["host", "icount"][round % 2];
        let mut child = started(
            &checkout,
            &["run", "demo.toml", "--clock", clock, "--json", "report.json", "--trace", "x.trace"],
        );
        // xorshift: the same moments each time, as far as there are the same moments.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Of three, one comes early, when there may not even be a handler for it.
        thread::sleep(Duration::from_millis(if round % 4 == 0 { random % 20 } else { random % 400 }));
        let signal = signals[(random >> 32) as usize % signals.len()];
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .stderr(Stdio::null())
            .status();
        assert!(sent.unwrap().success());
        let status = end(&mut child);
        // Before the tool catches signals, the signal itself ends it.
        assert!(matches!(status.code(), Some(130) | None), "{signal} in round {round}: {status}");
        nothing_is_left(&checkout);
        if let Ok(report) = fs::read_to_string(checkout.path("report.json")) {
            assert!(serde_json::from_str::<Value>(&report).unwrap()["outcome"] == "interrupted", "{report}");
        }
    }
}

#[test]
fn nothing_is_left_behind_by_a_kill() {
    for wait in [0, 30, 100, 300, 600] {
        let checkout = Checkout::new(1);
        checkout.fake_qemu(VERSION, "echo $$ >> pids; echo x; exec sleep 600");
        let mut child =
            started(&checkout, &["run", "demo.toml", "--clock", "icount", "--json", "report.json"]);
        thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        nothing_is_left(&checkout);
        assert!(!checkout.path("report.json").exists());
    }
}

#[test]
fn nohup_is_respected() {
    let checkout = Checkout::new(1);
    checkout.fake_qemu(VERSION, "echo $$ > pid; sleep 1; cat $recorded/good.txt");
    let tool = checkout.ainori(&[]);
    let mut command = Command::new("nohup");
    command
        .arg(tool.get_program())
        .args(["run", "demo.toml"])
        .current_dir(checkout.path(""))
        .stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for (key, value) in tool.get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    let mut child = command.spawn().unwrap();
    wait_until("QEMU is not started", || checkout.path("pid").exists());
    assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(end(&mut child).code(), Some(0));
}
