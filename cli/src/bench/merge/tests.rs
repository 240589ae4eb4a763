use super::*;
use serde_json::json;

fn key(n: u32) -> String {
    format!("{n:032x}")
}

/// A folder with finished runs.
fn store(folder: &Path, name: &str, runs: &[(u32, Value)]) -> PathBuf {
    let folder = folder.join(name);
    let store = Store::open(folder.clone()).unwrap();
    for (n, document) in runs {
        store.put(&key(*n), document).unwrap();
    }
    folder
}

fn merge(folders: &[&Path], into: &Path) -> Result<u8> {
    let folders = folders.iter().map(|folder| folder.to_path_buf()).collect();
    command(&Merge { folders, into: Some(into.to_owned()) }, Path::new("/nonexistent"))
}

#[test]
fn parts_come_together_and_the_same_twice_is_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let a = store(folder.path(), "a", &[(1, json!({"rate": 1.5})), (2, json!({"rate": 2}))]);
    let b = store(folder.path(), "b", &[(2, json!({"rate": 2})), (3, json!({"rate": 3}))]);
    std::fs::write(a.join("notes.txt"), "no run").unwrap();
    let into = folder.path().join("into");
    for _ in 0..2 {
        assert_eq!(merge(&[&a, &b], &into).unwrap(), 0);
        let store = Store::open(into.clone()).unwrap();
        assert_eq!(
            [1, 2, 3].map(|n| store.get(&key(n)).unwrap()["rate"].as_f64()),
            [Some(1.5), Some(2.0), Some(3.0)]
        );
        assert_eq!(
            fs::read(into.join(key(1)).with_extension("json")).unwrap(),
            fs::read(a.join(key(1)).with_extension("json")).unwrap()
        );
        assert!(!into.join("notes.txt").exists());
    }
}

#[test]
fn contradictory_runs_are_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let a = store(folder.path(), "a", &[(1, json!({"guests": {"linux": [1, 2]}})), (4, json!(4))]);
    let b = store(folder.path(), "b", &[(1, json!({"guests": {"linux": [1, 3]}}))]);
    let into = folder.path().join("into");
    let error = format!("{:?}", merge(&[&a, &b], &into).unwrap_err());
    let plain: String = error.split(|c: char| c.is_whitespace() || c == '│').collect();
    for wanted in [&*key(1), "firstat/guests/linux/1", "Nothingwaswritten"] {
        assert!(plain.contains(wanted), "{wanted}: {error}");
    }
    assert!(!into.exists());
    // What is already there counts as well.
    assert!(merge(&[&a], &b).is_err());
}

#[test]
fn damaged_runs_and_folders_without_any_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let a = store(folder.path(), "a", &[(1, json!(1))]);
    let into = folder.path().join("into");
    let empty = store(folder.path(), "empty", &[]);
    let error = merge(&[&a, &empty], &into).unwrap_err().to_string();
    assert!(error.starts_with("there are no finished runs in ") && error.ends_with("empty"), "{error}");
    let error = merge(&[&folder.path().join("gone")], &into).unwrap_err().to_string();
    assert!(error.contains("gone can't be read"), "{error}");
    fs::write(a.join(key(2)).with_extension("json"), "{\"rate\": 1").unwrap();
    let error = merge(&[&a], &into).unwrap_err().to_string();
    assert!(error.contains("is no finished run"), "{error}");
    assert!(!into.exists());
}
