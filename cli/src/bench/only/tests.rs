use super::*;

fn known() -> IndexMap<String, Vec<String>> {
    let texts = |values: &[&str]| values.iter().map(ToString::to_string).collect();
    [
        ("case".to_owned(), texts(&["lhp", "native"])),
        ("f".to_owned(), texts(&["0", "50", "90"])),
        ("harts".to_owned(), texts(&["2, 3", "0"])),
        ("job".to_owned(), texts(&["storm cpu=1"])),
    ]
    .into()
}

fn only(options: &[&str]) -> Result<Only> {
    let conditions: Vec<Condition> = options.iter().map(|option| option.parse().unwrap()).collect();
    Only::new(&conditions, &known())
}

/// The message, and what would be right.
fn refused(option: &str) -> (String, String) {
    let error = only(&[option]).unwrap_err();
    (error.to_string(), error.help().unwrap().to_string())
}

#[test]
fn conditions_on_one_name_add_up_and_those_on_several_all_hold() {
    let only = only(&["f=0, 90", "case=lhp", "f=90,50"]).unwrap();
    assert_eq!(only.to_string(), "f = 0, 90, 50; case = lhp");
    let leaves = |case: &str, f: &str| only.leaves([("case", case.into()), ("f", f.into())].into_iter());
    assert!(leaves("lhp", "50"));
    assert!(!leaves("native", "50"));
    assert!(!leaves("lhp", "70"));
    assert!(only.leaves([("case", "lhp".to_owned())].into_iter()), "what has no f is not asked for it");
    assert!(!only.is_all() && Only::default().is_all());
}

#[test]
fn what_is_not_known_is_refused_with_what_is() {
    let (message, help) = refused("g=1");
    assert_eq!((&*message, &*help), ("--only: there is no \"g\"", "there are: case, f, harts, job"));
    let (message, help) = refused("f=0,30");
    assert_eq!((&*message, &*help), ("--only: f is never \"30\"", "its values are: 0, 50, 90"));
    for text in ["lhp", "f=", "=3", ""] {
        assert!(text.parse::<Condition>().unwrap_err().contains("NAME=VALUE"), "{text}");
    }
}

#[test]
fn the_options_mean_the_same_when_they_are_read_again() {
    let written = ["f=0,50", "harts=2, 3", "harts=0", "job=storm cpu=1"];
    let only = only(&written).unwrap();
    let options = only.options();
    assert_eq!(options, " --only f=0,50 --only 'harts=2, 3' --only harts=0 --only 'job=storm cpu=1'");
    assert_eq!(
        serde_json::to_string(&only).unwrap(),
        r#"{"f":["0","50"],"harts":["2, 3","0"],"job":["storm cpu=1"]}"#
    );
}
