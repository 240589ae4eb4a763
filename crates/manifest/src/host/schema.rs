//! The manifest's keys, read one by one. Nothing is compared with anything else here: that is [`super::rules`].
use super::{
    Clock,
    findings::{Finding, Span},
    reader::{Address, At, FromToml, Micros, Size, Table, suggest},
};
use crate::config::{Kind, OnWildAccess, Restart};
use toml::de::{DeTable, DeValue};

/// A manifest with whatever of it could be read.
#[derive(Debug, Default)]
pub struct Draft {
    pub name: Option<At<String>>,
    pub policy: PolicyDraft,
    pub board: BoardDraft,
    pub console_input: Option<At<String>>,
    pub guests: Vec<GuestDraft>,
    pub trace: Option<TraceDraft>,
    pub run: RunDraft,
}

/// `policy`.
#[derive(Debug, Default)]
pub struct PolicyDraft {
    pub preset: Option<At<String>>,
    pub quantum: Option<At<Micros>>,
    pub grace: Option<At<Micros>>,
    pub advance: Option<At<Micros>>,
}

/// `[board]`.
#[derive(Debug, Default)]
pub struct BoardDraft {
    pub machine: Option<At<String>>,
    pub cpu: Option<At<String>>,
    pub harts: Option<At<u32>>,
    pub memory: Option<At<Size>>,
}

/// `[[guest]]`.
#[derive(Debug)]
pub struct GuestDraft {
    /// Where its header stands.
    pub span: Span,
    pub name: Option<At<String>>,
    pub kind: Option<At<Kind>>,
    pub image: Option<At<String>>,
    pub load_address: Option<At<Address>>,
    pub entry: Option<At<Address>>,
    pub initrd: Option<At<String>>,
    pub args: Option<At<String>>,
    pub memory: Option<At<Size>>,
    pub vcpus: Option<At<u32>>,
    pub harts: Option<At<Vec<At<u32>>>>,
    pub priority: Option<At<u32>>,
    pub devices: Vec<At<String>>,
    pub background: Option<At<bool>>,
    pub restart: Option<At<Restart>>,
    pub restart_limit: Option<At<u32>>,
    pub restart_interval: Option<At<Micros>>,
    pub on_wild_access: Option<At<OnWildAccess>>,
}

/// `[trace]`.
#[derive(Debug)]
pub struct TraceDraft {
    pub mask: Option<At<Vec<At<String>>>>,
    pub records: Option<At<u32>>,
}

/// `[run]`.
#[derive(Debug, Default)]
pub struct RunDraft {
    pub clock: Option<At<Clock>>,
    pub time_limit: Option<At<Micros>>,
}

/// Reads a value that is one of some names; `what` they name is for messages.
fn choose<T: Copy>(
    value: &DeValue<'_>,
    span: Span,
    what: &str,
    names: &[(&str, T)],
    findings: &mut Vec<Finding>,
) -> Option<T> {
    let found = value.as_str()?;
    let known = names.iter().find(|(name, _)| *name == found);
    if known.is_none() {
        let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        findings
            .push(Finding::at(span, format!("there is no {what} {found:?}")).help(suggest(found, &names)));
    }
    known.map(|(_, value)| *value)
}

impl FromToml for Clock {
    const EXPECTED: &'static str = "\"host\", \"icount\" or \"lockstep\"";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let names = [("host", Self::Host), ("icount", Self::Icount), ("lockstep", Self::Lockstep)];
        choose(value, span, "clock", &names, findings)
    }
}

impl FromToml for Kind {
    const EXPECTED: &'static str = "\"linux\", \"elf\" or \"raw\"";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let names = [("linux", Self::Linux), ("elf", Self::Elf), ("raw", Self::Raw)];
        choose(value, span, "guest kind", &names, findings)
    }
}

impl FromToml for OnWildAccess {
    const EXPECTED: &'static str = "\"trap\" or \"stop\"";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let names = [("trap", Self::Trap), ("stop", Self::Stop)];
        choose(value, span, "answer to wild accesses", &names, findings)
    }
}

impl FromToml for Restart {
    const EXPECTED: &'static str = "\"never\", \"on-failure\" or \"always\"";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        match value.as_str()? {
            "never" => Some(Self::Never),
            "on-failure" => Some(Self::OnFailure),
            "always" => Some(Self::Always),
            other => {
                let message = format!("a guest can't be restarted {other:?}");
                findings.push(
                    Finding::at(span, message).help(suggest(other, &["never", "on-failure", "always"])),
                );
                None
            }
        }
    }
}

impl Draft {
    /// Reads the text of a manifest; what is wrong with it goes to `findings`.
    pub fn read(text: &str, findings: &mut Vec<Finding>) -> Self {
        let (root, errors) = DeTable::parse_recoverable(text);
        let is_repetition = |error: &toml::de::Error| error.message() == "duplicate key";
        if let Some(guest) = root.get_ref().get("guest").filter(|guest| guest.get_ref().is_table())
            && !errors.is_empty()
            && errors.iter().all(is_repetition)
        {
            // Beside a [[guest]] or another [guest]: what seems to be there twice seems so because of the brackets.
            findings.push(not_a_list(guest.span()));
            return Self::default();
        }
        findings.extend(errors.iter().map(|error| {
            let span = error.span().unwrap_or(0..0);
            if is_repetition(error) {
                let key = text.get(span.clone()).unwrap_or_default();
                return Finding::at(span, format!("the key `{key}` is here a second time"))
                    .saying("the second time")
                    .help("a table has each key once: remove one of the two");
            }
            Finding::at(span, format!("this is not TOML: {}", error.message())).help("see https://toml.io")
        }));
        // What follows a syntax error may have been misread: checking it would only add noise. Of a key that is there twice the first counts meanwhile.
        if !errors.iter().all(is_repetition) {
            return Self::default();
        }
        let keys = ["name", "policy", "board", "console", "guest", "trace", "run"];
        let root = Table::open(root.get_ref(), 0..0, "the manifest", &keys, findings);
        Self {
            name: root.optional("name", findings),
            policy: read_policy(&root, findings),
            board: read_board(&root, findings),
            console_input: root
                .get("console")
                .and_then(|value| Table::open_value(value, "[console]", &["input"], findings))
                .and_then(|table| table.optional("input", findings)),
            guests: read_guests(&root, findings),
            trace: root.get("trace").and_then(|value| {
                let table = Table::open_value(value, "[trace]", &["mask", "records"], findings)?;
                Some(TraceDraft {
                    mask: table.optional("mask", findings),
                    records: table.optional("records", findings),
                })
            }),
            run: read_run(&root, findings),
        }
    }
}

fn read_run(root: &Table<'_>, findings: &mut Vec<Finding>) -> RunDraft {
    let keys = ["clock", "time_limit"];
    let Some(table) = root.get("run").and_then(|value| Table::open_value(value, "[run]", &keys, findings))
    else {
        return RunDraft::default();
    };
    RunDraft { clock: table.optional("clock", findings), time_limit: table.optional("time_limit", findings) }
}

/// `policy = "NAME"` or `policy = { preset = "NAME", quantum = "10ms" }`.
fn read_policy(root: &Table<'_>, findings: &mut Vec<Finding>) -> PolicyDraft {
    match root.get("policy") {
        Some(value) if value.get_ref().is_table() => {
            let keys = ["preset", "quantum", "grace", "advance"];
            let Some(table) = Table::open_value(value, "policy", &keys, findings) else {
                return PolicyDraft::default();
            };
            PolicyDraft {
                preset: table.optional("preset", findings),
                quantum: table.optional("quantum", findings),
                grace: table.optional("grace", findings),
                advance: table.optional("advance", findings),
            }
        }
        _ => PolicyDraft { preset: root.optional("policy", findings), ..PolicyDraft::default() },
    }
}

fn read_board(root: &Table<'_>, findings: &mut Vec<Finding>) -> BoardDraft {
    let Some(value) = root.get("board") else {
        findings.push(
            Finding::of_file("the manifest has no [board]")
                .help("add a table [board] with machine = \"qemu-virt\", harts = 4, memory = \"2GiB\""),
        );
        return BoardDraft::default();
    };
    let keys = ["machine", "cpu", "harts", "memory"];
    let Some(table) = Table::open_value(value, "[board]", &keys, findings) else {
        return BoardDraft::default();
    };
    BoardDraft {
        machine: table.required("machine", "\"qemu-virt\"", findings),
        cpu: table.optional("cpu", findings),
        harts: table.required("harts", "4", findings),
        memory: table.required("memory", "\"2GiB\"", findings),
    }
}

fn not_a_list(guest: Span) -> Finding {
    Finding::at(guest, "`guest` must be a list of tables").help("write [[guest]] with two brackets")
}

fn read_guests(root: &Table<'_>, findings: &mut Vec<Finding>) -> Vec<GuestDraft> {
    let Some(value) = root.get("guest") else {
        findings.push(Finding::of_file("the manifest has no guest").help("add a [[guest]]"));
        return Vec::new();
    };
    let Some(items) = value.get_ref().as_array() else {
        findings.push(not_a_list(value.span()));
        return Vec::new();
    };
    let keys = [
        "name",
        "kind",
        "image",
        "load_address",
        "entry",
        "initrd",
        "args",
        "memory",
        "vcpus",
        "harts",
        "priority",
        "devices",
        "background",
        "restart",
        "restart_limit",
        "restart_interval",
        "on_wild_access",
    ];
    if items.is_empty() {
        findings.push(Finding::at(value.span(), "the manifest has no guest").help("add a [[guest]]"));
    }
    let mut guests = Vec::new();
    for item in items.iter() {
        let Some(table) = Table::open_value(item, "[[guest]]", &keys, findings) else { continue };
        guests.push(GuestDraft {
            span: table.span.clone(),
            name: table.required("name", "\"linux\"", findings),
            kind: table.required("kind", Kind::EXPECTED, findings),
            image: table.required("image", "\"path/to/Image\"", findings),
            load_address: table.optional("load_address", findings),
            entry: table.optional("entry", findings),
            initrd: table.optional("initrd", findings),
            args: table.optional("args", findings),
            memory: table.required("memory", "\"512MiB\"", findings),
            vcpus: table.optional("vcpus", findings),
            harts: table.optional("harts", findings),
            priority: table.optional("priority", findings),
            devices: table.optional("devices", findings).map_or_else(Vec::new, |list: At<_>| list.value),
            background: table.optional("background", findings),
            restart: table.optional("restart", findings),
            restart_limit: table.optional("restart_limit", findings),
            restart_interval: table.optional("restart_interval", findings),
            on_wild_access: table.optional("on_wild_access", findings),
        });
    }
    guests
}
