//! `ainori bench merge`: finished runs of several machines, brought together by their keys.
use super::{args::Merge, shard, store::Store, times::Times};
use crate::checkout;
use anstream::{eprintln, println};
use miette::{Result, miette};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Digits of a key.
const KEY: usize = 32;

/// A finished run that was found, and where.
struct Found {
    file: PathBuf,
    document: Value,
}

/// Does what the command line asks for. Nothing is written if anything is wrong.
pub fn command(arguments: &Merge, root: &Path) -> Result<u8> {
    let into = arguments.into.clone().unwrap_or_else(|| root.join(".cache/bench"));
    let mut all = BTreeMap::new();
    if into.is_dir() {
        collect(&into, &mut all)?;
    }
    let before = all.len();
    for folder in &arguments.folders {
        if collect(folder, &mut all)? == 0 {
            return Err(miette!(
                help = "give the folders that hold the runs themselves: what --store named on each machine, or .cache/bench of its checkout",
                "there are no finished runs in {}",
                folder.display()
            ));
        }
    }
    let store = Store::open(into.clone())?;
    let mut new = 0;
    for (key, found) in &all {
        if found.file.parent() != Some(&into) {
            store.put(key, &found.document)?;
            new += 1;
        }
    }
    for folder in &arguments.folders {
        Times::of(&into).merge(&Times::of(folder))?;
        for file in shard::merge(&into, folder)? {
            eprintln!(
                "{} cuts the same runs into other parts than another folder does: the machines knew different times. Runs that no part did \
                 are missing: `ainori bench` does them, or with --no-run names them.",
                file.display()
            );
        }
    }
    println!("{}: {} finished runs, {new} of them new ({before} before).", into.display(), all.len());
    Ok(0)
}

/// Adds the finished runs of a folder. Returns how many it has. Two results of one key that differ are an error: one of them is wrong.
fn collect(folder: &Path, all: &mut BTreeMap<String, Found>) -> Result<usize> {
    let entries =
        fs::read_dir(folder).map_err(|error| miette!("{} can't be read: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(|error| miette!("{} can't be read: {error}", folder.display()))?;
    files.sort();
    let mut count = 0;
    for file in files {
        let Some(key) = key_of(&file) else { continue };
        let document: Value = serde_json::from_slice(&checkout::read(&file)?).map_err(|error| {
            miette!(
                help = "it is damaged: copy it once more, or remove it, and its run is done again",
                "{} is no finished run: {error}",
                file.display()
            )
        })?;
        count += 1;
        let Some(other) = all.get(&key) else {
            all.insert(key, Found { file, document });
            continue;
        };
        if other.document != document {
            return Err(miette!(
                help = "the same key must give the same bytes: find out which machine is wrong, remove its file, and do the run again. \
                        Nothing was written",
                "two results of the run {key} contradict each other, first at {}: {} and {}",
                difference(&other.document, &document).unwrap_or_else(|| "/".into()),
                other.file.display(),
                file.display()
            ));
        }
    }
    Ok(count)
}

/// The key that a file's name is; `None` if it is no finished run's.
fn key_of(file: &Path) -> Option<String> {
    let stem = file.file_stem()?.to_str()?;
    let is_key = stem.len() == KEY && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_key && file.extension().is_some_and(|extension| extension == "json")).then(|| stem.to_owned())
}

/// JSON pointer to the first difference of two documents; `None` if there is none.
fn difference(a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let inside =
                    difference(a.get(name).unwrap_or(&Value::Null), b.get(name).unwrap_or(&Value::Null))?;
                Some(format!("/{}{inside}", name.replace('~', "~0").replace('/', "~1")))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.into_iter().find_map(|(index, (a, b))| Some(format!("/{index}{}", difference(a, b)?)))
        }
        _ => (a != b).then(String::new),
    }
}

#[cfg(test)]
mod tests;
