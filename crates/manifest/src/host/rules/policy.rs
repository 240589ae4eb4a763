//! The policy: its preset, and the times that it can be given.
use super::{
    super::{
        findings::Finding,
        reader::{At, Micros, suggest},
        schema::PolicyDraft,
    },
    windows,
};
use crate::config::{self, MAX_ADVANCE_US, MAX_GRACE_US, MIN_QUANTUM_US};
use ainori_sched::{Policy, Preset, presets};
use std::ops::RangeInclusive;

/// Policy of a manifest that names none.
const DEFAULT_PRESET: &str = "ainori";
/// Quantum of a manifest that names none: long beside a world switch, short enough that tasks on one vCPU of an SMP guest seldom
/// wait for a task on another one that has no core (docs/decisions.md).
const DEFAULT_QUANTUM_US: u32 = 500;
/// Longest quantum. A longer one is hardly meant, and starves equals.
pub const MAX_QUANTUM_US: u32 = 10_000_000;
/// Grace of a manifest that names none.
const DEFAULT_GRACE_US: u32 = Policy::GRACE_US as u32;
/// Advance of a manifest that names none.
const DEFAULT_ADVANCE_US: u32 = Policy::ADVANCE_US as u32;

/// The preset must be one of the scheduler's.
pub fn check_preset(draft: &PolicyDraft, findings: &mut Vec<Finding>) -> Option<&'static Preset> {
    if draft.is_lost {
        return None;
    }
    let preset = draft.preset.as_ref();
    let wanted = preset.map_or(DEFAULT_PRESET, |preset| &preset.value);
    let found = presets().iter().find(|known| known.name == wanted);
    if let (None, Some(preset)) = (found, preset) {
        let names: Vec<_> = presets().iter().map(|known| known.name).collect();
        let message = format!("there is no policy {wanted:?}");
        findings.push(Finding::at(preset.span.clone(), message).help(suggest(wanted, &names)));
    }
    found
}

/// The times must be in range, and the preset must be one that asks for them.
pub fn check_times(
    draft: &PolicyDraft,
    preset: Option<&Preset>,
    findings: &mut Vec<Finding>,
) -> Option<config::Policy> {
    let fixed_ms = preset.and_then(|preset| preset.fixed_quantum_ms);
    let quantum = match fixed_ms {
        Some(ms) => Err((ms * 1_000, format!("this policy has a quantum of its own, {ms} ms"))),
        None => Ok((DEFAULT_QUANTUM_US, MIN_QUANTUM_US..=MAX_QUANTUM_US)),
    };
    let grace = match preset {
        Some(preset) if !decides(preset, Policy::defers) => {
            Err((DEFAULT_GRACE_US, format!("the policy {} puts no preemption off", preset.name)))
        }
        _ => Ok((DEFAULT_GRACE_US, 1..=MAX_GRACE_US)),
    };
    let advance = match preset {
        Some(preset) if !decides(preset, Policy::takes_cores) => {
            let why = format!("under the policy {} no vCPU takes the core of another", preset.name);
            Err((DEFAULT_ADVANCE_US, why))
        }
        _ => Ok((DEFAULT_ADVANCE_US, 0..=MAX_ADVANCE_US)),
    };
    let quantum_us = check_time("quantum", draft.quantum.as_ref(), quantum, findings);
    let grace_us = check_time("grace", draft.grace.as_ref(), grace, findings);
    let advance_us = check_time("advance", draft.advance.as_ref(), advance, findings);
    let frame_us = windows::check_frame(draft, preset, findings).unwrap_or(0);
    Some(config::Policy { preset: preset?.name.to_owned(), quantum_us, grace_us, advance_us, frame_us })
}

/// A time in microseconds. `allowed`: its default and its range; or what it is, and why it can't be given.
fn check_time(
    name: &str,
    given: Option<&At<Micros>>,
    allowed: Result<(u32, RangeInclusive<u32>), (u32, String)>,
    findings: &mut Vec<Finding>,
) -> u32 {
    let Some(given) = given else { return allowed.map_or_else(|(own, _)| own, |(own, _)| own) };
    let (own, message, help) = match allowed {
        Err((own, why)) => (own, why, "remove the key".into()),
        Ok((own, range)) => match u32::try_from(given.value.0) {
            Ok(us) if range.contains(&us) => return us,
            _ => {
                let help = format!("from {} to {}", shown(*range.start()), shown(*range.end()));
                (own, format!("{name}: {} us is out of range", given.value.0), help)
            }
        },
    };
    findings.push(Finding::at(given.span.clone(), message).help(help));
    own
}

/// `10 s`, `100 ms` or `1 us`.
pub fn shown(us: u32) -> String {
    match us {
        0 => "0 us".into(),
        _ if us.is_multiple_of(1_000_000) => format!("{} s", us / 1_000_000),
        _ if us.is_multiple_of(1_000) => format!("{} ms", us / 1_000),
        _ => format!("{us} us"),
    }
}

/// What this preset's policy decides. Neither the quantum nor the clock matters for that.
fn decides(preset: &Preset, what: fn(&Policy) -> bool) -> bool {
    Policy::preset(preset.name, 1, 1_000).is_some_and(|policy| what(&policy))
}
