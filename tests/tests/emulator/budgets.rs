//! Each path of budgets.toml keeps its budget, and so does what the probe `cost` measures.
use ainori_tests::{
    Clock, Guest, IMSIC, PLIC, Run, System,
    budgets::{self, Budget},
    paths::{self, Count, Path, Place},
    symbols::Program,
};

const TICKS: u64 = 10_000;

/// The budgets are those of the usual build on a board with a PLIC, if nothing else is said.
fn board(harts: u32) -> System {
    System::on(harts).of_usual_build().interrupts(PLIC)
}

/// Runs a system, and judges all paths that are counted in it.
fn judge(name: &str, system: System) -> Run {
    let budgets: Vec<Budget> =
        budgets::read().budget.into_iter().filter(|budget| budget.system == name).collect();
    assert!(!budgets.is_empty(), "budgets.toml has no path for the system {name}");
    let groups: Vec<_> = budgets.iter().map(Budget::paths).collect();
    let all: Vec<_> = groups.iter().flatten().cloned().collect();
    let (run, counts) = paths::count(system, &all);
    run.good();
    let mut counts = counts.into_iter();
    let mut problems = Vec::new();
    for (budget, group) in budgets.iter().zip(&groups) {
        let count = Count::merge(&budget.name, counts.by_ref().take(group.len()));
        println!("{count}");
        problems.extend(budget.verdict(&count));
    }
    assert!(problems.is_empty(), "budgets (tests/budgets.toml) are not kept:\n{}", problems.join("\n"));
    run
}

/// Judges what a probe has measured in a system.
fn judge_costs(name: &str, probe: &str, run: &Run) {
    let costs: Vec<_> = budgets::read().cost.into_iter().filter(|cost| cost.system == name).collect();
    assert!(!costs.is_empty(), "budgets.toml has no cost for the system {name}");
    let mut problems = Vec::new();
    for cost in costs {
        let most = run.number(probe, &format!("{}/max", cost.name));
        println!("{name}: {} {most} at most", cost.name);
        problems.extend(cost.verdict(most));
    }
    assert!(problems.is_empty(), "budgets (tests/budgets.toml) are not kept:\n{}", problems.join("\n"));
}

fn calls() -> System {
    board(1).with(Guest::probe("cost", "n=1000"))
}

#[test]
fn calls_keep_their_budgets() {
    let run = judge("calls", calls());
    judge_costs("calls", "cost", &run);
}

/// The second vCPU is never started, but it might be: so WFI traps.
#[test]
fn sleep_where_another_vcpu_may_come_keeps_its_budget() {
    let run = board(1).with(Guest::probe("cost", "n=1000").vcpus(2)).run(Clock::Icount);
    run.good();
    judge_costs("sleep", "cost", &run);
}

/// What a kernel does with its address spaces, where the hypervisor makes the tables that the hart walks.
#[test]
fn address_spaces_with_a_shadow_keep_their_budgets() {
    let guest = Guest::probe("privileged", "n=1000").translation("shadow-multi");
    let run = System::on(1).with_h().interrupts(PLIC).with(guest).run(Clock::Icount);
    run.good();
    judge_costs("shadow", "privileged", &run);
}

/// Slices are short, so that they add little to what an IPI takes.
#[test]
fn interrupts_between_harts_keep_their_budget() {
    let guest = Guest::probe("cost", "n=1 pings=1000").vcpus(2).harts([0, 1]);
    let run = board(2).with(guest).run(Clock::Lockstep { q: 10 });
    run.good();
    judge_costs("harts", "cost", &run);
}

#[test]
fn interrupts_between_vcpus_of_one_hart_keep_their_budget() {
    judge("pair", board(1).with(Guest::probe("smp", "rounds=1000").vcpus(2)));
}

#[test]
fn spinners_keep_their_budgets() {
    // Neither of the guests has the hart to itself: there its WRS.NTO wouldn't trap.
    let one = Guest::probe("spin", "n=1000").named("one");
    let two = Guest::probe("spin", "n=1000").named("two").vcpus(2);
    judge("spin", board(1).with(one).with(two));
}

#[test]
fn the_rtos_beside_linux_keeps_its_budgets() {
    let args = format!("periods={TICKS} burn_percent=0 report_ms=0");
    // Without an advance, as nearly all of this way is done ahead of the tick otherwise.
    let system = board(1).advance("0us");
    let alone = system.clone().with(Guest::linux("busy").background());
    // Its harts hide what is new from guests, as those of RVA23 do; a world switch exchanges it (`vsiselect`) otherwise.
    let messages = alone.clone().interrupts(IMSIC).cpu("rv64,smstateen=on");
    let moving = system.policy("ainori").with(Guest::linux("busy").vcpus(2).background());
    for (name, system) in [("rtos", alone), ("rtos-imsic", messages), ("rtos-ainori", moving)] {
        judge(name, system.with(Guest::freertos(&args))).lost_no_tick("freertos", TICKS);
    }
}

/// With a tick of 1 ms the ticks come in few phases of Linux's timer, which has 4 ms. With one of 1,003 us they come in each of its 4,000 microseconds.
#[test]
fn the_rtos_keeps_its_budget_in_each_phase_of_linuxs_timer() {
    let args =
        format!("period_us=1003 tick_us=1003 burn_period_us=1003 periods={TICKS} burn_percent=0 report_ms=0");
    let system = board(1).advance("0us").with(Guest::linux("busy").background());
    judge("rtos-phases", system.with(Guest::freertos(&args))).lost_no_tick("freertos", TICKS);
}

/// FreeRTOS's tick comes while the other guest has its window, and is served when its own begins.
#[test]
fn a_window_in_time_begins_within_its_budget() {
    let system = board(1).policy("time-window").major_frame("10ms");
    let tasks = "begin_ms=20 run_ms=10000 report_ms=0 task1=10000,25000,10000,1";
    let busy = Guest::probe("bursts", "n=0").background();
    let system = system.with(Guest::freertos(tasks)).with(busy);
    judge("windows", system.window(0, "bursts", 0, 6_000).window(0, "freertos", 6_000, 4_000));
}

/// The shortest trap of the probe, with its record in the trace and without.
#[test]
fn a_trace_record_keeps_its_budget() {
    let least = |system: System| {
        let run = system.run(Clock::Icount);
        run.good();
        let least = run.result("cost").get("sbi_base_call").and_then(|cost| cost["min"].as_u64());
        least.unwrap_or_else(|| run.fail("the probe should say what a call costs"))
    };
    let [without, with] = [least(calls()), least(calls().traced("trap"))];
    println!("shortest call: {without} instructions, with a record {with}");
    if let Some(problem) = budgets::read().record.verdict(with.saturating_sub(without)) {
        panic!("budgets (tests/budgets.toml) are not kept:\n{problem}");
    }
}

/// The timer of a vCPU that has stopped stays in the hart when nobody else comes, and must not keep the core awake. How often it waits is counted:
/// in a report a core that looks again and again idles, too.
#[test]
fn an_idle_core_sleeps() {
    let (mask, bits) = budgets::encoding("wfi");
    let waits = Program::open(&ainori_tests::hypervisor()).instructions(mask, bits);
    let paths: Vec<Path> = waits
        .into_iter()
        .map(|at| (Place::Hypervisor(at), Place::Hypervisor(at + 4)))
        .map(|(from, to)| Path { name: format!("{from}"), from, to, via: None })
        .collect();
    // The last one that runs stops with its timer in the past, while the other guest sleeps for a second.
    let system = board(1)
        .with(Guest::probe("selfshutdown", "ms=1000").vcpus(2))
        .with(Guest::probe("lives", "end=stop until_ms=500").background());
    let (run, counts) = paths::count(system, &paths);
    run.good();
    let count = Count::merge("wait", counts.into_iter());
    println!("{count}");
    assert!((10..200).contains(&count.count), "an idle core waits {} times", count.count);
}
