use super::*;
use crate::bench::fixture::Fixture;

#[test]
fn the_report_is_one_file_with_all_figures() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Short);
    let mut results = fixture.results(&plan, 1.0);
    results.question = "Is 1 < 2?\n\nYes & no.".into();
    results.bars[0].holds = false;
    let page = report(&results, &["<svg id=\"chart\"></svg>".into()]);
    for wanted in [
        "<p>Is 1 &lt; 2?</p><p>Yes &amp; no.</p>",
        "<svg id=\"chart\"></svg>",
        "shared, f = 50, policy = round-robin",
        "throughput (f = 50)",
        "class=\"fails\"",
        "rate<br>",
        "./ainori bench throughput",
        "short form",
    ] {
        assert!(page.contains(wanted), "{wanted} is missing");
    }
    for foreign in ["src=", "href=", "<script", "@import"] {
        assert!(!page.contains(foreign), "{foreign} would need something from outside");
    }
}
