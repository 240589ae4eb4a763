//! A host of one guest, without any vCPUs that run: it notes what it is asked for.
use ainori_console::{Multiplexer, Source};
use ainori_devices::irqchip::{Board, Irqchip};
use ainori_devices::{bus::channel_source, channel::Endpoint, plic::Plic};
use ainori_lifecycle::{Cause, Hart, HartState};
use ainori_sbi::RemoteFence;

use crate::{Devices, Host, serial::Serial};

/// Where the guest's memory begins.
pub const MEMORY: u64 = 0x8000_0000;
/// How much it has.
pub const SIZE: u64 = 4096;

/// What a service wanted of the host, but for what it can be asked for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Start(u32),
    Suspend,
    ResumeAt(u64, u64),
    Yield,
    StopGuest(&'static str, Cause),
    SetTimer(u64),
    SendIpi(u64),
    RemoteFence(u64, RemoteFence),
    Complete(u32),
    Ring(usize),
    WakeConsole,
    RelieveConsole,
    Mark(u64),
    Lock(bool),
}

pub struct TestHost {
    pub devices: &'static Devices,
    pub harts: &'static [Hart],
    /// Whose trap is being served.
    pub caller: usize,
    pub memory: Vec<u8>,
    /// Its software interrupt is up.
    pub software: bool,
    pub input_waits: bool,
    /// Harts whose external interrupt was to be looked at again.
    pub looked_at: u64,
    pub wishes: Vec<Wish>,
    console: Multiplexer<1>,
}

impl TestHost {
    /// A guest with so many harts, of which the first has started.
    pub fn new(harts: usize) -> Self {
        let harts: &'static [Hart] = (0..harts).map(|_| Hart::new()).collect::<Vec<_>>().leak();
        harts[0].note_start();
        let channels = [Endpoint::new(3, 0, 4096), Endpoint::new(5, 1, 4096)];
        let devices = Devices {
            irqchip: Irqchip::Plic(Plic::new()),
            serial: Serial::new("guest"),
            channels: Box::leak(Box::new(channels)),
        };
        Self {
            devices: Box::leak(Box::new(devices)),
            harts,
            caller: 0,
            memory: vec![0; SIZE as usize],
            software: false,
            input_waits: false,
            looked_at: 0,
            wishes: Vec::new(),
            console: Multiplexer::new(),
        }
    }

    /// The guest's harts, a bit each.
    pub fn all(&self) -> u64 {
        (1 << self.harts.len()) - 1
    }

    /// What was asked for since the last call.
    pub fn take(&mut self) -> Vec<Wish> {
        std::mem::take(&mut self.wishes)
    }

    /// The harts that have started do so now.
    pub fn start_those_who_are_asked(&mut self) {
        for hart in self.harts {
            if hart.state() == HartState::StartPending {
                hart.note_start();
            }
        }
    }

    /// Sends a piece of the output, as the console does. Returns it, with the marks of lines.
    pub fn send(&mut self) -> Vec<u8> {
        let sources: [&Source; 1] = [&self.devices.serial.output];
        let mut piece = [0; 16];
        let (length, _) = self.console.fill(&sources, 0, Some(0), &mut piece);
        piece[..length].to_vec()
    }

    fn offset(&self, address: u64, size: u64) -> Option<usize> {
        let offset = address.checked_sub(MEMORY)?;
        (offset.checked_add(size)? <= SIZE).then_some(offset as usize)
    }
}

impl Board for TestHost {
    fn complete(&mut self, source: u32, _: bool) {
        self.wishes.push(Wish::Complete(source));
    }
}

impl Host for TestHost {
    fn devices(&self) -> &'static Devices {
        self.devices
    }

    fn hart(&self, hart: u32) -> Option<&'static Hart> {
        self.harts.get(hart as usize)
    }

    fn stop_caller(&mut self) -> bool {
        self.harts[self.caller].stop_among(self.harts.iter())
    }

    fn is_alone(&self) -> bool {
        self.harts.iter().filter(|hart| hart.state() != HartState::Stopped).count() == 1
    }

    fn start(&mut self, hart: u32) {
        self.wishes.push(Wish::Start(hart));
    }

    fn suspend(&mut self) {
        self.wishes.push(Wish::Suspend);
    }

    fn resume_at(&mut self, address: u64, opaque: u64) {
        self.wishes.push(Wish::ResumeAt(address, opaque));
    }

    fn yield_now(&mut self) {
        self.wishes.push(Wish::Yield);
    }

    fn stop_guest(&mut self, reason: &'static str, cause: Cause) {
        self.wishes.push(Wish::StopGuest(reason, cause));
    }

    fn set_timer(&mut self, at: u64) {
        self.wishes.push(Wish::SetTimer(at));
    }

    fn send_ipi(&mut self, harts: u64) {
        self.wishes.push(Wish::SendIpi(harts));
    }

    fn take_software_interrupt(&mut self) -> bool {
        std::mem::take(&mut self.software)
    }

    fn remote_fence(&mut self, harts: u64, fence: RemoteFence) {
        self.wishes.push(Wish::RemoteFence(harts, fence));
    }

    fn look_at_harts(&mut self, harts: u64) {
        self.looked_at |= harts;
    }

    fn ring(&mut self, slot: usize) {
        self.wishes.push(Wish::Ring(slot));
    }

    fn has_looked(&mut self, _: usize) {}

    fn hear(&mut self, slot: usize) {
        self.looked_at |= self.devices.irqchip.pulse(channel_source(slot));
    }

    fn has_memory(&self, address: u64, size: u64) -> bool {
        self.offset(address, size).is_some()
    }

    fn load(&self, address: u64, size: usize) -> Option<impl Iterator<Item = u8> + use<>> {
        let from = self.offset(address, size as u64)?;
        Some(self.memory.clone().into_iter().skip(from).take(size))
    }

    fn store(&mut self, address: u64, byte: u8) {
        if let Some(at) = self.offset(address, 1) {
            self.memory[at] = byte;
        }
    }

    fn input_waits(&self) -> bool {
        self.input_waits
    }

    fn wake_console(&mut self) {
        self.wishes.push(Wish::WakeConsole);
    }

    fn relieve_console(&mut self) {
        self.wishes.push(Wish::RelieveConsole);
    }

    fn mark(&mut self, value: u64) {
        self.wishes.push(Wish::Mark(value));
    }

    fn note_lock(&mut self, holds_lock: bool) {
        self.wishes.push(Wish::Lock(holds_lock));
    }
}
