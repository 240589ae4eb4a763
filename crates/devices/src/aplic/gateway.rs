//! What an APLIC keeps for each source: one word, so that each change of it is one atomic step (AIA, sections 4.5.2 and 4.7).

/// How a domain's interrupts reach its harts (`domaincfg.DM`). Of a guest's controller it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The controller interrupts them itself, and they claim.
    Direct,
    /// By messages to their interrupt files ([`crate::imsic`]).
    Msi,
}

/// The mode of a source (`sourcecfg.SM`, table 4.2). Detached sources, which only software can make pending, are edge-sensitive to nothing.
mod mode {
    pub(super) use super::super::layout::{DETACHED, EDGE1, LEVEL0, LEVEL1};

    pub(super) const INACTIVE: u32 = 0;
    /// Of the modes from [`EDGE1`] on: the low wire is the one that asks.
    pub(super) const INVERTED: u32 = 1;
    /// The bits of the mode.
    pub(super) const MASK: u32 = 7;
}

/// What happens to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// Its wire goes high or low, or stays so.
    Wire(bool),
    /// `sourcecfg` is written. Modes that are reserved make it inactive (the field is WARL), and so does a delegation: there is no child domain.
    Configure(u32),
    /// `setip`, `setipnum`
    SetPending,
    /// `in_clrip`, `clripnum`
    ClearPending,
    /// `setie`, `setienum`
    Enable,
    /// `clrie`, `clrienum`
    Disable,
    /// Its handler has done what it wants to do, so a wire that is high asks again. Only of a source that is [in service](Gateway::is_in_service).
    Complete,
    /// The physical controller sends its messages to where this domain would. Only while it is switched off there: who has it in hand switches it on behind that.
    Redirect,
    /// It does so no longer.
    Recall,
}

/// The state of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gateway(pub(super) u32);

impl Gateway {
    const WIRE: u32 = 1 << 3;
    const PENDING: u32 = 1 << 4;
    const ENABLED: u32 = 1 << 5;
    const EXISTS: u32 = 1 << 6;
    const RELAYED: u32 = 1 << 7;
    const IN_SERVICE: u32 = 1 << 8;
    const REDIRECTED: u32 = 1 << 9;
    const REDIRECTABLE: u32 = 1 << 10;
    /// What makes it ask for attention.
    const READY: u32 = Self::PENDING | Self::ENABLED;

    /// Of a source that the guest hasn't got: nothing ever changes.
    pub(super) const ABSENT: Self = Self(0);
    /// Of a source whose wire a device of the guest drives: after reset, inactive.
    pub(super) const WIRED: Self = Self(Self::EXISTS);
    /// Of a source that stands for a physical interrupt, whose true wire isn't seen here: it is taken to be high while the interrupt is
    /// [held](Gateway::is_held).
    pub(super) const RELAYED_FROM_BOARD: Self = Self(Self::EXISTS | Self::RELAYED);
    /// The same of one whose messages may come straight from the physical controller, if that can send them.
    pub(super) const REDIRECTABLE_FROM_BOARD: Self = Self(Self::RELAYED_FROM_BOARD.0 | Self::REDIRECTABLE);

    const fn has(self, bits: u32) -> bool {
        self.0 & bits == bits
    }

    const fn with(self, bits: u32, on: bool) -> Self {
        if on { Self(self.0 | bits) } else { Self(self.0 & !bits) }
    }

    /// `sourcecfg`
    pub(super) const fn mode(self) -> u32 {
        self.0 & mode::MASK
    }

    /// Is the domain the one that handles it?
    pub(super) const fn is_active(self) -> bool {
        self.mode() != mode::INACTIVE
    }

    /// Is it the level of its wire that asks?
    pub(super) const fn is_level(self) -> bool {
        matches!(self.mode(), mode::LEVEL1 | mode::LEVEL0)
    }

    /// Is its pending bit set?
    pub(super) const fn is_pending(self) -> bool {
        self.has(Self::PENDING)
    }

    /// Is its enable bit set?
    pub(super) const fn is_enabled(self) -> bool {
        self.has(Self::ENABLED)
    }

    /// Does it ask for attention?
    pub(super) const fn is_ready(self) -> bool {
        self.has(Self::READY)
    }

    /// Does it stand for a physical interrupt?
    pub(super) const fn relayed(self) -> bool {
        self.has(Self::RELAYED)
    }

    /// Has the physical interrupt come, and is held back at its controller until it has been served? While it asks here it is, and while it would ask if the guest
    /// had it do so; and while it is [in service](Self::is_in_service).
    pub(super) const fn is_held(self) -> bool {
        self.has(Self::RELAYED | Self::WIRE)
    }

    /// Has what made it `after` served the physical interrupt, so that it isn't held any more?
    pub(super) const fn is_released_by(self, after: Self) -> bool {
        self.is_held() && !after.is_held()
    }

    /// Has a hart claimed it, a level, and is still to [complete](Event::Complete) it? It is [held](Self::is_held) then.
    pub(super) const fn is_in_service(self) -> bool {
        self.has(Self::IN_SERVICE)
    }

    /// Could its messages come straight from the physical controller, which they don't yet?
    pub(super) const fn is_to_be_redirected(self) -> bool {
        self.0 & (Self::REDIRECTABLE | Self::REDIRECTED) == Self::REDIRECTABLE
    }

    /// Do its messages come straight from the physical controller?
    pub(super) const fn is_redirected(self) -> bool {
        self.has(Self::REDIRECTED)
    }

    /// The "rectified input value": does the wire ask? Whether a physical one is inverted is the physical controller's matter.
    pub(super) const fn rectified(self) -> bool {
        let inverted = self.0 & mode::INVERTED != 0 && !self.relayed();
        self.has_input() && self.has(Self::WIRE) != inverted
    }

    /// Can its wire ask? That of one that is inactive or detached can't.
    pub(super) const fn has_input(self) -> bool {
        self.mode() >= mode::EDGE1
    }

    /// The state after an event: "precise effects on interrupt-pending bits" (section 4.7).
    #[must_use]
    pub(super) const fn after(self, event: Event, delivery: Delivery) -> Self {
        if !self.has(Self::EXISTS) {
            return self;
        }
        let asked = self.rectified();
        let next = match event {
            Event::Wire(high) => {
                let next = self.with(Self::WIRE, high);
                next.with(Self::PENDING, self.is_pending() || next.rectified() && !asked)
            }
            Event::Configure(value) => self.configured(value),
            Event::SetPending => {
                self.with(Self::PENDING, self.is_pending() || self.is_active() && (!self.is_level() || asked))
            }
            Event::ClearPending => self.with(Self::PENDING, false),
            Event::Enable => self.with(Self::ENABLED, self.is_active()),
            Event::Disable => self.with(Self::ENABLED, false),
            Event::Complete => self.with(Self::IN_SERVICE | Self::WIRE, false),
            Event::Redirect => self.with(Self::REDIRECTED, true),
            Event::Recall => self.with(Self::REDIRECTED, false),
        };
        // Nothing comes from there that isn't switched on here, or is to be something else from now on.
        let is_kept = next.is_enabled() && next.mode() == self.mode();
        next.with(Self::REDIRECTED, next.is_redirected() && is_kept).settled(delivery)
    }

    const fn configured(self, value: u32) -> Self {
        let mode = match value {
            mode::DETACHED | mode::EDGE1..=mode::LEVEL0 => value,
            _ => mode::INACTIVE,
        };
        let next = Self(self.0 & !mode::MASK | mode);
        let next = next.with(Self::IN_SERVICE, next.is_in_service() && next.mode() == self.mode());
        if !next.is_active() {
            return next.with(Self::READY, false);
        }
        // "might (or might not) cause the corresponding interrupt-pending bit to be set to one if the rectified input value is high": it does for a
        // level, so that a wire which is high already isn't overlooked; and for a relayed edge, which has come and won't come again before it is taken.
        next.with(Self::PENDING, next.is_pending() || (next.is_level() || next.relayed()) && next.rectified())
    }

    /// The state of a ready source after it is claimed, or sent as a message: no [`Event`], as that takes half as long, and a guest may have many of them sent at once.
    #[must_use]
    pub(super) const fn claimed(self, delivery: Delivery) -> Self {
        // It stays enabled, and what it is: so it stays redirected, too. The wire of a level that is claimed is taken to be high until the hart comes back to see to that.
        let is_in_service = self.is_level() && self.is_held() && matches!(delivery, Delivery::Direct);
        self.with(Self::PENDING, false).with(Self::IN_SERVICE, is_in_service).settled(delivery)
    }

    /// A level is pending only while it is there; without messages it is pending just then. A physical interrupt that asks for nothing any more isn't held.
    const fn settled(self, delivery: Delivery) -> Self {
        let pending = match delivery {
            _ if !self.is_level() => self.is_pending(),
            Delivery::Direct => self.rectified(),
            Delivery::Msi => self.is_pending() && self.rectified(),
        };
        let next = self.with(Self::PENDING, pending);
        let is_served = self.is_held() && self.rectified() && !pending && !self.is_in_service();
        next.with(Self::WIRE, self.has(Self::WIRE) && !is_served)
    }

    /// After a reset of the guest: its wire is low, and nothing is configured.
    #[must_use]
    pub(super) const fn reset(self) -> Self {
        Self(self.0 & Self::REDIRECTABLE_FROM_BOARD.0)
    }
}
