//! An interrupt of a device that a guest owns, which asks as its driver has it.
use core::sync::atomic::{AtomicBool, Ordering};

use crate::irqchip::Interrupt;

/// A source of the board's controller. As an edge it may ask for its guest's sake only: what the wire is by itself, the board says.
#[derive(Debug)]
pub struct OwnedInterrupt {
    /// As it asks by itself, and as an edge.
    kinds: [Interrupt; 2],
    /// It asks as an edge. As it was when it was last completed.
    is_edge: AtomicBool,
}

impl OwnedInterrupt {
    /// It asks as it does by itself.
    #[must_use]
    pub const fn new(interrupt: Interrupt) -> Self {
        Self { kinds: [interrupt, interrupt.as_edge()], is_edge: AtomicBool::new(false) }
    }

    /// The source, as it asks by itself.
    #[must_use]
    pub const fn own(&self) -> Interrupt {
        self.kinds[0]
    }

    /// The same, as it asks at present.
    #[must_use]
    pub fn now(&self) -> Interrupt {
        let [own, edge] = self.kinds;
        if self.is_edge.load(Ordering::Relaxed) { edge } else { own }
    }

    /// It asks as an edge from now on, or as it does by itself. Is that new? What is an edge by itself never is: what has come of it meanwhile stays.
    pub fn set_edge(&self, is_edge: bool) -> bool {
        let [own, edge] = self.kinds;
        let was_edge = self.is_edge.load(Ordering::Relaxed);
        self.is_edge.store(is_edge, Ordering::Relaxed);
        was_edge != is_edge && own.trigger as u8 != edge.trigger as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::irqchip::Trigger;

    #[test]
    fn only_a_level_is_anything_else_as_an_edge() {
        for (trigger, as_edge) in [
            (Trigger::EdgeRising, Trigger::EdgeRising),
            (Trigger::EdgeFalling, Trigger::EdgeFalling),
            (Trigger::LevelHigh, Trigger::EdgeRising),
            (Trigger::LevelLow, Trigger::EdgeFalling),
        ] {
            let owned = OwnedInterrupt::new(Interrupt { source: 5, trigger });
            // A life of the guest, and the next one's beginning.
            for (is_edge, now) in [(false, trigger), (true, as_edge), (true, as_edge), (false, trigger)] {
                let before = owned.now();
                assert_eq!(owned.set_edge(is_edge), before.trigger != now, "{trigger:?} {is_edge}");
                assert_eq!(owned.now(), Interrupt { source: 5, trigger: now });
                assert_eq!(owned.own().trigger, trigger);
            }
        }
    }
}
