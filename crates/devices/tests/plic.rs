//! The PLIC against a model that is written straight from the specification, and single cases that the model leaves open.
//! Not with loom's atomics, which work only inside of a loom model: see `plic_races.rs`.
#![cfg(not(loom))]

use ainori_devices::plic::{Effects, MAX_CONTEXTS, Plic, SOURCES, supervisor_context};
use proptest::prelude::*;

const PENDING: u64 = 0x1000;
/// Where the registers end, had it every context that the specification allows (one more page makes it 64 MiB). Guests see less of it
/// (`bus::PLIC`).
const WINDOW: u64 = 0x400_0000;

fn priority(source: u32) -> u64 {
    u64::from(source) * 4
}

fn enable(context: usize, word: usize) -> u64 {
    0x2000 + context as u64 * 0x80 + word as u64 * 4
}

fn threshold(context: usize) -> u64 {
    0x20_0000 + context as u64 * 0x1000
}

fn claim_complete(context: usize) -> u64 {
    threshold(context) + 4
}

/// The specification's gateway of one source and its registers, one field each.
#[derive(Clone)]
struct Source {
    level: bool,
    pending: bool,
    in_service: bool,
    priority: u32,
    enabled: [bool; MAX_CONTEXTS],
}

impl Source {
    const RESET: Self =
        Self { level: false, pending: false, in_service: false, priority: 0, enabled: [false; MAX_CONTEXTS] };

    /// "The gateway will convert the first assertion of the interrupt level into an interrupt request, but thereafter [...]
    /// will not forward an additional interrupt request until it receives an interrupt completion message."
    fn forward(&mut self) {
        if self.level && !self.in_service {
            self.pending = true;
        }
    }
}

struct Model {
    sources: Vec<Source>,
    threshold: [u32; MAX_CONTEXTS],
}

impl Model {
    fn new() -> Self {
        Self { sources: vec![Source::RESET; SOURCES], threshold: [0; MAX_CONTEXTS] }
    }

    fn best(&self, context: usize, above: u32) -> usize {
        (1..SOURCES)
            .filter(|&source| {
                let source = &self.sources[source];
                source.pending && source.enabled[context] && source.priority > above
            })
            .max_by_key(|&source| (self.sources[source].priority, std::cmp::Reverse(source)))
            .unwrap_or(0)
    }

    fn claim(&mut self, context: usize) -> u32 {
        let best = self.best(context, 0);
        self.sources[best].pending = false;
        self.sources[best].in_service = best != 0;
        best as u32
    }

    fn complete(&mut self, context: usize, source: usize) -> bool {
        let source = &mut self.sources[source];
        let completed = source.enabled[context] && source.in_service;
        if completed {
            source.in_service = false;
            source.forward();
        }
        completed
    }

    fn external_pending(&self) -> [bool; MAX_CONTEXTS] {
        std::array::from_fn(|context| self.best(context, self.threshold[context]) != 0)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Raise(u32),
    Lower(u32),
    Claim(usize),
    Complete(usize, u32),
    Priority(u32, u32),
    Threshold(usize, u32),
    Enable(usize, usize, u32),
}

/// Few sources and contexts, so that steps meet; the last source and context included.
fn any_step() -> impl Strategy<Value = Step> {
    let source = || prop_oneof![1u32..6, 30u32..35, Just(SOURCES as u32 - 1)];
    let context = || prop_oneof![0usize..3, Just(MAX_CONTEXTS - 1)];
    prop_oneof![
        source().prop_map(Step::Raise),
        source().prop_map(Step::Lower),
        context().prop_map(Step::Claim),
        (context(), source()).prop_map(|(context, source)| Step::Complete(context, source)),
        (source(), 0u32..8).prop_map(|(source, priority)| Step::Priority(source, priority)),
        (context(), 0u32..8).prop_map(|(context, threshold)| Step::Threshold(context, threshold)),
        (context(), 0..SOURCES / 32, any::<u32>())
            .prop_map(|(context, word, bits)| Step::Enable(context, word, bits)),
    ]
}

/// Does the step on both. Returns the vCPUs that the PLIC wants to be looked at.
fn run(step: &Step, plic: &Plic, model: &mut Model) -> u64 {
    match *step {
        Step::Raise(source) => {
            let gateway = &mut model.sources[source as usize];
            // A line that stays high is no new assertion: a request that was claimed meanwhile is not made again.
            let rises = !gateway.level;
            gateway.level = true;
            if rises {
                gateway.forward();
            }
            plic.raise(source)
        }
        Step::Lower(source) => {
            model.sources[source as usize].level = false;
            plic.lower(source)
        }
        Step::Claim(context) => {
            let (claimed, effects) = plic.read(claim_complete(context), 4);
            assert_eq!(claimed, model.claim(context));
            effects.harts
        }
        Step::Complete(context, source) => {
            let effects = plic.write(claim_complete(context), 4, source);
            let completed = model.complete(context, source as usize);
            assert_eq!(effects.completed, completed.then_some(source));
            effects.harts
        }
        Step::Priority(source, value) => {
            model.sources[source as usize].priority = value;
            plic.write(priority(source), 4, value).harts
        }
        Step::Threshold(context, value) => {
            model.threshold[context] = value;
            plic.write(threshold(context), 4, value).harts
        }
        Step::Enable(context, word, bits) => {
            for bit in 0..32 {
                model.sources[word * 32 + bit].enabled[context] = bits >> bit & 1 != 0;
            }
            plic.write(enable(context, word), 4, bits).harts
        }
    }
}

proptest! {
    #[test]
    fn behaves_as_the_specification_says(steps in prop::collection::vec(any_step(), 1..200)) {
        let plic = Plic::new();
        let mut model = Model::new();
        for step in &steps {
            let before = model.external_pending();
            let harts = run(step, &plic, &mut model);
            let after = model.external_pending();
            for (context, pending) in after.iter().enumerate() {
                prop_assert_eq!(plic.external_pending(context), *pending, "context {} after {:?}", context, step);
            }
            for hart in 0..MAX_CONTEXTS / 2 {
                let told = harts >> hart & 1 != 0;
                let context = supervisor_context(hart);
                prop_assert!(told || before[context] == after[context], "{:?} hid hart {}", step, hart);
            }
            for word in 0..SOURCES / 32 {
                let pending = (0..32).fold(0, |bits, bit| bits | u32::from(model.sources[word * 32 + bit].pending) << bit);
                prop_assert_eq!(plic.read(PENDING + word as u64 * 4, 4), (pending, Effects::NONE));
            }
        }
    }

    #[test]
    fn no_access_panics(offset in 0..WINDOW + 0x1000, width: u8, value: u32) {
        let plic = Plic::new();
        plic.read(offset, width);
        plic.write(offset, width, value);
        plic.raise(value);
        plic.lower(value);
        plic.external_pending(value as usize);
    }
}

/// The contexts of the first two vCPUs.
const FIRST: usize = supervisor_context(0);
const SECOND: usize = supervisor_context(1);

/// A PLIC whose first vCPU listens to source 1.
fn listening() -> Plic {
    let plic = Plic::new();
    plic.write(priority(1), 4, 1);
    plic.write(enable(FIRST, 0), 4, 1 << 1);
    plic
}

#[test]
fn registers_keep_what_is_writable_in_them() {
    let plic = Plic::new();
    for (offset, kept) in [
        (priority(0), 0),
        (priority(1), 7),
        (priority(SOURCES as u32 - 1), 7),
        (priority(SOURCES as u32), 0),
        (PENDING, 0),
        (enable(0, 0), !1),
        (enable(0, 1), !0),
        (enable(0, SOURCES / 32), 0),
        (enable(MAX_CONTEXTS - 1, 0), !1),
        (enable(MAX_CONTEXTS, 0), 0),
        (threshold(0), 7),
        (threshold(MAX_CONTEXTS - 1), 7),
        (threshold(MAX_CONTEXTS), 0),
        (claim_complete(0), 0),
        (threshold(0) + 8, 0),
        (WINDOW - 4, 0),
        (WINDOW, 0),
    ] {
        plic.write(offset, 4, !0);
        assert_eq!(plic.read(offset, 4).0, kept, "at {offset:#x}");
    }
}

#[test]
fn only_aligned_words_are_registers() {
    let plic = listening();
    for (offset, width) in [(priority(1), 1), (priority(1), 2), (priority(1), 8), (priority(1) + 2, 4)] {
        plic.write(offset, width, 5);
        assert_eq!(plic.read(offset, width).0, 0);
    }
    assert_eq!(plic.read(priority(1), 4).0, 1);
    plic.raise(1);
    assert_eq!(plic.read(claim_complete(FIRST), 8).0, 0, "a load of another width claims nothing");
    assert_eq!(plic.read(claim_complete(FIRST), 4).0, 1);
}

#[test]
fn a_request_is_not_taken_back_when_the_line_falls() {
    let plic = listening();
    assert_eq!(plic.raise(1), 1);
    plic.lower(1);
    assert!(plic.external_pending(FIRST));
    assert_eq!(plic.read(claim_complete(FIRST), 4).0, 1);
}

#[test]
fn a_line_that_stays_high_asks_again_after_completion_only() {
    let plic = listening();
    plic.raise(1);
    assert_eq!(plic.read(claim_complete(FIRST), 4).0, 1);
    plic.raise(1);
    assert!(!plic.external_pending(FIRST));
    assert_eq!(plic.write(claim_complete(FIRST), 4, 1), Effects { harts: 1, completed: Some(1) });
    assert_eq!(plic.read(claim_complete(FIRST), 4).0, 1);
}

#[test]
fn a_claim_does_not_heed_the_threshold() {
    let plic = listening();
    plic.write(threshold(FIRST), 4, 7);
    plic.raise(1);
    assert!(!plic.external_pending(FIRST));
    assert_eq!(plic.read(claim_complete(FIRST), 4).0, 1);
}

#[test]
fn a_completion_by_a_context_that_does_not_enable_the_source_is_ignored() {
    let plic = listening();
    plic.raise(1);
    plic.read(claim_complete(FIRST), 4);
    assert_eq!(plic.write(claim_complete(SECOND), 4, 1), Effects::NONE);
    assert_eq!(plic.write(claim_complete(FIRST), 4, 1).completed, Some(1));
}

#[test]
fn a_claim_names_all_vcpus_whose_line_it_takes_back() {
    let plic = listening();
    plic.write(enable(SECOND, 0), 4, 1 << 1);
    assert_eq!(plic.raise(1), 0b11);
    assert_eq!(plic.read(claim_complete(FIRST), 4), (1, Effects { harts: 0b11, completed: None }));
    assert_eq!(plic.read(claim_complete(SECOND), 4), (0, Effects::NONE));
}

#[test]
fn contexts_are_numbered_as_on_virt() {
    for hart in 0..MAX_CONTEXTS / 2 {
        let context = supervisor_context(hart);
        assert_eq!(context, 2 * hart + 1);
        let plic = Plic::new();
        assert_eq!(plic.write(enable(context, 0), 4, 1 << 1).harts, 1 << hart);
        assert_eq!(
            plic.write(enable(context - 1, 0), 4, 1 << 1).harts,
            0,
            "a machine context interrupts nobody"
        );
        plic.write(priority(1), 4, 1);
        assert_eq!(plic.raise(1), 1 << hart);
        assert!(plic.external_pending(context) && plic.external_pending(context - 1));
        assert_eq!(
            plic.read(claim_complete(context - 1), 4),
            (1, Effects { harts: 1 << hart, completed: None })
        );
    }
}
