//! `ainori check` and `ainori build` as programs: output, JSON and exit codes.
mod support;

use serde_json::Value;
use std::path::Path;
use support::Checkout;

fn call(checkout: &Checkout, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = checkout.ainori(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn json(checkout: &Checkout, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(checkout.path(name)).unwrap()).unwrap()
}

#[test]
fn a_good_system_is_shown() {
    let checkout = Checkout::new(2);
    let (code, out, err) = call(&checkout, &["check", "demo.toml", "--json", "found.json"]);
    assert_eq!((code, &*err), (Some(0), ""));
    assert!(out.starts_with("demo: qemu-virt with 2 harts, 1GiB (rv64), PLIC, policy ainori"), "{out}");
    assert!(out.contains("freertos") && out.contains("0→0") && out.contains("goes to linux"), "{out}");
    let found = json(&checkout, "found.json");
    assert_eq!((&found["ok"], &found["errors"]), (&Value::Bool(true), &Value::Array(vec![])));
    assert_eq!(found["system"]["system"]["guests"][0]["name"], "linux");
}

#[test]
fn the_interrupt_controller_is_shown() {
    let checkout = Checkout::new(2);
    for (name, told) in [("aplic", ", APLIC, policy"), ("imsic", ", APLIC and IMSICs, policy")] {
        let text = std::fs::read_to_string(checkout.path("demo.toml")).unwrap();
        let text = text.replacen("[board]", &format!("[board]\ninterrupts = {name:?}"), 1);
        std::fs::write(checkout.path("other.toml"), text).unwrap();
        let (code, out, err) = call(&checkout, &["check", "other.toml"]);
        assert_eq!((code, out.contains(told)), (Some(0), true), "{out}{err}");
    }
}

/// Of the one address space nobody is used least recently; and harts without H have an interrupt controller that guests haven't.
#[test]
fn what_a_guest_has_of_its_translation_and_its_board_is_shown() {
    let checkout = Checkout::new(2);
    for (board, guest, all) in [
        (
            "",
            "translation = \"shadow-multi\"",
            &["for the last 16 address spaces, taken first in first out."][..],
        ),
        (
            "",
            "translation = \"shadow-multi\"\nshadow_reclaim = \"page-directory-lru\"",
            &["for the last 16 address spaces, taken from the one that was used least recently."],
        ),
        (
            "",
            "translation = \"shadow-single\"\nshadow_reclaim = \"page-directory-lru\"",
            &["for its address space alone, taken all at once."],
        ),
        (
            "cpu = \"rv64,h=false\"\ninterrupts = \"imsic\"",
            "",
            &["guests' kernels run in user mode.\n", "the board's IMSICs aren't used: guests have a PLIC.\n"],
        ),
    ] {
        let text = std::fs::read_to_string(checkout.path("demo.toml")).unwrap();
        let text = text.replacen("[board]", &format!("[board]\n{board}"), 1);
        let text = text.replace("name = \"linux\"", &format!("name = \"linux\"\n{guest}"));
        std::fs::write(checkout.path("other.toml"), text).unwrap();
        let (code, out, err) = call(&checkout, &["check", "other.toml"]);
        for told in all {
            assert_eq!((code, out.contains(told)), (Some(0), true), "{told}: {out}{err}");
        }
    }
}

/// What it could reach is told, and where its memory is; and who doesn't trust it is asked to.
#[test]
fn what_a_guest_without_protection_could_reach_is_shown() {
    let checkout = Checkout::new(2);
    let none = "name = \"linux\"\ntranslation = \"none\"\nmemory_at = 0xa0000000";
    checkout.change_manifest(|text| text.replace("name = \"linux\"", none));
    let (code, _, err) = call(&checkout, &["check", "demo.toml"]);
    assert!(code != Some(0) && err.contains("add trusts = [\"linux\"] to freertos"), "{err}");
    checkout.change_manifest(|text| text + "trusts = [\"linux\"]\n");
    let (code, out, err) = call(&checkout, &["check", "demo.toml", "--json", "found.json"]);
    assert_eq!((code, &*err), (Some(0), ""));
    assert!(out.contains("The memory of linux is at 0xa0000000..0xa4000000 of the board"), "{out}");
    let reach = "it can read and change the hypervisor's memory, that of freertos, and the board's devices";
    assert!(out.contains("Nothing keeps linux from what isn't its own") && out.contains(reach), "{out}");
    assert_eq!(json(&checkout, "found.json")["system"]["translations"][0], "none");
}

#[test]
fn where_what_is_typed_goes_is_told_only_where_something_can_be() {
    let checkout = Checkout::new(2);
    checkout.change_manifest(|text| text + "[run]\nclock = \"lockstep\"\n");
    let (code, out, err) = call(&checkout, &["check", "demo.toml"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(!out.contains("goes to linux") && out.contains("nothing can be typed"), "{out}");
}

#[test]
fn the_size_of_an_image_is_its_own() {
    let checkout = Checkout::new(2);
    checkout
        .change_manifest(|text| text.replace("image = \"Image\"", "image = \"Image\"\ninitrd = \"disk\""));
    std::fs::write(checkout.path("disk"), [0; 10 << 10]).unwrap();
    let (_, out, err) = call(&checkout, &["check", "demo.toml"]);
    assert!(out.contains(" Image, 4 KiB; initrd, 10 KiB"), "{out}{err}");
}

/// Nobody moves under a policy that leaves each vCPU where it was given to.
#[test]
fn who_is_pinned_may_move_nowhere() {
    let checkout = Checkout::new(2);
    let row = |policy: &str| {
        let text = std::fs::read_to_string(checkout.path("demo.toml")).unwrap();
        let name = format!("{policy}.toml");
        std::fs::write(checkout.path(&name), format!("policy = \"{policy}\"\n{text}")).unwrap();
        let (code, out, err) = call(&checkout, &["check", &name]);
        assert_eq!(code, Some(0), "{out}{err}");
        out.lines().find(|line| line.trim_start().starts_with("linux")).unwrap().to_owned()
    };
    assert!(row("ainori").contains(" 0 1 "), "{}", row("ainori"));
    assert!(!row("spumone").contains(" 0 1 "), "{}", row("spumone"));
}

/// A priority that a warning says doesn't count isn't shown as if it did.
#[test]
fn the_priorities_that_count_are_shown() {
    let checkout = Checkout::new(2);
    let shown = |policy: &str, lines: &str| {
        let text = std::fs::read_to_string(checkout.path("demo.toml")).unwrap();
        let policy = match policy {
            "time-window" => "{ preset = \"time-window\", major_frame = \"1ms\" }".into(),
            _ => format!("{policy:?}"),
        };
        let windows = [("linux", 0), ("freertos", 1)].map(|(guest, hart)| {
            format!("[[window]]\nguest = {guest:?}\nhart = {hart}\nstart = \"0ms\"\nlength = \"1ms\"\n")
        });
        let windows = if policy.contains("time-window") { windows.concat() } else { String::new() };
        let linux = text.replacen("memory = \"64MiB\"", "memory = \"64MiB\"\nharts = [0]", 1);
        let text = format!("policy = {policy}\n{linux}{lines}\n{windows}");
        std::fs::write(checkout.path("other.toml"), text).unwrap();
        let (code, out, err) = call(&checkout, &["check", "other.toml"]);
        assert_eq!(code, Some(0), "{out}{err}");
        let row = out.lines().find(|line| line.trim_start().starts_with("freertos")).unwrap();
        let words: Vec<_> = row.split_whitespace().skip(2).take_while(|word| *word != "4MiB").collect();
        // The last is its weight.
        words[..words.len() - 1].join(" ")
    };
    let one = "harts = [1]\npriority_on = { 1 = 12 }";
    for preset in ainori_sched::presets() {
        let counts = preset.ranking == ainori_sched::Ranking::PerCore;
        assert_eq!(shown(preset.name, one), if counts { "on hart 1: 12" } else { "10" }, "{}", preset.name);
    }
    let both = "priority_on = { 1 = 12 }";
    assert_eq!(shown("ainori", both), "10, on hart 1: 12");
    assert_eq!(shown("listee-rt", &format!("{both}\nvcpus = 2")), "10, on hart 1: 12");
    assert_eq!(shown("listee-rt", both), "10", "it has no vCPU there, and nobody moves");
    assert_eq!(shown("listee", both), "10");
    assert_eq!(shown("ainori", "priority_on = { 0 = 10, 1 = 10 }"), "10");
}

#[test]
fn errors_are_shown_with_their_lines() {
    let checkout = Checkout::new(2);
    checkout.change_manifest(|text| text.replace("priority", "priorit").replace("4MiB", "4MB"));
    let (code, out, err) = call(&checkout, &["check", "demo.toml", "--json", "found.json"]);
    assert_eq!((code, &*out), (Some(1), ""));
    assert!(err.contains("demo.toml has 3 errors") && err.contains("demo.toml:16:1"), "{err}");
    let found = json(&checkout, "found.json");
    assert_eq!(found["ok"], false);
    let last = &found["errors"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["line"], &last["column"]), (&16.into(), &1.into()));
    assert!(last["help"].as_str().unwrap().contains("did you mean `priority`?"));

    for command in [&["run", "demo.toml"][..], &["build", "demo.toml", "-o", "x.bin"]] {
        assert_eq!(call(&checkout, command).0, Some(1), "nothing is built or run of a wrong manifest");
    }
    assert!(!checkout.path("x.bin").exists());
}

#[test]
fn a_warning_is_shown_and_all_is_right() {
    let checkout = Checkout::new(2);
    checkout.change_manifest(|text| text.replace("priority = 10", ""));
    let (code, out, err) = call(&checkout, &["check", "demo.toml", "--json", "found.json"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("goes to linux"), "{out}");
    assert!(err.contains("demo.toml has a warning") && !err.to_lowercase().contains("error"), "{err}");
    assert!(err.contains("linux and freertos take turns on hart 0: both have priority 1"), "{err}");
    let found = json(&checkout, "found.json");
    assert_eq!((&found["ok"], &found["errors"]), (&Value::Bool(true), &Value::Array(vec![])));
    assert_eq!(found["warnings"][0]["line"], 11);
}

#[test]
fn an_image_is_built() {
    let checkout = Checkout::new(2);
    let (code, out, err) = call(&checkout, &["build", "demo.toml", "-o", "demo.bin", "--json", "sizes.json"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("text") && out.contains("payload"), "{out}");
    let sizes = json(&checkout, "sizes.json");
    assert_eq!(sizes["image"], std::fs::metadata(checkout.path("demo.bin")).unwrap().len());
    assert_eq!(sizes["text"], 4096);
}

#[test]
fn wrong_use_and_missing_parts_have_a_code_of_their_own() {
    let checkout = Checkout::new(2);
    assert_eq!(call(&checkout, &["check"]).0, Some(2));
    assert_eq!(call(&checkout, &["run", "demo.toml", "--q", "250"]).0, Some(2));
    let (code, _, err) = call(&checkout, &["build", "demo.toml", "-o", "x.bin", "--kernel", "none.elf"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("none.elf can't be read"), "{err}");
    assert_eq!(call(&checkout, &["check", "none.toml"]).0, Some(1));
}

#[test]
fn policies_are_listed_with_what_they_do() {
    let checkout = Checkout::new(1);
    let (code, out, err) = call(&checkout, &["policies", "--json", "policies.json"]);
    assert_eq!((code, &*err), (Some(0), ""));
    let list = json(&checkout, "policies.json");
    assert_eq!(list.as_array().unwrap().len(), ainori_sched::presets().len());
    for (told, preset) in list.as_array().unwrap().iter().zip(ainori_sched::presets()) {
        assert_eq!((&told["name"], &told["summary"]), (&preset.name.into(), &preset.summary.into()));
        assert!(out.contains(&format!(" {} ", preset.name)), "{out}");
    }
    assert_eq!(list[0]["name"], "ainori", "the default comes first");
}

#[test]
fn the_page_has_every_command_and_option() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    let checkout = Checkout::new(1);
    let help = |arguments: &[&str]| {
        let (code, out, _) = call(&checkout, &[arguments, &["--help"]].concat());
        assert_eq!(code, Some(0));
        out
    };
    let commands = help(&[]);
    let commands = commands.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<_> = commands.map_while(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 5, "{commands:?}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        assert!(
            page.contains(&format!("| `{command} ")) || page.contains(&format!("| `{command}`")),
            "{command}"
        );
        let text = help(&[command]);
        // Options are indented: by two with a short name, by six without. What is farther in is about them.
        let is_option = |line: &&str| line.starts_with("  -") || line.starts_with("      --");
        for line in text.lines().filter(is_option) {
            let words = line.split([' ', ',']).take_while(|word| word.is_empty() || word.starts_with('-'));
            let names: Vec<_> = words.filter(|word| !word.is_empty()).collect();
            let is_told = |name: &&str| page.split([' ', '`', ',', '\n']).any(|word| word == *name);
            let is_known = names.contains(&"--help") || names.iter().any(is_told);
            assert!(is_known, "{command}: docs/cli.md has none of {names:?}");
        }
    }
}

/// A command that is shown can be copied: in Rust's text `\\n` is the end of a line.
#[test]
fn examples_stand_on_one_line_each() {
    let checkout = Checkout::new(1);
    for command in ["check", "build", "run", "trace", "policies"] {
        let (_, out, _) = call(&checkout, &[command, "--help"]);
        let examples = out.lines().skip_while(|line| *line != "Examples:").skip(1);
        for line in examples.take_while(|line| !line.is_empty()) {
            assert!(line.starts_with("  ") && line.contains("ainori "), "{line:?} in {out}");
        }
    }
}

#[test]
fn every_command_explains_itself() {
    let checkout = Checkout::new(1);
    for command in ["check", "build", "run", "trace", "policies"] {
        let (code, out, _) = call(&checkout, &[command, "--help"]);
        assert_eq!(code, Some(0));
        assert!(out.contains("Examples:") && out.contains("Exit code:"), "{out}");
    }
}

/// Two tasks for FreeRTOS on hart 1, of which the second computes so long.
fn with_tasks(checkout: &Checkout, harts: &str, execution: &str) {
    checkout.change_manifest(|text| {
        let task = |name: &str, period: &str, execution: &str, priority: u8| {
            format!(
                "[[guest.task]]\nname = \"{name}\"\nperiod = \"{period}\"\nexecution = \"{execution}\"\npriority = {priority}\n"
            )
        };
        text + harts + &task("fast", "1ms", "300us", 2) + &task("slow", "5ms", execution, 1)
    });
}

#[test]
fn tasks_that_meet_their_deadlines_are_shown_with_what_bounds_them() {
    let checkout = Checkout::new(2);
    with_tasks(&checkout, "harts = [1]\n", "900us");
    let arguments = ["check", "demo.toml", "--json", "found.json", "--gantt", "tasks.svg"];
    let (code, out, err) = call(&checkout, &arguments);
    assert_eq!((code, &*err), (Some(0), ""), "{out}");
    let row = out.lines().find(|line| line.contains("freertos/slow")).unwrap();
    assert!(row.contains(" met ") && row.contains("own 900, freertos/fast 2x 300, switches"), "{out}");
    assert!(out.contains("Of hart 1 tasks and hypervisor take ") && out.contains("% is left"), "{out}");
    let found = json(&checkout, "found.json");
    assert_eq!((&found["ok"], &found["deadlines"]["all_met"]), (&true.into(), &true.into()));
    let hart = &found["deadlines"]["harts"][0];
    assert_eq!((&hart["hart"], &hart["tasks"][0]["task"]), (&1.into(), &"fast".into()));
    assert_eq!(hart["tasks"][1]["verdict"], "met");
    assert!(hart["left_percent"].as_f64().unwrap() > 45.0, "{hart}");
    let parts = hart["tasks"][1]["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["ns"].as_u64().unwrap()).sum();
    assert_eq!(hart["tasks"][1]["response_ns"], sum);
    let svg = std::fs::read_to_string(checkout.path("tasks.svg")).unwrap();
    roxmltree::Document::parse(&svg).unwrap();
    assert!(svg.contains("freertos/slow"), "{svg}");
    // A faster board has more left.
    let (_, faster, _) = call(&checkout, &["check", "demo.toml", "--mips", "1000"]);
    assert!(faster.contains("1000 MIPS") && faster != out);
}

#[test]
fn a_task_that_may_be_late_is_an_error() {
    let checkout = Checkout::new(2);
    with_tasks(&checkout, "harts = [1]\n", "4ms");
    let (code, out, err) = call(&checkout, &["check", "demo.toml", "--json", "found.json"]);
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("missed, no bound"), "{out}");
    assert!(err.contains("demo.toml:23: the task slow of freertos may be late without end"), "{err}");
    let found = json(&checkout, "found.json");
    assert_eq!((&found["ok"], &found["errors"][0]["line"]), (&false.into(), &23.into()));
    assert_eq!(found["system"]["system"]["name"], "demo", "the manifest itself is right");
}

#[test]
fn a_task_of_which_nothing_can_be_said_is_a_warning() {
    let checkout = Checkout::new(2);
    // Under `ainori` it may leave its hart.
    with_tasks(&checkout, "harts = [1, 0]\n", "900us");
    let (code, out, err) = call(&checkout, &["check", "demo.toml", "--json", "found.json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("can't be said") && err.contains("give it `harts` of its own"), "{out}{err}");
    let found = json(&checkout, "found.json");
    assert_eq!((&found["ok"], found["warnings"].as_array().unwrap().len()), (&true.into(), 2));
    assert_eq!(found["deadlines"]["all_met"], false);
}

#[test]
fn who_may_starve_is_warned_of() {
    let checkout = Checkout::new(1);
    with_tasks(&checkout, "harts = [0]\n", "4ms");
    let (_, out, err) = call(&checkout, &["check", "demo.toml", "--json", "found.json"]);
    let text = err.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("linux may starve on hart 0: the tasks of more urgent guests ask for all of it"),
        "{out}{err}"
    );
    assert_eq!(
        json(&checkout, "found.json")["deadlines"]["harts"][0]["starved"],
        serde_json::json!(["linux"])
    );
}

#[test]
fn a_picture_needs_tasks() {
    let checkout = Checkout::new(2);
    let (code, _, err) = call(&checkout, &["check", "demo.toml", "--gantt", "tasks.svg"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("the manifest has no task to draw"), "{err}");
}

/// Which bars a picture has of a colour: for each its distance from the left and its width, in pixels.
fn bars(svg: &str, colour: &str) -> Vec<(u32, u32)> {
    let picture = roxmltree::Document::parse(svg).unwrap();
    let bars = picture.descendants().filter(|node| node.attribute("fill") == Some(colour));
    let number = |node: &roxmltree::Node<'_, '_>, name: &str| node.attribute(name)?.parse().ok();
    bars.filter_map(|node| Some((number(&node, "x")?, number(&node, "width")?))).collect()
}

fn picture(checkout: &Checkout) -> String {
    let (_, _, err) = call(checkout, &["check", "demo.toml", "--gantt", "tasks.svg"]);
    std::fs::read_to_string(checkout.path("tasks.svg")).unwrap_or_else(|_| panic!("{err}"))
}

/// In 10 ms there are ten jobs of 300 us, and two of 1 us, which is less than a tenth of a pixel.
#[test]
fn a_job_is_seen_however_short_it_is() {
    let checkout = Checkout::new(2);
    with_tasks(&checkout, "harts = [1]\n", "1us");
    let bars = bars(&picture(&checkout), "#0072B2");
    assert_eq!(bars.len(), 12, "{bars:?}");
    assert!(bars.iter().all(|(_, width)| *width >= 2), "{bars:?}");
}

#[test]
fn names_and_times_of_a_picture_have_room() {
    let checkout = Checkout::new(2);
    with_tasks(&checkout, "harts = [1]\n", "1s");
    // The longest names of the widest letter, and a day.
    checkout.change_manifest(|text| {
        let long = "w".repeat(16);
        text.replace("\"freertos\"", &format!("{long:?}"))
            .replace("\"slow\"", &format!("{long:?}"))
            .replace("\"5ms\"", "\"86400s\"")
            .replace("\"1ms\"", "\"43200s\"")
    });
    let svg = picture(&checkout);
    let picture = roxmltree::Document::parse(&svg).unwrap();
    let texts = picture.descendants().filter(|node| node.has_tag_name("text"));
    let mut names = 0;
    for node in texts {
        let text = node.text().unwrap().trim();
        let number = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
        let is_number = text.parse::<f64>().is_ok();
        assert!(!is_number || text.len() <= "100000.0".len(), "{text} ms");
        if text.contains("www") {
            names += 1;
            // Of Chromium's sans-serif a `w` is 0.82 of its size wide.
            let width = 0.82 * number("font-size") * text.chars().filter(|one| *one == 'w').count() as f64;
            assert!(number("x") > width, "{text} is {width} pixels, and ends at {}", number("x"));
        }
    }
    assert_eq!(names, 2, "{svg}");
    assert!(svg.contains("\ns; below a row"), "{svg}");
}

/// FreeRTOS has 2 of 5 ms on hart 1, twice in the picture, in the row of each of its tasks.
#[test]
fn a_picture_shows_windows() {
    let checkout = Checkout::new(2);
    with_tasks(&checkout, "harts = [1]\n", "1us");
    checkout.change_manifest(|text| {
        let window = |guest: &str, hart: u32, start: u32, length: u32| {
            format!("[[window]]\nguest = {guest:?}\nhart = {hart}\nstart = \"{start}ms\"\nlength = \"{length}ms\"\n")
        };
        let policy = "policy = { preset = \"time-window\", major_frame = \"5ms\" }\n";
        let windows = window("linux", 0, 0, 5) + &window("freertos", 1, 3, 2);
        policy.to_owned() + &text + &windows
    });
    let svg = picture(&checkout);
    assert!(svg.contains("windows of its guest"), "{svg}");
    let (windows, jobs) = (bars(&svg, "#E1E1E1"), bars(&svg, "#0072B2"));
    assert_eq!(windows.len(), 4, "{windows:?}");
    let (begin, length) = windows[0];
    assert!(windows.iter().all(|(_, other)| other.abs_diff(length) <= 1), "{windows:?}");
    assert!(!jobs.is_empty() && jobs.iter().all(|(from, _)| *from >= begin), "{windows:?} {jobs:?}");
    let (_, out, _) = call(&checkout, &["check", "demo.toml"]);
    assert!(out.contains("% is left in the windows of guests without tasks"), "{out}");
}

/// Linux and FreeRTOS on one hart, in turns of 100 us under windows in time: what is said of their tasks, in one line. Each has its lines for a priority and tasks.
fn in_windows(linux: &str, freertos: &str) -> String {
    let checkout = Checkout::new(1);
    checkout.change_manifest(|text| {
        let window = |guest: &str, start: u32| {
            format!("[[window]]\nguest = {guest:?}\nhart = 0\nstart = \"{start}us\"\nlength = \"100us\"\n")
        };
        let text = text.replace("priority = 10\n", freertos).replacen(
            "memory = \"64MiB\"\n",
            &format!("memory = \"64MiB\"\n{linux}"),
            1,
        );
        let policy = "policy = { preset = \"time-window\", major_frame = \"200us\" }\n";
        policy.to_owned() + &text + &window("freertos", 0) + &window("linux", 100)
    });
    let (_, out, err) = call(&checkout, &["check", "demo.toml"]);
    assert!(out.contains("freertos/t"), "{out}{err}");
    err.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

/// Under windows in time nobody waits for a higher priority. But housework is done beside the least urgent guest.
#[test]
fn where_a_priority_keeps_housework_away_that_is_said() {
    let task = |execution: u32| {
        format!(
            "[[guest.task]]\nname = \"t\"\nperiod = \"2ms\"\nexecution = \"{execution}us\"\ndeadline = \"900us\"\npriority = 1\n"
        )
    };
    let then = "the hypervisor does its housework beside linux then, and this task keeps its deadline; or ";
    let advice = |priority: u8| format!("give freertos `priority = {priority}`, above linux: {then}");
    for (linux, freertos, advised) in [
        ("", "", 2),
        ("priority = 1\n", "priority = 0\n", 2),
        // These two are one.
        ("priority = 0\n", "priority = 1\n", 2),
        ("priority = 7\n", "priority = 3\n", 8),
    ] {
        let (linux, freertos) = (linux.to_owned(), freertos.to_owned() + &task(204));
        let told = in_windows(&linux, &freertos);
        assert!(told.contains("of freertos may be late without end"), "{told}");
        assert!(told.contains(&advice(advised)), "{told}");
        let advised = in_windows(&linux, &format!("priority = {advised}\n{}", task(204)));
        assert!(advised.is_empty(), "who does so has no more to mend: {advised}");
    }
    let told = in_windows("", &task(5));
    assert!(told.contains("may miss its deadline") && told.contains(&advice(2)), "{told}");
    let told = in_windows("priority = 31\n", &format!("priority = 31\n{}", task(204)));
    assert!(
        told.contains(&format!("give freertos `priority = 31` and linux `priority = 30`: {then}")),
        "{told}"
    );
    let told = in_windows("", &task(300));
    assert!(told.contains("`priority = 2`, above linux") && told.contains("this task is late by"), "{told}");

    for (linux, freertos) in [
        // It does not keep house now.
        (String::new(), "priority = 2\n".to_owned() + &task(400)),
        // All its windows aren't enough.
        (String::new(), task(1_100)),
        // Then a task of the other one is late that isn't now.
        ("priority = 2\n".to_owned() + &task(204), "priority = 1\n".to_owned() + &task(204)),
    ] {
        let told = in_windows(&linux, &freertos);
        assert!(told.contains("of freertos may") && !told.contains("housework"), "{told}");
    }
}

/// What is said of an overload is of this system: nobody waits for another hart here, and the hart isn't all the guest's there.
#[test]
fn an_overload_is_told_by_what_there_is() {
    let told = |policy: &str, windows: &str| {
        let checkout = Checkout::new(2);
        with_tasks(&checkout, "harts = [1]\n", "4ms");
        checkout.change_manifest(|text| policy.to_owned() + &text + windows);
        let (code, _, err) = call(&checkout, &["check", "demo.toml"]);
        assert_eq!(code, Some(1), "{err}");
        err.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
    };
    let alone = told("", "");
    assert!(alone.contains("it and the more urgent ask for more than the hart has"), "{alone}");
    let window = |guest: &str, hart: u32, start: &str| {
        format!("[[window]]\nguest = {guest:?}\nhart = {hart}\nstart = \"{start}\"\nlength = \"2ms\"\n")
    };
    let windows = window("linux", 0, "0ms") + &window("freertos", 1, "2ms");
    let within = told("policy = { preset = \"time-window\", major_frame = \"4ms\" }\n", &windows);
    assert!(within.contains("ask for more than the windows of its guest give"), "{within}");
}
