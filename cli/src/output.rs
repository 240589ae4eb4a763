//! Files that are written at the end, and prepared at the beginning: what can't be written is told before a long run, not after it.
use miette::{Result, miette};
use rustix::{fs::OFlags, io::Errno};
use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Permissions of a new file before the umask.
const NEW: u32 = 0o666;

/// A file that can be written, as far as anybody can know before it is.
///
/// A file is replaced as a whole: whoever reads it meanwhile, or after this program was killed, finds the old one or the new.
#[derive(Debug)]
pub struct Output {
    /// The name that the user gave.
    name: PathBuf,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// A new file takes this name.
    Replace(PathBuf),
    /// What is there is written to: a pipe, a device, or a file in a folder where nothing can be made.
    Into(File),
}

impl Output {
    /// Looks whether `path` can be written, and changes nothing yet.
    ///
    /// `-` is no file's name here: who writes it means standard output, and that has the tables.
    pub fn prepare(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Err(miette!(
                help = "name a file; /dev/stdout is standard output, where the tables go as well, and ./- a file of that name",
                "- can't be written: it doesn't stand for standard output here"
            ));
        }
        let way = way(path).map_err(|error| cannot(path, &error))?;
        Ok(Self { name: path.to_owned(), way })
    }

    /// The name that the user gave.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Writes the file.
    pub fn write(self, bytes: &[u8]) -> Result<()> {
        let written = match &self.way {
            Way::Into(file) => write_into(file, bytes),
            Way::Replace(path) => replace(path, bytes),
        };
        written.map_err(|error| cannot(&self.name, &error))
    }
}

/// Writes a file that nobody was promised before.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    Output::prepare(path)?.write(bytes)
}

fn cannot(path: &Path, error: &io::Error) -> miette::Report {
    miette!("{} can't be written: {error}", path.display())
}

fn way(path: &Path) -> io::Result<Way> {
    let wait_for_nobody = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = match OpenOptions::new().write(true).custom_flags(wait_for_nobody).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A link that leads to nothing stays one, too. It is in no circle: that would be another error.
            if let Some(target) = target_of(path) {
                return way(&target);
            }
            room_for(path)?;
            return Ok(Way::Replace(path.to_owned()));
        }
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            return Err(io::Error::other("it is a pipe or a socket that nobody reads"));
        }
        Err(error) => return Err(error),
    };
    if file.metadata()?.is_file() {
        // A link stays one: what it leads to is replaced. An open file may have lost its name.
        if let Ok(target) = path.canonicalize()
            && room_for(&target).is_ok()
        {
            return Ok(Way::Replace(target));
        }
    }
    // From now on a reader that is slow is waited for.
    rustix::fs::fcntl_setfl(&file, rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(Way::Into(file))
}

/// Can files be made beside this one? The one that is made for the trial has no name, so it is gone with this program.
fn room_for(path: &Path) -> io::Result<()> {
    if path.file_name().is_none() {
        return Err(io::Error::other("it is not the name of a file"));
    }
    tempfile::tempfile_in(folder(path)).map(drop)
}

/// Where a link leads, whether anything is there or not; `None` if this is no link.
pub fn target_of(path: &Path) -> Option<PathBuf> {
    fs::read_link(path).ok().map(|target| folder(path).join(target))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn write_into(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(bytes)
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = tempfile::Builder::new()
        .prefix(".ainori-")
        .permissions(Permissions::from_mode(NEW))
        .tempfile_in(folder(path))?;
    if let Ok(old) = fs::metadata(path) {
        new.as_file().set_permissions(old.permissions())?;
    }
    new.write_all(bytes)?;
    new.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Read, os::unix::fs::symlink, process::Command, thread};

    fn told(path: &Path) -> String {
        Output::prepare(path).expect_err("it can't be written").to_string()
    }

    #[test]
    fn what_cannot_be_written_is_told_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        assert!(
            told(&path("pipe"))
                .ends_with("pipe can't be written: it is a pipe or a socket that nobody reads")
        );
        assert!(told(folder.path()).contains("can't be written: Is a directory"));
        assert!(told(&path("no/such/folder")).contains("folder can't be written: No such file or directory"));
        assert!(told(&path("..")).contains("can't be written"));
        assert!(told(Path::new("-")).contains("doesn't stand for standard output"));
        fs::write(path("file"), "old").unwrap();
        assert!(told(&path("file/below")).contains("can't be written: Not a directory"));
        assert_eq!(fs::read(path("file")).unwrap(), b"old", "nothing has changed");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing was made");
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "old").unwrap();
        fs::set_permissions(path("file"), Permissions::from_mode(0o640)).unwrap();
        symlink("file", path("link")).unwrap();
        let mut reader = File::open(path("file")).unwrap();
        let output = Output::prepare(&path("link")).unwrap();
        assert_eq!(fs::read(path("file")).unwrap(), b"old");
        output.write(b"new").unwrap();
        assert_eq!(fs::read(path("file")).unwrap(), b"new");
        assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
        assert_eq!(fs::metadata(path("file")).unwrap().permissions().mode() & 0o777, 0o640);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "old", "whoever had it open still has all of it");

        symlink("link-to-nothing", path("link-to-it")).unwrap();
        symlink("nothing", path("link-to-nothing")).unwrap();
        Output::prepare(&path("link-to-it")).unwrap().write(b"made").unwrap();
        assert_eq!(fs::read(path("nothing")).unwrap(), b"made");
        for link in ["link-to-it", "link-to-nothing"] {
            assert!(fs::symlink_metadata(path(link)).unwrap().is_symlink(), "{link}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
    }

    #[test]
    fn pipes_and_devices_are_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap().len()
        });
        let output = loop {
            // Until the reader is there.
            if let Ok(output) = Output::prepare(&pipe) {
                break output;
            }
            thread::yield_now();
        };
        // More than a pipe holds: the writer waits.
        output.write(&vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(reader.join().unwrap(), 1 << 20);
        write(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let error = write(Path::new("/dev/full"), b"x").unwrap_err().to_string();
        assert_eq!(error, "/dev/full can't be written: No space left on device (os error 28)");
    }
}
