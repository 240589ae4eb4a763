//! Each preset with each interrupt controller: real guests get all their interrupts, and an RTOS that goes first loses no tick.
use ainori_sched::{Policy, Preemption, Preset, presets};
use ainori_tests::{APLIC, Clock, Guest, IMSIC, PLIC, System, held::BELOW};

/// Of FreeRTOS, 1 ms each.
const PERIODS: u64 = 40;

/// Three vCPUs send interrupts of all kinds to each other, and hear the bell of a more urgent guest; on another hart FreeRTOS goes first, where the policy lets it.
fn system(preset: &Preset, controller: &'static str) -> (System, bool) {
    let below =
        Guest::probe("held", "n=1200 any=1 messages=12").named(BELOW).vcpus(3).device("/soc/rtc@101000");
    let above = Guest::probe("held", "role=above").named("above").priority(9).background();
    let freertos = Guest::freertos(&format!("periods={PERIODS} burn_percent=30 report_ms=0"));
    // Only harts with H have interrupt files: elsewhere such a board counts as one without an interrupt controller (docs/decisions.md, "Harts without H").
    let board = if controller == IMSIC { System::on(3).with_h() } else { System::on(3) };
    let system = board.policy(preset.name).interrupts(controller).channel(["above", BELOW], "4KiB");
    match (preset.name, preset.preemption) {
        ("partition", _) => (system.with(below.harts([0, 1])).with(above.harts([2])), false),
        (_, Preemption::AtWindow) => {
            let system = system.major_frame("3ms").with(below.harts([0, 1, 2])).with(above.harts([0]));
            let system = system.window(0, "above", 0, 1_000).window(0, BELOW, 1_000, 2_000);
            (system.window(1, BELOW, 500, 2_000).window(2, BELOW, 0, 3_000), false)
        }
        // Equals all: an RTOS waits for its turn.
        (_, Preemption::AtQuantum) => (system.with(below.harts([0, 1, 2])).with(above.harts([0])), false),
        _ => (system.with(below.harts([0, 1, 2])).with(above.harts([0])).with(freertos.harts([1])), true),
    }
}

fn each_preset_with(controller: &'static str) {
    for preset in presets() {
        let (system, has_rtos) = system(preset, controller);
        let run = system.run(Clock::Lockstep { q: 250 });
        run.good();
        let moves = Policy::preset(preset.name, 1, 10_000_000).is_some_and(|policy| policy.moves());
        println!(
            "{controller}, {}: {} taken, {} held back, {} migrations, {:.1} s",
            preset.name,
            run.number(BELOW, "taken"),
            run.number(BELOW, "held"),
            run.migrations(BELOW),
            run.report.host.seconds
        );
        if has_rtos {
            run.lost_no_tick("freertos", PERIODS);
        }
        run.check(moves == (run.migrations(BELOW) > 0), "vCPUs move where the policy says so");
    }
}

#[test]
fn each_preset_works_with_a_plic() {
    each_preset_with(PLIC);
}

#[test]
fn each_preset_works_with_an_aplic() {
    each_preset_with(APLIC);
}

#[test]
fn each_preset_works_with_interrupt_files() {
    each_preset_with(IMSIC);
}
