//! Opens what a manifest names: regular files only, and never more of them than is expected.
//!
//! A pipe or a device in the place of a file would hold a check up for ever, or never end. So nothing is read before
//! it is known to be a regular file, and opening does not wait for a pipe's other end.
use rustix::fs::OFlags;
use std::{
    fs::{FileType, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
};

/// A regular file that is open for reading, and its length at that moment.
#[derive(Debug)]
pub struct File {
    file: std::fs::File,
    /// Length in bytes.
    pub len: u64,
}

impl File {
    /// Opens a regular file. The error of anything else says what it is instead.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let wait_for_nobody = flags.bits() as i32;
        let file = match OpenOptions::new().read(true).custom_flags(wait_for_nobody).open(path) {
            Ok(file) => file,
            // Opening a socket fails; what it is says more than "no such device or address".
            Err(error) => {
                return Err(std::fs::metadata(path).map_or(error, |about| not_a_file(about.file_type())));
            }
        };
        let about = file.metadata()?;
        if about.is_file() { Ok(Self { file, len: about.len() }) } else { Err(not_a_file(about.file_type())) }
    }

    /// All bytes, if there are as many as the file had when it was opened, and not more than `most`.
    pub fn read_all(&self, most: u64) -> io::Result<Vec<u8>> {
        if self.len > most {
            return Err(io::Error::other(format!(
                "it has {} bytes, more than the {most} that it may have",
                self.len
            )));
        }
        let bytes = self.read_start(self.len + 1)?;
        match bytes.len() as u64 == self.len {
            true => Ok(bytes),
            false => {
                Err(io::Error::other(format!("it doesn't hold the {} bytes that the system says", self.len)))
            }
        }
    }

    /// The first `most` bytes, or fewer if there are no more.
    pub fn read_start(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&self.file).take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Reads a regular file of at most `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    File::open(path)?.read_all(most)
}

/// Writes a path as text. JSON has no way to write bytes that are no UTF-8; they are shown as in messages.
pub fn serialize_path<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

fn not_a_file(kind: FileType) -> io::Error {
    let found = match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_block_device() || kind.is_char_device() => "a device",
        () if kind.is_file() => return io::Error::from(io::ErrorKind::PermissionDenied),
        () => "something else",
    };
    io::Error::other(format!("it is {found}, not a file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::net::UnixListener, process::Command, sync::mpsc, thread, time::Duration};

    /// What opening and reading `path` says; it must say it soon.
    fn told(path: &Path) -> String {
        let (sender, receiver) = mpsc::channel();
        let path = path.to_owned();
        thread::spawn(move || sender.send(read(&path, 1 << 20).map_err(|error| error.to_string())));
        receiver.recv_timeout(Duration::from_secs(20)).expect("nothing waits").expect_err("no file")
    }

    #[test]
    fn only_files_are_read_and_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, socket) = (folder.path().join("pipe"), folder.path().join("socket"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(told(&pipe), "it is a pipe, not a file");
        assert_eq!(told(&socket), "it is a socket, not a file");
        assert_eq!(told(folder.path()), "it is a folder, not a file");
        assert_eq!(told(Path::new("/dev/zero")), "it is a device, not a file");
        assert_eq!(told(Path::new("/dev/ptmx")), "it is a device, not a file");
        // A regular file by its type, but one that has no length and any number of bytes.
        assert_eq!(told(Path::new("/proc/cpuinfo")), "it doesn't hold the 0 bytes that the system says");
        assert!(told(&folder.path().join("none")).contains("No such file"));
    }

    #[test]
    fn no_more_is_read_than_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("huge");
        std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read(&path, 1 << 20).unwrap_err().to_string();
        assert_eq!(error, "it has 1099511627776 bytes, more than the 1048576 that it may have");
        assert_eq!(File::open(&path).unwrap().read_start(64).unwrap(), [0; 64]);
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(read(&path, 3).unwrap(), b"abc");
    }
}
