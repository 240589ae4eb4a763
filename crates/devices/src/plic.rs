//! A virtual platform-level interrupt controller, shared by the vCPUs of one guest without locks.
//!
//! Source: *RISC-V Platform-Level Interrupt Controller Specification*, version 1.0.0. Sources are level-triggered.
//! Contexts are numbered as on QEMU's `virt`, which programs rely on: vCPU *n* of the guest has the machine context 2*n* and the
//! supervisor context 2*n* + 1 ([`supervisor_context`]). All have their registers; as a guest has no machine mode, nobody is interrupted
//! through a machine context. Priorities and thresholds have three bits, as there.
//!
//! # How it works without locks
//!
//! Three bit maps hold the gateways: `level` (the device's line), `pending` (a request waits in the PLIC core) and
//! `claimed` (a handler has it, no new request may be forwarded). A source asks for attention when it is pending and
//! not claimed. Each operation is a short, fixed series of atomic read-modify-writes:
//!
//! - **claim** first takes the `claimed` bit, which only one vCPU can win, then the `pending` bit. If the second is gone
//!   (another vCPU claimed *and* completed in between), it gives the first back as a completion does. A line that rises
//!   and falls again within this short moment makes no request, like one that does so while a handler runs.
//! - **raise** sets `level`; if the source is not claimed, it sets `pending`.
//! - **completion** clears `claimed`; if `level` is still set, it sets `pending`.
//!
//! Raise and completion each write one word and then read the other's. Sequentially consistent fences between write
//! and read make sure that at least one of them sees the other, so no request is lost; both may, which is harmless since
//! the bit is set twice. In the same way `raise` and a write to an enable register can't miss one another.
//! `tests/plic_races.rs` checks this with loom.

use ainori_limits::bits::lowest_bit;
use ainori_limits::{IRQ_SOURCES, PLIC_CONTEXTS, PLIC_PRIORITY};

use self::layout::{CLAIM_COMPLETE, CONTEXT, CONTEXT_SIZE, ENABLE, ENABLE_SIZE, PENDING};
use crate::atomic::{AtomicU32, AtomicU64, Ordering, at, fence, no_harts, zeros};

/// Interrupt sources, the non-existent source 0 included. Few where loom tries out every order.
pub const SOURCES: usize = if cfg!(loom) { 32 } else { IRQ_SOURCES };

/// Length of the tables of sources: see [`at`].
const TABLE: usize = SOURCES.next_power_of_two();

/// Contexts: two for each vCPU of one guest.
pub const MAX_CONTEXTS: usize = if cfg!(loom) { 4 } else { PLIC_CONTEXTS };

/// The modes of a hart that have a context each: machine mode, then supervisor mode. No guest has machine mode, so nobody is interrupted through its
/// contexts; programs that number them as on `virt` find them all the same.
const MODES: usize = 2;

/// The index of supervisor mode among them.
const SUPERVISOR: usize = 1;

// A word with a bit for each hart: of those that listen to a source in one mode, and of those that an operation concerns.
const _: () = assert!(MAX_CONTEXTS <= MODES * u64::BITS as usize);

/// The context through which a vCPU (its hart id in the guest) is interrupted.
pub const fn supervisor_context(vcpu: usize) -> usize {
    MODES * vcpu + SUPERVISOR
}

const WORDS: usize = SOURCES / 32;
/// Writable bits of priorities and thresholds.
const PRIORITY_MASK: u32 = PLIC_PRIORITY;

/// Where the registers are in the window, in bytes (specification, "Memory Map"). At the start are the sources' priorities, 4 bytes each.
pub mod layout {
    /// The pending bits, 32 sources a word.
    pub const PENDING: u64 = 0x1000;
    /// The enable bits of the first context, 32 sources a word.
    pub const ENABLE: u64 = 0x2000;
    /// Bytes from the enable bits of one context to those of the next.
    pub const ENABLE_SIZE: u64 = 0x80;
    /// The threshold of the first context.
    pub const CONTEXT: u64 = 0x20_0000;
    /// Bytes from the threshold of one context to that of the next.
    pub const CONTEXT_SIZE: u64 = 0x1000;
    /// The register by which a context claims and completes, behind its threshold.
    pub const CLAIM_COMPLETE: u64 = 4;
}

/// The registers of sources.
enum SourceRegister {
    Priority { source: usize },
    Pending { word: usize },
    Enable { context: usize, word: usize },
}

/// The registers of a context by which it is interrupted.
enum ContextRegister {
    Threshold,
    ClaimComplete,
}

/// What is at `offset`, if anything is: a register of a context, or one of sources.
#[inline(always)]
fn register(offset: u64) -> Result<(usize, ContextRegister), Option<SourceRegister>> {
    if offset & 3 != 0 {
        return Err(None);
    }
    // First, as guests want it with every interrupt.
    if offset >= CONTEXT {
        let context = (offset - CONTEXT) / CONTEXT_SIZE;
        if context >= MAX_CONTEXTS as u64 {
            return Err(None);
        }
        return match offset % CONTEXT_SIZE {
            0 => Ok((context as usize, ContextRegister::Threshold)),
            CLAIM_COMPLETE => Ok((context as usize, ContextRegister::ClaimComplete)),
            _ => Err(None),
        };
    }
    Err(source_register(offset))
}

/// The register of sources at `offset`, if there is one.
#[inline(always)]
fn source_register(offset: u64) -> Option<SourceRegister> {
    // Below 2^19, so the index fits on every target.
    let index = (offset / 4) as usize;
    let (register, exists) = match offset {
        0..PENDING => (SourceRegister::Priority { source: index }, (1..SOURCES).contains(&index)),
        PENDING..ENABLE => {
            let word = index - PENDING as usize / 4;
            (SourceRegister::Pending { word }, word < WORDS)
        }
        _ => {
            const WORDS_OF_CONTEXT: usize = ENABLE_SIZE as usize / 4;
            let index = index - ENABLE as usize / 4;
            let (context, word) = (index / WORDS_OF_CONTEXT, index % WORDS_OF_CONTEXT);
            (SourceRegister::Enable { context, word }, context < MAX_CONTEXTS && word < WORDS)
        }
    };
    exists.then_some(register)
}

/// A context as a place in the sets of those that listen.
#[derive(Clone, Copy)]
struct Context {
    mode: usize,
    bit: u64,
}

impl Context {
    /// Of a number below [`MAX_CONTEXTS`].
    #[inline(always)]
    const fn new(number: usize) -> Self {
        Self { mode: number % MODES, bit: 1 << (number / MODES) }
    }

    /// The harts that an interrupt through it concerns.
    #[inline(always)]
    const fn harts(self) -> u64 {
        if self.mode == SUPERVISOR { self.bit } else { 0 }
    }
}

/// A source as a place in the bit maps.
#[derive(Clone, Copy)]
struct Source {
    number: usize,
    word: usize,
    bit: u32,
}

impl Source {
    /// `None` for source 0 and for sources that don't exist.
    fn new(number: u32) -> Option<Self> {
        let number = number as usize;
        (1..SOURCES).contains(&number).then_some(Self { number, word: number / 32, bit: 1 << (number % 32) })
    }
}

/// What an operation may have changed outside of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    /// The harts whose external interrupts ([`Plic::external_pending`]) must be looked at again.
    pub harts: u64,
    /// A source whose handler has completed. Where it stands for a physical interrupt, that one can be completed now.
    pub completed: Option<u32>,
}

impl Effects {
    /// Nothing changed.
    pub const NONE: Self = Self { harts: 0, completed: None };

    const fn on(harts: u64) -> Self {
        Self { harts, completed: None }
    }
}

/// A virtual PLIC. All methods take `&self` and may run on several cores at once.
pub struct Plic {
    /// The devices' lines, 32 sources a word.
    level: [AtomicU32; TABLE / 32],
    /// Requests in the PLIC core. A bit counts only while the source is not claimed.
    pending: [AtomicU32; TABLE / 32],
    /// Sources in service.
    claimed: [AtomicU32; TABLE / 32],
    /// The harts that enable a source, by mode and source. Transposed against the registers, so that raising a source, which is
    /// frequent, reads one word; writing an enable register, which is rare, touches up to 32.
    listeners: [[AtomicU64; TABLE]; MODES],
    priority: [AtomicU32; TABLE],
    threshold: [AtomicU32; MAX_CONTEXTS],
}

impl Plic {
    const_constructor! {
        /// A PLIC after reset: every line low, every source disabled with priority 0, thresholds 0.
        #[allow(clippy::new_without_default, reason = "statics need a const constructor; one way to build it is enough")]
        pub fn new() -> Self {
            Self {
                level: zeros(),
                pending: zeros(),
                claimed: zeros(),
                listeners: [no_harts(), no_harts()],
                priority: zeros(),
                threshold: zeros(),
            }
        }
    }

    /// Words of 32 sources: [`Self::reset_sources`] takes one at a time.
    pub const SOURCE_WORDS: usize = WORDS;

    /// Puts 32 sources back to reset: low, without a request, disabled, with priority 0. Sources that don't exist are ignored.
    ///
    /// Nobody claims or completes meanwhile; lines may be driven, and keep what they are driven to from then on.
    pub fn reset_sources(&self, word: usize) {
        if word >= WORDS {
            return;
        }
        // BOUND: 32, some 5 instructions each.
        for number in word * 32..(word + 1) * 32 {
            // BOUND: 2 modes.
            self.listeners.iter().for_each(|listeners| at(listeners, number).store(0, Ordering::Relaxed));
            at(&self.priority, number).store(0, Ordering::Relaxed);
        }
        // The level last: a line that rises from now on is a new edge, and makes a request.
        at(&self.claimed, word).store(0, Ordering::Relaxed);
        at(&self.pending, word).store(0, Ordering::Relaxed);
        at(&self.level, word).store(0, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Puts the thresholds back to reset.
    pub fn reset_thresholds(&self) {
        // BOUND: the contexts, 2 instructions each.
        self.threshold.iter().for_each(|threshold| threshold.store(0, Ordering::Relaxed));
    }

    /// A guest's load of `width` bytes at `offset` in the window: the value, and what the load changed.
    ///
    /// Only a load of a claim register changes anything. Registers that don't exist and accesses that are not aligned
    /// 32-bit ones (undefined in the specification) read as zero.
    #[inline(always)] // Called in one place; most of what guests want of their controller.
    pub fn read(&self, offset: u64, width: u8) -> (u32, Effects) {
        if width != 4 {
            return (0, Effects::NONE);
        }
        let value = match register(offset) {
            Ok((context, ContextRegister::Threshold)) => at(&self.threshold, context).load(Ordering::Relaxed),
            Ok((context, ContextRegister::ClaimComplete)) => return self.claim(context),
            Err(Some(register)) => self.read_source(register),
            Err(None) => 0,
        };
        (value, Effects::NONE)
    }

    #[inline(never)]
    fn read_source(&self, register: SourceRegister) -> u32 {
        match register {
            SourceRegister::Priority { source } => at(&self.priority, source).load(Ordering::Relaxed),
            SourceRegister::Pending { word } => self.requests(word),
            SourceRegister::Enable { context, word } => self.enabled(context, word),
        }
    }

    /// A guest's store of `value`, `width` bytes wide, at `offset` in the window.
    ///
    /// Registers that don't exist and accesses that are not aligned 32-bit ones are ignored.
    pub fn write(&self, offset: u64, width: u8, value: u32) -> Effects {
        if width != 4 {
            return Effects::NONE;
        }
        match register(offset) {
            Ok((context, ContextRegister::Threshold)) => {
                at(&self.threshold, context).store(value & PRIORITY_MASK, Ordering::Relaxed);
                self.after_write(Context::new(context).harts())
            }
            Ok((context, ContextRegister::ClaimComplete)) => self.complete(context, value),
            Err(Some(SourceRegister::Priority { source })) => {
                at(&self.priority, source).store(value & PRIORITY_MASK, Ordering::Relaxed);
                self.after_write(self.listeners(source))
            }
            Err(Some(SourceRegister::Enable { context, word })) => {
                self.enable(Context::new(context), word, value);
                self.after_write(Context::new(context).harts())
            }
            Err(Some(SourceRegister::Pending { .. }) | None) => Effects::NONE,
        }
    }

    /// The line of `source` goes high (or stays high). Returns the vCPUs to look at again (bit *n*: hart id *n* of the guest).
    ///
    /// Sources that don't exist are ignored. The line of one source must be driven by one party at a time; different
    /// sources and all other operations may run at once.
    pub fn raise(&self, source: u32) -> u64 {
        let Some(source) = Source::new(source) else { return 0 };
        let before = at(&self.level, source.word).fetch_or(source.bit, Ordering::AcqRel);
        if before & source.bit != 0 {
            return 0; // The edge has been forwarded, or its handler's completion will see the level.
        }
        fence(Ordering::SeqCst); // Against `release`: the level before the claim.
        if at(&self.claimed, source.word).load(Ordering::Relaxed) & source.bit != 0 {
            return 0;
        }
        self.forward(source)
    }

    /// One request of `source`, whose gateway is another controller's: it is made even where a handler has not completed the last one yet, and then
    /// counts from its completion on. Returns the vCPUs to look at again. Sources that don't exist are ignored.
    ///
    /// Unlike a line that goes high and low again, it isn't lost if the source is just being claimed.
    pub fn request(&self, source: u32) -> u64 {
        Source::new(source).map_or(0, |source| self.forward(source))
    }

    /// The line of `source` goes low (or stays low). Returns the vCPUs to look at again: none, since a gateway can't
    /// take a request back once it was forwarded.
    ///
    /// Sources that don't exist are ignored.
    pub fn lower(&self, source: u32) -> u64 {
        if let Some(source) = Source::new(source) {
            at(&self.level, source.word).fetch_and(!source.bit, Ordering::AcqRel);
        }
        0
    }

    /// Whether the external interrupt of `context` (SEIP of this vCPU) is on: an enabled source asks for attention with
    /// a priority above the context's threshold. False for contexts that don't exist.
    pub fn external_pending(&self, context: usize) -> bool {
        let Some(threshold) = self.threshold.get(context) else { return false };
        self.best(context, threshold.load(Ordering::Relaxed)).is_some()
    }

    /// Requests of 32 sources that no handler has taken: the pending register.
    fn requests(&self, word: usize) -> u32 {
        // Acquire: a request that is seen must not be masked by a claim that was given back before it was made.
        at(&self.pending, word).load(Ordering::Acquire) & !at(&self.claimed, word).load(Ordering::Acquire)
    }

    /// The harts that enable a source in a mode.
    fn enabled_in(&self, mode: usize, source: usize) -> u64 {
        at(at(&self.listeners, mode), source).load(Ordering::Relaxed)
    }

    /// Those that it may interrupt.
    fn listeners(&self, source: usize) -> u64 {
        self.enabled_in(SUPERVISOR, source)
    }

    /// Does a context enable a source?
    fn listens(&self, context: Context, source: usize) -> bool {
        self.enabled_in(context.mode, source) & context.bit != 0
    }

    /// Ends a write to a configuration register: makes it visible before the caller looks at the pending bits.
    fn after_write(&self, harts: u64) -> Effects {
        fence(Ordering::SeqCst); // Against `forward`: the configuration before the pending bits.
        Effects::on(harts)
    }

    /// Forwards a request to the PLIC core. Returns the vCPUs that may take it.
    fn forward(&self, source: Source) -> u64 {
        at(&self.pending, source.word).fetch_or(source.bit, Ordering::AcqRel);
        fence(Ordering::SeqCst); // Against `after_write` and `release`: the pending bit before their words.
        self.listeners(source.number)
    }

    /// The source that `context` would claim if only priorities above `threshold` counted: the highest priority, and
    /// among equals the lowest number.
    fn best(&self, context: usize, threshold: u32) -> Option<Source> {
        let context = Context::new(context);
        let mut best = None;
        let mut best_priority = threshold;
        // BOUND: 3 words.
        for word in 0..WORDS {
            let mut requests = self.requests(word);
            // BOUND: the sources of the word that make a request, some 15 instructions each: only lines that a device drives can.
            while requests != 0 {
                let number = word * 32 + lowest_bit(requests.into()) as usize;
                let bit = requests & requests.wrapping_neg();
                requests ^= bit;
                let priority = at(&self.priority, number).load(Ordering::Relaxed);
                if priority > best_priority && self.listens(context, number) {
                    best = Some(Source { number, word, bit });
                    best_priority = priority;
                }
            }
        }
        best
    }

    /// Claims the best source of `context`, whatever its threshold; 0 if there is none.
    fn claim(&self, context: usize) -> (u32, Effects) {
        let mut harts = 0;
        // Each round that fails means that another vCPU has got a source, so few rounds do. Should they not, zero is
        // a correct answer too: the external interrupt stays on, and the guest will claim again.
        // BOUND: one round mostly; each more is one that another vCPU has won.
        for _ in 0..MAX_CONTEXTS {
            let Some(source) = self.best(context, 0) else { break };
            let before = at(&self.claimed, source.word).fetch_or(source.bit, Ordering::AcqRel);
            if before & source.bit != 0 {
                continue;
            }
            let before = at(&self.pending, source.word).fetch_and(!source.bit, Ordering::AcqRel);
            if before & source.bit != 0 {
                harts |= self.listeners(source.number);
                return (source.number as u32, Effects::on(harts));
            }
            harts |= self.release(source).unwrap_or(0);
        }
        (0, Effects::on(harts))
    }

    /// A handler of `context` has completed source `number`. Ignored if the context does not enable that source
    /// (specification, "Interrupt Completion") or if no handler had it.
    fn complete(&self, context: usize, number: u32) -> Effects {
        let Some(source) = Source::new(number) else { return Effects::NONE };
        if !self.listens(Context::new(context), source.number) {
            return Effects::NONE;
        }
        match self.release(source) {
            Some(harts) => Effects { harts, completed: Some(number) },
            None => Effects::NONE,
        }
    }

    /// Ends the service of a source and forwards the next request if its line is high. Returns the vCPUs to look at; `None` if no handler had it. Of
    /// several vCPUs that complete one claim at the same time, one has ended it: the board's interrupt must not be completed twice.
    fn release(&self, source: Source) -> Option<u64> {
        let before = at(&self.claimed, source.word).fetch_and(!source.bit, Ordering::AcqRel);
        if before & source.bit == 0 {
            return None;
        }
        fence(Ordering::SeqCst); // Against `raise` and `forward`: the claim before the level and the pending bit.
        if at(&self.level, source.word).load(Ordering::Relaxed) & source.bit != 0 {
            return Some(self.forward(source));
        }
        // A request that was forwarded while the claim still hid it counts from now on.
        Some(if self.requests(source.word) & source.bit != 0 { self.listeners(source.number) } else { 0 })
    }

    /// The enable register `word` of `context`.
    fn enabled(&self, context: usize, word: usize) -> u32 {
        let context = Context::new(context);
        // BOUND: 32, some 7 instructions each.
        (word * 32..(word + 1) * 32)
            .rev()
            .fold(0, |bits, source| bits << 1 | u32::from(self.listens(context, source)))
    }

    /// Writes the enable register `word` of `context`.
    fn enable(&self, context: Context, word: usize, value: u32) {
        let value = if word == 0 { value & !1 } else { value }; // Source 0 doesn't exist.
        let all = at(&self.listeners, context.mode).get(word * 32..(word + 1) * 32).unwrap_or_default();
        // BOUND: 32, some 12 instructions each.
        for (bit, listeners) in all.iter().enumerate() {
            let was = listeners.load(Ordering::Relaxed) & context.bit != 0;
            match (was, value >> bit & 1 != 0) {
                (false, true) => listeners.fetch_or(context.bit, Ordering::AcqRel),
                (true, false) => listeners.fetch_and(!context.bit, Ordering::AcqRel),
                _ => continue,
            };
        }
    }
}
