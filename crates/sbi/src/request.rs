//! Calls to requests.
use crate::numbers::{ainori, base, dbcn, hsm, ipi, rfence, srst, susp, time};
use crate::{
    AINORI, BASE, DBCN, Error, HSM, IPI, RFENCE, Range, Result, SRST, SUSP, TIME, VERSION_2_0, legacy,
};

/// A call, as the registers have it: `a7`, `a6`, and `a0` to `a4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Extension ID.
    pub extension: u64,
    /// Function ID.
    pub function: u64,
    /// Arguments.
    pub a: [u64; 5],
}

/// What a valid call asks for. Harts are the guest's own, which are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Nothing more: this is the answer.
    Answer(u64),
    /// The caller's timer, in ticks of `time`.
    SetTimer(u64),
    /// A software interrupt for these harts, a bit each.
    SendIpi(u64),
    /// Takes the caller's software interrupt back, and tells whether there was one (legacy).
    ClearIpi,
    /// A fence on these harts, a bit each, before the call returns.
    RemoteFence(u64, RemoteFence),
    /// Starts a stopped hart.
    HartStart {
        /// Which.
        hart: u32,
        /// Guest-physical address of its first instruction.
        address: u64,
        /// What it finds in `a1`.
        opaque: u64,
    },
    /// Stops the caller.
    HartStop,
    /// The state of a hart.
    HartStatus(u32),
    /// The caller waits for an interrupt.
    Suspend,
    /// The same, and then goes on elsewhere, as a hart whose registers haven't been kept.
    SuspendAndResume {
        /// Guest-physical address of the instruction with which it goes on.
        address: u64,
        /// What it finds in `a1`.
        opaque: u64,
        /// All other harts of the guest have to be stopped: it is the machine that is suspended.
        alone: bool,
    },
    /// The end of the guest.
    Reset(Reason),
    /// Prints what lies in memory.
    Write {
        /// Guest-physical address.
        from: u64,
        /// Bytes; a call may print less.
        size: u64,
    },
    /// Puts what was typed into memory.
    Read {
        /// Guest-physical address.
        to: u64,
        /// Bytes of room there.
        size: u64,
    },
    /// Prints a byte, for which the caller waits until there is room.
    WriteByte(u8),
    /// What was typed next, all ones if nothing was (legacy).
    ReadByte,
    /// The caller lets its equals go first (our own).
    Yield,
    /// A mark in the trace (our own).
    Mark(u64),
    /// The caller holds a lock, or none any more (our own; for policies that defer preemptions).
    HoldsLock(bool),
}

/// What a remote fence orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteFence {
    /// Instructions: FENCE.I.
    Instructions,
    /// Translations of these addresses: SFENCE.VMA, of one address space only if there is an ASID.
    Translations(Range, Option<u64>),
}

/// Why a guest ends itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It is done.
    Shutdown,
    /// It wants to begin again.
    Reboot,
    /// It has failed.
    Failure,
}

/// Not an assigned number: the list of the specification has none for us.
const IMPLEMENTATION: u64 = 0x41_494e;

/// A call of a guest that has these `harts`, a bit each.
///
/// # Errors
/// As the specification has them for each call.
#[inline(never)]
pub fn decode(call: &Call, harts: u64) -> Result<Request> {
    let Call { extension, function, a } = *call;
    match (extension, function) {
        (BASE, _) => base(function, a[0]).map(Request::Answer),
        (TIME, time::SET) => Ok(Request::SetTimer(a[0])),
        (IPI, ipi::SEND) => hart_mask(harts, (a[0], a[1])).map(Request::SendIpi),
        (RFENCE, rfence::INSTRUCTIONS..=rfence::TRANSLATIONS_OF_ASID) => {
            let targets = hart_mask(harts, (a[0], a[1]))?;
            let range = Range { start: a[2], size: a[3] };
            let fence = match function {
                rfence::INSTRUCTIONS => RemoteFence::Instructions,
                rfence::TRANSLATIONS => RemoteFence::Translations(range, None),
                _ => RemoteFence::Translations(range, Some(a[4])),
            };
            Ok(Request::RemoteFence(targets, fence))
        }
        (HSM, _) => hart_state(function, a, harts),
        (SUSP, susp::SUSPEND) => match a[0] & 0xffff_ffff {
            susp::TO_RAM => Ok(Request::SuspendAndResume { address: a[1], opaque: a[2], alone: true }),
            _ => Err(Error::InvalidParameter),
        },
        (SRST, srst::RESET) => reset(a[0], a[1]).map(Request::Reset),
        (DBCN, dbcn::WRITE | dbcn::READ) if a[2] != 0 => Err(Error::InvalidParameter),
        (DBCN, dbcn::WRITE) => Ok(Request::Write { from: a[1], size: a[0] }),
        (DBCN, dbcn::READ) => Ok(Request::Read { to: a[1], size: a[0] }),
        (DBCN, dbcn::WRITE_BYTE) => Ok(Request::WriteByte(a[0] as u8)),
        (AINORI, ainori::YIELD) => Ok(Request::Yield),
        (AINORI, ainori::MARK) => Ok(Request::Mark(a[0])),
        (AINORI, ainori::LOCK_TAKEN | ainori::LOCK_RELEASED) => {
            Ok(Request::HoldsLock(function == ainori::LOCK_TAKEN))
        }
        // Sleep is what gives the core to everybody else, under any policy.
        (AINORI, ainori::GIVE_WAY) => Ok(Request::Suspend),
        (legacy::GETCHAR, _) => Ok(Request::ReadByte),
        (legacy::CLEAR_IPI, _) => Ok(Request::ClearIpi),
        _ => Err(Error::NotSupported),
    }
}

/// The base extension (chapter 4).
///
/// # Errors
/// [`Error::NotSupported`]: there is no such function.
#[inline]
pub fn base(function: u64, extension: u64) -> Result<u64> {
    match function {
        base::VERSION => Ok(VERSION_2_0),
        base::IMPLEMENTATION => Ok(IMPLEMENTATION),
        base::IMPLEMENTATION_VERSION => Ok(0),
        base::PROBE => {
            let is_today =
                matches!(extension, BASE | TIME | IPI | RFENCE | HSM | SRST | SUSP | DBCN | AINORI);
            Ok(u64::from(is_today || legacy::is_legacy(extension)))
        }
        // Vendor, architecture and implementation of the hart: a guest has no business with them.
        base::VENDOR..=base::HART_IMPLEMENTATION => Ok(0),
        _ => Err(Error::NotSupported),
    }
}

/// The one function of an extension that has no other.
///
/// # Errors
/// [`Error::NotSupported`]: it isn't that one.
#[inline]
pub fn is_first(function: u64) -> Result<()> {
    if function == 0 { Ok(()) } else { Err(Error::NotSupported) }
}

/// The harts that a mask and its base name, a bit each, of a guest that has these `harts` (chapter 3.1).
///
/// # Errors
/// [`Error::InvalidParameter`]: one of them isn't there.
#[inline]
pub fn hart_mask(harts: u64, (mask, base): (u64, u64)) -> Result<u64> {
    const ALL: u64 = u64::MAX;
    if base == ALL {
        return Ok(harts);
    }
    // The base has to be valid also if the mask names no hart.
    if base >= u64::from(u64::BITS) || harts >> base == 0 {
        return Err(Error::InvalidParameter);
    }
    // Shifted there and back, it has lost nothing if there is room for it.
    let named = mask << base;
    if named >> base != mask || named & !harts != 0 {
        return Err(Error::InvalidParameter);
    }
    Ok(named)
}

/// Hart state management (chapter 9).
fn hart_state(function: u64, a: [u64; 5], harts: u64) -> Result<Request> {
    let hart = || {
        let is_there = a[0] < u64::from(u64::BITS) && harts >> a[0] & 1 != 0;
        if is_there { Ok(a[0] as u32) } else { Err(Error::InvalidParameter) }
    };
    match function {
        hsm::START => Ok(Request::HartStart { hart: hart()?, address: a[1], opaque: a[2] }),
        hsm::STOP => Ok(Request::HartStop),
        hsm::STATUS => hart().map(Request::HartStatus),
        // The default retentive suspension is a WFI. The default non-retentive one keeps what it has to, and the caller can't tell what else.
        hsm::SUSPEND => match a[0] & 0xffff_ffff {
            hsm::RETENTIVE => Ok(Request::Suspend),
            hsm::NON_RETENTIVE => Ok(Request::SuspendAndResume { address: a[1], opaque: a[2], alone: false }),
            _ => Err(Error::InvalidParameter),
        },
        _ => Err(Error::NotSupported),
    }
}

/// System reset (chapter 10): 32 bits each of type and reason.
fn reset(kind: u64, reason: u64) -> Result<Reason> {
    use srst::{COLD_REBOOT, FIRST_SPECIFIC, NO_REASON, SHUTDOWN, SYSTEM_FAILURE, WARM_REBOOT};
    match (kind & 0xffff_ffff, reason & 0xffff_ffff) {
        (SHUTDOWN, NO_REASON) => Ok(Reason::Shutdown),
        (COLD_REBOOT | WARM_REBOOT, NO_REASON) => Ok(Reason::Reboot),
        (SHUTDOWN..=WARM_REBOOT, SYSTEM_FAILURE | FIRST_SPECIFIC..) => Ok(Reason::Failure),
        _ => Err(Error::InvalidParameter),
    }
}
