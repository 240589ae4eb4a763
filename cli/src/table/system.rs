//! Tables of a system and of its image.
use super::{
    Rows,
    units::{percent, size},
};
use crate::image::Sizes;
use ainori_manifest::{
    Clock, Disk, GuestPaths, Interrupts, Manifest, Network,
    config::{Guest, Kind, Shadow, ShadowReclaim, ShadowSpaces, System, Window},
    show_size,
};
use ainori_sched::Policy;
use std::{fmt::Write, path::Path};

/// A system: its board and policy in a line, its guests in a table.
pub fn system(manifest: &Manifest) -> String {
    let (system, board) = (&manifest.system, &manifest.board);
    let mut text = format!(
        "{}: {} with {}, {} ({}), {}, policy {}, quantum {} us\n",
        system.name,
        board.machine,
        count(board.harts as usize, "hart"),
        show_size(board.memory),
        board.cpu,
        match board.interrupts {
            Interrupts::Plic => "PLIC",
            Interrupts::Aplic => "APLIC",
            Interrupts::Imsic => "APLIC and IMSICs",
        },
        system.policy.preset,
        system.policy.quantum_us
    );
    let mut guests = Rows::new(
        &["guest", "kind", "priority", "weight", "memory", "vCPU on hart", "may move to", "devices", "image"],
        &["priority", "weight", "memory"],
    );
    // Neither the quantum nor the clock matters for its choices.
    let policy = Policy::preset(&system.policy.preset, 1, 1_000);
    let moves = policy.is_none_or(|policy| policy.moves());
    for (guest, files) in system.guests.iter().zip(&manifest.files) {
        let waits = if guest.background { " (background)" } else { "" };
        let image = files.image.file_name().unwrap_or(files.image.as_os_str()).to_string_lossy();
        let initrd =
            guest.initrd.map_or_else(String::new, |initrd| format!("; initrd, {}", size(initrd.len)));
        guests.add_row([
            format!("{}{waits}", guest.name),
            match guest.kind {
                Kind::Linux => "linux",
                Kind::Elf => "elf",
                Kind::Raw => "raw",
            }
            .into(),
            priorities(guest, policy.as_ref()),
            guest.weight.to_string(),
            show_size(guest.memory),
            homes(guest),
            if moves { reach(guest) } else { "-".into() },
            if guest.devices.is_empty() { "-".into() } else { guest.devices.join(", ") },
            format!("{image}, {}{initrd}{}", size(guest.image.stored()), loads(files)),
        ]);
    }
    let _ = writeln!(text, "{guests}");
    for windows in system.windows.chunk_by(|one, next| one.hart == next.hart) {
        let _ = writeln!(text, "{}", timetable(system, windows));
    }
    if !board.has_h() {
        let _ = writeln!(text, "The harts lack the H extension: guests' kernels run in user mode.");
        if board.interrupts == Interrupts::Imsic {
            let _ = writeln!(text, "Without it the board's IMSICs aren't used: guests have a PLIC.");
        }
    }
    if !board.has_sstc() {
        let _ = writeln!(text, "The harts lack the Sstc extension: the firmware sets their timers.");
    }
    for (guest, translation) in system.guests.iter().zip(&manifest.translations) {
        if let Some(shadow) = translation.shadow() {
            let _ = writeln!(text, "{}", shadow_tables(guest, shadow));
            if !board.has_h() && !shadow.breakpoints {
                let _ = writeln!(text, "No breakpoints stand for privileged instructions of {}.", guest.name);
            }
        }
    }
    for (index, space) in manifest.spaces().iter().enumerate() {
        if let Some(at) = space.memory_at {
            let _ = writeln!(text, "{}", place(&system.guests[index], at));
        }
        if !space.translation.confines() {
            let _ = writeln!(text, "{}", reach_without_protection(system, index));
        }
    }
    for disk in &manifest.disks {
        let _ = writeln!(text, "{}", told_of_disk(&system.guests[disk.guest], disk));
    }
    for network in &manifest.networks {
        let _ = writeln!(text, "{}", told_of_network(&system.guests[network.guest], network));
    }
    if let Some(power) = &manifest.power {
        let (name, time) = (&system.guests[power.guest].name, power.patience.as_secs_f64());
        let _ = writeln!(
            text,
            "Before the run is ended early, {name} is asked to shut down, for which it has {time} s."
        );
    }
    if !system.channels.is_empty() {
        let _ = writeln!(text, "{}", channels(manifest));
    }
    if manifest.run.clock != Clock::Host {
        let _ =
            writeln!(text, "It runs in virtual time, in which nothing can be typed (but with --clock host).");
    } else if let Some(input) = system.console_input.and_then(|index| system.guests.get(index as usize)) {
        let _ = writeln!(text, "What is typed goes to {}.", input.name);
    }
    text
}

/// `Hart 1, of each 10000 us: freertos from 0 to 4000, linux from 4000 to 9000.`, for windows of one hart.
fn timetable(system: &System, windows: &[Window]) -> String {
    let hart = windows.first().map_or(0, |window| window.hart);
    let name = |window: &Window| system.guests.get(window.guest as usize).map_or("", |guest| &guest.name);
    let told = |window: &Window| {
        format!("{} from {} to {}", name(window), window.start_us, window.start_us + window.length_us)
    };
    let all: Vec<String> = windows.iter().map(told).collect();
    format!("Hart {hart}, of each {} us: {}.", system.policy.frame_us, all.join(", "))
}

/// `Each vCPU of linux has 256 shadow tables for the last 16 address spaces, taken first in first out.`
fn shadow_tables(guest: &Guest, shadow: Shadow) -> String {
    let spaces = match shadow.spaces {
        ShadowSpaces::Single => "its address space alone".into(),
        ShadowSpaces::Multi => format!("the last {} address spaces", shadow.space_count()),
    };
    let order = match (shadow.reclaim, shadow.spaces) {
        (ShadowReclaim::Fifo, _) => "first in first out",
        (ShadowReclaim::PageDirectoryLru, ShadowSpaces::Multi) => "from the one that was used least recently",
        // Nobody else's are there to be taken.
        (ShadowReclaim::PageDirectoryLru, ShadowSpaces::Single) => "all at once",
    };
    format!("Each vCPU of {} has {} shadow tables for {spaces}, taken {order}.", guest.name, shadow.tables)
}

/// `The memory of freertos is at 0xbee00000..0xbfe00000 of the board, and for freertos too.`
fn place(guest: &Guest, at: u64) -> String {
    let name = &guest.name;
    format!(
        "The memory of {name} is at {at:#x}..{:#x} of the board, and for {name} too.",
        at.saturating_add(guest.memory)
    )
}

/// `A disk of linux, in virtio slot 0, is root.img.`
fn told_of_disk(guest: &Guest, disk: &Disk) -> String {
    let how = match (disk.read_only, disk.snapshot) {
        (true, _) => ", which it can only read",
        (false, true) => "; what it writes is thrown away at the end",
        (false, false) => "",
    };
    format!("A disk of {}, in virtio slot {}, is {}{how}.", guest.name, disk.slot, disk.path.display())
}

/// `A network card of linux, in virtio slot 1, is 52:54:00:41:49:01; this computer's port 2222 leads to its port 22.`
fn told_of_network(guest: &Guest, network: &Network) -> String {
    let ports: Vec<String> = (network.forwards.iter())
        .map(|forward| match forward.host {
            Some(host) => format!("; this computer's port {host} leads to its port {}", forward.guest),
            None => format!("; a free port of this computer leads to its port {}", forward.guest),
        })
        .collect();
    format!(
        "A network card of {}, in virtio slot {}, is {}{}.",
        guest.name,
        network.slot,
        network.mac,
        ports.concat()
    )
}

/// What a guest could reach that nothing keeps from it.
fn reach_without_protection(system: &System, index: usize) -> String {
    let own = &system.guests[index].name;
    let others: Vec<&str> = (system.guests.iter().enumerate())
        .filter(|(other, _)| *other != index)
        .map(|(_, guest)| &*guest.name)
        .collect();
    let others = if others.is_empty() { String::new() } else { format!(", that of {}", others.join(", ")) };
    format!(
        "Nothing keeps {own} from what isn't its own (translation = \"none\"): it can read and change the hypervisor's memory{others}, and the board's \
         devices. Of the firmware's memory, the firmware keeps it out, as the hypervisor itself."
    )
}

/// Each channel, and how each of its guests finds it: the number of the device on its PCI bus.
fn channels(manifest: &Manifest) -> Rows {
    let system = &manifest.system;
    let mut rows = Rows::new(&["channel", "memory", "end 0", "end 1"], &["memory"]);
    for (number, channel) in system.channels.iter().enumerate() {
        let [first, second] = channel.ends.map(|end| {
            let slot = system.channels_of(end as usize).take_while(|(one, _)| *one != number).count();
            format!("{}, PCI 00:{slot:02x}.0", system.guests[end as usize].name)
        });
        rows.add_row([number.to_string(), show_size(channel.size), first, second]);
    }
    rows
}

/// `1, on hart 0: 12`; only what counts under the policy, on harts where a vCPU of the guest may come.
/// What a guest finds in its memory beside its program. Its bytes are counted with those of the program.
fn loads(files: &GuestPaths) -> String {
    let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    files.loads.iter().map(|load| format!("; {} at {:#x}", name(&load.file), load.address)).collect()
}

fn priorities(guest: &Guest, policy: Option<&Policy>) -> String {
    let Some(policy) = policy else { return guest.priority.to_string() };
    let reach = guest.vcpus.iter().fold(0, |set, vcpu| set | policy.reach(vcpu.home, vcpu.harts));
    let harts = (0..u64::BITS).filter(|hart| reach >> hart & 1 != 0);
    let there = harts.map(|hart| (hart, policy.priority(guest.priority, guest.priority_on(hart.into()))));
    let (same, other): (Vec<_>, Vec<_>) = there.partition(|(_, priority)| *priority == guest.priority);
    let everywhere = (!same.is_empty() || other.is_empty()).then(|| guest.priority.to_string());
    let other = other.iter().map(|(hart, priority)| format!("on hart {hart}: {priority}"));
    everywhere.into_iter().chain(other).collect::<Vec<_>>().join(", ")
}

/// `0→0 1→1`: each vCPU and the hart that it starts on.
fn homes(guest: &Guest) -> String {
    let homes: Vec<_> =
        guest.vcpus.iter().enumerate().map(|(index, vcpu)| format!("{index}→{}", vcpu.home)).collect();
    homes.join(" ")
}

/// The harts that the guest's vCPUs may move to, under a policy that moves them.
fn reach(guest: &Guest) -> String {
    let set = guest.vcpus.iter().fold(0, |set, vcpu| set | vcpu.harts);
    let harts: Vec<_> =
        (0..u64::BITS).filter(|hart| set >> hart & 1 != 0).map(|hart| hart.to_string()).collect();
    harts.join(" ")
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// What takes how much of an image.
pub fn sizes(sizes: &Sizes) -> String {
    let sections = sizes.sections;
    let mut rows = Rows::new(&["part", "bytes", "", "share"], &["bytes", "share"]);
    let parts = [
        ("text", sections.text),
        ("rodata", sections.rodata),
        ("boot only", sections.boot),
        ("data", sections.data),
        ("bss", sections.bss),
        ("payload", sizes.payload as u64),
        ("image, with padding", sizes.image as u64),
    ];
    for (name, bytes) in parts {
        rows.add_row([name.to_owned(), bytes.to_string(), size(bytes), percent(bytes, sizes.image as u64)]);
    }
    format!("{rows}\n")
}
