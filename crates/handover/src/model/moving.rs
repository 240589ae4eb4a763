//! A vCPU that moves while others want something of it.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::{Plain, model_with_switches};
use crate::{Berth, RequestWord};

/// What cores share: one vCPU, and the messages "look at it".
struct Machine {
    berth: Berth<Plain>,
    requests: RequestWord,
    /// Per kind of request: what goes with it (an address, a time).
    arguments: [AtomicU32; 2],
    /// Per core: is there a message?
    mail: [AtomicU32; 2],
}

impl Machine {
    /// The vCPU lies, laid down by core 0 for core 0.
    fn new() -> Arc<Self> {
        let machine = Self {
            berth: Berth::new(0),
            requests: RequestWord::new(),
            arguments: [AtomicU32::new(0), AtomicU32::new(0)],
            mail: [AtomicU32::new(0), AtomicU32::new(0)],
        };
        Arc::new(machine)
    }

    fn post(&self, to: u32) {
        self.mail[to as usize].fetch_or(1, Ordering::Release);
    }

    fn ask(&self, kind: usize) {
        self.arguments[kind].store(1, Ordering::Relaxed);
        self.requests.request(1 << kind);
        let owner = self.berth.owner();
        if !self.berth.lies() {
            self.post(owner);
        }
        // Otherwise whoever takes it will see.
    }
}

/// A core, and what it has done.
struct Core {
    id: u32,
    machine: Arc<Machine>,
    vcpu: Option<Box<Plain>>,
    /// The requests that it has taken.
    served: u32,
}

impl Core {
    fn new(id: u32, machine: &Arc<Machine>) -> Self {
        Self { id, machine: machine.clone(), vcpu: None, served: 0 }
    }

    fn with_vcpu(id: u32, machine: &Arc<Machine>) -> Self {
        Self { vcpu: Some(Box::new(Plain::new())), ..Self::new(id, machine) }
    }

    fn lay_down(&mut self) {
        if let Some(vcpu) = self.vcpu.take() {
            vcpu.write();
            self.machine.berth.lay_down(vcpu, self.id);
        }
    }

    fn take(&mut self) {
        if let Some(vcpu) = self.machine.berth.take(self.id) {
            vcpu.write();
            self.vcpu = Some(vcpu);
            self.serve();
        }
    }

    fn serve(&mut self) {
        let taken = self.machine.requests.take();
        assert_eq!(self.served & taken, 0, "served twice");
        for (kind, argument) in self.machine.arguments.iter().enumerate() {
            if taken >> kind & 1 != 0 {
                assert_eq!(argument.load(Ordering::Relaxed), 1, "a request without its argument");
            }
        }
        self.served |= taken;
    }

    fn read_mail(&mut self) {
        if self.machine.mail[self.id as usize].swap(0, Ordering::Acquire) != 0 {
            self.look_at_vcpu();
        }
    }

    fn look_at_vcpu(&mut self) {
        let berth = &self.machine.berth;
        let owner = berth.owner();
        if self.vcpu.is_some() {
            self.serve();
        } else if berth.lies() {
            self.take();
        } else if owner != self.id {
            self.machine.post(owner);
        }
        // Otherwise somebody is just about to have it, and looks himself.
    }
}

/// The cores go on until no message is left. Then all kinds of request in `asked` must have been served, each once; if
/// the vCPU lies, by whoever takes it next.
fn all_served(mut cores: [Core; 2], asked: u32) {
    let machine = cores[0].machine.clone();
    while machine.mail.iter().any(|mail| mail.load(Ordering::Acquire) != 0) {
        cores.iter_mut().for_each(Core::read_mail);
    }
    cores[0].take();
    let [first, second] = cores.map(|core| core.served);
    assert_eq!(first & second, 0, "served twice");
    assert_eq!(first | second, asked, "lost");
}

/// Core 0 lays its vCPU down and takes it back, core 1 takes it in between, or neither does.
fn ask_while_moving(askers: &[usize]) {
    let machine = Machine::new();
    let mut home = Core::with_vcpu(0, &machine);
    let asking: Vec<_> = askers
        .iter()
        .map(|&kind| {
            let machine = machine.clone();
            thread::spawn(move || machine.ask(kind))
        })
        .collect();
    let mut other = Core::new(1, &machine);
    let other = thread::spawn(move || {
        other.take();
        other.read_mail();
        other
    });
    home.lay_down();
    home.read_mail();
    home.take();
    let other = other.join().unwrap();
    for asker in asking {
        asker.join().unwrap();
    }
    all_served([home, other], askers.iter().map(|kind| 1 << kind).sum());
}

/// Fails for each of these changes:
/// - no fence in `Berth::take`, or the owner stored after it; no fence in `RequestWord::request`: core 1 misses the request, the
///   asker misses the new owner, and core 0, which it tells, does so too;
/// - the swap in `Berth::lay_down` or `Berth::take` relaxed: the owner that it was laid down for may replace the new one, for ever;
/// - either order of `RequestWord` relaxed: a request without its argument.
#[test]
fn a_request_is_served_once_wherever_the_vcpu_goes() {
    loom::model(|| ask_while_moving(&[0]));
}

#[test]
fn requests_of_two_are_served_once_each() {
    model_with_switches(3, || ask_while_moving(&[0, 1]));
}

/// Fails if `take` reads and then clears instead of swapping: both have it.
#[test]
fn one_of_two_takers_gets_it() {
    loom::model(|| {
        let machine = Machine::new();
        Core::with_vcpu(0, &machine).lay_down();
        let takers = [0, 1].map(|id| {
            let mut core = Core::new(id, &machine);
            thread::spawn(move || {
                core.take();
                core
            })
        });
        let takers = takers.map(|taker| taker.join().unwrap());
        let has = takers.each_ref().map(|core| core.vcpu.is_some());
        assert!(has[0] != has[1], "who has it: {has:?}");
        assert_eq!(machine.berth.owner(), u32::from(has[1]));
        assert!(!machine.berth.lies());
    });
}

/// Fails if `lay_down` has neither its order nor its fence (loom lets nobody in between the two).
#[test]
fn the_taker_sees_all_that_the_former_owner_did() {
    loom::model(|| {
        let machine = Machine::new();
        let mut home = Core::with_vcpu(0, &machine);
        let mut other = Core::new(1, &machine);
        let other = thread::spawn(move || {
            other.take();
            other.lay_down();
        });
        home.lay_down();
        home.take();
        other.join().unwrap();
        home.take();
        assert!(home.vcpu.is_some());
    });
}
