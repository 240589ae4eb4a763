//! Systems that a test makes up: guests and where they run, written as a manifest and given to `ainori run`.
use crate::operator::{self, Typing};
use crate::{Clock, Run, checkout, harts};
use ainori::report::RunReport;
use ainori::run::{Options, Tracing};
use ainori_manifest::has_sstc;
use ainori_trace::Mask;
use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;

/// Most host time that a run may take. A run that hangs must end its test, not the job of a build server. Only such a run may
/// reach it, however busy the host is: the longest takes a minute on an idle one, and one that another 40 share still ends.
pub const TIME_LIMIT: Duration = Duration::from_secs(2400);

/// The interrupt controllers of boards.
pub const PLIC: &str = "plic";
/// The same.
pub const APLIC: &str = "aplic";
/// The same.
pub const IMSIC: &str = "imsic";

/// The controller of all boards of which nothing else is said, if it isn't a PLIC: so the tests run with each kind.
const INTERRUPTS: &str = "AINORI_INTERRUPTS";

/// How the addresses of all guests are translated of which nothing else is said, if not by two stages, as a manifest names it.
const TRANSLATION: &str = "AINORI_TRANSLATION";

/// What the kernel's command line of a Linux says that has no console device, instead of `console=ttyS0 quiet`: tty0 is a display that isn't there. (docs/manifest.md has it too.)
const WITHOUT_CONSOLE: &str =
    "console=tty0 earlycon=sbi keep_bootcon printk.time=0 printk.devkmsg=on loglevel=5 rdinit=/init-kmsg";

/// Probes that ask about a PLIC: they have one in any case.
const PLIC_PROBES: [&str; 4] = ["clamour", "late", "plic", "virt"];

/// A guest.
#[derive(Debug, Clone)]
pub struct Guest {
    name: String,
    kind: &'static str,
    image: PathBuf,
    initrd: Option<PathBuf>,
    args: String,
    memory_mib: u32,
    vcpus: u32,
    harts: Option<Vec<u32>>,
    priority: u32,
    priority_on: Vec<(u32, u32)>,
    weight: Option<u32>,
    background: bool,
    restart: Option<(&'static str, u32, &'static str)>,
    on_wild_access: Option<&'static str>,
    translation: Option<&'static str>,
    shadow_tables: Option<u32>,
    shadow_reclaim: Option<&'static str>,
    breakpoints: Option<bool>,
    memory_at: Option<u64>,
    trusts: Vec<&'static str>,
    load_address: Option<u64>,
    devices: Vec<&'static str>,
    loads: Vec<(PathBuf, u64)>,
    watchdog: Option<&'static str>,
    more: Vec<String>,
    is_trusted_with_dma: bool,
    shutdown: Option<&'static str>,
    tasks: Vec<Task>,
}

/// A task that a guest declares. Durations are in microseconds.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Least time between two jobs.
    pub period_us: u64,
    /// Most that a job computes.
    pub execution_us: u64,
    /// When a job has to have ended.
    pub deadline_us: u64,
    /// Within its guest; the higher goes first.
    pub priority: u32,
    /// For how long less urgent tasks may keep it waiting.
    pub blocking_us: u64,
    /// On which hart, if its guest has several.
    pub spread: Option<Spread>,
}

/// Of a task whose guest has several harts. Durations are in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// The home of the vCPU that runs it.
    pub hart: u32,
    /// The part of its blocking for which it spins for a vCPU on another hart.
    pub remote_blocking_us: u64,
    /// By how much it may become ready later than it arrives, as another hart tells it.
    pub jitter_us: u64,
}

impl Display for Task {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, period_us, execution_us, deadline_us, priority, blocking_us, spread } = self;
        writeln!(f, "[[guest.task]]\nname = {name:?}\nperiod = \"{period_us}us\"")?;
        writeln!(f, "execution = \"{execution_us}us\"\ndeadline = \"{deadline_us}us\"")?;
        writeln!(f, "priority = {priority}\nblocking = \"{blocking_us}us\"")?;
        if let Some(Spread { hart, remote_blocking_us, jitter_us }) = spread {
            writeln!(f, "hart = {hart}\nremote_blocking = \"{remote_blocking_us}us\"")?;
            writeln!(f, "jitter = \"{jitter_us}us\"")?;
        }
        Ok(())
    }
}

/// A window in time. Durations are in microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Whose hart.
    pub hart: u32,
    /// Name of its guest.
    pub guest: String,
    /// From the frame's begin.
    pub start_us: u64,
    /// How long it is.
    pub length_us: u64,
}

impl Display for Window {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { hart, guest, start_us, length_us } = self;
        writeln!(f, "[[window]]\nhart = {hart}\nguest = {guest:?}")?;
        writeln!(f, "start = \"{start_us}us\"\nlength = \"{length_us}us\"")
    }
}

impl Guest {
    /// Linux that does `job` (a script in guests/linux/jobs) on one vCPU.
    pub fn linux(job: &str) -> Self {
        let file = |name| checkout(".cache/guests/linux").join(name);
        Self {
            name: "linux".into(),
            kind: "linux",
            image: file("Image"),
            initrd: Some(file("initramfs.cpio.gz")),
            args: format!("console=ttyS0 quiet cryptomgr.notests ainori.run={job}"),
            memory_mib: 256,
            vcpus: 1,
            harts: None,
            priority: 1,
            priority_on: Vec::new(),
            weight: None,
            background: false,
            restart: None,
            on_wild_access: None,
            translation: None,
            shadow_tables: None,
            shadow_reclaim: None,
            breakpoints: None,
            memory_at: None,
            trusts: Vec::new(),
            load_address: None,
            devices: Vec::new(),
            loads: Vec::new(),
            watchdog: None,
            more: Vec::new(),
            is_trusted_with_dma: false,
            shutdown: None,
            tasks: Vec::new(),
        }
    }

    /// Debian's newest kernel instead of the stable one; for `guests/linux/build sid`.
    pub fn sid(self) -> Self {
        Self { image: checkout(".cache/guests/linux/Image-sid"), ..self }
    }

    /// Without a console device: it prints by its log, and that by the SBI; for `guests/linux/build kmsg`.
    pub fn without_console(self) -> Self {
        let args = self.args.replace("console=ttyS0 quiet", WITHOUT_CONSOLE);
        Self { initrd: Some(checkout(".cache/guests/linux/kmsg.cpio.gz")), args, ..self }
    }

    /// The initramfs that has also the job of this name, `channel`, `task-set` or `text`; for `guests/linux/build NAME`.
    pub fn with_job(self, name: &str) -> Self {
        Self { initrd: Some(checkout(&format!(".cache/guests/linux/{name}.cpio.gz"))), ..self }
    }

    /// The initramfs with the job `give-way`; for `guests/linux/build give-way`.
    pub fn with_give_way(self) -> Self {
        Self { initrd: Some(checkout(".cache/guests/linux/give-way.cpio.gz")), ..self }
    }

    /// The large initramfs, with the jobs of guests/linux/userland; for `guests/linux/build userland`.
    pub fn userland(self) -> Self {
        let initrd = Some(checkout(".cache/guests/linux/userland.cpio.gz"));
        Self { initrd, memory_mib: 512, ..self }
    }

    /// U-Boot on hart 0, with Linux's kernel and initramfs in its memory (guests/u-boot). Linux will do `job`.
    pub fn u_boot(job: &str) -> Self {
        let args = format!("console=ttyS0 quiet cryptomgr.notests ainori.run={job}");
        Self { memory_mib: 512, ..Self::elf("u-boot", "u-boot/u-boot-linux.elf", &args) }
    }

    /// FreeRTOS on hart 0, more urgent than all other guests unless they say otherwise. See guests/freertos for `args`.
    pub fn freertos(args: &str) -> Self {
        Self { priority: 10, ..Self::elf("freertos", "freertos/freertos.elf", &harts::measured(args)) }
    }

    /// FreeRTOS's SMP build for so many cores, with as many vCPUs, on the first harts: core *n* on hart *n*. See guests/freertos for `args`.
    pub fn freertos_smp(cores: u32, args: &str) -> Self {
        let file = format!("freertos/freertos-smp{cores}.elf");
        Self { priority: 10, ..Self::elf("freertos", &file, &harts::measured(args)) }
            .vcpus(cores)
            .harts(0..cores)
    }

    /// A probe (guests/probes) on hart 0.
    pub fn probe(name: &str, args: &str) -> Self {
        Self::elf(name, &format!("probes/{name}.elf"), args)
    }

    /// The fuzzing guest (guests/fuzz) on hart 0.
    pub fn fuzz(args: &str) -> Self {
        Self::elf("fuzz", "fuzz/fuzz.elf", args)
    }

    fn elf(name: &str, file: &str, args: &str) -> Self {
        Self {
            name: name.into(),
            kind: "elf",
            image: checkout(".cache/guests").join(file),
            initrd: None,
            args: args.into(),
            memory_mib: 16,
            vcpus: 1,
            harts: Some(vec![0]),
            priority: 1,
            priority_on: Vec::new(),
            weight: None,
            background: false,
            restart: None,
            on_wild_access: None,
            translation: None,
            shadow_tables: None,
            shadow_reclaim: None,
            breakpoints: None,
            memory_at: None,
            trusts: Vec::new(),
            load_address: None,
            devices: Vec::new(),
            loads: Vec::new(),
            watchdog: None,
            more: Vec::new(),
            is_trusted_with_dma: false,
            shutdown: None,
            tasks: Vec::new(),
        }
    }

    /// A probe as a flat binary, for an address that it isn't told of in any file format.
    pub fn raw_probe(name: &str, load_address: u64) -> Self {
        let file = format!("probes/{name}.bin");
        Self { kind: "raw", ..Self::elf(name, &file, "") }.load_address(load_address)
    }

    /// Where its program is loaded, if it doesn't say so itself.
    pub fn load_address(self, address: u64) -> Self {
        Self { load_address: Some(address), ..self }
    }

    /// An access outside its memory stops it, rather than being its own affair.
    pub fn strict(self) -> Self {
        Self { on_wild_access: Some("stop"), ..self }
    }

    /// How its addresses are translated, as a manifest names it: what this guest shows is about that. Without this it is as all tests are run.
    pub fn translation(self, translation: &'static str) -> Self {
        Self { translation: Some(translation), ..self }
    }

    /// How many shadow tables each of its vCPUs has.
    pub fn shadow_tables(self, tables: u32) -> Self {
        Self { shadow_tables: Some(tables), ..self }
    }

    /// Whether breakpoints stand for privileged instructions of its kernel, on harts without H.
    pub fn breakpoints(self, breakpoints: bool) -> Self {
        Self { breakpoints: Some(breakpoints), ..self }
    }

    /// Whose shadow tables are taken when all are in use.
    pub fn shadow_reclaim(self, reclaim: &'static str) -> Self {
        Self { shadow_reclaim: Some(reclaim), ..self }
    }

    /// Where its memory begins, on the board and for itself.
    pub fn memory_at(self, memory_at: u64) -> Self {
        Self { memory_at: Some(memory_at), ..self }
    }

    /// Nothing confines it, and its memory begins there.
    pub fn unprotected_at(self, memory_at: u64) -> Self {
        self.translation("none").memory_at(memory_at)
    }

    /// It trusts this guest, which is without protection.
    pub fn trusts(mut self, guest: &'static str) -> Self {
        self.trusts.push(guest);
        self
    }

    /// The build of its program that can be at any address, of FreeRTOS and of some probes.
    pub fn position_independent(self) -> Self {
        let name =
            self.image.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Self { image: self.image.with_file_name(format!("{name}-pie.elf")), ..self }
    }

    /// A device of the board that is its own, by its path in the device tree.
    pub fn device(mut self, path: &'static str) -> Self {
        self.devices.push(path);
        self
    }

    /// A file that it finds in its memory at this address.
    pub fn load(mut self, file: &Path, address: u64) -> Self {
        self.loads.push((file.to_owned(), address));
        self
    }

    /// For how long it may be silent.
    pub fn watchdog(self, interval: &'static str) -> Self {
        Self { watchdog: Some(interval), ..self }
    }

    /// A key of its manifest that has no function here, as it is written there: `restart = "always"`.
    pub fn key(mut self, line: &str) -> Self {
        self.more.push(line.to_owned());
        self
    }

    /// Its devices reach all memory, and its memory begins there, on the board and for itself.
    pub fn trusted_with_dma_at(self, memory_at: u64) -> Self {
        Self { is_trusted_with_dma: true, ..self.memory_at(memory_at) }
    }

    /// It is asked to shut down before the run is ended early, and has so long for that, e.g. `"20s"`.
    pub fn shutdown(self, patience: &'static str) -> Self {
        Self { shutdown: Some(patience), ..self }
    }

    /// A task that it declares.
    pub fn task(mut self, task: Task) -> Self {
        self.tasks.push(task);
        self
    }

    /// Another program than that of its kind.
    pub fn file(self, image: &Path) -> Self {
        Self { image: image.to_owned(), ..self }
    }

    /// More memory or less.
    pub fn memory_mib(self, memory_mib: u32) -> Self {
        Self { memory_mib, ..self }
    }

    /// Another name than that of its kind.
    pub fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }

    /// What the report calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn asks_about_a_plic(&self) -> bool {
        PLIC_PROBES
            .iter()
            .any(|probe| self.image == checkout(".cache/guests/probes").join(format!("{probe}.elf")))
    }

    /// More words of its command line.
    pub fn args(self, words: &str) -> Self {
        Self { args: format!("{} {words}", self.args), ..self }
    }

    /// Its number of vCPUs.
    pub fn vcpus(self, vcpus: u32) -> Self {
        Self { vcpus, ..self }
    }

    /// The harts that its vCPUs are spread over, one after the other. Without this: all of the board for Linux.
    pub fn harts(self, harts: impl IntoIterator<Item = u32>) -> Self {
        Self { harts: Some(harts.into_iter().collect()), ..self }
    }

    /// Its priority; the higher one goes first.
    pub fn priority(self, priority: u32) -> Self {
        Self { priority, ..self }
    }

    /// Another one on this hart.
    pub fn priority_on(mut self, hart: u32, priority: u32) -> Self {
        self.priority_on.push((hart, priority));
        self
    }

    /// How many quanta a turn of each of its vCPUs has among equals.
    pub fn weight(self, weight: u32) -> Self {
        Self { weight: Some(weight), ..self }
    }

    /// The run doesn't wait for its end.
    pub fn background(self) -> Self {
        Self { background: true, ..self }
    }

    /// It is started again after such ends, at most so many times within an interval.
    pub fn restart(self, when: &'static str, limit: u32, interval: &'static str) -> Self {
        Self { restart: Some((when, limit, interval)), ..self }
    }
}

impl Display for Guest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "[[guest]]")?;
        writeln!(f, "name = {:?}\nkind = {:?}\nimage = {:?}", self.name, self.kind, self.image)?;
        if let Some(initrd) = &self.initrd {
            writeln!(f, "initrd = {initrd:?}")?;
        }
        writeln!(f, "args = {:?}\nmemory = \"{}MiB\"", self.args, self.memory_mib)?;
        writeln!(f, "vcpus = {}\npriority = {}", self.vcpus, self.priority)?;
        if !self.priority_on.is_empty() {
            let there: Vec<String> =
                self.priority_on.iter().map(|(hart, priority)| format!("{hart} = {priority}")).collect();
            writeln!(f, "priority_on = {{ {} }}", there.join(", "))?;
        }
        if let Some(weight) = self.weight {
            writeln!(f, "weight = {weight}")?;
        }
        if let Some(harts) = &self.harts {
            writeln!(f, "harts = {harts:?}")?;
        }
        if let Some(answer) = self.on_wild_access {
            writeln!(f, "on_wild_access = {answer:?}")?;
        }
        if let Some(translation) = self.translation {
            writeln!(f, "translation = {translation:?}")?;
        }
        if let Some(tables) = self.shadow_tables {
            writeln!(f, "shadow_tables = {tables}")?;
        }
        if let Some(breakpoints) = self.breakpoints {
            writeln!(f, "breakpoints = {breakpoints}")?;
        }
        if let Some(address) = self.memory_at {
            writeln!(f, "memory_at = {address:#x}")?;
        }
        if !self.trusts.is_empty() {
            writeln!(f, "trusts = {:?}", self.trusts)?;
        }
        if let Some(reclaim) = self.shadow_reclaim {
            writeln!(f, "shadow_reclaim = {reclaim:?}")?;
        }
        if !self.devices.is_empty() {
            writeln!(f, "devices = {:?}", self.devices)?;
        }
        if self.is_trusted_with_dma {
            writeln!(f, "dma = \"trusted\"")?;
        }
        if let Some(patience) = self.shutdown {
            writeln!(f, "shutdown = {patience:?}")?;
        }
        if let Some(address) = self.load_address {
            writeln!(f, "load_address = {address:#x}")?;
        }
        if let Some((when, limit, interval)) = self.restart {
            writeln!(f, "restart = {when:?}\nrestart_limit = {limit}\nrestart_interval = {interval:?}")?;
        }
        if let Some(interval) = self.watchdog {
            writeln!(f, "watchdog = {interval:?}")?;
        }
        self.more.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(f, "background = {}", self.background)?;
        for (file, address) in &self.loads {
            writeln!(f, "[[guest.load]]\nfile = {file:?}\naddress = {address:#x}")?;
        }
        self.tasks.iter().try_for_each(|task| write!(f, "{task}"))
    }
}

/// A system. [`Display`] shows it as a manifest.
#[derive(Debug, Clone)]
pub struct System {
    machine: &'static str,
    harts: u32,
    memory_gib: u32,
    cpu: Option<String>,
    with_h: bool,
    interrupts: Option<&'static str>,
    policy: &'static str,
    times: Vec<(&'static str, &'static str)>,
    guests: Vec<Guest>,
    windows: Vec<Window>,
    channels: Vec<([String; 2], String)>,
    disks: Vec<(String, PathBuf, &'static str)>,
    networks: Vec<(String, &'static str)>,
    qemu_args: Vec<String>,
    traced: Option<&'static str>,
    input: Option<String>,
    kernel: Option<PathBuf>,
}

impl System {
    /// A board with `harts` harts, and nobody on it yet.
    pub fn on(harts: u32) -> Self {
        Self {
            machine: "qemu-virt",
            harts,
            memory_gib: 2,
            cpu: None,
            with_h: false,
            interrupts: None,
            policy: "spumone",
            times: Vec::new(),
            guests: Vec::new(),
            windows: Vec::new(),
            channels: Vec::new(),
            disks: Vec::new(),
            networks: Vec::new(),
            qemu_args: Vec::new(),
            traced: None,
            input: None,
            kernel: None,
        }
    }

    /// The same of QEMU's `sifive_u`, whose harts are 1 to `harts`: they have neither H nor Sstc.
    pub fn on_sifive_u(harts: u32) -> Self {
        Self { machine: SIFIVE_U, interrupts: Some(PLIC), ..Self::on(harts).memory_gib(1).cpu("sifive-u54") }
    }

    /// Adds a guest.
    pub fn with(mut self, guest: Guest) -> Self {
        self.guests.push(guest);
        self
    }

    /// Adds a channel between two guests, with so much memory, as `"64KiB"`.
    pub fn channel(mut self, guests: [&str; 2], size: &str) -> Self {
        self.channels.push((guests.map(String::from), size.into()));
        self
    }

    /// A disk of a guest, by its name: this file. `more` is what else the manifest says of it.
    pub fn disk(mut self, guest: &str, file: &Path, more: &'static str) -> Self {
        self.disks.push((guest.into(), file.to_owned(), more));
        self
    }

    /// A network card of a guest, by its name. `more` is what else the manifest says of it.
    pub fn network(mut self, guest: &str, more: &'static str) -> Self {
        self.networks.push((guest.into(), more));
        self
    }

    /// Another model of the harts, as QEMU names it. Where the tests are run without the H extension, that is switched off in it.
    pub fn cpu(self, cpu: &str) -> Self {
        Self { cpu: Some(cpu.into()), ..self }
    }

    /// Its harts have the H extension, whatever the tests are run with: what this system shows is about that.
    pub fn with_h(self) -> Self {
        Self { with_h: true, ..self }
    }

    /// The model of its harts, as QEMU names it. A hypervisor that a test has chosen gets the harts that it is for.
    pub fn hart_model(&self) -> String {
        let chosen = || self.kernel.as_deref().and_then(harts::lack_h_for);
        let lack_h = || chosen().unwrap_or_else(harts::usual_lack_h);
        harts::model(self.cpu.as_deref().unwrap_or(USUAL_MODEL), !self.with_h && lack_h())
    }

    /// A certain interrupt controller, as a manifest names it: what this system shows is about that. Without this it is the one that all tests are run with.
    pub fn interrupts(self, interrupts: &'static str) -> Self {
        Self { interrupts: Some(interrupts), ..self }
    }

    /// The board's interrupt controller.
    pub fn controller(&self) -> &'static str {
        let has_plic_probe = || self.guests.iter().any(|guest| guest.asks_about_a_plic());
        self.interrupts.unwrap_or_else(|| if has_plic_probe() { PLIC } else { usual_interrupts() })
    }

    /// How a guest's addresses are translated, if that is said. A hypervisor that a test has chosen isn't built for shadow tables.
    fn translation_of(&self, guest: &Guest) -> Option<&'static str> {
        guest.translation.or_else(|| if self.kernel.is_none() { usual_translation() } else { None })
    }

    /// Another size of the board's memory than 2 GiB.
    pub fn memory_gib(self, memory_gib: u32) -> Self {
        Self { memory_gib, ..self }
    }

    /// Another policy than `spumone`, by the name of its preset.
    pub fn policy(self, preset: &'static str) -> Self {
        Self { policy: preset, ..self }
    }

    /// Another round-robin quantum, e.g. `"1ms"`.
    pub fn quantum(mut self, quantum: &'static str) -> Self {
        self.times.push(("quantum", quantum));
        self
    }

    /// Another bound of preemptions that the policy puts off, e.g. `"20us"`.
    pub fn grace(mut self, grace: &'static str) -> Self {
        self.times.push(("grace", grace));
        self
    }

    /// Another time that a vCPU gets its core ahead of its timer, e.g. `"0us"`.
    pub fn advance(mut self, advance: &'static str) -> Self {
        self.times.push(("advance", advance));
        self
    }

    /// The length of a frame of windows in time, e.g. `"10ms"`.
    pub fn major_frame(mut self, frame: &'static str) -> Self {
        self.times.push(("major_frame", frame));
        self
    }

    /// A window in time: from `start_us` of each frame a hart is so long this guest's, in microseconds.
    pub fn window(mut self, hart: u32, guest: &str, start_us: u64, length_us: u64) -> Self {
        self.windows.push(Window { hart, guest: guest.into(), start_us, length_us });
        self
    }

    /// More arguments for QEMU.
    pub fn qemu_args(mut self, args: impl IntoIterator<Item = String>) -> Self {
        self.qemu_args.extend(args);
        self
    }

    /// A line is typed at this time of the machine. So long after that it is switched off.
    pub fn typed(self, line: &str, at: Duration, rest: Duration) -> Self {
        let typing = Typing { text: line.into(), at };
        self.qemu_args(["-plugin".into(), operator::argument(at + rest, Some(&typing))])
    }

    /// Who gets what is typed, by its name.
    pub fn input(self, guest: &str) -> Self {
        Self { input: Some(guest.into()), ..self }
    }

    /// Takes a trace of one kind of events, by its name in a manifest. The file itself is thrown away.
    pub fn traced(self, kind: &'static str) -> Self {
        Self { traced: Some(kind), ..self }
    }

    /// With the build of the hypervisor of which budgets are promised, whatever the tests are run with.
    pub fn of_usual_build(self) -> Self {
        self.kernel(&crate::hypervisor())
    }

    /// Another hypervisor than [`hypervisor`](crate::hypervisor).
    pub fn kernel(self, kernel: &Path) -> Self {
        Self { kernel: Some(kernel.to_owned()), ..self }
    }

    /// The files of its guests.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = self.guests.iter().flat_map(|guest| [Some(&guest.image), guest.initrd.as_ref()]);
        files.flatten().cloned().collect()
    }

    /// What each guest is told, by its name.
    pub fn args(&self) -> BTreeMap<String, String> {
        self.guests.iter().map(|guest| (guest.name.clone(), guest.args.clone())).collect()
    }

    /// The number that a guest is told with a word `KEY=NUMBER`.
    pub fn told(&self, guest: &str, key: &str) -> Option<u64> {
        let guest = self.guests.iter().find(|known| known.name == guest)?;
        let mut words = guest.args.split(' ').filter_map(|word| word.split_once('='));
        words.find(|(known, _)| *known == key)?.1.parse().ok()
    }

    /// The vCPUs of a guest.
    pub fn vcpus_of(&self, guest: &str) -> u32 {
        self.guests.iter().find(|known| known.name == guest).map_or(0, |guest| guest.vcpus)
    }

    /// Runs it to its end. Panics only if it could not be started: whether the run was good is for the caller to ask.
    pub fn run(&self, clock: Clock) -> Run {
        let folder = folder();
        let trace = self.traced.map(|kind| Tracing {
            file: folder.path().join(TRACE),
            mask: Some(Mask::from_names([kind]).expect("a known kind of events")),
            records: None,
            window: None,
        });
        let report = self.run_in(&folder, clock, trace, Arc::default());
        Run::new(report, self.to_string(), folder)
    }

    /// Runs it until this is on the serial line; then the user wants it to end.
    pub fn run_until(&self, clock: Clock, text: &str) -> Run {
        self.run_and_when(clock, text, |stop| stop.store(true, Ordering::Relaxed))
    }

    /// Runs it, and does this once the text is on the serial line. A flag that is set has the user want the end of the run.
    pub fn run_and_when(&self, clock: Clock, text: &str, then: impl FnOnce(&AtomicBool) + Send) -> Run {
        let folder = folder();
        let log = folder.path().join("serial.log");
        let (stop, is_over) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
        let report = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let bytes = std::fs::read(&log).unwrap_or_default();
                    if String::from_utf8_lossy(&bytes).contains(text) {
                        return then(&stop);
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            let report = self.run_in(&folder, clock, None, stop.clone());
            is_over.store(true, Ordering::Relaxed);
            report
        });
        Run::new(report, self.to_string(), folder)
    }

    /// The same with a trace, of which `part` says what is taken; its file is set here. Returns the file's bytes as well, none if there is none.
    pub fn run_with_trace(&self, clock: Clock, part: Tracing) -> (RunReport, Vec<u8>) {
        let folder = folder();
        let file = folder.path().join(TRACE);
        let report =
            self.run_in(&folder, clock, Some(Tracing { file: file.clone(), ..part }), Arc::default());
        assert!(report.trace.as_ref().is_none_or(|taken| taken.file == file), "{:?}", report.trace);
        (report, std::fs::read(file).unwrap_or_default())
    }

    /// The hypervisor that it runs on.
    pub fn kernel_file(&self) -> PathBuf {
        let has_shadow = |guest: &Guest| {
            guest.memory_at.is_some() || self.translation_of(guest).is_some_and(|name| name != TWO_STAGE)
        };
        let has_sstc = self.cpu.as_deref().is_none_or(has_sstc);
        let usual = || match (self.guests.iter().any(has_shadow), has_sstc) {
            _ if !ainori_manifest::has_h(&self.hart_model()) => match has_sstc {
                true => harts::hypervisor_without_h(),
                false => harts::hypervisor_without_h_and_sstc(),
            },
            _ if self.machine == SIFIVE_U => checkout(".cache/kernel/ainori-sbi-timer-uarts.elf"),
            (false, true) => crate::hypervisor(),
            (true, true) => checkout(".cache/kernel/ainori-shadow.elf"),
            (false, false) => checkout(".cache/kernel/ainori-sbi-timer.elf"),
            (true, false) => checkout(".cache/kernel/ainori-shadow-sbi-timer.elf"),
        };
        let has_watchdog = self.guests.iter().any(|guest| guest.watchdog.is_some());
        // Where guests can have shadow tables, they can have watchdogs anyhow.
        let has_it = |name: &str| name.contains("shadow") || name.contains("no-h");
        let with_watchdogs = |usual: PathBuf| match usual.file_stem().and_then(|name| name.to_str()) {
            Some(name) if has_watchdog && !has_it(name) => {
                usual.with_file_name(format!("{name}-watchdog.elf"))
            }
            _ => usual,
        };
        self.kernel.clone().unwrap_or_else(|| with_watchdogs(usual()))
    }

    fn run_in(
        &self,
        folder: &TempDir,
        clock: Clock,
        trace: Option<Tracing>,
        stop: Arc<AtomicBool>,
    ) -> RunReport {
        let manifest = folder.path().join("system.toml");
        std::fs::write(&manifest, self.to_string()).expect("the temporary folder can be written");
        let options = Options {
            trace,
            kernel: Some(self.kernel_file()),
            clock,
            timeout: Some(TIME_LIMIT),
            qemu_args: self.qemu_args.iter().map(Into::into).collect(),
            record_dir: Some(folder.path().to_owned()),
            stop,
            ..Options::new(manifest)
        };
        ainori::run::run(&options)
            .unwrap_or_else(|error| panic!("the system could not be started: {error:?}\n{self}"))
    }
}

/// The controller that the tests are run with.
fn usual_interrupts() -> &'static str {
    let Some(wanted) = std::env::var_os(INTERRUPTS) else { return PLIC };
    let known = [PLIC, APLIC, IMSIC].into_iter().find(|known| wanted == *known);
    known.unwrap_or_else(|| panic!("{INTERRUPTS} is {wanted:?}: it should be {PLIC}, {APLIC} or {IMSIC}"))
}

/// QEMU's SiFive board, as a manifest names it.
const SIFIVE_U: &str = "sifive_u";

/// The model of harts of which nothing else is said.
const USUAL_MODEL: &str = "rv64";

/// What guests have in any build of the hypervisor but that for harts without the H extension.
const TWO_STAGE: &str = "two-stage";

/// How the addresses of guests are translated with which the tests are run; `None`: as a manifest has it that says nothing.
fn usual_translation() -> Option<&'static str> {
    let wanted = std::env::var_os(TRANSLATION)?;
    let known = [TWO_STAGE, "shadow-single", "shadow-multi"].into_iter().find(|known| wanted == *known);
    Some(known.unwrap_or_else(|| panic!("{TRANSLATION} is {wanted:?}, which no guest can have")))
}

/// A trace of the usual kinds of events, whole, for [`System::run_with_trace`].
pub fn whole_trace() -> Tracing {
    Tracing { file: PathBuf::new(), mask: None, records: None, window: None }
}

/// The name of a trace in a run's folder.
const TRACE: &str = "run.perfetto-trace";

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("ainori-test-").tempdir().expect("a temporary folder")
}

impl Display for System {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "name = \"test\"")?;
        write!(f, "policy = {{ preset = {:?}", self.policy)?;
        for (key, time) in &self.times {
            write!(f, ", {key} = {time:?}")?;
        }
        writeln!(f, " }}")?;
        writeln!(
            f,
            "[board]\nmachine = {:?}\nharts = {}\nmemory = \"{}GiB\"\ninterrupts = {:?}",
            self.machine,
            self.harts,
            self.memory_gib,
            self.controller()
        )?;
        let cpu = self.hart_model();
        if cpu != USUAL_MODEL {
            writeln!(f, "cpu = {cpu:?}")?;
        }
        if let Some(guest) = &self.input {
            writeln!(f, "[console]\ninput = {guest:?}")?;
        }
        self.guests.iter().try_for_each(|guest| {
            write!(f, "{}", Guest { translation: self.translation_of(guest), ..guest.clone() })
        })?;
        self.windows.iter().try_for_each(|window| write!(f, "{window}"))?;
        for (guest, file, more) in &self.disks {
            writeln!(f, "[[disk]]\nguest = {guest:?}\nfile = {file:?}\n{more}")?;
        }
        for (guest, more) in &self.networks {
            writeln!(f, "[[network]]\nguest = {guest:?}\n{more}")?;
        }
        let mut channels = self.channels.iter();
        channels
            .try_for_each(|(guests, size)| writeln!(f, "[[channel]]\nguests = {guests:?}\nsize = {size:?}"))
    }
}
