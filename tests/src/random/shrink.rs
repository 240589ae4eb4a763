//! Makes a failing system smaller for as long as it fails in the same way.
use super::description::{Description, Guest, Job, LinuxJob, Talk};
use crate::PLIC;

/// Simpler systems, each with one thing less; those that leave out most come first.
pub fn candidates(system: &Description) -> Vec<Description> {
    let mut simpler = Vec::new();
    let mut offer = |change: &dyn Fn(&mut Description)| {
        let mut candidate = system.clone();
        change(&mut candidate);
        if candidate != *system && super::oracle::all_can_finish(&candidate) {
            simpler.push(candidate);
        }
    };
    let rings = |guest: &Guest| matches!(guest.job, Job::Bells { .. });
    // There are two of them, or none; they are the last, and nobody types to them.
    offer(&|system| system.guests.retain(|guest| !rings(guest)));
    for index in 0..system.guests.len() {
        if system.guests.len() > 1 && !rings(&system.guests[index]) {
            offer(&|system| remove_guest(system, index));
        }
    }
    offer(&|system| remove_hart(system));
    offer(&|system| system.cpu = "rv64".into());
    offer(&|system| system.interrupts = PLIC);
    offer(&|system| forget_typing(system));
    offer(&|system| system.quantum_us = None);
    offer(&|system| system.grace_us = None);
    offer(&|system| system.advance_us = None);
    offer(&|system| system.frame_us = system.frame_us.map(|_| 10_000));
    offer(&|system| system.slice = 250);
    for index in 0..system.guests.len() {
        for simplify in GUEST_STEPS {
            offer(&|system| simplify(&mut system.guests[index]));
        }
    }
    simpler
}

/// What can be left out of a guest.
const GUEST_STEPS: [fn(&mut Guest); 8] = [
    |guest| guest.vcpus = 1,
    |guest| guest.vcpus = guest.vcpus.div_ceil(2),
    |guest| guest.vcpus -= u32::from(guest.vcpus > 1),
    |guest| guest.harts.truncate(1),
    |guest| guest.weight = 1,
    |guest| guest.background &= !guest.job.ends(),
    |guest| guest.job = simpler_job(&guest.job),
    |guest| guest.job = shorter_job(&guest.job),
];

fn remove_guest(system: &mut Description, index: usize) {
    system.guests.remove(index);
    if system.input == index {
        forget_typing(system);
        system.input = 0;
    } else if system.input > index {
        system.input -= 1;
    }
}

/// One hart less: what was on it goes to hart 0. Not where harts are not shared: two guests might meet there.
fn remove_hart(system: &mut Description) {
    if system.harts == 1 || !super::oracle::policy(system).shares_cores() {
        return;
    }
    system.harts -= 1;
    for guest in &mut system.guests {
        for hart in &mut guest.harts {
            if *hart == system.harts {
                *hart = 0;
            }
        }
        let mut seen = 0u64;
        guest.harts.retain(|hart| {
            let is_new = seen & 1 << hart == 0;
            seen |= 1 << hart;
            is_new
        });
    }
}

fn forget_typing(system: &mut Description) {
    system.typing = None;
    for guest in &mut system.guests {
        match &mut guest.job {
            Job::Talk(talk) => talk.ears = None,
            Job::Linux(LinuxJob::Talk { hears, .. }) => *hears = false,
            _ => {}
        }
    }
}

/// The same job with less in it.
fn simpler_job(job: &Job) -> Job {
    match job {
        Job::FreeRtos { period_us, periods, burn_period_us, tick_us, .. } => Job::FreeRtos {
            period_us: *period_us,
            periods: *periods,
            burn_percent: 0,
            burn_period_us: *burn_period_us,
            tick_us: *tick_us,
            report_ms: 0,
        },
        Job::Talk(talk) if talk.flash => Job::Talk(Talk { flash: false, ..talk.clone() }),
        Job::Talk(talk) if talk.alarms > 0 => Job::Talk(Talk { alarms: 0, ..talk.clone() }),
        Job::Talk(talk) => Job::Talk(Talk { gap_us: 0, by_uart: false, ..talk.clone() }),
        Job::Linux(LinuxJob::Hackbench(_)) => Job::Linux(LinuxJob::Boot),
        Job::Crowd { period_us, .. } => Job::Crowd { period_us: *period_us, bytes: 0 },
        Job::Chaos { seed, kinds, period_us, window_us, extensions: true } => {
            let (seed, kinds, period_us, window_us) = (*seed, *kinds, *period_us, *window_us);
            Job::Chaos { seed, kinds, period_us, window_us, extensions: false }
        }
        other => other.clone(),
    }
}

/// The same job, half as long.
fn shorter_job(job: &Job) -> Job {
    let mut job = job.clone();
    let (value, least) = match &mut job {
        Job::FreeRtos { periods, .. } => (periods, 20),
        Job::Timer { ticks, .. } => (ticks, 20),
        Job::Talk(talk) => (&mut talk.bytes, 1_000),
        Job::Linux(LinuxJob::Talk { bytes, .. }) => (bytes, 1_000),
        Job::Smp { rounds } => (rounds, 1),
        Job::Plic { repeats } => (repeats, 0),
        Job::FpKeep { ms, .. } | Job::Locks { ms } | Job::Bells { ms } => (ms, 10),
        Job::Lives { ms, .. } => (ms, 0),
        Job::Linux(LinuxJob::Hackbench(loops)) => (loops, 5),
        _ => return job,
    };
    *value = (*value / 2).max(least.min(*value));
    job
}

/// The smallest failing system that is found with at most `tries` runs. `fails` runs one and says whether it fails in the same way.
pub fn shrink(
    system: &Description,
    mut tries: u32,
    mut fails: impl FnMut(&Description) -> bool,
) -> Description {
    let mut smallest = system.clone();
    'smaller: loop {
        for candidate in candidates(&smallest) {
            if tries == 0 {
                return smallest;
            }
            tries -= 1;
            if fails(&candidate) {
                smallest = candidate;
                continue 'smaller;
            }
        }
        return smallest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::generate;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let seeds = (0..200).filter(|seed| {
            let guests = generate::system(*seed).guests;
            guests.iter().any(|guest| guest.vcpus >= 3)
        });
        for seed in seeds.take(20) {
            let fails = |system: &Description| system.guests.iter().any(|guest| guest.vcpus >= 3);
            let smallest = shrink(&generate::system(seed), 10_000, fails);
            let vcpus: Vec<u32> = smallest.guests.iter().map(|guest| guest.vcpus).collect();
            assert!(vcpus.contains(&3), "{smallest}");
            assert!(smallest.typing.is_none() && smallest.cpu == "rv64", "{smallest}");
        }
    }

    #[test]
    fn it_ends_when_the_tries_are_used_up() {
        let mut runs = 0;
        shrink(&generate::system(3), 5, |_| {
            runs += 1;
            true
        });
        assert!(runs <= 5);
    }
}
