//! A part of the runs: `--shard 3/8` is the third of eight that together are all of them, and take about the same time each.
//!
//! All machines must cut alike, and a part that was interrupted must stay what it was, though more times are known by then. So the cut is
//! kept in the store the first time that it is made, under the hash of the runs' keys. Machines with stores of their own cut alike if the stores
//! know the same times, or none; `ainori bench merge` tells if they haven't.
use super::{key, plan::Run, times::Times};
use crate::{checkout, output};
use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

/// Most parts that there can be.
const MOST: u32 = 10_000;

/// `3/8`: one of several parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) && of <= MOST => Ok(Self { number, of }),
            _ => Err(format!("it must be NUMBER/OF, with NUMBER from 1 to OF, and OF at most {MOST}: 3/8")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// Which part does which run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// How many parts there are.
    pub parts: u32,
    /// The number of the part, from 1, by the key of the run.
    pub part: BTreeMap<String, u32>,
}

impl Cut {
    /// Cuts runs, each given with its key and the seconds that it may take: the longest first, each to the part that has least to do yet. The
    /// same for the same keys and seconds, in whatever order they come.
    pub fn new(runs: &[(&str, f64)], parts: u32) -> Self {
        let mut runs = runs.to_vec();
        runs.sort_by(|(key_a, a), (key_b, b)| b.total_cmp(a).then_with(|| key_a.cmp(key_b)));
        runs.dedup_by(|(a, _), (b, _)| a == b); // the same key is the same run, of the same time
        let mut loads = vec![0.0_f64; parts as usize];
        let mut part = BTreeMap::new();
        for (key, seconds) in runs {
            let least = (0..loads.len()).min_by(|a, b| loads[*a].total_cmp(&loads[*b])).unwrap_or(0);
            loads[least] += seconds;
            part.insert(key.to_owned(), least as u32 + 1);
        }
        Self { parts, part }
    }

    /// The cut of these runs that the store has, or a new one, which it has from now on.
    pub fn of(store: &Path, runs: &[(String, &Run)], parts: u32) -> Result<Self> {
        let only: Vec<&Run> = runs.iter().map(|(_, run)| *run).collect();
        let seconds = Times::of(store).estimates(&only);
        let keyed: Vec<(&str, f64)> = runs.iter().map(|(key, _)| key.as_str()).zip(seconds).collect();
        let new = Self::new(&keyed, parts);
        let file = folder(store).join(new.file_name());
        fs::create_dir_all(folder(store))
            .and_then(|()| keep_first(&file, &new.json()))
            .map_err(|error| miette!("{} can't be written: {error}", file.display()))?;
        Self::load(&file)
    }

    /// Is a run of this part?
    pub fn has(&self, shard: Shard, key: &str) -> bool {
        self.part.get(key) == Some(&shard.number)
    }

    /// Eight digits that tell it from another one.
    pub fn mark(&self) -> String {
        key::hash(self.json().as_bytes())[..8].to_owned()
    }

    /// Of these runs and this number of parts.
    fn file_name(&self) -> String {
        let keys: String = self.part.keys().flat_map(|key| [key, "\n"]).collect();
        format!("{}-{}.json", &key::hash(keys.as_bytes())[..32], self.parts)
    }

    fn json(&self) -> String {
        serde_json::to_string(self).expect("plain data has a JSON form") + "\n"
    }

    fn load(file: &Path) -> Result<Self> {
        serde_json::from_slice(&checkout::read(file)?).map_err(|error| {
            miette!(
                help = "remove the file, if no part of these runs has been begun",
                "{} does not say which part does which run: {error}",
                file.display()
            )
        })
    }
}

/// Where a store has its cuts.
fn folder(store: &Path) -> PathBuf {
    store.join("shards")
}

/// Writes a file as a whole, unless it is there already: of several programs at once one is the first.
fn keep_first(file: &Path, text: &str) -> io::Result<()> {
    let new = tempfile::NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
    fs::write(new.path(), text)?;
    match new.persist_noclobber(file) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

/// Takes the cuts of another store over. Returns the files of those that differ between both: machines that did not cut alike.
pub fn merge(into: &Path, from: &Path) -> Result<Vec<PathBuf>> {
    let mut differ = Vec::new();
    for entry in fs::read_dir(folder(from)).into_iter().flatten().flatten() {
        let own = folder(into).join(entry.file_name());
        let theirs = checkout::read(&entry.path())?;
        if !own.exists() {
            fs::create_dir_all(folder(into))
                .map_err(|error| miette!("{} can't be made: {error}", folder(into).display()))?;
            output::write(&own, &theirs)?;
        } else if checkout::read(&own)? != theirs {
            differ.push(entry.path());
        }
    }
    differ.sort();
    Ok(differ)
}

#[cfg(test)]
mod tests;
