//! What the hypervisor adds to FreeRTOS's timer interrupt, counted in instructions.
use ainori_tests::{
    Clock, Guest, System, checkout, hypervisor,
    paths::{self, Count, Path},
    symbols::Program,
};

/// Most instructions from the hart's trap to the first instruction of the guest's handler.
const BUDGET: u64 = 600;
/// The same for a tick before which the floating-point registers have to be exchanged, because both guests use them and
/// Linux did so last. This is the one stated cause for a tick to take longer.
const BUDGET_WITH_FLOAT: u64 = 800;
const TICKS: u64 = 10_000;

/// `csrw hgatp, RS`, as mask and bits: the world switch executes it, and nothing else after boot.
const CSRW_HGATP: (u32, u32) = (0xfff0_7fff, 0x6800_1073);

/// The paths from the trap of the hart to FreeRTOS's handler by way of a world switch, one for each place to which the
/// compiler has copied the switch; and the same path by way of an exchange of floating-point registers. A tick that comes while
/// FreeRTOS itself runs is not among them.
fn ways_to_the_handler() -> (Vec<Path>, Path) {
    let kernel = Program::open(&hypervisor());
    let freertos = Program::open(&checkout(".cache/guests/freertos/freertos.elf"));
    let (from, to) = (kernel.address("trap_entry"), freertos.address("trap_entry"));
    let path = |name: String, via| Path { name, from, to, via };
    let switches: Vec<Path> = kernel
        .instructions(CSRW_HGATP.0, CSRW_HGATP.1)
        .into_iter()
        .enumerate()
        .map(|(index, via)| path(format!("switch{index}"), via))
        .collect();
    assert!(!switches.is_empty(), "the hypervisor has no instruction that writes hgatp");
    (switches, path("exchange".into(), kernel.function_with("reload_extensions")))
}

#[test]
fn a_tick_reaches_freertos_within_the_budget_while_linux_runs() {
    let args = format!("periods={TICKS} burn_percent=0 report_ms=0");
    let system = System::on(1).with(Guest::linux("busy").background()).with(Guest::freertos(&args));
    let (switches, exchange) = ways_to_the_handler();
    let paths: Vec<Path> = switches.into_iter().chain([exchange]).collect();
    let (run, mut counts) = paths::count(system, &paths);
    run.good().lost_no_tick("freertos", TICKS);
    let exchange = counts.pop().unwrap_or_else(|| run.fail("the plugin should count every path"));
    let all = Count::merge(counts);
    println!("{all}{exchange}");

    run.check(
        all.count >= TICKS,
        format_args!("only {} of {TICKS} ticks came while Linux ran:\n{all}", all.count),
    );
    let late = all.without(&exchange).longer_than(BUDGET);
    run.check(late == 0, format_args!("{late} ticks took more than {BUDGET} instructions:\n{all}{exchange}"));
    let late = exchange.longer_than(BUDGET_WITH_FLOAT);
    run.check(
        late == 0,
        format_args!("{late} ticks took more than {BUDGET_WITH_FLOAT} instructions:\n{exchange}"),
    );
}

/// FreeRTOS never sleeps here, so whatever a tick cost would show as exits that grow with their number.
#[test]
fn a_tick_costs_no_exit_while_freertos_runs() {
    let exits = |periods: u64| {
        let args = format!("periods={periods} burn_percent=100 burn_period_us=10000000 report_ms=0");
        let run = System::on(1).with(Guest::freertos(&args)).run(Clock::Icount);
        run.good().lost_no_tick("freertos", periods);
        let exits = run.exits("freertos", 0);
        println!("{periods} ticks: {exits} exits, {:?}", run.guest("freertos").vcpus[0].exits);
        exits
    };
    // Both print the same number of lines. What may differ is how many pieces the printing is cut into.
    let (few, many) = (exits(500), exits(4_500));
    assert!(many.abs_diff(few) < 80, "4,000 more ticks changed the number of exits from {few} to {many}");
}
