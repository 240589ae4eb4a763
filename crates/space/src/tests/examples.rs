//! What one sees of a space, by example.
use super::board::{Board, board, guest};
use crate::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const ALL: Attributes = Attributes::new(Rights::ReadWriteExecute);

fn map(space: &mut Space<Board>, at: u64, host: u64, size: u64) -> Result<Reach, Error> {
    space.map(guest(at), HostPhysical(host), size, ALL).map(|mapped| mapped.fence().reach)
}

fn refused<T>(at: u64, what: Obstacle) -> Result<T, Error> {
    Err(Error { at: guest(at), what })
}

fn size_at(space: &Space<Board>, at: u64) -> Option<u64> {
    space.translate(guest(at)).map(|translation| translation.size)
}

#[test]
fn the_leaves_are_as_large_as_both_addresses_allow() {
    let (_, mut space) = board(Format::Sv39x4, 100);
    // From a page below 1 GiB to a page behind 2 GiB and 2 MiB.
    map(&mut space, GIB - PAGE, 5 * GIB - PAGE, GIB + 2 * MIB + 2 * PAGE).unwrap();
    let sizes = [GIB - PAGE, GIB, 2 * GIB, 2 * GIB + 2 * MIB].map(|at| size_at(&space, at));
    assert_eq!(sizes, [Some(PAGE), Some(GIB), Some(2 * MIB), Some(PAGE)]);
    assert_eq!([size_at(&space, GIB - 2 * PAGE), size_at(&space, 2 * GIB + 2 * MIB + PAGE)], [None, None]);
    // The host's address allows only 2 MiB, or only pages.
    map(&mut space, 8 * GIB, 2 * MIB, 4 * MIB).unwrap();
    map(&mut space, 16 * GIB, PAGE, 2 * MIB).unwrap();
    assert_eq!([size_at(&space, 8 * GIB), size_at(&space, 16 * GIB)], [Some(2 * MIB), Some(PAGE)]);
    assert_eq!(
        space.translate(guest(8 * GIB + 0x2345)),
        Some(Translation { host: HostPhysical(2 * MIB + 0x2345), attributes: ALL, size: 2 * MIB })
    );
}

#[test]
fn each_format_maps_up_to_its_last_address() {
    for (format, bits, largest) in
        [(Format::Sv39x4, 41, GIB), (Format::Sv48x4, 50, 512 * GIB), (Format::Sv57x4, 59, 256 * TIB)]
    {
        let end = 1u64 << bits;
        assert_eq!(format.end(), end);
        let (_, mut space) = board(format, 100);
        assert_eq!(map(&mut space, end - largest, 0, largest), Ok(Reach::Leaves));
        assert_eq!(size_at(&space, end - 1), Some(largest));
        assert_eq!(map(&mut space, end, 0, PAGE), refused(end, Obstacle::OutOfRange));
        assert_eq!(map(&mut space, end - PAGE, 0, 2 * PAGE), refused(end - PAGE, Obstacle::OutOfRange));
        assert_eq!(map(&mut space, PAGE, 0, 0u64.wrapping_sub(PAGE)), refused(PAGE, Obstacle::OutOfRange));
        assert_eq!(space.translate(guest(end)), None);
        // The last page of the large leaf, and again something else.
        let unmapped = space.unmap(guest(end - PAGE), PAGE).unwrap();
        assert_eq!(unmapped.fence().reach, Reach::Tables);
        let mut frames = Vec::new();
        unmapped.fenced(&mut space, |frame| frames.push(frame)).unwrap();
        assert_eq!(
            frames,
            [Frames { guest: guest(end - PAGE), host: HostPhysical(largest - PAGE), size: PAGE }]
        );
        assert_eq!(map(&mut space, end - PAGE, 1 << 55, PAGE), Ok(Reach::Leaves));
        assert_eq!(size_at(&space, end - largest), Some(largest / 512));
    }
    let (_, mut space) = board(Format::Sv57x4, 100);
    assert_eq!(map(&mut space, 0, (1 << 56) - PAGE, 2 * PAGE), refused(0, Obstacle::OutOfRange));
    assert_eq!(map(&mut space, 0, (1 << 56) - PAGE, PAGE), Ok(Reach::Tables));
}

#[test]
fn what_stands_in_the_way_is_told() {
    let (board, mut space) = board(Format::Sv39x4, 100);
    map(&mut space, 4 * MIB, 4 * MIB, 2 * MIB).unwrap();
    board.borrow_mut().stores.clear();
    assert_eq!(map(&mut space, 3 * MIB, 0, 2 * MIB), refused(4 * MIB, Obstacle::Mapped));
    assert_eq!(map(&mut space, 5 * MIB, 0, 2 * MIB), refused(5 * MIB, Obstacle::Mapped));
    assert_eq!(map(&mut space, 0, 0, 4 * GIB), refused(4 * MIB, Obstacle::Mapped));
    for (at, host, size) in [(1, 0, PAGE), (0, 1, PAGE), (0, 0, PAGE + 1)] {
        assert_eq!(map(&mut space, at, host, size), refused(at, Obstacle::Misaligned));
    }
    assert_eq!(space.unmap(guest(3 * MIB), 2 * MIB), refused(3 * MIB, Obstacle::NotMapped));
    assert_eq!(space.unmap(guest(5 * MIB), 2 * MIB), refused(6 * MIB, Obstacle::NotMapped));
    assert_eq!(space.protect(guest(5 * MIB), 2 * MIB, Rights::Read), refused(6 * MIB, Obstacle::NotMapped));
    assert!(board.borrow().stores.is_empty(), "nothing has been changed");

    let unmapped = space.unmap(guest(5 * MIB), PAGE).unwrap();
    assert_eq!(map(&mut space, 5 * MIB, 0, PAGE), refused(5 * MIB, Obstacle::Unfenced));
    assert_eq!(space.unmap(guest(4 * MIB), 2 * MIB), refused(5 * MIB, Obstacle::Unfenced));
    assert_eq!(
        refused::<()>(5 * MIB, Obstacle::Unfenced).unwrap_err().to_string(),
        "0x500000: what was mapped there is still to be fenced"
    );
    unmapped.fenced(&mut space, |_| ()).unwrap();
    map(&mut space, 5 * MIB, 0, PAGE).unwrap();
}

#[test]
fn nothing_is_what_one_can_always_change() {
    let (board, mut space) = board(Format::Sv39x4, 1);
    map(&mut space, 0, 0, 2 * MIB).unwrap();
    board.borrow_mut().stores.clear();
    assert_eq!(map(&mut space, MIB, 0, 0), Ok(Reach::Leaves));
    let unmapped = space.unmap(guest(MIB), 0).unwrap();
    unmapped.fenced(&mut space, |frames| panic!("{frames:?}")).unwrap();
    space.protect(guest(MIB), 0, Rights::Read).unwrap().fenced();
    assert!(board.borrow().stores.is_empty());
}

/// The fence may come late if nothing was taken away.
#[test]
fn rights_change_in_a_part_of_a_leaf() {
    let (_, mut space) = board(Format::Sv39x4, 100);
    map(&mut space, 0, 0, 2 * MIB).unwrap();
    let lowered = space.protect(guest(PAGE), PAGE, Rights::ReadExecute).unwrap();
    assert_eq!((lowered.fence().reach, lowered.takes_away()), (Reach::Tables, true));
    lowered.fenced();
    let rights = |space: &Space<_>, at| space.translate(guest(at)).unwrap().attributes.rights;
    assert_eq!(
        [0, PAGE, 2 * PAGE].map(|at| rights(&space, at)),
        [Rights::ReadWriteExecute, Rights::ReadExecute, Rights::ReadWriteExecute]
    );
    let raised = space.protect(guest(PAGE), PAGE, Rights::ReadWriteExecute).unwrap();
    assert_eq!((raised.fence().reach, raised.takes_away()), (Reach::Leaves, false));
    raised.fenced();
}

#[test]
fn memory_types_are_those_of_svpbmt() {
    let (_, mut space) = board(Format::Sv39x4, 100);
    for (page, memory_type) in
        [MemoryType::Board, MemoryType::NonCacheable, MemoryType::Device].into_iter().enumerate()
    {
        let attributes = Attributes { rights: Rights::ReadWrite, memory_type };
        let at = page as u64 * PAGE;
        space.map(guest(at), HostPhysical(at), PAGE, attributes).unwrap().later();
        assert_eq!(space.translate(guest(at)).unwrap().attributes, attributes);
        let entry = crate::entry::Entry::leaf(HostPhysical(at), attributes).0;
        assert_eq!(entry >> 61 & 3, page as u64);
    }
}

#[test]
fn too_few_tables_are_seen_before_anything_changes() {
    let (board, mut space) = board(Format::Sv48x4, 4);
    // A page either side of 1 GiB: tables of the levels 2, 1 and 0, and 1 and 0 once more.
    assert_eq!(map(&mut space, GIB - PAGE, 0, 2 * PAGE), refused(GIB - PAGE, Obstacle::NoTables));
    assert!(board.borrow().stores.is_empty());
    board.borrow_mut().limit = 5;
    map(&mut space, GIB - PAGE, 0, 2 * PAGE).unwrap();

    // Within a leaf of 1 GiB: the middle page takes two tables, and pages of two parts of 2 MiB take three.
    map(&mut space, 2 * GIB, 0, 2 * GIB).unwrap();
    board.borrow_mut().stores.clear();
    board.borrow_mut().limit = 6;
    assert_eq!(space.unmap(guest(2 * GIB + PAGE), PAGE), refused(2 * GIB + PAGE, Obstacle::NoTables));
    board.borrow_mut().limit = 7;
    assert_eq!(space.unmap(guest(2 * GIB + PAGE), 4 * MIB), refused(2 * GIB + PAGE, Obstacle::NoTables));
    assert!(board.borrow().stores.is_empty());
    board.borrow_mut().limit = 8;
    space.unmap(guest(2 * GIB + PAGE), 4 * MIB).unwrap().fenced(&mut space, |_| ()).unwrap();
    assert_eq!(board.borrow().used(), 8);
}

/// Two unmap the last of a table, one after the other: whose fence comes last frees it.
#[test]
fn tables_come_back_after_the_last_fence() {
    for order in [[0, 1], [1, 0]] {
        let (board, mut space) = board(Format::Sv39x4, 100);
        map(&mut space, 0, 0, 2 * PAGE).unwrap();
        let mut unmapped = [0, PAGE].map(|at| Some(space.unmap(guest(at), PAGE).unwrap()));
        assert_eq!(
            unmapped.each_ref().map(|one| one.as_ref().unwrap().fence().reach),
            [Reach::Leaves, Reach::Tables]
        );
        for (index, tables) in order.into_iter().zip([2, 0]) {
            unmapped[index].take().unwrap().fenced(&mut space, |_| ()).unwrap();
            assert_eq!(board.borrow().used(), tables);
        }
    }
}

/// A table that is empty, but not fenced, is used again.
#[test]
fn a_table_comes_back_to_life() {
    let (board, mut space) = board(Format::Sv39x4, 100);
    map(&mut space, 0, 0, PAGE).unwrap();
    let unmapped = space.unmap(guest(0), PAGE).unwrap();
    assert_eq!(map(&mut space, PAGE, 0, PAGE), Ok(Reach::Tables));
    assert_eq!(size_at(&space, PAGE), Some(PAGE));
    unmapped.fenced(&mut space, |_| ()).unwrap();
    assert_eq!((size_at(&space, PAGE), board.borrow().used()), (Some(PAGE), 2));
}

#[test]
fn frames_come_back_to_the_space_that_they_were_in() {
    let (_, mut one) = board(Format::Sv39x4, 100);
    let (board, _) = board(Format::Sv39x4, 100);
    let mut other = Space::new(Format::Sv39x4, Table(HostPhysical(0x100_0000)), board);
    map(&mut one, 0, 0, PAGE).unwrap();
    let unmapped = one.unmap(guest(0), PAGE).unwrap();
    let unmapped = unmapped.fenced(&mut other, |frames| panic!("{frames:?}")).unwrap_err();
    unmapped.fenced(&mut one, |_| ()).unwrap();
}
