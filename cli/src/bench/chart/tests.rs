use super::*;
use crate::bench::{experiment::Form, fixture::Fixture};
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
fn numbers_on_axes_are_short() {
    assert_eq!(number(0.001), "0.001");
    assert_eq!(number(1000.0), "1000");
    assert_eq!(number(0.25), "0.25");
    assert_eq!(number(0.0), "0");
    assert_eq!(Scale { log: true }.label(2.5), "");
    assert_eq!(Scale { log: true }.label(-3.0), "0.001");
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
