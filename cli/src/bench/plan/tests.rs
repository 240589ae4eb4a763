use super::*;
use crate::bench::fixture::{EXPERIMENT, Fixture};

fn error(text: &str) -> String {
    let fixture = Fixture::new();
    let planned = fixture.experiment(text).and_then(|experiment| Plan::new(experiment, Form::Short, &[]));
    format!("{:?}", planned.expect_err("it should be refused"))
}

/// The experiment of the fixture with one thing changed.
fn changed(from: &str, to: &str) -> String {
    assert!(EXPERIMENT.contains(from));
    EXPERIMENT.replacen(from, to, 1)
}

#[test]
fn cases_are_multiplied_out_in_both_forms() {
    let fixture = Fixture::new();
    let labels = |form| -> Vec<String> { fixture.plan(form).runs().map(Run::shown).collect() };
    assert_eq!(
        labels(Form::Short),
        [
            "lhp f=0 policy=spumone, q = 250",
            "lhp f=0 policy=round-robin, q = 250",
            "lhp f=50 policy=spumone, q = 250",
            "lhp f=50 policy=round-robin, q = 250",
            "native, run 1"
        ]
    );
    assert_eq!(labels(Form::Full).len(), 3 * 2 * 3 + 1);
}

/// Else its figures would change with it.
#[test]
fn an_experiments_name_is_no_part_of_its_systems() {
    let fixture = Fixture::new();
    let systems = |name: &str| -> Vec<String> {
        let mut experiment = fixture.experiment(EXPERIMENT).unwrap();
        experiment.name = name.into();
        let plan = Plan::new(experiment, Form::Short, &[]).unwrap();
        plan.runs().map(|run| format!("{:?}", run.manifest)).collect()
    };
    assert_eq!(systems("one"), systems("another"));
}

/// Results over an input, after hours of runs, would lose both.
#[test]
fn what_the_runs_read_is_known() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Short);
    let told = |file: &Path| {
        let files = plan.reads(Apart::default()).writes("--json", Some(file));
        files.check().map_or_else(|error| error.to_string(), |()| "fine".into())
    };
    let folder = &plan.experiment.folder;
    assert!(told(&folder.join("linux.toml")).ends_with("it is the system of a case, which is read"));
    for run in plan.runs() {
        assert!(told(&run.manifest.files[0].image).ends_with("it is a guest's image, which is read"));
    }
    assert_eq!(told(&folder.join("results.json")), "fine");
}

#[test]
fn a_template_may_have_parts() {
    let fixture = Fixture::new();
    let whole = fixture.plan(Form::Short);
    let folder = &whole.experiment.folder;
    let template = std::fs::read_to_string(folder.join("linux.toml")).unwrap();
    let (head, rest) = template.split_at(template.find("board =").unwrap());
    // The end of a part is the end of a line.
    std::fs::write(folder.join("head.toml"), head.trim_end()).unwrap();
    std::fs::write(folder.join("rest.toml"), rest).unwrap();
    let planned = |parts: &str| {
        let text = EXPERIMENT.replace("system = \"linux.toml\"", &format!("system = {parts}"));
        Plan::new(fixture.experiment(&text).unwrap(), Form::Short, &[])
    };
    let parts = planned(r#"["head.toml", "rest.toml"]"#).unwrap();
    let systems = |plan: &Plan| -> Vec<String> {
        plan.runs().map(|run| format!("{:?}", run.manifest.system)).collect()
    };
    assert_eq!(systems(&parts), systems(&whole));
    let files = parts.reads(Apart::default()).writes("--json", Some(&folder.join("rest.toml")));
    assert!(files.check().unwrap_err().to_string().ends_with("it is the system of a case, which is read"));
    assert!(format!("{:?}", planned("[]").unwrap_err()).contains("`system` has no file"));
    // Whatever is wrong is told of both.
    fixture.write("bad.toml", b"[[");
    let error = format!("{:?}", planned(r#"["head.toml", "bad.toml"]"#).unwrap_err());
    assert!(error.contains("head.toml + bad.toml"), "{error}");
}

#[test]
fn only_the_cases_that_are_asked_for_are_run() {
    let fixture = Fixture::new();
    let experiment = || fixture.experiment(EXPERIMENT).unwrap();
    let planned = |only: &[&str]| {
        let conditions: Vec<Condition> = only.iter().map(|text| text.parse().unwrap()).collect();
        Plan::new(experiment(), Form::Full, &conditions)
    };
    let labels = |only: &[&str]| -> Vec<String> { planned(only).unwrap().runs().map(Run::shown).collect() };
    assert_eq!(labels(&["case=native"]), ["native, run 1"]);
    assert_eq!(
        labels(&["policy=spumone", "f=0,90", "q=250", "q=240"]),
        [
            "lhp f=0 policy=spumone, q = 240",
            "lhp f=0 policy=spumone, q = 250",
            "lhp f=90 policy=spumone, q = 240",
            "lhp f=90 policy=spumone, q = 250",
            "native, run 1"
        ]
    );
    let refused = |only: &[&str]| format!("{:?}", planned(only).unwrap_err());
    let words = |only: &[&str]| refused(only).split_whitespace().collect::<Vec<_>>().join(" ");
    let error = words(&["case=nativ"]);
    assert!(
        error.contains("case is never \"nativ\"") && error.contains("its values are: lhp, native"),
        "{error}"
    );
    let error = words(&["g=1"]);
    assert!(error.contains("there are: case, f, policy, q, repetition"), "{error}");
    let error = words(&["repetition=2"]);
    assert!(error.contains("its values are: 1"), "{error}");
}

#[test]
fn conditions_that_nothing_fulfils_together_are_refused() {
    let fixture = Fixture::new();
    let text = changed(
        "with.policy = [\"spumone\", \"round-robin\"]",
        "with.policy = \"spumone\"\n[[case]]\nname = \"other\"\ntitle = \"\"\nsystem = \"linux.toml\"\nclock = \"lockstep\"\nwith.policy = \"round-robin\"",
    );
    let conditions = ["case=other", "policy=spumone"].map(|text| text.parse().unwrap());
    let error = Plan::new(fixture.experiment(&text).unwrap(), Form::Short, &conditions).unwrap_err();
    let error = format!("{error:?}");
    assert!(error.contains("no run has case = other; policy = spumone"), "{error}");
}

#[test]
fn a_bar_can_be_for_some_values_only() {
    let bars = |only: &str, form| {
        let text = changed("each = [\"f\"]", &format!("each = [\"f\"]\nonly = {{ f = {only} }}"));
        let fixture = Fixture::new();
        let plan = Plan::new(fixture.experiment(&text).unwrap(), form, &[]).unwrap();
        let bar = &plan.experiment.bars[0];
        plan.combinations(&Expression::parse(&bar.value).unwrap(), &bar.each, &bar.only).len()
    };
    assert_eq!(bars("[50, 90]", Form::Full), 2);
    assert_eq!(bars("[50, 90]", Form::Short), 1);
    assert_eq!(bars("90", Form::Short), 0, "that value is the full form's");
}

#[test]
fn what_refers_to_nothing_is_refused_before_anything_runs() {
    for (from, to, message) in [
        ("{native.rate}", "{nativ.rate}", "there is no case for {nativ.rate}"),
        ("{native.rate}", "{native.rat}", "there is no metric \"rat\""),
        ("{lhp[policy=spumone].rate}", "{lhp.rate}", "{lhp.rate} could be any of 2 cases"),
        ("each = [\"f\"]", "each = []", "could be any of 2 cases"),
        ("each = [\"f\"]", "each = [\"g\"]", "none of its cases has all the parameters g"),
        ("each = [\"f\"]", "each = [\"f\"]\nonly = { g = 1 }", "there is no parameter in `each` \"g\""),
        ("rate * (1 - f/100)", "rate * (1 - g/100)", "there is no metric or parameter \"g\""),
        ("metrics = [\"rate\"]", "metrics = [\"speed\"]", "there is no metric \"speed\""),
        ("at_least = 0.5", "", "it needs either `at_most` or `at_least`"),
        ("cases = [\"lhp\"]\nx", "cases = [\"hlp\"]\nx", "there is no case \"hlp\""),
        ("x = \"f\"", "x = \"policy\"", "policy is no numeric parameter of lhp"),
        ("with.policy", "with.polcy", "has no place ${polcy}"),
        ("[\"spumone\", \"round-robin\"]", "\"spumon\"", "spumon"),
        ("name = \"native\"", "name = \"lhp\"", "two of its cases are called \"lhp\""),
        ("short = [250]", "short = []", "it has no runs"),
        ("machine = \"bare\"", "machine = \"bear\"", "bear"),
        ("{ f = { full", "{ q = 1, f = { full", "no parameter can be called q"),
        ("title = \"shared\"", "titel = \"shared\"", "titel"),
    ] {
        let error = error(&changed(from, to));
        // The report is set in lines.
        let plain = error.split(|c: char| c.is_whitespace() || c == '│').filter(|word| !word.is_empty());
        let plain = plain.collect::<Vec<_>>().join(" ");
        assert!(plain.contains(message), "{to}: {plain}");
    }
}

#[test]
fn an_axis_without_a_logarithm_for_a_value_of_its_parameter_is_refused() {
    let label = "y_label = \"messages / s\"";
    let told = error(&changed(label, &format!("{label}\nx_log = true")));
    assert!(told.contains("f at 0 has no place on a logarithmic axis"), "{told}");
}

#[test]
fn models_of_tlbs_count_in_windows() {
    let with = |more: &str| changed("with.policy =", &format!("{more}\nwith.policy ="));
    let tlb = "tlb.sets = [\"p550\"]\ntlb.models = [\"as-is\"]";
    let told = error(&with(tlb));
    assert!(told.contains("count in windows"), "{told}");
    let told = error(&with(&format!("windows = {{ a = 1 }}\n{}", tlb.replace("p550", "p550,out=x"))));
    assert!(told.contains("no set of sizes"), "{told}");
    let fixture = Fixture::new();
    let experiment = fixture.experiment(&with(&format!("windows = {{ a = 1 }}\n{tlb}"))).unwrap();
    let plan = Plan::new(experiment, Form::Short, &[]).unwrap();
    let models: Vec<_> = plan.runs().map(|run| run.tlb.is_some()).collect();
    assert_eq!(models, [true, true, true, true, false], "the bare machine's case has none");
}

#[test]
fn windows_have_numbers_of_their_own() {
    let with = |windows: &str| changed("with.policy =", &format!("windows = {{ {windows} }}\nwith.policy ="));
    let fixture = Fixture::new();
    let experiment = fixture.experiment(&with("b = 2, a = 1")).unwrap();
    let plan = Plan::new(experiment, Form::Short, &[]).unwrap();
    let windows: Vec<_> = plan.runs().map(|run| run.windows.len()).collect();
    assert_eq!(windows, [2, 2, 2, 2, 0], "the bare machine's case has none");
    for (wrong, why) in [
        ("a = 0", "a number of its own"),
        ("a = 1024", "from 1 to 1023"),
        ("a = 7, b = 7", "the window b needs a number of its own"),
        ("\"a b\" = 1", "a name of letters"),
    ] {
        assert!(error(&with(wrong)).contains(why), "{wrong}");
    }
}
