//! What a guest's hart has besides what each has.

/// What a guest's hart is said to have, and what registers can hold that differ from hart to hart.
///
/// Those that are measured (`counter_enables`, `environment`) are what can be read back of the hart's own register after all ones were written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// A floating-point unit (F): `sstatus.FS` can be written, and there is `fcsr`.
    pub float: bool,
    /// A vector unit (V): `sstatus.VS` can be written, and there are the vector unit's registers.
    pub vector: bool,
    /// Compressed instructions (C): addresses of instructions are even (IALIGN is 16), not multiples of 4.
    pub compressed: bool,
    /// Sstc: there is `stimecmp`. Otherwise the guest asks the SBI for its timer ([`Supervisor::set_deadline`](crate::Supervisor::set_deadline)).
    pub timer: bool,
    /// Svinval: there are SINVAL.VMA, SFENCE.W.INVAL and SFENCE.INVAL.IR.
    pub invalidation: bool,
    /// Zawrs: there are WRS.NTO and WRS.STO.
    pub reservation_waits: bool,
    /// Counters that the guest's kernel may read, as bits of `scounteren`: `cycle`, `time`, `instret`, `hpmcounter3` to `hpmcounter31`.
    pub counters: u32,
    /// Bits of `scounteren` that can be written.
    pub counter_enables: u32,
    /// Bits of `senvcfg` that can be written; of them the guest has those of [`Self::ENVIRONMENT`]. `None` if there is no such register, as before version 1.12 of
    /// the specification.
    pub environment: Option<u64>,
}

impl Features {
    /// `senvcfg.FIOM`: fences of input and output order memory as well.
    pub(crate) const FIOM: u64 = 1 << 0;
    /// `senvcfg.CBIE` (Zicbom): CBO.INVAL may be executed, and flushes.
    pub(crate) const CBIE_FLUSH: u64 = 0b01 << 4;
    /// All of `senvcfg.CBIE`.
    pub(crate) const CBIE: u64 = 0b11 << 4;
    /// `senvcfg.CBCFE` (Zicbom): CBO.CLEAN and CBO.FLUSH may be executed.
    pub(crate) const CBCFE: u64 = 1 << 6;
    /// `senvcfg.CBZE` (Zicboz): CBO.ZERO may be executed.
    pub(crate) const CBZE: u64 = 1 << 7;
    /// Fields of `senvcfg` that a guest can have at all: those of Zicbom, Zicboz, and FIOM.
    pub const ENVIRONMENT: u64 = Self::FIOM | Self::CBIE | Self::CBCFE | Self::CBZE;

    /// The counters `cycle`, `time` and `instret`, as bits of `scounteren`.
    pub const BASE_COUNTERS: u32 = 0b111;
}
