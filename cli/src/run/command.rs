//! QEMU's command line.
use super::{
    ClockChoice, Options,
    files::{Files, joined, option},
    qemu::{PROGRAM, Wanted},
};
use crate::checkout;
use ainori_manifest::Interrupts;
use miette::{Result, miette};
use std::{ffi::OsStr, path::Path, process::Command};

/// The plugin that is the clock lockstep, in a checkout.
pub const LOCKSTEP: &str = ".cache/plugins/lockstep.so";

/// The command that boots an image on its board. With a virtual clock the serial port's output goes to `serial`, otherwise to stdout.
pub fn command(
    options: &Options,
    Wanted { board, devices, image, .. }: Wanted<'_>,
    serial: Option<&Path>,
    files: Files<'_>,
) -> Result<Command> {
    let mut command = Command::new(PROGRAM);
    let machine = match (board.machine.as_str(), board.interrupts) {
        // With ACLINT, harts can ring each other from supervisor mode, without the firmware.
        ("qemu-virt", Interrupts::Plic) => "virt,aclint=on",
        ("qemu-virt", Interrupts::Aplic) => "virt,aclint=on,aia=aplic",
        // There is no device for such rings then: harts send each other messages. Each has files for three guests, if it has H.
        ("qemu-virt", Interrupts::Imsic) if board.has_h() => "virt,aclint=on,aia=aplic-imsic,aia-guests=3",
        // A guest's file in a hart is the H extension's business (AIA specification, "Guest interrupt files").
        ("qemu-virt", Interrupts::Imsic) => "virt,aclint=on,aia=aplic-imsic",
        ("sifive_u", Interrupts::Plic) => "sifive_u",
        (other, _) => {
            return Err(miette!("ainori run can't run on the board {other:?}: copy the image there instead"));
        }
    };
    command.args(["-M", machine, "-cpu", &board.cpu]);
    // QEMU counts those as well that are the firmware's.
    let harts = board.hart_ids().end;
    command.args(["-smp", &harts.to_string(), "-m", &format!("{}M", board.memory >> 20)]);
    command.args(["-display", "none", "-monitor", "none", "-no-reboot", "-bios", "default"]);
    // The value of -kernel is the name of a file and nothing else, commas included.
    command.arg("-kernel").arg(image);
    match serial {
        None => command.args(["-serial", "stdio"]),
        // Not `-serial file:`, which knows no way to write a comma.
        Some(path) => command
            .arg("-chardev")
            .arg(joined(&[OsStr::new("file,id=serial,"), &option("path", path)]))
            .args(["-serial", "chardev:serial"]),
    };
    let virtual_time = ["-seed", &options.seed.to_string(), "-rtc", "base=2025-01-01,clock=vm"];
    match options.clock {
        ClockChoice::Host => {}
        ClockChoice::Icount => {
            // shift=2: 4 ns per instruction.
            let count = OsStr::new("shift=2,sleep=off");
            let icount = if harts == 1 {
                // Without this a guest that sleeps is not quite repeatable.
                let journal = option("rrfile", &files.only_if_kept("replay.bin"));
                joined(&[count, OsStr::new(",rr=record,"), &journal])
            } else {
                // QEMU has no record for several harts, and takes the firmware's for one.
                count.to_owned()
            };
            command.arg("-icount").arg(icount).args(virtual_time);
        }
        ClockChoice::Lockstep { q } => {
            let plugin = checkout::find(LOCKSTEP, "the lockstep clock", "run `make build`")?;
            let settings = format!(",q={q},ns={}", ClockChoice::NS);
            let plugin = joined(&[&option("file", &plugin), OsStr::new(&settings)]);
            command.args(["-accel", "tcg,thread=single", "-plugin"]).arg(plugin).args(virtual_time);
        }
    }
    command.args(devices).args(&options.qemu_args);
    Ok(command)
}
