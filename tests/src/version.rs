//! What results depend on, beside their parameters: the hypervisor, QEMU and its plugins, the guests' files, and the tool with its rules. Campaigns that go
//! on later count a result only if all of these are what they were.
use ainori::run::version as qemu;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError, atomic::AtomicBool},
    time::SystemTime,
};

/// The programs of a campaign, as they were at its start.
#[derive(Debug)]
pub struct Programs {
    kernel: PathBuf,
    kernel_hash: String,
    /// Of QEMU and of the tool that runs.
    tools: String,
    plugins: Vec<PathBuf>,
    files: Mutex<BTreeMap<PathBuf, Known>>,
}

/// A file that was read.
#[derive(Debug)]
struct Known {
    stamp: Stamp,
    hash: String,
}

/// What changes when somebody builds a file anew: its length, and when that was.
type Stamp = (u64, SystemTime);

impl Programs {
    /// Those of this tool, with this hypervisor and these plugins. The hypervisor is copied to the folder, so that a build doesn't change it midway.
    pub fn hold(folder: &Path, kernel: &Path, plugins: Vec<PathBuf>) -> io::Result<Self> {
        let qemu = qemu::version(None, &AtomicBool::new(false))
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
        Self::with(folder, kernel, plugins, qemu.expect("nobody stops it").as_bytes())
    }

    /// As [`Self::hold`], with what QEMU says that it is.
    pub(crate) fn with(folder: &Path, kernel: &Path, plugins: Vec<PathBuf>, qemu: &[u8]) -> io::Result<Self> {
        let bytes = read(kernel)?;
        // Linux's name of the running program, also of one that was replaced in the meantime.
        let tool = hash([read(Path::new("/proc/self/exe"))?]);
        let tools = hash([tool.as_bytes(), qemu]);
        let kernel_hash = hash([&bytes]);
        fs::create_dir_all(folder).map_err(of(folder.display()))?;
        let copy = folder.join(format!("ainori-{kernel_hash}.elf"));
        // Whole or not at all: another tool may run with it.
        let new = copy.with_extension(format!("{}.new", std::process::id()));
        fs::write(&new, &bytes).and_then(|()| fs::rename(&new, &copy)).map_err(of(copy.display()))?;
        // QEMU and what starts it want a path that holds in any folder.
        let kernel = copy.canonicalize()?;
        let programs = Self { kernel, kernel_hash, tools, plugins, files: Mutex::default() };
        programs.version(&[])?;
        Ok(programs)
    }

    /// The copy of the hypervisor that all runs of the campaign use.
    pub fn kernel(&self) -> &Path {
        &self.kernel
    }

    /// The version of what runs with these files of guests: the hypervisor's hash, as in the name of its copy, and that of all else. A file that isn't what it was when it was first asked for is an error: ask before
    /// a run and after it, and what was seen is of this version.
    pub fn version(&self, guests: &[PathBuf]) -> io::Result<String> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hashes = vec![self.tools.clone()];
        for path in self.plugins.iter().chain(guests) {
            let stamp = stamp(path)?;
            let known = match files.get(path) {
                Some(known) if known.stamp == stamp => known.hash.clone(),
                Some(_) => return Err(changed(path)),
                None => {
                    let hash = hash([read(path)?]);
                    files.insert(path.clone(), Known { stamp, hash: hash.clone() });
                    hash
                }
            };
            hashes.push(known);
        }
        Ok(format!("{}-{}", self.kernel_hash, hash(hashes)))
    }
}

/// The first 16 digits of SHA-256 of some parts, each with its length, so that none passes for a part of its neighbour.
pub fn hash<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.as_ref().len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a String can't fail
        text
    })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(of(path.display()))
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let metadata = fs::metadata(path).map_err(of(path.display()))?;
    Ok((metadata.len(), metadata.modified()?))
}

fn changed(path: &Path) -> io::Error {
    io::Error::other(format!("{} has changed since the start: call again", path.display()))
}

/// An error that says what it is about.
fn of(subject: impl std::fmt::Display) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{subject}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a hypervisor, a plugin and a guest.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["kernel", "plugin", "guest"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        folder
    }

    fn hold(folder: &Path) -> io::Result<Programs> {
        Programs::with(&folder.join("out"), &folder.join("kernel"), vec![folder.join("plugin")], b"QEMU")
    }

    #[test]
    fn the_version_is_that_of_each_file() {
        let folder = folder();
        let guest = [folder.path().join("guest")];
        let version = || hold(folder.path()).unwrap().version(&guest).unwrap();
        let first = version();
        assert_eq!(first, version());
        for name in ["kernel", "plugin", "guest"] {
            fs::write(folder.path().join(name), "another").unwrap();
            assert_ne!(first, version(), "{name}");
            fs::write(folder.path().join(name), name).unwrap();
        }
        assert_eq!(first, version());
        assert_ne!(first, hold(folder.path()).unwrap().version(&[]).unwrap());
        let newer = Programs::with(folder.path(), &guest[0], Vec::new(), b"newer").unwrap();
        let older = Programs::with(folder.path(), &guest[0], Vec::new(), b"older").unwrap();
        assert_ne!(newer.version(&[]).unwrap(), older.version(&[]).unwrap());
    }

    /// A build in the middle of a campaign.
    #[test]
    fn the_kernel_stays_what_it_was_at_the_start() {
        let folder = folder();
        let programs = hold(folder.path()).unwrap();
        let before = programs.version(&[]).unwrap();
        fs::write(folder.path().join("kernel"), "another").unwrap();
        assert_eq!(fs::read(programs.kernel()).unwrap(), b"kernel");
        assert_eq!(programs.version(&[]).unwrap(), before);
    }

    #[test]
    fn files_that_change_midway_are_errors() {
        for name in ["plugin", "guest"] {
            let folder = folder();
            let guest = [folder.path().join("guest")];
            let programs = hold(folder.path()).unwrap();
            programs.version(&guest).unwrap();
            fs::write(folder.path().join(name), "another").unwrap();
            let error = programs.version(&guest).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("has changed"), "{error}");
        }
    }

    #[test]
    fn files_that_are_missing_are_errors() {
        for name in ["kernel", "plugin"] {
            let folder = folder();
            fs::remove_file(folder.path().join(name)).unwrap();
            let error = hold(folder.path()).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
    }
}
