//! A vCPU's shadow.
mod fault_around;
mod fences;
mod insert;
mod reclaim;
mod views;
mod window;

use views::Searched;
pub use views::UpToDate;

use fault_around::FilledIn;
use insert::fill;

use ainori_space::{GuestPhysical, HostPhysical};

use crate::deferred::DeferredFences;
use crate::entry::Features;
use crate::fence::{Due, Scope};
use crate::format::{Format, shift};
use crate::global::Global;
use crate::numbered::Numbered;
use crate::pool::{Pool, Reclaim, TableState};
use crate::set::{self, Set};
use crate::space::AddressSpace;
use crate::tree::Tree;
use crate::view::{self, MOST_VIEWS, Undivided, View};
use crate::walk::{Access, Fault, Mode, Stop, walk};
use crate::window::{Opening, Window};
use crate::{Memory, Satp, Tables, Virtual};

/// What was done about an access that faulted.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is to be made again, after the fence.
    Again(Due),
    /// Likewise; it will fault once more, as only a piece of what it needs was done: so no call takes long.
    NotYet(Due),
    /// The guest gets this exception, of the access's kind, with the address in `stval`.
    Fault(Fault),
    /// It goes where no memory is, or none for such an access: to a device, or nowhere.
    Elsewhere(GuestPhysical),
    /// It goes to memory, but its address is in the [window](Choices::window): that is to be [moved](Shadow::move_window), and the access made again.
    Window,
}

/// What the hart is to walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Active {
    /// The format of the table.
    pub format: Format,
    /// Where the root is.
    pub root: HostPhysical,
    /// The number of the address space, below that of all that there can be: for an ASID of the hart.
    pub tag: u8,
}

/// Choices for a [`Shadow`].
#[derive(Debug, Clone, Copy)]
pub struct Choices {
    /// Whose tables are taken when none is free.
    pub reclaim: Reclaim,
    /// Pages that the guest calls global are filled in once for all of its address spaces.
    pub shares_global: bool,
    /// What the guest's harts have.
    pub features: Features,
    /// The greatest format that the hart has. Others in `satp` are no modes to the guest. Its own format while the guest translates nothing is this as well: what it doesn't
    /// cover can't be memory then.
    pub greatest: Format,
    /// What each root that the hart walks has of the hypervisor's own, at any time. With [divided](crate::Divided) views alone.
    pub window: Option<Window>,
}

/// What has become of a write of `satp`.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// [`Shadow::active`] says what the hart is to walk from now on, after this fence of the tag that it has then.
    Done(Due),
    /// The mode is none that there is: the write has no effect.
    NoMode,
    /// Tables have to be free and clean for it, or fences have to be carried out that were deferred, and a piece of that was done: it is to be made again, behind this fence of the tag that is active still.
    NotYet(Due),
}

/// The shadow of all of a vCPU's translations.
pub struct Shadow<'a, T, V = Undivided> {
    choices: Choices,
    pool: Pool<'a, T>,
    /// Each is a view of an address space, where that has several.
    spaces: Numbered<'a, AddressSpace<V>>,
    /// Those of them that are one. The others may have tables still, until these are wanted.
    alive: Set,
    /// Those of the others that have.
    remains: Set,
    /// Those whose tags the hart is to fence when they are activated.
    stale: Set,
    /// The number of the one that is active.
    active: usize,
    activations: u64,
    /// Those that were entered last, by the end of their ASIDs, and by views.
    last: [u8; LAST * MOST_VIEWS],
    /// The views of the active one's address space, as far as they are known; else [`UNKNOWN`]. Those that aren't [alive](Self::alive) are none of them any more.
    siblings: [u8; MOST_VIEWS],
    global: Global,
    /// Fences for an address of all address spaces, and those of these that have some of them before them. The active one never has.
    deferred: DeferredFences,
    behind: Set,
    /// A fill wanted one more table than can be taken.
    is_short: bool,
    /// There is none to be taken by itself: all of somebody's are next.
    takes_all: bool,
    /// What is there stands in the way of a fill: all of it is to be forgotten first.
    forgets_all: bool,
    /// With divided views, the page that was filled in last, if it may have [neighbours](Self::fill_neighbours).
    with_neighbours: Option<FilledIn>,
    /// With divided views, the `satp` that was [searched for](Self::search) last, if what was found holds still.
    searched: Option<Searched>,
}

/// One that is fetched from two pages, and loads or stores what lies in two others.
const PAGES_OF_AN_INSTRUCTION: usize = 4;
/// Tables between a root and a page, at most.
const BELOW_A_ROOT: usize = 4;
/// Ends of ASIDs by which the last address spaces are found.
const LAST: usize = 16;
/// No address space's number.
const UNKNOWN: u8 = u8::MAX;
/// Tables that no fill takes: for a new root of the active address space and of the global tree, and one of an address space that is made.
const RESERVE: usize = 3;

impl<'a, T: Tables, V: View> Shadow<'a, T, V> {
    /// An empty one, with [`Satp::BARE`] active. With one address space alone, each change of `satp` empties it; each view of one counts here.
    ///
    /// `None`: there are fewer than [`Self::tables_needed`], or not between 1 and 64 address spaces; or the window is not where one can be.
    ///
    /// Only at boot.
    pub fn new(
        choices: Choices,
        tables: T,
        states: &'a mut [TableState],
        spaces: &'a mut [AddressSpace<V>],
    ) -> Option<Self> {
        let is_right = (1..=set::MOST).contains(&spaces.len())
            && states.len() >= Self::tables_needed(spaces.len())
            && choices.window.is_none_or(|window| V::IS_DIVIDED && window.is_right());
        if !is_right {
            return None;
        }
        let mut pool = Pool::new(tables, states);
        spaces.fill(AddressSpace::UNUSED);
        let mut spaces = Numbered::new(spaces, AddressSpace::UNUSED);
        spaces[0].tree.root = pool.take_clean()?;
        spaces[0].format = choices.greatest;
        let global = Global::new(Tree { root: pool.take_clean()?, ..Tree::ROOTLESS });
        let (alive, stale) = (Set::of(0), Set::ALL);
        let mut shadow = Self {
            choices,
            pool,
            spaces,
            alive,
            remains: Set::EMPTY,
            stale,
            active: 0,
            activations: 0,
            last: [0; LAST * MOST_VIEWS],
            siblings: [0; MOST_VIEWS],
            global,
            deferred: DeferredFences::NONE,
            behind: Set::EMPTY,
            is_short: false,
            takes_all: false,
            forgets_all: false,
            with_neighbours: None,
            searched: None,
        };
        let opening = shadow.opening(choices.greatest);
        shadow.pool.open(shadow.spaces[0].tree.root, opening);
        Some(shadow)
    }

    /// How many tables so many address spaces need at least: a root for each and one for what is global, new ones for these, and below them what one instruction can need. That is of two
    /// pages, and what it loads or stores is in two others, each of which may have tables of its own.
    ///
    /// Views need no more, as an instruction is made in one: what another view had may be taken for it. So programs and their kernel go on however often they change, with one
    /// address space alone as well.
    #[must_use]
    pub const fn tables_needed(spaces: usize) -> usize {
        spaces + 1 + RESERVE + PAGES_OF_AN_INSTRUCTION * BELOW_A_ROOT
    }

    /// What the hart is to walk now.
    pub fn active(&self) -> Active {
        let space = &self.spaces[self.active];
        Active { format: space.format, root: self.pool.address(space.tree.root), tag: self.active as u8 }
    }

    /// Bits of an address within the largest leaf that the guest's tables can have.
    #[must_use]
    pub const fn largest_leaf(&self) -> u32 {
        shift(self.choices.greatest.levels() - 1)
    }

    /// What the guest has in `satp`.
    pub fn satp(&self) -> Satp {
        self.spaces[self.active].satp
    }

    /// The guest has written `satp`; it is to be in this view of what that says. What isn't translated is the same in all of them.
    pub fn activate(&mut self, satp: Satp, view: V) -> Activation {
        let Ok(of_satp) = satp.format() else { return Activation::NoMode };
        let (satp, format) = match of_satp {
            Some(format) if format <= self.choices.greatest => (satp, format),
            Some(_) => return Activation::NoMode,
            None => (Satp::BARE, self.choices.greatest),
        };
        let view = if satp == Satp::BARE { V::BARE } else { view };
        let is_it = |space: &AddressSpace<V>| space.satp == satp && space.view == view;
        // What it has before it takes steps, of which each one comes by here.
        let (alike, found) = match self.remembered(satp, view) {
            Some(number) => (Set::EMPTY, Some(number)),
            None if V::IS_DIVIDED => {
                // All views of the active one are known to it.
                let alike = if satp == self.satp() {
                    self.spaces[self.active].views.or(Set::of(self.active))
                } else {
                    match self.searched.filter(|searched| searched.satp == satp) {
                        Some(searched) => searched.alike(self.alive),
                        None => {
                            // That takes as long as a step may.
                            self.searched = Some(self.search(satp));
                            return Activation::NotYet(Due::Nothing);
                        }
                    }
                };
                // BOUND: the views of two address spaces.
                (alike, alike.and(self.alive).find(|number| is_it(&self.spaces[*number])))
            }
            // BOUND: the address spaces.
            None => (Set::EMPTY, self.find(is_it)),
        };
        let number = match found {
            Some(number) => number,
            None => match self.make(satp, view, format, alike) {
                Ok(number) => number,
                Err(due) => return Activation::NotYet(due),
            },
        };
        if let Some(due) = self.catch_up(number) {
            return Activation::NotYet(due);
        }
        Activation::Done(self.enter(number))
    }

    /// The same, if it is an address space that is looked for first, as it was the last with an ASID that ends so. `None`: nothing has been done.
    #[inline(always)]
    pub fn activate_known(&mut self, satp: Satp, view: V) -> Option<Due> {
        let view = if V::IS_DIVIDED && satp == Satp::BARE { V::BARE } else { view };
        let number = self.remembered(satp, view)?;
        if self.behind.contains(number) { None } else { Some(self.enter(number)) }
    }

    /// The same, if no fence is due for it either. What the hart is to walk.
    #[inline(always)]
    pub fn activate_at_once(&mut self, satp: Satp, view: V) -> Option<Active> {
        let number = self.remembered(satp, view)?;
        if self.behind.or(self.stale).contains(number) {
            return None;
        }
        let activations = self.activations + 1;
        let space = &mut self.spaces[number];
        space.activated = activations;
        let (format, root) = (space.format, space.tree.root);
        if V::IS_DIVIDED {
            self.know(number);
        }
        (self.activations, self.active) = (activations, number);
        Some(Active { format, root: self.pool.address(root), tag: number as u8 })
    }

    /// The last one with an ASID that ends so, if it is this one.
    #[inline(always)]
    fn remembered(&self, satp: Satp, view: V) -> Option<usize> {
        let number = usize::from(*self.last.get(place_of(satp, view))?);
        let space = &self.spaces[number];
        let is_it = self.alive.contains(number) && space.satp == satp && space.view == view;
        if is_it { Some(number) } else { None }
    }

    /// What the hart walks in another view of the active address space, if it may go there and back without a word: the view is known, and no fence is due for its tag. It holds until anything but
    /// [`Self::enter_view`] or [`Self::locate`] is called.
    pub fn sibling(&self, view: V) -> Option<Active> {
        let known = self.siblings.get(view::number(view)).copied().map(usize::from);
        let remembered = || self.last.get(place_of(self.satp(), view)).copied().map(usize::from);
        let is_it = |number: &usize| {
            *number < set::MOST && self.alive.minus(self.behind).minus(self.stale).contains(*number) && {
                let space = &self.spaces[*number];
                space.satp == self.satp() && (space.view == view || self.satp() == Satp::BARE)
            }
        };
        let number = known.filter(is_it).or_else(|| remembered().filter(is_it))?;
        let space = &self.spaces[number];
        Some(Active { format: space.format, root: self.pool.address(space.tree.root), tag: number as u8 })
    }

    /// The vCPU is in this address space from now on. Which fence is due for it.
    #[inline(always)]
    fn enter(&mut self, number: usize) -> Due {
        let AddressSpace { satp, view, .. } = self.spaces[number];
        if let Some(last) = self.last.get_mut(place_of(satp, view)) {
            *last = number as u8;
        }
        if V::IS_DIVIDED {
            self.know(number);
        }
        self.enter_known(number)
    }

    /// The same where nothing is to be remembered for [`Self::activate_known`] and [`Self::enter_view`].
    #[inline(always)]
    fn enter_known(&mut self, number: usize) -> Due {
        self.activations += 1;
        self.spaces[number].activated = self.activations;
        self.active = number;
        let is_stale = self.stale.contains(number);
        self.stale.remove(number);
        if is_stale { Due::Space } else { Due::Nothing }
    }

    /// The vCPU is on another hart, or on one where its tags have been others' meanwhile: the fence for what that may have kept under the active one. For each other one it is due when
    /// it is activated.
    pub fn distrust(&mut self) -> Due {
        self.stale = Set::ALL.without(self.active);
        Due::Space
    }

    /// The vCPU begins anew, with [`Satp::BARE`]. Whatever its tags have been for, its harts are to be [distrusted](Self::distrust) before it goes on.
    pub fn reset(&mut self) {
        let space = &mut self.spaces[self.active];
        (space.satp, space.view, space.format) = (Satp::BARE, V::BARE, self.choices.greatest);
        self.searched = None;
        let _ = self.forget_all();
    }

    /// An access has faulted in the hart's walk. With divided views, the active one is that [of the mode](View::of), and where it is to be made [`again`](Outcome::Again) the page's
    /// [neighbours](Self::fill_neighbours) may follow in a step of their own.
    pub fn fault(&mut self, memory: &impl Memory, address: Virtual, access: Access, mode: Mode) -> Outcome {
        if V::IS_DIVIDED {
            self.with_neighbours = None;
        }
        if let Some(due) = self.make_room() {
            return Outcome::NotYet(due);
        }
        let view = self.spaces[self.active].view;
        let mode = view::mode(view, mode);
        let walked = match walk(memory, self.choices.features, self.satp(), address, access, mode) {
            Ok(found) => found,
            Err(Stop::Fault(fault)) => return Outcome::Fault(fault),
            Err(Stop::Changed) => return Outcome::Again(Due::Nothing),
        };
        let found = view::seen(view, walked);
        let format = self.spaces[self.active].format;
        match fill(memory, &found, address, access).filter(|_| format.covers(address)) {
            Some(_) if self.is_in_window(format, address) => Outcome::Window,
            Some(fill) => match self.insert(format, found.global, &fill) {
                (due, None) => Outcome::NotYet(due),
                // In what is shared, or where something shared had to go first, it has been enough for one step.
                (due, Some(table)) => {
                    if let (Due::Page(_), false, Some(leaf)) = (due, found.global, &walked.leaf) {
                        let page = FilledIn::new(table, leaf, &fill);
                        if V::IS_DIVIDED {
                            self.with_neighbours = Some(page);
                        } else {
                            self.fault_around(memory, page);
                        }
                    }
                    Outcome::Again(due)
                }
            },
            None => Outcome::Elsewhere(found.at(address)),
        }
    }

    /// Where an instruction is that the guest has fetched in this mode, by its own tables as they stand, and whether it is there in all address spaces. `None`: nowhere any more.
    pub fn locate(
        &self,
        memory: &impl Memory,
        address: Virtual,
        mode: Mode,
    ) -> Option<(GuestPhysical, bool)> {
        let mode = view::mode(self.spaces[self.active].view, mode);
        let found = walk(memory, self.choices.features, self.satp(), address, Access::Fetch, mode).ok()?;
        Some((found.at(address), found.global))
    }

    /// Sees to tables for a fill that had too few, or that might: to find that out takes a walk. `None` if there are some, or none is to be cleared for that.
    #[inline(always)]
    fn make_room(&mut self) -> Option<Due> {
        if self.forgets_all {
            return Some(self.forget_all());
        }
        if !self.is_short && self.pool.clean() > RESERVE {
            return None;
        }
        if self.is_short && self.pool.free() <= RESERVE {
            return Some(self.reclaim());
        }
        if !self.pool.prepare(RESERVE + BELOW_A_ROOT) {
            return Some(Due::Nothing);
        }
        self.is_short = false;
        None
    }

    /// The guest has executed a fence, or another vCPU has it execute one. `None`: only a piece of what it needs was done, and it is to be made again. So it can be with one of
    /// all of an address space, for which tables have to be cleared.
    pub fn fence(&mut self, scope: Scope) -> Option<Due> {
        Some(match scope {
            Scope { address: Some(address), asid: Some(asid) } if V::IS_DIVIDED => {
                self.forget_in_views(address, asid)
            }
            Scope { address: None, asid: Some(asid) } if V::IS_DIVIDED => {
                if !self.pool.prepare(RESERVE) {
                    return None;
                }
                self.forget_views(asid)
            }
            Scope { address, asid: Some(asid) } => {
                let Some(number) = self.with_asid(asid) else { return Some(Due::Nothing) };
                match address {
                    Some(address) => self.forget_in(number, address),
                    None if !self.pool.prepare(RESERVE) => return None,
                    None => self.forget_space(number),
                }
            }
            Scope { address: None, asid: None } => self.forget_all(),
            Scope { address: Some(address), asid: None } => self.forget_everywhere(address),
        })
    }

    /// The same where nobody would come back for the rest: all is forgotten then.
    pub fn fence_at_once(&mut self, scope: Scope) -> Due {
        let is_ready = scope.address.is_some() || scope.asid.is_none() || self.pool.clean() >= RESERVE;
        let due = if is_ready { self.fence(scope) } else { None };
        due.unwrap_or_else(|| match scope.asid {
            // All of its views take one step.
            Some(asid) if V::IS_DIVIDED && self.pool.clean() >= RESERVE => self.forget_views(asid),
            _ => self.forget_all(),
        })
    }

    /// The one that has this ASID: mostly it is the active one.
    #[inline(always)]
    fn with_asid(&self, asid: u16) -> Option<usize> {
        if self.spaces[self.active].has_asid(asid) {
            return Some(self.active);
        }
        // BOUND: the address spaces.
        self.find(|space| space.has_asid(asid))
    }

    fn find(&self, is_meant: impl Fn(&AddressSpace<V>) -> bool) -> Option<usize> {
        // BOUND: the address spaces.
        self.alive.into_iter().find(|number| is_meant(&self.spaces[*number]))
    }

    /// Makes an address space: of one that has its ASID and another root, of one that is none, or of the one that was active least recently. All views of the one with its ASID
    /// are none any more. With divided views, `alike` are those that may be views of it, or have its ASID.
    ///
    /// # Errors
    /// Not yet, and which fence is due.
    fn make(&mut self, satp: Satp, view: V, format: Format, alike: Set) -> Result<usize, Due> {
        if !self.pool.prepare(RESERVE) {
            return Err(Due::Nothing);
        }
        if self.pool.free() <= RESERVE {
            return Err(self.reclaim());
        }
        if V::IS_DIVIDED {
            let number = self.choose(satp, view, alike).ok_or(Due::Nothing)?;
            let Some(root) = self.pool.take_clean() else { return Err(Due::Nothing) };
            self.pool.open(root, self.opening(format));
            self.begin(number, satp, view, format, root);
            return Ok(number);
        }
        let asid = (satp != Satp::BARE).then_some(satp.asid());
        let (mut number, mut least) = (0, u64::MAX);
        // BOUND: the address spaces, some 15 instructions each.
        for candidate in 0..self.spaces.len() {
            let space = &self.spaces[candidate];
            let rank = if !self.alive.contains(candidate) {
                1
            } else if asid.is_some_and(|asid| space.has_asid(asid)) {
                0
            } else {
                space.activated + 2
            };
            if rank < least {
                (number, least) = (candidate, rank);
            }
        }
        let Some(root) = self.pool.take_clean() else { return Err(Due::Nothing) };
        self.begin(number, satp, view, format, root);
        Ok(number)
    }

    /// This number is that of a new one from now on, whatever it has been before.
    #[inline(always)]
    fn begin(&mut self, number: usize, satp: Satp, view: V, format: Format, root: u16) {
        self.kill(number);
        self.searched = None;
        self.give_back_all(number);
        let space = &mut self.spaces[number];
        (space.satp, space.format, space.tree.root, space.shared) = (satp, format, root, Set::EMPTY);
        space.view = view;
        self.alive.insert(number);
        self.behind.remove(number);
        self.stale.insert(number);
    }

    /// It is none from now on.
    fn kill(&mut self, number: usize) {
        if !self.alive.contains(number) {
            return;
        }
        self.alive.remove(number);
        self.remains.insert(number);
        // BOUND: the 16 places of what is global.
        for place in self.spaces[number].shared {
            self.global.sharers_mut(place).remove(number);
        }
    }

    /// Something in an address space's tables has changed: the fence is due now if it is active, else when it is activated.
    fn changed(&mut self, number: usize, due: Due) -> Due {
        if number == self.active {
            return due;
        }
        self.note(number, due);
        Due::Nothing
    }

    /// A fence is due when an address space is activated.
    fn note(&mut self, number: usize, due: Due) {
        if due != Due::Nothing {
            self.stale.insert(number);
        }
    }

    /// Something in the global tree has changed, below this entry of its root.
    fn changed_globally(&mut self, place: usize, due: Due) -> Due {
        if due == Due::Nothing {
            return due;
        }
        let sharers = self.global.sharers(place);
        self.stale = self.stale.or(sharers.without(self.active));
        if sharers.contains(self.active) { due } else { Due::Nothing }
    }

    /// The place of the global tree's entry that an address is below, if it has any.
    fn global_place(&self, address: Virtual) -> Option<usize> {
        let format = self.global.format.filter(|format| format.covers(address))?;
        self.global.place(Format::index(address, format.levels() - 1))
    }

    /// Forgets all that an address space has, but for what is global. If it is active, there is a clean table: else it takes longer.
    fn forget_space(&mut self, number: usize) -> Due {
        if number != self.active {
            self.kill(number);
            return Due::Nothing;
        }
        let opening = self.opening(self.spaces[number].format);
        let space = &mut self.spaces[number];
        space.tree.renew(&mut self.pool, opening);
        // BOUND: the 16 places of what is global.
        for place in space.shared {
            let top = self.global.top(place);
            let entry = self.pool.read(self.global.tree.root, top);
            self.pool.write(space.tree.root, top, entry);
        }
        Due::Root
    }

    /// Forgets all. There are two clean tables, or nothing much to clear: whoever fills something in leaves more.
    fn forget_all(&mut self) -> Due {
        self.forgets_all = false;
        self.global.forget_places();
        // No hart walks it.
        self.global.tree.renew(&mut self.pool, Opening::NONE);
        // The others are none any more.
        self.remains = self.remains.or(self.alive.without(self.active));
        self.alive = Set::of(self.active);
        let opening = self.opening(self.spaces[self.active].format);
        let space = &mut self.spaces[self.active];
        space.shared = Set::EMPTY;
        space.tree.renew(&mut self.pool, opening);
        Due::Root
    }
}

/// What tests look at.
#[cfg(test)]
impl<T: Tables, V: View> Shadow<'_, T, V> {
    /// All roots that the hart may be told to walk, and their formats.
    pub fn roots(&self) -> Vec<(HostPhysical, Format)> {
        let space = |number| &self.spaces[number];
        self.alive.map(|number| (self.pool.address(space(number).tree.root), space(number).format)).collect()
    }

    /// Panics if an address space is there twice, two have one ASID, the views of one don't know each other, or one that is none any more has tables that nobody would find.
    pub fn check(&self) {
        for number in Set::below(self.spaces.len()).minus(self.alive).minus(self.remains) {
            let tree = &self.spaces[number].tree;
            assert!(tree.root == crate::pool::NONE && tree.owned.is_empty());
        }
        assert!(self.remains.and(self.alive).is_empty());
        for number in self.alive {
            let AddressSpace { satp, view, views, .. } = self.spaces[number];
            let is_same = |other: &usize| self.spaces[*other].satp == satp;
            let alike: Vec<usize> = self.alive.filter(is_same).collect();
            assert_eq!(alike.iter().filter(|other| self.spaces[**other].view == view).count(), 1);
            if satp != Satp::BARE {
                let with_asid = self.alive.filter(|other| self.spaces[*other].has_asid(satp.asid()));
                assert_eq!(alike, with_asid.collect::<Vec<_>>());
                assert!(!V::IS_DIVIDED || alike == views.and(self.alive).collect::<Vec<_>>());
            }
        }
    }

    /// The tables that are to be all zeros.
    pub fn clean_tables(&self) -> Vec<u16> {
        self.pool.clean_tables()
    }
}

/// Where the last address space is remembered that had an ASID with this end, and this view.
#[inline(always)]
fn place_of(satp: Satp, view: impl View) -> usize {
    let place = usize::from(satp.asid()) % LAST;
    view.divided().map_or(place, |_| place * MOST_VIEWS + view::number(view))
}
