//! One privileged instruction after the other, on QEMU's harts, and what `crates/supervisor` makes of each in software (`guests/probes/steps.c`).
use std::process::{Command, Stdio};

use ainori_devices::zicsr::AnyCsrInstruction;
use ainori_supervisor::{Cause, Features, Illegal, Outcome, Privilege, Privileged, Supervisor, Unit, Units};
use ainori_tests::{Clock, Guest, System, checkout};

const SSTATUS: u32 = 0x100;
const SIE: u32 = 0x104;
const STVEC: u32 = 0x105;
const SEPC: u32 = 0x141;
const SIP: u32 = 0x144;
const STIMECMP: u32 = 0x14d;

/// Registers of a step, by their numbers, as the probe prints them.
const REGISTERS: [u32; 11] = [SSTATUS, SIE, STVEC, 0x140, SEPC, 0x142, 0x143, SIP, STIMECMP, 0x106, 0x10a];

/// How the instruction is come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Kernel,
    Program,
    Return,
}

/// A step, as the probe prints it.
#[derive(Debug)]
struct Step {
    mode: Mode,
    bits: u32,
    /// Where it is.
    code: u64,
    /// The time before and after.
    times: [u64; 2],
    before: [u64; 11],
    before_a0: u64,
    a1: u64,
    after: [u64; 11],
    after_a0: u64,
    /// Where the trap went. `None`: there was none.
    trapped_to: Option<u64>,
}

fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace().map(|word| u64::from_str_radix(word, 16).expect("hexadecimal")).collect()
}

impl Step {
    fn read(line: &str) -> Self {
        let numbers = numbers(line);
        let [mode, bits, code, begin, end, ref states @ ..] = numbers[..] else { panic!("{line}") };
        let (before, after) = states.split_at(13);
        let registers = |state: &[u64]| state[..11].try_into().expect("eleven");
        Self {
            mode: [Mode::Kernel, Mode::Program, Mode::Return][mode as usize],
            bits: bits as u32,
            code,
            times: [begin, end],
            before: registers(before),
            before_a0: before[11],
            a1: before[12],
            after: registers(after),
            after_a0: after[11],
            trapped_to: (after[13] != 0).then(|| after[13] - 4),
        }
    }

    /// The number of the register, if it is an instruction on one.
    fn csr(&self) -> Option<AnyCsrInstruction> {
        AnyCsrInstruction::decode(self.bits)
    }

    /// Why QEMU 10.0 with OpenSBI 1.5 isn't asked: what they do isn't what the specification says, or the specification leaves it open.
    fn exception(&self) -> Option<&'static str> {
        let is_program = self.mode == Mode::Program;
        if let Some(instruction) = self.csr() {
            return match instruction.number() {
                0x605 => Some("the firmware has an `htimedelta` for kernels on harts without H"),
                0xc01 if is_program => Some("the firmware reads `time` for programs that may not"),
                0x141 if instruction.source().is_none() => Some("QEMU keeps the lowest bit of `sepc`"),
                0x104 | 0x144 if instruction.source().is_none() => {
                    Some("QEMU takes bit 2 of a guest's `sie` and `sip` for bit 1")
                }
                _ => None,
            };
        }
        match self.bits {
            0x1800_0073 | 0x1810_0073 if is_program => {
                Some("QEMU lets programs execute SFENCE.W.INVAL and SFENCE.INVAL.IR")
            }
            _ => None,
        }
    }
}

/// What the hart has, as the probe prints it.
fn features(line: &str) -> Features {
    let numbers = numbers(line);
    let [counters, counter_enables, environment, units, timer, has_environment, invalidation, waits] =
        numbers[..]
    else {
        panic!("{line}")
    };
    Features {
        float: units & 0x6000 != 0,
        vector: units & 0x600 != 0,
        compressed: true,
        timer: timer != 0,
        invalidation: invalidation != 0,
        reservation_waits: waits != 0,
        counters: counters as u32,
        counter_enables: counter_enables as u32,
        environment: (has_environment != 0).then_some(environment),
    }
}

/// `csrrs a0, number, zero`, or `csrrw zero, number, a1`, by a kernel.
fn reach(hart: &mut Supervisor, number: u32, value: Option<u64>, now: u64) -> Option<u64> {
    assert_eq!(hart.privilege(), Privilege::Supervisor);
    let bits = number << 20 | if value.is_some() { 0x0005_9073 } else { 0x2573 };
    let instruction = AnyCsrInstruction::decode(bits).expect("it is one");
    match hart.access(instruction, value.unwrap_or(0), || now) {
        Ok(Outcome::Done { old, .. }) => Some(old),
        Err(Illegal) => None,
        other => panic!("{number:#x}: {other:?}"),
    }
}

/// The hart in software: what becomes of it, where it goes by a trap, and what is in `a0` if it knows.
struct Software {
    hart: Supervisor,
    trapped_to: Option<u64>,
    a0: Option<u64>,
}

impl Software {
    fn before(features: Features, step: &Step) -> Self {
        let mut hart = Supervisor::new(features);
        for (number, value) in REGISTERS.into_iter().zip(step.before) {
            reach(&mut hart, number, Some(value), step.times[0]);
        }
        Self { hart, trapped_to: None, a0: Some(step.before_a0) }
    }

    fn trap(&mut self, cause: Cause, value: u64, pc: u64) {
        self.trapped_to = Some(self.hart.trap(cause, value, pc));
    }

    /// True if the hart goes on elsewhere.
    fn is_interrupted(&mut self, pc: u64) -> bool {
        let interrupt = self.hart.pending_interrupt();
        if let Some(cause) = interrupt {
            self.trap(cause, 0, pc);
        }
        interrupt.is_some()
    }

    fn execute(&mut self, step: &Step) {
        let pc = step.code;
        if step.mode == Mode::Program {
            assert_eq!(self.hart.sret(), Some(pc));
            if self.is_interrupted(pc) {
                return;
            }
        }
        let mut next = pc + 4;
        let instruction = Privileged::decode(step.bits);
        let is_legal = match instruction {
            Privileged::Csr(instruction) => self.access(instruction, step),
            Privileged::Other => step.bits == 0x0000_0013,
            Privileged::Return => match self.hart.sret() {
                Some(pc) => {
                    next = pc;
                    true
                }
                None => false,
            },
            _ => self.hart.allows(instruction),
        };
        if !is_legal {
            self.trap(Cause::exception(2), step.bits.into(), pc);
        } else if !self.is_interrupted(next) && (step.mode != Mode::Kernel || next != pc + 4) {
            self.trap(Cause::exception(3), next, next); // the breakpoint behind it
        }
    }

    fn access(&mut self, instruction: AnyCsrInstruction, step: &Step) -> bool {
        let source = match instruction.source() {
            Some(11) => step.a1,
            Some(0) | None => 0,
            Some(other) => panic!("nobody uses register {other}"),
        };
        match self.hart.access(instruction, source, || step.times[0]) {
            Ok(Outcome::Done { old, .. }) if instruction.rd() == 10 => self.a0 = Some(old),
            Ok(Outcome::Done { .. }) => {}
            Ok(Outcome::Unit(_)) => {
                // The hart's own registers.
                let units = Units::of(Unit::Float).and(Units::of(Unit::Vector));
                self.hart.take_units(step.after[0], units);
                self.a0 = None;
            }
            Ok(Outcome::AddressSpace(_) | Outcome::Counter(_)) => self.a0 = None,
            Err(Illegal) => return false,
        }
        true
    }
}

/// What differs.
fn differences(features: Features, step: &Step) -> Vec<String> {
    let mut software = Software::before(features, step);
    software.execute(step);
    let mut differences = vec![];
    let mut differs = |what: &str, hart: Option<u64>, software: Option<u64>| {
        if hart != software {
            differences.push(format!("{what} is {hart:x?}, in software {software:x?}"));
        }
    };
    for (number, value) in REGISTERS.into_iter().zip(step.after) {
        if let Some(expected) = reach(&mut software.hart, number, None, step.times[0]) {
            differs(&format!("CSR {number:#x}"), Some(value), Some(expected));
        }
    }
    differs("where the trap goes", step.trapped_to, software.trapped_to);
    if software.a0.is_some() {
        differs("a0", Some(step.after_a0), software.a0);
    }
    differences
}

/// How often a step was what.
#[derive(Debug, Default)]
struct Count {
    compared: usize,
    illegal: usize,
    interrupted: usize,
    left_out: usize,
}

fn compare(output: &str) -> Count {
    let mut features_told = None;
    let mut count = Count::default();
    for line in output.lines() {
        if let Some(line) = line.strip_prefix("@hart ") {
            features_told = Some(features(line));
        }
        let Some(line) = line.strip_prefix("@step ") else { continue };
        let features = features_told.expect("the hart is told first");
        let step = Step::read(line);
        // A timer that runs out meanwhile may or may not be seen.
        let [begin, end] = step.times;
        let stimecmp = |state: &[u64; 11]| (begin..=end).contains(&state[8]);
        if step.exception().is_some() || stimecmp(&step.before) || stimecmp(&step.after) {
            count.left_out += 1;
            continue;
        }
        let differences = differences(features, &step);
        assert!(differences.is_empty(), "{features:x?} {step:x?}: {differences:#?}");
        count.compared += 1;
        if step.trapped_to.is_some() {
            count.illegal += usize::from(step.after[5] == 2);
            count.interrupted += usize::from(step.after[5] >> 63 != 0);
        }
    }
    count
}

/// The bare hart with OpenSBI.
fn output(cpu: &str, args: &str) -> String {
    let output = Command::new("timeout")
        .args(["300", "qemu-system-riscv64", "-M", "virt", "-m", "256M", "-nographic", "-no-reboot"])
        .args(["-bios", "default", "-cpu", cpu, "-append", args, "-kernel"])
        .arg(checkout(".cache/guests/probes/steps.elf"))
        .stdin(Stdio::null())
        .output()
        .expect("QEMU is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").replace('\r', "")
}

/// Nearly all were compared, and enough of them were illegal or interrupted.
fn is_enough(count: &Count, steps: usize) {
    println!("{count:?}");
    assert_eq!(count.compared + count.left_out, steps);
    assert!(count.left_out < steps / 10, "{count:?}");
    assert!(count.illegal > steps / 20 && count.interrupted > steps / 50, "{count:?}");
}

/// With and without all that a guest's hart can have.
#[test]
fn each_privileged_instruction_is_in_software_what_it_is_on_a_hart() {
    for (seed, cpu) in [
        (1, "rv64,h=false"),
        (2, "rv64,h=false,v=true,svinval=true"),
        (3, "rv64,h=false,sstc=false,zawrs=false,zicbom=false,zicboz=false"),
        (4, "sifive-u54"),
    ] {
        let n = 2000;
        let output = output(cpu, &format!("seed={seed} n={n}"));
        assert!(output.contains("\"ok\":true"), "{cpu}: {output}");
        is_enough(&compare(&output), n);
    }
}

#[test]
fn each_privileged_instruction_is_for_a_guest_what_it_is_in_software() {
    let n = 2000;
    let run = System::on(1).with(Guest::probe("steps", &format!("seed=5 n={n}"))).run(Clock::Icount);
    run.good();
    let lines: Vec<String> = run.lines("steps").collect();
    is_enough(&compare(&lines.join("\n")), n);
}
