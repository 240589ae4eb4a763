//! The APLIC against a model that is written straight from the specification (AIA, chapter 4), with relayed sources as the crate describes them.
//! Not with loom's atomics, which work only inside of a loom model: see `aplic_races.rs`.
#![cfg(not(loom))]

use ainori_devices::aplic::{Aplic, Board, Delivery, HARTS, MOST_REDIRECTED, Msi, Outside, SOURCES, WINDOW};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const DOMAINCFG: u64 = 0x0000;
const SETIP: u64 = 0x1c00;
const SETIPNUM: u64 = 0x1cdc;
const IN_CLRIP: u64 = 0x1d00;
const CLRIPNUM: u64 = 0x1ddc;
const SETIE: u64 = 0x1e00;
const SETIENUM: u64 = 0x1edc;
const CLRIE: u64 = 0x1f00;
const CLRIENUM: u64 = 0x1fdc;
const SETIPNUM_LE: u64 = 0x2000;
const GENMSI: u64 = 0x3000;
/// Of hart 0.
const CLAIMI: u64 = 0x401c;
const WORDS: u64 = SOURCES as u64 / 32;

fn sourcecfg(source: usize) -> u64 {
    4 * source as u64
}

fn target(source: usize) -> u64 {
    0x3000 + 4 * source as u64
}

fn idc(hart: usize) -> u64 {
    0x4000 + 32 * hart as u64
}

/// What the controller does to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    Sent(usize, u32),
    /// As an edge?
    Completed(u32, bool),
    Rearmed(u32),
    Asked(u32),
}

#[derive(Default)]
struct Log {
    done: Vec<Done>,
    /// Messages are left that are to be sent.
    leaves_some: bool,
    /// The wires that ask, of the sources of the board.
    inputs: [u32; WORDS as usize],
}

/// The sources of a word that are in a set.
fn members(word: usize, set: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |bit| set >> bit & 1 == 1).map(move |bit| word as u32 * 32 + bit)
}

impl Log {
    /// A store, and all messages that it leaves.
    fn write(&mut self, aplic: &Aplic, offset: u64, value: u32) -> u64 {
        let harts = aplic.write(offset, 4, value, self);
        while std::mem::take(&mut self.leaves_some) {
            let before = self.done.len();
            self.leaves_some = aplic.send_next(self);
            let sent = self.done[before..].iter().filter(|done| matches!(done, Done::Sent(..))).count();
            assert_eq!(sent, 1, "each part is one message");
        }
        harts
    }
}

impl Outside for Log {
    fn send(&mut self, msi: Msi) {
        self.done.push(Done::Sent(msi.hart, msi.identity));
    }

    fn board(&mut self) -> &mut dyn Board {
        self
    }
}

impl Board for Log {
    fn complete(&mut self, source: u32, is_edge: bool) {
        self.done.push(Done::Completed(source, is_edge));
    }

    fn rearm(&mut self, word: usize, sources: u32) {
        self.done.extend(members(word, sources).map(Done::Rearmed));
    }

    fn ask_again(&mut self, word: usize, sources: u32) {
        self.done.extend(members(word, sources).map(Done::Asked));
    }

    fn inputs(&mut self, word: usize) -> u32 {
        self.inputs[word]
    }

    fn send_later(&mut self) {
        self.leaves_some = true;
    }
}

#[derive(Debug, Clone, Default)]
struct Source {
    relayed: bool,
    wire: bool,
    mode: u32,
    pending: bool,
    enabled: bool,
    target: u32,
    in_service: bool,
}

impl Source {
    fn is_level(&self) -> bool {
        self.mode == 6 || self.mode == 7
    }

    /// "rectified input value = (incoming wire value) XOR (source is inverted). For a source that is inactive or Detached, the rectified input value is
    /// zero."
    fn rectified(&self) -> bool {
        match self.mode {
            4 | 6 => self.wire,
            5 | 7 => self.wire ^ !self.relayed,
            _ => false,
        }
    }
}

/// The registers of a domain, by number.
struct Model {
    delivery: Delivery,
    enable: bool,
    genmsi: u32,
    sources: Vec<Option<Source>>,
    idelivery: [bool; HARTS],
    iforce: [bool; HARTS],
    ithreshold: [u32; HARTS],
    done: Vec<Done>,
    inputs: [u32; WORDS as usize],
}

impl Model {
    fn new(delivery: Delivery, wired: &[usize], relayed: &[usize]) -> Self {
        let mut sources = vec![None; SOURCES];
        for &source in wired {
            sources[source] = Some(Source::default());
        }
        for &source in relayed {
            sources[source] = Some(Source { relayed: true, ..Source::default() });
        }
        Self {
            delivery,
            enable: false,
            genmsi: 0,
            sources,
            idelivery: [false; HARTS],
            iforce: [false; HARTS],
            ithreshold: [0; HARTS],
            done: Vec::new(),
            inputs: [0; WORDS as usize],
        }
    }

    /// Does the wire of a source of the board ask?
    fn input(&self, source: usize) -> bool {
        self.inputs[source / 32] >> (source % 32) & 1 == 1
    }

    fn is_direct(&self) -> bool {
        self.delivery == Delivery::Direct
    }

    /// Changes a source. Then what always holds of it is made true, and what is to be sent is sent.
    fn with(&mut self, source: usize, change: impl FnOnce(&mut Source, bool)) {
        self.change(source, change);
        self.forward(source);
    }

    fn change(&mut self, source: usize, change: impl FnOnce(&mut Source, bool)) {
        let direct = self.is_direct();
        let Some(state) = self.sources.get_mut(source).and_then(Option::as_mut) else { return };
        let (was_held, was_in_service) = (state.relayed && state.wire, state.in_service);
        change(state, direct);
        Self::settle(state, direct);
        // A physical interrupt that has nothing left to ask for can come again.
        let asks_for_nothing = state.rectified() && !state.pending && !state.in_service;
        state.wire &= !(state.relayed && asks_for_nothing);
        if was_held && !state.wire {
            let source = source as u32;
            self.done.push(if direct {
                Done::Completed(source, !was_in_service)
            } else {
                Done::Rearmed(source)
            });
        }
    }

    fn settle(state: &mut Source, direct: bool) {
        if state.is_level() {
            // "When an interrupt domain is in direct delivery mode, the pending bit for a level-sensitive source is always just a copy of the rectified
            // input value. Even in MSI delivery mode, the pending bit for a level-sensitive source is never set (= 1) when the rectified input value
            // is low."
            state.pending = if direct { state.rectified() } else { state.pending && state.rectified() };
        }
    }

    /// "An MSI is sent for a specific source only when the source's corresponding pending and enable bits are both one and the IE field of register
    /// domaincfg is also one. If and when an MSI is sent, the source's interrupt pending bit is cleared."
    fn forward(&mut self, source: usize) {
        let (direct, enable) = (self.is_direct(), self.enable);
        let Some(state) = self.sources.get_mut(source).and_then(Option::as_mut) else { return };
        if !direct && enable && state.pending && state.enabled {
            let target = state.target;
            self.take(source);
            self.done.push(Done::Sent((target >> 18) as usize, target & 63));
        }
    }

    fn take(&mut self, source: usize) {
        self.change(source, |state, direct| {
            state.pending = false;
            state.in_service = direct && state.relayed && state.wire && state.is_level();
        });
    }

    fn complete(&mut self, source: usize) {
        self.change(source, |state, _| state.wire &= !std::mem::take(&mut state.in_service));
    }

    /// "the interrupt service routine can [...] write the source's interrupt identity number to register setipnum": then the wire is looked at.
    fn ask(&mut self, source: usize) {
        let Some(state) = self.sources.get(source).and_then(Option::as_ref) else { return };
        if !self.is_direct() && state.relayed && state.is_level() && !state.wire {
            self.done.push(Done::Asked(source as u32));
        }
    }

    fn drive(&mut self, source: usize, high: bool) {
        let state = self.sources.get(source).and_then(Option::as_ref);
        if high
            && !self.is_direct()
            && state.is_some_and(|state| state.relayed && state.is_level())
            && !self.input(source)
        {
            // "the pending bit for a level-sensitive source is never set (= 1) when the rectified input value is low"
            self.done.push(Done::Rearmed(source as u32));
            return;
        }
        self.with(source, |state, _| {
            let was = state.rectified();
            state.wire = high;
            // "The pending bit is set to one by a low-to-high transition in the rectified input value"
            state.pending |= state.rectified() && !was;
        });
    }

    fn set_pending(&mut self, source: usize) {
        self.complete(source);
        self.ask(source);
        self.with(source, |state, direct| match state.mode {
            1 | 4 | 5 => state.pending = true,
            // "cannot be set by a write to a setip or setipnum register"; with messages "when the rectified input value is high"
            6 | 7 if !direct => state.pending |= state.rectified(),
            _ => {}
        });
    }

    fn clear_pending(&mut self, source: usize) {
        self.with(source, |state, _| state.pending = false);
    }

    fn configure(&mut self, source: usize, value: u32) {
        let mode = match value {
            // "attempting to write a sourcecfg register with a value that has bit 10 = 1 causes the entire register to be set to zero instead"
            value if value >> 10 & 1 == 1 => 0,
            value => value & 7,
        };
        self.with(source, |state, _| {
            let mode = if matches!(mode, 2 | 3) { 0 } else { mode };
            state.in_service &= mode == state.mode;
            state.mode = mode;
            if state.mode == 0 {
                (state.pending, state.enabled, state.target) = (false, false, 0);
            }
            state.pending |= (state.is_level() || state.relayed) && state.rectified();
        });
        self.ask(source);
    }

    fn set_target(&mut self, source: usize, value: u32) {
        let direct = self.is_direct();
        self.with(source, |state, _| {
            if state.mode != 0 {
                let priority = if value & 255 == 0 { 1 } else { value & 255 };
                state.target = value & 0xfffc_0000 | if direct { priority } else { value & 63 };
            }
        });
    }

    fn topi(&self, hart: usize) -> u32 {
        let best = (1..SOURCES)
            .filter_map(|source| Some((source, self.sources[source].as_ref()?)))
            .filter(|(_, state)| state.pending && state.enabled && (state.target >> 18) as usize == hart)
            .map(|(source, state)| (state.target & 255, source))
            .min();
        match best {
            Some((priority, source)) if self.ithreshold[hart] == 0 || priority < self.ithreshold[hart] => {
                (source as u32) << 16 | priority
            }
            _ => 0,
        }
    }

    fn claim(&mut self, hart: usize) -> u32 {
        loop {
            let top = self.topi(hart);
            if top == 0 {
                self.iforce[hart] = false;
                return 0;
            }
            let source = (top >> 16) as usize;
            if self.sources[source].as_ref().is_some_and(|state| state.in_service) {
                self.complete(source);
                continue;
            }
            self.take(source);
            return top;
        }
    }

    fn is_pending(&self, hart: usize) -> bool {
        self.is_direct() && self.enable && self.idelivery[hart] && (self.iforce[hart] || self.topi(hart) != 0)
    }

    fn bits(&self, word: u64, of: impl Fn(&Source) -> bool) -> u32 {
        let first = word as usize * 32;
        (first..first + 32).fold(0, |bits, source| {
            bits | u32::from(self.sources[source].as_ref().is_some_and(&of)) << (source - first)
        })
    }

    fn each(word: u64, mask: u32) -> impl Iterator<Item = usize> {
        (0..32).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| word as usize * 32 + bit)
    }

    fn in_words(array: u64, offset: u64) -> Option<u64> {
        (array..array + 4 * WORDS).contains(&offset).then(|| (offset - array) / 4)
    }

    fn of_hart(&self, offset: u64) -> Option<(usize, u64)> {
        let hart = (offset.checked_sub(0x4000)? / 32) as usize;
        (self.is_direct() && hart < HARTS).then_some((hart, offset % 32))
    }

    fn read(&mut self, offset: u64) -> u32 {
        if let Some((hart, register)) = self.of_hart(offset) {
            return match register {
                0x00 => self.idelivery[hart].into(),
                0x04 => self.iforce[hart].into(),
                0x08 => self.ithreshold[hart],
                0x18 => self.topi(hart),
                0x1c => self.claim(hart),
                _ => 0,
            };
        }
        if let Some(word) = Self::in_words(SETIP, offset) {
            return self.bits(word, |state| state.pending);
        }
        if let Some(word) = Self::in_words(SETIE, offset) {
            return self.bits(word, |state| state.enabled);
        }
        if let Some(word) = Self::in_words(IN_CLRIP, offset) {
            let first = word as usize * 32;
            let input = |source: usize| match &self.sources[source] {
                Some(state) if state.relayed && !self.is_direct() => state.mode >= 4 && self.input(source),
                source => source.as_ref().is_some_and(Source::rectified),
            };
            let inputs = (first..first + 32)
                .fold(0, |bits, source| bits | u32::from(input(source)) << (source - first));
            Self::each(word, u32::MAX).for_each(|source| self.complete(source));
            return inputs;
        }
        match offset {
            DOMAINCFG => 0x8000_0000 | u32::from(self.enable) << 8 | u32::from(!self.is_direct()) << 2,
            GENMSI => self.genmsi,
            4..0x1000 | 0x3004..0x4000 => {
                let state = self.sources.get((offset % 0x1000 / 4) as usize).and_then(Option::as_ref);
                state.map_or(0, |state| if offset < 0x1000 { state.mode } else { state.target })
            }
            _ => 0,
        }
    }

    fn write(&mut self, offset: u64, value: u32) {
        if let Some((hart, register)) = self.of_hart(offset) {
            match register {
                0x00 => self.idelivery[hart] = value & 1 == 1,
                0x04 => self.iforce[hart] = value & 1 == 1,
                0x08 => self.ithreshold[hart] = value & 255,
                _ => {}
            }
            return;
        }
        let number = usize::try_from(value).unwrap().min(SOURCES);
        let some =
            |array| Self::in_words(array, offset).map(|word| Self::each(word, value).collect::<Vec<_>>());
        if let Some(sources) =
            some(SETIP).or((offset == SETIPNUM || offset == SETIPNUM_LE).then(|| vec![number]))
        {
            sources.into_iter().for_each(|source| self.set_pending(source));
        } else if let Some(sources) = some(IN_CLRIP).or((offset == CLRIPNUM).then(|| vec![number])) {
            sources.into_iter().for_each(|source| self.clear_pending(source));
        } else if let Some(sources) = some(SETIE).or((offset == SETIENUM).then(|| vec![number])) {
            sources
                .into_iter()
                .for_each(|source| self.with(source, |state, _| state.enabled = state.mode != 0));
        } else if let Some(sources) = some(CLRIE).or((offset == CLRIENUM).then(|| vec![number])) {
            sources.into_iter().for_each(|source| self.with(source, |state, _| state.enabled = false));
        }
        match offset {
            DOMAINCFG => {
                self.enable = value >> 8 & 1 == 1;
                (1..SOURCES).for_each(|source| self.forward(source));
            }
            GENMSI if !self.is_direct() => {
                self.genmsi = value & 0xfffc_003f;
                self.done.push(Done::Sent((value >> 18) as usize, value & 63));
            }
            4..0x1000 => self.configure((offset / 4) as usize, value),
            0x3004..0x4000 => self.set_target((offset % 0x1000 / 4) as usize, value),
            _ => {}
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Drive(usize, bool),
    /// The wires of the board's sources are so.
    Inputs([u32; WORDS as usize]),
    Read(u64),
    Write(u64, u32),
}

const WIRED: [usize; 4] = [1, 10, 31, 33];
const RELAYED: [usize; 3] = [2, 32, 95];

fn source() -> impl Strategy<Value = usize> {
    prop_oneof![12 => prop::sample::select([WIRED.as_slice(), &RELAYED].concat()), 1 => 0..SOURCES + 2]
}

fn register() -> impl Strategy<Value = u64> {
    let words = prop::sample::select(vec![SETIP, IN_CLRIP, SETIE, CLRIE]);
    let numbers = prop::sample::select(vec![SETIPNUM, SETIPNUM_LE, CLRIPNUM, SETIENUM, CLRIENUM]);
    let of_hart = prop::sample::select(vec![0x00, 0x04, 0x08, 0x18, 0x1c]);
    prop_oneof![
        2 => Just(DOMAINCFG),
        1 => Just(GENMSI),
        5 => (words, 0..=WORDS).prop_map(|(array, word)| array + 4 * word),
        6 => numbers,
        6 => source().prop_map(sourcecfg),
        6 => source().prop_map(target),
        8 => (0..=2_usize, of_hart).prop_map(|(hart, register)| idc(hart) + register),
        1 => (0..WINDOW / 4).prop_map(|word| 4 * word),
    ]
}

fn value() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => source().prop_map(|source| source as u32),
        4 => 0..8_u32,
        2 => Just(1 << 8),
        2 => (0..3_u32, 0..70_u32).prop_map(|(hart, low)| hart << 18 | low),
        1 => Just(u32::MAX),
        1 => any::<u32>(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        // A relayed one is told of when it has come.
        4 => (source(), any::<bool>()).prop_map(|(source, high)| Step::Drive(source, high || RELAYED.contains(&source))),
        1 => any::<[u32; WORDS as usize]>().prop_map(Step::Inputs),
        3 => register().prop_map(Step::Read),
        8 => (register(), value()).prop_map(|(offset, value)| Step::Write(offset, value)),
    ]
}

/// Begins with what lets interrupts through, so that much happens.
fn opening(delivery: Delivery) -> Vec<Step> {
    let mut steps = vec![Step::Write(DOMAINCFG, 1 << 8), Step::Inputs([u32::MAX; WORDS as usize])];
    for (i, source) in [WIRED.as_slice(), &RELAYED].concat().into_iter().enumerate() {
        steps.push(Step::Write(sourcecfg(source), [6, 4, 1, 7, 5, 6, 4][i % 7]));
        steps.push(Step::Write(target(source), (i as u32 % 2) << 18 | (i as u32 + 1)));
        steps.push(Step::Write(SETIENUM, source as u32));
    }
    if delivery == Delivery::Direct {
        steps.extend((0..2).map(|hart| Step::Write(idc(hart), 1)));
    }
    steps
}

fn device(delivery: Delivery) -> Aplic {
    let aplic = Aplic::new(delivery);
    WIRED.iter().for_each(|&source| aplic.add(source as u32, false));
    RELAYED.iter().for_each(|&source| aplic.add(source as u32, true));
    aplic
}

fn follows_the_model(delivery: Delivery, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (aplic, mut model) = (device(delivery), Model::new(delivery, &WIRED, &RELAYED));
    for step in steps {
        let mut log = Log { inputs: model.inputs, ..Log::default() };
        let before: Vec<_> = (0..HARTS).map(|hart| model.is_pending(hart)).collect();
        let harts = match step {
            Step::Inputs(inputs) => {
                model.inputs = inputs;
                0
            }
            Step::Drive(source, high) => {
                model.drive(source, high);
                aplic.drive(source as u32, high, &mut log)
            }
            Step::Read(offset) => {
                let (value, harts) = aplic.read(offset, 4, &mut log);
                prop_assert_eq!(value, model.read(offset), "{:#x}", offset);
                harts
            }
            Step::Write(offset, value) => {
                model.write(offset, value);
                log.write(&aplic, offset, value)
            }
        };
        // In which order a store that concerns several sources does what it does is not said.
        let (mut done, mut expected) = (log.done, std::mem::take(&mut model.done));
        done.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(done, expected, "{:?}", step);
        for (hart, before) in before.into_iter().enumerate() {
            let pending = model.is_pending(hart);
            prop_assert_eq!(aplic.is_pending(hart), pending, "hart {} after {:?}", hart, step);
            prop_assert!(pending == before || harts >> hart & 1 == 1, "hart {hart} isn't told of {step:?}");
        }
    }
    Ok(())
}

/// A board that can send sources' messages to where a guest's domain would.
#[derive(Default)]
struct Redirecting {
    log: Log,
    board: Physical,
}

#[derive(Default)]
struct Physical {
    /// The sources that have come and aren't completed.
    held: BTreeSet<u32>,
    /// Where those go that are redirected.
    aims: BTreeMap<u32, Msi>,
    leaves_some: bool,
}

impl Outside for Redirecting {
    fn send(&mut self, msi: Msi) {
        self.log.send(msi);
    }

    fn board(&mut self) -> &mut dyn Board {
        &mut self.board
    }
}

impl Board for Physical {
    fn complete(&mut self, source: u32, _: bool) {
        panic!("no hart claims {source}");
    }

    fn rearm(&mut self, word: usize, sources: u32) {
        members(word, sources).for_each(|source| assert!(self.held.remove(&source), "{source} hasn't come"));
    }

    fn redirect(&mut self, source: u32, msi: Msi) -> bool {
        assert!(self.held.contains(&source), "{source} isn't in anybody's hands");
        assert_eq!(self.aims.insert(source, msi), None, "{source} is redirected already");
        true
    }

    fn recall(&mut self, source: u32) {
        assert!(self.aims.remove(&source).is_some(), "{source} isn't redirected");
    }

    fn send_later(&mut self) {
        self.leaves_some = true;
    }
}

/// Does the guest have this message sent for a source?
fn has_sent(aplic: &Aplic, source: u32, msi: Msi) -> bool {
    let mut nobody = Log::default();
    let mut read = |offset| aplic.read(offset, 4, &mut nobody).0;
    let number = source as usize;
    read(DOMAINCFG) & 1 << 8 != 0
        && read(SETIE + u64::from(source / 32 * 4)) >> (source % 32) & 1 != 0
        && read(sourcecfg(number)) != 0
        && read(target(number)) == (msi.hart as u32) << 18 | msi.identity
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn direct_delivery_is_what_the_specification_says(steps in prop::collection::vec(step(), 1..80)) {
        follows_the_model(Delivery::Direct, [opening(Delivery::Direct), steps].concat())?;
    }

    #[test]
    fn messages_are_what_the_specification_says(steps in prop::collection::vec(step(), 1..80)) {
        follows_the_model(Delivery::Msi, [opening(Delivery::Msi), steps].concat())?;
    }

    /// Wherever the board sends a source, that is where the guest has it sent; and it does so as soon as the source was sent once.
    #[test]
    fn a_redirected_source_goes_where_the_guest_says(steps in prop::collection::vec(step(), 1..80)) {
        let (aplic, mut outside) = (device(Delivery::Msi), Redirecting::default());
        for step in opening(Delivery::Msi).into_iter().chain(steps) {
            outside.log.done.clear();
            match step {
                Step::Drive(source, high) => {
                    let number = source as u32;
                    let board = &mut outside.board;
                    let is_relayed = RELAYED.contains(&source);
                    // One that is redirected, or held, doesn't come; nor does the board tell of one that goes low.
                    if !is_relayed || high && !board.aims.contains_key(&number) && board.held.insert(number) {
                        aplic.drive(number, high, &mut outside);
                        let is_sent = outside.log.done.iter().any(|done| matches!(done, Done::Sent(..)));
                        prop_assert_eq!(outside.board.aims.contains_key(&number), is_relayed && is_sent);
                    }
                }
                Step::Inputs(_) => {}
                Step::Read(offset) => {
                    aplic.read(offset, 4, &mut outside);
                }
                Step::Write(offset, value) => {
                    aplic.write(offset, 4, value, &mut outside);
                    while std::mem::take(&mut outside.board.leaves_some) {
                        outside.board.leaves_some = aplic.send_next(&mut outside);
                    }
                }
            }
            for (source, msi) in &outside.board.aims {
                prop_assert!(has_sent(&aplic, *source, *msi), "{source} goes to {msi:?} after {step:?}");
            }
        }
        (0..).take_while(|&part| aplic.reset(part, &mut outside.board)).for_each(drop);
        prop_assert!(outside.board.aims.is_empty());
    }

    /// After a reset it is as new, whatever was before: only wires that are driven later are high.
    #[test]
    fn after_all_parts_are_reset_nothing_is_left(steps in prop::collection::vec(step(), 1..80), later in prop::collection::vec(step(), 1..40)) {
        for delivery in [Delivery::Direct, Delivery::Msi] {
            let (used, new) = (device(delivery), device(delivery));
            let run = |aplic: &Aplic, step: &Step, log: &mut Log| match *step {
                Step::Inputs(_) => (0, 0),
                Step::Drive(source, high) => (0, aplic.drive(source as u32, high, log)),
                Step::Read(offset) => aplic.read(offset, 4, log),
                Step::Write(offset, value) => (0, log.write(aplic, offset, value)),
            };
            for step in opening(delivery).iter().chain(&steps) {
                run(&used, step, &mut Log::default());
            }
            let parts = (0..).take_while(|&part| used.reset(part, &mut |_| {})).count();
            prop_assert_eq!(parts as u64, WORDS);
            for step in opening(delivery).iter().chain(&later) {
                let log = || Log { inputs: [u32::MAX; WORDS as usize], ..Log::default() };
                let mut logs = (log(), log());
                prop_assert_eq!(run(&used, step, &mut logs.0).0, run(&new, step, &mut logs.1).0, "{:?}", step);
                prop_assert_eq!(logs.0.done, logs.1.done, "{:?}", step);
                prop_assert_eq!((0..HARTS).map(|hart| used.is_pending(hart)).collect::<Vec<_>>(), (0..HARTS).map(|hart| new.is_pending(hart)).collect::<Vec<_>>());
            }
        }
    }
}

/// A device of the board, behind a source that is a level there, and what its guest has been interrupted for. The source is held from when it has been told of.
#[derive(Default)]
struct Device {
    high: bool,
    /// It is to be told of, when it isn't held.
    asks: bool,
    held: bool,
    sent: u32,
}

impl Outside for Device {
    fn send(&mut self, _: Msi) {
        self.sent += 1;
    }

    fn board(&mut self) -> &mut dyn Board {
        self
    }
}

impl Board for Device {
    fn complete(&mut self, _: u32, is_edge: bool) {
        self.asks |= self.high && !is_edge;
        self.held = false;
    }

    fn rearm(&mut self, _: usize, _: u32) {
        assert!(std::mem::take(&mut self.held), "nobody has it in hand");
    }

    fn ask_again(&mut self, _: usize, _: u32) {
        self.asks |= self.high;
    }

    fn inputs(&mut self, _: usize) -> u32 {
        u32::from(self.high) << Self::SOURCE
    }
}

impl Device {
    /// An APLIC whose only source is this device's, for a hart.
    fn behind(delivery: Delivery, mode: u32) -> (Aplic, Self) {
        let (aplic, mut device) = (Aplic::new(delivery), Self::default());
        aplic.add(Self::SOURCE, true);
        aplic.write(DOMAINCFG, 4, 1 << 8, &mut device);
        aplic.write(idc(0), 4, 1, &mut device);
        device.set_up(&aplic, mode);
        (aplic, device)
    }

    const SOURCE: u32 = 2;

    /// As a driver begins.
    fn set_up(&mut self, aplic: &Aplic, mode: u32) {
        let number = Self::SOURCE as usize;
        for (offset, value) in [(sourcecfg(number), mode), (target(number), 1), (SETIENUM, Self::SOURCE)] {
            aplic.write(offset, 4, value, self);
        }
    }

    fn rise(&mut self) {
        self.asks |= !std::mem::replace(&mut self.high, true);
    }

    fn fall(&mut self) {
        (self.high, self.asks) = (false, false);
    }

    /// The board tells of it, if it has to.
    fn tell(&mut self, aplic: &Aplic) {
        while self.asks && !self.held {
            (self.asks, self.held) = (false, true);
            aplic.drive(Self::SOURCE, true, self);
        }
    }

    /// How often the guest is interrupted by what there is now.
    fn interrupts(&mut self, aplic: &Aplic, delivery: Delivery) -> u32 {
        self.tell(aplic);
        if delivery == Delivery::Msi {
            return std::mem::take(&mut self.sent);
        }
        let claims = std::iter::from_fn(|| Some(aplic.read(CLAIMI, 4, self).0).filter(|top| *top != 0));
        claims.count() as u32
    }
}

/// How a driver has done with a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Its handler clears the cause, and that is all.
    Silently,
    /// It asks for the wire by `setipnum`.
    Asking,
    /// It does so only when it sets the source up.
    Once,
    /// It reads `in_clrip`.
    Looking,
}

/// Table 4.2 and section 4.7, whatever the wire is by itself: as an edge, and as a level that sends messages, it asks each time that it rises. A level comes again when
/// it has been served: where it is claimed, by that; where it is a message, only if its driver asks for the wire (section 4.9.2), which drivers needn't.
#[test]
fn a_source_comes_each_time_that_its_wire_rises_and_a_level_again_where_it_is_asked_for() {
    use Ends::{Asking, Looking, Once, Silently};
    for (delivery, mode, ends, expected) in [
        (Delivery::Direct, 4, Silently, 1),
        (Delivery::Direct, 5, Silently, 1),
        (Delivery::Direct, 6, Silently, 3),
        (Delivery::Direct, 7, Silently, 3),
        (Delivery::Msi, 4, Silently, 1),
        (Delivery::Msi, 5, Silently, 1),
        (Delivery::Msi, 6, Asking, 3),
        (Delivery::Msi, 7, Asking, 3),
        (Delivery::Msi, 6, Silently, 1),
        (Delivery::Msi, 7, Silently, 1),
        (Delivery::Msi, 6, Once, 1),
        (Delivery::Msi, 6, Looking, 1),
    ] {
        let (aplic, mut device) = Device::behind(delivery, mode);
        if ends == Once {
            // Its wire is high then, and has been told of when it asks.
            device.rise();
            device.tell(&aplic);
            aplic.write(SETIPNUM, 4, Device::SOURCE, &mut device);
            device.tell(&aplic);
            device.fall();
            device.sent = 0;
        }
        for rise in 1..=4 {
            let mut interrupts = 0;
            device.rise();
            // Its handler takes it, and has done with it, three times, before the device is quiet.
            for turn in 1..=3 {
                interrupts += device.interrupts(&aplic, delivery);
                if turn == 3 {
                    device.fall();
                }
                match ends {
                    Asking => _ = aplic.write(SETIPNUM, 4, Device::SOURCE, &mut device),
                    Looking => {
                        let inputs = aplic.read(IN_CLRIP, 4, &mut device).0;
                        assert_eq!(inputs >> Device::SOURCE & 1 == 1, device.high, "its wire, as it is");
                    }
                    Silently | Once => {}
                }
            }
            assert_eq!(interrupts, expected, "{delivery:?}, mode {mode}, {ends:?}, rise {rise}");
            assert_eq!(
                device.interrupts(&aplic, delivery),
                0,
                "{delivery:?}, mode {mode}, {ends:?}, rise {rise}: its wire is low"
            );
        }
    }
}

/// A kernel that has died in a handler leaves a source that was taken and not served. The next one, which knows nothing of that, has the device as any other.
#[test]
fn a_level_that_nobody_has_served_comes_to_who_sets_it_up_anew() {
    for delivery in [Delivery::Direct, Delivery::Msi] {
        let (aplic, mut device) = Device::behind(delivery, 6);
        device.rise();
        device.tell(&aplic);
        match delivery {
            Delivery::Direct => _ = aplic.read(CLAIMI, 4, &mut device),
            Delivery::Msi => device.sent = 0,
        }
        aplic.write(CLRIE, 4, u32::MAX, &mut device);
        aplic.write(sourcecfg(Device::SOURCE as usize), 4, 0, &mut device);
        device.set_up(&aplic, 6);
        assert_ne!(device.interrupts(&aplic, delivery), 0, "{delivery:?}: its wire is high");
    }
}

/// What the board tells takes its time: a level that its driver has served meanwhile, for another reason, doesn't come any more; and comes when it rises anew.
#[test]
fn a_level_that_is_served_before_it_is_told_of_does_not_come() {
    let (aplic, mut device) = Device::behind(Delivery::Msi, 6);
    device.held = true;
    aplic.drive(Device::SOURCE, true, &mut device);
    assert_eq!((device.sent, device.held), (0, false));
    device.rise();
    assert_eq!(device.interrupts(&aplic, Delivery::Msi), 1);
}

/// Another core is told of the source, and hands it on, as soon as the guest has asked for it, and so before the store is over that asks.
#[test]
fn one_question_makes_one_message() {
    struct Quick<'a>(&'a Aplic, Device);

    impl Outside for Quick<'_> {
        fn send(&mut self, msi: Msi) {
            self.1.send(msi);
        }

        fn board(&mut self) -> &mut dyn Board {
            self
        }
    }

    impl Board for Quick<'_> {
        fn complete(&mut self, source: u32, is_edge: bool) {
            self.1.complete(source, is_edge);
        }

        fn rearm(&mut self, word: usize, sources: u32) {
            self.1.rearm(word, sources);
        }

        fn ask_again(&mut self, word: usize, sources: u32) {
            self.1.ask_again(word, sources);
            self.1.tell(self.0);
        }
    }

    let (aplic, mut device) = Device::behind(Delivery::Msi, 6);
    device.rise();
    assert_eq!(device.interrupts(&aplic, Delivery::Msi), 1);
    let mut quick = Quick(&aplic, device);
    aplic.write(SETIPNUM, 4, Device::SOURCE, &mut quick);
    assert_eq!(quick.1.sent, 1);
}

/// A store that concerns all sources, or a reset, may have to recall all that are redirected, in one section: they are few, however many the guest has.
#[test]
fn one_store_recalls_a_few_sources_however_many_there_are() {
    let all: Vec<u32> = (1..SOURCES as u32).collect();
    let ends: [fn(&Aplic, &mut Redirecting); 3] = [
        |aplic, outside| _ = aplic.write(DOMAINCFG, 4, 0, outside),
        |aplic, outside| {
            (0..WORDS).for_each(|word| _ = aplic.write(CLRIE + 4 * word, 4, u32::MAX, outside));
        },
        |aplic, outside| {
            (0..).take_while(|&part| aplic.reset(part, &mut outside.board)).for_each(drop);
        },
    ];
    for end in ends {
        let (aplic, mut outside) = (Aplic::new(Delivery::Msi), Redirecting::default());
        all.iter().for_each(|&source| aplic.add(source, true));
        // A second life is as the first.
        for _ in 0..2 {
            aplic.write(DOMAINCFG, 4, 1 << 8, &mut outside);
            for &source in &all {
                aplic.write(sourcecfg(source as usize), 4, 6, &mut outside);
                aplic.write(target(source as usize), 4, 1, &mut outside);
                aplic.write(SETIENUM, 4, source, &mut outside);
                outside.board.held.insert(source);
                aplic.drive(source, true, &mut outside);
                aplic.write(SETIPNUM, 4, source, &mut outside);
            }
            assert!(outside.board.aims.keys().copied().eq(1..=MOST_REDIRECTED));
            end(&aplic, &mut outside);
            assert!(outside.board.aims.is_empty());
        }
    }
}

#[test]
fn other_accesses_than_words_do_nothing() {
    let aplic = device(Delivery::Msi);
    let mut log = Log::default();
    for width in [1, 2, 8] {
        aplic.write(DOMAINCFG, width, 1 << 8, &mut log);
        assert_eq!(aplic.read(DOMAINCFG, width, &mut log), (0, 0));
    }
    aplic.write(DOMAINCFG + 1, 4, 1 << 8, &mut log);
    assert_eq!(aplic.read(DOMAINCFG, 4, &mut log), (0x8000_0004, 0));
}

/// Of a wired source the guest lowers the wire; of a relayed one nobody tells that it went low, and who switches it off meanwhile isn't told twice either.
#[test]
fn a_level_comes_once_if_its_wire_goes_low_before_it_is_claimed_again() {
    for (source, relayed, switched) in
        [(1, false, false), (1, false, true), (2, true, false), (2, true, true)]
    {
        let (aplic, mut log) = (Aplic::new(Delivery::Direct), Log::default());
        aplic.add(source, relayed);
        let number = source as usize;
        for (offset, value) in [
            (DOMAINCFG, 1 << 8),
            (sourcecfg(number), 6),
            (target(number), 1),
            (SETIENUM, source),
            (idc(0), 1),
        ] {
            aplic.write(offset, 4, value, &mut log);
        }
        aplic.drive(source, true, &mut log);
        assert_eq!(aplic.read(CLAIMI, 4, &mut log).0 >> 16, source);
        if switched {
            aplic.write(CLRIENUM, 4, source, &mut log);
        }
        if !relayed {
            aplic.drive(source, false, &mut log);
        }
        if switched {
            aplic.write(SETIENUM, 4, source, &mut log);
        }
        assert_eq!(aplic.read(CLAIMI, 4, &mut log).0, 0);
        assert_eq!(log.done, if relayed { vec![Done::Completed(source, false)] } else { vec![] });
        assert_eq!(aplic.read(SETIP, 4, &mut log).0, 0);
        assert!(!aplic.is_pending(0));
    }
}
