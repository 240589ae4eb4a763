//! A guest with several harts, each of which has a shadow; and what each of them may use.
use ainori_space::Rights;

use super::guest::{self, A, D, Guest, R, U, W, Words, X, second_stage};
use super::hart::{Hart, Pool, Usable};
use crate::*;

/// A hart of the guest.
pub struct Vcpu<V: View> {
    pub shadow: Shadow<'static, Pool, V>,
    pool: Pool,
    /// The board's harts, as far as they have been this vCPU's, and on which one it is.
    harts: [Hart; 2],
    on: usize,
    greatest: Format,
    /// What the hart has been told to walk.
    loaded: Active,
    satp: Satp,
    mode: Mode,
    /// What the hart walks in each view that was looked at since the last other call; and whether it was told so by these alone.
    known: Vec<(V, Active)>,
    is_ahead: bool,
    /// How often its mode changed to a view that wasn't known.
    pub searches: u32,
    /// What it could walk, by moment: what was in memory, and what was in `satp`.
    moments: Vec<(Words, Satp)>,
    /// Its fences, and how many moments there were before each.
    fences: Vec<(usize, Scope)>,
}

pub struct Machine<V: View = Undivided> {
    pub guest: Guest,
    pub features: Features,
    pub vcpus: Vec<Vcpu<V>>,
}

impl<V: View> Machine<V> {
    /// With so many harts, and for each so many address spaces and tables.
    pub fn new(harts: usize, spaces: usize, tables: usize, choices: Choices) -> Self {
        let vcpus = (0..harts).map(|_| Vcpu::new(spaces, tables, choices)).collect();
        let mut machine = Self { guest: Guest::default(), features: choices.features, vcpus };
        machine.moment();
        machine
    }

    /// Something has changed.
    fn moment(&mut self) {
        for vcpu in &mut self.vcpus {
            vcpu.moments.push((self.guest.words.borrow().clone(), vcpu.satp));
        }
    }

    /// Somebody stores to a table.
    pub fn store(&mut self, at: u64, entry: u64) {
        self.guest.words.borrow_mut().insert(at, entry);
        self.moment();
    }

    pub fn activate(&mut self, hart: usize, satp: Satp) {
        let vcpu = &mut self.vcpus[hart];
        vcpu.keep_up();
        let view = V::of(vcpu.mode);
        // As the kernel does: first by what is known.
        let at_once = vcpu.shadow.activate_at_once(satp, view).map(|active| {
            assert_eq!(active, vcpu.shadow.active());
            Due::Nothing
        });
        let known = at_once.or_else(|| vcpu.shadow.activate_known(satp, view)).map(Activation::Done);
        let activation = known.unwrap_or_else(|| vcpu.activate_at_last(satp, view));
        let is_mode = satp.format().is_ok_and(|format| format.is_none_or(|of| of <= vcpu.greatest));
        assert_eq!(activation != Activation::NoMode, is_mode);
        vcpu.do_activation(satp, activation);
        self.moment();
    }

    /// The guest's mode changes, or its SUM or MXR.
    pub fn change_mode(&mut self, hart: usize, mode: Mode) {
        let vcpu = &mut self.vcpus[hart];
        let (before, view) = (V::of(vcpu.mode), V::of(mode));
        if before == view {
            vcpu.mode = mode;
            return;
        }
        if let Some((_, active)) = vcpu.known.iter().find(|(of, _)| *of == view) {
            (vcpu.mode, vcpu.loaded, vcpu.is_ahead) = (mode, *active, true);
            vcpu.pool.hold(active.root, vcpu.shadow.window());
            return;
        }
        let satp = vcpu.satp;
        let activation = match vcpu.shadow.enter_view(view) {
            Some(due) => Activation::Done(due),
            None => {
                vcpu.searches += 1;
                vcpu.keep_up();
                vcpu.activate_at_last(satp, view)
            }
        };
        vcpu.mode = mode;
        vcpu.is_ahead = false;
        vcpu.do_activation(satp, activation);
        vcpu.known.push((view, vcpu.loaded));
    }

    /// It would change if that didn't take several steps, of which the first one is done.
    pub fn begin_change_mode(&mut self, hart: usize, mode: Mode) {
        let vcpu = &mut self.vcpus[hart];
        vcpu.keep_up();
        let (satp, view) = (vcpu.satp, V::of(mode));
        let known = vcpu.shadow.enter_view(view).map(Activation::Done);
        let activation = known.unwrap_or_else(|| vcpu.shadow.activate(satp, view));
        vcpu.do_activation(satp, activation);
        if matches!(activation, Activation::Done(_)) {
            vcpu.mode = mode;
        }
    }

    /// The window is moved, for whatever reason.
    pub fn move_window(&mut self, hart: usize) {
        let vcpu = &mut self.vcpus[hart];
        vcpu.keep_up();
        vcpu.pool.hold(vcpu.loaded.root, None);
        let due = vcpu.shadow.move_window();
        vcpu.do_fence(due);
    }

    pub fn fence(&mut self, hart: usize, scope: Scope) {
        let vcpu = &mut self.vcpus[hart];
        vcpu.keep_abreast();
        // By an instruction, or by a call.
        let is_call = vcpu.fences.len() % 3 == 2;
        let before = vcpu.shadow.up_to_date();
        let due =
            if is_call { vcpu.shadow.fence_at_once(scope) } else { at_last(|| vcpu.shadow.fence(scope)) };
        vcpu.keep_known(before, due);
        vcpu.do_fence(due);
        // What there is now is seen after it.
        vcpu.fences.push((vcpu.moments.len() - 1, scope));
        if let Scope { address: Some(address), asid: None } = scope
            && due == Due::Nothing
        {
            let before = self.guest.words.borrow().clone();
            vcpu.shadow.prefetch(&self.guest, address);
            assert!(before == *self.guest.words.borrow(), "a look ahead has written to the guest's tables");
            // No fence is due, and nothing else has become known.
            vcpu.do_fence(Due::Nothing);
        }
    }

    /// It begins a fence, and does something else before it comes back to it, if ever.
    pub fn begin_fence(&mut self, hart: usize, scope: Scope) {
        let vcpu = &mut self.vcpus[hart];
        vcpu.keep_abreast();
        let before = vcpu.shadow.up_to_date();
        let due = vcpu.shadow.fence(scope).unwrap_or(Due::Nothing);
        vcpu.keep_known(before, due);
        vcpu.do_fence(due);
    }

    /// The first step of an access that faults, which isn't made again.
    pub fn begin_access(&mut self, hart: usize, address: u64, access: Access, mode: Mode) {
        self.change_mode(hart, mode);
        let vcpu = &mut self.vcpus[hart];
        let outcome = vcpu.fault(&self.guest, address, access, mode);
        self.moment();
        if let Outcome::NotYet(due) | Outcome::Again(due) = outcome {
            self.vcpus[hart].do_fence(due);
        }
    }

    /// The first step of a write of `satp`, which isn't made again if it was only that.
    pub fn begin_activate(&mut self, hart: usize, satp: Satp) {
        let vcpu = &mut self.vcpus[hart];
        vcpu.keep_up();
        let activation = vcpu.shadow.activate(satp, V::of(vcpu.mode));
        vcpu.do_activation(satp, activation);
        self.moment();
    }

    /// A fence of which nobody comes back for the rest.
    pub fn fence_once(&mut self, hart: usize, scope: Scope) {
        let vcpu = &mut self.vcpus[hart];
        vcpu.keep_up();
        let due = vcpu.shadow.fence_at_once(scope);
        vcpu.do_fence(due);
        vcpu.fences.push((vcpu.moments.len() - 1, scope));
    }

    /// The vCPU goes to the board's other hart.
    pub fn migrate(&mut self, hart: usize) {
        let vcpu = &mut self.vcpus[hart];
        vcpu.keep_up();
        vcpu.on ^= 1;
        let due = vcpu.shadow.distrust();
        vcpu.do_fence(due);
    }

    /// The vCPU is started anew.
    pub fn restart(&mut self, hart: usize) {
        let vcpu = &mut self.vcpus[hart];
        vcpu.keep_up();
        vcpu.pool.hold(vcpu.loaded.root, None);
        vcpu.shadow.reset();
        vcpu.satp = Satp::BARE;
        vcpu.load();
        let due = vcpu.shadow.distrust();
        vcpu.do_fence(due);
        vcpu.fences.push((vcpu.moments.len(), Scope::ALL));
        self.moment();
    }

    /// An access, until it is made or refused: how often it came to the shadow before it was made, or why it wasn't.
    pub fn access(&mut self, hart: usize, address: u64, access: Access, mode: Mode) -> Result<u32, Outcome> {
        self.change_mode(hart, mode);
        // What it finds at first, what it is after a copy, and once more if the entry was disturbed. One address is in the window once at most.
        let (mut faults, mut pieces, mut moves) = (0, 0, 0);
        while faults < 4 && pieces < MOST_PIECES && moves < 2 {
            let vcpu = &mut self.vcpus[hart];
            let (usable, fresh) = vcpu.walk(address);
            for found in usable {
                vcpu.check(self.features, address, found);
            }
            if fresh.is_some_and(|found| vcpu.hart_allows(found, access)) {
                return Ok(faults);
            }
            let before = guest::walk(&self.guest.words.borrow(), self.features, vcpu.satp, address);
            let outcome = vcpu.fault(&self.guest, address, access, mode);
            self.moment();
            let vcpu = &mut self.vcpus[hart];
            vcpu.agrees(self.features, before, address, access, mode, outcome);
            match outcome {
                Outcome::NotYet(due) => {
                    pieces += 1;
                    vcpu.do_fence(due);
                }
                Outcome::Again(due) => {
                    faults += 1;
                    vcpu.do_fence(due);
                    assert!(
                        !vcpu.keeps_less(address, access),
                        "{address:#x} {access:?}: what is kept faults"
                    );
                }
                Outcome::Window => {
                    moves += 1;
                    self.move_window(hart);
                }
                other => return Err(other),
            }
        }
        panic!("no end: {address:#x} {access:?} {mode:?}");
    }
}

/// Pieces in which tables are cleared for one call, at most: those that it takes, and those that it leaves.
const MOST_PIECES: u32 = 8 * 512 / 16 + 64;

/// What comes when a call has been made as often as it wants to be.
fn at_last<T>(mut call: impl FnMut() -> Option<T>) -> T {
    (0..MOST_PIECES).find_map(|_| call()).expect("it comes to an end")
}

impl<V: View> Vcpu<V> {
    fn new(spaces: usize, tables: usize, choices: Choices) -> Self {
        let pool = Pool::default();
        let states = vec![TableState::NEW; tables].leak();
        let spaces = vec![AddressSpace::UNUSED; spaces].leak();
        let shadow = Shadow::new(choices, pool.clone(), states, spaces).unwrap();
        let (harts, greatest) = (Default::default(), choices.greatest);
        let (moments, fences) = (Vec::new(), Vec::new());
        let loaded = shadow.active();
        let mode = Mode { user: false, sum: false, mxr: false };
        let mut vcpu = Self {
            shadow,
            pool,
            harts,
            on: 0,
            greatest,
            loaded,
            satp: Satp::BARE,
            mode,
            known: Vec::new(),
            is_ahead: false,
            searches: 0,
            moments,
            fences,
        };
        vcpu.load();
        vcpu
    }

    /// A write of `satp`, as often as it wants to be made.
    fn activate_at_last(&mut self, satp: Satp, view: V) -> Activation {
        at_last(|| match self.shadow.activate(satp, view) {
            Activation::NotYet(due) => {
                self.do_fence(due);
                None
            }
            other => Some(other),
        })
    }

    fn fault(&mut self, guest: &Guest, address: u64, access: Access, mode: Mode) -> Outcome {
        self.keep_abreast();
        let before = self.shadow.up_to_date();
        let outcome = self.shadow.fault(guest, Virtual(address), access, mode);
        self.shadow.fill_neighbours(guest);
        let due = match outcome {
            Outcome::NotYet(due) | Outcome::Again(due) => due,
            _ => Due::Nothing,
        };
        self.keep_known(before, due);
        outcome
    }

    /// Behind a fault or a fence, what is known of views holds as long as the same ones are up to date.
    fn keep_known(&mut self, before: UpToDate, due: Due) {
        if due == Due::Root || self.shadow.up_to_date() != before {
            self.known.clear();
        }
    }

    /// Something else than a look, a fault or a fence is about to be called.
    fn keep_up(&mut self) {
        self.known.clear();
        self.keep_abreast();
    }

    /// Something else than a look is about to be called.
    fn keep_abreast(&mut self) {
        if core::mem::take(&mut self.is_ahead) {
            assert_eq!(self.shadow.enter_view(V::of(self.mode)), Some(Due::Nothing));
            assert_eq!(self.shadow.active(), self.loaded);
        }
    }

    /// The hart is told what to walk.
    fn load(&mut self) {
        self.loaded = self.shadow.active();
        self.pool.hold(self.loaded.root, self.shadow.window());
    }

    /// What a write of `satp` has come to.
    fn do_activation(&mut self, satp: Satp, activation: Activation) {
        match activation {
            Activation::NoMode => {}
            Activation::NotYet(due) => self.do_fence(due),
            Activation::Done(due) => {
                self.satp = if satp.format() == Ok(None) { Satp::BARE } else { satp };
                self.load();
                self.do_fence(due);
            }
        }
    }

    fn do_fence(&mut self, due: Due) {
        if due == Due::Root {
            self.load();
        }
        assert_eq!(self.loaded, self.shadow.active(), "the hart walks something else");
        if let Some(window) = self.shadow.window() {
            for (root, format) in self.shadow.roots() {
                assert!(self.pool.has_window(root, format, window), "{root:x?} has not {window:x?}");
            }
        }
        self.shadow.check();
        for table in self.shadow.clean_tables() {
            assert!(self.pool.is_clean(table), "{table} isn't clean");
        }
        assert!(self.pool.holds(self.loaded.root), "{:x?} is no table of the pool", self.loaded);
        self.harts[self.on].fence(&self.pool, self.loaded, due);
    }

    /// Could a hart fault by what it has kept, though what there is now allows the access? After a fault there must be nothing of that left, or it might fault for ever.
    fn keeps_less(&mut self, address: u64, access: Access) -> bool {
        let (hart, active) = (&mut self.harts[self.on], self.loaded);
        let kept = hart.kept_walks(&self.pool, active, address);
        let (_, fresh) = hart.walk(&self.pool, active, address);
        let is_allowed = |found: Option<Usable>| found.is_some_and(|found| self.hart_allows(found, access));
        is_allowed(fresh) && kept.into_iter().any(|found| !is_allowed(found))
    }

    /// Does the hart make such an access of the guest? Without H all of it is in user mode, with its own MXR.
    fn hart_allows(&self, found: Usable, access: Access) -> bool {
        let mode = if V::IS_DIVIDED { Mode { user: true, sum: false, ..self.mode } } else { self.mode };
        guest::allows(found.flags, access, mode)
    }

    /// What the hart may find of a page of the guest in the active view. `None`: nothing.
    fn view_of(&self, flags: u64) -> Option<u64> {
        let is_user = flags & U != 0;
        let view = V::of(self.mode).divided();
        let Some(view) = view.filter(|_| self.satp != Satp::BARE) else { return Some(flags) };
        match view {
            Divided::User => is_user.then_some(flags),
            Divided::Kernel => (!is_user).then_some(flags),
            _ if !is_user => Some(flags),
            Divided::KernelSum => Some(flags & !X),
            Divided::KernelSumMxr if flags & X != 0 => Some((flags | R) & !X),
            Divided::KernelSumMxr => Some(flags),
        }
    }

    /// As [`Hart::walk`].
    pub fn walk(&mut self, address: u64) -> (Vec<Usable>, Option<Usable>) {
        self.harts[self.on].walk(&self.pool, self.loaded, address)
    }

    /// Is what the shadow has done what the specification says?
    fn agrees(
        &self,
        features: Features,
        walked: Result<guest::Leaf, Fault>,
        address: u64,
        access: Access,
        mode: Mode,
        outcome: Outcome,
    ) {
        let fault = match walked {
            Err(fault) => Some(fault),
            Ok(leaf) => {
                let is_bare = self.satp == Satp::BARE;
                let needed = if access == Access::Store { A | D } else { A };
                let is_used = leaf.flags & needed == needed;
                let is_writable = guest::second_stage(leaf.entry_at)
                    .is_some_and(|below| below.attributes.rights.include(Rights::ReadWrite));
                if !is_bare && !guest::allows(leaf.flags, access, mode) || !is_used && !features.updates {
                    Some(Fault::Page)
                } else if !is_used && !is_writable {
                    Some(Fault::Access)
                } else {
                    None
                }
            }
        };
        match (fault, outcome) {
            // A fill that was given up may have tables looked for first.
            (Some(_), Outcome::NotYet(_)) => {}
            (Some(fault), _) => assert_eq!(outcome, Outcome::Fault(fault)),
            (None, Outcome::Again(_) | Outcome::NotYet(_)) => {}
            (None, Outcome::Elsewhere(at)) => {
                assert_eq!(at.0, walked.unwrap().at);
                let is_beyond = self.satp == Satp::BARE && address >> 38 != 0;
                assert!(is_beyond || !self.reaches_memory(walked.unwrap(), access));
            }
            (None, Outcome::Window) => {
                let (slot, levels) = (self.shadow.window().unwrap().slot, self.loaded.format.levels());
                assert_eq!(address >> (3 + 9 * levels) & 511, slot.into());
                assert!(self.satp != Satp::BARE && self.reaches_memory(walked.unwrap(), access));
            }
            (None, Outcome::Fault(_)) => panic!("{outcome:?} at {address:#x}, where nothing faults"),
        }
    }

    /// Is there memory below a leaf that may be accessed so?
    fn reaches_memory(&self, leaf: guest::Leaf, access: Access) -> bool {
        let seen = self.view_of(leaf.flags).unwrap_or(0);
        let needed = match access {
            Access::Store => Rights::ReadWrite,
            Access::Fetch => Rights::Execute,
            Access::Load if seen & R == 0 => Rights::ReadExecute,
            Access::Load => Rights::Read,
        };
        second_stage(leaf.at).is_some_and(|below| below.attributes.rights.include(needed))
    }

    /// Is it something that a walk gave, since the last fence that covers it?
    fn check(&self, features: Features, address: u64, found: Usable) {
        let is_right = |leaf: guest::Leaf| {
            let below = second_stage(leaf.at).filter(|below| below.host.0 == found.host);
            let Some(below) = below else { return false };
            let Some(mut flags) = self.view_of(leaf.flags) else { return false };
            let rights = below.attributes.rights;
            if flags & A == 0 {
                return false;
            }
            for (flag, right) in [(R, Rights::Read), (W, Rights::ReadWrite), (X, Rights::Execute)] {
                flags &= if rights.include(right) { !0 } else { !flag };
            }
            flags &= if flags & D == 0 { !W } else { !0 };
            let of_guest = leaf.entry >> 61 & 3;
            let is_bare = leaf.entry_at == 0;
            let memory_type =
                if is_bare || of_guest == 0 { below.attributes.memory_type as u64 } else { of_guest };
            found.memory_type == memory_type
                && found.flags & !flags & (R | W | X) == 0
                && (V::IS_DIVIDED || is_bare || found.flags & U == flags & U)
        };
        assert!(!V::IS_DIVIDED || found.flags & U != 0, "a page that no mode of the guest can use");
        let is_covered = |moment: usize, satp: Satp, leaf: guest::Leaf| {
            self.fences.iter().any(|(before, scope)| {
                *before > moment
                    && scope.asid.is_none_or(|asid| asid == satp.asid() && !leaf.global)
                    && scope.address.is_none_or(|at| at.0 / leaf.size == address / leaf.size)
            })
        };
        let may = self.moments.iter().enumerate().any(|(moment, (words, satp))| {
            let Ok(leaf) = guest::walk(words, features, *satp, address) else { return false };
            (*satp == self.satp || leaf.global) && is_right(leaf) && !is_covered(moment, *satp, leaf)
        });
        assert!(may, "{address:#x} is {found:x?}, satp {:x?}, fences {:x?}", self.satp, self.fences);
    }
}
