//! Numbers of registers (privileged specification, tables "Currently allocated CSR addresses").

pub(crate) const FFLAGS: u16 = 0x001;
pub(crate) const FCSR: u16 = 0x003;
pub(crate) const VSTART: u16 = 0x008;
pub(crate) const VXSAT: u16 = 0x009;
pub(crate) const VXRM: u16 = 0x00a;
pub(crate) const VCSR: u16 = 0x00f;
pub(crate) const SSTATUS: u16 = 0x100;
pub(crate) const SIE: u16 = 0x104;
pub(crate) const STVEC: u16 = 0x105;
pub(crate) const SCOUNTEREN: u16 = 0x106;
pub(crate) const SENVCFG: u16 = 0x10a;
pub(crate) const SSCRATCH: u16 = 0x140;
pub(crate) const SEPC: u16 = 0x141;
pub(crate) const SCAUSE: u16 = 0x142;
pub(crate) const STVAL: u16 = 0x143;
pub(crate) const SIP: u16 = 0x144;
pub(crate) const STIMECMP: u16 = 0x14d;
pub(crate) const SATP: u16 = 0x180;
/// `cycle`. `time`, `instret` and `hpmcounter3` to `hpmcounter31` follow, as the bits of `scounteren` do.
pub(crate) const CYCLE: u16 = 0xc00;
pub(crate) const HPMCOUNTER31: u16 = 0xc1f;
pub(crate) const VL: u16 = 0xc20;
pub(crate) const VLENB: u16 = 0xc22;

/// Can the register only be read ("CSR Address Mapping Conventions")?
pub(crate) const fn is_read_only(number: u16) -> bool {
    number >> 10 & 0b11 == 0b11
}

/// Who may reach a register at least: user mode 0, supervisor mode 1, a hypervisor 2, machine mode 3.
pub(crate) const fn lowest_privilege(number: u16) -> u16 {
    number >> 8 & 0b11
}
