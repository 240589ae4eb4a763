//! Boards that differ from QEMU's `virt`, as far as their device trees say so.
use ainori::report::Outcome;
use ainori_manifest::Manifest;
use ainori_tests::{Clock, Guest, IMSIC, PLIC, Run, System, operator};
use dtoolkit::fdt::Fdt;
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
use dtoolkit::{Node, Property};
use std::{fs, path::Path, process::Command, time::Duration};

const CLOCK: &str = "/soc/rtc@101000";

/// The system on `virt` with one hart and a PLIC, of whose device tree the node at `path` is changed.
fn run(system: System, path: &str, change: impl FnOnce(&mut DeviceTreeNode)) -> Run {
    run_on("virt,aclint=on", system.interrupts(PLIC), path, change)
}

/// The same on another machine of QEMU, which is the system's.
fn run_on(machine: &str, system: System, path: &str, change: impl FnOnce(&mut DeviceTreeNode)) -> Run {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("board.dtb");
    let dump = format!("{machine},dumpdtb={}", file.display());
    let status = Command::new("qemu-system-riscv64")
        .args(["-M", &dump, "-cpu", &system.hart_model(), "-smp", "1", "-m", "2048M", "-display", "none"])
        .status();
    assert!(status.expect("QEMU is there").success());
    let bytes = fs::read(&file).expect("QEMU has written it");
    let mut tree = DeviceTree::from_fdt(&Fdt::new(&bytes).expect("a device tree"));
    change(tree.find_node_mut(path).expect("the board has such a node"));
    fs::write(&file, tree.to_dtb()).expect("the temporary folder can be written");
    system.qemu_args(["-dtb".into(), file.display().to_string()]).run(Clock::Icount)
}

fn set(node: &mut DeviceTreeNode, name: &str, cells: &[u32]) {
    node.add_property(DeviceTreeProperty::new(name, cells).expect("a property's name"));
}

/// A guest that owns the clock.
fn owner() -> System {
    System::on(1).with(Guest::probe("selfshutdown", "").device(CLOCK))
}

/// Who got the clock would get the other registers in its page, too.
#[test]
fn a_device_that_shares_its_page_is_nobodys() {
    owner().run(Clock::Icount).good();
    let run = run(owner(), "/fw-cfg@10100000", |node| set(node, "reg", &[0, 0x0010_1800, 0, 0x18]));
    run.refused("`fw-cfg@10100000` has registers in the same page");
}

/// A guest's controller has the board's sources for the devices that it owns, and its own ones for virtual devices. (The clock and the serial port shared a
/// line.)
#[test]
fn a_device_with_an_interrupt_of_a_virtual_one_is_nobodys() {
    for (source, is_free) in [(8, true), (9, true), (10, false), (31, true), (32, false)] {
        let run = run(owner(), CLOCK, |node| set(node, "interrupts", &[source]));
        if is_free {
            run.good();
        } else {
            run.refused(&format!("interrupt {source} isn't free in the guest's controller"));
        }
    }
}

/// The interrupt controller has no context for the supervisor of that hart. (The device's interrupts were sent to context 0, which isn't even a
/// supervisor's on this board.)
#[test]
fn a_device_whose_interrupts_can_not_arrive_is_nobodys() {
    const NONE: u32 = u32::MAX;
    let run = run(owner(), "/soc/plic@c000000", |node| {
        let mut contexts: Vec<u8> =
            node.property("interrupts-extended").expect("its contexts").value().to_vec();
        contexts.splice(12..16, NONE.to_be_bytes());
        node.add_property(
            DeviceTreeProperty::new("interrupts-extended", contexts).expect("a property's name"),
        );
    });
    run.refused("no interrupts of devices reach its hart 0");
}

/// The harts don't have what the hypervisor reaches it by, as far as they say: nothing of it is driven, and guests that own no device run.
#[test]
fn an_imsic_that_can_not_be_reached_is_not_driven() {
    const AIA: &str = "virt,aclint=on,aia=aplic-imsic,aia-guests=3";
    let name = "riscv,isa-extensions";
    let without_ssaia = |hart: &mut DeviceTreeNode| {
        let names = hart.property(name).expect("its extensions").value().to_vec();
        let names: Vec<&[u8]> = names.split(|byte| *byte == 0).filter(|name| *name != b"ssaia").collect();
        hart.add_property(DeviceTreeProperty::new(name, names.join(&0)).expect("a property's name"));
    };
    let on = |system: System| system.with_h().interrupts(IMSIC);
    let arrives = "no interrupts of devices reach its hart 0";
    run_on(AIA, on(owner()), "/cpus/cpu@0", |_| {}).good();
    run_on(AIA, on(owner()), "/cpus/cpu@0", without_ssaia).refused(arrives);
    let alone = System::on(1).with_h().with(Guest::probe("selfshutdown", ""));
    run_on(AIA, on(alone), "/cpus/cpu@0", without_ssaia).good();
}

/// Nothing is seen, but guests print more than their rings hold, are started again, and end. (They stood still.)
#[test]
fn without_a_console_guests_run_all_the_same() {
    for way in ["uart", "dbcn"] {
        let printer = Guest::probe("flood", &format!("bytes=200000 line=50 way={way}"));
        let reborn = Guest::probe("lives", "end=failure until_ms=100").restart("on-failure", 32, "10s");
        let off = operator::argument(Duration::from_secs(20), None);
        let system = System::on(1).with(printer).with(reborn).qemu_args(["-plugin".into(), off]);
        // The firmware takes one without an interrupt, and its banner is all that is seen.
        let run = run(system, "/soc/serial@10000000", |node| drop(node.remove_property("interrupts")));
        run.ended(Outcome::QemuDied);
        let is_stuck = run.report.problems.iter().any(|problem| problem.contains("operator: switched off"));
        run.check(!is_stuck, format_args!("{way}: the system should have come to its end by itself"));
    }
}

/// The extensions of harts of this model, as QEMU's device tree names them; `None`: QEMU refuses it.
fn extensions(cpu: &str) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("board.dtb");
    let machine = format!("virt,dumpdtb={}", file.display());
    let done = Command::new("qemu-system-riscv64")
        .args(["-M", &machine, "-cpu", cpu, "-display", "none"])
        .output()
        .expect("QEMU is there");
    if !done.status.success() {
        return None;
    }
    let bytes = fs::read(&file).expect("QEMU has written it");
    let tree = DeviceTree::from_fdt(&Fdt::new(&bytes).expect("a device tree"));
    let hart = tree.find_node("/cpus/cpu@0").expect("a hart");
    let names = hart.property("riscv,isa-extensions").expect("its extensions").value().to_vec();
    let names = names.split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned());
    Some(names.filter(|name| !name.is_empty()).collect())
}

/// What decides which build of the hypervisor a system gets is read of the harts' properties as QEMU reads it: with each spelling of a value, whichever counts where there
/// are two, and of each kind of model. What QEMU refuses, the manifest refuses. (`h=0` counted as harts with H.)
#[test]
fn properties_of_harts_mean_what_they_mean_to_qemu() {
    let values = ["on", "true", "yes", "y", "off", "false", "no", "n", "0", "1", "True", "OFF", ""];
    let models =
        ["rv64", "max", "rva22s64", "rva23s64", "veyron-v1", "tt-ascalon", "sifive-u54", "thead-c906"];
    let mut cpus: Vec<String> = models.map(String::from).into();
    for property in ["h", "sstc", "smstateen", "H", "Sstc"] {
        cpus.extend(values.map(|value| format!("rv64,{property}={value}")));
        cpus.extend(models.map(|model| format!("{model},{property}=on")));
        cpus.extend(models.map(|model| format!("{model},{property}=off")));
    }
    let more = [
        "rv64,h=off,h=on",
        "rv64,h=on,h=off",
        "rv64,h=0,h=off",
        "rv64,h",
        "rv64,-h",
        "rv64i,rva22s64=on",
        "rv64i,rva23s64=on",
        "rv64i,rva23s64=on,h=off",
        "rv64i,h=off,rva23s64=on",
        "rv64,h=off,rva23s64=on",
        "rv64,rva23s64=off",
        "rv64i,rva23s64=maybe",
        "max,sstc=off,rva22s64=on",
        "rv64,g=maybe",
        "rv64,sv48=maybe",
        "rv64i,g=on,h=on,c=on,s=on,u=on,sv39=on",
    ];
    cpus.extend(more.map(String::from));
    let (mut with, mut without) = (0, 0);
    for cpu in cpus {
        let system = System::on(1).with_h().cpu(&cpu).with(Guest::probe("selfshutdown", ""));
        let manifest = Manifest::parse("system.toml", &system.to_string(), Path::new("/"), "properties");
        match (manifest, extensions(&cpu)) {
            (Ok(manifest), Some(names)) => {
                let has = |wanted: &str| names.iter().any(|name| name == wanted);
                let board = manifest.board;
                assert_eq!((board.has_h(), board.has_sstc()), (has("h"), has("sstc")), "{cpu}: {names:?}");
                *(if board.has_h() { &mut with } else { &mut without }) += 1;
            }
            (Ok(_), None) => panic!("{cpu}: QEMU refuses what the manifest may say"),
            (Err(_), None) => {}
            (Err(findings), Some(_)) => panic!("{cpu}: {findings:?}"),
        }
    }
    assert!(with >= 20 && without >= 20, "{with} have H, {without} don't");
}
