use super::*;
use crate::bench::{chart, fixture::Fixture};
use std::{fs, io::ErrorKind, process::Command};

#[test]
fn the_report_is_one_file_with_all_figures() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Short);
    let mut results = fixture.results(&plan, 1.0);
    results.question = "Is 1 < 2?\n\nYes & no.".into();
    results.bars[0].verdict = Verdict::Fails;
    let page =
        report(&results, &["<svg id=\"chart\"></svg>".into()], &["hypervisor 1, now 2".into()], By::ItsRuns);
    for wanted in [
        "<p>Is 1 &lt; 2?</p><p>Yes &amp; no.</p>",
        "<svg id=\"chart\"></svg>",
        "shared, f = 50, policy = round-robin",
        "throughput (f = 50)",
        "class=\"fails\"",
        "rate<br>",
        "./ainori bench throughput",
        "short form",
        "Measured with an older hypervisor: hypervisor 1, now 2.",
    ] {
        assert!(page.contains(wanted), "{wanted} is missing");
    }
    for foreign in ["src=", "href=", "<script", "@import"] {
        assert!(!page.contains(foreign), "{foreign} would need something from outside");
    }
}

/// What the page is after the browser has read it.
fn opened(page: &std::path::Path, profile: &std::path::Path) -> String {
    for browser in ["chromium", "chromium-browser", "google-chrome"] {
        let output = Command::new("timeout")
            .args(["60", browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("file://{}", page.display()))
            .output();
        match output {
            Ok(output) if output.status.success() => return String::from_utf8(output.stdout).unwrap(),
            Ok(output) if output.status.code() == Some(127) => {} // not installed, says `timeout`
            Ok(output) => panic!("{browser}: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => panic!("{browser}: {error}"),
        }
    }
    panic!("there is no Chromium or Chrome, which `tools/setup --tests` brings");
}

#[test]
fn a_browser_opens_the_report_without_a_server() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Short);
    let results = fixture.results(&plan, 1.0);
    let charts: Vec<String> =
        results.charts.iter().filter_map(|chart| chart::svg(chart, &results.cases).unwrap()).collect();
    assert_eq!(charts.len(), 2);
    let page = fixture.folder.path().join("report.html");
    // The script is the test's: it tells what the browser has laid out.
    let probe = "<script>document.title = [...document.querySelectorAll('svg, table')].map(part => \
                 `${part.tagName}:${part.getBoundingClientRect().height > 50}`).join(' ')</script></body>";
    fs::write(&page, report(&results, &charts, &[], By::ItsRuns).replace("</body>", probe)).unwrap();
    let seen = opened(&page, &fixture.folder.path().join("profile"));
    let wanted = "<title>TABLE:true svg:true svg:true TABLE:true TABLE:true</title>";
    assert!(seen.contains(wanted), "{}", &seen[..seen.find("</title>").unwrap_or(0)]);
}

/// A telephone is 390 pixels wide. Tables scrolled to the side there, and units and distances were cut off. (No window of Chromium is as narrow, but a frame is.)
#[test]
fn on_a_telephone_no_table_is_cut() {
    let fixture = Fixture::new();
    let mut results = fixture.results(&fixture.plan(Form::Full), 1.0);
    results.bars[0].name = "a bar with a long name, as many have one: of the attainable ideal (f = 0)".into();
    let probe = "<script>const cut = [...document.querySelectorAll('.box, table, td, p')].filter(part => \
                 part.scrollWidth > part.clientWidth + 1 || part.getBoundingClientRect().right > innerWidth); \
                 parent.postMessage(`${innerWidth} wide, cut: ${cut.length}, labels: ` + \
                 getComputedStyle(document.querySelector('td[data-of]'), '::before').content, '*')</script></body>";
    let inner = fixture.folder.path().join("inner.html");
    fs::write(&inner, report(&results, &[], &[], By::ItsRuns).replace("</body>", probe)).unwrap();
    let page = fixture.folder.path().join("frame.html");
    let frame = "<!DOCTYPE html><title></title><script>onmessage = event => { document.title = event.data }</script>\
                 <iframe src='inner.html' style='border: 0; width: 390px; height: 5000px'></iframe>";
    fs::write(&page, frame).unwrap();
    let seen = opened(&page, &fixture.folder.path().join("profile"));
    let title = &seen[..seen.find("</title>").unwrap_or(0)];
    assert!(title.contains("390 wide, cut: 0, labels: ") && !title.contains("labels: none"), "{title}");
}
