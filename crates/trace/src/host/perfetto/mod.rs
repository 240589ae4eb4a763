//! Writes a trace as a file for the Perfetto UI (<https://ui.perfetto.dev>), in its protocol-buffer format.
//!
//! | track | shows |
//! |---|---|
//! | a hart | slices: which vCPU runs; points: interrupts raised there, IPIs, messages |
//! | a vCPU | slices: running (and where), suspended, sleeping; points: traps, interrupts injected and taken, and the rest |
//! | counters of a hart | exits and IPIs sent, since the beginning of the trace |
//!
//! Arrows lead from the moment an interrupt was raised over its injection to the handler, and from a message's sender
//! to its receiver.
//!
//! A file may show a part of the run only. What begins before that or ends behind it is cut there, and so are arrows: there
//! is one only where both ends are in the file.

use std::{
    collections::BTreeMap,
    format,
    string::{String, ToString},
    vec::Vec,
};

use ainori_limits::cause::{exception_name, interrupt_name};
use prost::Message;

use super::{
    read::{Stamped, Trace},
    window::{Window, WindowError},
};
use crate::event::{Cause, Event, Line};
use flows::Flows;
use messages::{AnnotationValue, TrackEvent};
use tracks::{Packets, Track, detail};

mod flows;
pub mod messages;
mod tracks;

/// Names for what the trace only numbers. What has no name is shown by its number.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// vCPUs by their number in the machine, e.g. `linux.0`.
    pub vcpus: Vec<String>,
    /// The kernel's classes of exits, by [`Event::Trap::class`].
    pub exits: Vec<String>,
    /// The kernel's messages, by [`Event::Posted::item`].
    pub messages: Vec<String>,
}

/// The bytes of the file.
pub fn encode(trace: &Trace, names: &Names) -> Vec<u8> {
    let mut writer = Writer::new(trace, names);
    writer.add_all(&trace.records);
    writer.into_file()
}

/// The bytes of a file that shows a part of the run.
pub fn encode_window(trace: &Trace, names: &Names, window: Window) -> Result<Vec<u8>, WindowError> {
    let inside = window.records(trace)?;
    let mut writer = Writer::new(trace, names);
    writer.packets.hide();
    writer.add_all(&trace.records[..inside.start]);
    writer.open(window.from());
    writer.add_all(&trace.records[inside]);
    writer.now = window.to();
    Ok(writer.into_file())
}

/// What a vCPU is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running { core: u8 },
    Suspended,
    Sleeping,
}

/// What is known of a core while the records go by.
#[derive(Default)]
struct Core {
    hart: u64,
    /// The vCPU that runs, once it is known.
    running: Option<u8>,
    exits: i64,
    ipis: i64,
}

struct Writer<'a> {
    names: &'a Names,
    trace: &'a Trace,
    packets: Packets,
    cores: BTreeMap<u8, Core>,
    /// The vCPU that runs on a core when its records begin, taken out at the first of them.
    running_first: BTreeMap<u8, u8>,
    /// The vCPUs that occurred, with their states once they are known.
    vcpus: BTreeMap<u8, Option<State>>,
    interrupts: Flows<(u8, Line)>,
    messages: Flows<(u8, u8, u32)>,
    flows: u64,
    /// Time up to which the file goes so far, in nanoseconds.
    now: u64,
}

impl<'a> Writer<'a> {
    fn new(trace: &'a Trace, names: &'a Names) -> Self {
        let mut packets = Packets::default();
        packets.describe(Track::Harts, "harts".to_string());
        packets.describe(Track::Vcpus, "vCPUs".to_string());
        packets.describe(Track::Counters, "counters".to_string());
        let mut cores = BTreeMap::new();
        for core in &trace.cores {
            packets.describe(Track::Hart(core.core), format!("hart {}", core.hart));
            packets.describe(Track::Exits(core.core), format!("hart {}: exits", core.hart));
            packets.describe(Track::Ipis(core.core), format!("hart {}: IPIs sent", core.hart));
            cores.insert(core.core, Core { hart: core.hart, ..Core::default() });
        }
        Self {
            names,
            trace,
            packets,
            cores,
            running_first: running_first(&trace.records),
            vcpus: BTreeMap::new(),
            interrupts: Flows::new(),
            messages: Flows::new(),
            flows: 0,
            now: 0,
        }
    }

    /// Shows from this time in nanoseconds on what has been hidden so far, beginning with the state that it has led to.
    fn open(&mut self, now: u64) {
        self.now = now;
        self.packets.show();
        for (&core, state) in &self.cores {
            if let Some(vcpu) = state.running {
                let name = named(&self.names.vcpus, vcpu.into(), "vCPU");
                self.packets.begin(now, Track::Hart(core), name);
            }
            self.packets.counter(now, Track::Exits(core), state.exits);
            self.packets.counter(now, Track::Ipis(core), state.ipis);
        }
        let states = self.vcpus.iter().filter_map(|(&vcpu, &state)| Some((vcpu, self.state_name(state?))));
        for (vcpu, name) in states.collect::<Vec<_>>() {
            self.packets.begin(now, Track::Vcpu(vcpu), name);
        }
        self.interrupts = Flows::new();
        self.messages = Flows::new();
    }

    /// Closes what is open.
    fn into_file(mut self) -> Vec<u8> {
        for (&core, state) in &self.cores {
            if state.running.is_some() {
                self.packets.end(self.now, Track::Hart(core));
            }
        }
        for (&vcpu, state) in &self.vcpus {
            if state.is_some() {
                self.packets.end(self.now, Track::Vcpu(vcpu));
            }
        }
        messages::Trace { packet: self.packets.finish() }.encode_to_vec()
    }

    fn add_all(&mut self, records: &[Stamped]) {
        for stamped in records {
            self.now = self.trace.nanoseconds(stamped);
            self.add(*stamped);
        }
    }

    fn add(&mut self, Stamped { core, record }: Stamped) {
        if let Some(vcpu) = self.running_first.remove(&core) {
            self.run(core, Some(vcpu));
        }
        match record.event() {
            Event::Switch { from, to } => self.switch(core, from, to),
            Event::Trap { vcpu, cause, class, pc } => self.trap(core, vcpu, cause, class, pc),
            Event::Raised { vcpu, line } => {
                let flow = self.interrupts.begin((vcpu, line), || next(&mut self.flows));
                let name = format!("{} raised for {}", line_name(line), self.vcpu_name(vcpu));
                self.hart_instant(core, name).flow_ids.push(flow);
            }
            Event::Injected { vcpu, line } => {
                let flow = self.interrupts.step(&(vcpu, line));
                self.vcpu_instant(vcpu, format!("{} injected", line_name(line))).flow_ids.extend(flow);
            }
            Event::Taken { vcpu, line } => {
                let flow = self.interrupts.end(&(vcpu, line));
                self.vcpu_instant(vcpu, format!("{} taken", line_name(line)))
                    .terminating_flow_ids
                    .extend(flow);
            }
            Event::Posted { to, item } => {
                let flow = self.messages.begin((core, to, item), || next(&mut self.flows));
                let name = format!("post {} to {}", self.message_name(item), self.hart_name(to));
                self.hart_instant(core, name).flow_ids.push(flow);
            }
            Event::Received { from, item } => {
                let flow = self.messages.end(&(from, core, item));
                let name = format!("receive {} from {}", self.message_name(item), self.hart_name(from));
                self.hart_instant(core, name).terminating_flow_ids.extend(flow);
            }
            Event::IpiSent { to } => self.ipi(core, to),
            Event::Migration { vcpu, from, to } => {
                let name = format!("migrates from {} to {}", self.hart_name(from), self.hart_name(to));
                self.vcpu_instant(vcpu, name);
            }
            Event::Wake { vcpu } => {
                self.vcpu_instant(vcpu, "wakes".to_string());
                if !matches!(self.vcpus.get(&vcpu), Some(Some(State::Running { .. }))) {
                    self.enter(vcpu, State::Suspended);
                }
            }
            Event::Sleep { vcpu } => self.enter(vcpu, State::Sleeping),
            Event::Fence { vcpu, applied } => {
                let name = if applied { "fence applied" } else { "fence recorded" };
                self.vcpu_instant(vcpu, name.to_string());
            }
            Event::Mark { vcpu, value } => {
                let event = self.vcpu_instant(vcpu, format!("mark {value}"));
                event.debug_annotations.push(detail("value", AnnotationValue::Address(value)));
            }
            Event::Lost { count } => {
                self.hart_instant(core, format!("{count} older records lost"));
            }
        }
    }

    fn switch(&mut self, core: u8, from: Option<u8>, to: Option<u8>) {
        // It may sleep already, or run elsewhere: clocks of harts can differ a little.
        if let Some(from) = from.filter(|from| self.vcpus.get(from) == Some(&Some(State::Running { core }))) {
            self.enter(from, State::Suspended);
        }
        self.run(core, to);
    }

    /// The core runs `vcpu` from now on.
    fn run(&mut self, core: u8, vcpu: Option<u8>) {
        let state = self.cores.entry(core).or_default();
        if state.running.is_some() {
            self.packets.end(self.now, Track::Hart(core));
        }
        state.running = vcpu;
        if let Some(vcpu) = vcpu {
            self.packets.begin(self.now, Track::Hart(core), self.vcpu_name(vcpu));
            self.enter(vcpu, State::Running { core });
        }
    }

    /// The vCPU is in `state` from now on.
    fn enter(&mut self, vcpu: u8, state: State) {
        let before = self.vcpu(vcpu).replace(state);
        if before == Some(state) {
            return;
        }
        if before.is_some() {
            self.packets.end(self.now, Track::Vcpu(vcpu));
        }
        let name = self.state_name(state);
        self.packets.begin(self.now, Track::Vcpu(vcpu), name);
    }

    fn state_name(&self, state: State) -> String {
        match state {
            State::Running { core } => format!("running on {}", self.hart_name(core)),
            State::Suspended => "suspended".to_string(),
            State::Sleeping => "sleeping".to_string(),
        }
    }

    /// The state of a vCPU, which gets its track when it first occurs.
    fn vcpu(&mut self, vcpu: u8) -> &mut Option<State> {
        self.vcpus.entry(vcpu).or_insert_with(|| {
            self.packets.describe(Track::Vcpu(vcpu), named(&self.names.vcpus, vcpu.into(), "vCPU"));
            None
        })
    }

    fn trap(&mut self, core: u8, vcpu: Option<u8>, cause: Cause, class: u8, pc: u64) {
        let state = self.cores.entry(core).or_default();
        state.exits += 1;
        self.packets.counter(self.now, Track::Exits(core), state.exits);
        let name = named(&self.names.exits, class.into(), "exit");
        let event = match vcpu {
            Some(vcpu) => self.vcpu_instant(vcpu, name),
            None => self.hart_instant(core, name),
        };
        event.debug_annotations = std::vec![
            detail("cause", AnnotationValue::Text(cause_name(cause))),
            detail("pc", AnnotationValue::Address(pc)),
        ];
    }

    fn ipi(&mut self, core: u8, to: u8) {
        let state = self.cores.entry(core).or_default();
        state.ipis += 1;
        self.packets.counter(self.now, Track::Ipis(core), state.ipis);
        let name = format!("IPI to {}", self.hart_name(to));
        self.hart_instant(core, name);
    }

    fn hart_instant(&mut self, core: u8, name: String) -> &mut TrackEvent {
        self.packets.instant(self.now, Track::Hart(core), name)
    }

    fn vcpu_instant(&mut self, vcpu: u8, name: String) -> &mut TrackEvent {
        self.vcpu(vcpu);
        self.packets.instant(self.now, Track::Vcpu(vcpu), name)
    }

    fn vcpu_name(&self, vcpu: u8) -> String {
        named(&self.names.vcpus, vcpu.into(), "vCPU")
    }

    fn message_name(&self, item: u32) -> String {
        named(&self.names.messages, item, "message")
    }

    fn hart_name(&self, core: u8) -> String {
        match self.cores.get(&core) {
            Some(state) => format!("hart {}", state.hart),
            None => format!("core {core}"),
        }
    }
}

/// The vCPU that runs on each core when its records begin, as its first switch tells. Cores that begin idle are left out.
fn running_first(records: &[Stamped]) -> BTreeMap<u8, u8> {
    let mut first = BTreeMap::new();
    for Stamped { core, record } in records {
        if let Event::Switch { from, .. } = record.event() {
            first.entry(*core).or_insert(from);
        }
    }
    first.into_iter().filter_map(|(core, vcpu)| Some((core, vcpu?))).collect()
}

/// A new number of a flow, never zero.
fn next(flows: &mut u64) -> u64 {
    *flows += 1;
    *flows
}

fn named(names: &[String], index: u32, sort: &str) -> String {
    names.get(index as usize).cloned().unwrap_or_else(|| format!("{sort} {index}"))
}

fn line_name(line: Line) -> String {
    match line {
        Line::Timer => "timer interrupt".to_string(),
        Line::Software => "software interrupt".to_string(),
        Line::External(0) => "external interrupt".to_string(),
        Line::External(source) => format!("interrupt {source}"),
    }
}

/// The privileged specification's name of a trap.
fn cause_name(cause: Cause) -> String {
    let (name, sort) = match cause.interrupt {
        true => (interrupt_name(cause.code.into()), "interrupt"),
        false => (exception_name(cause.code.into()), "exception"),
    };
    name.map_or_else(|| format!("{sort} {}", cause.code), str::to_string)
}
