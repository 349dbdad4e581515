//! Numbers as people write them.

use num_format::{Locale, ToFormattedString as _};

/// With thousands apart: `323,048`.
pub(crate) fn count(number: u64) -> String {
    number.to_formatted_string(&Locale::en)
}

/// How many events there are, where 64 bits may not be able to count them.
pub(crate) fn events(number: Option<u64>) -> String {
    number.map_or("more than 2^64 events".to_string(), |number| plural(number, "event"))
}

/// A count and its noun: `1 event`, `2 events`.
pub(crate) fn plural(number: u64, noun: &str) -> String {
    match (number, noun.strip_suffix('s')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{} {stem}ses", count(number)),
        _ => format!("{} {noun}s", count(number)),
    }
}

/// A share between 0 and 1: `99.6 %`, and never `100 %` unless it is all.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = if (1.0..99.0).contains(&percent) { 1 } else { 2 };
    let text = format!("{percent:.decimals$}");
    match text.parse::<f64>() {
        Ok(shown) if shown >= 100.0 && share < 1.0 => "> 99.99 %".to_string(),
        Ok(shown) if shown == 0.0 && share > 0.0 => "< 0.01 %".to_string(),
        _ => format!("{} %", text.trim_end_matches('0').trim_end_matches('.')),
    }
}

/// How many times shorter: `4,682` or `1.3`.
pub(crate) fn ratio(ratio: f64) -> String {
    if ratio >= 100.0 { count(ratio.round() as u64) } else { format!("{ratio:.1}") }
}

/// A unit of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeUnit {
    nanoseconds: f64,
    name: &'static str,
}

impl TimeUnit {
    /// The one in which a number of nanoseconds has one to three digits before the point.
    pub(crate) fn of(nanoseconds: i128) -> Self {
        let (nanoseconds, name) = match nanoseconds.unsigned_abs() {
            0..1_000 => (1.0, "ns"),
            1_000..1_000_000 => (1e3, "µs"),
            1_000_000..1_000_000_000 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        Self { nanoseconds, name }
    }

    /// A duration in this unit, without its name: three digits, or all before the point. One that
    /// is too short for that has a unit of its own.
    pub(crate) fn number(self, nanoseconds: i128) -> String {
        let value = nanoseconds as f64 / self.nanoseconds;
        let whole = self.nanoseconds == 1.0 || nanoseconds == 0;
        match value.abs() {
            _ if whole => nanoseconds.to_string(),
            size if size >= 1000.0 => {
                let sign = if value < 0.0 { "-" } else { "" };
                format!("{sign}{}", count(size.round() as u64))
            }
            size if size >= 99.95 => format!("{value:.0}"),
            size if size >= 9.995 => format!("{value:.1}"),
            size if size >= 0.9995 => format!("{value:.2}"),
            size if size >= 0.001 => format!("{value:.3}"),
            _ => duration(nanoseconds),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.name
    }
}

/// Nanoseconds in a unit that fits: `4.10 ms`.
pub(crate) fn duration(nanoseconds: i128) -> String {
    let unit = TimeUnit::of(nanoseconds);
    format!("{} {}", unit.number(nanoseconds), unit.name())
}

/// The least and the most beside a time in the middle, in the unit of that: `24.4 to 34.7`. Those
/// that would have many digits in it have units of their own.
pub(crate) fn spread(least: i128, middle: i128, most: i128) -> String {
    let unit = TimeUnit::of(middle);
    let fits = |time: i128| time == 0 || (0.001..1e4).contains(&(time as f64 / unit.nanoseconds).abs());
    match fits(least) && fits(most) {
        true => format!("{} to {}", unit.number(least), unit.number(most)),
        false => format!("{} to {}", duration(least), duration(most)),
    }
}

/// Bytes in a unit that fits: `1.2 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let size = bytes as f64;
    match bytes {
        0..10_000 => format!("{} bytes", count(bytes)),
        10_000..1_000_000 => format!("{:.1} kB", size / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", size / 1e6),
        _ => format!("{:.1} GB", size / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(323_048), "323,048");
        assert_eq!(plural(1, "event"), "1 event");
        assert_eq!(plural(2, "class"), "2 classes");
        assert_eq!(percent(0.99581), "99.58 %");
        assert_eq!(percent(0.999_999_9), "> 99.99 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.5), "50 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(1e-9), "< 0.01 %");
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(4_100_000), "4.10 ms");
        assert_eq!(duration(123_456_789_012), "123 s");
        assert_eq!(duration(999_999), "1000 µs");
        assert_eq!(spread(24_400_000, 27_800_000, 34_700_000), "24.4 to 34.7");
        assert_eq!(spread(14_400, 27_800_000, 34_700_000), "0.014 to 34.7");
        assert_eq!(spread(244, 27_800_000, 34_700_000), "244 ns to 34.7 ms");
        assert_eq!(spread(0, 64, 62_300_000), "0 ns to 62.3 ms");
        assert_eq!(bytes(512), "512 bytes");
        assert_eq!(bytes(12_345_678), "12.3 MB");
    }
}
