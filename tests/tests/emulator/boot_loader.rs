//! The image as a file on a disk, started by U-Boot, as on a board (docs/boards.md).
use ainori_tests::{Clock, Guest, Run, System, disk::Disk};
use dtoolkit::fdt::Fdt;
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
use dtoolkit::{Node, Property};
use std::{fs, os::unix::fs::FileExt, process::Command};
use tempfile::{NamedTempFile, TempDir};

/// Runs a system from its disk, and looks that it came from there.
fn boot(disk: &Disk, system: System) -> Run {
    let run = system.qemu_args(disk.behind_u_boot()).run(Clock::Lockstep { q: 250 });
    run.good();
    for said in
        ["Retrieving file: /ainori.bin", "Moving Image from 0x84000000 to 0x80200000", "Starting kernel"]
    {
        let is_there = run.before_the_hypervisor().any(|line| line.contains(said));
        run.check(is_there, format_args!("U-Boot should have said {said:?}"));
    }
    run
}

/// A file of 40 MB, which the boot loader moves to where it is linked, and its own device tree behind that.
#[test]
fn u_boot_starts_a_system_from_a_disk() {
    let rtos = Guest::freertos("period_us=1000 periods=100 burn_percent=30 report_ms=0").harts([1]);
    let system = System::on(2).with(Guest::linux("boot").vcpus(2)).with(rtos);
    let run = boot(&Disk::of(&system), system);
    run.lost_no_tick("freertos", 100);
}

/// The device tree of QEMU's `virt` with two harts, which have H, changed; with it, U-Boot doesn't wait for a key.
fn tree(change: impl FnOnce(&mut DeviceTree)) -> (TempDir, [String; 2]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("board.dtb");
    let dump = format!("virt,aclint=on,dumpdtb={}", file.display());
    let args = ["-M", &dump, "-cpu", "rv64", "-smp", "2", "-m", "2048M", "-display", "none"];
    let status = Command::new("qemu-system-riscv64").args(args).status();
    assert!(status.expect("QEMU is there").success());
    let bytes = fs::read(&file).expect("QEMU has written it");
    let mut tree = DeviceTree::from_fdt(&Fdt::new(&bytes).expect("a device tree"));
    let mut config = DeviceTreeNode::new("config").expect("a node's name");
    config.add_property(property("bootdelay", cells(&[0])));
    tree.root.add_child(config);
    change(&mut tree);
    fs::write(&file, tree.to_dtb()).expect("the temporary folder can be written");
    let args = ["-dtb".into(), file.display().to_string()];
    (folder, args)
}

fn property(name: &str, value: Vec<u8>) -> DeviceTreeProperty {
    DeviceTreeProperty::new(name, value).expect("a property's name")
}

fn cells(cells: &[u32]) -> Vec<u8> {
    cells.iter().flat_map(|cell| cell.to_be_bytes()).collect()
}

fn two_harts() -> System {
    System::on(2).with_h().with(Guest::probe("smp", "rounds=0100").vcpus(2).harts([0, 1]))
}

/// The firmware may take any hart to start the boot loader on.
#[test]
fn any_hart_may_be_the_one_that_the_boot_loader_ran_on() {
    let (_folder, args) = tree(|tree| {
        let hart = tree.find_node_mut("/cpus/cpu@1").expect("two harts");
        let phandle = hart.property("phandle").expect("it has a number").value().to_vec();
        // As OpenSBI documents it ("OpenSBI Configuration", node `opensbi,config`).
        let mut config = DeviceTreeNode::new("opensbi-config").expect("a node's name");
        config.add_property(property("compatible", b"opensbi,config\0".to_vec()));
        config.add_property(property("cold-boot-harts", phandle));
        tree.find_node_mut("/chosen").expect("every board has it").add_child(config);
    });
    let system = two_harts();
    let run = boot(&Disk::of(&system), system.qemu_args(args));
    let is_so =
        run.before_the_hypervisor().any(|line| line.starts_with("Boot HART ID") && line.ends_with(": 1"));
    run.check(is_so, "OpenSBI should have come up on hart 1");
}

/// Memory that the firmware's tree reserves is left alone by whoever has it next: U-Boot passes on what it is told. It is where
/// a guest would have its memory otherwise, which is cleared when it is started again.
#[test]
fn reserved_memory_stays_as_it_is() {
    const RAM: u64 = 0x8000_0000;
    // Below what U-Boot uses itself, at the end of memory.
    const RESERVED: u32 = 0xfd80_0000;
    let at = u64::from(RESERVED) - RAM;
    let pattern = [0xa5; 1 << 16];
    let guest = Guest::probe("lives", "end=failure until_ms=1").memory_mib(32);
    let system = System::on(2).with_h().with(guest.restart("on-failure", 32, "10s"));
    let disk = Disk::of(&system);
    for is_reserved in [true, false] {
        let (_folder, args) = tree(|tree| {
            let mut node = DeviceTreeNode::new("shared").expect("a node's name");
            node.add_property(property("reg", cells(&[0, RESERVED, 0, pattern.len() as u32])));
            node.add_property(property("no-map", Vec::new()));
            let mut reserved = DeviceTreeNode::new("reserved-memory").expect("a node's name");
            for name in ["#address-cells", "#size-cells"] {
                reserved.add_property(property(name, cells(&[2])));
            }
            reserved.add_property(property("ranges", Vec::new()));
            if is_reserved {
                reserved.add_child(node);
            }
            tree.root.add_child(reserved);
        });
        let ram = NamedTempFile::new().expect("a temporary file");
        ram.as_file().set_len(2 << 30).expect("it can be so large");
        ram.as_file().write_all_at(&pattern, at).expect("the temporary file can be written");
        let backend =
            format!("memory-backend-file,id=ram,share=on,size=2G,mem-path={}", ram.path().display());
        let memory = ["-object", &backend, "-machine", "memory-backend=ram"].map(String::from);
        let run = boot(&disk, system.clone().qemu_args(args).qemu_args(memory));
        let mut now = vec![0; pattern.len()];
        ram.as_file().read_exact_at(&mut now, at).expect("the machine's memory can be read");
        run.check((now == pattern) == is_reserved, format_args!("is reserved: {is_reserved}"));
    }
}
