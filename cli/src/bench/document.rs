//! The document of a run: what is known after it, as JSON, arranged so that metrics can point at it by names.
//!
//! It is the run's report (see [`RunReport`]) but for what depends on the host, with the guests by name. Each has also
//!
//! - `result`: the last object that it printed for the report, and `result_count`, how many there were;
//! - `histograms`: those that it printed, by name, as `[[upper bound, count], ...]`;
//! - `exits`: exits to the hypervisor of all its vCPUs, by cause, and `exits_total`; those that it had none of are left out;
//! - `migrations` and `preemptions` of all its vCPUs.
//!
//! Beside them are `ipis_sent`, of all cores, `paths` (by name) and `instructions`, and `windows` (by name), where they were counted.
//!
//! Metrics see three things more: `irqs_off_total`, how long the hypervisor had interrupts off in the whole run, on all cores, for all causes ([`irqs_off_total`]), `check`, what `ainori check` says of the tasks that the manifest declares ([`answers`]), and `policy`, how much code its policy is
//! ([`code`](super::code)).
use crate::{
    deadlines::{Deadlines, VerdictKind},
    report::RunReport,
};
use serde_json::{Map, Value, json};

/// Makes a run's document.
pub fn document(report: &RunReport) -> Value {
    let mut document = json!(report);
    for host_dependent in ["host", "system", "console", "outcome"] {
        document.as_object_mut().map(|fields| fields.remove(host_dependent));
    }
    let guests = document["guests"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let guests = guests
        .into_iter()
        .map(|guest| (guest["name"].as_str().unwrap_or_default().to_owned(), by_name(guest)));
    document["guests"] = Value::Object(guests.collect());
    document["ipis_sent"] = json!(total(&document["cores"], "ipis_sent"));
    document
}

/// The ticks in which the hypervisor had interrupts off: of all cores and causes in a run's document.
///
/// It is no part of that: what it would add is there already.
pub fn irqs_off_total(document: &Value) -> u64 {
    let cores = document["cores"].as_array().into_iter().flatten();
    let by_cause = cores.filter_map(|core| core["irqs_off_total"].as_object()).flatten();
    by_cause.filter_map(|(_, ticks)| ticks.as_u64()).sum()
}

/// What is said of the deadlines of a system's tasks, by guest and task: as `ainori check --json` has it, without what isn't known, and `met`, 1 or 0.
///
/// It is no part of a run's document: it depends on the manifest and the tool, and a run doesn't depend on it.
pub fn answers(deadlines: &Deadlines) -> Value {
    let mut guests = Map::new();
    for task in deadlines.harts.iter().flat_map(|hart| &hart.tasks) {
        let mut answer = json!(task);
        if let Some(fields) = answer.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
            fields.insert("met".into(), u8::from(task.verdict == VerdictKind::Met).into());
        }
        guests.entry(&task.guest).or_insert_with(|| json!({}))[&task.task] = answer;
    }
    Value::Object(guests)
}

/// The sum of a counter over cores or vCPUs.
fn total(counters: &Value, name: &str) -> u64 {
    counters.as_array().into_iter().flatten().filter_map(|one| one[name].as_u64()).sum()
}

/// Adds to a guest what its results and its vCPUs say together.
fn by_name(mut guest: Value) -> Value {
    let printed = guest["results"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let (pieces, results): (Vec<_>, Vec<_>) =
        printed.into_iter().partition(|result| result["hist"].is_string());
    let mut histograms = Map::new();
    for piece in pieces {
        let name = piece["hist"].as_str().unwrap_or_default().to_owned();
        let buckets = histograms.entry(name).or_insert_with(|| json!([]));
        // A long histogram is printed in several pieces.
        if let (Some(buckets), Some(more)) = (buckets.as_array_mut(), piece["buckets"].as_array()) {
            buckets.extend(more.iter().cloned());
        }
    }
    let mut exits = Map::new();
    for (cause, count) in
        guest["vcpus"].as_array().into_iter().flatten().filter_map(|vcpu| vcpu["exits"].as_object()).flatten()
    {
        let sum = exits.get(cause).and_then(Value::as_u64).unwrap_or(0) + count.as_u64().unwrap_or(0);
        exits.insert(cause.clone(), json!(sum));
    }
    guest["exits_total"] = json!(exits.values().filter_map(Value::as_u64).sum::<u64>());
    guest["exits"] = Value::Object(exits);
    for counter in ["migrations", "preemptions"] {
        guest[counter] = json!(total(&guest["vcpus"], counter));
    }
    guest["histograms"] = Value::Object(histograms);
    guest["result_count"] = json!(results.len());
    guest["result"] = results.last().cloned().unwrap_or_default();
    guest["results"] = Value::Array(results);
    guest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_with_interrupts_off_is_added_up() {
        let document = json!({"cores": [{"irqs_off_total": {"timer": 5, "satp": 7}}, {"irqs_off_total": {"wfi": 1}}, {}]});
        assert_eq!(irqs_off_total(&document), 13);
        assert_eq!(irqs_off_total(&json!({})), 0);
    }

    #[test]
    fn results_histograms_and_exits_are_put_together() {
        let guest = json!({
            "name": "freertos",
            "results": [
                {"job": "freertos", "missed": 1},
                {"job": "freertos", "missed": 0},
                {"job": "freertos", "hist": "delay_ns", "buckets": [[200, 5]]},
                {"job": "freertos", "hist": "delay_ns", "buckets": [[300, 1]]},
            ],
            "vcpus": [{"exits": {"wfi": 2, "sbi": 1}, "migrations": 4}, {"exits": {"wfi": 3}, "migrations": 5}],
        });
        let guest = by_name(guest);
        assert_eq!(guest["result"]["missed"], 0);
        assert_eq!(guest["result_count"], 2);
        assert_eq!(guest["histograms"]["delay_ns"], json!([[200, 5], [300, 1]]));
        assert_eq!(guest["exits"], json!({"wfi": 5, "sbi": 1}));
        assert_eq!(guest["exits_total"], 6);
        assert_eq!(guest["migrations"], 9);
    }
}
