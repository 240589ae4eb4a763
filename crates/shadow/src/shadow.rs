//! A vCPU's shadow.
use ainori_space::{GuestPhysical, HostPhysical, MemoryType};

use crate::entry::{Entry, Features, Leaf, allows};
use crate::fence::{Due, Scope};
use crate::format::{Format, span};
use crate::pool::{Pool, Reclaim, TableState};
use crate::slots::Slots;
use crate::space::AddressSpace;
use crate::tree::{Fill, Forgotten, Obstacle, Tree};
use crate::walk::{Access, Fault, Found, Mode, Stop, walk};
use crate::{Memory, Satp, Tables, Virtual};

/// What was done about an access that faulted.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is to be made again, after the fence.
    Again(Due),
    /// The guest gets this exception, of the access's kind, with the address in `stval`.
    Fault(Fault),
    /// It goes where no memory is, or none for such an access: to a device, or nowhere.
    Elsewhere(GuestPhysical),
}

/// What the hart is to walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Active {
    /// The format of the table.
    pub format: Format,
    /// Where the root is: always there for the same tag.
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
}

/// The shadow of all of a vCPU's translations.
pub struct Shadow<'a, T> {
    choices: Choices,
    pool: Pool<'a, T>,
    spaces: &'a mut [AddressSpace],
    /// The number of the one that is active.
    active: usize,
    activations: u64,
    global: Global,
}

/// What is in all address spaces, by the guest's word.
struct Global {
    /// `None`: nothing is.
    format: Option<Format>,
    tree: Tree,
}

/// One that is fetched from two pages, and loads or stores what lies in two others.
const PAGES_OF_AN_INSTRUCTION: usize = 4;

/// Whose a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Space(usize),
    Global,
}

impl<'a, T: Tables> Shadow<'a, T> {
    /// An empty one, with [`Satp::BARE`] active. With one address space alone, each change of `satp` empties it.
    ///
    /// `None`: there are fewer than [`Self::tables_needed`], or not between 1 and 256 address spaces.
    ///
    /// Only at boot.
    pub fn new(
        choices: Choices,
        tables: T,
        states: &'a mut [TableState],
        spaces: &'a mut [AddressSpace],
    ) -> Option<Self> {
        let is_right = (1..=256).contains(&spaces.len()) && states.len() >= Self::tables_needed(spaces.len());
        if !is_right {
            return None;
        }
        let mut pool = Pool::new(tables, states);
        for space in spaces.iter_mut() {
            *space = AddressSpace::UNUSED;
            space.tree.root = pool.take_free()?;
        }
        spaces[0].satp = Some(Satp::BARE);
        let global = Global { format: None, tree: Tree { root: pool.take_free()?, ..Tree::ROOTLESS } };
        Some(Self { choices, pool, spaces, active: 0, activations: 0, global })
    }

    /// How many tables so many address spaces need at least: a root for each and one for what is global, and below these what one instruction can need. That is of two pages, and what it
    /// loads or stores is in two others, each of which may have tables of its own.
    #[must_use]
    pub const fn tables_needed(spaces: usize) -> usize {
        const BELOW_A_ROOT: usize = 4;
        spaces + 1 + PAGES_OF_AN_INSTRUCTION * BELOW_A_ROOT
    }

    /// What the hart is to walk now.
    pub fn active(&self) -> Active {
        let root = self.pool.address(self.spaces[self.active].tree.root);
        Active { format: self.format_of(self.active), root, tag: self.active as u8 }
    }

    /// The guest has written `satp`. Then [`Self::active`] says what the hart is to walk, after this fence of the tag that it has then.
    ///
    /// `None`, and nothing is done, if the mode is none that there is: then the write has no effect.
    pub fn activate(&mut self, satp: Satp) -> Option<Due> {
        let format =
            satp.format().ok().filter(|format| format.is_none_or(|of| of <= self.choices.greatest))?;
        let satp = if format.is_some() { satp } else { Satp::BARE };
        self.active = self.find(|space| space.satp == Some(satp)).unwrap_or_else(|| self.make(satp));
        self.activations += 1;
        let space = &mut self.spaces[self.active];
        space.activated = self.activations;
        let is_due = core::mem::take(&mut space.fence);
        Some(if is_due { Due::Space } else { Due::Nothing })
    }

    /// The vCPU is on another hart, or on one where its tags have been others' meanwhile: the fence for what that may have kept under the active one. For each other one it is due when
    /// it is activated.
    pub fn distrust(&mut self) -> Due {
        // BOUND: the address spaces, 256 at most, 2 instructions each.
        self.spaces.iter_mut().for_each(|space| space.fence = true);
        self.spaces[self.active].fence = false;
        Due::Space
    }

    /// An access has faulted in the hart's walk.
    pub fn fault(&mut self, memory: &impl Memory, address: Virtual, access: Access, mode: Mode) -> Outcome {
        let satp = self.spaces[self.active].satp.unwrap_or(Satp::BARE);
        let found = match walk(memory, self.choices.features, satp, address, access, mode) {
            Ok(found) => found,
            Err(Stop::Fault(fault)) => return Outcome::Fault(fault),
            Err(Stop::Changed) => return Outcome::Again(Due::Nothing),
        };
        let format = self.format_of(self.active);
        match fill(memory, &found, address, access).filter(|_| format.covers(address)) {
            Some(fill) => Outcome::Again(self.insert(format, found.global, &fill).and(Due::Page(address))),
            None => Outcome::Elsewhere(found.at(address)),
        }
    }

    /// The guest has executed a fence, or another vCPU has it execute one.
    pub fn fence(&mut self, scope: Scope) -> Due {
        match (scope.address, scope.asid) {
            (None, None) => self.forget_all(),
            (None, Some(asid)) => {
                self.find(|space| space.has_asid(asid)).map_or(Due::Nothing, |number| self.drop(number))
            }
            (Some(address), Some(asid)) => self
                .find(|space| space.has_asid(asid))
                .map_or(Due::Nothing, |number| self.forget(Owner::Space(number), address)),
            (Some(address), None) => {
                let mut due = self.forget(Owner::Global, address);
                // BOUND: the address spaces, 256 at most, and for each the levels.
                for number in 0..self.spaces.len() {
                    due = due.and(self.forget(Owner::Space(number), address));
                }
                due
            }
        }
    }

    /// The format of an address space's tree.
    fn format_of(&self, number: usize) -> Format {
        let satp = self.spaces[number].satp.unwrap_or(Satp::BARE);
        satp.format().ok().flatten().unwrap_or(self.choices.greatest)
    }

    fn find(&self, is_meant: impl Fn(&AddressSpace) -> bool) -> Option<usize> {
        // BOUND: the address spaces.
        self.spaces.iter().position(is_meant)
    }

    /// Makes an address space: of the one that has its ASID, of one that is unused, or of the one that was active least recently.
    fn make(&mut self, satp: Satp) -> usize {
        let of_asid = self.find(|space| satp != Satp::BARE && space.has_asid(satp.asid()));
        let number = of_asid.unwrap_or_else(|| {
            let rank = |number: &usize| (self.spaces[*number].satp.is_some(), self.spaces[*number].activated);
            // BOUND: the address spaces.
            (0..self.spaces.len()).min_by_key(rank).unwrap_or(0)
        });
        let space = &mut self.spaces[number];
        space.tree.clear(&mut self.pool);
        *space = AddressSpace { satp: Some(satp), tree: space.tree, ..AddressSpace::UNUSED };
        number
    }

    /// Fills in what a walk of the active address space has found.
    fn insert(&mut self, format: Format, is_global: bool, fill: &Fill) -> Due {
        let top = Format::index(fill.address, format.levels() - 1);
        let mut due = Due::Nothing;
        let owner = if is_global && self.can_share(format, top) {
            Owner::Global
        } else {
            due = due.and(self.unshare(self.active, top));
            Owner::Space(self.active)
        };
        // BOUND: at most 4 tables are needed. Each round frees one at least, and the last one that there can be frees all.
        loop {
            let obstacle = match owner {
                Owner::Global => self.global.tree.obstacle(&self.pool, format, fill),
                Owner::Space(number) => self.spaces[number].tree.obstacle(&self.pool, format, fill),
            };
            due = due.and(match (obstacle, owner) {
                (None, _) => break,
                (Some(Obstacle::Tables), _) => self.reclaim(),
                (Some(Obstacle::Tree), Owner::Global) => self.forget_all(),
                (Some(Obstacle::Tree), Owner::Space(number)) => self.drop(number),
            });
        }
        match owner {
            Owner::Space(number) => self.spaces[number].tree.insert(&mut self.pool, format, fill).and(due),
            Owner::Global => {
                self.global.format = Some(format);
                let before = self.pool.read(self.global.tree.root, top);
                let inserted = self.global.tree.insert(&mut self.pool, format, fill);
                due = due.and(self.changed_globally(top, inserted));
                due.and(self.share(top, before))
            }
        }
    }

    /// May what is global be filled into the global tree, for the active address space to see? Not if this has something of its own beside it.
    fn can_share(&self, format: Format, top: usize) -> bool {
        let space = &self.spaces[self.active];
        let is_free = space.shared.contains(top) || self.pool.read(space.tree.root, top).is_none();
        self.choices.shares_global && self.global.format.is_none_or(|of| of == format) && is_free
    }

    /// Has the active address space see an entry of the global tree's root. `before`: what that was, for all others that see it.
    fn share(&mut self, top: usize, before: Entry) -> Due {
        let entry = self.pool.read(self.global.tree.root, top);
        let mut due = Due::Nothing;
        if entry != before && !before.is_none() {
            due = self.unshare_all(top);
        }
        let space = &mut self.spaces[self.active];
        if !space.shared.contains(top) {
            space.shared.insert(top);
            self.pool.write(space.tree.root, top, entry);
            // As where a tree has a new table.
            due = if entry.leads_on() { Due::Space } else { due };
        }
        due
    }

    /// An address space doesn't see this entry of the global tree's root any more, if it did.
    fn unshare(&mut self, number: usize, top: usize) -> Due {
        let space = &mut self.spaces[number];
        if !space.shared.contains(top) {
            return Due::Nothing;
        }
        space.shared.remove(top);
        self.pool.write(space.tree.root, top, Entry::NONE);
        self.changed(number, Due::Space)
    }

    fn unshare_all(&mut self, top: usize) -> Due {
        let mut due = Due::Nothing;
        // BOUND: the address spaces.
        for number in 0..self.spaces.len() {
            due = due.and(self.unshare(number, top));
        }
        due
    }

    /// Something in an address space's tables has changed: the fence is due now if it is active, else when it is activated.
    fn changed(&mut self, number: usize, due: Due) -> Due {
        if number == self.active {
            return due;
        }
        self.spaces[number].fence |= due != Due::Nothing;
        Due::Nothing
    }

    /// Something in the global tree has changed, below this entry of its root.
    fn changed_globally(&mut self, top: usize, due: Due) -> Due {
        let mut all = Due::Nothing;
        // BOUND: the address spaces.
        for number in 0..self.spaces.len() {
            if self.spaces[number].shared.contains(top) {
                all = all.and(self.changed(number, due));
            }
        }
        all
    }

    /// Forgets what a tree has for an address.
    fn forget(&mut self, owner: Owner, address: Virtual) -> Due {
        let format = match owner {
            Owner::Global => self.global.format,
            Owner::Space(number) => Some(self.format_of(number)),
        };
        let Some(format) = format.filter(|format| format.covers(address)) else { return Due::Nothing };
        let top = Format::index(address, format.levels() - 1);
        if let Owner::Space(number) = owner
            && (!self.spaces[number].is_translated() || self.spaces[number].shared.contains(top))
        {
            return Due::Nothing;
        }
        let tree = match owner {
            Owner::Global => &mut self.global.tree,
            Owner::Space(number) => &mut self.spaces[number].tree,
        };
        let before = self.pool.read(tree.root, top);
        let forgotten = tree.forget(&mut self.pool, format, address);
        let is_other_top = self.pool.read(tree.root, top) != before;
        let due = match forgotten {
            Forgotten::Nothing => Due::Nothing,
            Forgotten::Entry => Due::Page(address),
            Forgotten::Entries => Due::Space,
            Forgotten::NotYet => {
                return match owner {
                    Owner::Global => self.forget_all(),
                    Owner::Space(number) => self.drop(number),
                };
            }
        };
        match owner {
            Owner::Space(number) => self.changed(number, due),
            Owner::Global if is_other_top => self.unshare_all(top),
            Owner::Global => self.changed_globally(top, due),
        }
    }

    /// Forgets all that an address space has, but for what is global.
    fn drop(&mut self, number: usize) -> Due {
        let space = &mut self.spaces[number];
        if number != self.active {
            space.leave(&mut self.pool);
            return Due::Nothing;
        }
        space.tree.clear(&mut self.pool);
        let mut shared = space.shared;
        // BOUND: the 512 entries of a table.
        while let Some(top) = shared.pop() {
            let entry = self.pool.read(self.global.tree.root, top);
            self.pool.write(space.tree.root, top, entry);
        }
        Due::Space
    }

    /// Forgets all.
    fn forget_all(&mut self) -> Due {
        self.global.format = None;
        self.global.tree.clear(&mut self.pool);
        // BOUND: the address spaces.
        for (number, space) in self.spaces.iter_mut().enumerate() {
            if number == self.active {
                space.tree.clear(&mut self.pool);
                space.shared = Slots::NONE;
            } else {
                space.leave(&mut self.pool);
            }
        }
        Due::Space
    }

    /// Takes tables from somebody: one at least, as there are more than the roots. Never those of the last pages that were filled in, as many as an instruction can need, unless it takes
    /// all: so each instruction has all of its pages at last, however often one of them takes the table of another.
    fn reclaim(&mut self) -> Due {
        let oldest = if self.choices.reclaim == Reclaim::Fifo { self.oldest() } else { None };
        if let Some((owner, table)) = oldest {
            return self.give_back(owner, table);
        }
        let is_idle = |number: &usize| *number != self.active && !self.spaces[*number].tree.owned.is_empty();
        // BOUND: the address spaces.
        let idle = (0..self.spaces.len()).filter(is_idle);
        match idle.min_by_key(|number| self.spaces[*number].activated) {
            Some(number) => self.drop(number),
            None => self.forget_all(),
        }
    }

    /// The table of pages that was taken first, if it isn't among the last ones.
    fn oldest(&self) -> Option<(Owner, u16)> {
        let of_spaces = self.spaces.iter().enumerate();
        let of_spaces = of_spaces.map(|(number, space)| (Owner::Space(number), &space.tree.owned));
        let all = of_spaces.chain([(Owner::Global, &self.global.tree.owned)]);
        let (mut oldest, mut count) = (None, 0);
        // BOUND: the address spaces, and one more.
        for (owner, owned) in all {
            count += owned.pages();
            if let Some(table) = owned.oldest()
                && oldest.is_none_or(|(_, other)| self.pool.age(table) < self.pool.age(other))
            {
                oldest = Some((owner, table));
            }
        }
        oldest.filter(|_| count > PAGES_OF_AN_INSTRUCTION)
    }

    /// Gives back a table of pages.
    fn give_back(&mut self, owner: Owner, table: u16) -> Due {
        match owner {
            Owner::Space(number) => {
                self.pool.give_back(&mut self.spaces[number].tree.owned, table);
                self.changed(number, Due::Space)
            }
            Owner::Global => {
                self.pool.give_back(&mut self.global.tree.owned, table);
                let mut due = Due::Nothing;
                // BOUND: the address spaces.
                for number in 0..self.spaces.len() {
                    due = due.and(self.changed(number, Due::Space));
                }
                due
            }
        }
    }
}

/// What the shadow is to have for an address. `None`: such an access doesn't go to memory.
fn fill(memory: &impl Memory, found: &Found, address: Virtual, access: Access) -> Option<Fill> {
    let at = found.at(address);
    let below = memory.translate(at)?;
    let (reads, writes, executes) = allows(below.attributes.rights);
    let is_allowed = match access {
        // What the guest lets read as it lets it execute (`sstatus.MXR`), the hart will let read as the leaf does.
        Access::Load => reads && (found.reads || executes),
        Access::Store => writes,
        Access::Fetch => executes,
    };
    if !is_allowed {
        return None;
    }
    let mut level = found.level;
    // BOUND: the levels.
    while level > 0 && span(level) > below.size {
        level -= 1;
    }
    let memory_type = match found.memory_type {
        MemoryType::Board => below.attributes.memory_type,
        of_guest => of_guest,
    };
    let reads = found.reads && reads;
    let leaf = Leaf {
        host: HostPhysical(below.host.0 & !(span(level) - 1)),
        reads,
        writes: found.writes && writes && reads,
        executes: found.executes && executes,
        user: found.user,
        memory_type,
    };
    let splinters_of = if level < found.level { found.level } else { 0 };
    Some(Fill { address, level, splinters_of, contiguous: found.contiguous, entry: Entry::leaf(leaf) })
}
