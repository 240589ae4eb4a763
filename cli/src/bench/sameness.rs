//! Whether a run that was done again is the run that a result has, to the byte.
use super::{
    engine::Done,
    evaluate, key,
    plan::Plan,
    provenance::{Cell, Standing},
    results::{CaseResult, Results, SampleResult},
};
use miette::{Result, miette};
use serde_json::Value;

/// What differs between a cell of a result and the document of the same run done again, in words; empty if nothing does.
pub fn differences(
    results: &Results,
    standing: &Standing,
    cell: Cell,
    document: Value,
) -> Result<Vec<String>> {
    let again = case_of(&standing.plan, cell, document)?;
    let (case, sample) = cell.in_results(results);
    let [again_sample] = &again.samples[..] else {
        return Err(miette!("the run {} has given no sample", standing.run(cell).shown()));
    };
    let mut differ = samples(sample, again_sample);
    // Histograms of a case are summed over its samples; where there is one, they are that one's.
    if case.samples.len() == 1 {
        for (name, histogram) in &case.histograms {
            if again.histograms.get(name) != Some(histogram) {
                differ.push(format!("the histogram {name} is another one"));
            }
        }
    }
    Ok(differ)
}

/// Compares a sample with the same one again: metrics, schedule and document.
fn samples(committed: &SampleResult, again: &SampleResult) -> Vec<String> {
    let mut differ = Vec::new();
    for (name, value) in &committed.metrics {
        match again.metrics.get(name) {
            Some(now) if now.to_bits() == value.to_bits() => {}
            Some(now) => differ.push(format!("{name} is {now}, the result has {value}")),
            None => differ.push(format!("{name} is missing, the result has {value}")),
        }
    }
    if committed.schedule != again.schedule {
        differ.push(format!(
            "schedule {}, the result has {}",
            or_none(&again.schedule),
            or_none(&committed.schedule)
        ));
    }
    if committed.document.is_some() && committed.document != again.document && differ.is_empty() {
        differ.push(format!(
            "metrics and schedule are the same, but not the rest of what is known (histograms, counters): its hash is {}, the \
             result has {}",
            or_none(&again.document),
            or_none(&committed.document)
        ));
    }
    differ
}

fn or_none(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("none")
}

/// The result of a case of which only one run was done.
fn case_of(plan: &Plan, cell: Cell, document: Value) -> Result<CaseResult> {
    // Each run has a key of its own, and only that of the cell a document.
    let keys: Vec<Vec<String>> = plan
        .points
        .iter()
        .enumerate()
        .map(|(point, planned)| (0..planned.runs.len()).map(|run| format!("{point}.{run}")).collect())
        .collect();
    let mut done = Done::default();
    done.documents.insert(keys[cell.point][cell.run].clone(), document);
    let mut cases = evaluate::cases(plan, &keys, &done)?;
    Ok(cases.swap_remove(cell.point)) // nothing was left out of the plan, so each point has its case
}

/// Puts candidates into an order that a seed decides: the first ones are its sample. Each is given with its key.
pub fn shuffled<T>(candidates: Vec<(String, T)>, seed: u64) -> Vec<(String, T)> {
    let mut candidates = candidates;
    candidates.sort_by_cached_key(|(key, _)| key::hash(format!("{seed} {key}").as_bytes()));
    candidates.dedup_by(|(a, _), (b, _)| a == b);
    candidates
}

#[cfg(test)]
mod tests;
