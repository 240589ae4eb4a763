//! A system on a disk, which a boot loader finds there and starts, as on a board.
use crate::{System, checkout};
use ainori::image::{self, Kernel};
use ainori_manifest::Manifest;
use std::{fs, path::Path};
use tempfile::TempDir;

/// What U-Boot looks for on a disk's first partition (doc/develop/distro.rst there). No device tree is named: it hands over the one that it has from
/// the firmware. Nor a RAM disk: the guests' are in the image.
const EXTLINUX: &str = "default ainori\ntimeout 1\nlabel ainori\n    kernel /ainori.bin\n";

/// A folder that QEMU shows as a disk with a partition table and one partition, FAT16.
#[derive(Debug)]
pub struct Disk(TempDir);

impl Disk {
    /// With the system's image, and what a boot loader wants beside it.
    pub fn of(system: &System) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let manifest = Manifest::parse("system.toml", &system.to_string(), Path::new("/"), "test");
        let manifest = manifest.unwrap_or_else(|findings| panic!("{findings:?}\n{system}"));
        let image = Kernel::load(Some(&system.kernel_file()), manifest.needs())
            .and_then(|kernel| image::build(&manifest, kernel))
            .unwrap_or_else(|error| panic!("there is no image: {error:?}\n{system}"));
        let write = |name: &str, bytes: &[u8]| {
            fs::write(folder.path().join(name), bytes).expect("the temporary folder can be written");
        };
        write("ainori.bin", &image.bytes);
        fs::create_dir(folder.path().join("extlinux")).expect("the temporary folder can be written");
        write("extlinux/extlinux.conf", EXTLINUX.as_bytes());
        Self(folder)
    }

    /// Arguments for QEMU, behind those of `ainori run`: in place of the image the firmware starts U-Boot, for which the machine has this disk.
    pub fn behind_u_boot(&self) -> [String; 6] {
        let u_boot = checkout(".cache/guests/u-boot/u-boot.bin").display().to_string();
        let folder = self.0.path().display().to_string().replace(',', ",,");
        let drive = format!("if=none,id=disk,format=raw,readonly=on,file=fat:{folder}");
        ["-kernel", &u_boot, "-drive", &drive, "-device", "virtio-blk-device,drive=disk"].map(String::from)
    }
}
