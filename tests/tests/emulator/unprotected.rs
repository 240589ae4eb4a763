//! Guests whose memory has a place on the board, and guests that nothing confines (`translation = "none"`): they run beside others, with what the SBI alone gives them.
use ainori::report::{GuestOutcome, Outcome};
use ainori_report::StopReason;
use ainori_tests::{Clock, Guest, System};

const CLOCK: Clock = Clock::Lockstep { q: 250 };
/// Where a guest's memory is on a board with 2 GiB: Linux's, and others'.
const LINUX_AT: u64 = 0xe000_0000;
const OTHER_AT: u64 = 0xfe00_0000;

fn on(harts: u32) -> System {
    System::on(harts).with_h()
}

fn freertos() -> Guest {
    Guest::freertos("period_us=1000 periods=400 burn_percent=30 report_ms=0").harts([0])
}

/// With an initramfs of its own, and what it prints by the SBI.
fn linux(job: &str) -> Guest {
    Guest::linux(job).without_console().unprotected_at(LINUX_AT)
}

/// An RTOS that nothing confines shares a hart with a Linux that has two stages, or a shadow: it loses nothing by that, and neither does Linux.
#[test]
fn an_rtos_without_protection_shares_a_hart_with_linux() {
    for translation in ["two-stage", "shadow-multi"] {
        let linux = Guest::linux("hackbench").args("ainori.loops=10").harts([0]).trusts("freertos");
        let freertos = freertos().position_independent().unprotected_at(OTHER_AT);
        let run = on(1).with(linux.translation(translation)).with(freertos).run(CLOCK);
        run.good();
        run.lost_no_tick("freertos", 400).was_in_time("freertos", format_args!("beside {translation}"));
        run.looks_for_interrupts(1);
    }
}

/// The other way round, with two vCPUs, which send each other IPIs and fences by the SBI. Its page faults are its own affair.
#[test]
fn smp_linux_without_protection_shares_harts_with_an_rtos() {
    let linux = linux("hackbench").args("ainori.loops=10").vcpus(2).harts([0, 1]);
    let run = on(2).policy("ainori").with(linux).with(freertos().trusts("linux")).run(CLOCK);
    run.good();
    run.lost_no_tick("freertos", 400).was_in_time("freertos", "beside a Linux without protection");
    assert_eq!(run.number("linux", "cpus"), 2);
    run.looks_for_interrupts(2);
    for cause in [
        "access-fault",
        "page-fault",
        "shadow",
        "satp",
        "sfence.vma",
        "mmio-irqchip",
        "mmio-uart",
        "mmio-other",
    ] {
        let exits = run.exits_for("linux", cause);
        run.check(exits == 0, format_args!("{exits} exits for {cause}"));
    }
}

/// Two that choose the same ASIDs, and one with a shadow, on the same harts: all have what they cache under one VMID.
#[test]
fn guests_without_second_stage_keep_what_they_cache_apart() {
    let tables = |name| Guest::probe("tables", "n=4000").named(name).vcpus(2).harts([0, 1]);
    let unprotected = |name, at| tables(name).position_independent().unprotected_at(at);
    let run = on(2)
        .quantum("100us")
        .with(unprotected("one", LINUX_AT).trusts("two"))
        .with(unprotected("two", OTHER_AT).trusts("one"))
        .with(tables("shadowed").translation("shadow-multi").trusts("one").trusts("two"))
        .run(CLOCK);
    run.good();
    for name in ["one", "two", "shadowed"] {
        run.result(name);
        let dispatches = run.guest(name).vcpus[0].dispatches;
        run.check(
            dispatches > 10,
            format_args!("{name} had only {dispatches} turns: too few to show anything"),
        );
    }
}

/// Harts that start, stop, interrupt and fence each other, under each controller of the board, of which such a guest sees nothing.
#[test]
fn several_harts_work_together_without_protection() {
    for interrupts in [ainori_tests::PLIC, ainori_tests::APLIC, ainori_tests::IMSIC] {
        let smp = Guest::probe("smp", "rounds=10").position_independent().vcpus(4).harts([0, 1]);
        let smp = smp.unprotected_at(OTHER_AT);
        let run =
            on(2).interrupts(interrupts).policy("ainori").with(smp).with(freertos().trusts("smp")).run(CLOCK);
        run.good().result("smp");
        run.lost_no_tick("freertos", 400);
    }
}

/// What `ainori check` says of it is so: its store reaches a device of the board, where any other guest would have been stopped.
#[test]
fn nothing_keeps_it_from_the_boards_devices() {
    const CLOCK_DEVICE: u64 = 0x0010_1000;
    let store = |guest: Guest| guest.args(&format!("addr={CLOCK_DEVICE:#x}"));
    let wild = Guest::probe("wild-store", "").position_independent();
    let run = on(1).with(store(wild.clone()).unprotected_at(OTHER_AT)).run(Clock::Icount);
    run.ended(Outcome::GuestFailed).stopped("wild-store", StopReason::Failure);
    let run = on(1).with(store(wild).memory_at(OTHER_AT).strict()).run(Clock::Icount);
    assert_eq!(run.fault("wild-store").address, CLOCK_DEVICE);
}

/// Its memory and its harts are put back like any other's.
#[test]
fn it_is_started_again() {
    let smp = Guest::probe("smp", "rounds=4").position_independent().vcpus(2).harts([0, 1]);
    let smp = smp.unprotected_at(OTHER_AT).restart("always", 3, "10s");
    let run = on(2).with(smp).run(CLOCK);
    let guest = run.guest("smp");
    run.check(guest.former_lives.len() == 3, format_args!("{} former lives", guest.former_lives.len()));
    let results = guest.former_lives.iter().map(|life| &life.results).chain([&guest.results]);
    for results in results {
        let is_good = results.iter().any(|result| result["job"] == "smp" && result["ok"] == true);
        run.check(is_good, format_args!("a life found {results:?}"));
    }
}

/// A guest's memory can have a place however its addresses are translated.
#[test]
fn memory_has_its_place_in_each_mode() {
    for translation in ["two-stage", "shadow-single", "shadow-multi"] {
        let linux = Guest::linux("boot").memory_at(LINUX_AT).translation(translation);
        let freertos = freertos().position_independent().memory_at(OTHER_AT).translation(translation);
        let run = on(1).with(linux).with(freertos).run(CLOCK);
        run.good().lost_no_tick("freertos", 400);
    }
}

/// The same where guests' kernels run in user mode.
#[test]
fn memory_has_its_place_without_h() {
    let linux = Guest::linux("boot").memory_at(LINUX_AT);
    let freertos = freertos().position_independent().memory_at(OTHER_AT);
    let run = System::on(1).cpu("rv64,h=false").with(linux).with(freertos).run(CLOCK);
    run.good().lost_no_tick("freertos", 400);
}

/// The board has less memory than the manifest says.
#[test]
fn a_place_that_is_not_there_is_refused() {
    let guest = Guest::probe("wild-store", "").position_independent().memory_at(OTHER_AT);
    let memory = ["-m", "512M"].map(String::from);
    on(1).qemu_args(memory).with(guest).run(Clock::Host).refused("isn't free on this board");
}

/// Who doesn't trust it isn't put beside it.
#[test]
#[should_panic(expected = "doesn't say that it trusts it")]
fn who_does_not_trust_it_is_not_run_beside_it() {
    let guest = Guest::probe("wild-store", "").position_independent().unprotected_at(OTHER_AT);
    on(1).with(guest).with(freertos()).run(Clock::Host);
}

/// Harts without H have to walk tables with a page of the hypervisor's in them.
#[test]
#[should_panic(expected = "can't walk a guest's own tables alone")]
fn without_h_each_guest_is_confined() {
    let guest = Guest::probe("wild-store", "").position_independent().unprotected_at(OTHER_AT);
    System::on(1).cpu("rv64,h=false").with(guest).run(Clock::Host);
}

#[test]
fn a_guest_without_protection_that_fails_is_reported() {
    let wild = Guest::probe("wild-store", "addr=0x10").position_independent().unprotected_at(OTHER_AT);
    let run = on(1).with(wild).with(freertos().trusts("wild-store")).run(Clock::Icount);
    run.ended(Outcome::GuestFailed).lost_no_tick("freertos", 400);
    assert_eq!(run.guest("wild-store").outcome, GuestOutcome::Failed);
}
