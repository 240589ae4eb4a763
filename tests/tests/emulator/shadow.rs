//! Guests with shadow tables: their own tables mean what they say, whatever becomes of the shadow, and an RTOS beside them doesn't notice.
use ainori::report::Outcome;
use ainori_manifest::config::{FEWEST_SHADOW_TABLES_WITHOUT_H, SHADOW_TABLES};
use ainori_report::StopReason;
use ainori_sched::{Policy, Preemption, presets};
use ainori_tests::{Clock, Guest, System, harts::usual_lack_h};

/// As few as there can be of any form, on the harts that tests are run with.
fn fewest_tables() -> u32 {
    let fewest = if usual_lack_h() { FEWEST_SHADOW_TABLES_WITHOUT_H } else { *SHADOW_TABLES.start() };
    fewest.into()
}
const SHADOWS: [&str; 2] = ["shadow-single", "shadow-multi"];
const RECLAIMS: [&str; 2] = ["fifo", "page-directory-lru"];
/// `scause` (privileged specification, "Supervisor cause register values after trap").
const LOAD_PAGE_FAULT: u64 = 13;
const CLOCK: Clock = Clock::Lockstep { q: 250 };

/// Each hart edits its tables at random, fences and uses them.
#[test]
fn tables_mean_what_they_say_in_each_form_of_shadow() {
    for translation in SHADOWS {
        for reclaim in RECLAIMS {
            for tables in [fewest_tables(), 256] {
                let guest = Guest::probe("tables", "n=6000").vcpus(3).harts([0, 1, 2]);
                let guest = guest.translation(translation).shadow_reclaim(reclaim).shadow_tables(tables);
                let run = System::on(3).with(guest).run(CLOCK);
                run.good();
                run.looks_for_interrupts(3);
            }
        }
    }
}

/// Where vCPUs move, are confined, are pulled, or have windows: two that edit their tables at random, on two harts, and an RTOS that goes first where the policy lets it.
pub fn each_preset_works_on(board: impl Fn(u32) -> System, tables: impl Fn() -> Guest) {
    for preset in presets() {
        let tables = tables();
        let freertos = Guest::freertos("periods=20 burn_percent=30 report_ms=0").harts([1]);
        let system = board(2).policy(preset.name);
        let (system, has_rtos) = match (preset.name, preset.preemption) {
            ("partition", _) => (system.with(tables.harts([0])).with(freertos), true),
            (_, Preemption::AtWindow) => {
                let system = system.major_frame("3ms").with(tables.harts([0, 1])).with(freertos.background());
                let system = system.window(0, "tables", 0, 3_000).window(1, "tables", 0, 2_000);
                (system.window(1, "freertos", 2_000, 1_000), false)
            }
            // Equals all: an RTOS waits for its turn.
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

#[test]
fn each_preset_works_with_shadows() {
    each_preset_works_on(System::on, || {
        Guest::probe("tables", "n=4000").vcpus(2).translation("shadow-multi")
    });
}

/// Linux has as few tables as there can be, so that they are taken from it all the time.
#[test]
fn smp_linux_beside_an_rtos_with_hardly_any_tables() {
    for reclaim in RECLAIMS {
        let linux = Guest::linux("hackbench").args("ainori.loops=10").vcpus(2).harts([0, 1]);
        let linux = linux.translation("shadow-multi").shadow_tables(fewest_tables()).shadow_reclaim(reclaim);
        let freertos = Guest::freertos("period_us=1000 periods=400 burn_percent=30 report_ms=0").harts([1]);
        let run = System::on(2).policy("ainori").with(linux).with(freertos).run(CLOCK);
        run.good();
        run.lost_no_tick("freertos", 400);
        run.looks_for_interrupts(2);
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
    refuse(Guest::probe("ends", "").translation("shadow-multi"));
}

/// Nor one that has only what comes with them, and is told so.
#[test]
#[should_panic(expected = "`memory_at`)")]
fn another_build_is_refused_for_a_place() {
    refuse(
        Guest::probe("wild-store", "").translation("two-stage").position_independent().memory_at(0xfe00_0000),
    );
}

#[test]
#[should_panic(expected = "guests without protection")]
fn another_build_is_refused_without_protection() {
    refuse(Guest::probe("wild-store", "").position_independent().unprotected_at(0xfe00_0000));
}

/// Runs it under a hypervisor with two stages alone.
fn refuse(guest: Guest) {
    System::on(1).with_h().with(guest).kernel(&ainori_tests::hypervisor()).run(Clock::Host);
}

/// Copies of a word that one gets done in 20 ms whose siblings fence all the time, at least: 100 times 8, of which each may need its pages anew. With whole address spaces
/// forgotten and nobody who waits for an instruction, some of these get none done.
const LEAST_COPIES: u64 = 800;
/// The same where only single pages are fenced, which it doesn't use.
const LEAST_COPIES_PAGES: u64 = 10_000;

/// Whatever its siblings fence, and however often, a vCPU gets on with what it does.
#[test]
fn who_is_fenced_by_its_siblings_gets_on() {
    for tables in [fewest_tables(), 256] {
        for what in ["page", "page-asid", "used", "range", "global", "space", "all"] {
            for (harts, us) in [(2, 13), (2, 15), (4, 0)] {
                let guest = Guest::probe("fenced", &format!("what={what} us={us}"));
                let guest = guest.vcpus(harts).harts(0..harts).translation("shadow-multi");
                let run = System::on(harts).with(guest.shadow_tables(tables)).run(CLOCK);
                run.good();
                run.looks_for_interrupts(harts);
                let (copies, fences) = (run.number("fenced", "copies"), run.number("fenced", "fences"));
                println!(
                    "{what} by {} each {us} us, {tables} tables: {copies} copies, {fences} fences",
                    harts - 1
                );
                let needs_pages_anew = ["used", "space", "all"].contains(&what);
                let least = if needs_pages_anew { LEAST_COPIES } else { LEAST_COPIES_PAGES };
                run.check(copies >= least, format_args!("{copies} copies, not {least}"));
                run.check(fences >= 100, format_args!("{fences} fences show nothing"));
            }
        }
    }
}

/// A page that somebody has moved, and had fenced, isn't used in its old place from then on, however the fence says it, and whoever was told to wait.
#[test]
fn what_siblings_have_fenced_is_not_used() {
    for (tables, us) in [(fewest_tables(), 0), (256, 10)] {
        for what in ["page", "page-asid", "range", "space", "all"] {
            for harts in [2, 4] {
                let args = format!("check=1 what={what} us={us} ms=30");
                let guest = Guest::probe("fenced", &args).vcpus(harts).harts(0..harts);
                let guest = guest.translation("shadow-multi").shadow_tables(tables);
                let run = System::on(harts).with(guest).run(CLOCK);
                run.good();
                let fences = run.number("fenced", "fences");
                run.check(fences >= 100, format_args!("{fences} fences show nothing"));
            }
        }
    }
}

/// Address spaces that share what is global, change it and fence it, by themselves and by siblings: no step of that is long.
#[test]
fn what_many_address_spaces_share_changes_in_steps() {
    for tables in [fewest_tables(), 256] {
        for spaces in [1, 2, 3, 16, 20] {
            for (harts, what) in [(1, "page"), (2, "global"), (3, "page")] {
                let args = format!("harm=1 spaces={spaces} ms=30 pages=8 us=20 what={what}");
                let guest = Guest::probe("fenced", &args).vcpus(harts).harts(0..harts);
                let guest = guest.translation("shadow-multi").shadow_tables(tables);
                let run = System::on(harts).with(guest).run(CLOCK);
                run.good();
                println!("{spaces} spaces, {tables} tables: {} rounds", run.number("fenced", "rounds"));
                run.looks_for_interrupts(harts);
            }
        }
    }
}

/// Threads of a process that make each other's translations invalid all the time: each gets on ([shootdown.c](../../../guests/linux/programs/shootdown.c) says so).
#[test]
fn threads_of_linux_that_fence_each_other_get_on() {
    let shootdowns = |translation| {
        let linux = Guest::linux("shootdown").args("ainori.threads=4 ainori.ms=200").vcpus(4);
        let run = System::on(4).with_h().with(linux.translation(translation)).run(CLOCK);
        run.good();
        run.number("linux", "shootdowns")
    };
    let (shadow, two_stage) = (shootdowns("shadow-multi"), shootdowns("two-stage"));
    println!("{shadow} with a shadow, {two_stage} without");
    // With whole spaces forgotten it was 40 %.
    assert!(shadow * 4 >= two_stage * 3, "{shadow} shootdowns with a shadow, {two_stage} without");
}

/// A guest without a trap handler that its fault could go to is stopped, and told of as what it was.
#[test]
fn a_page_fault_without_a_handler_is_told_as_one() {
    let run = System::on(1).with(Guest::probe("wild-unmapped", "").translation("shadow-multi")).run(CLOCK);
    run.ended(Outcome::GuestFailed);
    let fault = run.fault("wild-unmapped");
    run.check(fault.what.contains("page fault"), &fault.what);
    run.check(
        fault.mode == "VS" && fault.cause == LOAD_PAGE_FAULT,
        format_args!("{} {}", fault.mode, fault.cause),
    );
}
