//! The tool itself, as a user starts it: on a terminal, with somebody who reads and types.
use crate::{System, TIME_LIMIT, checkout};
use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Once,
        mpsc::{Receiver, RecvError, RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// Silence after which a key is typed again.
const BETWEEN_KEYS: Duration = Duration::from_secs(1);

/// `ainori run` on a terminal of its own.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keys: ChildStdin,
    output: Receiver<Vec<u8>>,
    seen: String,
    _folder: TempDir,
    /// How much of `seen` has been waited for already.
    position: usize,
}

impl Terminal {
    /// Starts a system. The tool ends the run itself at [`TIME_LIMIT`].
    pub fn run(system: &System) -> Self {
        build_tool();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let manifest = folder.path().join("system.toml");
        std::fs::write(&manifest, system.to_string()).expect("the temporary folder can be written");
        let seconds = TIME_LIMIT.as_secs();
        // script(1) makes the terminal; its own record goes nowhere.
        let tool = checkout("ainori");
        let command = format!("'{}' run --timeout {seconds} '{}'", tool.display(), manifest.display());
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--echo", "never", "--command", &command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script (Debian's bsdutils) can be started");
        let keys = child.stdin.take().expect("piped");
        let mut stdout = child.stdout.take().expect("piped");
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keys, output, seen: String::new(), position: 0, _folder: folder }
    }

    /// Waits until `text` appears, behind what was waited for before; at most until the tool ends.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen[self.position..].find(text) {
                self.position += at + text.len();
                return;
            }
            match self.output.recv() {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvError) => panic!("{text:?} never appeared:\n{}", self.seen),
            }
        }
    }

    /// Types.
    pub fn type_in(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).expect("the terminal takes keys");
    }

    /// Types a key again and again until `text` appears, behind what was waited for before.
    ///
    /// For a guest that can't say when it begins to listen.
    #[track_caller]
    pub fn type_until(&mut self, key: &str, text: &str) {
        while !self.seen[self.position..].contains(text) {
            match self.output.recv_timeout(BETWEEN_KEYS) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Timeout) => self.type_in(key),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.wait_for(text);
    }

    /// Waits for the tool's end; gives all that the terminal showed.
    pub fn end(mut self) -> (ExitStatus, String) {
        while let Ok(bytes) = self.output.recv() {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        let status = self.child.wait().expect("nobody else waits for it");
        (status, std::mem::take(&mut self.seen))
    }
}

/// Builds the tool if that has not been done, so that nobody waits for it on the terminal.
pub fn build_tool() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let status =
            Command::new(checkout("tools/build-cli")).status().expect("tools/build-cli can be started");
        assert!(status.success(), "tools/build-cli failed: {status}");
    });
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Only if a test failed: its terminal goes away, and the tool with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
