//! What happens while FreeRTOS has the hart of a vCPU of Linux.
use super::timeline::{Slice, Timeline};
use std::{fmt, ops::RangeInclusive};

/// FreeRTOS's vCPU.
const RTOS: &str = "freertos/0";
/// Shorter stretches of it are ticks, in nanoseconds.
const BUSY: u64 = 1_000_000;
/// Addresses of Linux's kernel begin here.
const KERNEL: u64 = 0xffff_ffc0_0000_0000;
/// Spin traps further apart than this, in nanoseconds, are not of one spin.
const PAUSE: u64 = 50_000;

/// FreeRTOS was busy from one time to another, in nanoseconds.
pub struct Event {
    pub begin: u64,
    pub end: u64,
    /// Whose hart it took.
    pub victim: String,
    /// Where that was.
    pc: u64,
    /// The longest spin of each other vCPU meanwhile.
    spinners: Vec<Spin>,
    fetch: Option<Fetch>,
}

/// A vCPU spun from one time to another, in nanoseconds.
pub struct Spin {
    vcpu: String,
    pub begin: u64,
    pub end: u64,
    traps: usize,
}

/// The victim went on elsewhere.
struct Fetch {
    /// The spin trap before it.
    spin: Option<(u64, String)>,
    taken: u64,
    what: String,
    runs: u64,
}

/// All of them, by time.
pub fn all(timeline: &Timeline) -> Vec<Event> {
    let busy = timeline.slices(RTOS).iter();
    let busy = busy.filter(|slice| slice.name.starts_with("running") && slice.end - slice.begin >= BUSY);
    busy.filter_map(|slice| event(timeline, slice)).collect()
}

fn event(timeline: &Timeline, busy: &Slice) -> Option<Event> {
    let vcpus = || timeline.slices.keys().filter(|track| track.starts_with("linux/"));
    let lost_hart = |vcpu: &&String| {
        timeline.slices(vcpu).iter().any(|slice| slice.end == busy.begin && slice.name == busy.name)
    };
    let victim = vcpus().find(lost_hart)?;
    let traps = timeline.points(victim).iter().filter(|point| point.time <= busy.begin);
    let pc = traps.filter_map(|trap| trap.pc).next_back()?;
    let others = vcpus().filter(|vcpu| *vcpu != victim);
    Some(Event {
        begin: busy.begin,
        end: busy.end,
        victim: victim.clone(),
        pc,
        spinners: others.clone().filter_map(|vcpu| longest_spin(timeline, vcpu, busy)).collect(),
        fetch: fetch(timeline, victim, others, busy),
    })
}

/// The spin traps of a vCPU in this time, in nanoseconds.
fn spins(timeline: &Timeline, vcpu: &str, during: RangeInclusive<u64>) -> Vec<u64> {
    let points = timeline.points(vcpu).iter().filter(|point| point.name == "spin");
    points.map(|point| point.time).filter(|time| during.contains(time)).collect()
}

/// When a vCPU spins in this time: from one spin trap to the last that follows without a pause.
pub fn stretches(timeline: &Timeline, vcpu: &str, during: RangeInclusive<u64>) -> Vec<Spin> {
    let times = spins(timeline, vcpu, during);
    let stretches = times.chunk_by(|one, next| next - one <= PAUSE);
    let spin = |times: &[u64]| Spin {
        vcpu: vcpu.to_owned(),
        begin: times[0],
        end: times[times.len() - 1],
        traps: times.len(),
    };
    stretches.map(spin).collect()
}

fn longest_spin(timeline: &Timeline, vcpu: &str, busy: &Slice) -> Option<Spin> {
    let spins = stretches(timeline, vcpu, busy.begin..=busy.end);
    spins.into_iter().max_by_key(|spin| spin.end - spin.begin)
}

fn fetch<'a>(
    timeline: &Timeline,
    victim: &str,
    others: impl Iterator<Item = &'a String>,
    busy: &Slice,
) -> Option<Fetch> {
    let mut points = timeline.points(victim).iter();
    let moved = points
        .find(|point| point.name.starts_with("migrates") && (busy.begin..=busy.end).contains(&point.time))?;
    let spins = others.flat_map(|vcpu| {
        spins(timeline, vcpu, busy.begin..=moved.time).into_iter().map(|time| (time, vcpu.clone()))
    });
    let mut runs = timeline.slices(victim).iter();
    let runs = runs.find(|slice| slice.begin >= moved.time && slice.name.starts_with("running"))?;
    Some(Fetch { spin: spins.max(), taken: moved.time, what: moved.name.clone(), runs: runs.begin })
}

impl Event {
    /// Whether the victim was in Linux's kernel, so that it may have held a lock.
    pub fn in_kernel(&self) -> bool {
        self.pc >= KERNEL
    }

    /// For how long the other three spin, each at least, in nanoseconds.
    pub fn all_spin(&self) -> u64 {
        let lengths = self.spinners.iter().map(|spinner| spinner.end - spinner.begin);
        if self.spinners.len() < 3 { 0 } else { lengths.min().unwrap_or(0) }
    }

    /// Whether the victim was in its kernel, and was fetched.
    pub fn is_cured(&self) -> bool {
        self.in_kernel() && self.fetch.is_some()
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = |time: u64| (time - self.begin) as f64 / 1e3;
        let Self { victim, pc, .. } = self;
        let (begin, busy) = (self.begin as f64 / 1e9, since(self.end));
        writeln!(
            f,
            "  {begin:.6} s: FreeRTOS takes the hart of {victim}, which is at {pc:#x}, for {busy:.1} us"
        )?;
        for Spin { vcpu, begin, end, traps } in &self.spinners {
            let (length, begin) = ((end - begin) as f64 / 1e3, since(*begin));
            writeln!(f, "  {vcpu} spins from {begin:.1} us on for {length:.1} us: {traps} spin traps")?;
        }
        let Some(Fetch { spin, taken, what, runs }) = &self.fetch else {
            return write!(f, "  {victim} stays until FreeRTOS sleeps");
        };
        if let Some((time, vcpu)) = spin {
            writeln!(f, "  {:.1} us: {vcpu} spins", since(*time))?;
        }
        writeln!(f, "  {:.1} us: {victim} {what}", since(*taken))?;
        write!(f, "  {:.1} us: {victim} runs", since(*runs))
    }
}
