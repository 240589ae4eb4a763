//! A virtual advanced PLIC, shared by the vCPUs of one guest without locks: one interrupt domain of supervisor level, which the guest sees as
//! the root and the only one.
//!
//! Source: *The RISC-V Advanced Interrupt Architecture*, version 1.0, chapter 4. Hart indices are the guest's hart ids. Which
//! [`Delivery`] the domain has is up to the guest's description, and `domaincfg.DM` can't be written. Byte order is little-endian only.
//!
//! A source is either wired to a device of the guest, or [relayed](Aplic::add): it stands for a physical interrupt. Of that one the wire isn't seen
//! here. It is told once, held back at the physical controller until it has been served, and told again then. When has it been served?
//!
//! - As soon as it isn't pending any more, if its wire's beginning to ask is what asks: as an edge, or where interrupts are messages, of which a level sends one each time that its
//!   wire goes high (section 4.7). It is told again when the wire does so anew; a level also if the guest asks for the wire (section 4.9.2, `setipnum`), and that is high. As what the
//!   board tells takes its time, a level is sent only if its wire is high still when it has come.
//! - A level that is claimed, when the hart would claim it again: there is no completion, and as its wire is taken to be high until then, the hart is
//!   interrupted for as long as it hasn't. That claim finds the wire low, and if it is high still, the physical controller soon tells. So a handler that
//!   claims until nothing is left has one claim more, and one that claims once has a spurious interrupt, for which all must be prepared (section 4.8.2).
//!
//! A relayed source whose message goes to a file of a hart of the board is *redirected* when it is sent: from then on, the physical controller sends its
//! messages there, and nobody is interrupted to hand them on. It is recalled, and relayed again, as soon as the guest changes anything about it. As one store can recall all of a guest,
//! no more than the first [few](MOST_REDIRECTED) that it was given are redirected.
//!
//! # How it works without locks
//!
//! Each source is one word (`gateway`), and what happens to it is one atomic step. Beside the words is a set of sources that may ask for
//! attention. Whoever makes one ask sets its bit afterwards; whoever finds a bit of one that doesn't ask takes it back, and then looks at the source once more.
//! What decides about all sources (`domaincfg.IE`, thresholds, targets) is written first, then the sources are read; a source is
//! written first, then those are read. Sequentially consistent fences in between make sure that at least one sees the other.
//! `tests/aplic_races.rs` checks this with loom.

use ainori_limits::MAX_GUEST_VCPUS;
use ainori_limits::bits::lowest_bit_out_of_line;

pub use self::gateway::Delivery;
use self::gateway::{Event, Gateway};
pub use self::layout::WINDOW;
use self::layout::{HART_SHIFT, INTERRUPT_ENABLE, PRIORITY, SOURCE_SHIFT};
use self::registers::Register;
pub use self::relayed_to::RelayedTo;
use crate::atomic::{AtomicU32, Ordering, at, fence, zeros};
use crate::imsic::IDENTITIES;

mod gateway;
pub mod layout;
mod registers;
mod relayed_to;

/// Sources are numbered below this; source 0 doesn't exist.
pub use crate::plic::SOURCES;

/// Harts that can be interrupted.
pub const HARTS: usize = if cfg!(loom) { 2 } else { MAX_GUEST_VCPUS };

/// So many sources of a guest may be redirected. To recall all of them takes 420 instructions, in one section with the store that does: 887 together, of 1,250 in the guard.
pub const MOST_REDIRECTED: u32 = 4;

const WORDS: usize = SOURCES / 32;
/// Length of the tables of sources: see [`at`].
const TABLE: usize = SOURCES.next_power_of_two();
/// Each hart, a bit.
const ALL_HARTS: u64 = u64::MAX >> (u64::BITS as usize - HARTS);

/// `domaincfg`: the byte that shows the order of the bytes, and DM for messages (section 4.5.1).
const DOMAINCFG: u32 = 0x80 << 24;
const MSI_MODE: u32 = 1 << 2;

/// `sourcecfg.D`: delegation, in a domain that has no child.
const DELEGATE: u32 = 1 << 10;
const SOURCE_MODE: u32 = 7;

/// `target`, `genmsi`: the hart index in bits 31:18; below it the priority, of which all 8 bits are there, or the identity.
const HART_INDEX: u32 = u32::MAX << HART_SHIFT;

/// A message that is to be [posted](crate::imsic::InterruptFile::post). The hart may not exist: then it is for nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Msi {
    /// By its hart index.
    pub hart: usize,
    /// At most [`IDENTITIES`]; 0 is none.
    pub identity: u32,
}

impl Msi {
    const fn to(target: u32) -> Self {
        Self { hart: (target >> HART_SHIFT) as usize, identity: target & IDENTITIES }
    }
}

/// The word of a source, and its bit there.
const fn place(number: usize) -> (usize, u32) {
    (number / 32, 1 << (number % 32))
}

/// What the controller does to others while it carries out an operation.
pub trait Outside {
    /// Sends a message.
    fn send(&mut self, msi: Msi);
    /// What is done to the physical interrupts that relayed sources stand for.
    fn board(&mut self) -> &mut dyn Board;
}

/// The physical controller behind relayed sources. A closure that is told of those that have been served is one that can't do more. Sets of sources are those of a word: 32 each,
/// a bit each.
pub trait Board {
    /// A source that harts claim has been served, or its guest begins anew: the physical interrupt that it stands for can be completed. If it asks still, it is told of once more; not if it `is_edge`, as the
    /// guest has configured it: then its wire has to begin to ask anew, whatever the wire is by itself.
    fn complete(&mut self, source: u32, is_edge: bool);

    /// The same of sources whose interrupts are messages: they are told of when their wires begin to ask anew.
    fn rearm(&mut self, _word: usize, _sources: u32) {}

    /// The guest asks whether levels ask whose interrupts are messages. Those that do are told of again, or send their messages again if they are redirected.
    fn ask_again(&mut self, _word: usize, _sources: u32) {}

    /// The sources whose wires ask. All of them where that can't be seen.
    fn inputs(&mut self, _word: usize) -> u32 {
        u32::MAX
    }

    /// A source that isn't completed yet is to come straight to where this message goes, from when it is. False if it can't.
    fn redirect(&mut self, _source: u32, _msi: Msi) -> bool {
        false
    }

    /// A source that has been redirected isn't any more. If its wire asks, it is told of once more, as it may have been sent to where it went: also if the guest has it as an
    /// edge, which is sooner told of twice than never.
    fn recall(&mut self, _source: u32) {}

    /// Not the physical controller, but who runs the virtual one: a store to what concerns many sources has left messages to be sent, and how many they are is up to the guest.
    /// [`Aplic::send_next`] sends them: it is to be called soon, and again until none is left.
    fn send_later(&mut self) {}
}

impl<F: FnMut(u32)> Board for F {
    fn complete(&mut self, source: u32, _: bool) {
        self(source);
    }

    fn rearm(&mut self, word: usize, sources: u32) {
        // BOUND: the sources of the set, at most 32.
        (0..32).filter(|bit| sources >> bit & 1 != 0).for_each(|bit| self(word as u32 * 32 + bit));
    }
}

/// A source that a hart can claim.
struct Top {
    number: usize,
    priority: u32,
}

/// A domain. All methods take `&self` and may run on several cores at once. Those that change something return the harts whose [`Self::is_pending`] must
/// be looked at again, a bit each: never one where interrupts are messages.
pub struct Aplic {
    delivery: Delivery,
    /// [`Gateway`]s.
    sources: [AtomicU32; TABLE],
    target: [AtomicU32; TABLE],
    /// The sources that exist, 32 a word.
    exists: [AtomicU32; TABLE / 32],
    /// Those of them that are relayed: all others are served when their wires say so.
    relayed: [AtomicU32; TABLE / 32],
    /// How many of these there are.
    relayed_count: AtomicU32,
    /// Those that may be ready.
    ready: [AtomicU32; TABLE / 32],
    interrupt_enable: AtomicU32,
    genmsi: AtomicU32,
    /// The source whose message was sent last by [`Self::send_next`].
    sent_last: AtomicU32,
    idelivery: [AtomicU32; HARTS],
    iforce: [AtomicU32; HARTS],
    ithreshold: [AtomicU32; HARTS],
}

impl Aplic {
    const_constructor! {
        /// A domain after reset, without any source.
        pub fn new(delivery: Delivery) -> Self {
            Self {
                delivery,
                sources: zeros(),
                target: zeros(),
                exists: zeros(),
                relayed: zeros(),
                relayed_count: AtomicU32::new(0),
                ready: zeros(),
                interrupt_enable: AtomicU32::new(0),
                genmsi: AtomicU32::new(0),
                sent_last: AtomicU32::new(0),
                idelivery: zeros(),
                iforce: zeros(),
                ithreshold: zeros(),
            }
        }
    }

    /// Gives the guest a source, before it runs: a wire of one of its devices, or one that is relayed. Ignored if no source can have that number.
    pub fn add(&self, source: u32, relayed: bool) {
        if !(1..SOURCES as u32).contains(&source) {
            return;
        }
        let state = match relayed {
            false => Gateway::WIRED,
            true if self.relayed_count.fetch_add(1, Ordering::Relaxed) < MOST_REDIRECTED => {
                Gateway::REDIRECTABLE_FROM_BOARD
            }
            true => Gateway::RELAYED_FROM_BOARD,
        };
        let (word, bit) = place(source as usize);
        at(&self.sources, source as usize).store(state.0, Ordering::Relaxed);
        at(&self.relayed, word).fetch_or(if relayed { bit } else { 0 }, Ordering::Relaxed);
        at(&self.exists, word).fetch_or(bit, Ordering::Release);
    }

    /// The wire of `source` goes high or low, or stays so; of a relayed one: the physical interrupt has come. Sources that don't exist are ignored.
    ///
    /// The wire of one source must be driven by one party at a time, and a relayed one only when it has come, and to high.
    pub fn drive(&self, source: u32, high: bool, outside: &mut impl Outside) -> u64 {
        let Some(number) = self.existing(source) else { return 0 };
        let state = self.gateway(number);
        if high && self.delivery == Delivery::Msi && state.relayed() && state.is_level() {
            let (word, bit) = place(number);
            if outside.board().inputs(word) & bit == 0 {
                outside.board().rearm(word, bit);
                return 0;
            }
        }
        self.apply_to(number, Event::Wire(high), outside)
    }

    /// One request of `source`, as if its wire had gone high and low again; a level-sensitive source sees nothing of it. Any number of parties may do this
    /// at once. Sources that don't exist are ignored.
    pub fn pulse(&self, source: u32, outside: &mut impl Outside) -> u64 {
        self.existing(source).map_or(0, |number| self.apply_to(number, Event::SetPending, outside))
    }

    /// Does the controller interrupt this hart? False for harts that don't exist.
    pub fn is_pending(&self, hart: usize) -> bool {
        let is_delivered =
            self.interrupt_enable.load(Ordering::Relaxed) != 0 && self.control(&self.idelivery, hart) != 0;
        is_delivered && (self.control(&self.iforce, hart) != 0 || self.top(hart).is_some())
    }

    /// A guest's load of `width` bytes at `offset` in the window: the value, and the harts to look at again.
    ///
    /// Registers that don't exist and accesses that are not aligned 32-bit ones read as zero.
    pub fn read(&self, offset: u64, width: u8, outside: &mut impl Outside) -> (u32, u64) {
        let Some(register) = self.register(offset, width) else { return (0, 0) };
        let value = match register {
            Register::Domaincfg => {
                let mode = if self.delivery == Delivery::Msi { MSI_MODE } else { 0 };
                DOMAINCFG | mode | self.interrupt_enable.load(Ordering::Relaxed)
            }
            Register::Sourcecfg(source) => self.gateway_of(source).mode(),
            Register::Target(source) => self.existing(source).map_or(0, |number| self.target(number)),
            Register::SetPending(word) => self.bits(word, Gateway::is_pending),
            Register::SetEnable(word) => self.bits(word, Gateway::is_enabled),
            Register::ClearPending(word) => {
                let inputs = self.inputs(word, outside);
                return (inputs, self.complete_all(word, u32::MAX, outside));
            }
            Register::Genmsi => self.genmsi.load(Ordering::Relaxed),
            Register::Idelivery(hart) => self.control(&self.idelivery, hart),
            Register::Iforce(hart) => self.control(&self.iforce, hart),
            Register::Ithreshold(hart) => self.control(&self.ithreshold, hart),
            Register::Topi(hart) => self.top(hart).map_or(0, Top::value),
            Register::Claimi(hart) => return self.claim(hart, outside),
            Register::SetPendingByNumber
            | Register::ClearPendingByNumber
            | Register::SetEnableByNumber
            | Register::ClearEnable(_)
            | Register::ClearEnableByNumber => 0,
        };
        (value, 0)
    }

    /// A guest's store of `value`, `width` bytes wide, at `offset` in the window: the harts to look at again.
    ///
    /// Registers that don't exist and accesses that are not aligned 32-bit ones are ignored.
    pub fn write(&self, offset: u64, width: u8, value: u32, outside: &mut impl Outside) -> u64 {
        let Some(register) = self.register(offset, width) else { return 0 };
        match register {
            Register::Domaincfg => self.enable_domain(value & INTERRUPT_ENABLE, outside),
            Register::Sourcecfg(source) => self.configure(source, value, outside),
            Register::Target(source) => self.set_target(source, value, outside),
            Register::SetPending(word) => self.write_bits(word, value, Event::SetPending, outside),
            Register::SetPendingByNumber => self.write_number(value, Event::SetPending, outside),
            Register::ClearPending(word) => self.write_bits(word, value, Event::ClearPending, outside),
            Register::ClearPendingByNumber => self.write_number(value, Event::ClearPending, outside),
            Register::SetEnable(word) => self.write_bits(word, value, Event::Enable, outside),
            Register::SetEnableByNumber => self.write_number(value, Event::Enable, outside),
            Register::ClearEnable(word) => self.write_bits(word, value, Event::Disable, outside),
            Register::ClearEnableByNumber => self.write_number(value, Event::Disable, outside),
            Register::Genmsi => {
                // It is sent before the store is over, so the bit Busy is never seen.
                let value = value & (HART_INDEX | IDENTITIES);
                self.genmsi.store(value, Ordering::Relaxed);
                outside.send(Msi::to(value));
                0
            }
            Register::Idelivery(hart) => self.set_control(&self.idelivery, hart, value & 1),
            Register::Iforce(hart) => self.set_control(&self.iforce, hart, value & 1),
            Register::Ithreshold(hart) => self.set_control(&self.ithreshold, hart, value & PRIORITY),
            Register::Topi(_) | Register::Claimi(_) => 0,
        }
    }

    /// The register at `offset`, if there is one: harts have some only where they are interrupted directly, and messages are made only where they aren't.
    fn register(&self, offset: u64, width: u8) -> Option<Register> {
        let register = registers::register(offset).filter(|_| width == 4)?;
        let is_direct = self.delivery == Delivery::Direct;
        let exists = match register {
            Register::Genmsi => !is_direct,
            Register::Idelivery(_)
            | Register::Iforce(_)
            | Register::Ithreshold(_)
            | Register::Topi(_)
            | Register::Claimi(_) => is_direct,
            _ => true,
        };
        exists.then_some(register)
    }

    /// Puts a part of it back to reset, from part 0 on; false if that was the last one. Which sources it has stays as it is.
    ///
    /// No hart claims meanwhile; wires may be driven, and keep what they are driven to from then on. What comes of relayed sources is for whoever completes them all
    /// when the guest begins again.
    pub fn reset(&self, part: usize, board: &mut dyn Board) -> bool {
        if part < WORDS {
            self.for_each(part, u32::MAX, |number| {
                at(&self.target, number).store(0, Ordering::Relaxed);
                if let Some((before, _)) = self.update(number, |state| Some(state.reset()))
                    && before.is_redirected()
                {
                    board.recall(number as u32);
                }
            });
            at(&self.ready, part).store(0, Ordering::Relaxed);
            return true;
        }
        self.interrupt_enable.store(0, Ordering::Relaxed);
        self.genmsi.store(0, Ordering::Relaxed);
        self.sent_last.store(0, Ordering::Relaxed);
        // BOUND: 3 registers.
        for words in [&self.idelivery, &self.iforce, &self.ithreshold] {
            // BOUND: the harts, 2 instructions each.
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        fence(Ordering::SeqCst);
        false
    }

    /// The index of a source of the guest.
    fn existing(&self, source: u32) -> Option<usize> {
        let number = source as usize;
        let exists = number < SOURCES
            && at(&self.exists, number / 32).load(Ordering::Acquire) >> (source % 32) & 1 != 0;
        exists.then_some(number)
    }

    /// The sources among 32 that are relayed.
    fn relayed(&self, word: usize) -> u32 {
        at(&self.relayed, word).load(Ordering::Relaxed)
    }

    fn gateway(&self, number: usize) -> Gateway {
        Gateway(at(&self.sources, number).load(Ordering::Acquire))
    }

    fn gateway_of(&self, source: u32) -> Gateway {
        self.existing(source).map_or(Gateway::ABSENT, |number| self.gateway(number))
    }

    /// `target` of a source of the guest.
    fn target(&self, number: usize) -> u32 {
        at(&self.target, number).load(Ordering::Relaxed)
    }

    /// A register of a hart; 0 for harts that don't exist.
    fn control(&self, words: &[AtomicU32; HARTS], hart: usize) -> u32 {
        words.get(hart).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Writes a register of a hart.
    fn set_control(&self, words: &[AtomicU32; HARTS], hart: usize, value: u32) -> u64 {
        let Some(word) = words.get(hart) else { return 0 };
        word.store(value, Ordering::Relaxed);
        self.after_write(1 << hart)
    }

    /// Ends a write to what decides about all sources: it is visible before the caller looks at them.
    fn after_write(&self, harts: u64) -> u64 {
        fence(Ordering::SeqCst); // Against `apply`.
        harts
    }

    /// Does `to` with each source of the guest among 32, of which `mask` has the bits.
    fn for_each(&self, word: usize, mask: u32, mut to: impl FnMut(usize)) {
        let mut left = at(&self.exists, word).load(Ordering::Acquire) & mask;
        // BOUND: the sources that the guest has, at most 32.
        while left != 0 {
            to(word * 32 + lowest_bit_out_of_line(left.into()) as usize);
            left &= left - 1;
        }
    }

    /// The bits of 32 sources.
    fn bits(&self, word: usize, of: impl Fn(Gateway) -> bool) -> u32 {
        self.bits_among(word, u32::MAX, of)
    }

    /// Those of the sources of which `mask` has the bits; 0 of the others.
    fn bits_among(&self, word: usize, mask: u32, of: impl Fn(Gateway) -> bool) -> u32 {
        let mut bits = 0;
        self.for_each(word, mask, |number| bits |= u32::from(of(self.gateway(number))) << (number % 32));
        bits
    }

    /// The "rectified input values" of 32 sources. Where a relayed one is served as soon as its message is sent, only the board knows.
    fn inputs(&self, word: usize, outside: &mut impl Outside) -> u32 {
        let known = self.bits(word, Gateway::rectified);
        if self.delivery == Delivery::Direct || self.relayed(word) == 0 {
            return known;
        }
        let relayed = self.bits_among(word, self.relayed(word), Gateway::has_input);
        known & !relayed | outside.board().inputs(word) & relayed
    }

    /// Changes a source, if `change` says to what. What it was and is, if so.
    fn update(
        &self,
        number: usize,
        change: impl Fn(Gateway) -> Option<Gateway>,
    ) -> Option<(Gateway, Gateway)> {
        let word = at(&self.sources, number);
        let mut before = word.load(Ordering::Acquire);
        // BOUND: one round; each more is a change that another core has made in between.
        loop {
            let after = change(Gateway(before))?;
            // Of a word of sources most are mostly as they are to be: that is quick.
            if after.0 == before {
                return Some((after, after));
            }
            match word.compare_exchange(before, after.0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some((Gateway(before), after)),
                Err(now) => before = now,
            }
        }
    }

    /// Something happens to the sources of the guest among 32, of which `mask` has the bits. For all of them at once, as drivers write whole words and
    /// interrupts are off meanwhile.
    fn apply(&self, word: usize, mask: u32, event: Event, outside: &mut impl Outside) -> u64 {
        let (mut ready, mut changed, mut served) = (0, 0, 0);
        self.for_each(word, mask, |number| {
            let next = |state: Gateway| Some(state.after(event, self.delivery));
            let Some((before, after)) = self.update(number, next) else { return };
            if before.is_redirected() && !after.is_redirected() {
                outside.board().recall(number as u32);
            }
            served |= u32::from(before.is_released_by(after)) << (number % 32);
            ready |= u32::from(after.is_ready()) << (number % 32);
            changed |= u32::from(before.is_ready() != after.is_ready()) << (number % 32);
        });
        if ready != 0 {
            at(&self.ready, word).fetch_or(ready, Ordering::AcqRel);
        }
        self.release(word, served, outside);
        fence(Ordering::SeqCst); // Against `after_write`: the sources before what decides about all.
        let mut harts = 0;
        match self.delivery {
            Delivery::Direct => self.for_each(word, changed, |number| {
                harts |= self.hart(self.target(number));
            }),
            Delivery::Msi if ready != 0 && self.interrupt_enable.load(Ordering::Relaxed) != 0 => {
                // To look at many sources has taken its time.
                if mask & mask.wrapping_sub(1) != 0 {
                    outside.board().send_later();
                } else {
                    // One that has come, and no other, is in the hands of who tells of it.
                    let has_come = matches!(event, Event::Wire(_));
                    self.for_each(word, ready, |number| self.send(number, has_come, outside));
                }
            }
            Delivery::Msi => {}
        }
        harts
    }

    /// Something happens to one source of the guest.
    fn apply_to(&self, number: usize, event: Event, outside: &mut impl Outside) -> u64 {
        let (word, bit) = place(number);
        self.apply(word, bit, event, outside)
    }

    /// As [`Self::apply`], for what a guest writes to the bits of sources, or to a register that takes the number of one.
    fn write_bits(&self, word: usize, mask: u32, event: Event, outside: &mut impl Outside) -> u64 {
        let mut harts = 0;
        if event == Event::SetPending {
            // What this has sent is still to be served.
            harts = self.complete_all(word, mask, outside);
            self.ask_again(word, mask, outside);
        }
        harts | self.apply(word, mask, event, outside)
    }

    fn write_number(&self, source: u32, event: Event, outside: &mut impl Outside) -> u64 {
        let Some((word, bit)) = self.existing(source).map(place) else { return 0 };
        self.write_bits(word, bit, event, outside)
    }

    /// The set with the hart of a `target`.
    fn hart(&self, target: u32) -> u64 {
        ALL_HARTS & 1_u64.checked_shl(target >> HART_SHIFT).unwrap_or(0)
    }

    /// A write to `domaincfg`.
    fn enable_domain(&self, enable: u32, outside: &mut impl Outside) -> u64 {
        self.interrupt_enable.store(enable, Ordering::Relaxed);
        let harts = self.after_write(ALL_HARTS);
        if self.delivery == Delivery::Direct {
            return harts;
        }
        if enable == 0 {
            // BOUND: the relayed sources that the guest has, of which `MOST_REDIRECTED` are recalled.
            (0..WORDS).for_each(|word| {
                self.for_each(word, self.relayed(word), |number| self.recall(number, outside));
            });
        } else if self.send_next(outside) {
            outside.board().send_later();
        }
        0
    }

    /// A write to `sourcecfg`.
    fn configure(&self, source: u32, value: u32, outside: &mut impl Outside) -> u64 {
        let Some(number) = self.existing(source) else { return 0 };
        let mode = if value & DELEGATE == 0 { value & SOURCE_MODE } else { 0 };
        let harts = self.apply_to(number, Event::Configure(mode), outside);
        if !self.gateway(number).is_active() {
            at(&self.target, number).store(0, Ordering::Relaxed);
        }
        // What had come before may have been sent to who knew it as something else.
        let (word, bit) = place(number);
        self.ask_again(word, bit, outside);
        harts
    }

    /// A write to `target`.
    fn set_target(&self, source: u32, value: u32, outside: &mut impl Outside) -> u64 {
        let Some(number) = self.existing(source).filter(|&number| self.gateway(number).is_active()) else {
            return 0;
        };
        let target = value & HART_INDEX
            | match self.delivery {
                Delivery::Direct => (value & PRIORITY).max(1),
                Delivery::Msi => value & IDENTITIES,
            };
        let before = at(&self.target, number).swap(target, Ordering::AcqRel);
        let harts = self.after_write(self.hart(before) | self.hart(target));
        self.recall(number, outside);
        if self.delivery == Delivery::Direct { harts } else { 0 }
    }

    /// Takes a source, if it is ready still: of several cores that try, one does. What it was, and the sources of its word that have been [served](Self::release) by that.
    fn take(&self, number: usize) -> Option<(Gateway, u32)> {
        let take = |state: Gateway| state.is_ready().then(|| state.claimed(self.delivery));
        let (before, after) = self.update(number, take)?;
        Some((before, u32::from(before.is_released_by(after)) << (number % 32)))
    }

    /// Sends the message of one of the sources that ask: they have their turns one after the other, so that none waits for ever for those that are made to ask again and again. Is
    /// another one left? None is where harts are interrupted directly.
    pub fn send_next(&self, outside: &mut impl Outside) -> bool {
        if self.delivery == Delivery::Direct || self.interrupt_enable.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let after = self.sent_last.load(Ordering::Relaxed) as usize + 1;
        let turn = |number: usize| number.wrapping_sub(after) % TABLE;
        let (mut next, mut is_left): (Option<usize>, bool) = (None, false);
        // BOUND: 3 words, and in each the sources that ask, some 40 instructions each.
        for word in 0..WORDS {
            let ready = at(&self.ready, word).load(Ordering::Acquire);
            self.for_each(word, ready, |number| {
                if self.asks(number) {
                    is_left = next.is_some();
                    next = next.filter(|next| turn(*next) < turn(number)).or(Some(number));
                }
            });
        }
        if let Some(number) = next {
            self.sent_last.store(number as u32, Ordering::Relaxed);
            self.send(number, false, outside);
        }
        is_left
    }

    /// Sends the message of a source. `has_come`: that is why it asks; the next ones needn't come here then, if it is relayed.
    fn send(&self, number: usize, has_come: bool, outside: &mut impl Outside) {
        let Some((before, served)) = self.take(number) else { return };
        let msi = Msi::to(self.target(number));
        if has_come && before.is_held() && before.is_to_be_redirected() {
            self.redirect(number, msi, outside);
        }
        self.release(number / 32, served, outside);
        outside.send(msi);
    }

    /// Has the physical controller send a relayed source's next messages to where this one goes, if it can. Only by who tells that it has come: nobody else does
    /// meanwhile.
    fn redirect(&self, number: usize, msi: Msi, outside: &mut impl Outside) {
        if !outside.board().redirect(number as u32, msi) {
            return;
        }
        let redirect = |state: Gateway| Some(state.after(Event::Redirect, self.delivery));
        let is_redirected = self.update(number, redirect).is_some_and(|(_, after)| after.is_redirected());
        // Against `after_write`: whoever changes what decides about this either finds it redirected, or has changed it by now.
        fence(Ordering::SeqCst);
        if !is_redirected {
            outside.board().recall(number as u32);
        } else if Msi::to(self.target(number)) != msi || self.interrupt_enable.load(Ordering::Relaxed) == 0 {
            self.recall(number, outside);
        }
    }

    /// Has a source relayed again, if it is redirected. Of several cores that try, one does.
    fn recall(&self, number: usize, outside: &mut impl Outside) {
        let recall =
            |state: Gateway| state.is_redirected().then(|| state.after(Event::Recall, self.delivery));
        if self.update(number, recall).is_some() {
            outside.board().recall(number as u32);
        }
    }

    /// A level that is in service has been served. Returns the harts to look at again.
    fn complete(&self, number: usize, outside: &mut impl Outside) -> u64 {
        let complete =
            |state: Gateway| state.is_in_service().then(|| state.after(Event::Complete, self.delivery));
        let Some((before, _)) = self.update(number, complete) else { return 0 };
        outside.board().complete(number as u32, false);
        if before.is_ready() { self.hart(self.target(number)) } else { 0 }
    }

    /// The same for each of the sources among 32, of which `mask` has the bits. None is in service where interrupts are messages.
    fn complete_all(&self, word: usize, mask: u32, outside: &mut impl Outside) -> u64 {
        let mut harts = 0;
        if self.delivery == Delivery::Direct {
            self.for_each(word, mask & self.relayed(word), |number| harts |= self.complete(number, outside));
        }
        harts
    }

    /// The levels among these sources that send messages do so once more if their wires are high, but those that are held: these are told of anyhow.
    fn ask_again(&self, word: usize, mask: u32, outside: &mut impl Outside) {
        let relayed = mask & self.relayed(word);
        if self.delivery == Delivery::Direct || relayed == 0 {
            return;
        }
        let levels = self.bits_among(word, relayed, |source| source.is_level() && !source.is_held());
        if levels != 0 {
            outside.board().ask_again(word, levels);
        }
    }

    /// Lets the physical interrupts come again for which these sources stand, as they were held and aren't any more: they have been told of, once for each time that their wires have begun
    /// to ask.
    fn release(&self, word: usize, served: u32, outside: &mut impl Outside) {
        match self.delivery {
            _ if served == 0 => {}
            Delivery::Msi => outside.board().rearm(word, served),
            Delivery::Direct => {
                self.for_each(word, served, |number| outside.board().complete(number as u32, true));
            }
        }
    }

    /// The source that a hart would claim: the lowest priority number goes first, and among equals the lowest source.
    fn top(&self, hart: usize) -> Option<Top> {
        let threshold = match self.control(&self.ithreshold, hart) {
            0 => PRIORITY + 1,
            threshold => threshold,
        };
        let mut top: Option<Top> = None;
        // BOUND: 3 words, and in each the sources that ask, some 20 instructions each.
        for word in 0..WORDS {
            let ready = at(&self.ready, word).load(Ordering::Acquire);
            self.for_each(word, ready, |number| {
                let target = self.target(number);
                let priority = target & PRIORITY;
                let first = top.as_ref().map_or(threshold, |top| top.priority);
                if (target >> HART_SHIFT) as usize == hart && priority < first && self.asks(number) {
                    top = Some(Top { number, priority });
                }
            });
        }
        top
    }

    /// Is a source ready that is in the set of those that may be? If it isn't, it goes out.
    fn asks(&self, number: usize) -> bool {
        if self.gateway(number).is_ready() {
            return true;
        }
        let (word, bit) = place(number);
        let ready = at(&self.ready, word);
        ready.fetch_and(!bit, Ordering::AcqRel);
        // Whoever made it ready in between may have set the bit before it went. This look is then after that change.
        let asks = self.gateway(number).is_ready();
        if asks {
            ready.fetch_or(bit, Ordering::AcqRel);
        }
        asks
    }

    /// A read of `claimi`.
    fn claim(&self, hart: usize, outside: &mut impl Outside) -> (u32, u64) {
        // BOUND: one or two rounds mostly; each more is a source that the hart has served, or one that another vCPU has won. Zero is a correct
        // answer then: the interrupt stays on.
        for _ in 0..HARTS {
            let Some(top) = self.top(hart) else { break };
            if self.gateway(top.number).is_in_service() {
                self.complete(top.number, outside);
            } else if let Some((_, served)) = self.take(top.number) {
                self.release(top.number / 32, served, outside);
                return (top.value(), 1 << hart);
            }
        }
        if let Some(force) = self.iforce.get(hart) {
            force.store(0, Ordering::Relaxed);
        }
        (0, self.after_write(1 << hart))
    }
}

impl Top {
    /// As `topi` and `claimi` tell it.
    const fn value(self) -> u32 {
        (self.number as u32) << SOURCE_SHIFT | self.priority
    }
}
