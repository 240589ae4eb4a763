//! What a command reads and what it writes are different files, and so are any two that it writes. That is looked at before anything is done:
//! afterwards one of them is lost.
use crate::image::Kernel;
use crate::{checkout, output, run};
use ainori_limits::Room;
use ainori_manifest::{Manifest, Needs};
use miette::{Result, miette};
use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The files of a command.
#[derive(Debug, Default)]
pub struct Apart {
    read: Vec<Named>,
    written: Vec<Named>,
}

#[derive(Debug)]
struct Named {
    /// What it is, in words, or the option that names it.
    what: String,
    path: PathBuf,
}

impl Apart {
    /// Of a command that reads a manifest, and what that names.
    pub fn of_system(manifest: &Path) -> Self {
        let named = Manifest::files(manifest).into_iter();
        named.fold(Self::default(), |files, (what, path)| files.reads(what, Some(&path)))
    }

    /// The command reads this one, if there is one.
    pub fn reads(mut self, what: &str, path: Option<&Path>) -> Self {
        self.read.extend(path.map(|path| Named { what: what.to_owned(), path: path.to_owned() }));
        self
    }

    /// The command writes this one, if there is one.
    pub fn writes(mut self, what: &str, path: Option<&Path>) -> Self {
        self.written.extend(path.map(|path| Named { what: what.to_owned(), path: path.to_owned() }));
        self
    }

    /// The command reads what the clock lockstep needs.
    pub fn reads_plugin(self) -> Self {
        let plugin = checkout::find(run::LOCKSTEP, "", "").ok();
        self.reads("the lockstep clock", plugin.as_deref())
    }

    /// The command reads the hypervisor: this one, or one of the checkout's builds.
    pub fn reads_hypervisor(self, path: Option<&Path>) -> Self {
        let rooms = [Room::USUAL, Room::LARGE].into_iter();
        // Without H, all guests have shadow tables.
        let kinds = [(false, false), (true, false), (true, true)];
        let kinds = kinds.into_iter().flat_map(|kind| [(kind, false), (kind, true)]);
        let builds = rooms.flat_map(|room| {
            let build = move |((memory_modes, without_h), without_sstc)| {
                [(false, false), (false, true), (true, false), (true, true)].map(|(more_uarts, watchdogs)| {
                    Needs { room, memory_modes, without_h, without_sstc, more_uarts, watchdogs }
                })
            };
            kinds.clone().flat_map(build)
        });
        builds.fold(self, |files, needs| {
            files.reads("the hypervisor's ELF file", Kernel::path(path, needs).ok().as_deref())
        })
    }

    /// The command keeps the files of a run in this folder, if there is one.
    pub fn keeps(self, folder: Option<&Path>) -> Self {
        let Some(folder) = folder else { return self };
        run::KEPT.iter().fold(self, |files, name| files.writes("--record-dir", Some(&folder.join(name))))
    }

    /// An error if a file that is read would be written, or one would be written twice.
    pub fn check(&self) -> Result<()> {
        let help = "give each output a file of its own";
        for (index, one) in self.written.iter().enumerate() {
            let Some(place) = Place::of(&one.path) else { continue };
            let is_same = |other: &&Named| Place::of(&other.path).as_ref() == Some(&place);
            let (path, option) = (one.path.display(), &one.what);
            if let Some(read) = self.read.iter().find(is_same) {
                return Err(miette!(
                    help = help,
                    "{path} can't be written ({option}): it is {}, which is read",
                    read.what
                ));
            }
            if let Some(first) = self.written[..index].iter().find(is_same) {
                return Err(miette!(
                    help = help,
                    "{path} can't be written ({option}): {} writes the same file",
                    first.what
                ));
            }
        }
        Ok(())
    }
}

/// By what a file is known, however it is named.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// One that is there.
    There { device: u64, inode: u64 },
    /// One that will be made.
    New(PathBuf),
}

impl Place {
    /// `None` for pipes, devices and folders: nothing is lost in them, whoever else uses them.
    fn of(path: &Path) -> Option<Self> {
        match fs::metadata(path) {
            Ok(about) if about.is_file() => Some(Self::There { device: about.dev(), inode: about.ino() }),
            Ok(_) => None,
            Err(error) => match output::target_of(path) {
                // What it leads to will be made, not the link.
                Some(target) if error.kind() == ErrorKind::NotFound => Self::of(&target),
                _ => new(path).map(Self::New),
            },
        }
    }
}

/// The path of a file that isn't there, without links: the folders that are there as the system knows them, and behind them what will be made.
fn new(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let folders = path.ancestors().skip(1);
    let (there, found) =
        folders.map(|folder| (folder, folder.canonicalize())).find(|(_, found)| found.is_ok())?;
    Some(found.ok()?.join(path.strip_prefix(there).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn told(files: &Apart) -> String {
        files.check().map_or_else(|error| error.to_string(), |()| "fine".into())
    }

    #[test]
    fn a_file_is_known_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("below")).unwrap();
        fs::write(path("old"), "").unwrap();
        fs::hard_link(path("old"), path("hard")).unwrap();
        symlink("old", path("soft")).unwrap();
        symlink("below", path("link")).unwrap();
        symlink("below/../new", path("to-new")).unwrap();
        symlink("circle", path("circle")).unwrap();
        let two = |one: &str, other: &str| {
            let (one, other) = (path(one), path(other));
            [
                told(&Apart::default().reads("an image", Some(&one)).writes("--json", Some(&other))),
                told(&Apart::default().writes("--trace", Some(&one)).writes("--json", Some(&other))),
            ]
        };
        for (one, other) in [
            ("old", "old"),
            ("old", "below/../old"),
            ("old", "hard"),
            ("old", "soft"),
            ("new", "new"),
            ("new", "to-new"),
            ("circle", "circle"),
            ("below/new", "link/new"),
            ("below/new", "below/../below/new"),
            ("no/folder/new", "no/folder/new"),
        ] {
            let [read, written] = two(one, other);
            assert!(read.ends_with("can't be written (--json): it is an image, which is read"), "{read}");
            assert!(
                written.ends_with("can't be written (--json): --trace writes the same file"),
                "{written}"
            );
        }
        for (one, other) in [("old", "new"), ("new", "below/new"), ("no/folder/new", "no/folder/newer")] {
            assert_eq!(two(one, other), ["fine", "fine"], "{one} {other}");
        }
    }

    #[test]
    fn pipes_and_devices_may_be_named_twice() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&pipe, Path::new("/dev/null"), folder.path()] {
            let files = Apart::default().reads("an image", Some(path));
            assert_eq!(told(&files.writes("--trace", Some(path)).writes("--json", Some(path))), "fine");
        }
    }
}
