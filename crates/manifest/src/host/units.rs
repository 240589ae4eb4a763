//! Sizes and durations as people write them: a whole number and its unit, such as `512MiB` or `10ms`.

/// Units of memory, in bytes.
const SIZES: &[(&str, u64)] = &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1)];
/// Units of time, in microseconds.
const TIMES: &[(&str, u64)] =
    &[("us", 1), ("ms", 1_000), ("s", 1_000_000), ("min", 60_000_000), ("h", 3_600_000_000)];

/// What is wrong with a text, in words that go behind it, and what would be right.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    pub what: &'static str,
    pub help: String,
}

/// A size of memory in bytes.
pub fn size(text: &str) -> Result<u64, Wrong> {
    let written = parse(text, SIZES).ok_or_else(|| {
        let decimal = ["kB", "KB", "MB", "GB", "K", "M", "G"].iter().find(|unit| text.ends_with(**unit));
        let help = match decimal {
            Some(unit) => {
                let letter = unit.chars().next().unwrap_or_default().to_ascii_uppercase();
                format!("write {letter}iB (powers of 1024) instead of {unit}")
            }
            None => "write a whole number and KiB, MiB or GiB, e.g. \"512MiB\"".into(),
        };
        Wrong { what: "is not a size", help }
    })?;
    written.ok_or_else(|| too_large("bytes"))
}

/// A duration in microseconds.
pub fn duration_us(text: &str) -> Result<u64, Wrong> {
    let help = "write a whole number and us, ms, s, min or h, e.g. \"10ms\"";
    let written = parse(text, TIMES).ok_or_else(|| Wrong { what: "is not a duration", help: help.into() })?;
    written.ok_or_else(|| too_large("microseconds"))
}

fn too_large(unit: &str) -> Wrong {
    Wrong { what: "is too large", help: format!("that many {unit} are more than 64 bits can count") }
}

/// `None` for anything but digits, perhaps spaces, and a known unit; in it, `None` for what is too large for 64 bits.
fn parse(text: &str, units: &[(&str, u64)]) -> Option<Option<u64>> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).filter(|digits| *digits != 0)?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    // Digits alone: they can only be too many.
    Some(number.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor)))
}

/// Writes a size with the largest unit that divides it.
pub fn show_size(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_shown_can_be_read(bytes: u64) {
            prop_assert_eq!(size(&show_size(bytes)), Ok(bytes));
            let rounded = bytes >> 30 << 30;
            prop_assert_eq!(size(&show_size(rounded)), Ok(rounded));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = (size(&text), duration_us(&text));
        }
    }

    #[test]
    fn units_are_what_they_say() {
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size("16 MiB"), Ok(16 << 20));
        assert_eq!(duration_us("10ms"), Ok(10_000));
        assert_eq!(duration_us("3s"), Ok(3_000_000));
        assert_eq!(duration_us("2min"), Ok(120_000_000));
        assert_eq!(duration_us("1h"), Ok(3_600_000_000));
        let help = "write MiB (powers of 1024) instead of MB".into();
        assert_eq!(size("512MB"), Err(Wrong { what: "is not a size", help }));
        for text in ["1.5GiB", "512", "GiB", "-1GiB", "", "\u{665}GiB"] {
            assert_eq!(size(text).unwrap_err().what, "is not a size", "{text}");
        }
        for text in ["1.5s", "512", "ms", "-1ms", ""] {
            assert_eq!(duration_us(text).unwrap_err().what, "is not a duration", "{text}");
        }
    }

    #[test]
    fn what_is_too_large_is_a_size_all_the_same() {
        for number in ["18446744073709551616", "99999999999999999999999999"] {
            for (unit, _) in SIZES {
                assert_eq!(size(&format!("{number}{unit}")).unwrap_err().what, "is too large");
            }
            for (unit, _) in TIMES {
                assert_eq!(duration_us(&format!("{number}{unit}")).unwrap_err().what, "is too large");
            }
        }
        assert_eq!(size("99999999999GiB"), Err(too_large("bytes")));
        assert_eq!(duration_us("99999999999999999s"), Err(too_large("microseconds")));
    }
}
