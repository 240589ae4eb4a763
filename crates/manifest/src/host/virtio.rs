//! Disks and networks of guests: what an emulator puts into the board's places for virtio devices.
use super::files::serialize_path;
use serde::Serialize;
use std::{path::PathBuf, time::Duration};

/// A disk of a guest (`[[disk]]`), as a raw file of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Index in [`System::guests`](crate::config::System::guests) of the one that has it.
    pub guest: usize,
    /// The place for virtio devices where it is, from 0.
    pub slot: usize,
    /// Where its contents are.
    #[serde(serialize_with = "serialize_path")]
    pub path: PathBuf,
    /// The guest can't write.
    pub read_only: bool,
    /// What the guest writes goes nowhere in the end: the file stays as it is.
    pub snapshot: bool,
}

impl Disk {
    /// Does the file get what the guest writes?
    #[must_use]
    pub const fn is_written(&self) -> bool {
        !self.read_only && !self.snapshot
    }
}

/// The power button of a guest (`shutdown`): a keyboard with one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PowerButton {
    /// Index in [`System::guests`](crate::config::System::guests) of the one that has it.
    pub guest: usize,
    /// The place for virtio devices where it is, from 0.
    pub slot: usize,
    /// How long its guest may take to shut down once it was pressed.
    pub patience: Duration,
}

/// A network of a guest (`[[network]]`): the emulator's own, with the way out that the emulator's process has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Index in [`System::guests`](crate::config::System::guests) of the one that has it.
    pub guest: usize,
    /// The place for virtio devices where its card is, from 0.
    pub slot: usize,
    /// The card's address, as six hexadecimal numbers with colons between them.
    pub mac: String,
    /// Ports of the host that lead to the guest.
    pub forwards: Vec<Forward>,
}

/// A TCP port of the host, on its loopback address alone, that leads to one of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Forward {
    /// The host's, from 1; `None`: one that is free when the run begins.
    pub host: Option<u16>,
    /// The guest's, from 1.
    pub guest: u16,
}
