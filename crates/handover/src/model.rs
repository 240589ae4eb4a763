//! Interleavings of a few cores, under loom's weak memory: all, or where these are too many, those with a few switches.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-handover --lib --release`
//!
//! The cores follow the rules of the kernel (`kernel/src/cpu/mail.rs` and `mechanism/`), less what only decides *where* a vCPU goes.
//! What only the owner of a vCPU touches is a [`Plain`], whose unordered accesses loom reports.
//!
//! Each test says which changes it was seen to fail for: between them, every fence and every order in this crate but two.
//! Loom runs read-modify-write operations on different words in program order, so it can't show what the `Release` and the `Acquire`
//! of `Fences::waiting` are for. RISC-V may exchange two `amo` that carry no `.rl` or `.aq`: an answer would come before it is expected.

mod fences;
mod housework;
mod moving;
mod pace;
mod seats;
mod threshold;

use loom::cell::UnsafeCell;

/// Plain memory. The accesses do nothing but tell loom, which fails if two aren't ordered and one is a write.
struct Plain(UnsafeCell<()>);

// SAFETY: its contents are never reached, so there is nothing to race for.
#[allow(unsafe_code)]
unsafe impl Sync for Plain {}

impl Plain {
    fn new() -> Self {
        Self(UnsafeCell::new(()))
    }

    fn read(&self) {
        self.0.with(|_| ());
    }

    fn write(&self) {
        self.0.with_mut(|_| ());
    }
}

/// As [`loom::model`], but with at most this many switches that no core has asked for, where all are too many to try.
fn model_with_switches(most: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(most);
    builder.check(test);
}
