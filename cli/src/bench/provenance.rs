//! What a result was made with, and whether that is what is built now.
use super::{
    experiment::{Experiment, Form, Machine},
    key::{Hashes, Tools, key},
    plan::{Plan, Run},
    results::{CaseResult, Results, SampleResult},
    versions::{self, Versions},
};
use miette::{Result, miette};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    rc::Rc,
};

/// The commit that is checked out in `root`, if nothing of it has been changed. Results don't make figures, so changes in `docs/results`
/// don't count. `None` also where there is no git.
pub fn commit(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--verify", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--", ":/", ":(top,exclude)docs/results"])?;
    changes.is_empty().then_some(commit)
}

/// Which of the programs differ, in words: `hypervisor 0123, now 4567`. A program that neither needed is none of them.
pub fn differences(before: &Results, after: &Versions, now: &str) -> Vec<String> {
    let versions = &before.versions;
    let has_hypervisor = before.cases.iter().any(|case| case.machine == Machine::Ainori);
    let mut programs = vec![
        (has_hypervisor, "hypervisor", &versions.kernel, &after.kernel),
        (true, "QEMU", &versions.qemu, &after.qemu),
        (!versions.q.is_empty(), "lockstep.so", &versions.lockstep, &after.lockstep),
    ];
    let plugins = [("windows.so", &versions.windows, &after.windows), ("tlb.so", &versions.tlb, &after.tlb)];
    for (plugin, old, new) in plugins {
        if let (Some(old), Some(new)) = (old, new) {
            programs.push((true, plugin, old, new));
        }
    }
    let builds =
        versions.kernels.iter().filter_map(|(name, old)| Some((name, old, after.kernels.get(name)?)));
    programs.extend(builds.map(|(name, old, new)| (true, name.as_str(), old, new)));
    // A file of one result alone belongs to a case that the other hasn't got.
    let files = versions.files.iter().filter_map(|(name, file)| Some((name, file, after.files.get(name)?)));
    programs.extend(files.map(|(name, old, new)| (true, name.as_str(), &old.hash, &new.hash)));
    let differ = programs.into_iter().filter(|(is_used, _, old, new)| *is_used && old != new);
    differ.map(|(_, name, old, new)| format!("{name} {old}, {now} {new}")).collect()
}

/// What is built now, and the experiments as they are now: each is planned once, which takes a while.
#[derive(Debug)]
pub struct Today {
    /// The programs that runs need.
    pub tools: Tools,
    hashes: Hashes,
    plans: HashMap<(PathBuf, &'static str), Rc<Plan>>,
}

impl Today {
    /// With these programs.
    pub fn new(tools: Tools) -> Self {
        Self { tools, hashes: Hashes::default(), plans: HashMap::new() }
    }

    fn plan(&mut self, experiment: PathBuf, form: Form) -> Result<Rc<Plan>> {
        let name = match form {
            Form::Full => "full",
            Form::Short => "short",
        };
        let place = (experiment, name);
        if let Some(plan) = self.plans.get(&place) {
            return Ok(plan.clone());
        }
        let plan = Rc::new(Plan::new(Experiment::load(&place.0)?, form, &[])?);
        self.plans.insert(place, plan.clone());
        Ok(plan)
    }
}

/// How a result stands to what is built now.
#[derive(Debug)]
pub struct Standing {
    /// Its experiment, as the file is now, in the result's form.
    pub plan: Rc<Plan>,
    /// Those of its runs that would be the same today: the key is.
    pub today: Vec<Cell>,
    /// How many runs it has.
    pub runs: usize,
    /// Why it is old, in words; empty if all of its runs are of today.
    pub old: Vec<String>,
}

/// A run of a result, and of its experiment's plan.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// Index of the case in the result.
    pub case: usize,
    /// Index of the sample in the case.
    pub sample: usize,
    /// Index of the point in the plan.
    pub point: usize,
    /// Index of the run in the point.
    pub run: usize,
}

impl Standing {
    /// Compares a result with what is built. `file` is where it was read; an error says why it can't be compared: its experiment is not
    /// there any more, or something is not built.
    pub fn of(results: &Results, file: &Path, root: &Path, now: &mut Today) -> Result<Self> {
        let plan = now.plan(experiment_file(&results.experiment, file, root)?, results.form)?;
        let Today { tools, hashes, .. } = now;
        let mut today = Vec::new();
        for (case_index, case) in results.cases.iter().enumerate() {
            let Some((point, planned)) = planned(&plan, case) else { continue };
            for (sample_index, sample) in case.samples.iter().enumerate() {
                let run = planned.iter().position(|run| run.sample == sample.sample);
                let Some(run) = run else { continue };
                if key(&planned[run], tools, hashes)? == sample.key {
                    today.push(Cell { case: case_index, sample: sample_index, point, run });
                }
            }
        }
        let runs = results.cases.iter().map(|case| case.samples.len()).sum();
        let old = if today.len() == runs {
            Vec::new()
        } else {
            let now = versions::versions(&plan, tools, hashes)?;
            let differ = differences(results, &now, "now");
            // The key also has the plugin that counts, and all that isn't a program.
            let otherwise =
                || vec!["its experiment, a manifest, paths.so or the tool has changed".to_owned()];
            if differ.is_empty() { otherwise() } else { differ }
        };
        Ok(Self { plan, today, runs, old })
    }

    /// The run of a cell, as it would be today.
    pub fn run(&self, cell: Cell) -> &Run {
        &self.plan.points[cell.point].runs[cell.run]
    }
}

impl Cell {
    /// What the result has of it.
    pub fn in_results(self, results: &Results) -> (&CaseResult, &SampleResult) {
        let case = &results.cases[self.case];
        (case, &case.samples[self.sample])
    }
}

/// The point of a plan that a case is of, with its runs.
fn planned<'a>(plan: &'a Plan, case: &CaseResult) -> Option<(usize, &'a [Run])> {
    let is_it =
        |point: &super::plan::Point| plan.case(point).name == case.name && point.values == case.params;
    let index = plan.points.iter().position(is_it)?;
    Some((index, &plan.points[index].runs))
}

/// The file of a result's experiment: in experiments/, or beside the result.
fn experiment_file(name: &str, result: &Path, root: &Path) -> Result<PathBuf> {
    let name = format!("{name}.toml");
    let folders = [root.join("experiments"), result.parent().unwrap_or(Path::new(".")).to_owned()];
    let found = folders.iter().map(|folder| folder.join(&name)).find(|file| file.is_file());
    found.ok_or_else(|| {
        miette!(
            help = "an experiment that was taken out leaves no result: remove it as well",
            "there is no {name} in experiments/ nor beside {}",
            result.display()
        )
    })
}

#[cfg(test)]
mod tests;
