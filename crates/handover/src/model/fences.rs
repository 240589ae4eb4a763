//! Remote fences of a vCPU that comes and goes.
//!
//! A sender changes a translation, has it fenced, and uses the old page for something else. The vCPU has the old translation
//! cached, and must not use it after that. Loom reports it if a use of the page isn't ordered before its reuse.

use ainori_sched::{VcpuId, VcpuSet};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::{Plain, model_with_switches};
use crate::{Answers, Fence, Fences, ParkingSlot, Recorded, RequestWord, Requests, tell};

/// The vCPU that is fenced.
const VCPU: VcpuId = VcpuId(0);

/// What cores share: the vCPU that is fenced, and those that send.
struct Machine {
    fences: Fences,
    parking: ParkingSlot<Core>,
    requests: RequestWord,
    senders: Vec<Sender>,
    /// Is there a message for the vCPU's core?
    mail: AtomicU32,
    /// Senders had best not disturb the vCPU's core.
    hidden: bool,
    /// What is fenced is kept by the hypervisor itself, and told page by page.
    #[cfg(feature = "shadow")]
    by_pages: bool,
}

/// A vCPU that sends a fence for one page.
struct Sender {
    /// Where the page is: the old place (0) or the new one.
    table: AtomicU32,
    old_page: Plain,
    answers: Answers,
    /// "All fences are done".
    done: RequestWord,
}

impl Machine {
    fn new(senders: usize) -> Arc<Self> {
        Self::with(senders, false)
    }

    fn with(senders: usize, hidden: bool) -> Arc<Self> {
        let sender = || Sender {
            table: AtomicU32::new(0),
            old_page: Plain::new(),
            answers: Answers::new(),
            done: RequestWord::new(),
        };
        let machine = Self {
            fences: Fences::new(),
            parking: ParkingSlot::new(0),
            requests: RequestWord::new(),
            senders: (0..senders).map(|_| sender()).collect(),
            mail: AtomicU32::new(0),
            hidden,
            #[cfg(feature = "shadow")]
            by_pages: false,
        };
        Arc::new(machine)
    }

    /// Of its page.
    #[cfg(feature = "shadow")]
    fn fence_of(&self, sender: usize) -> Fence {
        let page = crate::PageFence::new((sender as u64) << 12, 1, None).unwrap();
        if self.by_pages { self.fences.note_pages(page) } else { Fence::TRANSLATIONS }
    }

    #[cfg(not(feature = "shadow"))]
    fn fence_of(&self, _: usize) -> Fence {
        Fence::TRANSLATIONS
    }

    /// What a sender does until it goes on, or waits (false).
    fn send(&self, number: usize) -> bool {
        let sender = &self.senders[number];
        sender.table.store(1, Ordering::Relaxed);
        sender.answers.begin();
        match self.fences.record(self.fence_of(number), VcpuId(number as u8), &sender.answers) {
            Recorded::ForLater => {}
            Recorded::Awaited => {
                self.requests.request(Requests::FENCE.bits());
                tell(&mut Asking { machine: self, number: number as u32 + 2 }, VCPU);
            }
        }
        let done = sender.answers.answer() || sender.done.take() != 0;
        if done {
            sender.old_page.write();
        }
        done
    }

    /// Answers those who wait. The vCPU isn't in its guest. Did anybody?
    fn answer(&self) -> bool {
        let waiting = self.fences.take_waiting();
        self.answer_all(waiting);
        !waiting.is_empty()
    }

    fn answer_all(&self, waiting: VcpuSet) {
        for VcpuId(number) in waiting {
            let sender = &self.senders[usize::from(number)];
            if sender.answers.answer() {
                sender.done.request(1);
            }
        }
    }

    fn read_mail(&self) {
        if self.mail.swap(0, Ordering::Acquire) != 0 {
            let _ = self.answer();
        }
    }
}

/// The core of a sender, by the hypervisor's own rules ([`tell`]).
struct Asking<'a> {
    machine: &'a Machine,
    number: u32,
}

impl crate::Core for Asking<'_> {
    type Resident = Core;

    fn number(&self) -> u32 {
        self.number
    }

    fn parking(&self, _: VcpuId) -> &ParkingSlot<Core> {
        &self.machine.parking
    }

    fn requests(&self, _: VcpuId) -> &RequestWord {
        &self.machine.requests
    }

    fn fences(&self, _: VcpuId) -> &Fences {
        &self.machine.fences
    }

    fn has(&self, _: VcpuId) -> bool {
        false
    }

    fn accepts(&self, _: VcpuId, _: u32) -> bool {
        !self.machine.hidden
    }

    fn accepts_here(&self, _: VcpuId) -> bool {
        !self.machine.hidden
    }

    fn may_run(&self, _: VcpuId) -> bool {
        true
    }

    fn wants(&self, _: VcpuId) -> bool {
        false
    }

    fn pulls_for_interrupts(&self) -> bool {
        false
    }

    fn post(&mut self, _: u32, _: VcpuId) {
        self.machine.mail.fetch_or(1, Ordering::Release);
    }

    fn claim(&mut self, _: VcpuId) -> bool {
        false
    }

    fn kick(&mut self, _: VcpuId) -> bool {
        false
    }

    fn send_on(&mut self, _: VcpuId) {}

    fn interrupt(&mut self, _: VcpuId, _: Requests) {}

    fn serve(&mut self, _: VcpuId, _: Requests) {}

    fn answer(&mut self, waiting: VcpuSet) {
        self.machine.answer_all(waiting);
    }
}

/// The core that the vCPU is on: which translations it has cached, per sender.
struct Core {
    cached: Vec<Option<u32>>,
}

impl Core {
    /// It ran before any of the senders did anything.
    fn new(machine: &Machine) -> Self {
        Self { cached: vec![Some(0); machine.senders.len()] }
    }

    /// The way into the guest, and a use of each page.
    fn enter(&mut self, machine: &Machine) {
        if machine.fences.take().contains(Fence::TRANSLATIONS) {
            self.cached.fill(None);
        }
        #[cfg(feature = "shadow")]
        self.carry_out_own(machine);
        self.go_on(machine);
    }

    /// As `translation::carry_out_own` of the kernel does. Of a page no more than that is forgotten.
    #[cfg(feature = "shadow")]
    fn carry_out_own(&mut self, machine: &Machine) {
        let recorded = machine.fences.take_own();
        let pages = machine.fences.pages();
        if recorded.contains(Fence::OWN) {
            let taken = pages.taken();
            self.cached.fill(None);
            pages.leave_nothing(taken);
        }
        if recorded.contains(Fence::OWN_PAGES) {
            for place in 0..crate::PageFences::PLACES {
                if let Some(page) = pages.get(place) {
                    self.cached[(page.address() >> 12) as usize] = None;
                    pages.leave(place, page.rest());
                }
            }
        }
    }

    /// Back into the guest from a trap that changed nothing, and a use of each page.
    fn go_on(&mut self, machine: &Machine) {
        for (sender, cached) in machine.senders.iter().zip(&mut self.cached) {
            let place = *cached.get_or_insert_with(|| sender.table.load(Ordering::Relaxed));
            if place == 0 {
                sender.old_page.read();
            }
        }
    }

    fn run(&mut self, machine: &Machine) {
        machine.fences.arrive();
        self.enter(machine);
    }
}

/// The vCPU runs, is interrupted, goes on, departs, and runs again.
fn send_while_running(machine: Arc<Machine>) {
    let senders = machine.senders.len();
    let mut core = Core::new(&machine);
    let sending: Vec<_> = (0..senders)
        .map(|number| {
            let machine = machine.clone();
            thread::spawn(move || machine.send(number))
        })
        .collect();
    core.run(&machine);
    machine.read_mail();
    core.enter(&machine);
    machine.fences.depart();
    machine.read_mail();
    core.run(&machine);
    let went_on: Vec<_> = sending.into_iter().map(|sender| sender.join().unwrap()).collect();
    // The messages that are left.
    machine.read_mail();
    core.enter(&machine);
    for (sender, went_on) in machine.senders.iter().zip(went_on) {
        assert!(went_on || sender.done.take() != 0, "a sender waits for ever");
        sender.old_page.write();
    }
    assert!(core.cached.iter().all(|place| *place == Some(1)), "a fence was lost: {:?}", core.cached);
}

/// Fails for each of these changes in `fences.rs`:
/// - no fence in `record` or in `arrive`: the sender finds the vCPU gone, which comes and runs with the old translation;
/// - `record` that looks for the vCPU before it records: the same;
/// - `record` that reads `present` relaxed, or `depart` relaxed: the page is reused while the vCPU's last use of it isn't over;
/// - the `Release` of `record`'s first write, or the `Acquire` of `take`, relaxed: the vCPU carries the fence out, and then caches the
///   old translation once more;
/// - `answer` with less than both orders: the page is reused while the vCPU's last use of it isn't over.
#[test]
fn a_fenced_page_is_not_used_again() {
    loom::model(|| send_while_running(Machine::new(1)));
}

/// In a trap of its own the vCPU's core may look who waits, before it has been told, e.g. as the vCPU has written to its interrupt controller. It
/// goes on at once only if nobody did.
///
/// Fails if it goes on at once all the same (which it did for a while): it uses the page after it has answered, with the old translation.
#[test]
fn who_has_answered_takes_the_fences_before_it_goes_on() {
    loom::model(|| {
        let machine = Machine::new(1);
        let mut core = Core::new(&machine);
        let sender = thread::spawn({
            let machine = machine.clone();
            move || machine.send(0)
        });
        core.run(&machine);
        if machine.answer() {
            core.enter(&machine);
        } else {
            core.go_on(&machine);
        }
        machine.read_mail();
        core.enter(&machine);
        let went_on = sender.join().unwrap();
        machine.read_mail();
        core.enter(&machine);
        assert!(went_on || machine.senders[0].done.take() != 0, "the sender waits for ever");
    });
}

/// The same where each page is told by itself, in one place: who finds none has all fenced.
///
/// Fails if `PageFences::put` is relaxed, or `get` is: the vCPU carries out what it has found before that is recorded, and then makes the old translation once more; and if `leave_nothing` took
/// what wasn't there before all was forgotten.
#[cfg(feature = "shadow")]
#[test]
fn a_page_that_is_fenced_by_itself_is_not_used_again() {
    let machine = |senders: usize| {
        let mut machine = Machine::new(senders);
        Arc::get_mut(&mut machine).unwrap().by_pages = true;
        machine
    };
    loom::model(move || send_while_running(machine(1)));
    model_with_switches(3, move || send_while_running(machine(2)));
    model_with_switches(2, move || send_while_running(machine(3)));
}

/// The vCPU may find both waiting with the message of one. Fails for the same changes.
#[test]
fn two_senders_are_answered() {
    model_with_switches(3, || send_while_running(Machine::new(2)));
}

/// The senders don't tell the vCPU's core if they find the vCPU absent, but answer each other.
///
/// Fails for each of these changes in `take_waiting_if_absent`:
/// - no fence, or `present` read before those who wait are taken: it finds the vCPU gone, which comes and runs with the old translation;
/// - who was taken out isn't put back, or the vCPU's core isn't told once more: one waits for ever;
/// - `present` read relaxed: the page is reused while the vCPU's last use of it isn't over.
#[test]
fn senders_answer_for_an_absent_vcpu() {
    loom::model(|| send_while_running(Machine::with(1, true)));
    model_with_switches(2, || send_while_running(Machine::with(2, true)));
}

/// A vCPU departs and is parked, and another core claims it and runs it: a sender that finds it parked answers itself.
///
/// Fails if `ParkingSlot::is_parked` reads relaxed, or `park` writes so: the page is reused while the vCPU's last use of it isn't over.
///
/// With two senders it fails if one takes those who wait without a look at whether the vCPU is present: it has found it parked before it was claimed, and
/// answers the other one, who has found it running (which it did until a reader saw it).
#[test]
fn a_sender_that_finds_it_parked_goes_on() {
    loom::model(|| send_while_moving(1));
    model_with_switches(3, || send_while_moving(2));
}

fn send_while_moving(senders: usize) {
    let machine = Machine::new(senders);
    let sending: Vec<_> = (0..senders)
        .map(|number| {
            let machine = machine.clone();
            thread::spawn(move || machine.send(number))
        })
        .collect();
    let other = thread::spawn({
        let machine = machine.clone();
        move || {
            let mut core = machine.parking.claim(1)?;
            core.run(&machine);
            Some(core)
        }
    });
    let mut core = Core::new(&machine);
    core.run(&machine);
    machine.fences.depart();
    machine.parking.park(Box::new(core), 0);
    let went_on: Vec<_> = sending.into_iter().map(|sender| sender.join().unwrap()).collect();
    let core = other.join().unwrap().or_else(|| machine.parking.claim(0));
    // The messages that are left.
    machine.read_mail();
    core.expect("somebody has it").enter(&machine);
    for (sender, went_on) in machine.senders.iter().zip(went_on) {
        assert!(went_on || sender.done.take() != 0, "a sender waits for ever");
    }
}

/// The one that waits is woken once, whoever answers last. Fails if `begin` doesn't count the sender itself.
#[test]
fn one_answer_is_the_last() {
    loom::model(|| {
        let answers = Arc::new(Answers::new());
        answers.begin();
        let answering = [0, 1].map(|_| {
            answers.expect_one();
            let answers = answers.clone();
            thread::spawn(move || answers.answer())
        });
        let own = answers.answer();
        let last = answering.map(|thread| thread.join().unwrap());
        assert_eq!([own, last[0], last[1]].iter().filter(|last| **last).count(), 1);
    });
}
