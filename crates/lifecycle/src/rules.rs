//! What a guest's manifest says about its lives.
use serde::{Deserialize, Serialize};

/// Largest [`Rules::limit`].
pub const MAX_LIMIT: usize = 32;

/// When a guest is started again (systemd's `Restart=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Never: a reboot is its end as well.
    Never,
    /// When it asks for a reboot, and when it has failed.
    OnFailure,
    /// However it ends.
    Always,
}

/// Why a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It shut itself down, and gave no reason.
    Shutdown,
    /// It asked for a reboot, and gave no reason.
    Reboot,
    /// It shut down or rebooted because of a failure, did what it may not do, or stopped all its vCPUs.
    Failure,
}

/// What comes after a life.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    End,
    /// Another life.
    Restart,
    /// Another life was due, but there have been too many: nothing.
    GiveUp,
}

/// When a guest is started again, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// After which causes.
    pub restart: Restart,
    /// At most so many times within [`Self::interval`]; 1 to [`MAX_LIMIT`].
    pub limit: u32,
    /// In ticks of the clock that [`Lifecycle::stop`](crate::Lifecycle::stop) is told.
    pub interval: u64,
}

impl Rules {
    /// Would a life that ends like that be followed by another, were there no limit?
    #[must_use]
    pub fn wants_restart(&self, cause: Cause) -> bool {
        match self.restart {
            Restart::Never => false,
            Restart::OnFailure => cause != Cause::Shutdown,
            Restart::Always => true,
        }
    }
}
