//! Files of a run: kept in a folder if the user wants them, otherwise without a name, so that the system removes them
//! however this program ends.
use miette::{Result, miette};
use rustix::fs::{FlockOperation, OFlags, flock};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::{
        fd::AsRawFd,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::OpenOptionsExt,
        },
    },
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// The names of all files of a run that may be kept.
pub const KEPT: [&str; 5] = ["image.bin", "serial.log", "serial.out", "command.txt", "replay.bin"];

/// Where the files of a run go.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    folder: Option<&'a Path>,
}

/// A file of a run.
#[derive(Debug)]
pub struct RunFile {
    /// For this program; QEMU opens it by itself, so each has its own place in it.
    pub file: File,
    /// How QEMU finds it for as long as [`Self::file`] is open.
    pub path: PathBuf,
    /// How it is named in messages.
    name: String,
}

impl<'a> Files<'a> {
    /// Files go to `folder`, which is made if need be, or to nowhere.
    pub fn new(folder: Option<&'a Path>) -> Result<Self> {
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder)
                .map_err(|error| miette!("{} can't be made: {error}", folder.display()))?;
        }
        Ok(Self { folder })
    }

    /// Are the files kept?
    pub fn are_kept(self) -> bool {
        self.folder.is_some()
    }

    /// Makes an empty file.
    pub fn create(self, name: &str) -> Result<RunFile> {
        match self.folder {
            Some(folder) => {
                let path = kept(folder, name);
                let told = path.display().to_string();
                let options = File::options().read(true).write(true).create(true).truncate(true).open(&path);
                let file = options.map_err(|error| miette!("{told} can't be written: {error}"))?;
                Ok(RunFile { file, path, name: told })
            }
            None => {
                let told = format!("the temporary file for {name} in {}", std::env::temp_dir().display());
                let file = tempfile::tempfile().map_err(|error| miette!("{told} can't be made: {error}"))?;
                Ok(RunFile { path: path_of(&file), file, name: told })
            }
        }
    }

    /// Makes a file with contents.
    pub fn write(self, name: &str, bytes: &[u8]) -> Result<RunFile> {
        let mut file = self.create(name)?;
        file.append(bytes)?;
        Ok(file)
    }

    /// Where QEMU may write what is of no use but to be kept.
    pub fn only_if_kept(self, name: &str) -> PathBuf {
        self.folder.map_or_else(|| PathBuf::from("/dev/null"), |folder| kept(folder, name))
    }
}

fn kept(folder: &Path, name: &str) -> PathBuf {
    debug_assert!(KEPT.contains(&name), "nobody looks whether {name} may be written");
    folder.join(name)
}

impl RunFile {
    /// Writes behind what this program has written before.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> miette::Report {
        miette!("{} can't be written: {error}", self.name)
    }
}

/// A temporary folder, for programs that must have a name to write to. Should this program be killed, another one that makes such
/// a folder removes it.
#[derive(Debug)]
pub struct Folder {
    folder: TempDir,
    /// Locked for as long as this program lives.
    _lock: File,
}

impl Folder {
    /// Begins the names of all of them.
    const PREFIX: &'static str = "ainori-tmp-";

    /// Makes one, and removes those whose programs are gone.
    pub fn new() -> Result<Self> {
        Self::new_in(&std::env::temp_dir()).map_err(|error| {
            miette!("no temporary folder can be made in {}: {error}", std::env::temp_dir().display())
        })
    }

    fn new_in(place: &Path) -> io::Result<Self> {
        Self::sweep(place);
        loop {
            let folder = tempfile::Builder::new().prefix(Self::PREFIX).tempdir_in(place)?;
            // Another program's sweep may have come before the lock, and then it has removed the folder.
            if let Some(lock) = lock(folder.path()).filter(|_| folder.path().exists()) {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes folders that nobody has locked. What fails is another program's business, or the next one's.
    fn sweep(place: &Path) {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            if entry.file_name().as_bytes().starts_with(Self::PREFIX.as_bytes())
                && let Some(_lock) = lock(&entry.path())
            {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// Opens a folder and locks it, if nobody else has done so.
fn lock(folder: &Path) -> Option<File> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(folder).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// The name under which a program that this one has started finds an open file.
pub fn path_of(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

/// `KEY=PATH` for QEMU's option lists, in which a comma is written twice. With the key even a path with `=` is a value.
pub fn option(key: &str, path: &Path) -> OsString {
    let mut text = format!("{key}=").into_bytes();
    for byte in path.as_os_str().as_bytes() {
        text.push(*byte);
        if *byte == b',' {
            text.push(b',');
        }
    }
    OsString::from_vec(text)
}

/// Texts one behind the other.
pub fn joined(parts: &[&OsStr]) -> OsString {
    parts.iter().fold(OsString::new(), |mut text, part| {
        text.push(part);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_paths_are_doubled_and_other_bytes_kept() {
        assert_eq!(option("file", Path::new("/a,b=c d")), "file=/a,,b=c d");
        let strange = Path::new(OsStr::from_bytes(b"-\xff,"));
        assert_eq!(option("path", strange).as_bytes(), b"path=-\xff,,");
    }

    #[test]
    fn files_that_are_not_kept_have_no_name() {
        let mut file = Files::new(None).unwrap().write("image.bin", b"ab").unwrap();
        file.append(b"c").unwrap();
        assert_eq!(std::fs::read(&file.path).unwrap(), b"abc");
        assert!(std::fs::read_link(&file.path).unwrap().to_string_lossy().ends_with("(deleted)"));
        assert_eq!(Files::new(None).unwrap().only_if_kept("replay.bin"), Path::new("/dev/null"));
    }

    #[test]
    fn folders_of_dead_programs_are_removed_and_no_others() {
        let place = tempfile::tempdir().unwrap();
        let left = place.path().join("ainori-tmp-left");
        std::fs::create_dir_all(left.join("below")).unwrap();
        std::fs::create_dir(place.path().join("somebody-s")).unwrap();
        let first = Folder::new_in(place.path()).unwrap();
        assert!(!left.exists(), "its program is gone");
        let second = Folder::new_in(place.path()).unwrap();
        assert!(first.path().exists() && second.path().exists() && place.path().join("somebody-s").exists());
        drop((first, second));
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_full_disk_is_told_with_the_file() {
        let mut file = Files::new(None).unwrap().create("serial.log").unwrap();
        file.file = File::options().write(true).open("/dev/full").unwrap();
        let error = file.append(b"x").unwrap_err().to_string();
        assert!(
            error.contains("the temporary file for serial.log in ") && error.contains("No space left"),
            "{error}"
        );
    }
}
