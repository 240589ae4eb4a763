//! The plugin that stands for whoever sits at the machine: it types a line, and switches off (`tools/qemu-plugins/README.md`).
use crate::checkout;

/// A line that somebody types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typing {
    /// The line, without its end.
    pub text: String,
    /// When its first character comes, in milliseconds of the machine's time.
    pub at_ms: u64,
}

/// The plugin's argument for QEMU: the machine is switched off after so many milliseconds of its time, if it still runs.
pub fn argument(off_ms: u64, typing: Option<&Typing>) -> String {
    let plugin = checkout(".cache/plugins/operator.so");
    let mut argument = format!("{},stop_ns={}", plugin.display(), off_ms * 1_000_000);
    if let Some(typing) = typing {
        let hex: String = typing.text.bytes().chain([b'\r']).map(|byte| format!("{byte:02x}")).collect();
        argument += &format!(",port=serial,type={hex},at_ns={}", typing.at_ms * 1_000_000);
    }
    argument
}
