//! Interleavings of a few cores, under loom's weak memory: all, or where these are too many, those with a few switches.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-lifecycle --lib --release`
//!
//! Each thread is a core with one vCPU of the guest, and follows the rules of the kernel (`kernel/src/cpu/finish.rs`, `restart.rs`). What the
//! vCPUs do with the guest's memory, and what the core does that loads it again, is a [`Plain`], whose unordered accesses loom reports.
//!
//! The tests were seen to fail for each of these changes in `lib.rs`:
//! - `note_rest` with `Relaxed` or with only one of `Acquire` and `Release`: memory is loaded while a vCPU still writes to it;
//! - `note_reset` or the load in `all_reset` made `Relaxed`: a vCPU is started with what its reset has not written yet;
//! - the store in `start` or the load in `is_running` made `Relaxed`: a vCPU runs in memory that is still being loaded;
//! - `stop` with a load and a store in place of the exchange: two reasons count, and twice as many vCPUs are asked to come to rest;
//! - the store of the phase in `note_rest` made `Relaxed`: the core that loads sees the counter from before it was set again;
//! - the counter not set again in `note_rest`, or in `start`: the core that loads never goes on, or a life ends with vCPUs still running.
//!
//! What they can't show is what the `Acquire` in `stop` is for, the words of the limit: here a vCPU looks first whether its guest runs.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicBool;
use loom::thread;

use super::*;

/// Plain memory. The accesses do nothing but tell loom, which fails if two aren't ordered and one is a write.
struct Plain(UnsafeCell<()>);

// SAFETY: its contents are never reached, so there is nothing to race for.
#[allow(unsafe_code)]
unsafe impl Sync for Plain {}

impl Plain {
    fn new() -> Self {
        Self(UnsafeCell::new(()))
    }

    fn write(&self) {
        self.0.with_mut(|_| ());
    }
}

const CORES: usize = 2;

/// What cores share: of each vCPU, what it is asked for, its part of the guest's memory, and its registers.
struct Machine {
    guest: Lifecycle,
    stop: [AtomicBool; CORES],
    reset: [AtomicBool; CORES],
    pages: [Plain; CORES],
    registers: [Plain; CORES],
}

impl Machine {
    fn new(restart: Restart, vcpus: usize) -> Arc<Self> {
        let rules = Rules { restart, limit: 1, interval: 100 };
        Arc::new(Self {
            guest: Lifecycle::new(vcpus as u32, rules),
            stop: std::array::from_fn(|_| AtomicBool::new(false)),
            reset: std::array::from_fn(|_| AtomicBool::new(false)),
            pages: std::array::from_fn(|_| Plain::new()),
            registers: std::array::from_fn(|_| Plain::new()),
        })
    }

    fn ask(words: &[AtomicBool; CORES]) {
        words.iter().for_each(|word| word.store(true, Ordering::Release));
    }

    fn until(condition: impl Fn() -> bool) {
        while !condition() {
            thread::yield_now();
        }
    }

    /// A life of the vCPU that this core has: it runs, fails, and comes to rest. True if its reason to stop the guest was the first. A vCPU
    /// whose guest has been stopped already doesn't run.
    fn live(&self, me: usize) -> (bool, Option<Next>) {
        let mut first = false;
        if self.guest.is_running() {
            self.registers[me].write();
            self.pages[me].write();
            first = self.guest.stop(Cause::Failure, 1).is_some();
        }
        if first {
            Self::ask(&self.stop);
        }
        Self::until(|| self.stop[me].load(Ordering::Acquire));
        self.stop[me].store(false, Ordering::Relaxed);
        (first, self.guest.note_rest())
    }

    /// The vCPU is put back, if its guest is restarted.
    fn be_reset(&self, me: usize, last: Option<Next>) {
        if last == Some(Next::Restart) {
            Self::ask(&self.reset);
        }
        Self::until(|| self.reset[me].load(Ordering::Acquire));
        self.registers[me].write();
        let _ = self.guest.note_reset();
    }

    /// One core loads the guest again, and starts it.
    fn load(&self) {
        Self::until(|| self.guest.all_reset());
        self.pages.iter().for_each(Plain::write);
        self.registers.iter().for_each(Plain::write);
        assert_eq!(self.guest.start(), 2);
    }
}

fn model(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(test);
}

/// Two vCPUs fail at once, the guest is loaded again by the core of one of them, and both fail again: then it is given up.
#[test]
fn nothing_of_a_life_reaches_the_next() {
    model(|| {
        let machine = Machine::new(Restart::OnFailure, CORES);
        let other = thread::spawn({
            let machine = machine.clone();
            move || {
                let (first, last) = machine.live(1);
                machine.be_reset(1, last);
                Machine::until(|| machine.guest.life() == 2);
                (first, machine.live(1))
            }
        });
        let (first, last) = machine.live(0);
        machine.be_reset(0, last);
        machine.load();
        let (first_again, end) = machine.live(0);
        let (others_first, (others_first_again, others_end)) = other.join().unwrap();
        assert!(first ^ others_first, "one reason counts");
        assert!(first_again ^ others_first_again, "in the next life as well");
        assert_eq!([end, others_end].iter().filter(|end| **end == Some(Next::End)).count(), 1);
        assert!(!machine.guest.is_running());
    });
}

/// The same without another life: the last vCPU at rest ends the guest, once, after all that any of them did.
#[test]
fn one_vcpu_is_the_last() {
    model(|| {
        let machine = Machine::new(Restart::Never, CORES);
        let live = |me: usize| {
            let machine = machine.clone();
            move || {
                let (_, last) = machine.live(me);
                if last.is_some() {
                    assert_eq!(last, Some(Next::End));
                    machine.pages.iter().for_each(Plain::write);
                }
                last.is_some()
            }
        };
        let other = thread::spawn(live(1));
        let mine = live(0)();
        assert!(mine ^ other.join().unwrap());
    });
}

/// The core that loads looks whether it can begin, all the time.
#[test]
fn nobody_loads_too_early() {
    model(|| {
        let machine = Machine::new(Restart::OnFailure, 1);
        let other = thread::spawn({
            let machine = machine.clone();
            move || {
                let (_, last) = machine.live(1);
                machine.be_reset(1, last);
            }
        });
        machine.load();
        other.join().unwrap();
    });
}

/// Two harts stop themselves at once: at least one of them is told that all have, as nobody else would end the guest. (Seen to fail without the fence
/// in `stop_among`.)
#[test]
fn of_two_harts_that_stop_at_once_one_sees_both() {
    model(|| {
        let harts = Arc::new([Hart::new(), Hart::new()]);
        harts.iter().for_each(Hart::note_start);
        let other = thread::spawn({
            let harts = harts.clone();
            move || harts[1].stop_among(harts.iter())
        });
        let mine = harts[0].stop_among(harts.iter());
        assert!(other.join().unwrap() || mine);
    });
}

/// Two harts ask for the start of a third: one of them gets it, and the core that is asked finds what that one has said. (Seen to fail with a load and a
/// store in place of the exchange.)
#[test]
fn of_two_that_start_a_hart_one_does() {
    model(|| {
        let shared = Arc::new((Hart::new(), AtomicBool::new(false)));
        let ask = |number: u64| {
            let shared = shared.clone();
            move || {
                let (hart, asked) = &*shared;
                let is_mine = hart.ask_start(number, 10 * number);
                if is_mine {
                    asked.store(true, Ordering::Release);
                }
                is_mine
            }
        };
        let other = thread::spawn(ask(2));
        let mine = ask(1)();
        let (hart, asked) = &*shared;
        Machine::until(|| asked.load(Ordering::Acquire));
        let number = if mine { 1 } else { 2 };
        assert_eq!((hart.state(), hart.start_arguments()), (HartState::StartPending, (number, 10 * number)));
        assert!(mine ^ other.join().unwrap());
    });
}
