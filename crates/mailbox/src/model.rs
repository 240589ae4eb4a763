//! Every interleaving of two and three cores, under loom's weak memory.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-mailbox --lib --release`, and with `--features ainori-limits/large`, where a slot is several words.
//!
//! An IPI is a `Notify`: once raised it stays pending until it is taken, and loom lets one wait end without
//! it, as another interrupt would. A core sleeps on nothing else, so a lost wake-up is a deadlock, which
//! loom reports. What stands for a vCPU's words is `Word`: written relaxed before the post and read relaxed
//! after it, so that only the mailbox can order the two.
//!
//! These tests were seen to fail for each of these changes in `lib.rs`:
//! - `leave` in two steps, reading the inbox and then setting `AWAY`: deadlock;
//! - `post` that sets its bit in the inbox before it fills the slot: deadlock;
//! - `take` that clears the inbox after it has emptied the slots: deadlock;
//! - the `Release` or the `Acquire` on a slot made `Relaxed`: the receiver sees a stale word, and waits for
//!   ever;
//! - `post` that sends an IPI whenever it finds `AWAY`: a second one.
//!
//! What loom can't show: it runs read-modify-write operations on different words in program order, so the
//! `Release` and `Acquire` on the *inbox* can be removed unnoticed. RISC-V may exchange two `amoor` that
//! carry no `.rl` or `.aq`, and the receiver would then find the sender's bit and an empty slot.

use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::sync::{Arc, Notify};
use loom::thread;

use super::*;

/// The core that receives; the others send to it.
const RECEIVER: usize = 0;
/// An item in the last word of a slot: with the limits of the large build another word than that of low items.
const LAST: u32 = ITEMS - 1;

/// What one sender asks of the vCPU that is its item: the number of its requests so far.
struct Word(AtomicU32);

struct Machine<const N: usize> {
    boxes: Mailboxes<N>,
    ipi: Notify,
    /// `words[from]`
    words: [Word; N],
}

impl<const N: usize> Machine<N> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            boxes: Mailboxes::new(),
            ipi: Notify::new(),
            words: std::array::from_fn(|_| Word(AtomicU32::new(0))),
        })
    }

    /// One request after the other, each with its message and, if due, its IPI. Returns how many IPIs it sent.
    fn send(&self, from: usize, items: &[u32]) -> usize {
        let mut ipis = 0;
        for (request, &item) in (1..).zip(items) {
            self.words[from].0.store(request, Relaxed);
            if self.boxes.post(from, RECEIVER, item) == Delivery::SendIpi {
                ipis += 1;
                self.ipi.notify();
            }
        }
        ipis
    }

    /// The event loop of a core: look, leave, sleep until an IPI; until it has seen `requests[from]` of
    /// each sender.
    fn receive(&self, requests: [u32; N]) {
        let mut seen = [0; N];
        loop {
            self.boxes.of(RECEIVER).enter();
            self.boxes.of(RECEIVER).take(|from, _| seen[from] = self.words[from].0.load(Relaxed));
            if seen == requests {
                return;
            }
            if self.boxes.of(RECEIVER).leave() {
                self.ipi.wait();
            }
        }
    }
}

/// A core that reads its mail without ending its absence, as in a short trap, each time that it is interrupted. Fails if `take_away` ends the absence,
/// if only for a moment: who posts then sends no IPI.
fn receive_away<const CORES: usize, const N: usize>(senders: [(usize, &'static [u32]); N]) {
    loom::model(move || {
        let machine = Machine::<CORES>::new();
        let me = || machine.boxes.of(RECEIVER);
        assert!(me().leave());
        let threads = senders.map(|(from, items)| {
            let machine = machine.clone();
            thread::spawn(move || machine.send(from, items))
        });
        let mut missing = senders.to_vec();
        while !missing.is_empty() {
            machine.ipi.wait();
            me().take_away(|from, _| {
                let seen = machine.words[from].0.load(Relaxed);
                missing.retain(|(sender, items)| *sender != from || items.len() as u32 != seen);
            });
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn no_wake_up_is_lost_while_a_core_stays_away() {
    receive_away::<2, _>([(1, &[5, LAST])]);
    receive_away::<3, _>([(1, &[5]), (2, &[5])]);
}

/// The last two of as many cores as there can be: one bit says of both that they have sent.
#[test]
fn no_wake_up_is_lost_where_two_cores_share_a_bit() {
    receive_away::<MAX_CORES, _>([(MAX_CORES - 2, &[5]), (MAX_CORES - 1, &[5])]);
}

#[test]
fn no_wake_up_is_lost_between_two_cores() {
    loom::model(|| {
        let machine = Machine::<2>::new();
        let sender = thread::spawn({
            let machine = machine.clone();
            move || machine.send(1, &[5, LAST])
        });
        machine.receive([0, 2]);
        sender.join().unwrap();
    });
}

/// The second message finds the first in its slot, or not; the receiver must see the second request in any
/// case.
#[test]
fn a_repeated_message_is_not_lost() {
    loom::model(|| {
        let machine = Machine::<2>::new();
        let sender = thread::spawn({
            let machine = machine.clone();
            move || machine.send(1, &[5, 5])
        });
        machine.receive([0, 2]);
        sender.join().unwrap();
    });
}

#[test]
fn no_wake_up_is_lost_between_three_cores() {
    loom::model(|| {
        let machine = Machine::<3>::new();
        let senders = [1, 2].map(|from| {
            let machine = machine.clone();
            thread::spawn(move || machine.send(from, &[5]))
        });
        machine.receive([0, 1, 1]);
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

#[test]
fn an_absence_is_ended_by_one_ring() {
    loom::model(|| {
        let machine = Machine::<3>::new();
        assert!(machine.boxes.of(RECEIVER).leave());
        let senders = [1, 2].map(|from| {
            let machine = machine.clone();
            thread::spawn(move || machine.send(from, &[5, LAST]))
        });
        let ipis: usize = senders.map(|sender| sender.join().unwrap()).iter().sum();
        assert_eq!(ipis, 1);
    });
}

/// Two cores that post to each other and then sleep until they are answered.
#[test]
fn two_cores_wake_each_other() {
    loom::model(|| {
        let boxes = Arc::new(Mailboxes::<2>::new());
        let ipis = Arc::new([Notify::new(), Notify::new()]);
        let core = |me: usize| {
            let (boxes, ipis) = (boxes.clone(), ipis.clone());
            move || {
                let you = 1 - me;
                if boxes.post(me, you, 1) == Delivery::SendIpi {
                    ipis[you].notify();
                }
                let mut answered = false;
                while !answered {
                    if boxes.of(me).leave() {
                        ipis[me].wait();
                        boxes.of(me).enter();
                    }
                    boxes.of(me).take(|from, _| answered |= from == you);
                }
            }
        };
        let other = thread::spawn(core(1));
        core(0)();
        other.join().unwrap();
    });
}
