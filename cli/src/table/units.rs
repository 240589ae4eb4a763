//! Numbers with units that a person can read.
use crate::report::RunReport;
use serde_json::{Map, Value};

/// A time in nanoseconds with three figures and a fitting unit.
pub fn time_ns(ns: f64) -> String {
    let (size, unit) = time_unit(ns);
    format!("{} {unit}", figures(ns / size))
}

/// The unit that fits a time, and its nanoseconds.
fn time_unit(ns: f64) -> (f64, &'static str) {
    match ns.abs() {
        size if size >= 1e9 => (1e9, "s"),
        size if size >= 1e6 => (1e6, "ms"),
        size if size >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    }
}

/// Times that are looked at together, in nanoseconds: all in one unit, and with so many figures that what differs looks different, and none like 0 that isn't. Each by itself where
/// they are too far apart for that.
fn times_ns(times: &[f64]) -> Vec<String> {
    let greatest = times.iter().map(|ns| ns.abs()).fold(0.0, f64::max);
    let least = times.iter().map(|ns| ns.abs()).filter(|ns| *ns != 0.0).fold(greatest, f64::min);
    if greatest > least * FAR_APART {
        return times.iter().map(|ns| time_ns(*ns)).collect();
    }
    let (size, unit) = time_unit(greatest);
    let shown =
        |digits: usize| -> Vec<String> { times.iter().map(|ns| rounded(ns / size, digits)).collect() };
    let are_told_apart = |texts: &[String]| {
        let mut pairs =
            times.iter().zip(texts).flat_map(|one| times.iter().zip(texts).map(move |two| (one, two)));
        pairs.all(|(one, two)| one.0 == two.0 || one.1 != two.1)
    };
    let least_digits = digits(greatest / size);
    let none_vanishes = |texts: &[String]| {
        times
            .iter()
            .zip(texts)
            .all(|(ns, text)| *ns == 0.0 || text.parse().is_ok_and(|shown: f64| shown != 0.0))
    };
    let texts =
        (least_digits..MOST_DIGITS).map(shown).find(|texts| are_told_apart(texts) && none_vanishes(texts));
    let texts = texts.unwrap_or_else(|| shown(MOST_DIGITS));
    texts.into_iter().map(|text| format!("{text} {unit}")).collect()
}

/// Times whose quotient is greater have no unit in common.
const FAR_APART: f64 = 1000.0;
/// Most digits behind the point.
const MOST_DIGITS: usize = 4;

/// Nanoseconds of a tick of `time`; `None` if the run did not get so far as to tell.
pub fn tick_ns(report: &RunReport) -> Option<f64> {
    let hz = report.board.as_ref()?.timebase_hz;
    (hz != 0).then(|| 1e9 / hz as f64)
}

/// Ticks of `time` as a time; as ticks if their length is not known.
pub fn ticks(report: &RunReport, ticks: u64) -> String {
    match tick_ns(report) {
        Some(ns) => time_ns(ticks as f64 * ns),
        None => format!("{ticks} ticks"),
    }
}

/// Ticks of `time` in microseconds, for columns of numbers that are compared with each other.
pub fn micros(report: &RunReport, ticks: f64) -> String {
    tick_ns(report).map_or_else(|| "-".into(), |ns| format!("{:.1}", ticks * ns / 1e3))
}

/// At least three figures, and no zeros behind the point that say nothing.
fn figures(value: f64) -> String {
    rounded(value, digits(value))
}

/// How many digits behind the point make three figures.
fn digits(value: f64) -> usize {
    match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    }
}

fn rounded(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A size in bytes with a fitting unit.
pub fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 10 << 20 => format!("{} MiB", figures(bytes as f64 / f64::from(1 << 20))),
        _ if bytes >= 1 << 10 => format!("{} KiB", figures(bytes as f64 / f64::from(1 << 10))),
        _ => format!("{bytes} B"),
    }
}

/// A part of a whole.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// What the name of a guest's value tells of it.
#[derive(Clone, Copy)]
enum Unit {
    /// A time: so many nanoseconds each.
    Time(f64),
    Percent,
    None,
}

/// The name without its end that is the unit (`boot_s`, `delay_ns`, `burn_percent`), in words, and that unit. A `span` is in ticks of `time`, of `tick_ns` each.
fn unit(name: &str, tick_ns: Option<f64>) -> (String, Unit) {
    let units = [
        ("_ns", Unit::Time(1.0)),
        ("_us", Unit::Time(1e3)),
        ("_ms", Unit::Time(1e6)),
        ("_s", Unit::Time(1e9)),
        ("_percent", Unit::Percent),
    ];
    let found = units.into_iter().find_map(|(end, unit)| Some((name.strip_suffix(end)?, unit)));
    let span = || tick_ns.filter(|_| name == "span").map_or(Unit::None, Unit::Time);
    let (name, unit) = found.unwrap_or_else(|| (name, span()));
    (name.replace('_', " "), unit)
}

/// A named value of a guest's result. Objects and lists are shown on one line, with the unit of their name.
pub fn named(name: &str, value: &Value, tick_ns: Option<f64>) -> String {
    let (name, unit) = unit(name, tick_ns);
    format!("{name}: {}", shown(value, unit))
}

/// A column of a table of a guest's records: its header, its cells, and whether these are numbers.
pub fn column<'a>(
    name: &str,
    values: impl Iterator<Item = &'a Value>,
    tick_ns: Option<f64>,
) -> (String, Vec<String>, bool) {
    let (name, unit) = unit(name, tick_ns);
    let mut are_numbers = true;
    let cells = values.map(|value| {
        are_numbers &= value.is_number() || value.is_null();
        if value.is_null() { "-".into() } else { shown(value, unit) }
    });
    let cells = cells.collect();
    (name, cells, are_numbers)
}

/// Most fields of an object that are shown: a guest can print any number, and each time is compared with all others.
const MOST_FIELDS: usize = 40;

fn shown(value: &Value, unit: Unit) -> String {
    match value {
        Value::Object(fields) => {
            let first = fields.iter().take(MOST_FIELDS);
            let values: Vec<&Value> = first.map(|(name, value)| within(fields, name, value)).collect();
            let time = |value: &&Value| match unit {
                Unit::Time(ns) => Some(value.as_f64()? * ns),
                Unit::Percent | Unit::None => None,
            };
            let times: Option<Vec<f64>> = values.iter().map(time).collect();
            let texts = times.map_or_else(
                || values.iter().map(|value| single(value, unit)).collect(),
                |times| times_ns(&times),
            );
            let texts = fields.keys().zip(texts).map(|(name, text)| format!("{name} {text}"));
            let mut texts: Vec<String> = texts.collect();
            if let Some(more @ 1..) = fields.len().checked_sub(MOST_FIELDS) {
                texts.push(format!("and {more} more"));
            }
            texts.join(", ")
        }
        Value::Array(list) if !list.iter().any(|one| one.is_array() || one.is_object()) => {
            list.iter().map(|one| single(one, unit)).collect::<Vec<_>>().join(", ")
        }
        other => single(other, unit),
    }
}

fn single(value: &Value, unit: Unit) -> String {
    match (value, value.as_f64(), unit) {
        (Value::String(text), ..) => text.clone(),
        (_, Some(number), Unit::Time(ns)) => time_ns(number * ns),
        (_, Some(number), _) => {
            let percent = if matches!(unit, Unit::Percent) { " %" } else { "" };
            let is_whole = value.is_i64() || value.is_u64();
            format!("{}{percent}", if is_whole { value.to_string() } else { figures(number) })
        }
        _ => json(value),
    }
}

/// A value of an object. Quantiles come from bins, whose bound may be above all that was in them: one is never shown above the maximum that stands beside it (`p999` and `max`,
/// `delay_p999_ns` and `delay_max_ns`).
pub fn within<'a>(fields: &'a Map<String, Value>, name: &str, value: &'a Value) -> &'a Value {
    let is_quantile = |part: &str| {
        part.strip_prefix('p')
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_digit()))
    };
    let parts = name.split('_').map(|part| if is_quantile(part) { "max" } else { part });
    let greatest = parts.collect::<Vec<_>>().join("_");
    let greatest = fields.get(&greatest).filter(|greatest| greatest.as_f64() < value.as_f64());
    greatest.filter(|greatest| greatest.is_number()).unwrap_or(value)
}

/// JSON with blanks, at which a table can break it into lines.
fn json(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(json).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| format!("{}: {}", Value::from(&**name), json(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_short() {
        assert_eq!(time_ns(1242.0), "1.24 us");
        assert_eq!(time_ns(200.0), "200 ns");
        assert_eq!(time_ns(0.0), "0 ns");
        assert_eq!(time_ns(31_400_000.0), "31.4 ms");
        assert_eq!(time_ns(2e9), "2 s");
        assert_eq!(size(512), "512 B");
        assert_eq!(size(80 << 10), "80 KiB");
        assert_eq!(size(30 << 20), "30 MiB");
        assert_eq!(percent(1, 0), "-");
        assert_eq!(percent(1, 3), "33.3 %");
    }

    #[test]
    fn the_name_of_a_value_tells_its_unit() {
        assert_eq!(named("boot_s", &json!(0.8213), None), "boot: 821 ms");
        assert_eq!(named("burn_percent", &json!(30), None), "burn: 30 %");
        assert_eq!(named("ticks_lost", &json!(0), None), "ticks lost: 0");
        assert_eq!(named("error", &json!("no job"), None), "error: no job");
        let delays = json!({"min": 1200, "mean": 1242.0, "max": 2300});
        assert_eq!(named("delay_ns", &delays, None), "delay: min 1.2 us, mean 1.24 us, max 2.3 us");
        assert_eq!(named("share_percent", &json!(12.5), None), "share: 12.5 %");
        assert_eq!(named("jobs_on", &json!([300, 0]), None), "jobs on: 300, 0");
        assert_eq!(named("worst_ns", &json!([300, 1200]), None), "worst: 300 ns, 1.2 us");
    }

    /// So that a table can break it where no number is.
    #[test]
    fn what_has_no_form_of_its_own_is_json_with_blanks() {
        let lists = json!([[1, 2], {"a": null, "b": "c d"}]);
        assert_eq!(named("x", &lists, None), r#"x: [[1, 2], {"a": null, "b": "c d"}]"#);
    }

    #[test]
    fn no_quantile_is_shown_above_the_maximum() {
        let round = json!({"min": 30, "p50": 143, "p999": 143, "max": 140, "p": 150, "p9x": 150});
        assert_eq!(named("n", &round, None), "n: min 30, p50 140, p999 140, max 140, p 150, p9x 150");
        let times = json!({"p99": 1_200, "p999": 143_000, "max": 140_000.5});
        assert_eq!(named("round_ns", &times, None), "round: p99 1 us, p999 140 us, max 140 us");
        let flat = json!({"round_p999_ns": 143, "round_max_ns": 140, "p50": 143, "max": "none", "p9": null});
        let flat = flat.as_object().unwrap();
        let shown = |name: &str| within(flat, name, &flat[name]).clone();
        assert_eq!(
            (shown("round_p999_ns"), shown("p50"), shown("p9")),
            (json!(140), json!(143), json!(null))
        );
    }

    #[test]
    fn times_that_are_compared_have_one_unit() {
        let shown = |times: [f64; 3]| times_ns(&times).join(", ");
        assert_eq!(shown([999_900.0, 1_000_000.0, 1_000_100.0]), "0.9999 ms, 1 ms, 1.0001 ms");
        assert_eq!(shown([200.0, 610.0, 1200.0]), "0.2 us, 0.61 us, 1.2 us");
        assert_eq!(shown([1300.0, 1831.7, 2300.0]), "1.3 us, 1.83 us, 2.3 us");
        assert_eq!(shown([200.0, 0.0, 3e9]), "200 ns, 0 ns, 3 s");
        // None that isn't 0 is shown as 0.
        assert_eq!(shown([130_300.0, 2_272_113.0, 105e6]), "0.1 ms, 2.3 ms, 105 ms");
        assert_eq!(times_ns(&[0.0]), ["0 ns"]);
        let span = json!({"from": 812_345, "to": 30_812_347});
        assert_eq!(named("span", &span, Some(100.0)), "span: from 0.08 s, to 3.08 s");
        assert_eq!(named("span", &span, None), "span: from 812345, to 30812347");
    }
}
