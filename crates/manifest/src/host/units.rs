//! Sizes and durations as people write them: a whole number and its unit, such as `512MiB` or `10ms`.

/// Units of memory, in bytes.
const SIZES: &[(&str, u64)] = &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1)];
/// Units of time, in microseconds.
const TIMES: &[(&str, u64)] = &[("us", 1), ("ms", 1_000), ("s", 1_000_000)];

/// A size of memory in bytes.
pub fn size(text: &str) -> Result<u64, String> {
    parse(text, SIZES).ok_or_else(|| {
        let decimal = ["kB", "KB", "MB", "GB", "K", "M", "G"].iter().find(|unit| text.ends_with(**unit));
        match decimal {
            Some(unit) => {
                let letter = unit.chars().next().unwrap_or_default().to_ascii_uppercase();
                format!("write {letter}iB (powers of 1024) instead of {unit}")
            }
            None => "write a whole number and KiB, MiB or GiB, e.g. \"512MiB\"".into(),
        }
    })
}

/// A duration in microseconds.
pub fn duration_us(text: &str) -> Result<u64, String> {
    parse(text, TIMES).ok_or_else(|| "write a whole number and us, ms or s, e.g. \"10ms\"".into())
}

/// `None` for anything but digits, perhaps spaces, and a known unit, and for what is too big for 64 bits.
fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
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
        assert_eq!(size("512MB"), Err("write MiB (powers of 1024) instead of MB".into()));
        assert!(size("99999999999GiB").is_err());
        assert!(size("1.5GiB").is_err());
        assert!(size("512").is_err());
        assert!(duration_us("-1ms").is_err());
    }
}
