//! One run, from the plan to its document.
use super::{bare, document::document, experiment::Machine, key::Tools, paths, plan::Run, tlb, windows};
use crate::{
    report::Outcome,
    run::{self, Options, files::Files},
};
use miette::{Result, miette};
use serde_json::Value;
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// Does one run, in at most `timeout` of the host's time. `None` if `stop` was set; an error if the run can't be used.
pub fn execute(run: &Run, tools: &Tools, timeout: Duration, stop: &Arc<AtomicBool>) -> Result<Option<Value>> {
    let counts = Files::new(None)?.create("counts.json")?;
    let windows = Files::new(None)?.create("windows.json")?;
    let mut options = Options {
        kernel: Some(tools.kernel(run)?),
        clock: run.clock,
        seed: run.seed(),
        timeout: Some(timeout),
        stop: stop.clone(),
        ..Options::new(&run.label)
    };
    if !run.marks.is_empty() {
        options.qemu_args.extend(["-plugin".into(), paths::plugin(&tools.paths, &run.marks, &counts.path)]);
    }
    if !run.windows.is_empty() {
        let plugin = match &run.tlb {
            None => windows::plugin(&tools.windows, &run.windows, &windows.path),
            Some(models) => tlb::plugin(&tools.tlb, models, &run.windows, &windows.path),
        };
        options.qemu_args.extend(["-plugin".into(), plugin]);
    }
    let report = match run.machine {
        Machine::Ainori => run::run_manifest(&options, &run.manifest)?,
        Machine::Bare => bare::run(&mut options, run, &tools.qemu)?,
    };
    match report.outcome {
        Outcome::Good => {}
        Outcome::GuestFailed if run.guests_may_fail => {}
        Outcome::Interrupted => return Ok(None),
        outcome => {
            let problems: String = report.problems.iter().map(|problem| format!("; {problem}")).collect();
            return Err(miette!("{}{problems}", outcome.words()));
        }
    }
    let mut document = document(&report);
    if !run.marks.is_empty() {
        (document["paths"], document["instructions"]) = paths::read(&counts.path)?;
    }
    match &run.tlb {
        _ if run.windows.is_empty() => {}
        None => document["windows"] = windows::read(&windows.path)?,
        Some(_) => document["tlb"] = tlb::read(&windows.path)?,
    }
    Ok(Some(document))
}
