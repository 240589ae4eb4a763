//! Many consoles on one serial line: `MARK| TEXT` per line, the mark being the source's name, and
//! `MARK|+TEXT` where a line goes on that had to make room for those of others.
//!
//! - Each [`Source`] has a ring of its own. Its writer waits for nobody; what finds no room is lost, and counted, as on a real port with a
//!   full FIFO. Nobody else's output depends on it.
//! - The [`Multiplexer`] is with the core that drives the serial port. It takes the sources' lines in turn, a piece at a time.
//! - [`Input`] is what is typed, on its way to a guest's port.
//!
//! # Which bytes are sent when
//! - Lines come out whole, one of each source in turn. So a source that writes without end gets a line for each line of another, and no
//!   more.
//! - A line that has no end is broken after [`LONGEST`] bytes if another source has something to send, and
//!   goes on in the source's next turn.
//! - A line that has no end *yet*, like a prompt, is shown after a while. Its source goes on with it as soon as it writes more; if another one has
//!   something to send meanwhile, the line is broken.
//! - But a line that starts with `@` is for a program, which is not helped by half of it: it is sent when it is whole.
//!
//! Nothing here is slower the more is written: a piece is a bounded amount of work.
#![cfg_attr(not(any(test, loom)), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod atomic;
mod input;
#[cfg(all(test, loom))]
mod model;
mod multiplexer;
mod source;
#[cfg(all(test, not(loom)))]
mod tests;

pub use input::{Input, InputWaits};
pub use multiplexer::{LONGEST, Multiplexer, Rest};
pub use source::{Full, Source};
