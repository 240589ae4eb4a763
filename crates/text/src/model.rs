//! Every interleaving of two harts of a guest, under loom's weak memory.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-text --lib --release`
use ainori_limits::PAGE;
use ainori_space::GuestPhysical;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use loom::thread;

use crate::{Advice, BREAKPOINT, Code, Progress, Text};

const START: u64 = 0x8000_0000;
/// In the second half of the table of instructions that are replaced: so all steps are taken to put it back.
const AT: GuestPhysical = GuestPhysical(START + 0x50);
/// CSRRCI a0, sstatus, 2.
const PRIVILEGED: u32 = 0x1001_7573;
const ORIGINAL: u16 = PRIVILEGED as u16;
/// The harts' numbers.
const FIRST: u8 = 0;
const SECOND: u8 = 1;
/// More steps than a page of one instruction takes, if nobody else has the lock.
const STEPS: usize = 7;

/// An instruction, with the orders by which the kernel reads and changes it.
struct Memory([AtomicU16; 2]);

impl Code for Memory {
    fn load(&self, at: GuestPhysical) -> Option<u16> {
        Some(self.0.get((at.0 - AT.0) as usize / 2)?.load(Ordering::Relaxed))
    }

    fn store(&self, at: GuestPhysical, half: u16) {
        self.0[(at.0 - AT.0) as usize / 2].store(half, Ordering::Release);
    }
}

/// One guest with two harts, and a fence that the first asks of the second.
struct Guest {
    text: Text,
    memory: Memory,
    is_asked: AtomicBool,
    is_answered: AtomicBool,
}

impl Guest {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            text: Text::new(START, PAGE, true),
            memory: Memory([PRIVILEGED, PRIVILEGED >> 16].map(|half| AtomicU16::new(half as u16))),
            is_asked: AtomicBool::new(false),
            is_answered: AtomicBool::new(false),
        })
    }

    /// With a breakpoint that all harts know to be possible.
    fn with_breakpoint() -> Arc<Self> {
        let guest = Self::new();
        guest.note_until_forgotten(FIRST);
        assert_eq!(guest.note(FIRST), Advice::Nothing);
        assert_eq!(guest.half(), BREAKPOINT);
        guest
    }

    fn note(&self, hart: u8) -> Advice {
        self.text.note(AT, PRIVILEGED, hart, &self.memory)
    }

    /// The page is emptied by the first trap; by the second one, all harts are to forget what they had.
    fn note_until_forgotten(&self, hart: u8) {
        assert_eq!(self.note(hart), Advice::Nothing);
        assert_eq!(self.note(hart), Advice::Forget);
    }

    fn give_up(&self, hart: u8) -> Progress {
        self.text.give_up(AT, hart, &self.memory)
    }

    fn half(&self) -> u16 {
        self.memory.load(AT).unwrap()
    }

    /// The same, by an access that loom puts before and behind each store of the other hart. (Of loads it tries what they may return, but not all orders with a store that its hart makes behind
    /// a load of its own, as [`Text::note`] does.)
    fn half_now(&self) -> u16 {
        self.memory.0[0].fetch_or(0, Ordering::Relaxed)
    }

    /// The first hart has the second one forget. True if that has by now: in some orders it has, and who waits until then comes to nothing else.
    fn is_forgotten(&self) -> bool {
        self.is_asked.store(true, Ordering::Release);
        self.is_answered.load(Ordering::Acquire)
    }

    /// Before the second hart is entered, it does what it was asked for. True if it was.
    fn answers(&self) -> bool {
        let is_asked = self.is_asked.swap(false, Ordering::AcqRel);
        if is_asked {
            self.is_answered.store(true, Ordering::Release);
        }
        is_asked
    }
}

/// Who can load from a page, as it was data when it was filled in, finds what the guest has there: what it has in its tables is forgotten before the first breakpoint is there.
///
/// Fails if a page that was emptied is filled in as one of data still.
#[test]
fn who_may_load_finds_no_breakpoint() {
    loom::model(|| {
        let guest = Guest::new();
        let second = thread::spawn({
            let guest = guest.clone();
            move || {
                for _ in 0..2 {
                    // It faults, and the page is filled in as it is.
                    let mut may_load = !guest.text.is_text(AT);
                    if guest.answers() {
                        may_load = false;
                    }
                    if may_load {
                        assert_eq!(guest.half_now(), ORIGINAL);
                    }
                }
            }
        });
        guest.note_until_forgotten(FIRST);
        if guest.is_forgotten() {
            assert_eq!(guest.note(FIRST), Advice::Nothing);
            assert_eq!(guest.half(), BREAKPOINT);
        }
        second.join().unwrap();
    });
}

/// Who fetches a breakpoint finds what it stands for, or finds that it is gone: nobody takes it for one of the guest's own. And one of the guest's own that is stored there afterwards is nobody
/// else's.
///
/// Fails if a page is data as soon as all is put back, rather than when all have forgotten that.
#[test]
fn a_breakpoint_is_known_or_gone() {
    loom::model(|| {
        let guest = Guest::with_breakpoint();
        let is_stored = Arc::new(AtomicBool::new(false));
        let second = thread::spawn({
            let (guest, is_stored) = (guest.clone(), is_stored.clone());
            move || {
                let (mut is_known, mut is_new) = (false, false);
                for _ in 0..2 {
                    if guest.answers() {
                        (is_known, is_new) = (false, true);
                    }
                    let is_own = is_stored.load(Ordering::Acquire);
                    if guest.half() != BREAKPOINT {
                        continue;
                    }
                    if is_known {
                        assert!(!is_own, "the guest's own would be taken for another instruction");
                        continue;
                    }
                    let found = guest.text.instruction(AT);
                    if is_new {
                        assert_eq!(found, None, "it is the guest's own");
                    } else if found.is_some() {
                        assert_eq!(found, Some(PRIVILEGED));
                        is_known = true;
                    } else {
                        assert_ne!(guest.half(), BREAKPOINT, "it would be taken for the guest's own");
                    }
                }
            }
        });
        for _ in 0..STEPS {
            match guest.give_up(FIRST) {
                Progress::Step => {}
                Progress::Forget if guest.is_forgotten() => {}
                Progress::Forget => break,
                Progress::Done => {
                    assert_eq!(guest.half(), ORIGINAL);
                    guest.memory.store(AT, BREAKPOINT);
                    is_stored.store(true, Ordering::Release);
                    break;
                }
            }
        }
        second.join().unwrap();
    });
}

/// Two harts want the same page at the same time: whoever has it finds what the guest has there, and goes on having it.
///
/// Fails if a page is data while instructions are put back.
#[test]
fn who_has_a_page_back_has_all_of_it() {
    loom::model(|| {
        let guest = Guest::with_breakpoint();
        let wants = |guest: &Guest, hart: u8| {
            // Whoever waits for the other one's steps can do so longer than this; then it comes to nothing.
            for _ in 0..STEPS {
                if guest.give_up(hart) == Progress::Done {
                    assert_eq!(guest.half(), ORIGINAL);
                    return true;
                }
            }
            false
        };
        let second = thread::spawn({
            let guest = guest.clone();
            move || wants(&guest, SECOND)
        });
        let first = wants(&guest, FIRST);
        let second = second.join().unwrap();
        if first || second {
            assert_eq!((guest.text.is_text(AT), guest.half()), (false, ORIGINAL));
        }
    });
}

/// A hart has all breakpoints taken away, for good, while another one is about to put one there.
///
/// Fails if who puts one there looks before it has the lock whether there are any.
#[test]
fn none_is_put_where_all_are_taken_away() {
    none_is_put(false);
    none_is_put(true);
}

/// `is_emptied`: the page is about to become text; else nothing has trapped there.
fn none_is_put(is_emptied: bool) {
    // They are many steps: in each of these orders a hart is interrupted by the other one twice at most.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let guest = Guest::new();
        if is_emptied {
            guest.note_until_forgotten(SECOND);
        }
        let second = thread::spawn({
            let guest = guest.clone();
            move || {
                let _ = guest.note(SECOND);
            }
        });
        let is_off = (0..2 * STEPS).any(|_| guest.text.switch_off(FIRST, &guest.memory) == Progress::Done);
        if is_off {
            assert!(guest.text.is_off());
            assert_eq!((guest.text.is_text(AT), guest.half()), (false, ORIGINAL));
        }
        second.join().unwrap();
        assert!(!is_off || !guest.text.is_text(AT) && guest.half() == ORIGINAL);
    });
}
