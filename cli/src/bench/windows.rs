//! Instructions by privilege mode and traps by cause, in windows that a guest's program marks itself, by the QEMU plugin `windows.so`.
use crate::{
    checkout,
    run::files::{joined, option},
};
use miette::{Result, miette};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

/// A window that is counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Its name in the run's document.
    pub name: String,
    /// Its number, in the instructions that mark it: 1 to [`MOST`].
    pub number: u16,
}

/// The greatest number: that of a 12-bit immediate, of which a negative one is the end.
pub const MOST: u16 = 1023;

/// The plugin's option for the windows, with its own result in `out`.
pub fn plugin(plugin: &Path, windows: &[Window], out: &Path) -> OsString {
    let mut text = option("file", plugin);
    for Window { name, number } in windows {
        text.push(format!(",window={name}:{number}"));
    }
    joined(&[&text, OsStr::new(","), &option("out", out)])
}

/// The name of a window that a plugin has counted; `None` if it has none. An error: it was never begun and ended.
pub fn completed(window: &Value) -> Result<Option<String>> {
    let Some(name) = window["name"].as_str() else { return Ok(None) };
    if window["completed"].as_u64().is_none_or(|times| times == 0) {
        return Err(miette!("no program of the guest begins and ends the window {name}"));
    }
    Ok(Some(name.to_owned()))
}

/// What the plugin counted, by the names of the windows. Beside that each has `guest`, instructions in VS- and VU-mode; and of the page faults that came to S-mode
/// `filled`, those after which the same instruction was executed next, and `handed`, all others. An error: one was never begun and ended.
pub fn read(out: &Path) -> Result<Value> {
    let damaged = || miette!("the plugin windows.so wrote something unexpected to {}", out.display());
    let mut counts: Value = serde_json::from_slice(&checkout::read(out)?).map_err(|_| damaged())?;
    let mut windows = Map::new();
    for window in counts["windows"].as_array_mut().ok_or_else(damaged)? {
        let name = completed(window)?.ok_or_else(damaged)?;
        let sum = |of: &str, names: &[&str]| -> u64 {
            names.iter().filter_map(|name| window[of][*name].as_u64()).sum()
        };
        let guest = sum("modes", &["VS", "VU"]);
        let faults = ["fetch-page", "load-page", "store-page"];
        let (filled, all) = (sum("again", &faults), sum("traps", &faults));
        let mut window = window.take();
        window["guest"] = guest.into();
        window["filled"] = filled.into();
        window["handed"] = all.saturating_sub(filled).into();
        windows.insert(name, window);
    }
    Ok(Value::Object(windows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Value> {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("counts");
        std::fs::write(&out, text).unwrap();
        read(&out)
    }

    #[test]
    fn counts_are_known_by_name() {
        let windows = read_text(
            r#"{"windows":[{"name":"pipe","completed":1,"modes":{"VS":7}},{"name":"fork","completed":2}]}"#,
        )
        .unwrap();
        assert_eq!(windows["pipe"]["modes"]["VS"], 7);
        assert_eq!(windows["fork"]["completed"], 2);
        let windows = read_text(
            r#"{"windows":[{"name":"a","completed":1,"modes":{"S":9,"VS":7,"VU":2},
                "traps":{"load-page":5,"store-page":3,"satp":4},"again":{"load-page":4,"satp":4}}]}"#,
        )
        .unwrap();
        let of = |name: &str| windows["a"][name].as_u64().unwrap();
        assert_eq!((of("guest"), of("filled"), of("handed")), (9, 4, 4));
    }

    #[test]
    fn a_window_that_no_program_has_is_an_error() {
        let error = read_text(r#"{"windows":[{"name":"pipe","completed":0}]}"#).unwrap_err();
        assert!(error.to_string().ends_with("the window pipe"), "{error}");
        assert!(read_text("{}").is_err());
    }

    #[test]
    fn the_plugin_is_told_names_and_numbers() {
        let windows = [Window { name: "pipe".into(), number: 2 }];
        let option = plugin(Path::new("/a,b.so"), &windows, Path::new("/out"));
        assert_eq!(option.to_str().unwrap(), "file=/a,,b.so,window=pipe:2,out=/out");
    }
}
