//! Fetching Debian's packages, from a mirror that has what we give it: what guests/packages.lock names comes whatever state the
//! mirror's lists are in; and what can't be had is told, and leaves nothing behind that looks whole.
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ainori_tests::checkout;

const NAME: &str = "thing_1.0_riscv64.deb";
const PATH: &str = "/debian/pool/thing_1.0_riscv64.deb";

/// A mirror on a port of its own, for as long as the test runs: each file by its path, and 404 for all others.
fn mirror(files: HashMap<&'static str, &'static [u8]>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().for_each(|stream| answer(stream.unwrap(), &files)));
    format!("http://{address}/debian")
}

/// Answers the requests of one connection. apt keeps it open, and has gone when a line is empty or can't be read.
fn answer(stream: TcpStream, files: &HashMap<&'static str, &'static [u8]>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let mut stream = stream;
    while let Some(request) = lines.next() {
        lines.by_ref().take_while(|header| !header.is_empty()).for_each(drop);
        let path = request.split(' ').nth(1).unwrap_or_default();
        let (status, body) = files.get(path).map_or(("404 Not Found", &b""[..]), |body| ("200 OK", body));
        let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(body);
    }
}

fn sha256(bytes: &[u8]) -> String {
    let mut child = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().into()
}

/// Runs `fetch_packages trixie set thing` in a folder of its own, with a lock that says what `thing` is.
fn fetch(folder: &Path, mirror: &str, lock: &str) -> Output {
    std::fs::write(folder.join("packages.lock"), lock).unwrap();
    let script = r#". "$0" && cache=$1 packages_home=$1/home packages_lock=$1/packages.lock && fetch_packages trixie set thing"#;
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script]).arg(checkout("tools/lib/packages.sh")).arg(folder);
    command.env("AINORI_DEBIAN_MIRROR", mirror).env("no_proxy", "127.0.0.1").output().unwrap()
}

#[test]
fn what_the_lock_names_comes_though_the_lists_are_broken_and_is_fetched_once() {
    let folder = tempfile::tempdir().unwrap();
    let broken: &[u8] = b"not a signed list";
    let url =
        mirror(HashMap::from([(PATH, &b"the package"[..]), ("/debian/dists/trixie/InRelease", broken)]));
    let lock =
        format!("# words\nother 00 pool/other_1_riscv64.deb\nset {} pool/{NAME}\n", sha256(b"the package"));
    let output = fetch(folder.path(), &url, &lock);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read(folder.path().join("home/set").join(NAME)).unwrap(), b"the package");

    let again = fetch(folder.path(), "http://127.0.0.1:1/debian", &lock);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}

#[test]
fn other_bytes_than_the_locks_are_refused() {
    for files in [HashMap::from([(PATH, &b"something else"[..])]), HashMap::new()] {
        let folder = tempfile::tempdir().unwrap();
        let lock = format!("set {} pool/{NAME}\n", sha256(b"the package"));
        let output = fetch(folder.path(), &mirror(files), &lock);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(
            told.contains("error: the package lists of Debian's trixie for riscv64 can't be read from"),
            "{told}"
        );
        assert!(!folder.path().join("home/set").exists());
    }
}

#[test]
fn a_set_that_the_lock_does_not_name_whole_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = fetch(folder.path(), "http://127.0.0.1:1/debian", "other 00 pool/thing_1.0_riscv64.deb\n");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("doesn't say which thing belongs to set"), "{told}");
}
