//! Causes of traps, as `scause` has them (privileged specification, table "Supervisor cause register values" with the H extension).

/// Defines the numbers of causes, and how their names are found, from one table.
macro_rules! causes {
    ($(#[$doc:meta])* $kind:ident, $name_of:ident: $($name:ident = $code:literal, $text:literal;)*) => {
        $(#[$doc])*
        pub mod $kind {
            $(#[doc = concat!("The number of: ", $text, ".")] pub const $name: u32 = $code;)*
        }

        /// The specification's name, in lower case, of the one with this number in `scause`.
        pub const fn $name_of(code: u64) -> Option<&'static str> {
            match code {
                $($code => Some($text),)*
                _ => None,
            }
        }
    };
}

causes! {
    /// Exceptions.
    exception, exception_name:
    MISALIGNED_FETCH = 0, "instruction address misaligned";
    FETCH_ACCESS = 1, "instruction access fault";
    ILLEGAL_INSTRUCTION = 2, "illegal instruction";
    BREAKPOINT = 3, "breakpoint";
    MISALIGNED_LOAD = 4, "load address misaligned";
    LOAD_ACCESS = 5, "load access fault";
    MISALIGNED_STORE = 6, "store address misaligned";
    STORE_ACCESS = 7, "store access fault";
    CALL_FROM_USER = 8, "environment call from U-mode";
    CALL_FROM_HYPERVISOR = 9, "environment call from HS-mode";
    CALL_FROM_GUEST = 10, "environment call from VS-mode";
    FETCH_PAGE_FAULT = 12, "instruction page fault";
    LOAD_PAGE_FAULT = 13, "load page fault";
    STORE_PAGE_FAULT = 15, "store page fault";
    FETCH_GUEST_PAGE_FAULT = 20, "instruction guest-page fault";
    LOAD_GUEST_PAGE_FAULT = 21, "load guest-page fault";
    VIRTUAL_INSTRUCTION = 22, "virtual instruction";
    STORE_GUEST_PAGE_FAULT = 23, "store guest-page fault";
}

causes! {
    /// Interrupts. A device tree names a hart's interrupts by the same numbers.
    interrupt, interrupt_name:
    SUPERVISOR_SOFTWARE = 1, "supervisor software interrupt";
    GUEST_SOFTWARE = 2, "virtual supervisor software interrupt";
    SUPERVISOR_TIMER = 5, "supervisor timer interrupt";
    GUEST_TIMER = 6, "virtual supervisor timer interrupt";
    SUPERVISOR_EXTERNAL = 9, "supervisor external interrupt";
    GUEST_EXTERNAL = 10, "virtual supervisor external interrupt";
    MACHINE_EXTERNAL = 11, "machine external interrupt";
    SUPERVISOR_GUEST_EXTERNAL = 12, "supervisor guest external interrupt";
}
