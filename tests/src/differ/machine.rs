//! The machines that are compared with the bare hart.
use crate::{Guest, checkout};

/// How a guest is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// What it is called.
    pub name: &'static str,
    /// Its harts have the H extension.
    pub has_h: bool,
    /// How the guest's addresses are translated, as a manifest names it.
    pub translation: &'static str,
    /// Shadow tables, if not as many as usual, and whose are taken.
    pub shadow: Option<(u32, &'static str)>,
    /// Another guest takes the hart by turns, so that all that the program has is taken from the hart and put back, wherever it is.
    pub has_neighbour: bool,
    /// More extensions of its harts, as QEMU names them.
    pub more: &'static str,
}

/// Both have Svnapot and Svpbmt.
const ENTRIES: &str = ",svnapot=on,svpbmt=on";
/// The firmware sets their timer.
const WITHOUT_SSTC: &str = ",sstc=off";
/// As few as there can be for one vCPU, with H and without.
const FEWEST: u32 = 36;
const FEWEST_NO_H: u32 = 72;

const USUAL: Machine = Machine {
    name: "",
    has_h: false,
    translation: "shadow-multi",
    shadow: None,
    has_neighbour: false,
    more: "",
};

/// All of them.
pub const MACHINES: [Machine; 11] = [
    Machine { name: "two-stage", has_h: true, translation: "two-stage", ..USUAL },
    Machine { name: "two-stage-entries", has_h: true, translation: "two-stage", more: ENTRIES, ..USUAL },
    Machine {
        name: "two-stage-neighbour",
        has_h: true,
        translation: "two-stage",
        has_neighbour: true,
        ..USUAL
    },
    Machine { name: "shadow", has_h: true, ..USUAL },
    Machine { name: "shadow-few", has_h: true, shadow: Some((FEWEST, "fifo")), more: ENTRIES, ..USUAL },
    Machine { name: "no-h", ..USUAL },
    Machine { name: "no-h-entries", more: ENTRIES, ..USUAL },
    Machine { name: "no-h-single", translation: "shadow-single", ..USUAL },
    Machine { name: "no-h-few", shadow: Some((FEWEST_NO_H, "page-directory-lru")), ..USUAL },
    Machine { name: "no-h-neighbour", has_neighbour: true, ..USUAL },
    Machine { name: "no-h-sbi-timer", more: WITHOUT_SSTC, ..USUAL },
];

impl Machine {
    /// The machine of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        MACHINES.iter().find(|machine| machine.name == name)
    }

    /// The model of its harts. Guests are told that their harts don't set A and D (Svade): those of the bare hart don't either. There is no Sv57 in a shadow.
    pub fn model(&self) -> String {
        let h = if self.has_h { "" } else { ",h=false" };
        format!("rv64,svade=on,svadu=off,sv57=off{h}{}", self.more)
    }

    /// The model of the bare hart that sees what a guest is promised: no H.
    pub fn bare_model(&self) -> String {
        format!("rv64,svade=on,svadu=off,sv57=off,h=false{}", self.more)
    }

    pub(super) fn guest(&self, args: &str) -> Guest {
        let guest =
            Guest::probe("differ", args).file(&checkout(super::bare::PROGRAM)).translation(self.translation);
        match self.shadow {
            Some((tables, reclaim)) => guest.shadow_tables(tables).shadow_reclaim(reclaim),
            None => guest,
        }
    }
}
