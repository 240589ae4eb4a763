//! A domain of an APLIC that sends messages (MSI delivery mode: AIA, section 4.9) to the harts' IMSICs. A target is a hart index, which stands for the address of
//! the hart's file (the firmware has told the APLIC how), and an identity.
//!
//! A message is taken from the hart's file, and nobody completes it. So who claims one switches its source off, as with an APLIC that interrupts harts itself. One
//! that was on its way at that moment comes all the same: the source may be claimed once more before it is completed, not more often.
use ainori_board::Interrupt;
use ainori_devices::aplic::RelayedTo;
use ainori_devices::aplic::layout::{
    CLRIPNUM, GUEST_SHIFT, HART_SHIFT, IN_CLRIP, MESSAGES, SETIE, SETIP, SETIPNUM,
};

use super::domain::Domain;
use crate::arch::{fence, imsic};

/// The domain, and what is known of the harts' files.
#[derive(Debug, Clone, Copy)]
pub struct Imsic {
    domain: Domain,
    /// The greatest identity.
    identities: u32,
}

impl Imsic {
    /// The domain at `base` with sources `1..=sources`, all switched off. None if it sends no messages. Only at boot.
    ///
    /// # Safety
    /// As of [`Domain::new`]. The harts have IMSICs with so many identities, and let the hypervisor reach their files
    /// ([`Features::messages`](crate::arch::hart::Features)).
    pub unsafe fn new(base: u64, sources: u32, identities: u32) -> Option<Self> {
        // SAFETY: as this function's.
        let domain = unsafe { Domain::new(base, sources) };
        domain.switch_on(MESSAGES).then_some(Self { domain, identities })
    }

    /// The greatest identity of the harts' files.
    pub fn identities(&self) -> u32 {
        self.identities
    }

    /// Opens this hart's file, with nothing in it but what cores send to each other.
    pub fn reset_hart(&self) {
        imsic::reset(self.identities);
        imsic::enable(ainori_board::IPI_IDENTITY);
    }

    /// Sends a source to this hart, as this identity. Harts may do so at the same time.
    pub fn route(&self, interrupt: Interrupt, hart: u32, identity: u32) {
        imsic::enable(identity);
        self.domain.wire(interrupt, hart << HART_SHIFT | identity);
        self.complete(interrupt);
    }

    /// Sends a source that comes to this hart as one identity as another one. What is pending stays so.
    pub fn change(&self, source: u32, hart: u32, from: u32, to: u32) {
        imsic::enable(to);
        self.domain.aim(source, hart << HART_SHIFT | to);
        imsic::hand_over(from, to);
    }

    /// Takes the most urgent identity above this hart's threshold; 0 if there is none. What is read from memory later is read after that.
    pub fn claim(&self) -> u32 {
        let identity = imsic::claim();
        fence::after_device_read();
        identity
    }

    /// Switches a source that was claimed off, until it is completed.
    pub fn hold(&self, source: u32) {
        self.domain.disable(source);
        // Whoever completes it, on whichever hart, does so behind that.
        fence::memory_and_devices();
    }

    /// Sends a source to a guest interrupt file of a hart, as this identity. Notes where it was sent before.
    pub fn redirect(&self, source: u32, hart: u32, file: u8, identity: u32, relayed_to: &RelayedTo) {
        relayed_to.note(self.domain.read(Domain::target(source)));
        self.domain.aim(source, hart << HART_SHIFT | u32::from(file) << GUEST_SHIFT | identity);
    }

    /// Sends it there again. That one is still to complete it makes no difference: it is asked then once more.
    pub fn recall(&self, interrupt: Interrupt, relayed_to: &RelayedTo) {
        self.domain.aim(interrupt.source, relayed_to.get());
        fence::before_device();
        // An edge has been sent.
        if interrupt.trigger.is_level() {
            self.domain.write(SETIPNUM, interrupt.source);
        }
    }

    /// Level-sensitive sources of a word send their messages once more if their wires ask.
    pub fn ask_again(&self, word: usize, sources: u32) {
        fence::before_device();
        self.domain.write(SETIP + 4 * word as u64, sources);
    }

    /// The sources of a word whose wires ask.
    pub fn inputs(&self, word: usize) -> u32 {
        self.domain.read(IN_CLRIP + 4 * word as u64)
    }

    /// Switches sources of a word on again, which send their messages when their wires begin to ask anew, or have done so since they were switched off.
    pub fn rearm(&self, word: usize, sources: u32) {
        fence::before_device();
        self.domain.write(SETIE + 4 * word as u64, sources);
    }

    /// Switches a source on again, and has it send its message if its wire asks. What was written to memory before is seen by whoever claims it then.
    pub fn complete(&self, interrupt: Interrupt) {
        fence::before_device();
        // A level-sensitive source sends a message when its wire begins to ask, and no other one as long as that asks, unless it is told to look (section 4.9.2).
        // How often the wire has begun meanwhile counts for nothing: QEMU 10.0 keeps that, even if it asks no longer. An edge is never told: that would be one.
        if interrupt.trigger.is_level() {
            self.domain.write(CLRIPNUM, interrupt.source);
            self.domain.write(SETIPNUM, interrupt.source);
        }
        self.domain.enable(interrupt.source);
    }
}
