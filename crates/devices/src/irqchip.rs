//! A guest's interrupt controller, whichever kind it is: what its devices, its vCPUs and a restart want of it. Harts are the guest's, by
//! their ids there, a bit each in a set.
use crate::aplic::{Aplic, Msi, Outside};
use crate::bus::{self, Window};
use crate::plic::{self, Plic, supervisor_context};

/// A controller. Shared by the vCPUs of one guest: all methods take `&self` and may run on several cores at once. Those that change something return
/// the harts whose [`Irqchip::is_pending`] must be looked at again.
#[expect(clippy::large_enum_variant, reason = "there is one for each guest, where it stays")]
pub enum Irqchip {
    /// A [`Plic`].
    Plic(Plic),
    /// An [`Aplic`] that interrupts harts itself.
    Aplic(Aplic),
}

/// Nobody has to be told of what changes when a line is driven: a domain that interrupts harts itself sends no messages, and nothing has been served.
struct Nobody;

impl Outside for Nobody {
    fn send(&mut self, _: Msi) {}
    fn complete(&mut self, _: u32) {}
}

impl Irqchip {
    /// Sources are numbered below this, in any kind.
    pub const SOURCES: usize = plic::SOURCES;

    /// Where its registers are, in a guest's eyes.
    #[inline(always)]
    pub const fn window(&self) -> Window {
        match self {
            Self::Plic(_) => bus::PLIC,
            Self::Aplic(_) => bus::APLIC,
        }
    }

    /// The line of `source` goes high (or stays high). Sources that don't exist are ignored.
    ///
    /// The line of one source must be driven by one party at a time.
    #[inline]
    pub fn raise(&self, source: u32) -> u64 {
        match self {
            Self::Plic(plic) => plic.raise(source),
            Self::Aplic(aplic) => aplic.drive(source, true, &mut Nobody),
        }
    }

    /// The line of `source` goes low (or stays low). Sources that don't exist are ignored.
    #[inline]
    pub fn lower(&self, source: u32) -> u64 {
        match self {
            Self::Plic(plic) => plic.lower(source),
            Self::Aplic(aplic) => aplic.drive(source, false, &mut Nobody),
        }
    }

    /// One request of `source`, whose line is another controller's. Sources that don't exist are ignored.
    #[inline]
    pub fn request(&self, source: u32) -> u64 {
        match self {
            Self::Plic(plic) => plic.request(source),
            Self::Aplic(aplic) => aplic.drive(source, true, &mut Nobody),
        }
    }

    /// One request of `source`, which is an edge: any number of parties may make one at once. Sources that don't exist are ignored.
    #[inline(never)]
    pub fn pulse(&self, source: u32) -> u64 {
        match self {
            Self::Plic(plic) => plic.request(source),
            Self::Aplic(aplic) => aplic.pulse(source, &mut Nobody),
        }
    }

    /// Is the external interrupt of a hart on? False for harts that don't exist.
    #[inline]
    pub fn is_pending(&self, hart: usize) -> bool {
        match self {
            Self::Plic(plic) => plic.external_pending(supervisor_context(hart)),
            Self::Aplic(aplic) => aplic.is_pending(hart),
        }
    }

    /// A load of `width` bytes at `offset` in the controller's window: the value, and the harts to look at again.
    #[inline(always)] // Called in one place; most of what guests want of their controller.
    pub fn read(&self, offset: u64, width: u8, outside: &mut impl Outside) -> (u32, u64) {
        match self {
            Self::Plic(plic) => {
                // Nothing is completed by a load.
                let (value, effects) = plic.read(offset, width);
                (value, effects.harts)
            }
            Self::Aplic(aplic) => aplic.read(offset, width, outside),
        }
    }

    /// A store of `value`, `width` bytes wide, at `offset` in the controller's window.
    #[inline]
    pub fn write(&self, offset: u64, width: u8, value: u32, outside: &mut impl Outside) -> u64 {
        match self {
            Self::Plic(plic) => {
                let effects = plic.write(offset, width, value);
                if let Some(source) = effects.completed {
                    outside.complete(source);
                }
                effects.harts
            }
            Self::Aplic(aplic) => aplic.write(offset, width, value, outside),
        }
    }

    /// Puts a part of it back to reset, from part 0 on; false if that was the last one. A part takes about a microsecond.
    ///
    /// No hart claims or completes meanwhile; lines may be driven, and keep what they are driven to from then on.
    pub fn reset(&self, part: usize) -> bool {
        match self {
            Self::Plic(plic) if part < Plic::SOURCE_WORDS => {
                plic.reset_sources(part);
                true
            }
            Self::Plic(plic) => {
                plic.reset_thresholds();
                false
            }
            Self::Aplic(aplic) => aplic.reset(part),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use super::*;
    use crate::aplic::Delivery;
    use crate::plic::layout::{CLAIM_COMPLETE, CONTEXT, CONTEXT_SIZE, ENABLE, ENABLE_SIZE};
    use std::vec::Vec;

    const SOURCE: u32 = 10;
    /// Where hart 1 claims.
    const PLIC_CLAIM: u64 = CONTEXT + supervisor_context(1) as u64 * CONTEXT_SIZE + CLAIM_COMPLETE;
    const APLIC_CLAIM: u64 = 0x4000 + 32 + 0x1c;
    /// As `sourcecfg` has it.
    const EDGE_RISING: u32 = 4;

    /// The sources that have been served.
    #[derive(Default)]
    struct Served(Vec<u32>);

    impl Outside for Served {
        fn send(&mut self, msi: Msi) {
            panic!("{msi:?}");
        }

        fn complete(&mut self, source: u32) {
            self.0.push(source);
        }
    }

    /// Each kind, in which source 10 interrupts hart 1, and where that hart claims.
    fn wired(relayed: bool) -> [(Irqchip, u64); 2] {
        let plic = Irqchip::Plic(Plic::new());
        let context = supervisor_context(1) as u64;
        assert_eq!(plic.write(4 * u64::from(SOURCE), 4, 1, &mut Nobody), 0);
        assert_eq!(plic.write(ENABLE + context * ENABLE_SIZE, 4, 1 << SOURCE, &mut Nobody), 0b10);
        let aplic = Aplic::new(Delivery::Direct);
        aplic.add(SOURCE, relayed);
        let aplic = Irqchip::Aplic(aplic);
        for (offset, value) in [
            (0, 1 << 8),
            (4 * u64::from(SOURCE), 6),
            (0x3000 + 4 * u64::from(SOURCE), 1 << 18 | 1),
            (0x1edc, SOURCE),
            (0x4000 + 32, 1),
        ] {
            aplic.write(offset, 4, value, &mut Nobody);
        }
        [(plic, PLIC_CLAIM), (aplic, APLIC_CLAIM)]
    }

    fn claimed(chip: &Irqchip, claim: u64, served: &mut Served) -> u32 {
        match (chip, chip.read(claim, 4, served).0) {
            (Irqchip::Plic(_), source) => source,
            (Irqchip::Aplic(_), top) => top >> 16,
        }
    }

    #[test]
    fn a_line_interrupts_its_hart_until_it_is_served() {
        for (chip, claim) in wired(false) {
            let mut served = Served::default();
            assert_eq!(chip.raise(SOURCE), 0b10);
            assert_eq!([0, 1, 2].map(|hart| chip.is_pending(hart)), [false, true, false]);
            assert_eq!(claimed(&chip, claim, &mut served), SOURCE);
            chip.lower(SOURCE);
            chip.write(claim, 4, SOURCE, &mut served);
            assert!(!chip.is_pending(1));
            assert!(!chip.is_pending(usize::MAX / 4), "a hart that doesn't exist");
        }
    }

    #[test]
    fn who_stands_behind_a_request_is_told_when_it_is_served() {
        for (chip, claim) in wired(true) {
            let mut served = Served::default();
            assert_eq!(chip.request(SOURCE), 0b10);
            assert_eq!(claimed(&chip, claim, &mut served), SOURCE);
            assert_eq!(served.0, []);
            // The completion of a PLIC; to an APLIC it says nothing, but there nothing is left that could be claimed.
            chip.write(claim, 4, SOURCE, &mut served);
            assert_eq!(claimed(&chip, claim, &mut served), 0);
            assert_eq!(served.0, [SOURCE]);
            assert!(!chip.is_pending(1));
        }
    }

    /// Also one that comes while a handler has the last one.
    #[test]
    fn each_edge_interrupts_once() {
        for (chip, claim) in wired(false) {
            let mut served = Served::default();
            if let Irqchip::Aplic(aplic) = &chip {
                aplic.write(4 * u64::from(SOURCE), 4, EDGE_RISING, &mut Nobody);
            }
            assert_eq!(chip.pulse(SOURCE), 0b10);
            assert_eq!(claimed(&chip, claim, &mut served), SOURCE);
            assert!(!chip.is_pending(1));
            chip.pulse(SOURCE);
            chip.write(claim, 4, SOURCE, &mut served);
            assert!(chip.is_pending(1));
            assert_eq!(claimed(&chip, claim, &mut served), SOURCE);
            chip.write(claim, 4, SOURCE, &mut served);
            assert!(!chip.is_pending(1));
            assert_eq!(
                [0, 96, u32::MAX].map(|source| chip.pulse(source)),
                [0; 3],
                "there are no such sources"
            );
        }
    }

    #[test]
    fn after_all_parts_are_reset_nothing_is_left() {
        for (chip, _) in wired(false) {
            chip.raise(SOURCE);
            let parts = (0..).take_while(|part| chip.reset(*part)).count();
            assert!(!chip.is_pending(1));
            assert_eq!(chip.raise(SOURCE), 0, "nobody listens");
            assert_eq!(parts, Irqchip::SOURCES / 32);
        }
    }
}
