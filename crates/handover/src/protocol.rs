//! Who tells whom: the rules by which cores ask something of a vCPU that may be anywhere, and may be on its way.
//!
//! They are written over what a core can do ([`Core`]), so that the code that runs in the hypervisor is the code that `loom` tries in every
//! order (`src/model/moving.rs`, `src/model/fences.rs`).
use ainori_sched::{VcpuId, VcpuSet};
use bitflags::bitflags;

use crate::{Fences, ParkingSlot, RequestWord};

bitflags! {
    /// What the owner of a vCPU is asked to do with it: the bits of its [`RequestWord`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Requests: u32 {
        /// Raise its software interrupt.
        const SOFTWARE = 1 << 0;
        /// Look at its interrupt controller again.
        const EXTERNAL = 1 << 1;
        /// Start it at its start address.
        const START = 1 << 2;
        /// Bring it to rest: its guest has stopped.
        const STOP = 1 << 3;
        /// All fences that it asked for are done.
        const FENCED = 1 << 4;
        /// Somebody may be waiting for the fences that are recorded for it: carry them out, and tell those who wait.
        const FENCE = 1 << 5;
        /// Its home core has room for it again.
        const HOME = 1 << 6;
        /// Another core would run it now.
        const WANTED = 1 << 7;
        /// Put it back to its reset state, and forget whatever else is wanted of it: its guest is started again.
        const RESET = 1 << 8;
        /// Send a message of its guest's interrupt controller: a store of its own has left some to be sent.
        const SEND = 1 << 9;
    }
}

impl Requests {
    /// Is a life of the vCPU to end? That needs no turn: whoever looks ends it, though others keep the vCPU from running there, who may never go, or it must
    /// not run there.
    #[inline]
    #[must_use]
    pub fn end_a_life(self) -> bool {
        self.intersects(Self::STOP.union(Self::RESET))
    }
}

/// What the rules need of a core. vCPUs are named by their numbers, cores too.
pub trait Core {
    /// The part of a vCPU that only its owner touches.
    type Resident: Send;

    /// The core's own number.
    fn number(&self) -> u32;
    /// A vCPU's parking.
    fn parking(&self, vcpu: VcpuId) -> &ParkingSlot<Self::Resident>;
    /// What is wanted of a vCPU.
    fn requests(&self, vcpu: VcpuId) -> &RequestWord;
    /// The remote fences of a vCPU.
    fn fences(&self, vcpu: VcpuId) -> &Fences;
    /// Does the vCPU live here?
    fn has(&self, vcpu: VcpuId) -> bool;
    /// Would the vCPU get its turns on `core`, as things look now? If not, that core is best not disturbed for it.
    fn accepts(&self, vcpu: VcpuId, core: u32) -> bool;
    /// The same of this core, when it looks at what has been asked of it already: that others are to spare it for a while doesn't matter then.
    fn accepts_here(&self, vcpu: VcpuId) -> bool;
    /// May the vCPU run on this core, as things are now?
    fn may_run(&self, vcpu: VcpuId) -> bool;
    /// Should this core, which has been told of a parked vCPU that may run here, claim it?
    fn wants(&self, vcpu: VcpuId) -> bool;
    /// Does the policy have a vCPU pulled because something is wanted of it?
    fn pulls_for_interrupts(&self) -> bool;

    /// Sends "look at this vCPU" to another core.
    fn post(&mut self, to: u32, vcpu: VcpuId);
    /// [Claims](ParkingSlot::claim) a parked vCPU, and serves what is wanted of it, or does so later. False if it isn't parked any more.
    fn claim(&mut self, vcpu: VcpuId) -> bool;
    /// Kicks a core that suits a parked vCPU to claim it. False if there is none at this moment.
    fn kick(&mut self, vcpu: VcpuId) -> bool;
    /// Has a parked vCPU, which gets no turn where it is, pushed elsewhere behind the present event, if the policy wants that or it is to be started; if no core has room
    /// for it, this one tries again and again.
    fn send_on(&mut self, vcpu: VcpuId);
    /// Raises the interrupts that are asked for of the vCPU that runs here, which was in its guest until now.
    fn interrupt(&mut self, vcpu: VcpuId, what: Requests);
    /// Does what is wanted of a vCPU that lives here. Others are asked [behind](Self::answer) that, and not told in it: who is told may ask back, and send away the vCPU that is being
    /// served.
    fn serve(&mut self, vcpu: VcpuId, what: Requests);
    /// Tells vCPUs that a fence, which they wait for, is as good as done ([`Answers::answer`](crate::Answers::answer)).
    fn answer(&mut self, waiting: VcpuSet);
}

/// Tells the owner of a vCPU, of which the caller has [requested](RequestWord::request) something; itself if that is this core.
pub fn tell<C: Core>(core: &mut C, vcpu: VcpuId) {
    let what = Requests::from_bits_truncate(core.requests(vcpu).wanted());
    let owner = core.parking(vcpu).owner();
    if owner == core.number() {
        look_at(core, vcpu);
    } else if core.parking(vcpu).is_parked() {
        serve_parked(core, vcpu, what);
    } else {
        tell_other(core, vcpu, owner, what);
    }
}

/// Tells another core, which has the vCPU, unless that is busy with something more urgent: then it will look when it has done with that.
fn tell_other<C: Core>(core: &mut C, vcpu: VcpuId, owner: u32, what: Requests) {
    if core.accepts(vcpu, owner) || what.contains(Requests::FENCE) && !answer_for_absent(core, vcpu) {
        core.post(owner, vcpu);
    }
}

/// Something is wanted of a parked vCPU. Whoever claims it will see what; the question is only whether it is claimed now.
fn serve_parked<C: Core>(core: &mut C, vcpu: VcpuId, what: Requests) {
    if what.contains(Requests::FENCE) {
        answer_for_parked(core, vcpu);
    }
    if what.end_a_life() {
        core.claim(vcpu);
    } else {
        let starts = what.contains(Requests::START);
        let is_to_come =
            starts || !what.difference(Requests::FENCE).is_empty() && core.pulls_for_interrupts();
        if is_to_come && !core.kick(vcpu) {
            // The core where it is parked takes it when it has room for it: that isn't told past somebody more urgent. Until then this one looks for
            // another.
            let owner = core.parking(vcpu).owner();
            if !core.accepts(vcpu, owner) {
                core.send_on(vcpu);
            } else if starts {
                core.post(owner, vcpu);
            }
        }
    }
}

/// The core that has a vCPU is busy with something more urgent, and best not disturbed. If the vCPU doesn't run at this moment, anybody
/// can answer those who wait for its fences. False if it may be running still.
fn answer_for_absent<C: Core>(core: &mut C, vcpu: VcpuId) -> bool {
    match core.fences(vcpu).take_waiting_if_absent() {
        Some(waiting) => core.answer(waiting),
        None => {
            // Its owner may have looked for those who wait just while they were taken out.
            core.requests(vcpu).request(Requests::FENCE.bits());
            return false;
        }
    }
    true
}

/// The same for one that was found parked. By now somebody else may have claimed it, and run it: who waits is answered by that core.
fn answer_for_parked<C: Core>(core: &mut C, vcpu: VcpuId) {
    if !answer_for_absent(core, vcpu) {
        core.post(core.parking(vcpu).owner(), vcpu);
    }
}

/// Is something [wanted](Requests::end_a_life) that needs no turn?
fn is_to_end<C: Core>(core: &C, vcpu: VcpuId) -> bool {
    Requests::from_bits_truncate(core.requests(vcpu).wanted()).end_a_life()
}

/// Does what is wanted of a vCPU that lives here, unless this core is busy with something more urgent. If the vCPU is parked, this core has
/// been kicked to claim it; if it has moved, its new owner is told.
pub fn look_at<C: Core>(core: &mut C, vcpu: VcpuId) {
    let (lives_here, parked) = (core.has(vcpu), core.parking(vcpu).is_parked());
    if !lives_here && !parked {
        let owner = core.parking(vcpu).owner();
        if owner != core.number() {
            // The asker's fence came before its message, so this core may keep as quiet as the asker could have.
            let what = Requests::from_bits_truncate(core.requests(vcpu).wanted());
            tell_other(core, vcpu, owner, what);
        }
        // Otherwise somebody is just about to have it, and looks himself.
    } else if !(core.accepts_here(vcpu) && (lives_here || core.may_run(vcpu)) || is_to_end(core, vcpu)) {
        // Not now, or not here; but who waits for it is answered.
        if lives_here {
            answer_fences(core, vcpu);
        } else {
            answer_for_parked(core, vcpu);
            core.send_on(vcpu);
        }
    } else if parked {
        answer_for_parked(core, vcpu);
        if is_to_end(core, vcpu) || core.wants(vcpu) {
            core.claim(vcpu);
        }
    } else {
        let what = Requests::from_bits_truncate(core.requests(vcpu).take());
        if what.contains(Requests::FENCE) {
            answer_fences(core, vcpu);
        }
        core.serve(vcpu, what);
    }
}

/// Something is wanted of the vCPU that runs on this core, which was in its guest until now: mostly an interrupt and nothing else. That is raised.
/// False if it is something else; then the vCPU is still to be [looked at](look_at).
#[inline(always)] // Of its two callers one is on the path of an IPI.
pub fn interrupt_running<C: Core>(core: &mut C, vcpu: VcpuId) -> bool {
    let interrupts = Requests::SOFTWARE.union(Requests::EXTERNAL);
    let Some(what) = core.requests(vcpu).take_if_only(interrupts.bits()) else { return false };
    core.interrupt(vcpu, Requests::from_bits_truncate(what));
    true
}

/// Answers those who wait for fences of a vCPU that lives here, and so doesn't run at this moment, which is all that they need to know: what is
/// recorded is carried out before it does.
fn answer_fences<C: Core>(core: &mut C, vcpu: VcpuId) {
    let waiting = core.fences(vcpu).take_waiting();
    if !waiting.is_empty() {
        core.answer(waiting);
    }
}
