//! `ainori bench`, from the command line to the exit code.
use super::{
    again,
    args::{self, Action, Bench},
    charts, compare,
    engine::{Done, Engine},
    evaluate,
    execute::execute,
    experiment::{Experiment, Form, Machine},
    judge,
    key::{Hashes, Tools, key},
    merge,
    plan::{Plan, Run},
    progress::Progress,
    provenance, quote, report,
    results::Results,
    shard::{Cut, Shard},
    store::Store,
    table, verdict, verify,
    versions::{self, Versions},
};
use crate::{apart::Apart, checkout, output::Output, run::version};
use anstream::{eprintln, print, println};
use miette::{Result, miette};
use std::{
    collections::BTreeSet,
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
    match &arguments.action {
        None => experiments(arguments, stop),
        Some(Action::Compare { before, after }) => compare_files(before, after),
        Some(Action::Report(report)) => pages(report, stop),
        Some(Action::Merge(merge)) => merge::command(merge, &root()?),
        Some(Action::Verify(verify)) => verify::command(verify, &root()?, stop),
        Some(Action::Judge { results }) => {
            let (text, code) = again::show(results, &root()?.join("experiments"))?;
            print!("{text}");
            Ok(code)
        }
        Some(Action::Quote { check, pages }) => {
            let (text, is_well) = quote::pages(&root()?, pages, *check)?;
            print!("{text}");
            Ok(if is_well { 0 } else { FAILED })
        }
    }
}

fn compare_files(before: &Path, after: &Path) -> Result<u8> {
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
    Ok(0)
}

/// Makes pages and charts of results that are there.
fn pages(arguments: &args::Report, stop: &AtomicBool) -> Result<u8> {
    let root = root()?;
    let files = match arguments.files.is_empty() {
        true => report::committed(&root)?,
        false => arguments.files.clone(),
    };
    let folder = arguments.out.clone().unwrap_or_else(|| root.join("target/results"));
    // All are read first: what is wrong with the last must not come out after the pages of the first.
    let experiments = root.join("experiments");
    let results: Vec<(String, (Results, again::By))> = files
        .iter()
        .map(|file| {
            let name = file.file_stem().ok_or_else(|| miette!("{} is no file", file.display()))?;
            Ok((name.to_string_lossy().into_owned(), again::for_page(Results::load(file)?, &experiments)?))
        })
        .collect::<Result<_>>()?;
    let mut today = verify::today(stop);
    for (file, (name, (results, by))) in files.iter().zip(&results) {
        let old = today.as_mut().map(|today| verify::old(results, file, &root, today)).unwrap_or_default();
        println!("Report: {}", report::write_page(&folder, name, results, &old, *by)?.display());
        if arguments.save {
            for chart in report::save_charts(&root, name, results)? {
                println!("Saved: {}/{chart}", report::COMMITTED);
            }
        }
    }
    Ok(0)
}

fn experiments(arguments: &Bench, stop: &Arc<AtomicBool>) -> Result<u8> {
    let root = root()?;
    let form = if arguments.short { Form::Short } else { Form::Full };
    let files = experiment_files(&arguments.experiments, &root)?;
    if arguments.json.is_some() && files.len() != 1 {
        return Err(miette!("--json takes the results of one experiment, but there are {}", files.len()));
    }
    if arguments.name.is_some() && files.len() != 1 {
        return Err(miette!("--name is for the report of one experiment, but there are {}", files.len()));
    }
    let apart = files.iter().fold(Apart::default(), |apart, file| apart.reads("an experiment", Some(file)));
    let apart =
        apart.reads("--kernel", arguments.kernel.as_deref()).writes("--json", arguments.json.as_deref());
    apart.check()?;
    let mut json = arguments.json.as_deref().map(Output::prepare).transpose()?;
    // All plans first: what is wrong with the last must not come out after the runs of the first.
    let plans: Vec<Plan> = files
        .iter()
        .map(|file| Plan::new(Experiment::load(file)?, form, &arguments.only))
        .collect::<Result<_>>()?;
    plans.iter().fold(apart, |apart, plan| plan.reads(apart)).check()?;
    let needs_kernel = plans.iter().flat_map(Plan::runs).any(|run| run.machine == Machine::Ainori);
    let Some(tools) = tools(arguments.kernel.as_deref(), needs_kernel, stop)? else {
        eprintln!("Interrupted before the first run.");
        return Ok(INTERRUPTED);
    };
    // Before the reports, which may change what is committed.
    let commit = provenance::commit(&root);
    let store = Store::open(arguments.store.clone().unwrap_or_else(|| root.join(".cache/bench")))?;
    let mut hashes = Hashes::default();
    let keys: Vec<Vec<Vec<String>>> =
        plans.iter().map(|plan| keys_of(plan, &tools, &mut hashes)).collect::<Result<_>>()?;
    let all: Vec<(String, &Run)> = plans
        .iter()
        .zip(&keys)
        .flat_map(|(plan, keys)| keys.iter().flatten().cloned().zip(plan.runs()))
        .collect();
    if let Some(shard) = arguments.shard {
        return part(shard, &all, &tools, &store, arguments, stop);
    }
    if arguments.no_run {
        all_are_done(&all, &store)?;
    }
    let mut code = 0;
    for (plan, keys) in plans.iter().zip(&keys) {
        let runs: Vec<_> = keys.iter().flatten().cloned().zip(plan.runs()).collect();
        let done = run(&plan.experiment.name, &runs, &tools, &store, arguments, stop)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(interrupted(&done, &runs, arguments));
        }
        let cases = evaluate::cases(plan, keys, &done)?;
        let results = Results {
            experiment: plan.experiment.name.clone(),
            title: plan.experiment.title.clone(),
            question: plan.experiment.question.clone(),
            form,
            only: plan.only.clone(),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: shown_command(plan, arguments),
            machine: MEASURE.into(),
            versions: Versions { commit: commit.clone(), ..versions::versions(plan, &tools, &mut hashes)? },
            bars: evaluate::bars(plan, &cases)?,
            derived: judge::derived(&plan.experiment, &cases)?,
            charts: charts::charts(plan, &cases)?,
            cases,
        };
        print!("\n{}", table::results(&results));
        write_report(&root, &report_name(plan, arguments), &results, arguments.save)?;
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

/// Keys of an experiment's runs, by point.
fn keys_of(plan: &Plan, tools: &Tools, hashes: &mut Hashes) -> Result<Vec<Vec<String>>> {
    plan.points.iter().map(|point| point.runs.iter().map(|run| key(run, tools, hashes)).collect()).collect()
}

/// Does one part of the runs, and makes no report.
fn part(
    shard: Shard,
    all: &[(String, &Run)],
    tools: &Tools,
    store: &Store,
    arguments: &Bench,
    stop: &Arc<AtomicBool>,
) -> Result<u8> {
    let cut = Cut::of(store.folder(), all, shard.of)?;
    let mine: Vec<_> = all.iter().filter(|(key, _)| cut.has(shard, key)).cloned().collect();
    let different: BTreeSet<&String> = mine.iter().map(|(key, _)| key).collect();
    println!("Part {shard} (cut {}): {} of {} runs", cut.mark(), different.len(), cut.part.len());
    let done = run(&format!("part {shard}"), &mine, tools, store, arguments, stop)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(interrupted(&done, &mine, arguments));
    }
    println!(
        "{} of them are in {}; `ainori bench merge` brings the parts together",
        done.documents.len(),
        store.folder().display()
    );
    Ok(if done.failures.is_empty() { 0 } else { FAILED })
}

/// For `--no-run`: an error that names runs that are not in the store.
fn all_are_done(all: &[(String, &Run)], store: &Store) -> Result<()> {
    /// How many are named.
    const NAMED: usize = 8;
    let missing: Vec<String> =
        all.iter().filter(|(key, _)| store.get(key).is_none()).map(|(_, run)| run.shown()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let more = if missing.len() > NAMED { "; ..." } else { "" };
    Err(miette!(
        help = "the same command without --no-run does them; if parts were merged, look whether one is missing, or was of another commit",
        "{} of {} runs are not in {}: {}{more}",
        missing.len(),
        all.len(),
        store.folder().display(),
        missing[..missing.len().min(NAMED)].join("; ")
    ))
}

/// Tells of an interruption. Returns its exit code.
fn interrupted(done: &Done, runs: &[(String, &Run)], arguments: &Bench) -> u8 {
    let how = if arguments.fresh { " without --fresh" } else { "" };
    eprintln!(
        "Interrupted with {} of {} runs done; the same command{how} goes on.",
        done.documents.len(),
        runs.len()
    );
    INTERRUPTED
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
    let all = checkout::list(&root.join("experiments"), "toml")?;
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

/// Finds the programs that runs need. `None` if `stop` was set.
pub fn tools(kernel: Option<&Path>, needs_kernel: bool, stop: &AtomicBool) -> Result<Option<Tools>> {
    let remedy = "run `make build`";
    let is_asked_for = kernel.is_some();
    let kernel = match kernel {
        Some(kernel) if needs_kernel && !kernel.is_file() => {
            return Err(miette!("there is no file {}", kernel.display()));
        }
        Some(kernel) => kernel.to_owned(),
        None => checkout::find(".cache/kernel/ainori.elf", "the hypervisor", remedy)?,
    };
    let Some(qemu) = version::version(None, stop)? else { return Ok(None) };
    Ok(Some(Tools {
        qemu,
        kernel,
        is_asked_for,
        lockstep: checkout::find(".cache/plugins/lockstep.so", "the lockstep clock", remedy)?,
        paths: checkout::find(".cache/plugins/paths.so", "the plugin that counts instructions", remedy)?,
        windows: checkout::find(".cache/plugins/windows.so", "the plugin that counts in windows", remedy)?,
        tlb: checkout::find(".cache/plugins/tlb.so", "the plugin that models TLBs", remedy)?,
    }))
}

fn run(
    name: &str,
    runs: &[(String, &Run)],
    tools: &Tools,
    store: &Store,
    arguments: &Bench,
    stop: &Arc<AtomicBool>,
) -> Result<Done> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let engine = Engine {
        execute: &|run| execute(run, tools, run.timeout, stop),
        store,
        fresh: arguments.fresh,
        jobs: arguments.jobs.map_or(cores, usize::from),
        stop,
        progress: &Progress::new(name)?,
    };
    engine.run(runs)
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

/// Writes the report to target/bench; with `save` also what is committed of it to docs/results.
fn write_report(root: &Path, name: &str, results: &Results, save: bool) -> Result<()> {
    let folder = root.join("target/bench");
    report::write_json(&folder, name, results)?;
    let page = report::write_page(&folder, name, results, &[], again::By::ItsRuns)?;
    if save {
        report::write_json(&root.join(report::COMMITTED), name, results)?;
        let charts = report::save_charts(root, name, results)?;
        let charts: String = charts.iter().map(|chart| format!(", {chart}")).collect();
        println!("Saved: {}/{name}.json{charts}", report::COMMITTED);
    }
    println!("Report: {}", page.display());
    Ok(())
}
