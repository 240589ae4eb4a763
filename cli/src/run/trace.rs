//! Traces: the rings of all cores, taken out of the machine's memory after a run, as a file for the Perfetto UI.
//!
//! QEMU's memory is a file that exists only as long as this program has it open, so nothing is left behind however the run ends.
use super::files::path_of;
use crate::{
    image::Kernel,
    output::Output,
    report::{Outcome, RunReport, TraceReport},
};
use ainori_limits::Room;
use ainori_manifest::{
    DEFAULT_TRACE_RECORDS, Manifest,
    config::{System, Trace},
};
use ainori_report::exits::Exit;
use ainori_trace::{
    DEFAULT_MASK, Mask,
    host::{Window, perfetto, read},
};
use miette::{Result, miette};
use std::{
    fs::File,
    os::unix::fs::{FileExt, MetadataExt},
    path::PathBuf,
};

/// Where the memory of QEMU's `virt` begins.
const MEMORY_BASE: u64 = 0x8000_0000;

/// A trace that is wanted.
#[derive(Debug, Clone)]
pub struct Tracing {
    /// Where it goes.
    pub file: PathBuf,
    /// What is recorded; `None`: what the manifest says, or else [`DEFAULT_MASK`].
    pub mask: Option<Mask>,
    /// Records that each core's ring holds, a power of two; `None`: what the manifest says, or else
    /// [`DEFAULT_TRACE_RECORDS`].
    pub records: Option<u32>,
    /// The part of the run that the file shows; `None`: all of it.
    pub window: Option<Window>,
}

/// A trace that is being taken.
pub struct Recording {
    output: Output,
    window: Option<Window>,
    /// The machine's memory.
    memory: File,
    /// Length of the image, behind which the hypervisor keeps what it makes at boot.
    image_len: u64,
    names: perfetto::Names,
}

impl Recording {
    /// Switches tracing on in `manifest`, and makes a memory that can be read afterwards.
    pub fn prepare(wanted: &Tracing, manifest: &mut Manifest) -> Result<Self> {
        let said = &manifest.system.trace;
        let default = match said.records {
            0 => Trace { mask: DEFAULT_MASK.0, records: DEFAULT_TRACE_RECORDS },
            _ => said.clone(),
        };
        let trace = Trace {
            mask: wanted.mask.map_or(default.mask, |mask| mask.0),
            records: wanted.records.unwrap_or(default.records),
        };
        manifest.set_trace(trace).map_err(|why| miette!("{why}"))?;
        let memory = rustix::fs::memfd_create("ainori-memory", rustix::fs::MemfdFlags::CLOEXEC)
            .map_err(|error| miette!("no memory for a machine that is traced: {error}"))?;
        Ok(Self {
            output: Output::prepare(&wanted.file)?,
            window: wanted.window,
            memory: memory.into(),
            image_len: 0,
            names: names(&manifest.system),
        })
    }

    /// What QEMU must be told: its memory of so many bytes is the file.
    pub fn qemu_args(&self, memory: u64) -> [String; 4] {
        let (size, path) = (memory >> 20, path_of(&self.memory));
        let backend = format!("memory-backend-file,id=ram,share=on,size={size}M,mem-path={}", path.display());
        ["-object".into(), backend, "-machine".into(), "memory-backend=ram".into()]
    }

    /// Tells how long the image is, and what the hypervisor in it has room for.
    pub fn image(&mut self, len: usize, room: Room) {
        self.image_len = len as u64;
        // The number that no vCPU has stands for the machine.
        let named = self.names.messages.len();
        self.names.messages.extend((named..room.vcpus).map(|vcpu| format!("vCPU {vcpu}")));
        self.names.messages.push("machine".into());
    }

    /// Writes the trace of a run that has ended, and notes it in the report; or why there is none.
    pub fn save(self, report: &mut RunReport) {
        match self.encode(report).and_then(|(bytes, records, lost)| {
            let file = self.output.name().to_owned();
            self.output.write(&bytes)?;
            Ok(TraceReport { file, records, lost })
        }) {
            Ok(trace) => report.trace = Some(trace),
            Err(why) => {
                report.problems.push(format!("there is no trace: {why}"));
                if matches!(report.outcome, Outcome::Good | Outcome::Unreported) {
                    report.outcome = Outcome::NoTrace;
                }
            }
        }
    }

    /// The trace as a file, its records, and how many older ones were lost.
    fn encode(&self, report: &RunReport) -> Result<(Vec<u8>, u64, u64)> {
        let pieces = self
            .places(report)?
            .into_iter()
            .map(|(address, len)| self.read(address, len))
            .collect::<Result<Vec<_>>>()?;
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let trace = read(&pieces).map_err(|error| miette!("{error}"))?;
        let kept = trace.cores.iter().map(|core| core.written - core.lost).sum();
        Ok(match self.window {
            None => (perfetto::encode(&trace, &self.names), kept, trace.lost()),
            Some(window) => {
                let failed = |error| miette!("{error}");
                let records = window.records(&trace).map_err(failed)?.len() as u64;
                // Where it shows anything, nothing was lost.
                (perfetto::encode_window(&trace, &self.names, window).map_err(failed)?, records, 0)
            }
        })
    }

    /// Address and length of the pieces of memory that hold the rings.
    fn places(&self, report: &RunReport) -> Result<Vec<(u64, u64)>> {
        if report.end.is_some() {
            let rings = report.cores.iter().filter_map(|core| core.trace);
            return Ok(rings.map(|ring| (ring.address, ring.bytes)).collect());
        }
        // A run that was cut short told no addresses. But the hypervisor's memory begins with its image, and goes on behind it.
        let board = report.board.as_ref().ok_or_else(|| miette!("the hypervisor did not start"))?;
        Ok(vec![(Kernel::LOAD_ADDRESS, self.image_len + board.hypervisor_bytes)])
    }

    fn read(&self, address: u64, len: u64) -> Result<Vec<u8>> {
        let failed = |error: std::io::Error| miette!("the machine's memory can't be read: {error}");
        let offset = address.checked_sub(MEMORY_BASE);
        let size = self.memory.metadata().map_err(failed)?.size();
        let offset = offset.filter(|offset| offset.checked_add(len).is_some_and(|end| end <= size));
        let offset =
            offset.ok_or_else(|| miette!("{len} bytes at {address:#x} are not in the machine's memory"))?;
        let mut bytes = vec![0; usize::try_from(len).expect("no longer than the file")];
        self.memory.read_exact_at(&mut bytes, offset).map_err(failed)?;
        Ok(bytes)
    }
}

/// What the trace only numbers, by name.
fn names(system: &System) -> perfetto::Names {
    let vcpus = system
        .guests
        .iter()
        .flat_map(|guest| (0..guest.vcpus.len()).map(move |index| format!("{}/{index}", guest.name)));
    let vcpus: Vec<String> = vcpus.collect();
    // A message says only which vCPU its receiver shall look at.
    let messages = vcpus.clone();
    let exits = Exit::NAMES.iter().map(ToString::to_string).collect();
    perfetto::Names { vcpus, exits, messages }
}
