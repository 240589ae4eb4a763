//! What a run depends on, as a hash: two runs with the same key give the same figures.
use super::{
    experiment::Machine,
    paths::Address,
    plan::{Run, Sample},
    tlb::Tlb,
    windows::Window,
};
use crate::{checkout, image::Kernel, run::ClockChoice};
use ainori_manifest::{
    Board, Manifest,
    config::{System, Translation},
};
use miette::Result;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    fmt::Write,
    path::{Path, PathBuf},
};

/// Goes up when the tool itself runs something in another way, or keeps something else of a run.
const FORMAT: u32 = 1;

/// The programs that runs need, beside the guests.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Version of QEMU.
    pub qemu: String,
    /// The hypervisor's ELF file: the usual build's, or the one that was asked for.
    pub kernel: PathBuf,
    /// That one was asked for, for all runs. Otherwise systems that need another build get it.
    pub is_asked_for: bool,
    /// The plugin for lockstep time.
    pub lockstep: PathBuf,
    /// The plugin that counts instructions of paths.
    pub paths: PathBuf,
    /// The plugin that counts instructions and traps in windows.
    pub windows: PathBuf,
    /// The plugin that counts what models of TLBs would read.
    pub tlb: PathBuf,
}

impl Tools {
    /// The hypervisor's ELF file for a run: as `ainori run` would choose it.
    pub fn kernel(&self, run: &Run) -> Result<PathBuf> {
        match self.is_asked_for {
            true => Ok(self.kernel.clone()),
            false => Kernel::path(None, run.manifest.needs()),
        }
    }

    /// The plugin that counts in a run's windows.
    fn of_windows(&self, run: &Run) -> &Path {
        if run.tlb.is_some() { &self.tlb } else { &self.windows }
    }
}

/// Hashes of files, each read once.
#[derive(Debug, Default)]
pub struct Hashes {
    known: HashMap<PathBuf, String>,
}

impl Hashes {
    /// SHA-256 of a file, in hexadecimal.
    pub fn of(&mut self, path: &Path) -> Result<String> {
        if let Some(hash) = self.known.get(path) {
            return Ok(hash.clone());
        }
        let hash = hash(&checkout::read(path)?);
        self.known.insert(path.to_owned(), hash.clone());
        Ok(hash)
    }
}

/// Hash of a run's document: the first 32 digits of SHA-256. The same for the same run.
pub fn digest(document: &serde_json::Value) -> String {
    let mut digest = hash(document.to_string().as_bytes());
    digest.truncate(32);
    digest
}

/// SHA-256 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a String can't fail
        text
    })
}

/// Everything that a run depends on.
#[derive(Debug, Serialize)]
struct Inputs<'a> {
    format: u32,
    qemu: &'a str,
    machine: Machine,
    board: &'a Board,
    system: &'a System,
    /// Images and initial RAM disks, in the order of the guests.
    files: Vec<String>,
    kernel: Option<String>,
    clock: &'static str,
    sample: Sample,
    lockstep: Option<String>,
    marks: &'a [(String, Address, Address)],
    paths: Option<String>,
    guests_may_fail: bool,
    // Left out where there are none: runs of before have no other key for it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    windows: &'a [Window],
    #[serde(skip_serializing_if = "Option::is_none")]
    windows_plugin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tlb: Option<&'a Tlb>,
    #[serde(skip_serializing_if = "are_usual")]
    translations: &'a [Translation],
    #[serde(skip_serializing_if = "have_none")]
    memory_at: Vec<Option<u64>>,
}

fn have_none(places: &[Option<u64>]) -> bool {
    places.iter().all(Option::is_none)
}

/// Where the guests' memory is, as far as the manifest says so.
fn places(manifest: &Manifest) -> Vec<Option<u64>> {
    manifest.files.iter().map(|files| files.places.memory_at).collect()
}

fn are_usual(translations: &[Translation]) -> bool {
    translations.iter().all(|translation| *translation == Translation::TwoStage)
}

/// The key of a run: 32 hexadecimal digits.
pub fn key(run: &Run, tools: &Tools, hashes: &mut Hashes) -> Result<String> {
    let mut files = Vec::new();
    for guest in &run.manifest.files {
        for (_, file) in guest.all() {
            files.push(hashes.of(file)?);
        }
    }
    let kernel = match run.machine {
        Machine::Ainori => Some(hashes.of(&tools.kernel(run)?)?),
        Machine::Bare => None,
    };
    let mut hash_if = |wanted: bool, path: &Path| wanted.then(|| hashes.of(path)).transpose();
    let inputs = Inputs {
        format: FORMAT,
        qemu: &tools.qemu,
        machine: run.machine,
        board: &run.manifest.board,
        system: &run.manifest.system,
        files,
        kernel,
        clock: run.clock_name(),
        sample: run.sample,
        lockstep: hash_if(matches!(run.clock, ClockChoice::Lockstep { .. }), &tools.lockstep)?,
        marks: &run.marks,
        paths: hash_if(!run.marks.is_empty(), &tools.paths)?,
        guests_may_fail: run.guests_may_fail,
        windows: &run.windows,
        windows_plugin: hash_if(!run.windows.is_empty(), tools.of_windows(run))?,
        tlb: run.tlb.as_ref(),
        translations: &run.manifest.translations,
        memory_at: places(&run.manifest),
    };
    let text = serde_json::to_vec(&inputs).expect("plain data has a JSON form");
    let mut key = hash(&text);
    key.truncate(32);
    Ok(key)
}

/// What runs have in common that take about the same time of a host: 32 hexadecimal digits. Unlike the key it doesn't depend on the
/// programs and their versions, nor on q.
pub fn likeness(run: &Run) -> String {
    let inputs = Inputs {
        format: FORMAT,
        qemu: "",
        machine: run.machine,
        board: &run.manifest.board,
        system: &run.manifest.system,
        files: vec![format!("{} marks", run.marks.len())],
        kernel: None,
        clock: run.clock_name(),
        sample: Sample::Q(0),
        lockstep: None,
        marks: &[],
        paths: None,
        guests_may_fail: run.guests_may_fail,
        windows: &run.windows,
        windows_plugin: None,
        tlb: run.tlb.as_ref(),
        translations: &run.manifest.translations,
        memory_at: places(&run.manifest),
    };
    let mut likeness = hash(&serde_json::to_vec(&inputs).expect("plain data has a JSON form"));
    likeness.truncate(32);
    likeness
}

#[cfg(test)]
mod tests;
