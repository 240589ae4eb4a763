//! Exact instruction counts beside a run, by the QEMU plugin `paths.so`.
//!
//! An address in an experiment is hexadecimal (`p` before it: physical), or the place of a program: `FILE` means the entry of
//! an ELF file, `FILE#SYMBOL` a symbol of it. `ARCHIVE!FILE` is a file in an initramfs.
use crate::{
    checkout,
    run::files::{joined, option},
};
use cpio::newc;
use elf::{ElfBytes, endian::LittleEndian};
use flate2::read::GzDecoder;
use miette::{Result, WrapErr, miette};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::{
    ffi::{OsStr, OsString},
    fmt,
    io::{self, Read},
    path::Path,
};

/// An address as the plugin takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Address(String);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Finds out an address. Files are relative to `folder`.
pub fn resolve(text: &str, folder: &Path) -> Result<Address> {
    let digits = text.strip_prefix('p').unwrap_or(text);
    if u64::from_str_radix(digits, 16).is_ok() {
        return Ok(Address(text.to_owned()));
    }
    let (file, symbol) = match text.split_once('#') {
        Some((file, symbol)) => (file, Some(symbol)),
        None => (text, None),
    };
    let bytes = match file.split_once('!') {
        Some((archive, name)) => {
            let path = folder.join(archive);
            in_initramfs(&checkout::read(&path)?, name).wrap_err_with(|| path.display().to_string())?
        }
        None => checkout::read(&folder.join(file))?,
    };
    let address = in_program(&bytes, symbol).wrap_err_with(|| file.to_owned())?;
    Ok(Address(format!("{address:x}")))
}

fn in_program(bytes: &[u8], symbol: Option<&str>) -> Result<u64> {
    let damaged = |error: elf::ParseError| miette!("damaged ELF file: {error}");
    let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).map_err(damaged)?;
    let Some(symbol) = symbol else { return Ok(file.ehdr.e_entry) };
    let (symbols, names) =
        file.symbol_table().map_err(damaged)?.ok_or_else(|| miette!("the ELF file has no symbols"))?;
    let found =
        symbols.iter().find(|entry| names.get(entry.st_name as usize).is_ok_and(|name| name == symbol));
    found.map(|entry| entry.st_value).ok_or_else(|| miette!("the ELF file has no symbol {symbol}"))
}

/// A file of an initramfs: cpio in the format `newc` (`initramfs buffer format` in Linux's documentation), with gzip.
fn in_initramfs(archive: &[u8], name: &str) -> Result<Vec<u8>> {
    let damaged = |error: io::Error| miette!("it can't be unpacked: {error}");
    let mut rest = GzDecoder::new(archive);
    loop {
        let mut file = newc::Reader::new(rest).map_err(damaged)?;
        if file.entry().is_trailer() {
            return Err(miette!("there is no file {name} in it"));
        }
        if file.entry().name() == name {
            let mut contents = Vec::new();
            file.read_to_end(&mut contents).map_err(damaged)?;
            return Ok(contents);
        }
        rest = file.finish().map_err(damaged)?;
    }
}

/// The plugin's option for the paths, with its own result in `out`.
pub fn plugin(plugin: &Path, marks: &[(String, Address, Address)], out: &Path) -> OsString {
    let mut text = option("file", plugin);
    for (name, from, to) in marks {
        text.push(format!(",mark={name}:{from}:{to}"));
    }
    joined(&[&text, OsStr::new(","), &option("out", out)])
}

/// What the plugin counted, by the names of the paths, and the sum over all instructions.
pub fn read(out: &Path) -> Result<(Value, Value)> {
    let damaged = || miette!("the plugin paths.so wrote something unexpected to {}", out.display());
    let mut counts: Value = serde_json::from_slice(&checkout::read(out)?).map_err(|_| damaged())?;
    let mut paths = Map::new();
    for path in counts["paths"].as_array_mut().ok_or_else(damaged)? {
        let name = path["name"].as_str().ok_or_else(damaged)?.to_owned();
        paths.insert(name, path.take());
    }
    Ok((Value::Object(paths), json!(counts["instructions"])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for (name, contents) in files {
            let mut file = newc::Builder::new(name).write(&mut gzip, contents.len() as u32);
            file.write_all(contents).unwrap();
            file.finish().unwrap();
        }
        newc::trailer(&mut gzip).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn files_of_an_initramfs_are_found() {
        let archive = archive(&[("init", b"#!"), ("bin/busybox", b"\x7fELF!")]);
        assert_eq!(in_initramfs(&archive, "bin/busybox").unwrap(), b"\x7fELF!");
        let error = in_initramfs(&archive, "bin/sh").unwrap_err();
        assert_eq!(error.to_string(), "there is no file bin/sh in it");
        assert!(in_initramfs(b"not gzip", "init").is_err());
        let mut cut = Vec::new();
        GzDecoder::new(&archive[..]).take(150).read_to_end(&mut cut).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&cut).unwrap();
        let error = in_initramfs(&gzip.finish().unwrap(), "bin/busybox").unwrap_err();
        assert!(error.to_string().starts_with("it can't be unpacked"), "{error}");
    }

    #[test]
    fn hexadecimal_addresses_are_taken_as_they_are() {
        assert_eq!(resolve("p80200000", Path::new("/")).unwrap().to_string(), "p80200000");
        assert!(resolve("no-such-file", Path::new("/")).is_err());
    }

    #[test]
    fn counts_are_known_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("counts");
        std::fs::write(&out, r#"{"paths":[{"name":"boot","count":1,"min":7}],"instructions":9}"#).unwrap();
        let (paths, instructions) = read(&out).unwrap();
        assert_eq!(paths["boot"]["min"], 7);
        assert_eq!(instructions, 9);
        let option =
            plugin(Path::new("/a,b.so"), &[("boot".into(), Address("1".into()), Address("2".into()))], &out);
        let option = option.to_str().unwrap();
        assert!(option.starts_with("file=/a,,b.so,mark=boot:1:2,out="), "{option}");
    }
}
