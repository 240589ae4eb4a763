//! What the documentation says of the code, compared with the code: where links and paths lead, and each table that lists all of something.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ainori_report::exits::Exit;
use ainori_sched::{Admission, Occasion, Placement, Policy, Preemption, Preset, Ranking, presets};
use ainori_tests::{checkout, files};
use ainori_trace::Mask;

fn read(file: impl AsRef<Path>) -> String {
    let path = checkout("").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn set<T: Into<String>>(items: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    items.into_iter().map(Into::into).collect()
}

/// The part of a page below a heading, up to the next heading of any depth.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, below) =
        text.split_once(&format!("# {heading}\n")).unwrap_or_else(|| panic!("no heading {heading}"));
    below.split_once("\n#").map_or(below, |(section, _)| section)
}

/// The rows of all tables in a text, as cells; headers and rules are left out.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<_> = text.lines().collect();
    let is_rule = |line: &str| line.starts_with("|--");
    let is_header = |index: usize| lines.get(index + 1).is_some_and(|next| is_rule(next));
    let all = lines.iter().enumerate();
    let wanted = all.filter(|(index, line)| line.starts_with('|') && !is_rule(line) && !is_header(*index));
    wanted.map(|(_, line)| line.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// What stands between backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// A heading as the anchor that leads to it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for page in files("", ".md") {
        let text = read(&page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            if link.starts_with("http") || file.contains(char::is_whitespace) {
                continue;
            }
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let exists = checkout("").join(&target).exists();
            let has_place = place.is_empty()
                || read(&target)
                    .lines()
                    .any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == place);
            if !exists || !has_place {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// A name of code in a page, such as `a_function`, is a name of something.
#[test]
fn names_of_code_are_there() {
    /// Of others: the SBI specification's, Linux's, a crate's.
    const FOREIGN: [&str; 12] = [
        "clear_ipi",
        "console_getchar",
        "console_putchar",
        "cryptomgr_test",
        "hart_get_status",
        "hart_suspend",
        "is_ci",
        "machine_halt",
        "probe_extension",
        "slab_lock",
        "update_mmu_cache",
        "write_byte",
    ];
    let is_name = |word: &&str| {
        let is_of_code = |b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_');
        word.contains('_')
            && word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.bytes().all(is_of_code)
    };
    let sources: Vec<String> = [".rs", ".c", ".h", ".S", ".toml"]
        .into_iter()
        .flat_map(|suffix| files("", suffix))
        .map(read)
        .collect();
    let words: BTreeSet<&str> = sources
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .collect();
    let mut missing = Vec::new();
    // The changelog has names of its time.
    for page in files("", ".md").into_iter().filter(|page| !page.ends_with("CHANGELOG.md")) {
        let text = read(&page);
        let unknown =
            code(&text).filter(is_name).filter(|name| !words.contains(name) && !FOREIGN.contains(name));
        missing.extend(unknown.map(|name| format!("{}: {name}", page.display())));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// In pages and in sources: whatever begins with a folder of the checkout is something that is there.
#[test]
fn paths_are_there() {
    const FOLDERS: [&str; 9] =
        ["kernel/", "crates/", "cli/", "guests/", "systems/", "experiments/", "tests/", "tools/", "docs/"];
    /// What a reader makes, and what a test's guest says.
    const MADE_UP: [&str; 4] = [
        "systems/suspend.toml",
        "kernel/src/console.rs",
        "experiments/throughput.toml",
        "docs/results/part.json",
    ];
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    let mut missing = Vec::new();
    for page in [".md", ".rs", ".toml", ".c", ".h"].into_iter().flat_map(|suffix| files("", suffix)) {
        let text = read(&page);
        // A page's own links are relative to it, and are looked at above.
        for word in text.split(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '(' | ')' | ',' | ';'))
        {
            let path: String = word.chars().take_while(|c| is_part(*c)).collect();
            let is_pattern = word[path.len()..].starts_with(['*', '{', '$', '[', '<', ':']);
            let path = path.trim_end_matches('.');
            let is_name = path.chars().any(|c| c.is_ascii_lowercase()) && !path.contains("NAME");
            // What is built isn't there yet.
            let is_built = path.contains(".cache/");
            if !FOLDERS.iter().any(|folder| path.starts_with(folder)) || is_pattern || !is_name || is_built {
                continue;
            }
            // A crate's own folders are named as the checkout's are.
            let is_there =
                page.ancestors().skip(1).any(|folder| checkout("").join(folder).join(path).exists());
            if !is_there && !MADE_UP.contains(&path) {
                missing.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_tour_names_what_is_there() {
    let text = read("docs/tour.md");
    let mut named = BTreeSet::new();
    for row in rows(section(&text, "The kernel, file by file")) {
        // `arch/riscv/clear.rs`, `clock.rs`: the second is in the folder of the first.
        let mut folder = "";
        for name in code(row[0]) {
            let name = match name.rsplit_once('/') {
                Some((own, _)) => {
                    folder = own;
                    name.to_owned()
                }
                None if folder.is_empty() => name.to_owned(),
                None => format!("{folder}/{name}"),
            };
            named.insert(name);
        }
    }
    let there = files("kernel/src", ".rs");
    let there =
        there.iter().map(|file| file.strip_prefix("kernel/src").unwrap().to_string_lossy().into_owned());
    // What only lists its parts says so itself.
    let lists =
        ["main.rs", "arch/mod.rs", "arch/h/mod.rs", "arch/u/mod.rs", "arch/riscv/mod.rs", "chip/mod.rs"];
    assert_eq!(named, there.filter(|file| !lists.contains(&&**file)).collect());

    let folders = section(&text, "The folders");
    for folder in fs::read_dir(checkout("crates")).unwrap().chain(fs::read_dir(checkout("guests")).unwrap()) {
        let entry = folder.unwrap();
        let end = if entry.file_type().unwrap().is_dir() { "/" } else { "" };
        let name = format!("{}{end}", entry.file_name().to_string_lossy());
        assert!(folders.contains(&name), "{name} is not in the tour");
    }
}

/// How the tables of policies.md call the choices.
fn words(preset: &Preset) -> [&'static str; 4] {
    let placement = match preset.placement {
        Placement::Pinned => "pinned",
        Placement::CoScheduled => "co-scheduled",
        Placement::OnDemand => "on demand",
        Placement::SpinTriggered => "spin-triggered",
        Placement::Apart => "apart",
        Placement::TrapBased { confined: true, .. } => "trap-based, confined",
        Placement::TrapBased { .. } => "trap-based",
    };
    let preemption = match preset.preemption {
        Preemption::Immediate => "immediate",
        Preemption::AtQuantum => "at quantum",
        Preemption::AtWindow => "at window",
        Preemption::Delayed => "delayed",
        Preemption::SafeUnsafe => "safe-unsafe",
    };
    let admission = match preset.admission {
        Admission::ByPriority => "by priority",
        Admission::Exclusive => "exclusive",
        Admission::Any => "any",
    };
    let ranking = match preset.ranking {
        Ranking::Everywhere => "everywhere",
        Ranking::PerCore => "per core",
    };
    [placement, preemption, admission, ranking]
}

#[test]
fn the_presets_are_those_of_the_scheduler() {
    let text = read("docs/policies.md");
    let told: BTreeSet<_> = rows(section(&text, "Presets")).iter().map(|row| row[..5].join(" | ")).collect();
    let made = presets().iter().map(|preset| format!("`{}` | {}", preset.name, words(preset).join(" | ")));
    assert_eq!(told, made.collect());
}

#[test]
fn the_functions_of_a_policy_are_told() {
    let text = read("docs/policies.md");
    let asked = rows(section(&text, "The choices"));
    let told: BTreeSet<_> = asked
        .iter()
        .flat_map(|row| code(row[0]))
        .filter_map(|name| Some(name.split_once('(')?.0.to_owned()))
        .collect();
    let source = read("crates/sched/src/policy.rs");
    let there = source.split("pub const fn ").skip(1).filter_map(|rest| rest.split('(').next());
    assert_eq!(told, set(there));
}

#[test]
fn what_is_pulled_when_is_told() {
    let occasions = [
        (
            "Preempted",
            vec![Occasion::Preempted { in_kernel: true }, Occasion::Preempted { in_kernel: false }],
        ),
        ("Spin", vec![Occasion::Spin]),
        ("Interrupt", vec![Occasion::Interrupt]),
        (
            "Starved",
            [(true, true), (true, false), (false, true), (false, false)]
                .map(|(asleep, in_kernel)| Occasion::Starved { asleep, in_kernel })
                .to_vec(),
        ),
        ("Idle", vec![Occasion::Idle]),
    ];
    let policies = ["spumone-on-demand", "ainori", "balance", "spumone-trap-based"];
    let text = read("docs/policies.md");
    let rows = rows(section(&text, "The choices"));
    for (name, variants) in occasions {
        let row = rows.iter().find(|row| row[0] == format!("`{name}`")).expect(name);
        for (cell, policy) in row[2..].iter().zip(policies) {
            let policy = Policy::preset(policy, 1, 1).unwrap();
            let pulled: Vec<_> = variants.iter().map(|occasion| policy.pulls(*occasion)).collect();
            let (some, every) = (pulled.contains(&true), !pulled.contains(&false));
            assert!(cell.starts_with(if some { "pulled" } else { "stays" }), "{name}: {cell}");
            assert!(some == every || cell.contains(" if "), "{name}: {cell}");
        }
    }
}

#[test]
fn the_sbi_extensions_are_those_that_are_answered() {
    let text = read("docs/guests.md");
    let told = rows(section(&text, "SBI")).into_iter().filter_map(|row| {
        let (name, id) = row[0].split_once(" (`0x")?;
        let id = u64::from_str_radix(id.split('`').next()?, 16).ok()?;
        Some((name.to_uppercase(), id))
    });
    let mut answered: BTreeSet<_> = ainori_sbi::EXTENSIONS.map(|(name, id)| (name.to_owned(), id)).into();
    answered.insert(("LEGACY".to_owned(), 0));
    let told: BTreeSet<_> = told.collect();
    assert_eq!(told, answered);
    for (name, id) in told {
        const PROBE: u64 = 3;
        assert_eq!(ainori_sbi::base(PROBE, id), Ok(1), "{name} is there");
    }
}

#[test]
fn the_functions_of_our_own_extension_are_those_of_the_header() {
    let (text, header) = (read("docs/guests.md"), read("guests/common/ainori_sbi.h"));
    let numbers = header.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        Some(words.get(2).filter(|_| words[0] == "#define")?.to_string())
            .filter(|value| !value.starts_with("0x"))
    });
    let told = rows(section(&text, "SBI")).into_iter().map(|row| row[0].to_owned());
    assert_eq!(told.filter(|id| id.parse::<u8>().is_ok()).collect::<Vec<_>>(), numbers.collect::<Vec<_>>());
}

#[test]
fn the_causes_of_exits_are_those_that_are_counted() {
    let text = read("docs/cli.md");
    let told: Vec<_> = rows(section(&text, "Causes of exits")).iter().flat_map(|row| code(row[0])).collect();
    assert_eq!(told, Exit::NAMES);
}

#[test]
fn the_kinds_of_trace_records_are_told() {
    let text = read("docs/manifest.md");
    let (_, kinds) = text.split_once("\nKinds: ").unwrap();
    let told = code(kinds.split("\n\n").next().unwrap());
    assert_eq!(set(told), set(Mask::names()));
}

#[test]
fn the_keys_of_a_manifest_are_those_that_are_read() {
    let (text, source) = (read("docs/manifest.md"), read("crates/manifest/src/host/schema.rs"));
    let tables = [
        "Top level",
        "`policy`",
        "`[board]`",
        "`[[guest]]`",
        "`[[guest.load]]`",
        "`[[guest.task]]`",
        "`[[window]]`",
        "`[[channel]]`",
        "`[[disk]]`",
        "`[[network]]`",
        "`[console]`",
        "`[run]`",
        "`[trace]`",
    ];
    let told = tables
        .iter()
        .flat_map(|heading| rows(section(&text, heading)))
        .map(|row| code(row[0]).next().unwrap().trim_matches(['[', ']']).to_owned());
    let read = [".optional(\"", ".required(\"", ".get(\""]
        .iter()
        .flat_map(|call| source.split(call).skip(1).filter_map(|rest| rest.split('"').next()));
    assert_eq!(told.collect::<BTreeSet<_>>(), set(read));
}

#[test]
fn the_limits_of_a_manifest_are_told() {
    use ainori_limits::*;
    use ainori_manifest::config::*;
    let text = read("docs/manifest.md");
    let has = |what: String| assert!(text.contains(&what), "{what} is not in docs/manifest.md");
    has(format!("| required, 1 to {MAX_GUESTS} |"));
    let words = |room: Room| (room.harts, room.vcpus, room.guest_vcpus);
    let (harts, vcpus, guest_vcpus) = words(Room::LARGE);
    has(format!("| 1 to {harts}. Hart ids"));
    has(format!("| 1 to {guest_vcpus}; at most {vcpus} in all guests together |"));
    has(format!("more than {MAX_GUESTS} guests or {vcpus} vCPUs"));
    let (harts, vcpus, guest_vcpus) = words(Room::USUAL);
    has(format!("has room for {harts} harts, {vcpus} vCPUs, and {guest_vcpus} vCPUs of one guest"));
    has(format!("| 0 to {}; the higher one", PRIORITIES - 1));
    has(format!("| 1 to {MAX_RESTART_LIMIT}: at most"));
    has(format!("its tasks and their deadlines, at most {}, see [below]", ainori_manifest::Task::MAX_COUNT));
    has(format!("| {MIN_QUANTUM_US} us to 10 s;"));
    has(format!("| 0 us to {MAX_ADVANCE_US} us;"));
    has(format!("| 1 us to {} ms;", MAX_GRACE_US / 1000));
    has(format!("1 us to {} s;", MAX_RESTART_INTERVAL_US / 1_000_000));
}

#[test]
fn limits_are_told_elsewhere_too() {
    use ainori_limits::*;
    let has = |page: &str, what: String| assert!(read(page).contains(&what), "{what} is not in {page}");
    has("docs/boards.md", format!("with 1 to {MAX_HARTS} harts"));
    has("docs/boards.md", format!("({MAX_VCPUS} at most, {} in the large build)", Room::LARGE.vcpus));
    has("docs/boards.md", format!("\n   {IRQ_SOURCES} or above"));
    has("docs/decisions.md", format!("a stack of {} KiB", STACK_SIZE >> 10));
    has("docs/decisions.md", format!("more than {MAX_GUEST_VCPUS} vCPUs in one guest"));
    has("docs/decisions.md", format!("has {PLIC_CONTEXTS} contexts"));
    has("docs/guests.md", format!("{} sources, priorities 0 to {PLIC_PRIORITY}", IRQ_SOURCES - 1));
    has("docs/policies.md", format!("{PRIORITIES} levels"));
    has("docs/trap.md", format!("with {MAX_GUEST_VCPUS} vCPUs it sends"));
    has("docs/trap.md", format!("a priority of {PRIORITIES} or more"));
    has("guests/fuzz/README.md", format!("1 to {MAX_GUEST_VCPUS} vCPUs"));
    has("tests/README.md", format!("1 to {MAX_GUEST_VCPUS} vCPUs"));
}

/// Pages that list all files of a folder name each of them.
#[test]
fn lists_of_files_are_whole() {
    let lists = [
        ("experiments/README.md", "experiments", ".toml"),
        ("guests/linux/README.md", "guests/linux/jobs", ""),
        ("guests/linux/README.md", "guests/linux/userland/jobs", ""),
        ("docs/README.md", "docs", ".md"),
    ];
    for (page, folder, suffix) in lists {
        let text = read(page);
        for entry in fs::read_dir(checkout(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let Some(name) = name.strip_suffix(suffix).filter(|name| *name != "README") else { continue };
            let is_named = [format!("`{name}`"), format!("[{name}]"), format!("({name}.md)")];
            assert!(is_named.iter().any(|way| text.contains(way)), "{page} doesn't name {name}");
        }
    }
}

#[test]
fn lists_of_probes_and_attacks_are_whole() {
    let rules = read("guests/probes/Makefile").replace("\\\n", " ");
    let named = |variable: &str| {
        let line = rules.lines().find(|line| line.starts_with(variable)).expect(variable).to_owned();
        line.split(":=").nth(1).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let text = read("guests/probes/README.md");
    let rows = rows(&text);
    let told = rows.iter().flat_map(|row| code(row[0]));
    assert_eq!(set(told), set([named("PROBES"), named("PIE ")].concat()));

    let source = read("guests/fuzz/attacks.c");
    let names = source.lines().find(|line| line.contains("attack_names[] =")).unwrap();
    let text = read("guests/fuzz/README.md");
    let (_, told) = text.split_once("\nAttacks: ").unwrap();
    let told = told.split("\n\n").next().unwrap();
    for name in names.split('"').skip(1).step_by(2).filter(|name| *name != "none") {
        assert!(told.contains(&format!("`{name}`")), "guests/fuzz/README.md doesn't name {name}");
    }
}

/// The bound that docs/trap.md tells of the RTOS's path is the one that its test has.
#[test]
fn a_path_that_is_told_has_its_budget() {
    let text = read("docs/trap.md");
    let budgets: toml::Table = read("tests/budgets.toml").parse().unwrap();
    let of = |name: &str| {
        let mut all = budgets["budget"].as_array().unwrap().iter();
        let found = all.find(|budget| budget["name"].as_str() == Some(name)).unwrap();
        found["instructions"].as_integer().unwrap()
    };
    let told = format!("The first line's is {} instructions", of("RTOS dispatch"));
    assert!(text.contains(&told), "{told}: not in docs/trap.md");
}

#[path = "docs/figures.rs"]
mod figures;
