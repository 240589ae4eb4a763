//! Ways to translate guests' addresses, each of which confines them: with two stages, with shadow tables, and on harts without H.
use crate::{Guest, System};
use std::path::PathBuf;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// The harts have the H extension.
    pub has_h: bool,
    /// As a manifest names it.
    pub translation: &'static str,
}

/// All.
pub const MODES: [Mode; 5] = [
    Mode { has_h: true, translation: "two-stage" },
    Mode { has_h: true, translation: "shadow-single" },
    Mode { has_h: true, translation: "shadow-multi" },
    Mode { has_h: false, translation: "shadow-single" },
    Mode { has_h: false, translation: "shadow-multi" },
];

impl Mode {
    /// A board with such harts, of the usual model.
    pub fn on(self, harts: u32) -> System {
        self.board(System::on(harts), "rv64")
    }

    /// The same with harts of another model with H, as QEMU names it, or with what is left of that.
    pub fn board(self, system: System, cpu: &str) -> System {
        if self.has_h { system.with_h().cpu(cpu) } else { system.cpu(&crate::harts::model(cpu, true)) }
    }

    /// The hypervisor for it.
    pub fn hypervisor(self) -> PathBuf {
        self.on(1).with(self.of(Guest::fuzz(""))).kernel_file()
    }

    /// The guest, as one in this mode.
    pub fn of(self, guest: Guest) -> Guest {
        guest.translation(self.translation)
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.translation, if self.has_h { "" } else { "-no-h" })
    }
}
