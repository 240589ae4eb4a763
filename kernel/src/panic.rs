//! The hypervisor's own bugs: say where, and switch the machine off.
use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::arch::firmware;
use crate::chip::uart::Uart;

/// Where to write when nothing else can be trusted: base and register shift of the serial port, set at boot.
static PORT: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));

/// Lets panics write to the serial port.
pub fn use_port(base: u64, shift: usize) {
    PORT.1.store(shift, Ordering::Relaxed);
    PORT.0.store(base as usize, Ordering::Release);
}

struct Direct(Uart);
impl Write for Direct {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // BOUND: the text. See `write_directly` for when.
        for byte in text.bytes() {
            // BOUND: the serial port. See `write_directly` for when.
            while !self.0.can_send() {}
            self.0.send(&[byte]);
        }
        Ok(())
    }
}

/// Writes past all rings and locks, and waits for the port: only before the first guest runs, at the end of the run when none runs any
/// more, or when the machine is lost. (It is also lost where a core [refuses](refuse) its hart, beside others that may have entered guests
/// already.)
///
/// Each call takes the port anew ([`Uart::new`]), which switches the transmitter's interrupt off. The console core doesn't get what it may
/// be waiting for then: nobody needs that any more.
pub fn write_directly(text: fmt::Arguments<'_>) {
    let base = PORT.0.load(Ordering::Acquire);
    if base != 0 {
        // SAFETY: the board's port is there. If the console core drives it as well, letters are mixed, and the transmitter's interrupt is
        // off: at the times that are named above nobody waits for it.
        let port = unsafe { Uart::new(base as u64, PORT.1.load(Ordering::Relaxed)) };
        let _ = Direct(port).write_fmt(text);
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    static ALREADY: AtomicBool = AtomicBool::new(false);
    if !ALREADY.swap(true, Ordering::AcqRel) {
        // All in one line: `info` as it is has the reason in another one, which the tool wouldn't take for a part of this.
        let (mark, separator, why) = (ainori_report::MARK, ainori_report::SEPARATOR, info.message());
        match info.location() {
            Some(place) => write_directly(format_args!("\n{mark}{separator}panic: {why} ({place})\n")),
            None => write_directly(format_args!("\n{mark}{separator}panic: {why}\n")),
        }
    }
    firmware::shutdown(true)
}

/// Ends a boot that can't go on for a reason outside the hypervisor.
pub fn refuse(why: fmt::Arguments<'_>) -> ! {
    write_directly(format_args!("{}{}error: {why}\n", ainori_report::MARK, ainori_report::SEPARATOR));
    firmware::shutdown(true)
}
