//! An interrupt file in memory against a model that is written straight from the specification (AIA, chapter 3).
//! Not with loom's atomics, which work only inside of a loom model: see `imsic_races.rs`.
#![cfg(not(loom))]

use ainori_devices::imsic::{IDENTITIES, InterruptFile};
use ainori_devices::zicsr::CsrAccess;
use proptest::prelude::*;

const EIDELIVERY: u64 = 0x70;
const EITHRESHOLD: u64 = 0x72;
const EIP0: u64 = 0x80;
const EIE0: u64 = 0xc0;
const N: usize = IDENTITIES as usize;

/// The specification's registers, a field each; identities are indices.
#[derive(Debug, Clone)]
struct Model {
    pending: [bool; N + 1],
    enabled: [bool; N + 1],
    threshold: usize,
    delivery: u64,
}

impl Model {
    const RESET: Self = Self { pending: [false; N + 1], enabled: [false; N + 1], threshold: 0, delivery: 0 };

    /// "the interrupt file's current highest-priority pending-and-enabled interrupt that also exceeds the priority threshold [...], if eithreshold is
    /// not zero. Interrupts with lower identity numbers have higher priorities."
    fn top(&self) -> u32 {
        let first = (1..=N)
            .find(|&i| self.pending[i] && self.enabled[i] && (self.threshold == 0 || i < self.threshold));
        first.map_or(0, |i| (i << 16 | i) as u32)
    }

    fn is_signaled(&self) -> bool {
        self.delivery == 1 && self.top() != 0
    }

    /// "Bit positions [...] that don't correspond to a supported interrupt identity (such as bit 0 of eip0) are read-only zeros."
    fn bits(array: &mut [bool; N + 1], access: CsrAccess) -> u64 {
        let mut old = 0;
        for (i, bit) in array.iter_mut().enumerate().skip(1) {
            old |= u64::from(*bit) << i;
            *bit = match access {
                CsrAccess::Read => *bit,
                CsrAccess::Write(value) => value >> i & 1 != 0,
                CsrAccess::Set(value) => *bit || value >> i & 1 != 0,
                CsrAccess::Clear(value) => *bit && value >> i & 1 == 0,
            };
        }
        old
    }

    fn number(old: u64, access: CsrAccess) -> u64 {
        match access {
            CsrAccess::Read => old,
            CsrAccess::Write(value) => value,
            CsrAccess::Set(value) => old | value,
            CsrAccess::Clear(value) => old & !value,
        }
    }

    fn access(&mut self, select: u64, access: CsrAccess) -> Option<u64> {
        match select {
            EIDELIVERY => {
                let old = self.delivery;
                self.delivery = Self::number(old, access) & 1;
                Some(old)
            }
            EITHRESHOLD => {
                let old = self.threshold as u64;
                self.threshold = (Self::number(old, access) & u64::from(IDENTITIES)) as usize;
                Some(old)
            }
            EIP0 => Some(Self::bits(&mut self.pending, access)),
            EIE0 => Some(Self::bits(&mut self.enabled, access)),
            // The priorities of the hart's own interrupts, which may be read-only zero.
            0x30..=0x3f if select.is_multiple_of(2) => Some(0),
            // "When the current XLEN = 64, the odd-numbered registers [...] do not exist."
            0x80..=0xff if select % 2 == 1 => None,
            // "Register numbers 0x71 and 0x73-0x7F are reserved [...]: reads return zero, and writes are ignored"; and identities that there aren't.
            0x71 | 0x73..=0xff => Some(0),
            _ => None,
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Post(u32),
    Claim,
    Access(u64, CsrAccess),
    Reset,
}

fn access() -> impl Strategy<Value = CsrAccess> {
    let value = prop_oneof![any::<u64>(), (0..80_u64), (0..64_u32).prop_map(|bit| 1 << bit), Just(u64::MAX)];
    (0..4, value).prop_map(|(kind, value)| match kind {
        0 => CsrAccess::Read,
        1 => CsrAccess::Write(value),
        2 => CsrAccess::Set(value),
        _ => CsrAccess::Clear(value),
    })
}

fn step() -> impl Strategy<Value = Step> {
    let select = prop_oneof![
        6 => prop::sample::select(vec![EIDELIVERY, EITHRESHOLD, EIP0, EIE0]),
        1 => 0x60..0x110_u64,
        1 => any::<u64>(),
    ];
    let identity = || prop_oneof![8 => 0..70_u32, 1 => any::<u32>()];
    prop_oneof![
        6 => identity().prop_map(Step::Post),
        3 => Just(Step::Claim),
        8 => (select, access()).prop_map(|(select, access)| Step::Access(select, access)),
        1 => Just(Step::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn it_is_what_the_specification_says(steps in prop::collection::vec(step(), 1..60)) {
        let (file, mut model) = (InterruptFile::new(), Model::RESET);
        for step in steps {
            match step {
                Step::Post(identity) => {
                    let was_signaled = model.is_signaled();
                    let new = match model.pending.get_mut(identity as usize) {
                        Some(pending) if identity != 0 => !std::mem::replace(pending, true),
                        _ => false,
                    };
                    let told = file.post(identity);
                    // Whoever is interrupted by this must be told; who is interrupted already may be.
                    prop_assert!(told || was_signaled || !model.is_signaled());
                    prop_assert!(!told || new && model.is_signaled());
                }
                Step::Claim => {
                    let top = model.top();
                    model.pending[(top >> 16) as usize] = false;
                    prop_assert_eq!(file.claim(), top);
                }
                Step::Access(select, access) => {
                    prop_assert_eq!(file.access(select, access), model.access(select, access));
                }
                Step::Reset => {
                    file.reset();
                    model = Model::RESET;
                }
            }
            prop_assert_eq!(file.top(), model.top());
            prop_assert_eq!(file.is_signaled(), model.is_signaled());
        }
    }
}
