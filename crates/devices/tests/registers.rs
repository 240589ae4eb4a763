//! What a guest can do to the registers of the PLIC and the UART: any width, any offset, in the window and behind it, any context.
//! Against models that are only storage: one word for each register that exists.
#![cfg(not(loom))]

use ainori_devices::{
    plic::{Effects, MAX_CONTEXTS, Plic, SOURCES},
    uart::Uart,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// Where a PLIC's registers end, had it every context that the specification allows (one more page makes it 64 MiB). Guests see less of it
/// (`bus::PLIC`).
const WINDOW: u64 = 0x400_0000;

/// The vCPUs that there can be, a bit each.
const HARTS: u64 = u64::MAX >> (u64::BITS as usize - MAX_CONTEXTS / 2);

/// The bits of a PLIC register that can be written, if it is one that only stores.
fn writable(offset: u64) -> Option<u32> {
    let (sources, contexts) = (SOURCES as u64, MAX_CONTEXTS as u64);
    let in_page = |start: u64| (offset - start) & 3 == 0;
    match offset {
        0..0x1000 => (in_page(0) && (1..sources).contains(&(offset / 4))).then_some(7),
        0x1000..0x2000 => None,
        0x2000..0x20_0000 => {
            let (context, byte) = ((offset - 0x2000) / 0x80, (offset - 0x2000) % 0x80);
            let exists = in_page(0x2000) && context < contexts && byte < sources / 8;
            // Source 0 doesn't exist.
            exists.then_some(if byte == 0 { !1 } else { !0 })
        }
        _ => {
            let (context, byte) = ((offset - 0x20_0000) / 0x1000, offset % 0x1000);
            (context < contexts && byte == 0).then_some(7)
        }
    }
}

/// Offsets near all that matters: registers, the ends of their arrays, the ends of the window.
fn offset() -> impl Strategy<Value = u64> {
    let (sources, contexts) = (SOURCES as u64, MAX_CONTEXTS as u64);
    let near = |place: u64| (0u64..12).prop_map(move |step| place.saturating_add(step).saturating_sub(6));
    prop_oneof![
        4 => (0..8u64).prop_map(|source| source * 4),
        4 => (0..contexts + 2, 0..sources / 32 + 2).prop_map(|(context, word)| 0x2000 + context * 0x80 + word * 4),
        4 => (0..contexts + 2, 0..4u64).prop_map(|(context, word)| 0x20_0000 + context * 0x1000 + word * 4),
        1 => near(sources * 4),
        1 => near(0x1000),
        1 => near(0x2000),
        1 => near(0x2000 + contexts * 0x80),
        1 => near(0x20_0000),
        1 => near(0x20_0000 + contexts * 0x1000),
        1 => near(WINDOW),
        1 => near(u64::MAX - 8),
        1 => any::<u64>(),
    ]
}

fn is_claim(offset: u64) -> bool {
    (0x20_0000..WINDOW).contains(&offset) && offset % 0x1000 == 4
}

proptest! {
    /// Without a source that asks, registers are storage: what is read is what was written last, and nothing else changes.
    #[test]
    fn plic_registers_are_storage(steps in prop::collection::vec((any::<bool>(), offset(), prop_oneof![6 => Just(4u8), 1 => any::<u8>()], any::<u32>()), 1..300)) {
        let plic = Plic::new();
        let mut stored = BTreeMap::new();
        for (store, offset, width, value) in steps {
            let mask = writable(offset).filter(|_| width == 4);
            if store {
                let effects = plic.write(offset, width, value);
                prop_assert_eq!(effects.completed, None, "nothing is in service");
                prop_assert_eq!(effects.harts & !HARTS, 0, "only vCPUs that exist");
                if let Some(mask) = mask {
                    stored.insert(offset, value & mask);
                }
            } else {
                let expected = mask.and_then(|_| stored.get(&offset)).copied().unwrap_or(0);
                prop_assert_eq!(plic.read(offset, width), (expected, Effects::NONE), "at {:#x}", offset);
            }
        }
        for (offset, value) in stored {
            prop_assert_eq!(plic.read(offset, 4).0, value, "at {:#x}, at the end", offset);
        }
        prop_assert!((0..MAX_CONTEXTS + 2).all(|context| !plic.external_pending(context)));
    }

    /// With sources that ask, whatever the guest does: a claim gives a source that was raised, and each only once per assertion.
    #[test]
    fn plic_gives_only_what_was_raised(steps in prop::collection::vec((0u8..5, offset(), any::<u32>(), 0u32..SOURCES as u32 + 2), 1..300)) {
        let plic = Plic::new();
        let mut owed = vec![0u32; SOURCES];
        let mut level = [false; SOURCES];
        // So that claims find something.
        for source in 1..8 {
            plic.write(source * 4, 4, 1);
        }
        plic.write(0x2000, 4, !0);
        for (kind, offset, value, source) in steps {
            let index = source as usize;
            match kind {
                0 => {
                    let harts = plic.raise(source);
                    prop_assert_eq!(harts & !HARTS, 0);
                    if index < SOURCES && !level[index] {
                        level[index] = true;
                        owed[index] += 1;
                    }
                }
                1 => {
                    plic.lower(source);
                    if index < SOURCES {
                        level[index] = false;
                    }
                }
                2 => {
                    // A completion makes a source that is still high ask again.
                    if let Some(done) = plic.write(offset, 4, source).completed {
                        prop_assert!(is_claim(offset) && done == source);
                        owed[index] += u32::from(level[index]);
                    }
                }
                3 => {
                    let (claimed, _) = plic.read(offset, 4);
                    if is_claim(offset) && claimed != 0 {
                        prop_assert!(owed[claimed as usize] > 0, "source {} was not raised", claimed);
                        owed[claimed as usize] -= 1;
                    }
                }
                _ => {
                    if let Some(done) = plic.write(offset, 4, value).completed {
                        owed[done as usize] += u32::from(level[done as usize]);
                    }
                }
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Read(u8),
    Write(u8, u8),
    Receive(u8),
}

fn any_step() -> impl Strategy<Value = Step> {
    let register = || prop_oneof![9 => 0u8..8, 1 => any::<u8>()];
    prop_oneof![
        register().prop_map(Step::Read),
        (
            register(),
            prop_oneof![any::<u8>(), prop::sample::select(vec![0, 1, 3, 0x10, 0x80, 0x83, 0xc1, 0xff])]
        )
            .prop_map(|(register, value)| Step::Write(register, value)),
        any::<u8>().prop_map(Step::Receive),
    ]
}

/// The PC16550D's registers as storage, and its receiver as a queue.
#[derive(Default)]
struct Model {
    ier: u8,
    lcr: u8,
    mcr: u8,
    scr: u8,
    divisor: [u8; 2],
    fifos: bool,
    queue: VecDeque<u8>,
    overrun: bool,
}

impl Model {
    fn push(&mut self, byte: u8) -> bool {
        let room = self.queue.len() < if self.fifos { 16 } else { 1 };
        if room {
            self.queue.push_back(byte);
        }
        room
    }

    /// Into the receiver. If that is full, the byte is lost, or without FIFOs the one before it.
    fn loop_back(&mut self, byte: u8) {
        if self.push(byte) {
            return;
        }
        self.overrun = true;
        if !self.fifos {
            self.queue[0] = byte;
        }
    }

    /// The byte that leaves the port.
    fn write(&mut self, register: u8, value: u8) -> Option<u8> {
        match (register, self.lcr & 0x80 != 0) {
            (0 | 1, true) => self.divisor[usize::from(register)] = value,
            (0, false) if self.mcr & 0x10 == 0 => return Some(value),
            (0, false) => self.loop_back(value),
            (1, false) => self.ier = value & 0x0f,
            (2, _) => {
                if value & 2 != 0 || self.fifos != (value & 1 != 0) {
                    self.queue.clear();
                }
                self.fifos = value & 1 != 0;
            }
            (3, _) => self.lcr = value,
            (4, _) => self.mcr = value & 0x1f,
            (7, _) => self.scr = value,
            _ => {}
        }
        None
    }

    /// What a load gives, but for the registers whose value depends on interrupts and modem lines.
    fn read(&mut self, register: u8) -> Option<u8> {
        Some(match (register, self.lcr & 0x80 != 0) {
            (0 | 1, true) => self.divisor[usize::from(register)],
            (0, false) => self.queue.pop_front().unwrap_or(0),
            (1, false) => self.ier,
            (3, _) => self.lcr,
            (4, _) => self.mcr,
            (5, _) => {
                0x60 | u8::from(!self.queue.is_empty()) | u8::from(std::mem::take(&mut self.overrun)) << 1
            }
            (7, _) => self.scr,
            (2 | 6, _) => return None,
            _ => 0,
        })
    }
}

proptest! {
    #[test]
    fn the_uart_keeps_what_the_data_sheet_says(steps in prop::collection::vec(any_step(), 1..400)) {
        let mut uart = Uart::new();
        let mut model = Model { divisor: [2, 0], lcr: 3, fifos: true, ..Model::default() };
        for step in steps {
            match step {
                Step::Read(register) => {
                    let line = uart.interrupt();
                    let value = uart.read(register);
                    match model.read(register) {
                        Some(expected) => prop_assert_eq!(value, expected, "register {}", register),
                        None if register == 2 => {
                            prop_assert_eq!(value & 1 == 0, line);
                            prop_assert_eq!(value & 0xf0, if model.fifos { 0xc0 } else { 0 });
                        }
                        None => {}
                    }
                }
                Step::Write(register, value) => {
                    prop_assert_eq!(uart.write(register, value), model.write(register, value), "register {}", register);
                }
                Step::Receive(byte) => {
                    let taken = model.mcr & 0x10 == 0 && model.push(byte);
                    prop_assert_eq!(uart.receive(byte), taken);
                }
            }
            if model.ier == 0 {
                prop_assert!(!uart.interrupt(), "no interrupt is enabled");
            }
            if model.ier & 1 != 0 && !model.queue.is_empty() {
                prop_assert!(uart.interrupt(), "a byte waits");
            }
        }
    }
}
