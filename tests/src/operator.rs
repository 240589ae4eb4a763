//! The plugin that stands for whoever sits at the machine: it types a line, and switches off (`tools/qemu-plugins/README.md`).
use std::time::Duration;

use crate::checkout;

/// A line that somebody types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typing {
    /// The line, without its end.
    pub text: String,
    /// When its first character comes, in the machine's time.
    pub at: Duration,
}

/// The plugin's argument for QEMU: the machine is switched off after so much of its time, if it still runs.
pub fn argument(off: Duration, typing: Option<&Typing>) -> String {
    let plugin = checkout(".cache/plugins/operator.so");
    let mut argument = format!("{},stop_ns={}", plugin.display(), off.as_nanos());
    if let Some(typing) = typing {
        let hex: String = typing.text.bytes().chain([b'\r']).map(|byte| format!("{byte:02x}")).collect();
        argument += &format!(",port=serial,type={hex},at_ns={}", typing.at.as_nanos());
    }
    argument
}
