//! Names for sets of trace records, as `[trace] mask` lists them.

/// The names, each with its bits of [`crate::config::Trace::mask`].
pub const MASKS: &[(&str, u32)] = &[("default", u32::MAX), ("all", u32::MAX)];
