//! A vCPU that moves while others want something of it. The rules are the hypervisor's own ([`tell`], [`look_at`]); what a core is here
//! does only what they need.

use ainori_sched::{VcpuId, VcpuSet};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::{Plain, model_with_switches};
use crate::{Core, Fences, ParkingSlot, RequestWord, Requests, interrupt_running, look_at, tell};

/// The only vCPU.
const VCPU: VcpuId = VcpuId(0);
/// A core that wants something of it while core 0 parks it.
const ASKER: u32 = 2;

/// What cores share: one vCPU, and the messages "look at it".
struct Machine {
    parking: ParkingSlot<Plain>,
    requests: RequestWord,
    fences: Fences,
    /// What goes with a request, by its bit (an address, a time).
    arguments: [AtomicU32; Requests::all().bits().count_ones() as usize],
    /// Per core: is there a message?
    mail: [AtomicU32; 4],
}

impl Machine {
    /// The vCPU is parked by core 0 for core 0.
    fn new() -> Arc<Self> {
        let machine = Self {
            parking: ParkingSlot::new(0),
            requests: RequestWord::new(),
            fences: Fences::new(),
            arguments: std::array::from_fn(|_| AtomicU32::new(0)),
            mail: std::array::from_fn(|_| AtomicU32::new(0)),
        };
        Arc::new(machine)
    }
}

/// A core, and what it has done.
struct TestCore {
    id: u32,
    machine: Arc<Machine>,
    vcpu: Option<Box<Plain>>,
    /// The requests that it has served.
    served: Requests,
    /// A core can be found that suits the vCPU.
    finds_core: bool,
    /// It isn't busy with something more urgent than the vCPU.
    accepts: bool,
    /// The vCPU may run on it.
    may_run: bool,
    /// The others are busy with something more urgent.
    others_refuse: bool,
    /// The policy has a vCPU pulled for an interrupt.
    pulls: bool,
    /// The messages that it has sent.
    posted: u32,
    /// It looks for a core for the vCPU again and again.
    sends_on: bool,
}

impl TestCore {
    fn new(id: u32, machine: &Arc<Machine>) -> Self {
        Self {
            id,
            machine: machine.clone(),
            vcpu: None,
            served: Requests::empty(),
            finds_core: true,
            accepts: true,
            may_run: true,
            others_refuse: false,
            pulls: false,
            posted: 0,
            sends_on: false,
        }
    }

    fn with_vcpu(id: u32, machine: &Arc<Machine>) -> Self {
        Self { vcpu: Some(Box::new(Plain::new())), ..Self::new(id, machine) }
    }

    fn ask(&mut self, what: Requests) {
        self.machine.arguments[what.bits().trailing_zeros() as usize].store(1, Ordering::Relaxed);
        self.machine.requests.request(what.bits());
        tell(self, VCPU);
    }

    fn park(&mut self) {
        self.park_for(self.id);
    }

    /// Parks it, and sends word to its new owner if that is another core, which may have seen already that it is the owner.
    fn park_for(&mut self, owner: u32) {
        let Some(vcpu) = self.vcpu.take() else { return };
        vcpu.write();
        self.machine.parking.park(vcpu, owner);
        if owner != self.id {
            self.post(owner, VCPU);
        }
    }

    fn read_mail(&mut self) {
        if self.machine.mail[self.id as usize].swap(0, Ordering::Acquire) != 0 {
            look_at(self, VCPU);
        }
    }

    /// The same for a core that was just running the vCPU.
    fn read_mail_beside(&mut self) {
        if self.machine.mail[self.id as usize].swap(0, Ordering::Acquire) != 0
            && !interrupt_running(self, VCPU)
        {
            look_at(self, VCPU);
        }
    }
}

impl Core for TestCore {
    type Resident = Plain;

    fn number(&self) -> u32 {
        self.id
    }

    fn parking(&self, _: VcpuId) -> &ParkingSlot<Plain> {
        &self.machine.parking
    }

    fn requests(&self, _: VcpuId) -> &RequestWord {
        &self.machine.requests
    }

    fn fences(&self, _: VcpuId) -> &Fences {
        &self.machine.fences
    }

    fn has(&self, _: VcpuId) -> bool {
        self.vcpu.is_some()
    }

    fn accepts(&self, _: VcpuId, core: u32) -> bool {
        if core == self.id { self.accepts } else { !self.others_refuse }
    }

    fn accepts_here(&self, _: VcpuId) -> bool {
        self.accepts
    }

    fn may_run(&self, _: VcpuId) -> bool {
        self.may_run
    }

    fn wants(&self, _: VcpuId) -> bool {
        true
    }

    fn pulls_for_interrupts(&self) -> bool {
        self.pulls
    }

    fn post(&mut self, to: u32, _: VcpuId) {
        self.posted += 1;
        self.machine.mail[to as usize].fetch_or(1, Ordering::Release);
    }

    fn claim(&mut self, _: VcpuId) -> bool {
        let Some(vcpu) = self.machine.parking.claim(self.id) else { return false };
        vcpu.write();
        self.vcpu = Some(vcpu);
        look_at(self, VCPU);
        true
    }

    fn kick(&mut self, vcpu: VcpuId) -> bool {
        if self.finds_core {
            self.post(0, vcpu);
        }
        self.finds_core
    }

    fn send_on(&mut self, _: VcpuId) {
        self.sends_on = true;
    }

    fn interrupt(&mut self, vcpu: VcpuId, what: Requests) {
        assert!(Requests::SOFTWARE.union(Requests::EXTERNAL).contains(what));
        self.serve(vcpu, what);
    }

    fn serve(&mut self, _: VcpuId, what: Requests) {
        assert!(!self.served.intersects(what), "served twice");
        for bit in what.iter() {
            let argument = &self.machine.arguments[bit.bits().trailing_zeros() as usize];
            assert_eq!(argument.load(Ordering::Relaxed), 1, "a request without its argument");
        }
        self.served |= what;
    }

    fn answer(&mut self, _: VcpuSet) {}
}

/// The cores go on until no message is left. Then all that was `asked` must have been served, each once; if the vCPU is parked, by whoever
/// takes it next.
fn all_served(mut cores: Vec<TestCore>, asked: Requests) {
    let machine = cores[0].machine.clone();
    while machine.mail.iter().any(|mail| mail.load(Ordering::Acquire) != 0) {
        cores.iter_mut().for_each(TestCore::read_mail);
    }
    cores[0].claim(VCPU);
    let mut served = Requests::empty();
    for core in cores {
        assert!(!served.intersects(core.served), "served twice");
        served |= core.served;
    }
    assert_eq!(served, asked, "lost");
}

/// Core 0 parks its vCPU and reclaims it, core 1 claims it in between, or neither does.
fn ask_while_moving(asked: &[Requests]) {
    let machine = Machine::new();
    let mut home = TestCore::with_vcpu(0, &machine);
    let asking: Vec<_> = (2..)
        .zip(asked)
        .map(|(id, &what)| {
            let mut core = TestCore::new(id, &machine);
            thread::spawn(move || {
                core.ask(what);
                core
            })
        })
        .collect();
    let mut other = TestCore::new(1, &machine);
    let other = thread::spawn(move || {
        other.claim(VCPU);
        other.read_mail();
        other
    });
    home.park();
    home.read_mail();
    home.claim(VCPU);
    let mut cores = vec![home, other.join().unwrap()];
    cores.extend(asking.into_iter().map(|asker| asker.join().unwrap()));
    all_served(cores, asked.iter().copied().collect());
}

/// Fails for each of these changes:
/// - no fence in `ParkingSlot::claim`, or the owner stored after it; no fence in `RequestWord::request`: core 1 misses the request, the
///   asker misses the new owner, and core 0, which it tells, does so too;
/// - the swap in `ParkingSlot::park` or `ParkingSlot::claim` relaxed: the owner that it was parked for may replace the new one, for ever;
/// - either order of `RequestWord` relaxed: a request without its argument.
#[test]
fn a_request_is_served_once_wherever_the_vcpu_goes() {
    model_with_switches(4, || ask_while_moving(&[Requests::SOFTWARE]));
}

#[test]
fn requests_of_two_are_served_once_each() {
    model_with_switches(3, || ask_while_moving(&[Requests::SOFTWARE, Requests::EXTERNAL]));
}

/// Fails if `take_if_only` reads and then clears instead of exchanging: a request in between is lost; and if it takes what it can't serve.
#[test]
fn who_runs_is_interrupted_once_and_whatever_else_is_wanted_is_served() {
    for asked in [
        [Requests::SOFTWARE, Requests::EXTERNAL],
        [Requests::SOFTWARE, Requests::STOP],
        [Requests::EXTERNAL, Requests::START],
    ] {
        loom::model(move || {
            let machine = Machine::new();
            let mut home = TestCore::with_vcpu(0, &machine);
            let asking = asked.map(|what| {
                let mut core = TestCore::new(2, &machine);
                thread::spawn(move || core.ask(what))
            });
            home.read_mail_beside();
            for asker in asking {
                asker.join().unwrap();
            }
            home.read_mail_beside();
            assert_eq!(home.served, asked.into_iter().collect(), "lost");
        });
    }
}

/// Core 0 parks its vCPU for `owner`, while core 2 wants something of it, which one of the two must serve although nobody comes for the vCPU.
fn ask_while_parking(what: Requests, owner: u32, asker_accepts: bool, asker_may_run: bool) {
    let machine = Machine::new();
    let mut home = TestCore::with_vcpu(0, &machine);
    let mut asker =
        TestCore { accepts: asker_accepts, may_run: asker_may_run, ..TestCore::new(ASKER, &machine) };
    let asking = thread::spawn(move || {
        asker.ask(what);
        asker
    });
    home.park_for(owner);
    let mut cores = [home, asking.join().unwrap()];
    while machine.mail.iter().any(|mail| mail.load(Ordering::Acquire) != 0) {
        cores.iter_mut().for_each(TestCore::read_mail);
    }
    let [home, asker] = cores.map(|core| core.served);
    assert_eq!(home | asker, what, "lost");
}

/// Unlike an interrupt, a stop and a start are served at once even if the vCPU is parked: by the core that asks, or by one that it kicks.
/// Fails if `serve_parked` leaves either to whoever comes next (then nobody has to come).
#[test]
fn a_stop_and_a_start_are_served_though_the_vcpu_is_parked() {
    for what in [Requests::STOP, Requests::START] {
        loom::model(move || ask_while_parking(what, 0, true, true));
    }
}

/// A vCPU that is parked, for the core that asks as well as for another, is brought to an end by that core though it gets no turn there: somebody more urgent may
/// have that core for ever, or the vCPU must not run there. Fails if that core waits for the vCPU's turn, or for one that suits it.
#[test]
fn a_life_ends_on_a_core_that_would_not_let_the_vcpu_run() {
    let refuses = [(false, true), (true, false), (false, false)];
    for what in [Requests::STOP, Requests::RESET] {
        for owner in [0, ASKER] {
            for (accepts, may_run) in refuses {
                loom::model(move || ask_while_parking(what, owner, accepts, may_run));
            }
        }
    }
}

/// A vCPU that core 0 has parked, and a core that finds none for it.
fn parked_where_no_core_is_free() -> (Arc<Machine>, TestCore) {
    let machine = Machine::new();
    TestCore::with_vcpu(0, &machine).park();
    let asker = TestCore { finds_core: false, ..TestCore::new(2, &machine) };
    (machine, asker)
}

/// While no core is free for a vCPU that is started, who asked looks for one. Fails if the core where it is parked is told past somebody more urgent, for the start
/// or for what else is wanted meanwhile, or if nobody looks.
#[test]
fn a_start_that_finds_no_core_disturbs_nobody() {
    loom::model(|| {
        let (machine, mut asker) = parked_where_no_core_is_free();
        asker.others_refuse = true;
        asker.ask(Requests::START);
        asker.ask(Requests::SOFTWARE);
        asker.ask(Requests::SOFTWARE);
        assert_eq!((asker.posted, asker.sends_on), (0, true));
        all_served(vec![TestCore::new(0, &machine), asker], Requests::START | Requests::SOFTWARE);
    });
}

/// The same for an interrupt, if the policy has vCPUs pulled for that. Fails if nobody looks for a core once none was found.
#[test]
fn an_interrupt_that_finds_no_core_is_looked_for_again() {
    loom::model(|| {
        let (machine, mut asker) = parked_where_no_core_is_free();
        (asker.others_refuse, asker.pulls) = (true, true);
        asker.ask(Requests::SOFTWARE);
        assert_eq!((asker.posted, asker.sends_on), (0, true));
        all_served(vec![TestCore::new(0, &machine), asker], Requests::SOFTWARE);
    });
}

/// Fails if the core where it is parked, which has room for it, isn't told, though another start was just served.
#[test]
fn a_start_where_there_is_room_is_told() {
    loom::model(|| {
        let (machine, mut asker) = parked_where_no_core_is_free();
        let asking = thread::spawn(move || {
            asker.ask(Requests::START);
            asker
        });
        let mut home = TestCore::new(0, &machine);
        home.claim(VCPU);
        home.park();
        let mut asker = asking.join().unwrap();
        home.read_mail();
        home.park();
        // It is served in either order; the next one is told as well.
        assert_eq!(home.served, Requests::START, "lost");
        home.served = Requests::empty();
        asker.ask(Requests::START);
        home.read_mail();
        assert_eq!(home.served, Requests::START, "not told");
    });
}

/// Fails if `take` reads and then clears instead of swapping: both have it.
#[test]
fn one_of_two_takers_gets_it() {
    loom::model(|| {
        let machine = Machine::new();
        TestCore::with_vcpu(0, &machine).park();
        let takers = [0, 1].map(|id| {
            let mut core = TestCore::new(id, &machine);
            thread::spawn(move || {
                core.claim(VCPU);
                core
            })
        });
        let takers = takers.map(|taker| taker.join().unwrap());
        let has = takers.each_ref().map(|core| core.vcpu.is_some());
        assert!(has[0] != has[1], "who has it: {has:?}");
        assert_eq!(machine.parking.owner(), u32::from(has[1]));
        assert!(!machine.parking.is_parked());
    });
}

/// Fails if `park` has neither its order nor its fence (loom lets nobody in between the two).
#[test]
fn the_taker_sees_all_that_the_former_owner_did() {
    loom::model(|| {
        let machine = Machine::new();
        let mut home = TestCore::with_vcpu(0, &machine);
        let mut other = TestCore::new(1, &machine);
        let other = thread::spawn(move || {
            other.claim(VCPU);
            other.park();
        });
        home.park();
        home.claim(VCPU);
        other.join().unwrap();
        home.claim(VCPU);
        assert!(home.vcpu.is_some());
    });
}
