//! What the project is made of, by `cargo metadata`: each library may be used under the project's own licences, or the README names it
//! with its licence; and none asks for a newer Rust than the project does.
use std::process::Command;

use ainori_tests::checkout;
use serde_json::Value;

/// Licences that the project's own code has: whoever takes that takes these.
const OWN: [&str; 2] = ["MIT", "Apache-2.0"];

fn packages() -> Vec<Value> {
    let cargo = std::env::var("CARGO").expect("cargo runs this");
    // Libraries for other platforms are told too, which a build doesn't fetch: so not `--offline`.
    let arguments = ["metadata", "--locked", "--format-version", "1"];
    let output = Command::new(cargo).args(arguments).current_dir(checkout("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

/// Does an SPDX expression allow a use under licences that `has` knows? `A/B` is an old way to write `A OR B`.
fn allows(expression: &str, has: impl Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words, &has)
}

type Words<'a, 'b> = &'b mut std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: Words, has: &impl Fn(&str) -> bool) -> bool {
    let mut allowed = all(words, has);
    while words.next_if_eq(&"OR").is_some() {
        allowed |= all(words, has);
    }
    allowed
}

fn all(words: Words, has: &impl Fn(&str) -> bool) -> bool {
    let mut allowed = one(words, has);
    while words.next_if_eq(&"AND").is_some() {
        allowed &= one(words, has);
    }
    allowed
}

fn one(words: Words, has: &impl Fn(&str) -> bool) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let allowed = any(words, has);
        assert_eq!(words.next(), Some(")"));
        return allowed;
    }
    let allowed = has(words.next().expect("a licence"));
    if words.next_if_eq(&"WITH").is_some() {
        words.next();
    }
    allowed
}

#[test]
fn expressions_are_read() {
    let own = |expression| allows(expression, |name| OWN.contains(&name));
    assert!(own("MIT") && own("MIT/Apache-2.0") && own("Zlib OR MIT") && own("MIT AND Apache-2.0"));
    assert!(own("Apache-2.0 WITH LLVM-exception OR GPL-2.0") && !own("GPL-2.0 OR Zlib"));
    assert!(!own("(MIT OR Apache-2.0) AND Unicode-3.0") && !own("MPL-2.0"));
}

#[test]
fn the_licence_of_each_library_is_told() {
    let readme = std::fs::read_to_string(checkout("README.md")).unwrap();
    let (_, told) = readme.split_once("\n## License\n").unwrap();
    let mut names = told.split('`').skip(1).step_by(2).filter(|name| !name.contains('/')).collect::<Vec<_>>();
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{name} tells no licence"));
        if allows(licence, |name| OWN.contains(&name)) {
            assert!(!names.contains(&name), "the README names {name}, which is under {licence}");
            continue;
        }
        let line = told.lines().find(|line| line.contains(&format!("`{name}`")));
        let line = line.unwrap_or_else(|| panic!("the README doesn't name {name}, which is under {licence}"));
        assert!(
            allows(licence, |name| OWN.contains(&name) || line.contains(name)),
            "the README says of {name}: {line}; it is under {licence}"
        );
        names.retain(|told| *told != name);
    }
    assert!(names.is_empty(), "the README names what isn't there: {names:?}");
}

#[test]
fn no_library_wants_a_newer_rust() {
    let version = |text: &str| -> Vec<u32> { text.split('.').map(|part| part.parse().unwrap()).collect() };
    let packages = packages();
    let own: Vec<&str> = packages
        .iter()
        .filter(|package| package["source"].is_null())
        .map(|package| package["rust_version"].as_str().unwrap_or("none"))
        .collect();
    assert!(own.iter().all(|one| *one == own[0]), "each crate has the workspace's rust-version: {own:?}");
    for package in &packages {
        let Some(wanted) = package["rust_version"].as_str() else { continue };
        assert!(version(wanted) <= version(own[0]), "{} wants Rust {wanted}", package["name"]);
    }
}
