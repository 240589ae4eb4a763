//! A guest's interrupt controller, whichever kind it is: what its devices, its vCPUs and a restart want of it. Harts are the guest's, by
//! their ids there, a bit each in a set.
use crate::aia::Aia;
pub use crate::aplic::{Board, Msi};
use crate::bus::{self, Device, Window};
use crate::plic::{self, Plic, supervisor_context};

/// A controller. Shared by the vCPUs of one guest: all methods take `&self` and may run on several cores at once. Those that change something return
/// the harts whose [`Irqchip::is_pending`] must be looked at again. Some sources stand for others of the [`Board`] (*relayed* ones).
#[expect(
    clippy::large_enum_variant,
    reason = "one per guest, made at boot; a box would be a load more on the way of each access"
)]
pub enum Irqchip {
    /// A [`Plic`].
    Plic(Plic),
    /// An APLIC, with interrupt files or without ([`Aia`]).
    Aia(Aia),
}

impl Irqchip {
    /// Sources are numbered below this, in any kind.
    pub const SOURCES: usize = plic::SOURCES;

    /// The part of it that answers at an address in a guest's eyes, and the offset there.
    #[inline(always)] // Called in one place, on the way of each load and store.
    pub(crate) fn part_at(&self, address: u64) -> Option<(Device, u64)> {
        let registers = |offset| (Device::Irqchip, offset);
        match self {
            Self::Plic(_) => bus::PLIC.offset(address).map(registers),
            Self::Aia(aia) => bus::APLIC.offset(address).map(registers).or_else(|| {
                let files = Window { base: bus::IMSIC_BASE, size: aia.file_bytes() };
                files.offset(address).map(|offset| (Device::InterruptFiles, offset))
            }),
        }
    }

    /// Where it answers: its registers, and where messages come in. Of a kind without messages that is an empty range.
    pub(crate) const fn windows(&self) -> [Window; 2] {
        match self {
            Self::Plic(_) => [bus::PLIC, Window { base: 0, size: 0 }],
            Self::Aia(aia) => [bus::APLIC, Window { base: bus::IMSIC_BASE, size: aia.file_bytes() }],
        }
    }

    /// The line of `source` goes high (or stays high). Sources that don't exist are ignored.
    ///
    /// The line of one source must be driven by one party at a time.
    #[inline]
    pub fn raise(&self, source: u32) -> u64 {
        match self {
            Self::Plic(plic) => plic.raise(source),
            Self::Aia(aia) => aia.wire(source, true),
        }
    }

    /// The line of `source` goes low (or stays low). Sources that don't exist are ignored.
    #[inline]
    pub fn lower(&self, source: u32) -> u64 {
        match self {
            Self::Plic(plic) => plic.lower(source),
            Self::Aia(aia) => aia.wire(source, false),
        }
    }

    /// One request of `source`, which is relayed. Sources that don't exist are ignored.
    #[inline]
    pub fn request(&self, source: u32, board: &mut dyn Board) -> u64 {
        match self {
            Self::Plic(plic) => plic.request(source),
            Self::Aia(aia) => aia.drive(source, true, board),
        }
    }

    /// One request of `source`, which is an edge: any number of parties may make one at once. Sources that don't exist are ignored.
    #[inline(never)]
    pub fn pulse(&self, source: u32) -> u64 {
        match self {
            Self::Plic(plic) => plic.request(source),
            Self::Aia(aia) => aia.pulse(source),
        }
    }

    /// Is the external interrupt of a hart on? False for harts that don't exist.
    #[inline]
    pub fn is_pending(&self, hart: usize) -> bool {
        match self {
            Self::Plic(plic) => plic.external_pending(supervisor_context(hart)),
            Self::Aia(aia) => aia.is_pending(hart),
        }
    }

    /// Are its interrupts messages to interrupt files?
    #[inline]
    pub const fn has_files(&self) -> bool {
        matches!(self, Self::Aia(aia) if aia.file_bytes() > 0)
    }

    /// A load of `width` bytes at `offset` in the controller's registers: the value, and the harts to look at again.
    #[inline(always)] // Called in one place; most of what guests want of their controller.
    pub fn read(&self, offset: u64, width: u8, board: &mut dyn Board) -> (u32, u64) {
        match self {
            Self::Plic(plic) => {
                // Nothing is completed by a load.
                let (value, effects) = plic.read(offset, width);
                (value, effects.harts)
            }
            Self::Aia(aia) => aia.read(offset, width, board),
        }
    }

    /// A store of `value`, `width` bytes wide, at `offset` in the controller's registers.
    #[inline]
    pub fn write(&self, offset: u64, width: u8, value: u32, board: &mut dyn Board) -> u64 {
        match self {
            Self::Plic(plic) => {
                let effects = plic.write(offset, width, value);
                // BOUND: one source.
                effects.completed.into_iter().for_each(|source| board.complete(source, false));
                effects.harts
            }
            Self::Aia(aia) => aia.write(offset, width, value, board),
        }
    }

    /// Sends one of the messages that a store has left for [later](Board::send_later): is another one left, and the harts to look at again.
    pub fn send_next(&self, board: &mut dyn Board) -> (bool, u64) {
        match self {
            Self::Plic(_) => (false, 0),
            Self::Aia(aia) => aia.send_next(board),
        }
    }

    /// A store where messages come in, as [`Aia::store_to_file`].
    pub fn store_to_file(&self, offset: u64, width: u8, value: u32) -> u64 {
        match self {
            Self::Plic(_) => 0,
            Self::Aia(aia) => aia.store_to_file(offset, width, value),
        }
    }

    /// Puts a part of it back to reset, from part 0 on; false if that was the last one. A part takes about a microsecond, and two more if it recalls sources.
    ///
    /// No hart claims or completes meanwhile; lines may be driven, and keep what they are driven to from then on.
    pub fn reset(&self, part: usize, board: &mut dyn Board) -> bool {
        match self {
            Self::Plic(plic) if part < Plic::SOURCE_WORDS => {
                plic.reset_sources(part);
                true
            }
            Self::Plic(plic) => {
                plic.reset_thresholds();
                false
            }
            Self::Aia(aia) => aia.reset(part, board),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use super::*;
    use crate::aplic::layout::{
        CLAIMI, DOMAINCFG, EDGE1, HART_SHIFT, IDC, IDC_SIZE, IDELIVERY, INTERRUPT_ENABLE, LEVEL1, SETIENUM,
        SETIPNUM, SOURCECFG, TARGET,
    };
    use crate::plic::layout::{CLAIM_COMPLETE, CONTEXT, CONTEXT_SIZE, ENABLE, ENABLE_SIZE};
    use crate::zicsr::CsrAccess;
    use std::vec::Vec;

    const SOURCE: u32 = 10;
    const IDENTITY: u32 = 5;
    /// Where hart 1 claims.
    const PLIC_CLAIM: u64 = CONTEXT + supervisor_context(1) as u64 * CONTEXT_SIZE + CLAIM_COMPLETE;
    const APLIC_CLAIM: u64 = IDC + IDC_SIZE + CLAIMI;
    const APLIC_SOURCECFG: u64 = SOURCECFG + 4 * SOURCE as u64;

    /// A controller in which source 10 interrupts hart 1, as its driver sees it.
    struct Wired {
        chip: Irqchip,
        /// The sources that have been served.
        served: Vec<u32>,
    }

    impl Wired {
        /// One of each kind.
        fn all(relayed: bool) -> [Self; 3] {
            let plic = Irqchip::Plic(Plic::new());
            let context = supervisor_context(1) as u64;
            assert_eq!(plic.write(4 * u64::from(SOURCE), 4, 1, &mut |_| {}), 0);
            assert_eq!(plic.write(ENABLE + context * ENABLE_SIZE, 4, 1 << SOURCE, &mut |_| {}), 0b10);
            let direct = Self::aia(Aia::direct(), relayed, 1);
            direct.write(IDC + IDC_SIZE + IDELIVERY, 4, 1, &mut |_| {});
            let files = Aia::with_files(2);
            let file = files.file(1).expect("it has one");
            // eidelivery, eie
            assert_eq!(file.access(0x70, CsrAccess::Write(1)), Some(0));
            assert_eq!(file.access(0xc0, CsrAccess::Write(1 << IDENTITY)), Some(0));
            let messages = Self::aia(files, relayed, IDENTITY);
            [plic, direct, messages].map(|chip| Self { chip, served: Vec::new() })
        }

        /// `target` has a priority or an identity.
        fn aia(aia: Aia, relayed: bool, number: u32) -> Irqchip {
            aia.add(SOURCE, relayed);
            for (offset, value) in [
                (DOMAINCFG, INTERRUPT_ENABLE),
                (APLIC_SOURCECFG, LEVEL1),
                (TARGET + 4 * u64::from(SOURCE), 1 << HART_SHIFT | number),
                (SETIENUM, SOURCE),
            ] {
                aia.write(offset, 4, value, &mut |_| {});
            }
            Irqchip::Aia(aia)
        }

        /// What hart 1 claims: is it the source?
        fn claims(&mut self) -> bool {
            let served = &mut self.served;
            match &self.chip {
                Irqchip::Plic(_) => {
                    self.chip.read(PLIC_CLAIM, 4, &mut |source| served.push(source)).0 == SOURCE
                }
                Irqchip::Aia(aia) => match aia.file(1) {
                    Some(file) => file.claim() >> 16 == IDENTITY,
                    None => aia.read(APLIC_CLAIM, 4, &mut |source| served.push(source)).0 >> 16 == SOURCE,
                },
            }
        }

        /// The handler is done: what its driver does so that the next one comes.
        fn completes(&mut self) {
            let served = &mut self.served;
            match &self.chip {
                Irqchip::Plic(_) => {
                    self.chip.write(PLIC_CLAIM, 4, SOURCE, &mut |source| served.push(source));
                }
                // A message of a level is asked for again (section 4.9.2).
                Irqchip::Aia(aia) if aia.file(1).is_some() => {
                    aia.write(SETIPNUM, 4, SOURCE, &mut |source| served.push(source));
                }
                // It claims until nothing is left.
                Irqchip::Aia(_) => assert!(!self.claims()),
            }
        }
    }

    #[test]
    fn a_line_interrupts_its_hart_until_it_is_served() {
        for mut wired in Wired::all(false) {
            assert_eq!(wired.chip.raise(SOURCE), 0b10);
            assert_eq!([0, 1, 2].map(|hart| wired.chip.is_pending(hart)), [false, true, false]);
            assert!(wired.claims());
            wired.chip.lower(SOURCE);
            wired.completes();
            assert!(!wired.chip.is_pending(1));
            assert!(!wired.chip.is_pending(usize::MAX / 4), "a hart that doesn't exist");
        }
    }

    #[test]
    fn a_line_that_stays_up_interrupts_again_when_it_has_been_served() {
        for mut wired in Wired::all(false) {
            wired.chip.raise(SOURCE);
            assert!(wired.claims());
            if !matches!(&wired.chip, Irqchip::Aia(aia) if aia.file(1).is_none()) {
                wired.completes();
            }
            assert!(wired.chip.is_pending(1) && wired.claims());
        }
    }

    #[test]
    fn who_stands_behind_a_request_is_told_when_it_is_served() {
        let [plic, direct, _] = Wired::all(true);
        for mut wired in [plic, direct] {
            assert_eq!(wired.chip.request(SOURCE, &mut |_| panic!("it hasn't been")), 0b10);
            assert!(wired.claims());
            assert_eq!(wired.served, []);
            wired.completes();
            assert_eq!(wired.served, [SOURCE]);
            assert!(!wired.chip.is_pending(1));
        }
    }

    /// A level and an edge alike: drivers needn't tell of either that it may come again.
    #[test]
    fn what_became_a_message_is_served() {
        for mode in [LEVEL1, EDGE1] {
            let [.., messages] = Wired::all(true);
            messages.chip.write(APLIC_SOURCECFG, 4, mode, &mut |_| {});
            let mut served = Vec::new();
            assert_eq!(messages.chip.request(SOURCE, &mut |source| served.push(source)), 0b10);
            assert_eq!(served, [SOURCE]);
        }
    }

    #[test]
    fn messages_of_harts_come_in_through_their_pages() {
        let [plic, direct, messages] = Wired::all(false);
        for (offset, width, value, expected) in [
            (0x1000, 4, IDENTITY, 0b10),
            (0x1000, 4, IDENTITY, 0), // it is pending
            (0, 4, IDENTITY, 0),      // hart 0 listens to nothing
            (0x1004, 4, IDENTITY, 0), // big-endian
            (0x1000, 8, IDENTITY, 0),
            (0x1000, 2, IDENTITY, 0),
            (0x1000, 4, 64, 0),
            (0x1000, 4, 0, 0),
            (0x2000, 4, IDENTITY, 0),
            (u64::MAX - 0xfff, 4, IDENTITY, 0),
        ] {
            assert_eq!(
                messages.chip.store_to_file(offset, width, value),
                expected,
                "{offset:#x} {width} {value}"
            );
            assert_eq!(plic.chip.store_to_file(offset, width, value), 0);
            assert_eq!(direct.chip.store_to_file(offset, width, value), 0);
        }
    }

    /// Also one that comes while a handler has the last one.
    #[test]
    fn each_edge_interrupts_once() {
        for mut wired in Wired::all(false) {
            if let Irqchip::Aia(aia) = &wired.chip {
                aia.write(APLIC_SOURCECFG, 4, EDGE1, &mut |_| {});
            }
            assert_eq!(wired.chip.pulse(SOURCE), 0b10);
            assert!(wired.claims());
            assert!(!wired.chip.is_pending(1));
            wired.chip.pulse(SOURCE);
            // The completion of a PLIC. Drivers of edges do nothing else.
            wired.chip.write(PLIC_CLAIM, 4, SOURCE, &mut |_| {});
            assert!(wired.chip.is_pending(1));
            assert!(wired.claims());
            wired.chip.write(PLIC_CLAIM, 4, SOURCE, &mut |_| {});
            assert!(!wired.chip.is_pending(1));
            let unknown = [0, 96, u32::MAX].map(|source| wired.chip.pulse(source));
            assert_eq!(unknown, [0; 3], "there are no such sources");
        }
    }

    #[test]
    fn after_all_parts_are_reset_nothing_is_left() {
        for wired in Wired::all(false) {
            wired.chip.raise(SOURCE);
            let parts = (0..).take_while(|part| wired.chip.reset(*part, &mut |_| {})).count();
            assert!(!wired.chip.is_pending(1));
            assert_eq!(wired.chip.raise(SOURCE), 0, "nobody listens");
            assert_eq!(wired.chip.store_to_file(0x1000, 4, IDENTITY), 0, "nobody listens");
            assert_eq!(parts, Irqchip::SOURCES / 32);
        }
    }
}
