//! Random changes of a space and of a plain model of it, and harts that fence when they like.
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::board::{Board, HARTS, Outcome, board, guest};
use crate::*;

/// What is mapped: by start, the end, the host's address and the attributes.
#[derive(Clone, Default)]
struct Model(BTreeMap<u64, (u64, u64, Attributes)>);

impl Model {
    fn at(&self, address: u64) -> Option<(u64, Attributes)> {
        let (start, (end, host, attributes)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some((host + address - start, *attributes))
    }

    fn outcome(&self, address: u64) -> Outcome {
        self.at(address).map(|(host, attributes)| (host, attributes.rights as u64))
    }

    /// Takes out all of a range, as pieces.
    fn take(&mut self, start: u64, end: u64) -> Vec<(u64, u64, u64, Attributes)> {
        let mut taken = Vec::new();
        let all: Vec<_> = self.0.iter().map(|(s, (e, h, a))| (*s, *e, *h, *a)).collect();
        for (from, to, host, attributes) in all.into_iter().filter(|(s, e, ..)| *s < end && start < *e) {
            self.0.remove(&from);
            let (cut_from, cut_to) = (from.max(start), to.min(end));
            if from < cut_from {
                self.0.insert(from, (cut_from, host, attributes));
            }
            if cut_to < to {
                self.0.insert(cut_to, (to, host + (cut_to - from), attributes));
            }
            taken.push((cut_from, cut_to, host + (cut_from - from), attributes));
        }
        taken
    }

    /// The first address of a range that is mapped.
    fn first_mapped(&self, start: u64, end: u64) -> Option<u64> {
        self.clone().take(start, end).first().map(|piece| piece.0)
    }

    /// The first that isn't.
    fn first_gap(&self, start: u64, end: u64) -> Option<u64> {
        let mut at = start;
        for (from, to, ..) in self.clone().take(start, end) {
            if from > at {
                break;
            }
            at = to;
        }
        (at < end).then_some(at)
    }
}

/// Something that is due.
enum Due {
    Map,
    Protect(Protected),
    Unmap(Unmapped, Vec<(u64, u64, u64, Attributes)>),
}

struct World {
    format: Format,
    board: Board,
    space: Space<Board>,
    /// What was mapped after each change.
    versions: Vec<Model>,
    /// Changes whose fences aren't all done: the number of the version that they made, and the fence.
    due: Vec<(usize, TableFence, Due)>,
    /// Per hart, the first version whose fence it hasn't executed.
    fenced: [usize; HARTS],
    /// Each `map` is followed by a fence as well.
    eager: bool,
    hosts: u64,
}

#[derive(Clone, Debug)]
enum Op {
    /// How far both addresses are aligned alike: to 4 KiB, 2 MiB or 1 GiB.
    Map {
        start: u64,
        size: u64,
        alike: u64,
        attributes: Attributes,
    },
    Unmap {
        start: u64,
        size: u64,
    },
    Protect {
        start: u64,
        size: u64,
        rights: Rights,
    },
    /// A hart executes so many of the fences that are due, from the first.
    Fence {
        hart: usize,
        count: usize,
    },
    /// What is fenced everywhere is ended, if it is in the set.
    End {
        which: u8,
    },
}

impl World {
    fn new(format: Format, tables: usize, eager: bool) -> Self {
        let (board, space) = board(format, tables);
        let versions = vec![Model::default()];
        Self { format, board, space, versions, due: Vec::new(), fenced: [1; HARTS], eager, hosts: 1 << 40 }
    }

    fn model(&self) -> &Model {
        self.versions.last().unwrap()
    }

    /// Ranges that were unmapped and have not come back.
    fn first_unfenced(&self, start: u64, end: u64) -> Option<u64> {
        let unfenced = self.due.iter().filter(|due| matches!(due.2, Due::Unmap(..))).map(|due| due.1);
        unfenced
            .filter(|fence| fence.start.0 < end && start < fence.start.0 + fence.size)
            .map(|fence| fence.start.0.max(start))
            .min()
    }

    /// What a map of this range must say.
    fn obstacle_to_map(&self, start: u64, end: u64) -> Option<Error> {
        let mapped = self.model().first_mapped(start, end).map(|at| (at, Obstacle::Mapped));
        let unfenced = self.first_unfenced(start, end).map(|at| (at, Obstacle::Unfenced));
        mapped
            .into_iter()
            .chain(unfenced)
            .min_by_key(|found| found.0)
            .map(|(at, what)| Error { at: guest(at), what })
    }

    /// And any other change.
    fn obstacle_to_change(&self, start: u64, end: u64) -> Option<Error> {
        let at = self.model().first_gap(start, end)?;
        let is_unfenced = self.first_unfenced(at, at + PAGE).is_some();
        Some(Error {
            at: guest(at),
            what: if is_unfenced { Obstacle::Unfenced } else { Obstacle::NotMapped },
        })
    }

    fn apply(&mut self, op: Op) {
        self.board.borrow_mut().stores.clear();
        let before = self.board.borrow().snapshot();
        match op {
            Op::Map { start, size, alike, attributes } => {
                let host = self.hosts + start % alike;
                self.hosts += size.next_multiple_of(1 << 40) + (1 << 40);
                let result = self.space.map(guest(start), HostPhysical(host), size, attributes);
                let mut model = self.model().clone();
                match result {
                    Ok(mapped) => {
                        assert_eq!(self.obstacle_to_map(start, start + size), None);
                        model.0.insert(start, (start + size, host, attributes));
                        self.changed(model, mapped.fence(), Due::Map);
                    }
                    Err(error) => self.refused(error, self.obstacle_to_map(start, start + size)),
                }
            }
            Op::Unmap { start, size } => match self.space.unmap(guest(start), size) {
                Ok(unmapped) => {
                    assert_eq!(self.obstacle_to_change(start, start + size), None);
                    let mut model = self.model().clone();
                    let taken = model.take(start, start + size);
                    self.changed(model, unmapped.fence(), Due::Unmap(unmapped, taken));
                }
                Err(error) => self.refused(error, self.obstacle_to_change(start, start + size)),
            },
            Op::Protect { start, size, rights } => match self.space.protect(guest(start), size, rights) {
                Ok(protected) => {
                    assert_eq!(self.obstacle_to_change(start, start + size), None);
                    let mut model = self.model().clone();
                    let taken = model.take(start, start + size);
                    assert_eq!(
                        protected.takes_away(),
                        taken.iter().any(|piece| !rights.include(piece.3.rights))
                    );
                    for (from, to, host, attributes) in taken {
                        model.0.insert(from, (to, host, Attributes { rights, ..attributes }));
                    }
                    self.changed(model, protected.fence(), Due::Protect(protected));
                }
                Err(error) => self.refused(error, self.obstacle_to_change(start, start + size)),
            },
            Op::Fence { hart, count } => self.fence(hart, count),
            Op::End { which } => self.end(|index| which >> (index % 8) & 1 != 0),
        }
        self.check(before);
    }

    fn changed(&mut self, model: Model, fence: TableFence, due: Due) {
        if self.eager || !matches!(due, Due::Map) {
            self.due.push((self.versions.len(), fence, due));
        }
        self.versions.push(model);
    }

    fn refused(&self, error: Error, expected: Option<Error>) {
        assert!(self.board.borrow().stores.is_empty(), "nothing has changed");
        match expected {
            Some(expected) => assert_eq!(error, expected),
            None => assert_eq!(error.what, Obstacle::NoTables),
        }
    }

    fn fence(&mut self, hart: usize, count: usize) {
        let due: Vec<_> = self.due.iter().filter(|due| due.0 >= self.fenced[hart]).collect();
        for (_, fence, _) in due.iter().take(count) {
            self.board.borrow_mut().fence(hart, self.format, *fence);
        }
        self.fenced[hart] = due.get(count).map_or(self.versions.len(), |next| next.0);
    }

    fn end(&mut self, which: impl Fn(usize) -> bool) {
        let everywhere = *self.fenced.iter().min().unwrap();
        for index in (0..self.due.len()).rev() {
            if self.due[index].0 >= everywhere || !which(index) {
                continue;
            }
            match self.due.remove(index).2 {
                Due::Map => {}
                Due::Protect(protected) => protected.fenced(),
                Due::Unmap(unmapped, taken) => {
                    let mut frames = Vec::new();
                    unmapped.fenced(&mut self.space, |piece| frames.push(piece)).unwrap();
                    // Leaf by leaf they are what was unmapped.
                    let mut frames = frames.into_iter();
                    for (from, to, host, _) in taken {
                        let mut at = from;
                        while at < to {
                            let frame = frames.next().expect("all comes back");
                            assert_eq!((frame.guest.0, frame.host.0), (at, host + (at - from)));
                            at += frame.size;
                        }
                        assert_eq!(at, to);
                    }
                    assert_eq!(frames.next(), None);
                }
            }
        }
    }

    /// Addresses at which something has changed, is mapped or was, and those around.
    fn samples(&self, of: impl Iterator<Item = u64>) -> BTreeSet<u64> {
        of.flat_map(|at| [at.wrapping_sub(PAGE), at, at.wrapping_add(8)])
            .filter(|at| *at < self.format.end())
            .collect()
    }

    fn check(&mut self, before: BTreeMap<Table, Vec<u64>>) {
        let models = &self.versions[self.versions.len().saturating_sub(2)..];
        let bounds: Vec<u64> = models
            .iter()
            .flat_map(|model| model.0.iter().flat_map(|(start, piece)| [*start, piece.0]))
            .collect();
        let samples = self.samples(bounds.iter().copied());
        let model = self.model();
        for &at in &samples {
            let translation = self.space.translate(guest(at)).map(|t| (t.host.0, t.attributes));
            assert_eq!(translation, model.at(at), "{at:#x}");
            assert_eq!(self.board.borrow().walks(None, self.format, at), BTreeSet::from([model.outcome(at)]));
        }
        // Whatever a hart has cached, it gets what was there since the change whose fence is the first that it still owes.
        for hart in 0..HARTS {
            let first = self.due.iter().map(|due| due.0).find(|due| *due >= self.fenced[hart]);
            let since = &self.versions[first.map_or(self.versions.len() - 1, |first| first - 1)..];
            // What it may have cached as invalid is gone for sure only when it owes nothing.
            let may_fault = first.is_some() || !self.eager;
            for &at in &samples {
                let mut allowed: BTreeSet<_> = since.iter().map(|model| model.outcome(at)).collect();
                allowed.extend(may_fault.then_some(None));
                let found = self.board.borrow().walks(Some(hart), self.format, at);
                assert!(
                    found.is_subset(&allowed),
                    "hart {hart} at {at:#x}: {found:x?}, not only {allowed:x?}"
                );
            }
        }
        // After each of the stores, every address is as before the change or as after it.
        let mut memory = self.board.borrow_mut();
        let after = memory.snapshot();
        let few: Vec<_> = samples.iter().copied().collect();
        let freed = before.into_iter().filter(|(table, _)| !after.contains_key(table));
        let mut all = after.clone();
        all.extend(freed.map(|(table, entries)| (table, vec![0; entries.len()])));
        memory.restore(all);
        let mut steps = 0;
        while steps < 600 && memory.undo() {
            steps += 1;
            // Of many stores in a row, some: most go to a table that isn't in use yet, or are alike.
            if steps > 4 && memory.stores.len() > 4 && steps % 61 != 0 {
                continue;
            }
            for &at in few.iter().take(24) {
                let allowed: Vec<_> = models.iter().map(|model| model.outcome(at)).collect();
                for found in memory.walks(None, self.format, at) {
                    assert!(
                        allowed.contains(&found),
                        "within the change, at {at:#x}: {found:x?}, not {allowed:x?}"
                    );
                }
            }
        }
        memory.restore(after);
    }

    /// All is fenced and unmapped: then no table is left.
    fn finish(mut self) {
        for turn in 0..2 {
            (0..HARTS).for_each(|hart| self.fence(hart, usize::MAX));
            self.end(|_| true);
            let pieces: Vec<_> =
                self.model().0.iter().map(|(start, piece)| (*start, piece.0 - start)).collect();
            assert!(turn == 0 || pieces.is_empty());
            self.board.borrow_mut().limit = usize::MAX;
            for (start, size) in pieces {
                self.apply(Op::Unmap { start, size });
            }
        }
        assert_eq!(self.board.borrow().used(), 0);
    }
}

const LARGE: u64 = 2 << 20;
const HUGE: u64 = 1 << 30;

/// Addresses near each other, and at the borders of large leaves.
fn addresses(end: u64) -> impl Strategy<Value = u64> {
    let bases = prop::sample::select(vec![0, LARGE, 2 * LARGE, HUGE, 2 * HUGE, end - HUGE, 1 << 39]);
    let pages = prop::sample::select(vec![0, 1, 2, 7, 510, 511]);
    (bases, pages).prop_map(|(base, page)| base + page * PAGE)
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (1..4u64).prop_map(|pages| pages * PAGE),
        2 => prop::sample::select(vec![511 * PAGE, LARGE, LARGE + PAGE, 2 * LARGE - PAGE, 2 * LARGE]),
        1 => prop::sample::select(vec![HUGE, HUGE + PAGE, HUGE - LARGE, 2 * HUGE]),
    ]
}

fn rights() -> impl Strategy<Value = Rights> {
    prop::sample::select(vec![
        Rights::Read,
        Rights::ReadWrite,
        Rights::Execute,
        Rights::ReadExecute,
        Rights::ReadWriteExecute,
    ])
}

fn ops(end: u64) -> impl Strategy<Value = Op> {
    let map = (addresses(end), sizes(), prop::sample::select(vec![PAGE, LARGE, HUGE, 1 << 39]), rights());
    let map = map.prop_map(move |(start, size, alike, rights)| {
        // Large ranges of small pages take too long here.
        let alike = if size >= HUGE - LARGE { alike.max(LARGE) } else { alike };
        Op::Map { start, size: size.min(end - start), alike, attributes: Attributes::new(rights) }
    });
    let range =
        move || (addresses(end), sizes()).prop_map(move |(start, size)| (start, size.min(end - start)));
    prop_oneof![
        4 => map,
        4 => range().prop_map(|(start, size)| Op::Unmap { start, size }),
        2 => (range(), rights()).prop_map(|((start, size), rights)| Op::Protect { start, size, rights }),
        3 => (0..HARTS, 1..4usize).prop_map(|(hart, count)| Op::Fence { hart, count }),
        3 => any::<u8>().prop_map(|which| Op::End { which }),
    ]
}

fn cases() -> impl Strategy<Value = (Format, bool, usize, Vec<Op>)> {
    let formats = prop::sample::select(vec![Format::Sv39x4, Format::Sv48x4, Format::Sv57x4]);
    let tables = prop_oneof![3 => Just(usize::MAX), 1 => 2..12usize];
    (formats, any::<bool>(), tables).prop_flat_map(|(format, eager, tables)| {
        (Just(format), Just(eager), Just(tables), prop::collection::vec(ops(format.end()), 1..40))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_changes((format, eager, tables, ops) in cases()) {
        let mut world = World::new(format, tables, eager);
        for op in ops {
            world.apply(op);
        }
        world.finish();
    }
}
