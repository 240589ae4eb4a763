//! Where the registers of an APLIC's domain are, in bytes from its start (AIA, table 4.1), and what is in them. All are 32 bits wide. Of the arrays with
//! a register for each source, source *n*'s is 4 *n* bytes behind what is named here; of those with a bit for each source, 32 are in a word.

/// Domain configuration (section 4.5.1).
pub const DOMAINCFG: u64 = 0;
/// In it: the domain's interrupts are delivered at all.
pub const INTERRUPT_ENABLE: u32 = 1 << 8;
/// In it: they are delivered as messages, rather than by the APLIC itself.
pub const MESSAGES: u32 = 1 << 2;
/// Source configurations (section 4.5.2). In the place of source 0, which doesn't exist, is [`DOMAINCFG`].
pub const SOURCECFG: u64 = 0;
/// In them: no wire makes the source pending, only software does.
pub const DETACHED: u32 = 1;
/// In them: the wire asks by going high.
pub const EDGE1: u32 = 4;
/// In them: the wire asks by going low.
pub const EDGE0: u32 = 5;
/// In them: the wire asks while it is high.
pub const LEVEL1: u32 = 6;
/// In them: the wire asks while it is low.
pub const LEVEL0: u32 = 7;
/// Sets pending bits.
pub const SETIP: u64 = 0x1c00;
/// Sets the pending bit of a source by number.
pub const SETIPNUM: u64 = 0x1cdc;
/// The wires, rectified; clears pending bits.
pub const IN_CLRIP: u64 = 0x1d00;
/// Clears a pending bit by number.
pub const CLRIPNUM: u64 = 0x1ddc;
/// Sets enable bits.
pub const SETIE: u64 = 0x1e00;
/// Sets an enable bit by number.
pub const SETIENUM: u64 = 0x1edc;
/// Clears enable bits.
pub const CLRIE: u64 = 0x1f00;
/// Clears an enable bit by number.
pub const CLRIENUM: u64 = 0x1fdc;
/// As [`SETIPNUM`], always little-endian.
pub const SETIPNUM_LE: u64 = 0x2000;
/// Sends a message.
pub const GENMSI: u64 = 0x3000;
/// Interrupt targets (section 4.5.16). In the place of source 0 is [`GENMSI`].
pub const TARGET: u64 = 0x3000;
/// In them: the hart index is from this bit on.
pub const HART_SHIFT: u32 = 18;
/// In them, where interrupts are messages: the guest index is from this bit on, the number of the hart's guest interrupt file; 0 is the hart's own.
pub const GUEST_SHIFT: u32 = 12;
/// Its bits, when it has been shifted down.
pub const GUEST_INDEX: u32 = 0x3f;
/// In them, and in [`TOPI`] and [`CLAIMI`]: the priority number, of which not all bits need be there.
pub const PRIORITY: u32 = 0xff;
/// The interrupt delivery control of hart index 0 (section 4.8.1).
pub const IDC: u64 = 0x4000;
/// Bytes from one hart's to the next.
pub const IDC_SIZE: u64 = 32;
/// In it: are interrupts delivered to the hart?
pub const IDELIVERY: u64 = 0x00;
/// That they are.
pub const DELIVERED: u32 = 1;
/// In it: an interrupt without a source.
pub const IFORCE: u64 = 0x04;
/// In it: only priority numbers below this reach the hart; all if it is 0.
pub const ITHRESHOLD: u64 = 0x08;
/// In it: the most urgent source that reaches the hart.
pub const TOPI: u64 = 0x18;
/// In it: the same, which reading takes.
pub const CLAIMI: u64 = 0x1c;
/// In the last two: the source is from this bit on.
pub const SOURCE_SHIFT: u32 = 16;

/// Size in bytes of a guest's window: the domain's 16 KiB, and a page for the interrupt delivery control of its harts.
pub const WINDOW: u64 = 0x5000;
