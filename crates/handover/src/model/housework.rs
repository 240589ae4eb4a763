//! Work for a core that mustn't always be told.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use crate::{PublishedHousework, PublishedThreshold};

/// The level up to which the housekeeping core may be told.
const LOW: u8 = 1;
/// The level of what hides it.
const HIGH: u8 = 2;
const KIND: u32 = 1;

/// The housekeeping core's threshold, what it is asked, and the messages to it.
struct Machine {
    threshold: PublishedThreshold,
    housework: PublishedHousework,
    mail: AtomicU32,
    /// Pieces of work that are there: written before the core is asked.
    pieces: [AtomicU32; 2],
}

impl Machine {
    fn new(level: u8) -> Arc<Self> {
        Arc::new(Self {
            threshold: PublishedThreshold::new(level),
            housework: PublishedHousework::new(),
            mail: AtomicU32::new(0),
            pieces: [AtomicU32::new(0), AtomicU32::new(0)],
        })
    }

    /// `Cpu::ask_housekeeper`.
    fn ask(&self, who: usize) {
        self.pieces[who].store(1, Ordering::Relaxed);
        if self.housework.ask(KIND) && self.threshold.level() <= LOW {
            self.mail.fetch_or(1, Ordering::Release);
        }
    }

    /// `Cpu::keep_house`. Notes which pieces it has seen.
    fn keep_house(&self, seen: &mut [bool; 2]) {
        if self.housework.asked() & KIND != 0 {
            self.housework.take(KIND);
            for (piece, seen) in self.pieces.iter().zip(seen) {
                *seen |= piece.load(Ordering::Relaxed) != 0;
            }
        }
    }
}

/// Two ask, one of whom may find that the other has asked already. Whatever the core has not found when it lowered its threshold, it is told of.
///
/// Fails without the fence in `PublishedThreshold::lower` or the one in `ask`; if `ask` is relaxed or `take` is; and if the core takes
/// the bit after it has looked.
#[test]
fn no_work_is_forgotten() {
    loom::model(|| {
        let machine = Machine::new(HIGH);
        let askers = [0, 1].map(|who| {
            let machine = machine.clone();
            thread::spawn(move || machine.ask(who))
        });
        machine.threshold.lower(LOW);
        let mut seen = [false; 2];
        machine.keep_house(&mut seen);
        for asker in askers {
            asker.join().unwrap();
        }
        if machine.mail.load(Ordering::Acquire) != 0 {
            machine.keep_house(&mut seen);
        }
        assert_eq!(seen, [true; 2], "forgotten");
    });
}
