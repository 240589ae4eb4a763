//! A plain model of the specification: registers as named fields, built and taken apart one by one. It shares nothing with what it is compared with but the names of
//! what a guest's hart has.
use crate::Features;

/// State of a unit ("Extension Context Status").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Off,
    Initial,
    Clean,
    Dirty,
}

impl State {
    pub fn from_field(field: u64) -> Self {
        match field {
            0 => Self::Off,
            1 => Self::Initial,
            2 => Self::Clean,
            3 => Self::Dirty,
            _ => panic!("a field of two bits"),
        }
    }
}

/// What a bit is in a register's value.
fn bit(value: u64, number: u32) -> bool {
    value >> number & 1 != 0
}

/// What an instruction came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Result {
    Illegal,
    /// The old value.
    Done(u64),
    /// `satp` is read, and written if there is a value: old values of it aren't here.
    AddressSpace {
        writes: bool,
    },
    Counter(u32),
    Float,
    Vector,
}

/// A hart, as the guest sees it.
#[derive(Debug, Clone)]
pub struct Hart {
    pub in_supervisor: bool,
    pub time: u64,
    interrupts_on: bool,
    were_on: bool,
    from_supervisor: bool,
    pub float: State,
    pub vector: State,
    pub sum: bool,
    pub mxr: bool,
    software_enabled: bool,
    timer_enabled: bool,
    external_enabled: bool,
    software_pending: bool,
    pub external_pending: bool,
    stimecmp: u64,
    vector_base: u64,
    vectored: bool,
    sscratch: u64,
    sepc: u64,
    scause: u64,
    stval: u64,
    counters_for_user: [bool; 32],
    fences_order_memory: bool,
    invalidation_field: u64,
    cleaning: bool,
    zeroing: bool,
    features: Features,
}

impl Hart {
    pub fn new(features: Features) -> Self {
        let is_on = |there| if there { State::Initial } else { State::Off };
        Self {
            in_supervisor: true,
            time: 0,
            interrupts_on: false,
            were_on: false,
            from_supervisor: false,
            float: is_on(features.float),
            vector: is_on(features.vector),
            sum: false,
            mxr: false,
            software_enabled: false,
            timer_enabled: false,
            external_enabled: false,
            software_pending: false,
            external_pending: false,
            stimecmp: u64::MAX,
            vector_base: 0,
            vectored: false,
            sscratch: 0,
            sepc: 0,
            scause: 0,
            stval: 0,
            counters_for_user: std::array::from_fn(|n| {
                n < 3 && bit(features.counter_enables.into(), n as u32)
            }),
            fences_order_memory: false,
            invalidation_field: 0,
            cleaning: false,
            zeroing: false,
            features,
        }
    }

    pub fn timer_pending(&self) -> bool {
        self.time >= self.stimecmp
    }

    pub fn set_software(&mut self, raised: bool) {
        self.software_pending = raised;
    }

    pub fn set_timer(&mut self, deadline: u64) {
        self.stimecmp = deadline;
    }

    /// `sstatus`, figure "Supervisor-mode status (sstatus) register when SXLEN=64".
    pub fn sstatus(&self) -> u64 {
        let mut value = 0;
        value += if self.interrupts_on { 0x2 } else { 0 };
        value += if self.were_on { 0x20 } else { 0 };
        value += if self.from_supervisor { 0x100 } else { 0 };
        value += 0x200 * self.vector as u64;
        value += 0x2000 * self.float as u64;
        value += if self.sum { 0x4_0000 } else { 0 };
        value += if self.mxr { 0x8_0000 } else { 0 };
        value += 0x2_0000_0000;
        if self.float == State::Dirty || self.vector == State::Dirty {
            value += 0x8000_0000_0000_0000;
        }
        value
    }

    /// What a read of a register gives, of those whose state is here.
    fn read(&self, number: u32) -> Option<u64> {
        let three = |software, timer, external| {
            u64::from(software) * 0x2 + u64::from(timer) * 0x20 + u64::from(external) * 0x200
        };
        Some(match number {
            0x100 => self.sstatus(),
            0x104 => three(self.software_enabled, self.timer_enabled, self.external_enabled),
            0x105 => self.vector_base + u64::from(self.vectored),
            0x106 => {
                self.counters_for_user.iter().rev().fold(0, |value, enabled| value * 2 + u64::from(*enabled))
            }
            0x10a => {
                self.features.environment?;
                u64::from(self.fences_order_memory)
                    + 0x10 * self.invalidation_field
                    + 0x40 * u64::from(self.cleaning)
                    + 0x80 * u64::from(self.zeroing)
            }
            0x140 => self.sscratch,
            0x141 => self.sepc,
            0x142 => self.scause,
            0x143 => self.stval,
            0x144 => three(self.software_pending, self.timer_pending(), self.external_pending),
            0x14d if self.features.timer => self.stimecmp,
            _ => return None,
        })
    }

    fn write(&mut self, number: u32, value: u64) {
        match number {
            0x100 => {
                self.interrupts_on = bit(value, 1);
                self.were_on = bit(value, 5);
                self.from_supervisor = bit(value, 8);
                self.sum = bit(value, 18);
                self.mxr = bit(value, 19);
                if self.features.vector {
                    self.vector = State::from_field(value >> 9 & 3);
                }
                if self.features.float {
                    self.float = State::from_field(value >> 13 & 3);
                }
            }
            0x104 => {
                self.software_enabled = bit(value, 1);
                self.timer_enabled = bit(value, 5);
                self.external_enabled = bit(value, 9);
            }
            0x105 => {
                let mode = value % 4;
                if mode < 2 {
                    self.vector_base = value - mode;
                    self.vectored = mode == 1;
                }
            }
            0x106 => {
                for (number, enabled) in (0..).zip(&mut self.counters_for_user) {
                    *enabled = bit(value, number) && bit(self.features.counter_enables.into(), number);
                }
            }
            0x10a => {
                let there = self.features.environment.expect("it was read");
                self.fences_order_memory = bit(value, 0) && bit(there, 0);
                self.invalidation_field =
                    u64::from(bit(value, 4) && bit(there, 4)) + 2 * u64::from(bit(value, 5) && bit(there, 5));
                self.cleaning = bit(value, 6) && bit(there, 6);
                self.zeroing = bit(value, 7) && bit(there, 7);
            }
            0x140 => self.sscratch = value,
            0x141 => self.sepc = value - value % if self.features.compressed { 2 } else { 4 },
            0x142 => self.scause = value,
            0x143 => self.stval = value,
            0x144 => self.software_pending = bit(value, 1),
            0x14d => self.stimecmp = value,
            _ => panic!("nobody writes {number:#x}"),
        }
    }

    /// May this counter be read now? By programs, if the kernel lets them.
    fn is_readable(&self, counter: u32) -> bool {
        bit(self.features.counters.into(), counter)
            && (self.in_supervisor || self.counters_for_user[counter as usize])
    }

    /// "Zicsr", for the instruction of these bits, whose register operand has this value.
    pub fn execute(&mut self, bits: u32, source: u64) -> Result {
        let [number, rs1, funct3] = [bits >> 20, bits >> 15 & 31, bits >> 12 & 7];
        let operand = if funct3 >= 5 { rs1.into() } else { source };
        // Table "Conditions determining whether a CSR instruction reads or writes the specified CSR".
        let writes = matches!(funct3, 1 | 5) || rs1 != 0;
        let for_all = matches!(number, 0x000..=0x0ff | 0x400..=0x4ff | 0x800..=0x8ff | 0xc00..=0xcff);
        let for_supervisor = matches!(number, 0x100..=0x1ff | 0x500..=0x5ff | 0x900..=0x9ff | 0xd00..=0xdff);
        let may_reach = for_all || for_supervisor && self.in_supervisor;
        if !may_reach || number >= 0xc00 && writes {
            return Result::Illegal;
        }
        match number {
            0x180 => return Result::AddressSpace { writes },
            0x001..=0x003 if self.float != State::Off => return Result::Float,
            0x008..=0x00a | 0x00f | 0xc20..=0xc22 if self.vector != State::Off => return Result::Vector,
            0xc00..=0xc1f if self.is_readable(number - 0xc00) => return Result::Counter(number - 0xc00),
            _ => {}
        }
        let Some(old) = self.read(number) else { return Result::Illegal };
        if writes {
            self.write(
                number,
                match funct3 {
                    1 | 5 => operand,
                    2 | 6 => old | operand,
                    3 | 7 => old & !operand,
                    _ => panic!("no instruction of Zicsr"),
                },
            );
        }
        Result::Done(old)
    }

    /// "When a trap is taken".
    pub fn trap(&mut self, interrupt: bool, code: u64, value: u64, pc: u64) -> u64 {
        self.were_on = self.interrupts_on;
        self.interrupts_on = false;
        self.from_supervisor = self.in_supervisor;
        self.in_supervisor = true;
        self.sepc = pc;
        self.scause = if interrupt { 0x8000_0000_0000_0000 + code } else { code };
        self.stval = value;
        self.vector_base.wrapping_add(if interrupt && self.vectored { 4 * code } else { 0 })
    }

    /// "When an SRET instruction is executed".
    pub fn sret(&mut self) -> Option<u64> {
        if !self.in_supervisor {
            return None;
        }
        self.in_supervisor = self.from_supervisor;
        self.from_supervisor = false;
        self.interrupts_on = self.were_on;
        self.were_on = true;
        Some(self.sepc)
    }

    /// Interrupts that are pending and enabled, by their codes, the first one first.
    fn waiting(&self) -> Vec<u64> {
        let mut codes = vec![];
        if self.external_pending && self.external_enabled {
            codes.push(9);
        }
        if self.software_pending && self.software_enabled {
            codes.push(1);
        }
        if self.timer_pending() && self.timer_enabled {
            codes.push(5);
        }
        codes
    }

    pub fn interrupt(&self) -> Option<u64> {
        let can_be = !self.in_supervisor || self.interrupts_on;
        if can_be { self.waiting().first().copied() } else { None }
    }

    pub fn wakes(&self) -> bool {
        !self.waiting().is_empty()
    }

    /// When the timer may interrupt or wake the guest.
    pub fn deadline(&self) -> Option<u64> {
        if self.timer_enabled && self.stimecmp < u64::MAX { Some(self.stimecmp) } else { None }
    }

    /// May programs and the kernel execute CBO.INVAL; CBO.CLEAN and CBO.FLUSH; CBO.ZERO? And do fences of input and output order memory?
    pub fn cache_block_instructions(&self) -> [bool; 4] {
        let there = self.features.environment.unwrap_or(0);
        if self.in_supervisor {
            return [bit(there, 4), bit(there, 6), bit(there, 7), false];
        }
        [self.invalidation_field != 0 && bit(there, 4), self.cleaning, self.zeroing, self.fences_order_memory]
    }

    pub fn counters(&self) -> u32 {
        (0..32).map(|counter| u32::from(self.is_readable(counter)) << counter).sum()
    }
}
