//! Random sequences of what happens to a hart, in step with the [model](super::model).
use ainori_devices::zicsr::AnyCsrInstruction;
use proptest::prelude::*;

use super::model::{Hart, Result, State};
use crate::*;

#[derive(Debug, Clone)]
enum Op {
    Csr {
        bits: u32,
        source: u64,
    },
    Return,
    Exception {
        code: u32,
        value: u64,
        pc: u64,
    },
    /// If there is one.
    TakeInterrupt {
        pc: u64,
    },
    Software(bool),
    External(bool),
    Wait(u64),
    /// By the SBI.
    Deadline(u64),
    /// The guest writes to a register of a unit, if it is on.
    Use(Unit),
}

/// All that there are, their neighbours, and any others.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        12 => prop::sample::select(vec![0x100, 0x104, 0x105, 0x106, 0x10a, 0x140, 0x141, 0x142, 0x143, 0x144, 0x14d]),
        4 => Just(0x100),
        2 => prop::sample::select(vec![0x180, 1, 2, 3, 8, 9, 0xa, 0xf, 0xc00, 0xc01, 0xc02, 0xc03, 0xc1f, 0xc20, 0xc22]),
        1 => 0_u32..4096,
    ]
}

/// Values with few bits, whose fields meet; small times; and any.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        0_u64..32,
        (0_u32..64).prop_map(|n| 1 << n),
        (0_u32..64, 0_u32..64).prop_map(|(a, b)| 1 << a | 1 << b),
        prop::sample::select(vec![
            0x2, 0x20, 0x22, 0x222, 0x200, 0x600, 0x6000, 0x2000, 0x4_0000, 0x8_0000, 0x100
        ]),
        any::<u64>(),
    ]
}

fn csr() -> impl Strategy<Value = Op> {
    let operation = prop::sample::select(vec![1_u32, 2, 3, 5, 6, 7]);
    (number(), operation, 0_u32..32, prop_oneof![Just(0_u32), Just(2), 0_u32..32], value()).prop_map(
        |(number, funct3, rd, rs1, source)| {
            let source = if rs1 == 0 { 0 } else { source };
            Op::Csr { bits: number << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x73, source }
        },
    )
}

fn pc() -> impl Strategy<Value = u64> {
    value().prop_map(|pc| pc & !3)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => csr(),
        4 => Just(Op::Return),
        2 => (0_u32..16, value(), pc()).prop_map(|(code, value, pc)| Op::Exception { code, value, pc }),
        3 => pc().prop_map(|pc| Op::TakeInterrupt { pc }),
        1 => any::<bool>().prop_map(Op::Software),
        1 => any::<bool>().prop_map(Op::External),
        1 => prop_oneof![0_u64..40, any::<u64>()].prop_map(Op::Wait),
        1 => value().prop_map(Op::Deadline),
        1 => prop::sample::select(vec![Unit::Float, Unit::Vector]).prop_map(Op::Use),
    ]
}

fn features() -> impl Strategy<Value = Features> {
    let masks = (prop_oneof![Just(7), any::<u32>()], prop_oneof![Just(7), any::<u32>()]);
    (any::<[bool; 6]>(), masks, prop::option::of(any::<u64>())).prop_map(
        |(
            [float, vector, compressed, timer, invalidation, reservation_waits],
            (counters, counter_enables),
            environment,
        )| Features {
            float,
            vector,
            compressed,
            timer,
            invalidation,
            reservation_waits,
            counters,
            counter_enables,
            environment,
        },
    )
}

/// The two, and the units that the hart has the guest's registers of.
struct Pair {
    tested: Supervisor,
    model: Hart,
    loaded: Units,
}

impl Pair {
    fn csr(&mut self, bits: u32, source: u64) {
        let Privileged::Csr(instruction) = Privileged::decode(bits) else { panic!("{bits:#x} is one") };
        let time = self.model.time;
        if instruction.number() == 0x100 {
            self.tested.check_timer(time); // as an alarm has it done
        }
        let before = self.tested;
        let could_be_interrupted = self.model.interrupt().is_some();
        let deadline = self.model.deadline();
        let mxr = self.model.mxr;
        let units = [self.model.float, self.model.vector];
        let programs = self.for_programs();
        let result = self.model.execute(bits, source);
        let outcome = self.tested.access(instruction, source, || time);
        let is_done = matches!(result, Result::Done(_));
        let expected = match result {
            Result::Illegal => Err(Illegal),
            Result::Done(old) => {
                let Ok(Outcome::Done { effects, .. }) = outcome else {
                    panic!("{bits:#x}: {outcome:?} for {result:?}")
                };
                assert_eq!(effects.contains(Effects::VIEW), self.tested.view() != before.view());
                assert_eq!(effects.contains(Effects::EXECUTABLE), mxr != self.model.mxr);
                assert_eq!(effects.contains(Effects::UNITS), units != [self.model.float, self.model.vector]);
                if self.model.deadline() != deadline {
                    assert!(effects.contains(Effects::TIMER));
                }
                assert_eq!(effects.contains(Effects::PROGRAMS), programs != self.for_programs());
                // All interrupts that were to be taken were before.
                if !could_be_interrupted && instruction.writes() {
                    let interrupts = matches!(instruction.number(), 0x100 | 0x104 | 0x144 | 0x14d);
                    assert_eq!(
                        effects.contains(Effects::INTERRUPT),
                        interrupts && self.model.interrupt().is_some()
                    );
                }
                Ok(Outcome::Done { old, effects })
            }
            Result::AddressSpace { writes } => {
                let access = instruction.access(source);
                assert_eq!(access.writes(), writes);
                Ok(Outcome::AddressSpace(access))
            }
            Result::Counter(number) => Ok(Outcome::Counter(number as u8)),
            Result::Float => Ok(Outcome::Unit(Unit::Float)),
            Result::Vector => Ok(Outcome::Unit(Unit::Vector)),
        };
        assert_eq!(outcome, expected, "{bits:#x}");
        assert!(is_done || self.tested == before, "nothing has changed");
    }

    /// `scounteren` and `senvcfg`, as the guest reads them.
    fn for_programs(&self) -> [Option<u64>; 2] {
        [0x106, 0x10a].map(|number| read(&self.tested, number, self.model.time))
    }

    /// A unit that isn't loaded is, at its first use; then the guest goes on with the hart's `sstatus`.
    fn use_unit(&mut self, unit: Unit) {
        let state = match unit {
            Unit::Float => &mut self.model.float,
            Unit::Vector => &mut self.model.vector,
        };
        assert_eq!(self.tested.is_on(unit), *state != State::Off);
        if *state == State::Off {
            let hart = self.tested.hart_status(self.loaded);
            assert!(!Units::on(hart).contains(unit), "it traps");
            return;
        }
        *state = State::Dirty;
        self.loaded = self.loaded.and(Units::of(unit));
        let hart = self.tested.hart_status(self.loaded);
        assert!(Units::on(hart).contains(unit));
        let hart = hart | Units::of(unit).fields(); // the hart notes it
        assert!(Units::dirty(hart).contains(unit));
        self.tested.take_units(hart, self.loaded);
    }

    fn step(&mut self, op: &Op) {
        let time = self.model.time;
        match *op {
            Op::Csr { bits, source } => self.csr(bits, source),
            Op::Return => assert_eq!(self.tested.sret(), self.model.sret()),
            Op::Exception { code, value, pc } => assert_eq!(
                self.tested.trap(Cause::exception(code), value, pc),
                self.model.trap(false, code.into(), value, pc)
            ),
            Op::TakeInterrupt { pc } => {
                let Some(code) = self.model.interrupt() else { return };
                self.tested.check_timer(time);
                let cause = self.tested.pending_interrupt().expect("there is one");
                assert!(cause.is_interrupt());
                assert_eq!(cause.code(), code);
                assert_eq!(self.tested.trap(cause, 0, pc), self.model.trap(true, code, 0, pc));
            }
            Op::Software(raised) => {
                self.tested.set_line(Line::Software, raised);
                self.model.set_software(raised);
            }
            Op::External(raised) => {
                self.tested.set_line(Line::External, raised);
                self.model.external_pending = raised;
            }
            Op::Wait(ticks) => self.model.time = time.saturating_add(ticks),
            Op::Deadline(deadline) => {
                self.tested.set_deadline(deadline, time);
                self.model.set_timer(deadline);
            }
            Op::Use(unit) => self.use_unit(unit),
        }
    }

    /// All that can be seen. Nobody looks at the time for that, so that it may be long ago that somebody has.
    fn compare(&self) {
        let time = self.model.time;
        let mut copy = self.model.clone();
        copy.in_supervisor = true;
        for number in [0x100, 0x104, 0x105, 0x106, 0x10a, 0x140, 0x141, 0x142, 0x143, 0x144, 0x14d] {
            let expected = match copy.execute(number << 20 | 2 << 12 | 0x73, 0) {
                Result::Done(value) => Some(value),
                _ => None,
            };
            assert_eq!(read(&self.tested, number, time), expected, "{number:#x}");
        }
        let mut at_this_time = self.tested;
        at_this_time.check_timer(time);
        let interrupt = at_this_time.pending_interrupt().map(Cause::code);
        assert_eq!(interrupt, self.model.interrupt());
        assert_eq!(at_this_time.wakes(), self.model.wakes());
        assert_eq!(self.tested.deadline(), self.model.deadline());
        assert_eq!(self.tested.privilege() == Privilege::Supervisor, self.model.in_supervisor);
        let view = match (self.model.in_supervisor, self.model.sum) {
            (false, _) => View::User,
            (true, false) => View::Kernel,
            (true, true) => View::KernelSum,
        };
        assert_eq!(self.tested.view(), view);
        assert_eq!(self.tested.hart_counters(), self.model.counters());
        let environment = self.tested.hart_environment();
        let instructions = [4, 6, 7, 0].map(|bit| environment >> bit & 1 != 0);
        assert_eq!(instructions, self.model.cache_block_instructions());
        assert_eq!(environment & !0b1101_0001, 0, "CBO.INVAL flushes at most");
        let hart = self.tested.hart_status(self.loaded);
        assert_eq!(hart & !Supervisor::HART_STATUS, 0);
        assert_eq!(hart >> 19 & 1 != 0, self.model.mxr);
        for (unit, state, shift) in
            [(Unit::Float, self.model.float, 13), (Unit::Vector, self.model.vector, 9)]
        {
            let expected = if self.loaded.contains(unit) { state } else { State::Off };
            assert_eq!(State::from_field(hart >> shift & 3), expected);
        }
        // What the hart has not changed changes nothing.
        let mut taken = self.tested;
        taken.take_units(hart, self.loaded);
        assert_eq!(taken, self.tested);
    }
}

/// What the kernel would read.
fn read(tested: &Supervisor, number: u32, time: u64) -> Option<u64> {
    let instruction = AnyCsrInstruction::decode(number << 20 | 2 << 12 | 0x73).expect("csrr x0");
    let mut copy = *tested;
    copy.privilege = Privilege::Supervisor;
    match copy.access(instruction, 0, || time) {
        Ok(Outcome::Done { old, effects }) => {
            assert!(effects.is_none());
            Some(old)
        }
        _ => None,
    }
}

proptest! {
    #[test]
    fn a_hart_in_software_does_what_the_specification_says(
        features in features(),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let mut pair =
            Pair { tested: Supervisor::new(features), model: Hart::new(features), loaded: Units::NONE };
        pair.compare();
        for op in &ops {
            pair.step(op);
            pair.compare();
        }
    }
}
