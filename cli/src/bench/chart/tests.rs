use super::*;
use crate::bench::{
    experiment::Form,
    fixture::{EXPERIMENT, Fixture},
    plan::Plan,
};
use roxmltree::Document;

/// The texts in a chart of the fixture, which must be well-formed XML.
fn texts(index: usize) -> (String, Vec<String>) {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Full);
    let results = fixture.results(&plan, 1.0);
    let svg = svg(&results.charts[index], &results.cases).unwrap().expect("there are figures");
    let document = Document::parse(&svg).expect("well-formed XML");
    assert_eq!(document.root_element().tag_name().name(), "svg");
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    let texts = texts.filter_map(|node| Some(node.text()?.trim().to_owned())).collect();
    (svg, texts)
}

fn has(texts: &[String], wanted: &str) {
    assert!(texts.iter().any(|text| text == wanted), "{wanted:?} is missing in {texts:?}");
}

#[test]
fn a_chart_of_lines_names_its_axes_and_lines() {
    let (svg, texts) = texts(0);
    for wanted in [
        "Throughput over f",
        "share of the RTOS, %",
        "messages / s",
        "shared, spumone",
        "shared, round-robin",
        "ideal",
    ] {
        has(&texts, wanted);
    }
    assert!(!svg.contains("href") && !svg.contains("url("), "nothing from outside");
}

#[test]
fn histograms_name_their_axes_and_cases() {
    let (_, texts) = texts(1);
    for wanted in
        ["Delays", "delay, ns", "share, %", "shared, f = 0, policy = spumone", "10000000", "100", "1"]
    {
        has(&texts, wanted);
    }
    assert_eq!(texts.iter().filter(|text| *text == "delay, ns").count(), 6, "one for each panel");
}

#[test]
fn a_policy_has_its_colour_and_shape_in_lines_and_histograms() {
    let colour = |name: &str| {
        let RGBColor(red, green, blue) = look(Some(name), 0).colour;
        format!("#{red:02X}{green:02X}{blue:02X}")
    };
    for index in [0, 1] {
        let (svg, _) = texts(index);
        for policy in ["spumone", "round-robin"] {
            assert!(svg.contains(&colour(policy)), "{policy} in chart {index}");
        }
    }
    // Three points and the legend of a filled shape; the other's is filled with white.
    let (svg, _) = texts(0);
    let filled = svg.matches(&format!("<polygon opacity=\"1\" fill=\"{}\"", colour("spumone"))).count();
    assert_eq!(filled, 4, "{svg}");
}

/// A telephone shows a chart 360 px wide.
#[test]
fn letters_are_legible_where_a_chart_is_narrow() {
    for index in [0, 1] {
        let (svg, _) = texts(index);
        let document = Document::parse(&svg).unwrap();
        let width: f64 = document.root_element().attribute("width").unwrap().parse().unwrap();
        let sizes =
            document.descendants().filter_map(|node| node.attribute("font-size")?.parse::<f64>().ok());
        let least = sizes.fold(f64::MAX, f64::min);
        assert!(least * 360.0 / width >= 10.0, "{least} px of {width}");
    }
}

/// The chart of delays of the fixture with this line, and whether it is drawn.
fn with_line(value: &str, x_log: bool) -> miette::Result<Option<String>> {
    let fixture = Fixture::new();
    let text = EXPERIMENT.replace(
        "x_log = true",
        &format!("x_log = {x_log}\nline = [{{ title = \"deadline\", value = \"{value}\" }}]"),
    );
    let plan = Plan::new(fixture.experiment(&text)?, Form::Full, &[])?;
    let results = fixture.results(&plan, 1.0);
    svg(&results.charts[1], &results.cases)
}

#[test]
fn a_line_stands_upright_in_each_histogram() {
    let plain = texts(1).0.matches("#BE0000").count();
    for x_log in [true, false] {
        let svg = with_line("1000", x_log).unwrap().unwrap();
        assert_eq!(plain, 0);
        assert!(svg.matches("#BE0000").count() >= 6, "a dash and more in each of six panels");
        assert_eq!(svg.matches("deadline\n").count(), 6, "{svg}");
    }
}

#[test]
fn a_line_without_a_logarithm_is_refused_with_a_reason() {
    for value in ["0", "-5"] {
        assert!(with_line(value, false).is_ok());
        let error = format!("{:?}", with_line(value, true).unwrap_err());
        assert!(error.contains("has no place on a logarithmic axis") && error.contains("x_log"), "{error}");
    }
    // What runs have shown is known when it is drawn.
    let error = with_line("{lhp[policy=spumone,f=0].rate} * 0", true).unwrap_err();
    assert!(format!("{error:?}").contains("the line \"deadline\" at 0 has no place"), "{error:?}");
}

#[test]
fn what_was_measured_without_a_logarithm_is_refused_with_a_reason() {
    let fixture = Fixture::new();
    let mut results = fixture.results(&fixture.plan(Form::Full), 1.0);
    results.cases[0].histograms[0].buckets.insert(0, (0.0, 1));
    let error = svg(&results.charts[1], &results.cases).unwrap_err().to_string();
    assert!(error.contains("what was measured at 0 has no place on a logarithmic axis"), "{error}");
}
