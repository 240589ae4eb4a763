//! Guests' disks and networks as QEMU gets them, and what has to be right on this computer for that.
use super::files::{joined, option};
use ainori_manifest::{Disk, Manifest, Network};
use miette::{Result, miette};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    net::{Ipv4Addr, TcpListener},
};

/// What QEMU is told, and what the user is.
#[derive(Debug, Default)]
pub struct Devices {
    /// Arguments for QEMU.
    pub arguments: Vec<OsString>,
    /// Which port leads where, a line each.
    pub told: Vec<String>,
}

impl Devices {
    /// Those of a system. An error says in words what of this computer isn't as they need it.
    pub fn prepare(manifest: &Manifest) -> Result<Self> {
        let mut devices = Self::default();
        let (disks, networks) = (&manifest.disks, &manifest.networks);
        if !disks.is_empty() || !networks.is_empty() || manifest.power.is_some() {
            // Else their registers are those of before the standard.
            devices.arguments.extend(["-global", "virtio-mmio.force-legacy=false"].map(OsString::from));
        }
        for (number, disk) in disks.iter().enumerate() {
            look_at(disk)?;
            devices.add_disk(number, disk);
        }
        for (number, network) in networks.iter().enumerate() {
            let name = &manifest.system.guests[network.guest].name;
            devices.add_network(number, network, name)?;
        }
        if let Some(power) = &manifest.power {
            devices
                .add("-device", format!("virtio-keyboard-device,bus=virtio-mmio-bus.{}", power.slot).into());
        }
        Ok(devices)
    }

    fn add(&mut self, key: &str, value: OsString) {
        self.arguments.extend([key.into(), value]);
    }

    fn add_disk(&mut self, number: usize, disk: &Disk) {
        let Disk { slot, path, read_only, snapshot, .. } = disk;
        let read_only = if *read_only { ",read-only=on" } else { "" };
        let snapshot = if *snapshot { ",snapshot=on" } else { "" };
        // The driver is named, so that a name with a colon is a file's all the same, and no contents are taken for those of another format.
        let head = format!("if=none,id=disk{number},driver=raw,file.driver=file{read_only}{snapshot},");
        self.add("-drive", joined(&[OsStr::new(&head), &option("file.filename", path)]));
        self.add(
            "-device",
            format!("virtio-blk-device,drive=disk{number},bus=virtio-mmio-bus.{slot}").into(),
        );
    }

    fn add_network(&mut self, number: usize, network: &Network, guest: &str) -> Result<()> {
        let mut back = format!("user,id=net{number}");
        for forward in &network.forwards {
            let host = free_port(forward.host)?;
            let to = forward.guest;
            back.push_str(&format!(",hostfwd=tcp:{}:{host}-:{to}", Ipv4Addr::LOCALHOST));
            let hint = if to == 22 {
                format!(": ssh -p {host} USER@{}", Ipv4Addr::LOCALHOST)
            } else {
                String::new()
            };
            self.told.push(format!("{}:{host} leads to port {to} of {guest}{hint}", Ipv4Addr::LOCALHOST));
        }
        self.add("-netdev", back.into());
        let Network { slot, mac, .. } = network;
        self.add(
            "-device",
            format!("virtio-net-device,netdev=net{number},mac={mac},bus=virtio-mmio-bus.{slot}").into(),
        );
        Ok(())
    }
}

/// Can the file be used as this disk is to be used? It may have changed since the manifest was read.
fn look_at(disk: &Disk) -> Result<()> {
    let mut options = File::options();
    options.read(true).write(disk.is_written()).open(&disk.path).map(drop).map_err(|error| {
        let what = if disk.is_written() { "written" } else { "read" };
        miette!(
            help = "with read_only = true nothing is written to it, and with snapshot = true what is written is thrown away at the end",
            "the disk {} can't be {what}: {error}",
            disk.path.display()
        )
    })
}

/// The port if nobody has it, or any that is free. QEMU opens it a moment later; should somebody have been faster, it says so.
fn free_port(wanted: Option<u16>) -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted.unwrap_or(0))).map_err(|error| {
        let port = wanted.map_or_else(|| "no port".into(), |port| format!("port {port}"));
        miette!(
            help = "name another one in `forward`, or only the guest's, as in forward = [\"22\"]: then any free one is taken",
            "{port} of this computer can't lead to a guest: {error}"
        )
    })?;
    let address = listener.local_addr().map_err(|error| miette!("a port has no number: {error}"))?;
    Ok(address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ainori_manifest::Forward;
    use std::path::PathBuf;

    fn words(devices: &Devices) -> Vec<&str> {
        devices.arguments.iter().map(|word| word.to_str().unwrap()).collect()
    }

    #[test]
    fn a_disk_is_a_file_whatever_its_name() {
        let mut devices = Devices::default();
        let path = PathBuf::from("/a/nbd:x,y");
        devices.add_disk(1, &Disk { guest: 0, slot: 3, path, read_only: true, snapshot: false });
        assert_eq!(
            words(&devices),
            [
                "-drive",
                "if=none,id=disk1,driver=raw,file.driver=file,read-only=on,file.filename=/a/nbd:x,,y",
                "-device",
                "virtio-blk-device,drive=disk1,bus=virtio-mmio-bus.3"
            ]
        );
    }

    #[test]
    fn a_disk_that_cant_be_written_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let disk = Disk { guest: 0, slot: 0, path, read_only: false, snapshot: false };
        let error = look_at(&disk).unwrap_err();
        assert!(error.to_string().contains("can't be written: No such file"), "{error}");
        std::fs::write(&disk.path, "x").unwrap();
        look_at(&disk).unwrap();
    }

    #[test]
    fn ports_lead_where_the_manifest_says() {
        let mut devices = Devices::default();
        let busy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = busy.local_addr().unwrap().port();
        let network = |host| Network {
            guest: 0,
            slot: 1,
            mac: "52:54:00:41:49:01".into(),
            forwards: vec![Forward { host, guest: 22 }],
        };
        let error = devices.add_network(0, &network(Some(port)), "linux").unwrap_err().to_string();
        assert!(error.contains(&format!("port {port} of this computer can't lead to a guest")), "{error}");
        drop(busy);
        devices.add_network(0, &network(Some(port)), "linux").unwrap();
        let netdev = format!("user,id=net0,hostfwd=tcp:127.0.0.1:{port}-:22");
        let card = "virtio-net-device,netdev=net0,mac=52:54:00:41:49:01,bus=virtio-mmio-bus.1";
        assert_eq!(words(&devices), ["-netdev", &netdev, "-device", card]);
        assert_eq!(devices.told.len(), 1);
        assert!(
            devices.told[0]
                .starts_with(&format!("127.0.0.1:{port} leads to port 22 of linux: ssh -p {port} "))
        );
        devices.add_network(1, &network(None), "linux").unwrap();
        assert!(!devices.told[1].starts_with("127.0.0.1:0 "), "a port that is free was looked for");
    }
}
