//! Attacks on what isn't a guest's own, in each way to translate its addresses: with two stages, with shadow tables, and on harts without H. (Who has `translation = "none"` isn't kept from
//! anything: unprotected.rs.) An attack is written once, and says nothing of the mode.
use ainori::report::{GuestOutcome, Outcome};
use ainori_tests::{
    Clock, Guest, Run,
    mode::{MODES, Mode},
    symbols::Program,
};

use crate::apart::csrs_are_kept_apart;
use crate::faults::OTHERS;

const CLOCK: Clock = Clock::Lockstep { q: 250 };

/// An RTOS that goes first on hart 0, and loses no tick whoever attacks.
fn rtos(mode: Mode, periods: u32) -> Guest {
    let args = format!("periods={periods} burn_percent=10 burn_period_us=10000 report_ms=0");
    mode.of(Guest::freertos(&args).harts([0]))
}

fn in_each_mode(attack: impl Fn(Mode)) {
    for mode in MODES {
        println!("{mode:?}");
        attack(mode);
    }
}

/// The attacker was stopped or ended as it says, and the RTOS has lost nothing.
fn beside_rtos(mode: Mode, attacker: Guest) -> Run {
    let run = mode.on(1).with(mode.of(attacker)).with(rtos(mode, 50)).run(Clock::Icount);
    run.ended(Outcome::GuestFailed).lost_no_tick("freertos", 50);
    run
}

/// What a guest might reach for, at the address where the board has it.
#[test]
fn stores_to_what_is_others_are_stopped() {
    in_each_mode(|mode| {
        for (what, address) in OTHERS {
            let store = Guest::probe("wild-store", &format!("addr={address:#x}")).strict();
            let run = beside_rtos(mode, store);
            let found = run.fault("wild-store").address;
            run.check(found == address, format_args!("{what}: reported as {found:#x}, not {address:#x}"));
        }
    });
}

/// At the hypervisor's addresses a guest has memory of its own: its stores go there, all over what the hypervisor lives by, and the hypervisor goes on.
#[test]
fn stores_to_where_the_hypervisor_is_go_to_the_guests_own() {
    in_each_mode(|mode| {
        let kernel = Program::open(&mode.on(1).with(mode.of(Guest::probe("wild-store", ""))).kernel_file());
        // Code of boot, which is before, is gone by then: nobody would miss it.
        let (start, end) = (kernel.range_of(".text").start, kernel.address("__image_end"));
        let entry = kernel.address("trap_entry");
        assert!((start..end).contains(&entry), "{entry:#x} is not in {start:#x}..{end:#x}");
        let args = format!("addr={start:#x} own={}", end - start);
        let run = mode.on(1).with(mode.of(Guest::probe("wild-store", &args))).with(rtos(mode, 50));
        let run = run.run(Clock::Icount);
        run.good().lost_no_tick("freertos", 50);
        assert_eq!(run.number("wild-store", "words"), (end - start) / 8);
    });
}

/// A jump behind its memory, and what it has no handler for.
#[test]
fn wild_guests_end_alone() {
    in_each_mode(|mode| {
        for probe in ["wild-store", "wild-jump", "wild-illegal", "wild-user"] {
            let run = beside_rtos(mode, Guest::probe(probe, "").strict());
            let outcome = run.guest(probe).outcome;
            run.check(outcome == GuestOutcome::Faulted, format_args!("{probe}: {outcome:?}"));
        }
    });
}

#[test]
fn registers_of_neighbours_are_not_seen() {
    in_each_mode(|mode| {
        csrs_are_kept_apart(mode.on(1), |guest| mode.of(guest));
    });
}

/// The board's memory has a pattern where guests are placed.
#[test]
fn what_was_in_memory_before_is_not_found() {
    const FILLED: usize = 48 << 20;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("pattern");
    std::fs::write(&file, vec![0xa5; FILLED]).expect("the temporary folder can be written");
    // Below the firmware's device tree.
    let at = 0xffe0_0000 - FILLED as u64;
    in_each_mode(|mode| {
        let loader = format!("loader,file={},addr={at:#x},force-raw=on", file.display());
        let run = mode
            .on(1)
            .qemu_args(["-device".into(), loader])
            .with(mode.of(Guest::probe("virt", "zeros=1 strict=1")))
            .run(Clock::Icount);
        run.good();
    });
}

/// Its own tables have a page here and there, in each gigabyte of the upper half of addresses: it reaches these, and nothing else.
#[test]
fn tables_lead_to_what_they_say_and_nothing_else() {
    in_each_mode(|mode| {
        let run = mode.on(1).with(mode.of(Guest::probe("reach", "strict=1"))).run(Clock::Icount);
        run.good().result("reach");
    });
}

/// Two vCPUs and more overwrite each other's tables while they fence, and look for what isn't theirs: beside an RTOS, which loses nothing, and a neighbour that watches its memory.
#[test]
fn tables_that_are_tampered_with_by_several_vcpus_lead_nowhere_else() {
    in_each_mode(|mode| {
        for (vcpus, seed) in [(2, 1), (4, 2)] {
            let tamper = mode.of(Guest::probe("tamper", &format!("ms=60 seed={seed}")));
            let watch = mode.of(Guest::probe("tamper", "watch=1 ms=60").named("watch"));
            let run = mode
                .on(2)
                .quantum("1ms")
                .with(tamper.vcpus(vcpus).harts([0, 1]))
                .with(watch.harts([1]))
                .with(rtos(mode, 60).priority(10))
                .run(CLOCK);
            run.good().lost_no_tick("freertos", 60);
            let [edits, fences, loads, stores, faults] =
                ["edits", "fences", "loads", "stores", "faults"].map(|key| run.number("tamper", key));
            println!(
                "{vcpus} vCPUs: {edits} edits, {fences} fences, {loads} loads, {stores} stores, {faults} faults"
            );
            let enough = edits.min(fences).min(faults) >= 500 && loads.min(stores) >= 20;
            run.check(enough, "too little was done to show anything");
        }
    });
}
