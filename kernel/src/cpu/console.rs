//! The serial port: a kind of housework.
use core::sync::atomic::Ordering;

use super::Cpu;
use super::housekeeping::{Chore, Next};
use crate::arch::csr;
use crate::console::{Channel, Console, Rest};
use crate::guest::mmio;
use crate::panic::write_directly;

/// How long an incomplete line waits for its end before it is shown, in milliseconds.
const PATIENCE_MS: u64 = 20;

impl Cpu {
    /// Tells the console core that there is something to send, or room for what was typed.
    pub fn wake_console(&mut self) {
        self.ask_housekeeper(Chore::Console);
    }

    /// The serial port interrupts.
    pub(super) fn take_serial_interrupt(&mut self) {
        if let Some(console) = &mut self.console {
            console.collect_input();
        }
        if let Some(uart) = self.console.as_ref().and_then(|console| console.uart()) {
            uart.acknowledge();
            uart.listen(false);
        }
        self.wake_console();
    }

    /// A piece of the console's work.
    pub(super) fn serve_console(&mut self) -> Next {
        self.feed_input();
        let patience = self.machine.board.timebase_hz * PATIENCE_MS / 1000;
        let rest = self.send_console(patience);
        let Some(uart) = self.console.as_ref().and_then(|console| console.uart()) else {
            return Next::WhenAsked;
        };
        // A port that keeps up is served with pauses, a slow one when it has room.
        let is_slow = rest == Rest::Now && !uart.can_send();
        uart.listen(is_slow);
        match rest {
            Rest::Later(time) => Next::At(time),
            Rest::Now if !is_slow => Next::Soon,
            Rest::Now | Rest::Nothing => Next::WhenAsked,
        }
    }

    /// Passes what was typed on to the guest that gets it, as much as its port takes. Only the console core has any.
    fn feed_input(&mut self) {
        let machine = self.machine;
        // Taken out for a moment, since the guest's port is reached through the core.
        let Some(mut console) = self.console.take() else { return };
        if let Some(input) = machine.console_input {
            let waits = &machine.input_waits;
            mmio::with_uart(self, &machine.guests[input as usize], |uart| {
                // Said before the last try: a guest that reads after that sees it, and asks for more.
                waits.store(true, Ordering::SeqCst);
                if !console.pass_input_on(|byte| uart.receive(byte)) {
                    waits.store(false, Ordering::SeqCst);
                }
            });
        }
        self.console = Some(console);
    }

    /// Sends all output that is left, at the end of the run.
    pub(super) fn flush_console(&mut self) {
        while self.send_console(0) == Rest::Now {}
        if self.console.as_ref().is_some_and(Console::is_mid_line) {
            write_directly(format_args!("\n"));
        }
    }

    fn send_console(&mut self, patience: u64) -> Rest {
        let machine = self.machine;
        let Some(console) = &mut self.console else { return Rest::Nothing };
        let channels = |index: usize| -> Option<&'static Channel> {
            match machine.guests.get(index) {
                Some(guest) => Some(&guest.output),
                None => (index == machine.guests.len()).then(|| machine.log.channel()),
            }
        };
        console.send_piece(&channels, csr::time(), patience)
    }
}
