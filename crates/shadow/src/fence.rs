//! What a guest fences, and what its hart has to fence for the shadow.
use crate::Virtual;

/// What an SFENCE.VMA covers (privileged specification, "Supervisor Memory-Management Fence Instruction").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// Leaves for this address alone (rs1); else all entries of all levels.
    pub address: Option<Virtual>,
    /// Of this address space alone, but for what is global (rs2); else of all.
    pub asid: Option<u16>,
}

impl Scope {
    /// All that there is.
    pub const ALL: Self = Self { address: None, asid: None };
}

/// Which fence is due on the vCPU's own hart, for the tag of its active address space, before the guest goes on. Those of the others are told when they are activated.
#[must_use = "the hart may still use what it has cached, and walk tables that are used for something else"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// None.
    Nothing,
    /// For an address.
    Page(Virtual),
    /// For all of it.
    Space,
    /// Likewise, behind a look at [`Shadow::active`](crate::Shadow::active): its root is another table.
    Root,
}

impl Due {
    /// Both.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, due) | (due, Self::Nothing) => due,
            (Self::Root, _) | (_, Self::Root) => Self::Root,
            (Self::Page(one), Self::Page(another)) if one == another => self,
            _ => Self::Space,
        }
    }
}
