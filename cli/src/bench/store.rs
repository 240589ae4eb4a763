//! Finished runs by key, one JSON file each; beside them what is known of their times, and which machine does which.
use super::times::Times;
use crate::output;
use miette::{Result, miette};
use serde_json::Value;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A folder of finished runs.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The store in a folder, which is made if needed.
    pub fn open(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder)
            .map_err(|error| miette!("the folder {} can't be made: {error}", folder.display()))?;
        Ok(Self { folder })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How long its runs took.
    pub fn times(&self) -> Times {
        Times::of(&self.folder)
    }

    /// A finished run's document. What can't be read is as if it weren't there: it is run again.
    pub fn get(&self, key: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.file(key)).ok()?).ok()
    }

    /// Forgets a run, if it is there.
    pub fn forget(&self, key: &str) -> Result<()> {
        let file = self.file(key);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(miette!("{} can't be removed: {error}", file.display()))
            }
            _ => Ok(()),
        }
    }

    /// Keeps a finished run's document. It is there as a whole or not at all, whenever the program ends.
    pub fn put(&self, key: &str, document: &Value) -> Result<()> {
        let file = self.file(key);
        let unfinished = file.with_extension("new");
        output::write(&unfinished, format!("{document:#}\n").as_bytes())?;
        fs::rename(&unfinished, &file)
            .map_err(|error| miette!("{} can't be written: {error}", file.display()))
    }

    fn file(&self, key: &str) -> PathBuf {
        self.folder.join(key).with_extension("json")
    }
}
