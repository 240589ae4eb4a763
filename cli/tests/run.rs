//! `ainori run` from beginning to end, with a recorded serial line in the place of QEMU.
mod support;

use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Output, Stdio},
};
use support::Checkout;

const VERSION: &str = "10.0.2 (Debian 1:10.0.2)";

/// Runs to the end and returns exit code, stdout, stderr, and the JSON report.
fn run(checkout: &Checkout, arguments: &[&str]) -> (Option<i32>, String, String, Value) {
    let all: Vec<&str> =
        ["run", "demo.toml", "--json", "report.json"].iter().chain(arguments).copied().collect();
    let output: Output = checkout.ainori(&all).stdin(Stdio::null()).output().unwrap();
    let json = std::fs::read_to_string(checkout.path("report.json")).unwrap_or("null".into());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr), serde_json::from_str(&json).unwrap())
}

fn played(script: &str, arguments: &[&str]) -> (Option<i32>, String, String, Value) {
    let checkout = Checkout::new(2);
    checkout.fake_qemu(VERSION, script);
    run(&checkout, arguments)
}

/// Who only runs a system learns of its manifest's warnings as well.
#[test]
fn a_run_begins_with_warnings() {
    let checkout = Checkout::new(2);
    checkout.change_manifest(|text| text.replace("priority = 10", "priority = 0"));
    checkout.fake_qemu(VERSION, "cat $recorded/good.txt");
    let (code, out, err, _) = run(&checkout, &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(err.contains("take turns on hart") || err.contains("is below"), "{err}");
}

#[test]
fn a_good_run_ends_with_zero_and_tells_everything() {
    let (code, out, err, report) = played("cat $recorded/good.txt", &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("   linux| Linux 6.12"), "guests are shown: {out}");
    assert!(!out.contains("OpenSBI") && !out.contains("@re"), "banner and records are not: {out}");
    let freertos = &report["guests"][1];
    assert!(out.contains("period: 1 ms") && out.contains("delay: min 1.2 us, mean "), "{out}");
    assert!(!out.contains("buckets"), "histograms are not for people: {out}");
    assert!(out.contains("Times are the host's") && out.contains("delays and speeds mean nothing"), "{out}");
    assert!(!out.contains('\u{1b}'), "no colours where there is no terminal");

    assert_eq!(report["outcome"], "good");
    assert_eq!(report["qemu"], VERSION);
    assert_eq!(report["clock"]["mode"], "host");
    assert_eq!(report["guests"][0]["outcome"], "done");
    assert_eq!(report["guests"][0]["stopped"]["reason"], "shutdown");
    assert_eq!(freertos["results"][1]["hist"], "delay_ns");
    assert!(freertos["vcpus"][0]["exits"]["wfi"].as_u64() > Some(1000), "{freertos}");
    assert_eq!(report["cores"][0]["core"], 0, "cores are in order");
    assert!(report["end"]["time"].as_u64() > Some(0));
}

/// The cells of the only line of a table that begins with `name`.
fn row<'a>(out: &'a str, name: &str) -> Vec<&'a str> {
    let mut rows = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.find(|cells| cells.first() == Some(&name)).unwrap_or_else(|| panic!("no row {name} in {out}"))
}

#[test]
fn delays_and_irqs_off_sections_are_shown_in_microseconds() {
    let (_, out, _, report) = played("cat $recorded/good.txt", &[]);
    let vcpu = &report["guests"][1]["vcpus"][0];
    let latency = &vcpu["latency"];
    let us = |ticks: &Value| ticks.as_f64().unwrap() / 10.0; // at 10 MHz
    let mean = us(&latency["sum"]) / latency["count"].as_f64().unwrap();
    let row = row(&out, "freertos/0");
    assert_eq!(row[1], "0", "the hart: {row:?}");
    assert_eq!(row[row.len() - 4], latency["count"].to_string(), "{row:?}");
    assert_eq!(row[row.len() - 3], format!("{mean:.1}"), "{row:?}");
    assert_eq!(row[row.len() - 1], format!("{:.1}", us(&latency["max"])), "{row:?}");

    let core = &report["cores"][0];
    let line =
        out.lines().skip_while(|line| !line.starts_with("Harts")).find(|line| line.contains('%')).unwrap();
    assert!(line.contains(&format!("{:.1}", us(&core["longest_irqs_off"]))), "{line}");
    assert!(line.contains(core["longest_irqs_off_cause"].as_str().unwrap()), "{line}");
}

#[test]
fn more_and_less_can_be_shown() {
    let (_, out, _, report) = played("cat $recorded/good.txt", &["--verbose"]);
    assert!(out.contains("OpenSBI") && out.contains("@record"), "{out}");
    let exits = &report["guests"][1]["vcpus"][0]["exits"];
    assert!(
        out.contains(&format!("wfi {}, sbi-dbcn {}", exits["wfi"], exits["sbi-dbcn"])),
        "the most frequent first: {out}"
    );
    let (cost, wfi) = (&report["cores"][0]["irqs_off_total"]["wfi"], &exits["wfi"]);
    let mean = cost.as_f64().unwrap() / wfi.as_f64().unwrap() / 10.0;
    assert_eq!(
        row(&out, "wfi")[1..3],
        [wfi.to_string(), format!("{mean:.1}")],
        "mean cost of an exit: {out}"
    );
    let stack = report["cores"][0]["stack"].as_f64().unwrap() / 327.68;
    assert!(out.contains(&format!(" {stack:.1} % ")), "of 32 KiB: {out}");

    let (_, out, ..) = played("cat $recorded/good.txt", &["--quiet"]);
    assert!(!out.contains("linux| ") && out.contains("periods: 5000"), "{out}");
    assert!(!out.contains("Exits of the vCPUs"), "{out}");
}

/// On harts without H.
#[test]
fn what_the_fast_path_has_carried_out_is_no_exit() {
    let (_, usual, _, of_usual) = played("cat $recorded/good.txt", &["--verbose"]);
    let script = "sed 's/\"dispatches\"/\"fast_path\":471100,&/' $recorded/good.txt";
    let (_, out, _, report) = played(script, &["--verbose"]);
    let stats = &report["guests"][1]["vcpus"][0];
    assert_eq!(stats["fast_path"], 471_100);
    assert_eq!(stats["exits"], of_usual["guests"][1]["vcpus"][0]["exits"]);
    let of_vcpu = |out: &str| {
        let (_, exits) = out.split_once("Exits of the vCPUs.").expect("the table of exits");
        let found = row(exits, "freertos/0");
        found.into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let (without, with) = (of_vcpu(&usual), of_vcpu(&out));
    assert_eq!(with[..4], [&without[..3], &["471100".to_owned()]].concat());
    assert_eq!(with[4..], without[3..]);
    assert!(out.contains("What was carried out on the fast path is no exit."), "{out}");
    assert!(!usual.contains("fast path") && of_usual["guests"][1]["vcpus"][0].get("fast_path").is_none());
}

#[test]
fn a_reboot_is_not_a_job_done() {
    let script = "sed 's/\"linux\",\"vcpu\":0,\"life\":1,\"reason\":\"shutdown\"/\"linux\",\"vcpu\":0,\"life\":1,\"reason\":\"reboot\"/' $recorded/good.txt";
    let (code, out, _, report) = played(script, &[]);
    assert_eq!(code, Some(1));
    assert!(out.contains("failed: wanted a reboot"), "{out}");
    assert!(out.contains("it gets one if the manifest says restart = \"on-failure\""), "{out}");
    assert_eq!(report["guests"][0]["outcome"], "failed");
    assert!(out.contains("Last lines of linux:"), "{out}");
}

#[test]
fn the_manifest_says_clock_and_time_limit() {
    let checkout = Checkout::new(1);
    checkout.change_manifest(|text| text + "[run]\nclock = \"icount\"\ntime_limit = \"1s\"\n");
    checkout.fake_qemu(VERSION, "exec sleep infinity");
    let (code, out, _, report) = run(&checkout, &["--record-dir", "kept"]);
    assert_eq!((code, &report["clock"]["mode"]), (Some(3), &"icount".into()), "{out}");
    assert!(out.contains("Times are virtual: 4 ns per instruction"), "{out}");
    let command = std::fs::read_to_string(checkout.path("kept/command.txt")).unwrap();
    assert!(command.contains("\"-icount\" \"shift=2"), "{command}");

    // It can be run again, when the files of this run that have no name are gone.
    assert!(!command.contains("/proc/") && command.contains("path=kept/serial.out"), "{command}");
    let traced = ["--record-dir", "traced", "--trace", "x.perfetto-trace"];
    let _ = run(&checkout, &traced);
    let command = std::fs::read_to_string(checkout.path("traced/command.txt")).unwrap();
    assert!(!command.contains("/proc/") && command.contains("traced/image.bin"), "{command}");

    let (_, out, _, report) = run(&checkout, &["--clock", "host"]);
    assert_eq!(report["clock"]["mode"], "host", "the argument comes first: {out}");
}

#[test]
fn a_trace_that_is_not_there_is_told() {
    let script = "echo \"$@\" >&2; cat $recorded/good.txt";
    let (code, out, _, report) = played(script, &["--trace", "x.perfetto-trace"]);
    assert_eq!((code, &report["outcome"]), (Some(3), &"no-trace".into()));
    assert!(out.contains("Problem: there is no trace: no trace in these 0 bytes of memory"), "{out}");
    assert_eq!(report["trace"], Value::Null);

    let (code, out, ..) = played("head -1 $recorded/good.txt; exit 1", &["--trace", "x.perfetto-trace"]);
    assert_eq!(code, Some(3));
    assert!(out.contains("there is no trace: the hypervisor did not start"), "{out}");

    let (code, _, err, _) = played("exit", &["--trace", "x", "--trace-mask", "switch,trab"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("there is no kind \"trab\"; known: default, all, switch, trap"), "{err}");
    let (code, _, err, _) = played("exit", &["--trace", "x", "--trace-records", "1000"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("a power of two"), "{err}");
}

#[test]
fn a_window_that_is_none_is_told_before_the_run() {
    let told = |window: &[&str]| {
        let checkout = Checkout::new(1);
        checkout.fake_qemu(VERSION, "touch started");
        let all: Vec<&str> = ["trace", "demo.toml", "-o", "x"].iter().chain(window).copied().collect();
        let output = checkout.ainori(&all).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(!checkout.path("started").exists(), "QEMU was not asked");
        String::from_utf8(output.stderr).unwrap()
    };
    let err = told(&["--from", "2s", "--to", "1.5s"]);
    assert!(err.contains("--to must be later than --from"), "{err}");
    let err = told(&["--from", "2s"]);
    assert!(err.contains("--to <TIME>"), "{err}");
    let err = told(&["--from", "2 parsecs", "--to", "3"]);
    assert!(err.contains("parsecs") && err.contains("--from <TIME>"), "{err}");
    let err = told(&["--from", "-2s", "--to", "3s"]);
    assert!(err.contains("expected number at 0") && err.contains("--from <TIME>"), "{err}");
}

#[test]
fn a_fault_is_reported_and_fails_the_run() {
    let (code, out, _, report) = played("cat $recorded/fault.txt", &[]);
    assert_eq!(code, Some(1));
    let stopped = &report["guests"][0]["stopped"];
    let hexadecimal = |value: &Value| format!("{:#018x}", value.as_u64().unwrap());
    for text in [
        "Fault of linux/0: store to an address that is not the guest's",
        "cause        23 (store guest-page fault)",
        &format!("pc           {}", hexadecimal(&stopped["fault"]["pc"])),
        &format!("address      {}", hexadecimal(&stopped["fault"]["address"])),
        &format!("instruction  {:x}", stopped["fault"]["instruction"].as_u64().unwrap() & 0xffff),
        &format!("time         {:.0} ms", stopped["time"].as_f64().unwrap() / 1e4),
        &format!("sp {}", &hexadecimal(&stopped["fault"]["x"][2])[2..]),
        "vsstatus 0000000200000000",
        "Last lines of linux:",
    ] {
        assert!(out.contains(text), "{text:?} is missing in {out}");
    }
    assert!(!out.contains("Last lines of freertos"), "it did its job");
    assert_eq!(report["outcome"], "guest-failed");
    assert_eq!(report["guests"][0]["outcome"], "faulted");
    assert_eq!(report["guests"][1]["outcome"], "done");
}

#[test]
fn a_guest_in_the_background_spoils_nothing() {
    let checkout = Checkout::new(2);
    checkout
        .change_manifest(|text| text.replace("image = \"Image\"", "image = \"Image\"\nbackground = true"));
    checkout.fake_qemu(VERSION, "cat $recorded/fault.txt");
    let (code, out, ..) = run(&checkout, &[]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("faulted (background)") && out.contains("Fault of linux/0"), "{out}");
    let end = "demo: every guest that the run waits for did its job; in the background linux faulted.\n";
    assert!(out.ends_with(end), "{out}");

    // All of them did it, or the run ended before one could.
    checkout.fake_qemu(VERSION, "cat $recorded/good.txt");
    assert!(run(&checkout, &[]).1.ends_with("demo: every guest did its job.\n"));
    checkout.fake_qemu(VERSION, "grep -v '\"stopped\",\"guest\":\"linux\"' $recorded/good.txt");
    let (code, out, ..) = run(&checkout, &[]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.ends_with("demo: every guest that the run waits for did its job.\n"), "{out}");
}

/// A table for so much would take hours.
#[test]
fn a_guest_that_prints_much_does_not_hold_the_tables_up() {
    let change = r#"s/^linux| @result.*/&\n@MUCH@/"#
        .replace("@MUCH@", &format!(r#"linux| @result {{"text":"{}","ok":true}}"#, "xy ".repeat(30_000)));
    let checkout = Checkout::new(2);
    std::fs::write(checkout.path("change.sed"), change).unwrap();
    let lines = r#"awk '/^linux\| @result/ { for (i = 0; i < 100; i++) print } { print }'"#;
    let script = format!("sed -f {} $recorded/good.txt | {lines}", checkout.path("change.sed").display());
    checkout.fake_qemu(VERSION, &script);
    let (code, out, _, report) = run(&checkout, &[]);
    assert_eq!(code, Some(0));
    assert_eq!(report["guests"][0]["results"].as_array().unwrap().len(), 202, "the JSON has all of them");
    assert!(out.len() < 100_000 && out.contains("and ") && out.contains(" more"), "{} bytes", out.len());
}

/// Plays the good run, with this object as one more result of its Linux.
fn with_result(result: &str) -> String {
    let checkout = Checkout::new(2);
    std::fs::write(checkout.path("result"), format!("linux| @result {result}\n")).unwrap();
    let result = checkout.path("result");
    let script = format!("sed '/^linux| @result/r {}' $recorded/good.txt", result.display());
    checkout.fake_qemu(VERSION, &script);
    let (code, out, err, _) = run(&checkout, &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    out
}

#[test]
fn a_list_of_records_is_a_table() {
    let out = with_result(
        r#"{"job":"set","tasks":[
        {"core":0,"jobs":750,"missed":0,"worst_ns":205100,"p999_ns":150000,"max_ns":140000,"jobs_on":[750,0],"name":"a b"},
        {"jobs":1,"missed":0,"core":null,"worst_ns":4429300,"p999_ns":7,"max_ns":8,"jobs_on":[0,1],"name":"c\u001b[1md"}],
        "cpus_s":[{"x":1.5}],"ok":true}"#
            .replace('\n', "")
            .as_str(),
    );
    assert!(out.contains("tasks: 2, see below") && !out.contains('{') && !out.contains('\u{1b}'), "{out}");
    let table: Vec<Vec<&str>> = out
        .lines()
        .skip_while(|line| *line != "linux, tasks:")
        .filter(|line| !line.contains('─'))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(table[1].join(" "), "core jobs missed worst p999 max jobs on name", "{out}");
    assert_eq!(table[2].join(" "), "0 750 0 205 us 140 us 140 us 750, 0 a b", "{out}");
    assert_eq!(table[3].join(" "), "- 1 0 4.43 ms 7 ns 8 ns 0, 1 cd", "{out}");
    assert!(out.contains("\nlinux, cpus s:\n"), "{out}");
    // What is no list of records that are alike, or is none that fits, is on lines that are broken at blanks.
    let wide: Vec<String> = (0..100).map(|index| format!("\"key{index}\":{index}")).collect();
    for list in ["[]", "[{}]", r#"[{"a":1},{"b":1}]"#, "[{\"a\":1},2]", &format!("[{{{}}}]", wide.join(","))]
    {
        let out = with_result(&format!(r#"{{"list":{list},"ok":true}}"#));
        assert!(!out.contains("see below") && !out.contains("linux, list"), "{list}: {out}");
    }
    let out = with_result(r#"{"list":[{"first":{"second":100000}},{"third":[300000,400000]}],"ok":true}"#);
    assert!(out.contains(r#"[{"first": {"second": 100000}}, {"third": [300000, 400000]}]"#), "{out}");
}

#[test]
fn tables_of_records_are_told_by_their_lives_and_end() {
    let list = |name: &str, records: usize| format!("\"{name}\":[{}]", vec![r#"{"a":1}"#; records].join(","));
    let lists: Vec<String> = (0..30).map(|index| list(&format!("list{index}"), 1)).collect();
    let out = with_result(&format!("{{{},\"ok\":true}}", lists.join(",")));
    assert!(out.contains("linux, list9:") && !out.contains("linux, list10:"), "{out}");
    assert!(out.contains("linux: and 20 more lists"), "{out}");
    let out = with_result(&format!("{{{},\"ok\":true}}", list("long", 10_000)));
    assert!(out.contains("long: 10000, see below") && out.contains("and 9960 more"), "{out}");
    assert!(out.len() < 20_000, "{} bytes", out.len());
    // One object with as many fields as a line has room for.
    let fields: Vec<String> = (0..60_000).map(|index| format!("\"{index}\":{index}")).collect();
    let out = with_result(&format!("{{\"delay_ns\":{{{}}},\"ok\":true}}", fields.join(",")));
    assert!(out.contains("delay: 0 ") && out.len() < 20_000, "{} bytes", out.len());

    let tasks = |missed: u32| format!(r#"linux| @result {{"tasks":[{{"missed":{missed}}}]}}"#);
    let lines = [tasks(3), lived_before(1, "failure", "restart"), tasks(0)];
    let (_, out, ..) = played_after(
        &lines,
        "s/\"guest\":\"linux\",\"vcpu\":0,\"life\":1/\"guest\":\"linux\",\"vcpu\":0,\"life\":2/",
    );
    assert!(out.contains("linux in life 1, tasks:") && out.contains("linux in life 2, tasks:"), "{out}");
}

#[test]
fn a_result_that_is_not_ok_fails_the_run() {
    let (code, out, _, report) = played("sed 's/\"ok\":true/\"ok\":false/' $recorded/good.txt", &[]);
    assert_eq!(code, Some(1));
    assert_eq!(report["guests"][1]["outcome"], "failed");
    assert!(out.contains("failed: said so in a result"), "{out}");
    let stopped =
        r#"sed '/"stopped","guest":"freertos"/s/"reason":"shutdown"/"reason":"failure"/' $recorded/good.txt"#;
    let (code, out, ..) = played(stopped, &[]);
    assert_eq!(code, Some(1));
    assert!(out.contains("failed: said so as it stopped"), "{out}");
}

/// What they mean depends on the clock, which nobody thinks of who sees deadlines missed in the very first run.
#[test]
fn deadlines_that_are_missed_by_the_hosts_clock_mean_nothing() {
    let check = |change: &str, arguments: &[&str], expected: bool| {
        let checkout = Checkout::new(1);
        checkout.fake_qemu(VERSION, &format!("sed '{change}' $recorded/good.txt > $serial"));
        let (_, out, err, report) = run(&checkout, arguments);
        let problems = report["problems"].as_array().unwrap().clone();
        let is_told = problems
            .iter()
            .any(|problem| problem.as_str().unwrap().contains("clock = \"lockstep\" in [run]"));
        assert_eq!(out.contains("Problem: freertos missed deadlines, but by the host"), is_told, "{out}");
        assert_eq!(is_told, expected, "{change:?} with {arguments:?}: {out}{err}{report:#}");
    };
    check("s/\"missed\":0/\"missed\":3/", &[], true);
    check("s/\"ticks_lost\":0/\"ticks_lost\":1/", &[], true);
    // It missed none.
    check("", &[], false);
    // It did miss them.
    check("s/\"missed\":0/\"missed\":3/", &["--clock", "icount"], false);
}

/// However orderly: a guest that was halted before it did anything ends so, too.
#[test]
fn a_shutdown_without_a_result_is_no_job_done() {
    let (code, out, _, report) = played("sed '/^linux|.*@result/d' $recorded/good.txt", &[]);
    assert_eq!(code, Some(0));
    assert_eq!(report["outcome"], "unreported");
    assert_eq!(report["guests"][0]["outcome"], "shut-down");
    assert_eq!(report["guests"][1]["outcome"], "done");
    assert!(out.contains("shut down, reported nothing"), "{out}");
    assert!(out.contains("Last lines of linux:") && !out.contains("Last lines of freertos"), "{out}");
}

/// A line for `sed` to put before the first that linux prints: it lived before, and ended like this.
fn lived_before(life: u32, reason: &str, next: &str) -> String {
    let stopped = format!(
        r#"ainori| @record {{"record":"stopped","guest":"linux","vcpu":1,"life":{life},"reason":"{reason}","next":"{next}","time":1000,"fault":null}}"#
    );
    let result = r#"linux| @result {"job":"hackbench","seconds":9.75,"ok":false}"#;
    let restarted = format!(
        r#"ainori| @record {{"record":"restarted","guest":"linux","life":{},"time":2000000}}"#,
        life + 1
    );
    format!("{result}\n{stopped}\n{restarted}")
}

/// Plays the good run with lines in front of all that guests print, its own lines changed by a command of `sed`.
fn played_after(lines: &[String], change: &str) -> (Option<i32>, String, String, Value) {
    let checkout = Checkout::new(2);
    std::fs::write(checkout.path("before.txt"), lines.join("\n") + "\n").unwrap();
    let before = checkout.path("before.txt");
    let script = format!("sed -e '/record.*board/r {}' -e '{change}' $recorded/good.txt", before.display());
    checkout.fake_qemu(VERSION, &script);
    run(&checkout, &[])
}

#[test]
fn the_last_life_decides() {
    let lines = [lived_before(1, "failure", "restart"), lived_before(2, "reboot", "restart")];
    let (code, out, err, report) = played_after(
        &lines,
        "s/\"guest\":\"linux\",\"vcpu\":0,\"life\":1/\"guest\":\"linux\",\"vcpu\":0,\"life\":3/",
    );
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("done in life 3"), "{out}");
    let linux = &report["guests"][0];
    assert_eq!((&linux["outcome"], &linux["stopped"]["life"]), (&"done".into(), &3.into()));
    let former = linux["former_lives"].as_array().unwrap();
    let told: Vec<_> =
        former.iter().map(|life| (&life["stopped"]["reason"], &life["results"][0]["seconds"])).collect();
    assert_eq!(told, [(&"failure".into(), &9.75.into()), (&"reboot".into(), &9.75.into())]);
    assert_eq!((&former[0]["started"], &former[1]["started"]), (&0.into(), &2_000_000.into()));
    assert!(linux["results"][0]["seconds"] != 9.75, "results are the last life's");
    let lives: Vec<_> = out.lines().filter(|line| line.trim_start().starts_with("linux ")).collect();
    assert!(
        lives.iter().any(|line| line.contains(" 2 ") && line.contains("200 ms") && line.contains("reboot")),
        "{out}"
    );
    let first = lives.iter().find(|line| line.contains(" 1 ") && line.contains("failure")).unwrap();
    assert!(first.contains(" boot ") && !first.contains("0 ns"), "nobody tells when it began: {first}");
    assert!(report["guests"][1]["former_lives"].as_array().unwrap().is_empty());
}

/// What a guest says of itself is good if it says so in the words of the documentation, and not if it says anything else.
#[test]
fn only_true_is_a_result_that_is_good() {
    for (ok, code) in [("true", 0), ("false", 1), ("\"yes\"", 1), ("0", 1), ("null", 1)] {
        let (found, out, err, report) = played_after(&[], &format!("/result.*hackbench/s/true/{ok}/"));
        assert_eq!(found, Some(code), "{ok}: {out}{err}");
        assert_eq!(report["guests"][0]["outcome"] == "done", code == 0, "{ok}");
    }
}

/// A life that was cut off in the middle of a result, or that printed too many, ended badly, and was forgiven for that: it spoils neither the run nor
/// what the last life says.
#[test]
fn what_was_wrong_with_a_former_life_stays_with_it() {
    let cut = r#"linux| @result {"job":"hackbench","seco"#;
    let [_, stopped, restarted] = lived_before(1, "fault", "restart")
        .split('\n')
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let many = format!(r#"linux| @result {{"text":"{}"}}"#, "x".repeat(1 << 19));
    let lines: Vec<_> = std::iter::once(cut.to_owned())
        .chain(std::iter::repeat_n(many, 40))
        .chain([stopped, restarted])
        .collect();
    let change = "s/\"guest\":\"linux\",\"vcpu\":0,\"life\":1/\"guest\":\"linux\",\"vcpu\":0,\"life\":2/";
    let (code, out, err, report) = played_after(&lines, change);
    assert_eq!(code, Some(0), "{err}");
    assert!(!out.contains("Problem"), "{}", out.lines().last().unwrap());
    assert_eq!(report["problems"], serde_json::json!([]));
    let linux = &report["guests"][0];
    assert_eq!((&linux["outcome"], linux["results"].as_array().unwrap().len()), (&"done".into(), 1));
    let former = &linux["former_lives"][0];
    assert_eq!(former["results"].as_array().unwrap().len(), 31, "those that were kept");
    let problems: Vec<_> =
        former["problems"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert!(problems[0].starts_with("a line of linux can't be read"), "{problems:?}");
    assert!(problems[1].starts_with("linux printed more than 16777216 bytes of results"), "{problems:?}");
}

/// The hypervisor breaks a long line, and one that was shown while its guest was away, to let others speak.
#[test]
fn broken_lines_are_put_together_again() {
    let lines = [
        r#"linux| @result {"job":"long","text":"ab"#,
        "freertos| news",
        r#"linux|+cd","#,
        "freertos| more news",
        r#"linux|+"seconds":1.5}"#,
        "linux| it printed: ",
        "freertos| and more",
        r#"linux|+@result {"job":"none","ok":false}"#,
    ];
    let (code, out, err, report) = played_after(&lines.map(str::to_owned), "");
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(report["problems"], serde_json::json!([]));
    let results = report["guests"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 2, "the long one, and the run's own");
    assert_eq!(results[0], serde_json::json!({"job": "long", "text": "abcd", "seconds": 1.5}));
    assert!(out.contains("linux|+@result"), "{out}");

    // One whose rest doesn't come, and one whose rest is something else.
    for rest in [&["linux| @result {\"a\":"][..], &["linux| @result {\"a\":", "linux|+!", "linux| x"]] {
        let lines: Vec<_> = rest.iter().map(|line| (*line).to_owned()).collect();
        let (_, _, _, report) = played_after(&lines, "");
        let problems = report["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].as_str().unwrap().starts_with("a line of linux can't be read"), "{problems:?}");
    }
}

#[test]
fn a_guest_that_was_given_up_fails_the_run() {
    let change = "s/\"guest\":\"linux\",\"vcpu\":0,\"life\":1,\"reason\":\"shutdown\",\"next\":\"end\"/\"guest\":\"linux\",\"vcpu\":0,\"life\":2,\"reason\":\"shutdown\",\"next\":\"give-up\"/";
    let (code, out, _, report) = played_after(&[lived_before(1, "shutdown", "restart")], change);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("failed: given up in life 2") && out.contains("shutdown; given up"), "{out}");
    assert!(out.contains("linux was started 2 times in all, then it was given up"), "{out}");
    assert_eq!(report["guests"][0]["outcome"], "failed");
}

#[test]
fn a_guest_between_two_lives_is_restarting() {
    let change = "s/\"guest\":\"linux\",\"vcpu\":0,\"life\":1,\"reason\":\"shutdown\",\"next\":\"end\"/\"guest\":\"linux\",\"vcpu\":0,\"life\":1,\"reason\":\"shutdown\",\"next\":\"restart\"/";
    for (former, told) in [
        (vec![], "restarting after life 1"),
        (vec![lived_before(1, "fault", "restart")], "restarting after life 2"),
    ] {
        let (code, out, _, report) = played_after(&former, change);
        assert_eq!(code, Some(1), "{out}");
        assert!(out.contains(told) && out.contains("linux waited for its restart"), "{out}");
        assert_eq!(report["guests"][0]["outcome"], "restarting");
    }
}

#[test]
fn a_guest_that_never_stopped_fails_the_run() {
    let (code, out, _, report) = played("grep -v '\"stopped\",\"guest\":\"linux\"' $recorded/good.txt", &[]);
    assert_eq!(code, Some(1));
    assert!(out.contains("linux had not stopped when the hypervisor ended"), "{out}");
    assert_eq!(report["guests"][0]["outcome"], "running");
}

/// The machine ends when everybody who is waited for has done its job: who is in the background may be in the middle of a line.
#[test]
fn a_guest_that_runs_at_the_end_may_be_interrupted_in_a_result() {
    let cut = r#"sed '/"record":"end"/i linux| @result {"job":"' $recorded/good.txt"#;
    let background = format!("{cut} | grep -v '\"stopped\",\"guest\":\"linux\"'");
    let is_damaged = |out: &str| out.contains("Problem: a line of linux can't be read");
    let (_, out, ..) = played(cut, &[]);
    assert!(is_damaged(&out), "it had stopped: {out}");
    let (_, out, _, report) = played(&background, &[]);
    assert!(!is_damaged(&out), "{out}");
    let said = report["console"]["linux"].as_array().unwrap();
    assert_eq!(said.last().unwrap(), "@result {\"job\":\"", "what it said is kept");
}

#[test]
fn a_damaged_line_is_told_and_does_not_stop_the_run() {
    let (code, out, ..) = played("sed 's/\"boot_s\":[0-9.]*,/\"boot_s\":/' $recorded/good.txt", &[]);
    assert_eq!(code, Some(0), "it was the only result of that guest");
    assert!(out.contains("Problem: a line of linux can't be read"), "{out}");
}

#[test]
fn lost_output_is_told() {
    let (_, out, ..) = played("sed 's/bytes_lost\":0/bytes_lost\":17/' $recorded/good.txt", &[]);
    assert!(out.contains("17 bytes of console output were lost"), "{out}");
}

#[test]
fn a_panic_ends_the_run_though_qemu_goes_on() {
    let (code, out, _, report) = played("cat $recorded/panic.txt; exec sleep 60", &[]);
    assert_eq!(code, Some(3));
    assert!(out.contains("Problem: the hypervisor panicked: at kernel/src/main.rs:1: it broke"), "{out}");
    assert!(out.contains("Last lines of freertos:") && !out.contains("Last lines of firmware"), "{out}");
    assert_eq!(report["outcome"], "panic");
}

#[test]
fn an_early_end_of_qemu_is_told_with_its_words() {
    let (code, out, _, report) =
        played("sed /Platform/q $recorded/good.txt; echo no such machine >&2; exit 7", &[]);
    assert_eq!(code, Some(3));
    assert!(out.contains("QEMU ended (exit status: 7)") && out.contains("no such machine"), "{out}");
    assert!(out.contains("Last lines of firmware:") && out.contains("OpenSBI v1.5"), "{out}");
    assert_eq!(report["outcome"], "qemu-died");
}

/// QEMU is fine, and has nothing to say: what counts is what the hypervisor said.
#[test]
fn a_refusal_of_the_hypervisor_is_the_reason() {
    let refusal = "ainori| error: the harts of this board (rv64imafdch) lack the Sstc extension (stimecmp), which Ainori needs";
    let (code, out, _, report) =
        played(&format!("sed /Platform/q $recorded/good.txt; echo '{refusal}'"), &[]);
    assert_eq!(code, Some(3));
    assert_eq!(report["outcome"], "refused");
    let reason = "the hypervisor doesn't start on this machine: the harts of this board (rv64imafdch) lack the Sstc extension (stimecmp), which Ainori needs";
    assert_eq!(report["problems"], serde_json::json!([reason]));
    assert_eq!(report["guests"][0]["outcome"], "not-started");
    assert!(out.contains(&format!("Problem: {reason}\n")) && out.contains("not started"), "{out}");
    assert!(!out.contains("QEMU ended") && !out.contains("Last lines"), "{out}");
}

#[test]
fn a_time_limit_holds_even_if_qemu_does_not_obey() {
    let script = "trap '' TERM; sed /board/q $recorded/good.txt; while :; do sleep 1; done";
    let (code, out, _, report) = played(script, &["--timeout", "1"]);
    assert_eq!(code, Some(3));
    assert!(out.contains("demo: stopped at the time limit."), "{out}");
    assert_eq!(report["outcome"], "time-limit");
}

/// More seconds than any clock comes to.
#[test]
fn a_time_limit_can_be_of_any_length() {
    let (code, out, err, _) = played("cat $recorded/good.txt", &["--timeout", "18446744073709551615"]);
    assert_eq!(code, Some(0), "{out}{err}");
}

#[test]
fn an_interrupt_ends_qemu_and_shows_what_is_known() {
    let checkout = Checkout::new(2);
    let script = "echo $$ > pid; sed '/@result.*periods/q' $recorded/good.txt; echo 'freertos| the last'; exec sleep infinity";
    checkout.fake_qemu(VERSION, script);
    let mut program =
        checkout.ainori(&["run", "demo.toml"]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(program.stdout.take().unwrap());
    let mut out = String::new();
    while !out.contains("the last") {
        assert_ne!(stdout.read_line(&mut out).unwrap(), 0, "it should still be running: {out}");
    }
    let pid = std::fs::read_to_string(checkout.path("pid")).unwrap();
    let interrupt = Command::new("kill").args(["-INT", &program.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    stdout.read_to_string(&mut out).unwrap();
    assert_eq!(program.wait().unwrap().code(), Some(130), "{out}");
    assert!(out.contains("demo: interrupted.") && out.contains("periods: 5000"), "{out}");
    let alive = Command::new("kill").args(["-0", pid.trim()]).stderr(Stdio::null()).status().unwrap();
    assert!(!alive.success(), "QEMU is gone");
}

#[test]
fn the_lockstep_clock_must_be_sound() {
    let play = |last_line: &str| {
        let checkout = Checkout::new(2);
        std::fs::create_dir_all(checkout.path(".cache/plugins")).unwrap();
        std::fs::write(checkout.path(".cache/plugins/lockstep.so"), "").unwrap();
        checkout.fake_qemu(
            VERSION,
            &format!("cat $recorded/good.txt > $serial; echo '{last_line}' >&2; echo \"$@\" > arguments"),
        );
        let result = run(&checkout, &["--clock", "lockstep", "--q", "241"]);
        (result, std::fs::read_to_string(checkout.path("arguments")).unwrap())
    };
    let ((code, out, _, report), arguments) = play("lockstep: T=1 q=241 ns=4 stuck=0 hash=00ff");
    assert_eq!(code, Some(0), "{out}");
    assert_eq!(
        report["clock"],
        serde_json::json!({"mode": "lockstep", "q": 241, "ns": 4, "stuck": 0, "hash": "00ff"})
    );
    assert!(
        arguments.contains("-accel tcg,thread=single") && arguments.contains("lockstep.so,q=241,ns=4"),
        "{arguments}"
    );
    assert!(arguments.contains("-seed 1 -rtc base=2025-01-01,clock=vm"), "{arguments}");

    let ((code, out, _, report), _) = play("lockstep: T=1 stuck=2 hash=00ff");
    assert_eq!(code, Some(3));
    assert!(out.contains("the lockstep clock was stuck 2 times"), "{out}");
    assert_eq!(report["outcome"], "clock-invalid");

    let ((code, ..), _) = play("nothing of the kind");
    assert_eq!(code, Some(3));
}

#[test]
fn icount_needs_one_hart() {
    let (code, _, err, _) = played("exit 1", &["--clock", "icount"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("counts the instructions of one hart") && err.contains("lockstep"), "{err}");

    let checkout = Checkout::new(1);
    checkout.fake_qemu(VERSION, "cat $recorded/good.txt > $serial; echo \"$@\" > arguments");
    let (code, ..) = run(&checkout, &["--clock", "icount", "--record-dir", "kept"]);
    assert_eq!(code, Some(0));
    let arguments = std::fs::read_to_string(checkout.path("arguments")).unwrap();
    assert!(arguments.contains("-icount shift=2,sleep=off,rr=record,rrfile=kept/replay.bin"), "{arguments}");
    assert!(checkout.path("kept/serial.log").exists() && checkout.path("kept/command.txt").exists());
}

#[test]
fn an_old_or_missing_qemu_is_told() {
    let checkout = Checkout::new(1);
    checkout.fake_qemu("7.2.0", "exit 1");
    let (code, _, err, _) = run(&checkout, &[]);
    assert_eq!(code, Some(2));
    assert!(err.contains("has version 7.2.0, but 10.0 or later is needed"), "{err}");
}
