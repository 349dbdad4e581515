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

/// Nanoseconds in a unit that fits: `4.10 ms`.
pub(crate) fn duration(nanoseconds: i128) -> String {
    let size = nanoseconds.unsigned_abs() as f64;
    let (divisor, unit) = match size {
        size if size < 1e3 => return format!("{nanoseconds} ns"),
        size if size < 1e6 => (1e3, "µs"),
        size if size < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let value = nanoseconds as f64 / divisor;
    let decimals = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {unit}")
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
        assert_eq!(bytes(512), "512 bytes");
        assert_eq!(bytes(12_345_678), "12.3 MB");
    }
}
