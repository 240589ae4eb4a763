//! Numbers with units that a person can read.
use crate::report::RunReport;
use serde_json::Value;

/// A time in nanoseconds with three figures and a fitting unit.
pub fn time_ns(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        size if size >= 1e9 => (ns / 1e9, "s"),
        size if size >= 1e6 => (ns / 1e6, "ms"),
        size if size >= 1e3 => (ns / 1e3, "us"),
        _ => (ns, "ns"),
    };
    format!("{} {unit}", figures(value))
}

/// Nanoseconds of a tick of `time`; `None` if the run did not get so far as to tell.
fn tick_ns(report: &RunReport) -> Option<f64> {
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
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
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

/// A named value of a guest's result: the end of the name is its unit (`boot_s`, `delay_ns`, `burn_percent`).
/// Objects are shown on one line, with the unit of their name.
pub fn named(name: &str, value: &Value) -> String {
    let units: [(&str, f64); 4] = [("_ns", 1.0), ("_us", 1e3), ("_ms", 1e6), ("_s", 1e9)];
    let unit = units.into_iter().find_map(|(end, ns)| Some((name.strip_suffix(end)?, ns)));
    let (name, ns) = unit.map_or((name, None), |(name, ns)| (name, Some(ns)));
    let (name, percent) = name.strip_suffix("_percent").map_or((name, false), |name| (name, true));
    let show = |value: &Value| match (value, value.as_f64(), ns) {
        (Value::String(text), ..) => text.clone(),
        (_, Some(number), Some(ns)) => time_ns(number * ns),
        (_, Some(number), None) if !value.is_i64() && !value.is_u64() => figures(number),
        _ => format!("{value}{}", if percent { " %" } else { "" }),
    };
    let shown = match value {
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(name, value)| format!("{name} {}", show(value))).collect();
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
        assert_eq!(named("boot_s", &json!(0.8213)), "boot: 821 ms");
        assert_eq!(named("burn_percent", &json!(30)), "burn: 30 %");
        assert_eq!(named("ticks_lost", &json!(0)), "ticks lost: 0");
        assert_eq!(named("error", &json!("no job")), "error: no job");
        let delays = json!({"min": 1200, "mean": 1242.0, "max": 2300});
        assert_eq!(named("delay_ns", &delays), "delay: min 1.2 us, mean 1.24 us, max 2.3 us");
    }
}
