//! Messages between cores, after AnT: an N x N table of slots, each with one sender and one receiver.
//!
//! # What a message is
//! Each core changes only its own vCPUs. What it wants of another core's vCPU it writes into atomic words
//! of that vCPU (an interrupt to inject, a fence to apply, a core to move to), which travel with the vCPU;
//! then it [posts](Mailboxes::post) "look at item v" to the core that owns the vCPU. Such a message may
//! arrive once or twice, it says the same. So a slot is a *set* of items, a bit for each: it is never full, a
//! sender never waits, and no core can delay another.
//!
//! # When the receiver looks
//! A core looks at its mail when it is in the hypervisor for longer than a short trap, so an IPI is due only
//! if the core is in a guest or asleep, and only for the first message of that absence. For this each receiver has one word, its
//! inbox: a bit per sender that has posted, and the bit `AWAY`.
//!
//! | `AWAY` | sender bits | the receiver | a sender that finds this |
//! |---|---|---|---|
//! | clear | any | Looking: looks before it leaves, or when its timer says so | need not send an IPI |
//! | set | none | Away: does not look by itself | must send an IPI |
//! | set | some | Called: the first of the senders has sent one | need not send an IPI |
//!
//! The usual shape (two words: the sender writes "mail" and reads "away", the receiver writes "away" and
//! reads "mail") is Dekker's pattern: on a weakly ordered machine each side needs a full fence between its
//! write and its read, or both may miss the other. In *one* word both questions are answered by one atomic
//! instruction each (`amoor`, whose result says what was there before), and no fence is needed: the
//! operations on one word have one order that all cores agree on. Either the sender's bit comes first and
//! the receiver does not leave, or `AWAY` comes first and the sender sees it.
//!
//! ```
//! use ainori_mailbox::{Delivery, Mailboxes};
//!
//! let boxes = Mailboxes::<2>::new();
//! assert_eq!(boxes.post(0, 1, 7), Delivery::WillLook, "core 1 is in the hypervisor");
//! boxes.of(1).take(|from, items| assert_eq!((from, items[0]), (0, 1 << 7)));
//!
//! assert!(boxes.of(1).leave(), "no mail: it goes into its guest");
//! assert_eq!(boxes.post(0, 1, 8), Delivery::SendIpi);
//! assert_eq!(boxes.post(0, 1, 9), Delivery::WillLook, "it has been sent an IPI already");
//! assert!(boxes.of(1).enter(), "there is mail");
//! ```
//!
//! # What is left to order
//! - Receivers must see what the sender wrote *before* the message: posting releases (slot, then inbox),
//!   taking acquires (inbox, then slot).
//! - A sender whose slot still holds mail, in the word of its item, returns at once. Its earlier message has set its bit and has not
//!   been taken, so the receiver has yet to look; the `swap` that then empties the word comes after this
//!   `fetch_or` in the order of that word, takes the new item too, and acquires what it released.
//!
//! `loom` tries out every interleaving of two and three cores; `src/model.rs` says which mistakes it finds,
//! and which it can't:
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-mailbox --lib --release`
#![cfg_attr(not(any(test, loom)), no_std)]
#![forbid(unsafe_code)]

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

use ainori_limits::bits::lowest_bit;
use ainori_limits::{MAX_HARTS, VCPU_SLOTS, VCPU_WORDS};
#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// Items are `0..ITEMS`: there is one for each number of a vCPU, and one that is no vCPU's.
pub const ITEMS: u32 = VCPU_SLOTS as u32;

/// A set of items: item `n` is bit `n % 64` of word `n / 64`.
pub type Items = [u64; VCPU_WORDS];

/// At most this many cores.
pub const MAX_CORES: usize = LAST_BIT as usize + 2;
const _: () = assert!(cfg!(loom) || MAX_HARTS <= MAX_CORES);

/// The bit of an inbox that says: this core does not look by itself. The others are the senders'.
const AWAY: u64 = 1 << (LAST_BIT + 1);
/// The last sender's bit. With one sender more than there are bits, the last two share it: the slots of both are looked into then. For loom so few that it
/// tries that, too.
const LAST_BIT: u32 = if cfg!(loom) { 2 } else { u64::BITS - 2 };

/// The slots between `N` cores, which are `0..N`.
///
/// Each method may be called by one core only: the one whose index is `from` or `me`. All are wait-free.
/// Indices of cores are below `N`.
pub struct Mailboxes<const N: usize> {
    /// `slots[to][from]`
    slots: [Slots<N>; N],
    inboxes: [Inbox; N],
}

/// The items that one sender has posted to one receiver. On a cache line of its own: senders don't slow
/// each other.
#[repr(align(64))]
struct Slot([AtomicU64; VCPU_WORDS]);

impl Slot {
    /// The word of an item.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "no remainder is too large")]
    #[allow(clippy::modulo_one, reason = "there is one word in the usual build only")]
    fn word(&self, item: u32) -> &AtomicU64 {
        &self.0[(item / u64::BITS) as usize % VCPU_WORDS]
    }

    /// Takes all items.
    #[inline]
    fn take(&self) -> Items {
        // The words of a slot, 2 instructions each.
        core::array::from_fn(|index| self.0.get(index).map_or(0, |word| word.swap(0, Ordering::Acquire)))
    }
}

/// The slots of one receiver, by sender.
struct Slots<const N: usize>([Slot; N]);

impl<const N: usize> Slots<N> {
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "no remainder is too large")]
    fn of(&self, from: usize) -> &Slot {
        debug_assert!(from < N);
        &self.0[from % N]
    }
}

/// Who has posted to a receiver, and whether it looks (see the crate's documentation).
#[repr(align(64))]
struct Inbox(AtomicU64);

/// What the sender still has to do for its message to be seen.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// Nothing: the receiver will look by itself, or someone has sent an IPI already.
    WillLook,
    /// Send an IPI to the receiver. Order it after the post like any write to a device (`fence w, o`); the
    /// firmware's SBI call does so itself.
    SendIpi,
}

impl<const N: usize> Mailboxes<N> {
    /// Empty slots; every core is looking.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N <= MAX_CORES, "there are more cores than an inbox can tell apart") };
        Self {
            slots: [const { Slots([const { Slot([const { AtomicU64::new(0) }; VCPU_WORDS]) }; N]) }; N],
            inboxes: [const { Inbox(AtomicU64::new(0)) }; N],
        }
    }

    /// As above, but loom's atomics can't be made in a constant.
    #[cfg(loom)]
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| {
                Slots(std::array::from_fn(|_| Slot(std::array::from_fn(|_| AtomicU64::new(0)))))
            }),
            inboxes: std::array::from_fn(|_| Inbox(AtomicU64::new(0))),
        }
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "no remainder is too large")]
    fn slots(&self, to: usize) -> &Slots<N> {
        debug_assert!(to < N);
        &self.slots[to % N]
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "no remainder is too large")]
    fn inbox(&self, of: usize) -> &Inbox {
        debug_assert!(of < N);
        &self.inboxes[of % N]
    }

    /// Core `from` tells core `to` to look at `item` (below [`ITEMS`]).
    ///
    /// All that `from` wrote before is visible to `to` when it visits the item. A core may post to itself.
    #[inline]
    pub fn post(&self, from: usize, to: usize, item: u32) -> Delivery {
        debug_assert!(item < ITEMS, "item {item} has no bit in a slot");
        if self.slots(to).of(from).word(item).fetch_or(1 << (item % u64::BITS), Ordering::Release) != 0 {
            return Delivery::WillLook;
        }
        let bit = if N > LAST_BIT as usize + 1 { from.min(LAST_BIT as usize) } else { from };
        match self.inbox(to).0.fetch_or(1 << bit, Ordering::Release) {
            AWAY => Delivery::SendIpi,
            _ => Delivery::WillLook,
        }
    }

    /// The mailbox of core `me`, for that core alone.
    #[must_use]
    pub fn of(&self, me: usize) -> Mailbox<'_, N> {
        Mailbox { inbox: self.inbox(me), slots: self.slots(me) }
    }
}

/// The mailbox of one core, as that core itself uses it.
#[derive(Clone, Copy)]
pub struct Mailbox<'a, const N: usize> {
    inbox: &'a Inbox,
    slots: &'a Slots<N>,
}

impl<const N: usize> Mailbox<'_, N> {
    /// Is there mail? One load.
    #[inline]
    #[must_use]
    pub fn has_mail(self) -> bool {
        self.inbox.0.load(Ordering::Relaxed) & !AWAY != 0
    }

    /// Takes the mail that is there now and visits each sender: with its number, and the set of the items that it has posted.
    ///
    /// At most `N` visits: what comes in meanwhile waits for the next call. Like [`enter`](Self::enter), it ends an absence.
    #[inline]
    pub fn take(self, visit: impl FnMut(usize, Items)) {
        self.take_and(0, visit);
    }

    /// The same for a core that is away and stays so: in a trap so short that it isn't worth an [`enter`](Self::enter) and a
    /// [`leave`](Self::leave). Who posts from now on sends an IPI.
    #[inline(always)] // Called in one place, on the path of an IPI.
    pub fn take_away(self, visit: impl FnMut(usize, Items)) {
        self.take_and(AWAY, visit);
    }

    #[inline(always)]
    fn take_and(self, away: u64, mut visit: impl FnMut(usize, Items)) {
        let senders = self.inbox.0.swap(away, Ordering::Acquire) & !AWAY;
        // BOUND: the other cores, some 15 instructions each and what the caller does.
        for bit in ones(senders) {
            visit(bit as usize, self.slots.of(bit as usize).take());
            if N > LAST_BIT as usize + 1 && bit == LAST_BIT {
                // Nothing, if it was the other one's.
                visit(N - 1, self.slots.of(N - 1).take());
            }
        }
    }

    /// The core is about to enter a guest or to sleep: from now on, who posts must send an IPI.
    ///
    /// False if there is mail: the core stays, looking, and has to [`take`](Self::take) it first. A core
    /// clears its pending IPI *before* it asks, or it would clear the one that ends this absence.
    #[inline]
    #[must_use]
    pub fn leave(self) -> bool {
        let inbox = &self.inbox.0;
        let mail = inbox.fetch_or(AWAY, Ordering::Relaxed) & !AWAY != 0;
        if mail {
            // A sender that looks between the two finds Called, and relies on the `take` that follows.
            inbox.fetch_and(!AWAY, Ordering::Relaxed);
        }
        !mail
    }

    /// The core is in the hypervisor again and will look before it leaves. Returns whether there is mail
    /// already.
    ///
    /// This only saves IPIs. A trap so short that it isn't worth it may return to its guest without `enter`
    /// and [`leave`](Self::leave): the core has been away all the time, and whoever posted meanwhile has
    /// sent an IPI.
    #[inline]
    pub fn enter(self) -> bool {
        self.inbox.0.fetch_and(!AWAY, Ordering::Relaxed) & !AWAY != 0
    }
}

#[cfg(not(loom))]
impl<const N: usize> Default for Mailboxes<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// The numbers of the bits that are set, lowest first.
fn ones(mut word: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let bit = (word != 0).then(|| lowest_bit(word))?;
        word &= word - 1;
        Some(bit)
    })
}
