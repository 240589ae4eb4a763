//! A system as the generator made it: what runs where, and what each guest is told to do. [`Display`] shows it as a manifest.
use super::oracle;
use crate::operator::Typing;
use crate::system::Window;
use crate::{checkout, harts};
use ainori_limits::{PAGE, PRIORITIES};
use ainori_manifest::config::DEFAULT_SHADOW_TABLES;
use std::{
    fmt::{self, Display, Formatter},
    path::PathBuf,
};

/// A system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// What it was made from.
    pub seed: u64,
    /// Harts of the board.
    pub harts: u32,
    /// Their model, as QEMU names it. Where the tests are run without the H extension, the manifest switches that off.
    pub cpu: String,
    /// The board's interrupt controller, as a manifest names it.
    pub interrupts: &'static str,
    /// The policy: name of its preset.
    pub preset: &'static str,
    /// Round-robin quantum in microseconds, if the manifest gives one.
    pub quantum_us: Option<u32>,
    /// Grace in microseconds, if the manifest gives one.
    pub grace_us: Option<u32>,
    /// Advance in microseconds, if the manifest gives one.
    pub advance_us: Option<u32>,
    /// Length of a frame of windows in time in microseconds, under a policy that has them.
    pub frame_us: Option<u32>,
    /// The guests.
    pub guests: Vec<Guest>,
    /// Their priorities are given hart by hart, where the policy heeds that, and what stands for all others orders them the other way round. That must
    /// make no difference.
    pub by_hart: bool,
    /// Index of the guest that gets what is typed.
    pub input: usize,
    /// What is typed.
    pub typing: Option<Typing>,
    /// Instructions of a slice of the lockstep clock.
    pub slice: u32,
}

/// A guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Its name.
    pub name: String,
    /// What it does.
    pub job: Job,
    /// Its vCPUs.
    pub vcpus: u32,
    /// Harts where they may run, in the order in which they are dealt out; empty: all, by number.
    pub harts: Vec<u32>,
    /// The higher goes first.
    pub priority: u32,
    /// How many quanta a turn of each of its vCPUs has among equals.
    pub weight: u32,
    /// The run doesn't wait for it.
    pub background: bool,
}

/// What a guest does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// FreeRTOS with a task of this period beside one that burns a share of its hart.
    FreeRtos {
        /// Period in microseconds.
        period_us: u32,
        /// Periods that are measured.
        periods: u32,
        /// Share of the hart that the lowest task takes.
        burn_percent: u32,
        /// In pieces of so many microseconds.
        burn_period_us: u32,
        /// Its tick in microseconds, if it doesn't choose that itself.
        tick_us: Option<u32>,
        /// A line each so often; 0: none.
        report_ms: u32,
    },
    /// Timer interrupts without an operating system.
    Timer {
        /// Period in microseconds.
        period_us: u32,
        /// How many.
        ticks: u32,
    },
    /// Prints a text, takes alarms, hears a line.
    Talk(Talk),
    /// Harts that work together.
    Smp {
        /// Pings between each two.
        rounds: u32,
    },
    /// Questions to interrupt controller and serial port, then so many interrupts.
    Plic {
        /// How many.
        repeats: u32,
    },
    /// Questions to the SBI.
    Sbi,
    /// Patterns in floating-point and vector registers.
    FpKeep {
        /// Of the patterns.
        seed: u32,
        /// For how long.
        ms: u32,
    },
    /// Harts that take a spin lock again and again.
    Locks {
        /// For how long.
        ms: u32,
    },
    /// Ends again and again, and is started again each time, until the machine has been on for a while.
    Lives {
        /// How a life ends: a word of the probe's parameter `end`.
        end: &'static str,
        /// How long it sends interrupts and fences to all of its harts before, in milliseconds.
        ms: u32,
        /// A life that begins so many milliseconds after the machine was switched on is the last one.
        until_ms: u32,
    },
    /// Harts that sleep until the same time, again and again, for ever.
    Crowd {
        /// Period in microseconds.
        period_us: u32,
        /// Bytes that each prints when it wakes, of a line that never ends.
        bytes: u32,
    },
    /// Harts that sleep, wake at random times within a window of each period, and do one thing then, for ever.
    Chaos {
        /// Of what is done and when.
        seed: u32,
        /// What may be done, a bit for each of the probe's kinds.
        kinds: u32,
        /// Period in microseconds.
        period_us: u32,
        /// Length of the window in microseconds.
        window_us: u32,
        /// Registers of floating point and vectors are in use all the time.
        extensions: bool,
    },
    /// Rings the bell of the other guest with this job, and does what else can be done to a channel's registers, without a pause.
    Bells {
        /// For how long.
        ms: u32,
    },
    /// Computes for ever, on all its vCPUs.
    Busy,
    /// Linux with one of its jobs.
    Linux(LinuxJob),
}

/// What a talking guest does (guests/probes/talk.c).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Talk {
    /// Of the text.
    pub seed: u32,
    /// Length of the text.
    pub bytes: u32,
    /// It prints by the serial port's registers, not through the SBI.
    pub by_uart: bool,
    /// Pause between two lines.
    pub gap_us: u32,
    /// How it listens, if it waits for a line: a word of the probe's parameter `ears`.
    pub ears: Option<&'static str>,
    /// Alarms of the clock that it owns; 0: it owns none.
    pub alarms: u32,
    /// Between two alarms.
    pub alarm_us: u32,
    /// It owns the flash and asks it who it is.
    pub flash: bool,
}

/// Jobs of Linux (guests/linux/jobs).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinuxJob {
    /// Nothing but the boot.
    Boot,
    /// hackbench once, with so many loops.
    Hackbench(u32),
    /// A text, and a line if it hears.
    Talk {
        /// Of the text.
        seed: u32,
        /// Length of the text.
        bytes: u32,
        /// It waits for a line.
        hears: bool,
    },
    /// Interrupts for ever.
    Storm,
}

impl Job {
    /// Does it end by itself?
    pub fn ends(&self) -> bool {
        !matches!(self, Self::Crowd { .. } | Self::Chaos { .. } | Self::Busy | Self::Linux(LinuxJob::Storm))
    }

    /// Is it Linux?
    pub fn is_linux(&self) -> bool {
        matches!(self, Self::Linux(_))
    }

    /// Seed and length of the text that it prints.
    pub fn text(&self) -> Option<(u64, u64)> {
        match self {
            Self::Talk(Talk { seed, bytes, .. }) | Self::Linux(LinuxJob::Talk { seed, bytes, .. }) => {
                Some((u64::from(*seed), u64::from(*bytes)))
            }
            _ => None,
        }
    }

    /// Does it wait for a typed line?
    pub fn hears(&self) -> bool {
        matches!(
            self,
            Self::Talk(Talk { ears: Some(_), .. }) | Self::Linux(LinuxJob::Talk { hears: true, .. })
        )
    }

    /// The program's file below `.cache/guests`.
    fn file(&self) -> &'static str {
        match self {
            Self::FreeRtos { .. } => "freertos/freertos.elf",
            Self::Timer { .. } => "probes/timer.elf",
            Self::Talk(_) => "probes/talk.elf",
            Self::Smp { .. } => "probes/smp.elf",
            Self::Plic { .. } => "probes/plic.elf",
            Self::Sbi => "probes/sbi.elf",
            Self::FpKeep { .. } => "probes/fpkeep.elf",
            Self::Locks { .. } => "probes/locks.elf",
            Self::Lives { .. } => "probes/lives.elf",
            Self::Crowd { .. } => "probes/crowd.elf",
            Self::Chaos { .. } => "probes/chaos.elf",
            Self::Bells { .. } => "probes/bell.elf",
            Self::Busy => "probes/bursts.elf",
            Self::Linux(_) => "linux/Image",
        }
    }

    fn args(&self) -> String {
        match self {
            Self::FreeRtos { period_us, periods, burn_percent, burn_period_us, tick_us, report_ms } => {
                format!(
                    "period_us={period_us} periods={periods} burn_percent={burn_percent} burn_period_us={burn_period_us} report_ms={report_ms}{}",
                    tick_us.map(|tick| format!(" tick_us={tick}")).unwrap_or_default()
                )
            }
            Self::Timer { period_us, ticks } => format!("period_us={period_us} n={ticks}"),
            Self::Talk(talk) => {
                let Talk { seed, bytes, by_uart, gap_us, ears, alarms, alarm_us, flash } = talk;
                let way = if *by_uart { "uart" } else { "dbcn" };
                let hear = ears.map_or(String::new(), |ears| format!(" hear=1 ears={ears}"));
                let flash = u32::from(*flash);
                format!(
                    "seed={seed} bytes={bytes} way={way} gap_us={gap_us}{hear} alarms={alarms} alarm_us={alarm_us} flash={flash}"
                )
            }
            Self::Smp { rounds } => format!("rounds={rounds} patience_ms=100000"),
            Self::Plic { repeats } => format!("strict=1 repeats={repeats}"),
            Self::Sbi => "strict=1".into(),
            Self::FpKeep { seed, ms } => format!("seed={seed} ms={ms}"),
            Self::Locks { ms } => format!("ms={ms}"),
            Self::Lives { end, ms, until_ms } => format!("end={end} ms={ms} until_ms={until_ms}"),
            Self::Crowd { period_us, bytes } => format!("period_us={period_us} bytes={bytes}"),
            Self::Chaos { seed, kinds, period_us, window_us, extensions } => format!(
                "seed={seed} ends_in=0 only={kinds} phase=0 period_us={period_us} before_us={window_us} after_us=0 extensions={}",
                u32::from(*extensions)
            ),
            Self::Bells { ms } => format!("role=flood us={}", ms * 1_000),
            Self::Busy => "n=0".into(),
            Self::Linux(job) => {
                let job = match job {
                    LinuxJob::Boot => "boot".into(),
                    LinuxJob::Hackbench(loops) => format!("hackbench ainori.loops={loops}"),
                    LinuxJob::Talk { seed, bytes, hears } => {
                        format!(
                            "talk ainori.seed={seed} ainori.bytes={bytes} ainori.hear={}",
                            u32::from(*hears)
                        )
                    }
                    LinuxJob::Storm => "storm".into(),
                };
                format!("console=ttyS0 quiet cryptomgr.notests ainori.run={job}")
            }
        }
    }
}

impl Guest {
    /// The harts of its vCPUs' homes, each vCPU's by its index.
    pub fn homes(&self, harts: u32) -> Vec<u32> {
        let all = self.allowed(harts);
        all.iter().copied().cycle().take(self.vcpus as usize).collect()
    }

    /// The harts where its vCPUs may run.
    pub fn allowed(&self, harts: u32) -> Vec<u32> {
        if self.harts.is_empty() { (0..harts).collect() } else { self.harts.clone() }
    }

    /// The devices that it owns, as a manifest names them.
    pub fn devices(&self) -> Vec<&'static str> {
        let Job::Talk(talk) = &self.job else { return Vec::new() };
        let owned = [(talk.alarms > 0, "/soc/rtc@101000"), (talk.flash, "/flash@20000000")];
        owned.into_iter().filter_map(|(owns, device)| owns.then_some(device)).collect()
    }

    /// Its program, and its initial RAM disk if it has one.
    fn files(&self) -> impl Iterator<Item = PathBuf> {
        let initrd = self.job.is_linux().then_some("linux/initramfs.cpio.gz");
        let names = [Some(self.job.file()), initrd].into_iter().flatten();
        names.map(|name| checkout(".cache/guests").join(name))
    }

    fn memory_mib(&self) -> u32 {
        if self.job.is_linux() { 256 } else { 16 }
    }
}

impl Guest {
    /// Writes it as in a manifest, with these parameters beside those of its job.
    fn write(&self, f: &mut Formatter<'_>, system: &Description, more: &str) -> fmt::Result {
        let kind = if self.job.is_linux() { "linux" } else { "elf" };
        writeln!(f, "\n[[guest]]\nname = {:?}\nkind = {kind:?}", self.name)?;
        for (key, file) in ["image", "initrd"].into_iter().zip(self.files()) {
            writeln!(f, "{key} = {file:?}")?;
        }
        writeln!(f, "args = {:?}\nmemory = \"{}MiB\"", self.job.args() + more, self.memory_mib())?;
        writeln!(f, "vcpus = {}", self.vcpus)?;
        if system.by_hart && oracle::policy(system).ranks_by_core() {
            let there =
                self.allowed(system.harts).into_iter().map(|hart| format!("{hart} = {}", self.priority));
            let there: Vec<String> = there.collect();
            writeln!(f, "priority_on = {{ {} }}", there.join(", "))?;
            writeln!(f, "priority = {}", u32::from(PRIORITIES) - 1 - self.priority)?;
        } else {
            writeln!(f, "priority = {}", self.priority)?;
        }
        if self.weight != 1 {
            writeln!(f, "weight = {}", self.weight)?;
        }
        if !self.harts.is_empty() {
            writeln!(f, "harts = {:?}", self.harts)?;
        }
        if !self.devices().is_empty() {
            writeln!(f, "devices = {:?}", self.devices())?;
        }
        if self.background {
            writeln!(f, "background = true")?;
        }
        if let Job::Lives { .. } = self.job {
            writeln!(f, "restart = \"on-failure\"\nrestart_limit = 32")?;
        }
        Ok(())
    }
}

/// A window that is shorter than this is had once in a frame, in microseconds; a longer one could be two.
const SHORT_WINDOW_US: u32 = 400;

impl Description {
    /// Windows in time. The guests that are at home on a hart have equal parts of the frame one after the other, twice if these are long enough, and an equal part is nobody's.
    pub fn windows(&self) -> Vec<Window> {
        let Some(frame_us) = self.frame_us else { return Vec::new() };
        let on_hart = |hart: u32| {
            let here: Vec<&Guest> =
                self.guests.iter().filter(|guest| guest.homes(self.harts).contains(&hart)).collect();
            let parts = here.len() as u32 + 1;
            let rounds = if frame_us / parts >= SHORT_WINDOW_US { 2 } else { 1 };
            let length_us = u64::from(frame_us / (rounds * parts));
            let window = |round: u32, place: usize| {
                let start_us = (u64::from(round * parts) + place as u64) * length_us;
                Window { hart, guest: here[place].name.clone(), start_us, length_us }
            };
            (0..rounds)
                .flat_map(|round| (0..here.len()).map(move |place| (round, place)))
                .map(|(round, place)| window(round, place))
                .collect::<Vec<_>>()
        };
        (0..self.harts).flat_map(on_hart).collect()
    }

    /// The files of its guests.
    pub fn files(&self) -> Vec<PathBuf> {
        self.guests.iter().flat_map(Guest::files).collect()
    }
}

/// So FreeRTOS measures no tick of its first 2 ms, the longest tick here.
const FROM_THE_SECOND_TICK_ON: &str = " begin_ms=2";
/// So it measures nothing while its instructions become breakpoints, on harts without the H extension.
const FROM_WHEN_ITS_TEXT_IS_KNOWN_ON: &str = " begin_ms=80";
/// Board memory beside that of the guests: firmware, hypervisor, programs.
const OTHER_MEMORY_MIB: u32 = 64;
/// The same for the files of each Linux.
const LINUX_FILES_MIB: u32 = 64;

impl Description {
    /// Board memory for the shadow tables that all guests have on harts without the H extension.
    fn shadow_tables_mib(&self) -> u32 {
        let vcpus: u32 = self.guests.iter().map(|guest| guest.vcpus).sum();
        (vcpus * u32::from(DEFAULT_SHADOW_TABLES)).div_ceil((1 << 20) / PAGE as u32)
    }
}

impl Display for Description {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "name = \"random-{}\"", self.seed)?;
        write!(f, "policy = {{ preset = {:?}", self.preset)?;
        for (key, time) in [
            ("quantum", self.quantum_us),
            ("grace", self.grace_us),
            ("advance", self.advance_us),
            ("major_frame", self.frame_us),
        ] {
            if let Some(us) = time {
                write!(f, ", {key} = \"{us}us\"")?;
            }
        }
        let linux = self.guests.iter().filter(|guest| guest.job.is_linux()).count() as u32;
        let memory = self.guests.iter().map(Guest::memory_mib).sum::<u32>()
            + OTHER_MEMORY_MIB
            + linux * LINUX_FILES_MIB
            + if harts::usual_lack_h() { self.shadow_tables_mib() } else { 0 };
        writeln!(f, " }}\n\n[board]\nmachine = \"qemu-virt\"\nharts = {}", self.harts)?;
        writeln!(f, "interrupts = {:?}", self.interrupts)?;
        let cpu = harts::model(&self.cpu, harts::usual_lack_h());
        writeln!(f, "memory = \"{}MiB\"\ncpu = {cpu:?}", memory.next_multiple_of(64))?;
        for guest in &self.guests {
            let more = match guest.job {
                Job::FreeRtos { .. } if harts::usual_lack_h() => FROM_WHEN_ITS_TEXT_IS_KNOWN_ON,
                _ if oracle::begins_unseen(self, guest) => FROM_THE_SECOND_TICK_ON,
                _ => "",
            };
            guest.write(f, self, more)?;
        }
        self.windows().iter().try_for_each(|window| write!(f, "{window}"))?;
        let ringers = self.guests.iter().filter(|guest| matches!(guest.job, Job::Bells { .. }));
        let ringers: Vec<&str> = ringers.map(|guest| &*guest.name).collect();
        if !ringers.is_empty() {
            writeln!(f, "\n[[channel]]\nguests = {ringers:?}\nsize = \"4KiB\"")?;
        }
        writeln!(f, "\n[console]\ninput = {:?}", self.guests[self.input].name)
    }
}
