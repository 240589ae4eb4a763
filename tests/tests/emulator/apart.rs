//! What keeps guests apart that share a hart: each register that a guest can reach, by number.
use ainori_tests::{Clock, Guest, PLIC, Run, System};
use std::fs;

/// What keeps one guest's value of a CSR from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeper {
    /// The world switch.
    Switch,
    /// The exchange of floating-point or vector registers, before which the unit is off.
    Units,
    /// Nobody: it can't be written, and says nothing of other guests' doing but how time passes.
    Constant,
    /// Where each vCPU has an interrupt file, that: the hart's guest interrupt file that the switch chooses, or what traps.
    File,
}

/// All CSRs that a guest can reach on some hart. What isn't here must trap: it is hidden by `hcounteren`, `henvcfg` or `hstateen0`, needs
/// a higher mode, or doesn't exist. (Hart extensions that would add more are refused at boot: `Isa::refused`.)
const REACHABLE: &[(u64, u64, Keeper, &str)] = &[
    (0x001, 0x003, Keeper::Units, "fflags, frm, fcsr"),
    (0x008, 0x00a, Keeper::Units, "vstart, vxsat, vxrm"),
    (0x00f, 0x00f, Keeper::Units, "vcsr"),
    (0x100, 0x100, Keeper::Switch, "sstatus"),
    (0x104, 0x106, Keeper::Switch, "sie, stvec, scounteren"),
    (0x10a, 0x10a, Keeper::Switch, "senvcfg"),
    (0x140, 0x144, Keeper::Switch, "sscratch, sepc, scause, stval, sip"),
    (0x14d, 0x14d, Keeper::Switch, "stimecmp"),
    (0x150, 0x150, Keeper::Switch, "siselect, where it can't be hidden"),
    (0x151, 0x151, Keeper::File, "sireg"),
    (0x15c, 0x15c, Keeper::File, "stopei"),
    (0x180, 0x180, Keeper::Switch, "satp"),
    (0xc00, 0xc02, Keeper::Constant, "cycle, time, instret"),
    (0xc20, 0xc21, Keeper::Units, "vl, vtype"),
    (0xc22, 0xc22, Keeper::Constant, "vlenb"),
    (0xdb0, 0xdb0, Keeper::Constant, "stopi: what is pending of sip"),
];

fn numbers(run: &Run, guest: &str, list: &str) -> Vec<u64> {
    let results = run.guest(guest).results.iter().filter_map(|result| result.get(list)?.as_array().cloned());
    results.flatten().filter_map(|number| number.as_u64()).collect()
}

/// Two guests that write different patterns to all CSRs, by turns on one hart, with FreeRTOS between them. Returns what they could read.
fn all_csrs_are_kept_apart(board: System) -> Vec<u64> {
    csrs_are_kept_apart(board, |guest| guest)
}

/// The same of guests that each have been given a form.
pub fn csrs_are_kept_apart(board: System, form: impl Fn(Guest) -> Guest) -> Vec<u64> {
    let probe = |name, seed| form(Guest::probe("csrs", &format!("seed={seed} ms=200")).named(name));
    let run = board
        .with(probe("one", 1))
        .with(probe("two", 0x2222_2222))
        .with(form(Guest::freertos("periods=400 burn_percent=10 burn_period_us=5000")))
        .quantum("1ms")
        .run(Clock::Icount);
    run.good();
    for name in ["one", "two"] {
        let dispatches = run.guest(name).vcpus[0].dispatches;
        run.check(
            dispatches > 100,
            format_args!("{name} had only {dispatches} turns: too few to show anything"),
        );
        for number in numbers(&run, name, "readable") {
            let known = REACHABLE.iter().find(|(first, last, _, _)| (*first..=*last).contains(&number));
            run.check(
                known.is_some(),
                format_args!("{name} reaches CSR {number:#x}, of which nobody says what keeps it apart"),
            );
        }
        for number in numbers(&run, name, "written") {
            let constant = REACHABLE.iter().any(|(first, last, keeper, _)| {
                (*first..=*last).contains(&number) && *keeper == Keeper::Constant
            });
            run.check(!constant, format_args!("{name} can write CSR {number:#x}, which nobody switches"));
        }
    }
    numbers(&run, "one", "readable")
}

#[test]
fn all_csrs_are_kept_apart_with_vectors() {
    let found = all_csrs_are_kept_apart(System::on(1).cpu("rv64,v=true"));
    for expected in [0x003, 0x00f, 0x106, 0x10a, 0x14d, 0xc22] {
        assert!(found.contains(&expected), "{expected:#x} should be there");
    }
}

/// Interrupt extensions add registers behind `siselect`, which the world switch then keeps (`vsiselect`).
#[test]
fn all_csrs_are_kept_apart_with_indirect_registers() {
    let board = System::on(1).with_h().cpu("rv64,smaia=on,ssaia=on");
    assert!(all_csrs_are_kept_apart(board).contains(&0x150));
}

/// Where the hart can hide them (`hstateen0`), it does, as guests have no interrupt files there; `senvcfg`, which Linux uses, stays.
#[test]
fn what_the_hart_adds_is_hidden_where_it_can_be() {
    let cpu = "rv64,smaia=on,ssaia=on,smcsrind=on,sscsrind=on,smstateen=on";
    let found = all_csrs_are_kept_apart(System::on(1).with_h().cpu(cpu).interrupts(PLIC));
    assert!(!found.contains(&0x150), "siselect should be hidden");
    assert!(!found.contains(&0x10c), "sstateen0 should be hidden");
    assert!(found.contains(&0x10a), "senvcfg should be there");
}

/// The device tree says Ssaia, but the firmware (OpenSBI looks for Smaia) keeps its registers from the hypervisor, which leaves them alone.
#[test]
fn registers_that_firmware_keeps_to_itself_are_left_alone() {
    for cpu in ["rv64,ssaia=on,smaia=off,smstateen=on", "rv64,ssaia=on,smaia=off"] {
        System::on(1).cpu(cpu).with(Guest::probe("selfshutdown", "")).run(Clock::Icount).good();
    }
}

/// The manifest's checks refuse these by name. What they can't know, because a model has it by itself, the boot refuses.
#[test]
fn harts_whose_registers_cannot_be_kept_apart_are_refused() {
    for (arguments, what) in
        [("rv64,zcmt=on,zcd=off,d=off", "Zcmt"), ("rv64,f=off,d=off,zfa=off,zfinx=on", "Zfinx")]
    {
        let run = System::on(1)
            .with_h()
            .qemu_args(["-cpu".into(), arguments.into()])
            .with(Guest::probe("selfshutdown", ""))
            .run(Clock::Host);
        run.refused(what);
    }
}

/// A board's memory holds what was in it before: here a pattern from below where the firmware's device tree lies, which is where guests are
/// placed. They find zeros.
#[test]
fn a_guest_finds_nothing_in_its_memory() {
    const FIRMWARES_TREE: u64 = 0xffe0_0000;
    const FILLED: usize = 48 << 20;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("pattern");
    fs::write(&file, vec![0xa5; FILLED]).expect("the temporary folder can be written");
    let at = FIRMWARES_TREE - FILLED as u64;
    for cpu in ["rv64", "rv64,zicboz=off"] {
        let run = System::on(1)
            .cpu(cpu)
            .qemu_args([
                "-device".into(),
                format!("loader,file={},addr={at:#x},force-raw=on", file.display()),
            ])
            .with(Guest::probe("virt", "zeros=1 strict=1"))
            .with(Guest::probe("virt", "zeros=1 strict=1").named("second"))
            .run(Clock::Icount);
        run.good();
    }
}
