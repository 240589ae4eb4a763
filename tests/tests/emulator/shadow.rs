//! Guests with shadow tables: their own tables mean what they say, whatever becomes of the shadow, and an RTOS beside them doesn't notice.
use ainori_report::StopReason;
use ainori_sched::{Policy, Preemption, presets};
use ainori_tests::{Clock, Guest, Run, System, bounds::IRQS_OFF_BESIDE_RTOS_NS};

/// As few as there can be.
const FEWEST_TABLES: u32 = 36;
const SHADOWS: [&str; 2] = ["shadow-single", "shadow-multi"];
const RECLAIMS: [&str; 2] = ["fifo", "page-directory-lru"];
const CLOCK: Clock = Clock::Lockstep { q: 250 };

fn no_section_is_too_long(run: &Run, harts: u32) {
    for hart in 0..harts {
        let longest = run.longest_irqs_off_ns(hart as usize);
        run.check(
            longest <= IRQS_OFF_BESIDE_RTOS_NS,
            format_args!("{longest} ns without a look for interrupts"),
        );
    }
}

/// Each hart edits its tables at random, fences and uses them.
#[test]
fn tables_mean_what_they_say_in_each_form_of_shadow() {
    for translation in SHADOWS {
        for reclaim in RECLAIMS {
            for tables in [FEWEST_TABLES, 256] {
                let guest = Guest::probe("tables", "n=6000").vcpus(3).harts([0, 1, 2]);
                let guest = guest.translation(translation).shadow_reclaim(reclaim).shadow_tables(tables);
                let run = System::on(3).with(guest).run(CLOCK);
                run.good();
                no_section_is_too_long(&run, 3);
            }
        }
    }
}

/// Where vCPUs move, are confined, are pulled, or have windows: two on two harts, and an RTOS that goes first where the policy lets it.
#[test]
fn each_preset_works_with_shadows() {
    for preset in presets() {
        let tables = Guest::probe("tables", "n=4000").vcpus(2).translation("shadow-multi");
        let freertos = Guest::freertos("periods=20 burn_percent=30 report_ms=0").harts([1]);
        let system = System::on(2).policy(preset.name);
        let (system, has_rtos) = match (preset.name, preset.preemption) {
            ("partition", _) => (system.with(tables.harts([0])).with(freertos), true),
            (_, Preemption::AtWindow) => {
                let system = system.major_frame("3ms").with(tables.harts([0, 1])).with(freertos.background());
                let system = system.window(0, "tables", 0, 3_000).window(1, "tables", 0, 2_000);
                (system.window(1, "freertos", 2_000, 1_000), false)
            }
            (_, Preemption::AtQuantum) => {
                (system.with(tables.harts([0, 1])).with(freertos.background()), false)
            }
            _ => (system.with(tables.harts([0, 1])).with(freertos), true),
        };
        let run = system.run(CLOCK);
        run.good();
        if has_rtos {
            run.lost_no_tick("freertos", 20);
        }
        let moves = Policy::preset(preset.name, 1, 10_000_000).is_some_and(|policy| policy.moves());
        println!("{}: {} migrations, {moves}", preset.name, run.migrations("tables"));
    }
}

/// Linux has as few tables as there can be, so that they are taken from it all the time.
#[test]
fn smp_linux_beside_an_rtos_with_hardly_any_tables() {
    for reclaim in RECLAIMS {
        let linux = Guest::linux("hackbench").args("ainori.loops=10").vcpus(2).harts([0, 1]);
        let linux = linux.translation("shadow-multi").shadow_tables(FEWEST_TABLES).shadow_reclaim(reclaim);
        let freertos = Guest::freertos("period_us=1000 periods=400 burn_percent=30 report_ms=0").harts([1]);
        let run = System::on(2).policy("ainori").with(linux).with(freertos).run(CLOCK);
        run.good();
        run.lost_no_tick("freertos", 400);
        no_section_is_too_long(&run, 2);
    }
}

/// A guest that is started again finds nothing of its former life, in its memory or in what harts and shadows have kept of it.
#[test]
fn a_guest_with_a_shadow_is_started_again() {
    let lives = Guest::probe("lives", "end=reboot until_ms=250").restart("on-failure", 32, "10s");
    let lives = lives.vcpus(2).harts([0, 1]).translation("shadow-multi");
    let run = System::on(2).with(lives).run(CLOCK);
    run.good().stopped("lives", StopReason::Shutdown);
    let lives = run.guest("lives").former_lives.len();
    run.check(lives >= 3, format_args!("{lives} lives are too few to show anything"));
}

/// A hypervisor that isn't built for shadow tables isn't given a guest that has some.
#[test]
#[should_panic(expected = "isn't built for shadow tables")]
fn another_build_is_refused() {
    let guest = Guest::probe("ends", "").translation("shadow-multi");
    System::on(1).with(guest).kernel(&ainori_tests::hypervisor()).run(Clock::Host);
}
