//! What translation would cost, in windows that a guest's program marks itself: PTEs that walks read, by the QEMU plugin `tlb.so`.
use super::windows::{Window, completed};
use crate::{
    checkout,
    run::files::{joined, option},
};
use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

/// Models of TLBs that a case's runs are fed to: each set of sizes with each way to translate a guest's addresses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tlb {
    /// Sets of sizes, as the plugin's option `tlb` has them: `NAME[:KEY=ENTRIES[/WAYS]]...`.
    pub sets: Vec<String>,
    /// Ways to translate, as its option `model` has them.
    pub models: Vec<String>,
    /// The window before whose first begin nothing is modelled, by its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<u16>,
}

impl Tlb {
    /// What is wrong with it, that the plugin wouldn't see: words that would be several options.
    pub fn check(&self) -> Result<()> {
        let is_option = |text: &String| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.+:=/".contains(c))
        };
        if self.sets.is_empty() || self.models.is_empty() {
            return Err(miette!("models of TLBs need one of `sets` and one of `models` at least"));
        }
        match self.sets.iter().chain(&self.models).find(|text| !is_option(text)) {
            Some(wrong) => Err(miette!("{wrong:?} is no set of sizes, and no model of TLBs")),
            None => Ok(()),
        }
    }
}

/// The plugin's option for models in windows, with its own result in `out`.
pub fn plugin(plugin: &Path, tlb: &Tlb, windows: &[Window], out: &Path) -> OsString {
    let mut text = option("file", plugin);
    for set in &tlb.sets {
        text.push(format!(",tlb={set}"));
    }
    for model in &tlb.models {
        text.push(format!(",model={model}"));
    }
    for Window { name, number } in windows {
        text.push(format!(",window={name}:{number}"));
    }
    if let Some(number) = tlb.since {
        text.push(format!(",since={number}"));
    }
    joined(&[&text, OsStr::new(","), &option("out", out)])
}

/// One window of the plugin's; `None` if it isn't as the plugin writes them.
fn window(counted: &Value) -> Option<Value> {
    let modes = counted["modes"].as_object()?;
    let instructions: Option<u64> = modes.values().map(Value::as_u64).sum();
    let mut window = Map::new();
    window.insert("instructions".into(), instructions?.into());
    window.insert("modes".into(), counted["modes"].clone());
    for model in counted["models"].as_array()? {
        let set = window.entry(model["tlb"].as_str()?).or_insert_with(|| json!({}));
        set[model["model"].as_str()?] = model.clone();
    }
    Some(window.into())
}

/// What the plugin counted, by the names of the windows: `instructions` of all modes, `modes`, and by the names of a set and a model what that one has counted. An error: a window
/// was never begun and ended, or the plugin's walks came to other places than QEMU's.
pub fn read(out: &Path) -> Result<Value> {
    let damaged = || miette!("the plugin tlb.so wrote something unexpected to {}", out.display());
    let counts: Value = serde_json::from_slice(&checkout::read(out)?).map_err(|_| damaged())?;
    if counts["wrong"].as_u64().ok_or_else(damaged)? != 0 {
        return Err(miette!(
            "walks of the plugin tlb.so ended elsewhere than QEMU's accesses went: {}",
            counts["wrong"]
        ));
    }
    let mut windows = Map::new();
    for counted in counts["windows"].as_array().ok_or_else(damaged)? {
        let name = completed(counted)?.ok_or_else(damaged)?;
        windows.insert(name, window(counted).ok_or_else(damaged)?);
    }
    windows.insert("unresolved".into(), counts["unresolved"].clone());
    Ok(Value::Object(windows))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: &str = r#"{"unresolved":3,"wrong":0,"windows":[{"name":"pipe","completed":1,"modes":{"M":0,"S":2,"U":0,"VS":7,"VU":1},"models":[
        {"tlb":"p550","model":"shadow","reads":12},{"tlb":"p550","model":"two-stage-4k","reads":60}]}]}"#;

    fn read_text(text: &str) -> Result<Value> {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("counts");
        std::fs::write(&out, text).unwrap();
        read(&out)
    }

    #[test]
    fn counts_are_known_by_window_set_and_model() {
        let counts = read_text(COUNTS).unwrap();
        assert_eq!(counts["pipe"]["instructions"], 10);
        assert_eq!(counts["pipe"]["modes"]["VS"], 7);
        assert_eq!(counts["pipe"]["p550"]["two-stage-4k"]["reads"], 60);
        assert_eq!(counts["pipe"]["p550"]["shadow"]["reads"], 12);
        assert_eq!(counts["unresolved"], 3);
    }

    #[test]
    fn counts_that_are_wrong_or_not_there_are_an_error() {
        let error = read_text(&COUNTS.replace("\"wrong\":0", "\"wrong\":2")).unwrap_err();
        assert!(error.to_string().ends_with("went: 2"), "{error}");
        let error = read_text(&COUNTS.replace("\"completed\":1", "\"completed\":0")).unwrap_err();
        assert!(error.to_string().ends_with("the window pipe"), "{error}");
        assert!(read_text(&COUNTS.replace("models", "other")).is_err());
        assert!(read_text("{}").is_err());
    }

    #[test]
    fn the_plugin_is_told_sets_models_and_windows() {
        let tlb = Tlb { sets: vec!["p550:l2=512/4".into()], models: vec!["as-is".into()], since: Some(2) };
        let windows = [Window { name: "chase".into(), number: 1 }];
        let option = plugin(Path::new("/a,b.so"), &tlb, &windows, Path::new("/out"));
        let told = "file=/a,,b.so,tlb=p550:l2=512/4,model=as-is,window=chase:1,since=2,out=/out";
        assert_eq!(option.to_str().unwrap(), told);
        tlb.check().unwrap();
        for wrong in [
            Tlb { sets: vec![], ..tlb.clone() },
            Tlb { models: vec![], ..tlb.clone() },
            Tlb { sets: vec!["p550,out=/etc".into()], ..tlb.clone() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
