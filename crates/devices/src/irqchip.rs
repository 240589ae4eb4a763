//! A guest's interrupt controller, whichever kind it is: what its devices, its vCPUs and a restart want of it. Harts are the guest's, by
//! their ids there, a bit each in a set.
use crate::plic::{self, Plic, supervisor_context};

/// A controller. Shared by the vCPUs of one guest: all methods take `&self` and may run on several cores at once.
pub enum Irqchip {
    /// A [`Plic`].
    Plic(Plic),
}

/// What an operation may have changed outside of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    /// The harts whose [`Irqchip::is_pending`] must be looked at again.
    pub harts: u64,
    /// A source whose handler has completed. Where it stands for a physical interrupt, that one can be completed now.
    pub completed: Option<u32>,
}

impl Effects {
    /// Nothing changed.
    pub const NONE: Self = Self { harts: 0, completed: None };

    pub(crate) const fn on(harts: u64) -> Self {
        Self { harts, completed: None }
    }
}

impl Irqchip {
    /// Sources are numbered below this, in any kind.
    pub const SOURCES: usize = plic::SOURCES;

    /// The line of `source` goes high (or stays high). Returns the harts to look at again. Sources that don't exist are ignored.
    ///
    /// The line of one source must be driven by one party at a time.
    #[inline]
    pub fn raise(&self, source: u32) -> u64 {
        match self {
            Self::Plic(plic) => plic.raise(source),
        }
    }

    /// The line of `source` goes low (or stays low). Returns the harts to look at again. Sources that don't exist are ignored.
    #[inline]
    pub fn lower(&self, source: u32) -> u64 {
        match self {
            Self::Plic(plic) => plic.lower(source),
        }
    }

    /// One request of `source`, whose line is another controller's. Returns the harts to look at again. Sources that don't exist are ignored.
    #[inline]
    pub fn request(&self, source: u32) -> u64 {
        match self {
            Self::Plic(plic) => plic.request(source),
        }
    }

    /// Is the external interrupt of a hart on? False for harts that don't exist.
    #[inline]
    pub fn is_pending(&self, hart: usize) -> bool {
        match self {
            Self::Plic(plic) => plic.external_pending(supervisor_context(hart)),
        }
    }

    /// A load of `width` bytes at `offset` in the controller's window: the value, and what the load changed.
    #[inline(always)] // Called in one place; most of what guests want of their controller.
    pub fn read(&self, offset: u64, width: u8) -> (u32, Effects) {
        match self {
            Self::Plic(plic) => plic.read(offset, width),
        }
    }

    /// A store of `value`, `width` bytes wide, at `offset` in the controller's window.
    #[inline]
    pub fn write(&self, offset: u64, width: u8, value: u32) -> Effects {
        match self {
            Self::Plic(plic) => plic.write(offset, width, value),
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
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::plic::layout::{CLAIM_COMPLETE, CONTEXT, CONTEXT_SIZE, ENABLE, ENABLE_SIZE};

    const SOURCE: u32 = 10;

    /// Source 10 interrupts hart 1, through its supervisor context.
    fn wired() -> Irqchip {
        let chip = Irqchip::Plic(Plic::new());
        let context = supervisor_context(1) as u64;
        chip.write(4 * u64::from(SOURCE), 4, 1);
        let effects = chip.write(ENABLE + context * ENABLE_SIZE, 4, 1 << SOURCE);
        assert_eq!(effects, Effects { harts: 0b10, completed: None });
        chip
    }

    #[test]
    fn a_line_interrupts_its_hart_until_it_is_served() {
        let chip = wired();
        assert_eq!(chip.raise(SOURCE), 0b10);
        assert_eq!([0, 1, 2].map(|hart| chip.is_pending(hart)), [false, true, false]);
        let claim = CONTEXT + supervisor_context(1) as u64 * CONTEXT_SIZE + CLAIM_COMPLETE;
        assert_eq!(chip.read(claim, 4), (SOURCE, Effects { harts: 0b10, completed: None }));
        assert!(!chip.is_pending(1));
        assert_eq!(chip.lower(SOURCE), 0);
        assert_eq!(chip.write(claim, 4, SOURCE), Effects { harts: 0, completed: Some(SOURCE) });
        assert!(!chip.is_pending(usize::MAX / 4), "a hart that doesn't exist");
    }

    #[test]
    fn after_all_parts_are_reset_nothing_is_left() {
        let chip = wired();
        chip.raise(SOURCE);
        let parts = (0..).take_while(|part| chip.reset(*part)).count();
        assert!(!chip.is_pending(1));
        assert_eq!(chip.raise(SOURCE), 0, "nobody listens");
        assert_eq!(parts, Irqchip::SOURCES / 32);
    }
}
