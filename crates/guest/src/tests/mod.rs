//! Guests' services on a host that is a few words of memory: what each call and register does, and what must hold whatever guests do.
mod any_guest;
mod bus;
mod host;
mod sbi;
mod serial;
