//! The manifest's keys, read one by one. Nothing is compared with anything else here: that is [`super::rules`].
use super::{
    Clock, Interrupts,
    findings::{Finding, Span},
    reader::{self, Address, At, ByHart, FromToml, Lost, Micros, Size, Table, suggest},
};
use crate::config::{Kind, OnWildAccess, Restart, ShadowReclaim, ShadowSpaces};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

const ROOT: reader::Kind = reader::Kind {
    name: "the manifest",
    place: "the manifest itself, above its first [table]",
    keys: &[
        "name", "policy", "board", "console", "guest", "window", "channel", "disk", "network", "trace", "run",
    ],
};
const POLICY: reader::Kind = reader::Kind {
    name: "policy",
    place: "policy = { ... }",
    keys: &["preset", "quantum", "grace", "advance", "major_frame"],
};
const BOARD: reader::Kind = reader::Kind {
    name: "[board]",
    place: "[board]",
    keys: &["machine", "cpu", "harts", "memory", "interrupts"],
};
const GUEST: reader::Kind = reader::Kind {
    name: "[[guest]]",
    place: "[[guest]]",
    keys: &[
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
        "priority_on",
        "weight",
        "devices",
        "background",
        "restart",
        "restart_limit",
        "restart_interval",
        "on_wild_access",
        "translation",
        "shadow_tables",
        "shadow_reclaim",
        "breakpoints",
        "memory_at",
        "trusts",
        "watchdog",
        "load",
        "dma",
        "shutdown",
        "task",
    ],
};
const LOAD: reader::Kind =
    reader::Kind { name: "[[guest.load]]", place: "[[guest.load]]", keys: &["file", "address"] };
const TASK: reader::Kind = reader::Kind {
    name: "[[guest.task]]",
    place: "[[guest.task]]",
    keys: &[
        "name",
        "period",
        "execution",
        "deadline",
        "priority",
        "hart",
        "jitter",
        "blocking",
        "remote_blocking",
        "handler",
    ],
};
const WINDOW: reader::Kind =
    reader::Kind { name: "[[window]]", place: "[[window]]", keys: &["guest", "hart", "start", "length"] };
const CHANNEL: reader::Kind =
    reader::Kind { name: "[[channel]]", place: "[[channel]]", keys: &["guests", "size"] };
const DISK: reader::Kind = reader::Kind {
    name: "[[disk]]",
    place: "[[disk]]",
    keys: &["guest", "file", "format", "read_only", "snapshot"],
};
const NETWORK: reader::Kind =
    reader::Kind { name: "[[network]]", place: "[[network]]", keys: &["guest", "mac", "forward"] };
const CONSOLE: reader::Kind = reader::Kind { name: "[console]", place: "[console]", keys: &["input"] };
const TRACE: reader::Kind = reader::Kind { name: "[trace]", place: "[trace]", keys: &["mask", "records"] };
const RUN: reader::Kind = reader::Kind { name: "[run]", place: "[run]", keys: &["clock", "time_limit"] };
/// All of them: a key may stand in the wrong one.
const KINDS: [&reader::Kind; 13] = [
    &ROOT, &POLICY, &BOARD, &GUEST, &LOAD, &TASK, &WINDOW, &CHANNEL, &DISK, &NETWORK, &CONSOLE, &TRACE, &RUN,
];

/// A manifest with whatever of it could be read.
#[derive(Debug, Default)]
pub struct Draft {
    pub name: Option<At<String>>,
    pub policy: PolicyDraft,
    pub board: BoardDraft,
    pub console_input: Option<At<String>>,
    pub guests: Vec<GuestDraft>,
    pub windows: Vec<WindowDraft>,
    /// It has windows, of which some couldn't be read.
    pub windows_are_wrong: bool,
    pub channels: Vec<ChannelDraft>,
    /// It has channels, of which some couldn't be read.
    pub channels_are_wrong: bool,
    pub disks: Vec<DiskDraft>,
    pub networks: Vec<NetworkDraft>,
    /// It has disks or networks, of which some couldn't be read.
    pub virtio_is_wrong: bool,
    pub trace: Option<TraceDraft>,
    pub run: RunDraft,
}

/// `policy`.
#[derive(Debug, Default)]
pub struct PolicyDraft {
    pub preset: Option<At<String>>,
    /// It says a preset, but nobody knows which.
    pub is_lost: bool,
    pub quantum: Option<At<Micros>>,
    pub grace: Option<At<Micros>>,
    pub advance: Option<At<Micros>>,
    pub major_frame: Option<At<Micros>>,
    /// It says a frame, but nobody knows which.
    pub frame_is_lost: bool,
}

/// `[board]`.
#[derive(Debug, Default)]
pub struct BoardDraft {
    pub machine: Option<At<String>>,
    pub cpu: Option<At<String>>,
    pub harts: Option<At<u32>>,
    pub memory: Option<At<Size>>,
    pub interrupts: Option<At<Interrupts>>,
}

/// `[[guest]]`.
#[derive(Debug)]
pub struct GuestDraft {
    /// Where its header stands.
    pub span: Span,
    /// Keys of which nobody knows what they say.
    pub lost: Lost,
    /// There is an error in it.
    pub is_wrong: bool,
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
    pub priority_on: Option<At<ByHart<u32>>>,
    pub weight: Option<At<u32>>,
    pub devices: Vec<At<String>>,
    pub background: Option<At<bool>>,
    pub restart: Option<At<Restart>>,
    pub restart_limit: Option<At<u32>>,
    pub restart_interval: Option<At<Micros>>,
    pub on_wild_access: Option<At<OnWildAccess>>,
    pub translation: Option<At<TranslationDraft>>,
    pub shadow_tables: Option<At<u32>>,
    pub shadow_reclaim: Option<At<ShadowReclaim>>,
    pub breakpoints: Option<At<bool>>,
    pub memory_at: Option<At<Address>>,
    pub trusts: Vec<At<String>>,
    pub watchdog: Option<At<Micros>>,
    pub loads: Vec<LoadDraft>,
    pub dma: Option<At<Dma>>,
    pub shutdown: Option<At<Micros>>,
    pub tasks: Vec<TaskDraft>,
}

/// `translation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranslationDraft {
    /// `two-stage`.
    TwoStage,
    /// With shadow tables, for so many address spaces.
    Shadow(ShadowSpaces),
    /// `none`.
    None,
}

/// `[[guest.load]]`.
#[derive(Debug)]
pub struct LoadDraft {
    pub file: Option<At<String>>,
    pub address: Option<At<Address>>,
}

/// `dma`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dma {
    /// Nothing confines the guest's devices: whoever reads the manifest trusts its drivers.
    Trusted,
}

/// `[[guest.task]]`.
#[derive(Debug)]
pub struct TaskDraft {
    /// Where its header stands.
    pub span: Span,
    /// Keys of which nobody knows what they say.
    pub lost: Lost,
    pub name: Option<At<String>>,
    pub period: Option<At<Micros>>,
    pub execution: Option<At<Micros>>,
    pub deadline: Option<At<Micros>>,
    pub priority: Option<At<u32>>,
    pub hart: Option<At<u32>>,
    pub jitter: Option<At<Micros>>,
    pub blocking: Option<At<Micros>>,
    pub remote_blocking: Option<At<Micros>>,
    pub handler: Option<At<bool>>,
}

/// `[[window]]`.
#[derive(Debug)]
pub struct WindowDraft {
    /// Where its header stands.
    pub span: Span,
    pub guest: Option<At<String>>,
    pub hart: Option<At<u32>>,
    pub start: Option<At<Micros>>,
    pub length: Option<At<Micros>>,
}

/// `[[channel]]`.
#[derive(Debug)]
pub struct ChannelDraft {
    /// Where its header stands.
    pub span: Span,
    /// There is an error in it.
    pub is_wrong: bool,
    pub guests: Option<At<Vec<At<String>>>>,
    pub size: Option<At<Size>>,
}

/// `[[disk]]`.
#[derive(Debug)]
pub struct DiskDraft {
    /// Where its header stands.
    pub span: Span,
    pub guest: Option<At<String>>,
    pub file: Option<At<String>>,
    pub read_only: Option<At<bool>>,
    pub snapshot: Option<At<bool>>,
}

/// `format` of a disk: how its contents are in the file. There is one only, as they are: in others a guest could write what makes the emulator open
/// files of its choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DiskFormat;

/// `[[network]]`.
#[derive(Debug)]
pub struct NetworkDraft {
    /// Where its header stands.
    pub span: Span,
    pub guest: Option<At<String>>,
    pub mac: Option<At<String>>,
    pub forward: Vec<At<String>>,
}

/// `[trace]`.
#[derive(Debug)]
pub struct TraceDraft {
    /// There is an error in it.
    pub is_wrong: bool,
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

impl FromToml for Interrupts {
    const EXPECTED: &'static str = "\"plic\", \"aplic\" or \"imsic\"";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let names = [("plic", Self::Plic), ("aplic", Self::Aplic), ("imsic", Self::Imsic)];
        choose(value, span, "interrupt controller", &names, findings)
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

impl FromToml for TranslationDraft {
    const EXPECTED: &'static str = "\"two-stage\", \"shadow-single\", \"shadow-multi\" or \"none\"";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let names = [
            ("two-stage", Self::TwoStage),
            ("shadow-single", Self::Shadow(ShadowSpaces::Single)),
            ("shadow-multi", Self::Shadow(ShadowSpaces::Multi)),
            ("none", Self::None),
        ];
        choose(value, span, "translation", &names, findings)
    }
}

impl FromToml for Dma {
    const EXPECTED: &'static str = "\"trusted\"";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        choose(
            value,
            span,
            "way to let a guest's devices reach memory",
            &[("trusted", Self::Trusted)],
            findings,
        )
    }
}

impl FromToml for DiskFormat {
    const EXPECTED: &'static str = "\"raw\"";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        choose(value, span, "format of disks", &[("raw", Self)], findings)
    }
}

impl FromToml for ShadowReclaim {
    const EXPECTED: &'static str = "\"fifo\" or \"page-directory-lru\"";

    fn read(value: &DeValue<'_>, span: Span, findings: &mut Vec<Finding>) -> Option<Self> {
        let names = [("fifo", Self::Fifo), ("page-directory-lru", Self::PageDirectoryLru)];
        choose(value, span, "reclamation of shadow tables", &names, findings)
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
        let mut root = Table::open(root.get_ref(), 0..0, &ROOT, &KINDS, findings);
        let before = findings.len();
        let channels = read_list(root.get("channel"), "channel", "[[channel]]", read_channel, findings);
        let channels_are_wrong = findings.len() > before || root.lost.has("channel");
        let before = findings.len();
        let disks = read_list(root.get("disk"), "disk", "[[disk]]", read_disk, findings);
        let networks = read_list(root.get("network"), "network", "[[network]]", read_network, findings);
        let virtio_is_wrong = findings.len() > before || root.lost.has("disk") || root.lost.has("network");
        let before = findings.len();
        let windows = read_list(root.get("window"), "window", "[[window]]", read_window, findings);
        let windows_are_wrong = findings.len() > before || root.lost.has("window");
        Self {
            name: root.optional("name", findings),
            policy: read_policy(&mut root, findings),
            board: read_board(&root, findings),
            console_input: root
                .get("console")
                .and_then(|value| open(value, &CONSOLE, findings))
                .and_then(|mut table| table.optional("input", findings)),
            guests: read_guests(&root, findings),
            windows,
            windows_are_wrong,
            channels,
            channels_are_wrong,
            disks,
            networks,
            virtio_is_wrong,
            trace: root.get("trace").and_then(|value| read_trace(value, findings)),
            run: read_run(&root, findings),
        }
    }
}

fn open<'a>(
    value: &'a Spanned<DeValue<'a>>,
    kind: &'static reader::Kind,
    findings: &mut Vec<Finding>,
) -> Option<Table<'a>> {
    Table::open_value(value, kind, &KINDS, findings)
}

fn read_trace(value: &Spanned<DeValue<'_>>, findings: &mut Vec<Finding>) -> Option<TraceDraft> {
    let before = findings.len();
    let mut table = open(value, &TRACE, findings)?;
    let (mask, records) = (table.optional("mask", findings), table.optional("records", findings));
    Some(TraceDraft { is_wrong: findings.len() > before, mask, records })
}

fn read_run(root: &Table<'_>, findings: &mut Vec<Finding>) -> RunDraft {
    let Some(mut table) = root.get("run").and_then(|value| open(value, &RUN, findings)) else {
        return RunDraft::default();
    };
    RunDraft { clock: table.optional("clock", findings), time_limit: table.optional("time_limit", findings) }
}

/// The name of a preset where a table could stand as well.
struct Preset(String);

impl FromToml for Preset {
    const EXPECTED: &'static str = "a string, or a table such as { preset = \"ainori\" }";

    fn read(value: &DeValue<'_>, _: Span, _: &mut Vec<Finding>) -> Option<Self> {
        value.as_str().map(|name| Self(name.to_owned()))
    }
}

/// `policy = "NAME"` or `policy = { preset = "NAME", quantum = "10ms" }`.
fn read_policy(root: &mut Table<'_>, findings: &mut Vec<Finding>) -> PolicyDraft {
    match root.get("policy") {
        Some(value) if value.get_ref().is_table() => {
            let Some(mut table) = open(value, &POLICY, findings) else {
                return PolicyDraft::default();
            };
            let draft = PolicyDraft {
                preset: table.optional("preset", findings),
                quantum: table.optional("quantum", findings),
                grace: table.optional("grace", findings),
                advance: table.optional("advance", findings),
                major_frame: table.optional("major_frame", findings),
                ..PolicyDraft::default()
            };
            let Table { lost, .. } = table;
            PolicyDraft { is_lost: lost.has("preset"), frame_is_lost: lost.has("major_frame"), ..draft }
        }
        _ => {
            let name = root.optional("policy", findings);
            PolicyDraft {
                preset: name.map(|At { value: Preset(value), span }| At { value, span }),
                is_lost: root.lost.has("policy") || root.has_below("policy"),
                ..PolicyDraft::default()
            }
        }
    }
}

fn read_board(root: &Table<'_>, findings: &mut Vec<Finding>) -> BoardDraft {
    if root.lacks("board") {
        findings.push(
            Finding::of_file("the manifest has no [board]")
                .help("add a table [board] with machine = \"qemu-virt\", harts = 4, memory = \"2GiB\""),
        );
    }
    let Some(mut table) = root.get("board").and_then(|value| open(value, &BOARD, findings)) else {
        return BoardDraft::default();
    };
    BoardDraft {
        machine: table.required("machine", "\"qemu-virt\"", findings),
        cpu: table.optional("cpu", findings),
        harts: table.required("harts", "4", findings),
        memory: table.required("memory", "\"2GiB\"", findings),
        interrupts: table.optional("interrupts", findings),
    }
}

fn not_a_list(guest: Span) -> Finding {
    Finding::at(guest, "`guest` must be a list of tables").help("write [[guest]] with two brackets")
}

fn read_guests(root: &Table<'_>, findings: &mut Vec<Finding>) -> Vec<GuestDraft> {
    if root.lacks("guest") {
        findings.push(Finding::of_file("the manifest has no guest").help("add a [[guest]]"));
    }
    let Some(value) = root.get("guest") else { return Vec::new() };
    let Some(items) = value.get_ref().as_array() else {
        findings.push(not_a_list(value.span()));
        return Vec::new();
    };
    if items.is_empty() {
        findings.push(Finding::at(value.span(), "the manifest has no guest").help("add a [[guest]]"));
    }
    items.iter().filter_map(|item| read_guest(item, findings)).collect()
}

fn read_guest(item: &Spanned<DeValue<'_>>, findings: &mut Vec<Finding>) -> Option<GuestDraft> {
    let before = findings.len();
    let mut table = open(item, &GUEST, findings)?;
    let draft = GuestDraft {
        span: table.span.clone(),
        lost: Lost::default(),
        is_wrong: false,
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
        priority_on: table.optional("priority_on", findings),
        weight: table.optional("weight", findings),
        devices: table.optional("devices", findings).map_or_else(Vec::new, |list: At<_>| list.value),
        background: table.optional("background", findings),
        restart: table.optional("restart", findings),
        restart_limit: table.optional("restart_limit", findings),
        restart_interval: table.optional("restart_interval", findings),
        on_wild_access: table.optional("on_wild_access", findings),
        translation: table.optional("translation", findings),
        shadow_tables: table.optional("shadow_tables", findings),
        shadow_reclaim: table.optional("shadow_reclaim", findings),
        breakpoints: table.optional("breakpoints", findings),
        memory_at: table.optional("memory_at", findings),
        trusts: table.optional("trusts", findings).map_or_else(Vec::new, |list: At<_>| list.value),
        watchdog: table.optional("watchdog", findings),
        loads: read_list(table.get("load"), "load", "[[guest.load]]", read_load, findings),
        dma: table.optional("dma", findings),
        shutdown: table.optional("shutdown", findings),
        tasks: read_list(table.get("task"), "task", "[[guest.task]]", read_task, findings),
    };
    Some(GuestDraft { lost: table.lost, is_wrong: findings.len() > before, ..draft })
}

fn read_channel(item: &Spanned<DeValue<'_>>, findings: &mut Vec<Finding>) -> Option<ChannelDraft> {
    let before = findings.len();
    let mut table = open(item, &CHANNEL, findings)?;
    let guests = table.required("guests", "[\"freertos\", \"linux\"]", findings);
    let size = table.required("size", "\"64KiB\"", findings);
    Some(ChannelDraft { span: table.span, is_wrong: findings.len() > before, guests, size })
}

fn read_disk(item: &Spanned<DeValue<'_>>, findings: &mut Vec<Finding>) -> Option<DiskDraft> {
    let mut table = open(item, &DISK, findings)?;
    let _: Option<At<DiskFormat>> = table.optional("format", findings);
    Some(DiskDraft {
        span: table.span.clone(),
        guest: table.required("guest", "\"linux\"", findings),
        file: table.required("file", "\"disk.img\"", findings),
        read_only: table.optional("read_only", findings),
        snapshot: table.optional("snapshot", findings),
    })
}

fn read_network(item: &Spanned<DeValue<'_>>, findings: &mut Vec<Finding>) -> Option<NetworkDraft> {
    let mut table = open(item, &NETWORK, findings)?;
    Some(NetworkDraft {
        span: table.span.clone(),
        guest: table.required("guest", "\"linux\"", findings),
        mac: table.optional("mac", findings),
        forward: table.optional("forward", findings).map_or_else(Vec::new, |list: At<_>| list.value),
    })
}

/// A list of tables, which may be empty; `written` is how one is begun.
fn read_list<T>(
    value: Option<&Spanned<DeValue<'_>>>,
    key: &str,
    written: &str,
    read: fn(&Spanned<DeValue<'_>>, &mut Vec<Finding>) -> Option<T>,
    findings: &mut Vec<Finding>,
) -> Vec<T> {
    let Some(value) = value else { return Vec::new() };
    let Some(items) = value.get_ref().as_array() else {
        findings.push(
            Finding::at(value.span(), format!("`{key}` must be a list of tables"))
                .help(format!("write {written} with two brackets")),
        );
        return Vec::new();
    };
    items.iter().filter_map(|item| read(item, findings)).collect()
}

fn read_window(item: &Spanned<DeValue<'_>>, findings: &mut Vec<Finding>) -> Option<WindowDraft> {
    let mut table = open(item, &WINDOW, findings)?;
    Some(WindowDraft {
        span: table.span.clone(),
        guest: table.required("guest", "\"rtos\"", findings),
        hart: table.required("hart", "0", findings),
        start: table.required("start", "\"0ms\"", findings),
        length: table.required("length", "\"2ms\"", findings),
    })
}

fn read_load(item: &Spanned<DeValue<'_>>, findings: &mut Vec<Finding>) -> Option<LoadDraft> {
    let mut table = open(item, &LOAD, findings)?;
    Some(LoadDraft {
        file: table.required("file", "\"path/to/file\"", findings),
        address: table.required("address", "0x81000000", findings),
    })
}

fn read_task(item: &Spanned<DeValue<'_>>, findings: &mut Vec<Finding>) -> Option<TaskDraft> {
    let mut table = open(item, &TASK, findings)?;
    let draft = TaskDraft {
        span: table.span.clone(),
        lost: Lost::default(),
        name: table.required("name", "\"control\"", findings),
        period: table.required("period", "\"1ms\"", findings),
        execution: table.required("execution", "\"150us\"", findings),
        deadline: table.optional("deadline", findings),
        priority: table.required("priority", "3", findings),
        hart: table.optional("hart", findings),
        jitter: table.optional("jitter", findings),
        blocking: table.optional("blocking", findings),
        remote_blocking: table.optional("remote_blocking", findings),
        handler: table.optional("handler", findings),
    };
    Some(TaskDraft { lost: table.lost, ..draft })
}
