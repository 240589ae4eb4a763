//! The power button of a guest: a key of a virtio keyboard that Linux knows (`KEY_POWER`), pressed over QEMU's own protocol (QMP).
use rustix::io::{FdFlags, fcntl_setfd};
use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::Command,
};

/// What is sent: the protocol has to be agreed on first. `power` is one of QEMU's names of keys; it is let go again by itself.
const PRESS: &str = concat!(
    r#"{"execute":"qmp_capabilities"}"#,
    "\n",
    r#"{"execute":"send-key","arguments":{"keys":[{"type":"qcode","data":"power"}]}}"#,
    "\n"
);

/// This program's end of a line to QEMU.
#[derive(Debug)]
pub struct Line(UnixStream);

impl Line {
    /// Makes a line, and has the QEMU that `command` will start listen at its other end.
    pub fn open(command: &mut Command) -> io::Result<Self> {
        let (own, other) = UnixStream::pair()?;
        own.set_nonblocking(true)?;
        let other = OwnedFd::from(other);
        let socket = format!("socket,id=power,fd={}", other.as_raw_fd());
        command.args(["-chardev", &socket, "-mon", "chardev=power,mode=control"]);
        // In the child alone: no other program that is started meanwhile gets it. The command owns the closure, and so the socket, until it is dropped.
        let keep = move || Ok(fcntl_setfd(&other, FdFlags::empty())?);
        // SAFETY: between fork and exec the closure makes one system call (fcntl). It takes no lock, does not allocate (an errno is stored inline)
        // and touches no memory but its own.
        unsafe { command.pre_exec(keep) };
        Ok(Self(own))
    }

    /// Presses the button. Of a QEMU that has ended there is nothing to switch off, so an error is nobody's business.
    pub fn press(&mut self) {
        // What QEMU has said so far, a greeting, is of no interest.
        let mut rest = [0; 4096];
        while matches!(self.0.read(&mut rest), Ok(1..)) {}
        let _ = self.0.write_all(PRESS.as_bytes());
    }
}
