//! Versions of everything that took part in an experiment.
use super::{
    experiment::Machine,
    key::{Hashes, Tools},
    plan::{Plan, Sample},
};
use crate::checkout;
use miette::Result;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    path::Path,
};

/// What took part. Hashes are the first 16 digits of SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// QEMU.
    pub qemu: String,
    /// Hash of the hypervisor's ELF file.
    pub kernel: String,
    /// Hashes of other builds of it that some of the runs needed, by the names of their ELF files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernels: BTreeMap<String, String>,
    /// Hash of the lockstep plugin.
    pub lockstep: String,
    /// Hash of the counting plugin.
    pub paths: String,
    /// Hash of the plugin that counts in windows, if a run had some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<String>,
    /// Hash of the plugin that models TLBs, if a run had some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tlb: Option<String>,
    /// The guests' files by name.
    pub files: BTreeMap<String, FileVersion>,
    /// Slices of the lockstep clock; none if no run had it.
    pub q: Vec<u32>,
    /// The commit that was checked out, if nothing but `docs/results` had been changed since. Whether the programs were built from
    /// it only their hashes say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A file of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVersion {
    /// Its hash.
    pub hash: String,
    /// What it says itself, e.g. `Linux version 6.12.107+deb13-riscv64`.
    pub says: Option<String>,
}

/// How files say what they are: the text and what may follow it.
const MARKERS: [&str; 2] = ["Linux version ", "FreeRTOS V"];

/// Finds out the versions.
pub fn versions(plan: &Plan, tools: &Tools, hashes: &mut Hashes) -> Result<Versions> {
    let mut short = |path: &Path| -> Result<String> {
        let mut hash = hashes.of(path)?;
        hash.truncate(16);
        Ok(hash)
    };
    let mut files = BTreeMap::new();
    for paths in plan.runs().flat_map(|run| &run.manifest.files) {
        for (_, path) in paths.all() {
            if let Entry::Vacant(entry) = files.entry(name_of(path)) {
                entry.insert(FileVersion { hash: short(path)?, says: says(&checkout::read(path)?) });
            }
        }
    }
    let mut kernels = BTreeMap::new();
    for run in plan.runs().filter(|run| run.machine == Machine::Ainori) {
        let path = tools.kernel(run)?;
        if path != tools.kernel {
            kernels.insert(name_of(&path), short(&path)?);
        }
    }
    let has_windows = plan.runs().any(|run| !run.windows.is_empty() && run.tlb.is_none());
    let windows = has_windows.then(|| short(&tools.windows)).transpose()?;
    let has_tlb = plan.runs().any(|run| run.tlb.is_some());
    let tlb = has_tlb.then(|| short(&tools.tlb)).transpose()?;
    let q: BTreeSet<u32> = plan
        .runs()
        .filter_map(|run| match run.sample {
            Sample::Q(q) => Some(q),
            Sample::Repetition(_) => None,
        })
        .collect();
    Ok(Versions {
        qemu: tools.qemu.clone(),
        kernel: short(&tools.kernel)?,
        kernels,
        lockstep: short(&tools.lockstep)?,
        paths: short(&tools.paths)?,
        windows,
        tlb,
        files,
        q: q.into_iter().collect(),
        commit: None,
    })
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// What a file says of its own version: the first marker, up to the end of its word.
fn says(bytes: &[u8]) -> Option<String> {
    MARKERS.iter().find_map(|marker| {
        let mut places =
            bytes.windows(marker.len()).enumerate().filter(|(_, window)| *window == marker.as_bytes());
        places.find_map(|(at, _)| {
            let version = &bytes[at + marker.len()..];
            let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b".+-~_".contains(*byte);
            let version: Vec<u8> = version.iter().take_while(is_part).copied().collect();
            let is_version = version.first().is_some_and(u8::is_ascii_digit);
            is_version.then(|| format!("{marker}{}", String::from_utf8_lossy(&version)))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_tell_their_version() {
        let image = b"\0Linux version %s\0Linux version 6.12.1+deb13-riscv64 (debian\0";
        assert_eq!(says(image).as_deref(), Some("Linux version 6.12.1+deb13-riscv64"));
        assert_eq!(says(b"FreeRTOS V11.2.0: %lu periods").as_deref(), Some("FreeRTOS V11.2.0"));
        assert_eq!(says(b"nothing"), None);
    }
}
