//! Times as tools print them, turned into whole nanoseconds without a detour through
//! floating point: a clock of nanoseconds since 1970 has more digits than an `f64`.
//!
//! Linear in the length of the text; allocates nothing.

/// Decimals of a second, for times in seconds.
pub(crate) const SECONDS: u32 = 9;
/// Decimals of a microsecond, for times in microseconds.
pub(crate) const MICROSECONDS: u32 = 3;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 24 * 60 * 60 * SECOND;

/// The nanoseconds of a decimal number in a unit of 10^`decimals_of_unit` nanoseconds
/// (9 for seconds, 3 for microseconds), rounded half away from zero. Nothing when the
/// text is no number or does not fit.
pub(crate) fn nanoseconds(text: &[u8], decimals_of_unit: u32) -> Option<i64> {
    plain_nanoseconds(text, decimals_of_unit).or_else(|| any_nanoseconds(text, decimals_of_unit))
}

/// The common case, without a check per digit: neither sign nor exponent, so few digits
/// that nothing can overflow, and none to round away.
fn plain_nanoseconds(text: &[u8], decimals_of_unit: u32) -> Option<i64> {
    if text.len() > 18 || decimals_of_unit > 9 {
        return None;
    }
    let mut value = 0i64;
    let mut decimals = None;
    for &byte in text {
        match byte {
            b'0'..=b'9' => {
                value = value * 10 + i64::from(byte - b'0');
                decimals = decimals.map(|decimals: u32| decimals + 1);
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            _ => return None,
        }
    }
    let missing = decimals_of_unit.checked_sub(decimals.unwrap_or(0))?;
    let has_digits = text.len() > usize::from(decimals.is_some());
    has_digits.then_some(value)?.checked_mul(10i64.pow(missing))
}

fn any_nanoseconds(text: &[u8], decimals_of_unit: u32) -> Option<i64> {
    let (negative, text) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let (text, exponent) = match text.iter().position(|&byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], small_integer(&text[at + 1..])?),
        None => (text, 0),
    };
    let (whole, fraction) = match text.iter().position(|&byte| byte == b'.') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    let value = scaled(whole, fraction, i64::from(decimals_of_unit) + exponent)?;
    Some(if negative { -value } else { value })
}

/// The number `whole.fraction` times 10^`decimals`, rounded.
fn scaled(whole: &[u8], fraction: &[u8], decimals: i64) -> Option<i64> {
    let written = (whole.len() + fraction.len()) as i64;
    if written == 0 {
        return None;
    }
    let kept = whole.len() as i64 + decimals;
    let mut value = 0i64;
    for (position, &byte) in (0i64..).zip(whole.iter().chain(fraction)) {
        let digit = digit(byte)?;
        if position < kept {
            value = value.checked_mul(10)?.checked_add(digit)?;
        } else if position == kept && digit >= 5 {
            value = value.checked_add(1)?;
        }
    }
    if value == 0 || kept <= written {
        return Some(value);
    }
    let missing = u32::try_from(kept - written).ok()?;
    value.checked_mul(10i64.checked_pow(missing)?)
}

fn digit(byte: u8) -> Option<i64> {
    byte.is_ascii_digit().then(|| i64::from(byte - b'0'))
}

/// An exponent. Far below what could overflow, far above what any clock needs.
fn small_integer(text: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.abs() < 1000).then_some(number)
}

/// The nanoseconds since midnight of `hh:mm:ss`, with or without a fraction.
pub(crate) fn time_of_day(text: &[u8]) -> Option<i64> {
    let (hours, rest) = split_number(text)?;
    let (minutes, seconds) = split_number(rest)?;
    if hours > 23 || minutes > 59 || seconds.first() == Some(&b'-') {
        return None;
    }
    let seconds = nanoseconds(seconds, SECONDS)?;
    // 60 for a leap second.
    (seconds < 61 * SECOND).then_some((hours * 60 + minutes) * 60 * SECOND + seconds)
}

/// A number of at most two digits and what follows the colon after it.
fn split_number(text: &[u8]) -> Option<(i64, &[u8])> {
    let colon = text.iter().take(3).position(|&byte| byte == b':')?;
    let mut number = 0;
    for &byte in text[..colon].iter() {
        number = number * 10 + digit(byte)?;
    }
    (colon > 0).then_some((number, &text[colon + 1..]))
}

/// The nanoseconds from 1970 to the midnight that begins `yyyy-mm-dd`.
pub(crate) fn date(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let mut parts = text.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1678..=2261).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have the leap day at their end.
    let shifted_year = if month > 2 { year } else { year - 1 };
    let era = shifted_year / 400;
    let year_of_era = shifted_year % 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (days - 719_468).checked_mul(DAY)
}

/// A clock that shows only the time of day: it runs on past midnight.
#[derive(Default)]
pub(crate) struct DayClock {
    last: i64,
    midnights: i64,
}

impl DayClock {
    /// The nanoseconds since the midnight before the first time seen.
    pub(crate) fn running(&mut self, time_of_day: i64) -> i64 {
        // Lines of several threads can be slightly out of order; half a day is not slight.
        if time_of_day < self.last - DAY / 2 {
            self.midnights += 1;
        }
        self.last = time_of_day;
        self.midnights.saturating_mul(DAY).saturating_add(time_of_day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_converted_exactly() {
        let cases: &[(&str, u32, Option<i64>)] = &[
            ("1790857026123456.789", 3, Some(1_790_857_026_123_456_789)),
            ("1412628972.779", 3, Some(1_412_628_972_779)),
            ("0.0004", 3, Some(0)),
            ("0.0005", 3, Some(1)),
            ("-0.0015", 3, Some(-2)),
            ("1794726653.718364", 9, Some(1_794_726_653_718_364_000)),
            ("12", 9, Some(12_000_000_000)),
            ("1.5e3", 3, Some(1_500_000)),
            ("15E-4", 3, Some(2)),
            ("4e-5", 3, Some(0)),
            ("0e999", 3, Some(0)),
            (".5", 3, Some(500)),
            ("5.", 3, Some(5000)),
            ("9223372036854775.807", 3, Some(i64::MAX)),
            ("9223372036854775.808", 3, None),
            ("9223372036854775.8075", 3, None),
            ("99999999999999999999", 3, None),
            ("1e30", 3, None),
            ("1e99999999999", 3, None),
            ("", 3, None),
            ("-", 3, None),
            (".", 3, None),
            ("1.2.3", 3, None),
            ("0x10", 3, None),
            ("nan", 3, None),
        ];
        for &(text, decimals, expected) in cases {
            assert_eq!(nanoseconds(text.as_bytes(), decimals), expected, "{text}");
        }
    }

    #[test]
    fn times_of_day_run_on_past_midnight() {
        assert_eq!(time_of_day(b"00:00:01.5"), Some(1_500_000_000));
        assert_eq!(time_of_day(b"23:59:59"), Some(86_399_000_000_000));
        for bad in ["24:00:00", "1:60:00", "1:2", "aa:00:00", ":1:2", "1:2:-3", "1:2:77"] {
            assert_eq!(time_of_day(bad.as_bytes()), None, "{bad}");
        }
        let mut clock = DayClock::default();
        assert_eq!(clock.running(86_399_000_000_000), 86_399_000_000_000);
        assert_eq!(clock.running(1), 86_400_000_000_001);
    }

    #[test]
    fn dates_count_from_1970() {
        assert_eq!(date(b"1970-01-01"), Some(0));
        assert_eq!(date(b"2000-03-01"), Some(951_868_800 * SECOND));
        assert_eq!(date(b"2024-02-29"), Some(1_709_164_800 * SECOND));
        for bad in ["1970-13-01", "9999-01-01", "1970-01", "x"] {
            assert_eq!(date(bad.as_bytes()), None, "{bad}");
        }
    }
}
