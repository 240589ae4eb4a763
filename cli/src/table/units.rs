//! Numbers with units that a person can read.
use crate::report::RunReport;
use serde_json::Value;

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

/// A named value of a guest's result: the end of the name is its unit (`boot_s`, `delay_ns`, `burn_percent`), and a `span` is in ticks
/// of `time`, of `tick_ns` each.
/// Objects are shown on one line, with the unit of their name.
pub fn named(name: &str, value: &Value, tick_ns: Option<f64>) -> String {
    let units: [(&str, f64); 4] = [("_ns", 1.0), ("_us", 1e3), ("_ms", 1e6), ("_s", 1e9)];
    let unit = units.into_iter().find_map(|(end, ns)| Some((name.strip_suffix(end)?, Some(ns))));
    let (name, ns) = unit.unwrap_or((name, tick_ns.filter(|_| name == "span")));
    let (name, percent) = name.strip_suffix("_percent").map_or((name, false), |name| (name, true));
    let show = |value: &Value| match (value, value.as_f64(), ns) {
        (Value::String(text), ..) => text.clone(),
        (_, Some(number), Some(ns)) => time_ns(number * ns),
        (_, Some(number), None) if !value.is_i64() && !value.is_u64() => figures(number),
        _ => format!("{value}{}", if percent { " %" } else { "" }),
    };
    let shown = match value {
        Value::Object(fields) => {
            let times: Option<Vec<f64>> = fields.values().map(|value| Some(value.as_f64()? * ns?)).collect();
            let values = times.map_or_else(|| fields.values().map(show).collect(), |times| times_ns(&times));
            let fields: Vec<_> =
                fields.keys().zip(values).map(|(name, value)| format!("{name} {value}")).collect();
            fields.join(", ")
        }
        other => show(other),
    };
    format!("{}: {shown}", name.replace('_', " "))
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
