//! The binary form of a record.

/// Bits of a record's time. At 10 MHz they last for 325 days.
pub const TIME_BITS: u32 = 48;

const TIME_SHIFT: u32 = 64 - TIME_BITS;
const A_SHIFT: u32 = 8;

/// Defines [`Kind`] from one table.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $name:literal;)*) => {
        /// What a record tells. The number is its bit in a [`Mask`](crate::Mask); it never changes its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl Kind {
            /// All kinds, by number.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The name, as manifests list it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The kind with this number.
            pub const fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// World switch: another vCPU has the core now, or none.
    Switch = 0, "switch";
    /// A vCPU trapped into the hypervisor.
    Trap = 1, "trap";
    /// The hypervisor learnt that an interrupt is due for a vCPU.
    Raised = 2, "raised";
    /// The interrupt's line was set in a vCPU's registers.
    Injected = 3, "injected";
    /// The guest's handler took the interrupt.
    Taken = 4, "taken";
    /// This core left a message for another.
    Posted = 5, "posted";
    /// This core took a message from another.
    Received = 6, "received";
    /// This core sent a physical IPI.
    IpiSent = 7, "ipi";
    /// A vCPU changed its core.
    Migration = 8, "migration";
    /// A sleeping vCPU wants a core again.
    Wake = 9, "wake";
    /// A vCPU gave its core up until something wakes it.
    Sleep = 10, "sleep";
    /// A remote fence for a vCPU.
    Fence = 11, "fence";
    /// A guest's own mark, through the SBI vendor extension.
    Mark = 12, "mark";
    /// Records that were overwritten before they were read. Made by the reader.
    Lost = 13, "lost";
}

/// A record: when, what, and what of it. [`Event`](crate::Event) gives `a` and `b` their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// `time` CSR, its low [`TIME_BITS`] bits.
    pub time: u64,
    /// What it tells.
    pub kind: Kind,
    /// The small field: mostly a vCPU.
    pub a: u8,
    /// The large field.
    pub b: u64,
}

/// A record of a kind that this version doesn't know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownKind(pub u8);

impl Record {
    /// The two words in memory: `time << 16 | a << 8 | kind`, and `b`. Higher bits of the time fall off; with the time on top
    /// that costs no masking, and the words sort by time.
    #[inline]
    pub const fn encode(self) -> [u64; 2] {
        [self.time << TIME_SHIFT | (self.a as u64) << A_SHIFT | self.kind as u64, self.b]
    }

    /// The record that these words stand for.
    ///
    /// # Errors
    /// The kind's number, if no [`Kind`] has it.
    pub const fn decode([head, b]: [u64; 2]) -> Result<Self, UnknownKind> {
        let number = head as u8;
        match Kind::from_number(number) {
            Some(kind) => Ok(Self { time: head >> TIME_SHIFT, kind, a: (head >> A_SHIFT) as u8, b }),
            None => Err(UnknownKind(number)),
        }
    }
}
