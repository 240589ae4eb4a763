//! The serial port: a kind of housework. What is sent next, and where what is typed waits, says `ainori_console`.
use alloc::boxed::Box;

use ainori_console::{Input, Multiplexer, Rest, Source};
use ainori_limits::MAX_GUESTS;

use super::housekeeping::{Chore, Next};
use super::{Cpu, Machine};
use crate::arch::clock;
use crate::chip::uart::{FIFO, Uart};
use crate::panic::write_directly;

/// How long an incomplete line waits for its end before it is shown, in milliseconds.
const PATIENCE_MS: u64 = 20;
/// When to look again whether a guest's port is free, which a vCPU of the guest has for some hundred instructions, in microseconds.
const RETRY_US: u64 = 5;
/// Bytes that can be typed ahead of the guest. What doesn't fit stays in the port.
const INPUT: usize = 1024;
/// Bytes of that that are passed on in one piece of work: some 50 instructions each.
const PASSED_ON: usize = 4;

/// The serial port and its two streams: only the console core has it.
pub struct Console {
    uart: Option<Uart>,
    /// Who writes to the serial line: the guests, and behind them the hypervisor's own log.
    sources: Box<[&'static Source]>,
    output: Multiplexer<{ MAX_GUESTS + 1 }>,
    input: Input<INPUT>,
    /// The last piece was input: output has its turn.
    was_input: bool,
}

impl Console {
    /// The end that drives `uart`, for all that `machine` has to say. Allocates: only at boot.
    pub fn new(uart: Option<Uart>, machine: &'static Machine) -> Box<Self> {
        let guests = machine.guests.iter().map(|guest| &guest.devices.serial.output);
        let sources = guests.chain([&machine.log]).collect();
        Box::new(Self { uart, sources, output: Multiplexer::new(), input: Input::new(), was_input: false })
    }

    /// Sends the next piece. None of it if the port isn't ready. Where there is no port it is taken all the same: guests, and who starts them again,
    /// wait until their output has gone.
    fn send(&mut self, patience: Option<u64>) -> Rest {
        if self.uart.is_some_and(|uart| !uart.can_send()) {
            return Rest::Now;
        }
        let mut piece = [0; FIFO];
        let (length, rest) = self.output.fill(&self.sources, clock::now(), patience, &mut piece);
        if let Some(uart) = self.uart {
            uart.send(piece.get(..length).unwrap_or_default());
        }
        rest
    }

    /// Takes some of what was typed from the port, if there is room for it. Returns how much.
    fn collect(&mut self) -> usize {
        let Some(uart) = self.uart else { return 0 };
        let most = PASSED_ON.min(self.input.room());
        // BOUND: 4 bytes, some 15 instructions each.
        for collected in 0..most {
            let Some(byte) = uart.receive() else { return collected };
            self.input.push(byte);
        }
        most
    }
}

impl Cpu {
    /// Tells the console core that there is something to send, or room for what was typed.
    pub fn wake_console(&mut self) {
        self.ask_housekeeper(Chore::Console);
    }

    /// A guest has found its ring full. If this core is the one that empties it, it has to: the guest may leave it no other time.
    pub fn relieve_console(&mut self) {
        self.wake_console();
        if self.console.is_none() || self.must_hurry(clock::now()).is_some() || self.gives_way() {
            return;
        }
        let patience = self.console_patience();
        if let Some(console) = &mut self.console {
            console.send(Some(patience));
        }
    }

    /// The serial port interrupts: it keeps quiet until its housework is done.
    pub(super) fn take_serial_interrupt(&mut self) {
        if let Some(uart) = self.console.as_ref().and_then(|console| console.uart) {
            uart.acknowledge();
            uart.listen(false, false);
        }
        self.wake_console();
    }

    /// A piece of the console's work.
    pub(super) fn serve_console(&mut self) -> Next {
        let machine = self.machine;
        let current = |console: &Console| machine.guests.get(console.output.current());
        if let Some(guest) = self.console.as_deref().and_then(current)
            && guest.devices.serial.has_awaited_room()
        {
            // A piece of its own: the interrupt takes as long as the output.
            if let Some(harts) = guest.devices.tell_of_room() {
                self.look_at_harts(guest, harts);
            }
            return Next::Soon;
        }
        let was_input = self.console.as_mut().is_some_and(|console| core::mem::take(&mut console.was_input));
        let fed = if was_input { Some(0) } else { self.feed_input() };
        if fed.is_some_and(|bytes| bytes > 0) {
            if let Some(console) = &mut self.console {
                console.was_input = true;
            }
            return Next::Soon;
        }
        let is_fed = fed.is_some();
        let now = clock::now();
        let patience = self.console_patience();
        let Some(console) = &mut self.console else { return Next::WhenAsked };
        let rest = console.send(Some(patience));
        let mut is_slow = false;
        if let Some(uart) = console.uart {
            // A port that keeps up is served with pauses, a slow one when it has room.
            is_slow = rest == Rest::Now && !uart.can_send();
            uart.listen(console.input.room() > 0, is_slow);
        }
        if was_input || current(console).is_some_and(|guest| guest.devices.serial.has_awaited_room()) {
            return Next::Soon;
        }
        let retry = if is_fed { u64::MAX } else { now + machine.ticks(RETRY_US) };
        match rest {
            Rest::Now if !is_slow => Next::Soon,
            Rest::Later(time) => Next::At(time.min(retry)),
            Rest::Now | Rest::Nothing if is_fed => Next::WhenAsked,
            Rest::Now | Rest::Nothing => Next::At(retry),
        }
    }

    fn console_patience(&self) -> u64 {
        self.machine.ticks(1000 * PATIENCE_MS)
    }

    /// Passes some of what was typed on to the guest that gets it, as far as its port takes it. Returns how many bytes were moved; none if
    /// the port was busy.
    fn feed_input(&mut self) -> Option<usize> {
        let machine = self.machine;
        let Some(console) = &mut self.console else { return Some(0) };
        // BOUND: 4 bytes, as many as are passed on.
        let collected = console.collect();
        let mut moved = Some(collected);
        if let Some(input) = machine.console_input
            && let Some(guest) = machine.guests.get(input as usize)
            && !console.input.is_empty()
            // What is typed meanwhile waits for its next life.
            && guest.lifecycle.is_running()
        {
            let passed_on = guest.devices.with_port(|port| {
                let mut passed_on = 0;
                console.input.pass_on(&machine.input_waits, |byte| {
                    let is_taken = passed_on < PASSED_ON && port.receive(byte);
                    passed_on += usize::from(is_taken);
                    is_taken
                });
                passed_on
            });
            moved = passed_on.map(|(passed_on, harts)| {
                self.look_at_harts(guest, harts);
                passed_on.max(collected)
            });
        }
        moved
    }

    /// Writes all reports and sends all output that is left. Only at the end of the run, when nobody writes any more.
    pub(super) fn flush_console(&mut self) {
        loop {
            let reports = self.write_reports();
            // A report is written part by part: until it is whole, it would be broken by what others have left incomplete.
            let patience = self.reports.guest.map(|_| u64::MAX / 2);
            let Some(console) = &mut self.console else { return };
            if console.send(patience) == Rest::Nothing && reports != Next::Soon && patience.is_none() {
                break;
            }
        }
        let Some(console) = &self.console else { return };
        if console.output.is_mid_line() {
            write_directly(format_args!("\n"));
        }
    }
}
