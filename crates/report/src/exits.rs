//! The causes of exits: the kernel counts and traces them by number, reports call them by name.

/// Defines [`Exit`] from one table.
macro_rules! exits {
    ($($(#[doc = $doc:literal])* $(#[cfg(feature = $feature:literal)])? $variant:ident = $text:literal,)*) => {
        /// Why a vCPU left its guest for the hypervisor. The number of a variant is the class of trap records.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Exit { $($(#[doc = $doc])* $(#[cfg(feature = $feature)])? $variant,)* }

        impl Exit {
            /// Names in reports and traces, by number.
            pub const NAMES: &'static [&'static str] = &[$($(#[cfg(feature = $feature)])? $text),*];
        }
    };
}

exits! {
    /// The core's alarm: another vCPU's timer, or the end of the quantum.
    Timer = "timer",
    /// The core's alarm, and then a piece of the hypervisor's own work, or a look whether it is time for one.
    Housekeeping = "housekeeping",
    /// Another core sent an IPI.
    Ipi = "ipi",
    /// A device of the board.
    External = "external",
    /// WFI.
    Wfi = "wfi",
    /// The guest spins: WRS.NTO, or a sample that found it.
    Spin = "spin",
    /// A look whether the guest spins that didn't find it.
    Sample = "sample",
    /// SBI TIME.
    SbiTime = "sbi-time",
    /// SBI IPI.
    SbiIpi = "sbi-ipi",
    /// SBI RFENCE.
    SbiRfence = "sbi-rfence",
    /// SBI HSM.
    SbiHsm = "sbi-hsm",
    /// SBI DBCN.
    SbiConsole = "sbi-dbcn",
    /// SBI SRST.
    SbiReset = "sbi-srst",
    /// The hypervisor's own extension.
    SbiVendor = "sbi-ainori",
    /// SBI BASE, all extensions that aren't there, and legacy calls whose hart mask the guest's own translation refuses.
    SbiOther = "sbi-other",
    /// A register of the virtual interrupt controller.
    Irqchip = "mmio-irqchip",
    /// A vCPU's interrupt file: a message, or one of its registers.
    InterruptFile = "imsic",
    /// A register of the virtual serial port.
    Uart = "mmio-uart",
    /// A register of another virtual device.
    Device = "mmio-other",
    /// Use of floating point or vectors while another vCPU's were in the hart.
    Extensions = "extensions",
    /// An illegal instruction, handed to the guest; or one that the guest has taken away meanwhile.
    Illegal = "illegal",
    /// An access where the guest has nothing, handed to it as an access fault.
    Wild = "access-fault",
    /// A trap from user mode that the guest handles itself, but elsewhere.
    Confined = "confined",
    /// SRET, where the return to user mode has to be noticed.
    Return = "sret",
    /// A trap just before a more urgent deadline: it comes again after that.
    PutOff = "put-off",
    /// No exit of its own: work that was cut into parts, up to a point where no interrupt was waiting.
    Backlog = "backlog",
    /// What ended the guest.
    Fault = "fault",
    // From here on those of guests with shadow tables, which not every kernel has: behind all others, whose numbers are the same in each.
    /// A page fault that the guest doesn't see: its shadow has been filled in.
    #[cfg(feature = "shadow")]
    Shadow = "shadow",
    /// A page fault of a guest with a shadow, handed to it.
    #[cfg(feature = "shadow")]
    PageFault = "page-fault",
    /// `satp`, of a guest with a shadow.
    #[cfg(feature = "shadow")]
    AddressSpace = "satp",
    /// SFENCE.VMA or SINVAL.VMA, of a guest with a shadow.
    #[cfg(feature = "shadow")]
    Fence = "sfence.vma",
    // And from here on those of guests whose kernels run in user mode.
    /// A privileged instruction that has been carried out, of those that have no exit of their own.
    #[cfg(feature = "no-h")]
    Privileged = "privileged",
    /// The guest's own timer.
    #[cfg(feature = "no-h")]
    GuestTimer = "guest-timer",
    /// An exception of the guest, handed to it.
    #[cfg(feature = "no-h")]
    GuestTrap = "guest-trap",
}
