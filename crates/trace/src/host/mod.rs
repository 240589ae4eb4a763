//! What a host tool does with traces: read them out of memory, and write them for the Perfetto UI.

pub mod perfetto;
mod read;
mod window;

pub use read::{CoreTrace, ReadError, Stamped, Trace, read};
pub use window::{Window, WindowError};
