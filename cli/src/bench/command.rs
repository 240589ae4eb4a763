//! `ainori bench`, from the command line to the exit code.
use super::{
    again,
    args::{Action, Bench},
    chart, compare,
    engine::{Done, Engine},
    evaluate,
    execute::execute,
    experiment::{Experiment, Form, Machine},
    html, judge,
    key::{Hashes, Tools, key},
    plan::Plan,
    quote,
    results::Results,
    store::Store,
    table, verdict, versions,
};
use crate::{
    checkout,
    output::{self, Output},
    run::version,
};
use anstream::{eprintln, print, println};
use indicatif::{ProgressBar, ProgressStyle};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::SystemTime,
};

/// Exit code if a run failed, or a bar with `--check`.
const FAILED: u8 = verdict::FAILED;
/// Exit code if the user interrupted it.
const INTERRUPTED: u8 = 130;
/// What holds for all figures.
const MEASURE: &str = "Virtual time on QEMU: one instruction takes 4 ns (250 MIPS). An emulator has no caches, no TLB cost and no memory \
     latency: these are not times of a chip.";

/// Does what the command line asks for; `stop` ends it early. Returns the exit code.
pub fn command(arguments: &Bench, stop: &Arc<AtomicBool>) -> Result<u8> {
    if let Some(Action::Compare { before, after }) = &arguments.action {
        let files = (before.display(), after.display());
        let (before, after) = (Results::load(before)?, Results::load(after)?);
        if before.experiment != after.experiment {
            return Err(miette!(
                help = "give two results of one experiment: target/bench and docs/results have them as NAME.json",
                "{} has results of the experiment {}, {} of {}: they have nothing to compare",
                files.0,
                before.experiment,
                files.1,
                after.experiment
            ));
        }
        print!("{}", compare::show(&compare::compare(&before, &after), &before, &after));
        return Ok(0);
    }
    let root = root()?;
    if let Some(Action::Judge { results }) = &arguments.action {
        let (text, code) = again::show(results, &root.join("experiments"))?;
        print!("{text}");
        return Ok(code);
    }
    if let Some(Action::Quote { check, pages }) = &arguments.action {
        let (text, is_well) = quote::pages(&root, pages, *check)?;
        print!("{text}");
        return Ok(if is_well { 0 } else { FAILED });
    }
    let form = if arguments.short { Form::Short } else { Form::Full };
    let files = experiment_files(&arguments.experiments, &root)?;
    if arguments.json.is_some() && files.len() != 1 {
        return Err(miette!("--json takes the results of one experiment, but there are {}", files.len()));
    }
    if arguments.name.is_some() && files.len() != 1 {
        return Err(miette!("--name is for the report of one experiment, but there are {}", files.len()));
    }
    let mut json = arguments.json.as_deref().map(Output::prepare).transpose()?;
    // All plans first: what is wrong with the last must not come out after the runs of the first.
    let plans: Vec<Plan> = files
        .iter()
        .map(|file| Plan::new(Experiment::load(file)?, form, &arguments.only))
        .collect::<Result<_>>()?;
    let Some(tools) = tools(arguments, &plans, stop)? else {
        eprintln!("Interrupted before the first run.");
        return Ok(INTERRUPTED);
    };
    let store = Store::open(root.join(".cache/bench"))?;
    let mut hashes = Hashes::default();
    let mut code = 0;
    for plan in &plans {
        let keys: Vec<Vec<String>> = plan
            .points
            .iter()
            .map(|point| point.runs.iter().map(|run| key(run, &tools, &mut hashes)).collect())
            .collect::<Result<_>>()?;
        let done = run(plan, &keys, &tools, &store, arguments, stop)?;
        if stop.load(Ordering::Relaxed) {
            let (done, runs) = (done.documents.len(), plan.runs().count());
            let how = if arguments.fresh { " without --fresh" } else { "" };
            eprintln!("Interrupted with {done} of {runs} runs done; the same command{how} goes on.");
            return Ok(INTERRUPTED);
        }
        let cases = evaluate::cases(plan, &keys, &done)?;
        let results = Results {
            experiment: plan.experiment.name.clone(),
            title: plan.experiment.title.clone(),
            question: plan.experiment.question.clone(),
            form,
            only: plan.only.clone(),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: shown_command(plan, arguments),
            machine: MEASURE.into(),
            versions: versions::versions(plan, &tools, &mut hashes)?,
            bars: evaluate::bars(plan, &cases)?,
            derived: judge::derived(&plan.experiment, &cases)?,
            cases,
        };
        print!("\n{}", table::results(&results));
        let folder = root.join(if arguments.save { "docs/results" } else { "target/bench" });
        write_report(&folder, &report_name(plan, arguments), plan, &results)?;
        if let Some(json) = json.take() {
            json.write(results.json().as_bytes())?;
        }
        let checked = if arguments.check { verdict::code(&results.bars) } else { 0 };
        code = match checked {
            _ if !evaluate::problems(&results.cases).is_empty() => FAILED,
            checked if code == 0 || checked == FAILED => checked,
            _ => code,
        };
    }
    Ok(code)
}

/// The checkout: the folder that has experiments/.
fn root() -> Result<PathBuf> {
    let readme =
        checkout::find("experiments/README.md", "the folder of experiments", "run it inside a checkout")?;
    let root = readme.ancestors().nth(2).map(Path::to_owned);
    root.ok_or_else(|| miette!("{} is in no folder", readme.display()))
}

/// The files of the experiments that are meant.
fn experiment_files(names: &[String], root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join("experiments");
    let mut all: Vec<PathBuf> = fs::read_dir(&folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .into_diagnostic()
        .wrap_err_with(|| format!("{} can't be read", folder.display()))?;
    all.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    all.sort();
    if names.is_empty() {
        return Ok(all);
    }
    let known: Vec<_> = all.iter().filter_map(|path| Some(path.file_stem()?.to_string_lossy())).collect();
    let file_of = |name: &String| match known.iter().position(|known| known == name) {
        Some(index) => Ok(all[index].clone()),
        None if name.ends_with(".toml") => Ok(PathBuf::from(name)),
        None => {
            Err(miette!(help = format!("there are: {}", known.join(", ")), "there is no experiment {name:?}"))
        }
    };
    names.iter().map(file_of).collect()
}

/// Finds the programs that the runs need. `None` if `stop` was set.
fn tools(arguments: &Bench, plans: &[Plan], stop: &AtomicBool) -> Result<Option<Tools>> {
    let remedy = "run `make build`";
    let needs_kernel = plans.iter().flat_map(Plan::runs).any(|run| run.machine == Machine::Ainori);
    let kernel = match &arguments.kernel {
        Some(kernel) if needs_kernel && !kernel.is_file() => {
            return Err(miette!("there is no file {}", kernel.display()));
        }
        Some(kernel) => kernel.clone(),
        None => checkout::find(".cache/kernel/ainori.elf", "the hypervisor", remedy)?,
    };
    let Some(qemu) = version::version(None, stop)? else { return Ok(None) };
    Ok(Some(Tools {
        qemu,
        kernel,
        lockstep: checkout::find(".cache/plugins/lockstep.so", "the lockstep clock", remedy)?,
        paths: checkout::find(".cache/plugins/paths.so", "the plugin that counts instructions", remedy)?,
    }))
}

fn run(
    plan: &Plan,
    keys: &[Vec<String>],
    tools: &Tools,
    store: &Store,
    arguments: &Bench,
    stop: &Arc<AtomicBool>,
) -> Result<Done> {
    let runs: Vec<_> = keys.iter().flatten().cloned().zip(plan.runs()).collect();
    let style = "{prefix} [{bar:30}] {pos}/{len} runs, {elapsed} gone, about {eta} to go: {wide_msg}";
    let style = ProgressStyle::with_template(style).into_diagnostic()?.progress_chars("=> ");
    let progress =
        ProgressBar::new(runs.len() as u64).with_style(style).with_prefix(plan.experiment.name.clone());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let engine = Engine {
        execute: &|run| execute(run, tools, stop),
        store,
        fresh: arguments.fresh,
        jobs: arguments.jobs.map_or(cores, usize::from),
        stop,
        progress: &progress,
    };
    engine.run(&runs)
}

/// The command that gives the same results, whatever was written here.
fn shown_command(plan: &Plan, arguments: &Bench) -> String {
    let short = if arguments.short { " --short" } else { "" };
    format!("./ainori bench {}{short}{}", plan.experiment.name, plan.only.options())
}

/// The name of the report's files. A part of an experiment doesn't take the place of the whole.
fn report_name(plan: &Plan, arguments: &Bench) -> String {
    let part = if plan.only.is_all() { "" } else { "-part" };
    arguments.name.clone().unwrap_or_else(|| format!("{}{part}", plan.experiment.name))
}

/// Writes NAME.json, NAME.html, and each chart as NAME-N.svg.
fn write_report(folder: &Path, name: &str, plan: &Plan, results: &Results) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| miette!("{} can't be made: {error}", folder.display()))?;
    let mut charts = Vec::new();
    for (index, chart) in plan.experiment.charts.iter().enumerate() {
        if let Some(svg) = chart::svg(chart, plan, &results.cases)? {
            output::write(&folder.join(format!("{name}-{}.svg", index + 1)), svg.as_bytes())?;
            charts.push(svg);
        }
    }
    output::write(&folder.join(format!("{name}.json")), results.json().as_bytes())?;
    let page = folder.join(format!("{name}.html"));
    output::write(&page, html::report(results, &charts).as_bytes())?;
    println!("Report: {}", page.display());
    Ok(())
}
