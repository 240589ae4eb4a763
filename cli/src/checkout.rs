//! Finds what the checkout's scripts have built, from wherever the tool is started.
use ainori_manifest::files;
use miette::{Result, miette};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Finds `relative` (e.g. `.cache/kernel/ainori.elf`) in one of the folders above this program or above the current
/// folder. `what` and `remedy` are for the message if there is none.
pub fn find(relative: &str, what: &str, remedy: &str) -> Result<PathBuf> {
    let starts = [env::current_exe().ok(), env::current_dir().ok()];
    let folders = starts.iter().flatten().flat_map(|start| start.ancestors());
    let found = folders.map(|folder| folder.join(relative)).find(|path| path.is_file());
    found.ok_or_else(|| {
        miette!(
            help = remedy,
            "{what} is not built: there is no {relative} above the current folder or above the program"
        )
    })
}

/// The files of a folder whose names have an ending (`json`), by name.
pub fn list(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut files: Vec<PathBuf> =
        entries.map_err(|error| miette!("{} can't be read: {error}", folder.display()))?;
    files.retain(|path| path.extension().is_some_and(|own| own == ending));
    files.sort();
    Ok(files)
}

/// Reads a file, or says which one can't be read.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    files::read(path, u64::MAX).map_err(|error| miette!("{} can't be read: {error}", path.display()))
}
