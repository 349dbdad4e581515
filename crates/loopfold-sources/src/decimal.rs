//! Converts decimal numbers to exact nanoseconds.
//!
//! A clock that counts nanoseconds since 1970 has 19 digits; a double keeps 15. So
//! times are converted digit by digit, in linear time.

/// The unit a time is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Unit {
    /// The unit of this name, in any of the usual spellings.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "s" | "sec" | "secs" | "second" | "seconds" => Some(Self::Seconds),
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Some(Self::Milliseconds),
            "us" | "µs" | "μs" | "usec" | "usecs" | "microsecond" | "microseconds" => {
                Some(Self::Microseconds)
            }
            "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" => Some(Self::Nanoseconds),
            _ => None,
        }
    }

    /// The unit in a heading such as `Start (ns)`, `duration_ms`, `time[us]`, `Time s`.
    pub(crate) fn in_heading(heading: &str) -> Option<Self> {
        split_heading(heading).map(|(_, unit)| unit)
    }

    /// The short name, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
        }
    }

    /// How many digits a number of this unit moves to become nanoseconds.
    fn digits(self) -> i64 {
        match self {
            Self::Seconds => 9,
            Self::Milliseconds => 6,
            Self::Microseconds => 3,
            Self::Nanoseconds => 0,
        }
    }
}

/// A heading that ends in a unit, as what comes before and the unit.
pub(crate) fn split_heading(heading: &str) -> Option<(&str, Unit)> {
    let heading = heading.trim();
    let bare = heading.strip_suffix([')', ']']).unwrap_or(heading);
    let (title, name) = bare.rsplit_once(['(', '[', '_', ' '])?;
    Some((title.trim_end(), Unit::named(name)?))
}

/// A decimal number of `unit`s in nanoseconds, rounded to the nearest. Blanks around
/// it, a sign, a fraction and an exponent are allowed. Returns `None` if it is not a number or
/// does not fit: ±292 years, without the one value that stands for an unknown time.
pub(crate) fn nanoseconds(text: &[u8], unit: Unit) -> Option<i64> {
    plain(text, unit).or_else(|| any(text, unit))
}

/// The common case, without a check per digit: neither sign nor exponent, so few digits
/// that nothing can overflow, and none to round away.
fn plain(text: &[u8], unit: Unit) -> Option<i64> {
    if text.len() > 18 {
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
    let missing = (unit.digits() as u32).checked_sub(decimals.unwrap_or(0))?;
    let has_digits = text.len() > usize::from(decimals.is_some());
    has_digits.then_some(value)?.checked_mul(10i64.pow(missing))
}

fn any(text: &[u8], unit: Unit) -> Option<i64> {
    let (negative, text) = split_sign(text.trim_ascii());
    let (mantissa, exponent) = split_exponent(text)?;
    let (whole, fraction) = split_at_point(mantissa);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let kept = (whole.len() as i64).saturating_add(exponent).saturating_add(unit.digits());
    let magnitude = leading(whole, fraction, kept)?;
    let value = i64::try_from(magnitude).ok()?;
    Some(if negative { -value } else { value })
}

/// The number that the first `kept` digits make, zeros appended where there are no
/// more, rounded by the digit that follows.
fn leading(whole: &[u8], fraction: &[u8], kept: i64) -> Option<u64> {
    let mut number = 0u64;
    let mut position = 0i64;
    for &digit in whole.iter().chain(fraction) {
        let digit = match digit {
            b'0'..=b'9' => u64::from(digit - b'0'),
            _ => return None,
        };
        if position < kept {
            number = number.checked_mul(10)?.checked_add(digit)?;
        } else if position == kept {
            number = number.checked_add(u64::from(digit >= 5))?;
        }
        position += 1;
    }
    while position < kept && number > 0 {
        number = number.checked_mul(10)?;
        position += 1;
    }
    Some(number)
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// What comes before the exponent, and the exponent (0 if there is none). One that is
/// out of all bounds is kept at a bound that is as much out of range.
fn split_exponent(text: &[u8]) -> Option<(&[u8], i64)> {
    let Some(at) = text.iter().position(|byte| matches!(byte, b'e' | b'E')) else { return Some((text, 0)) };
    let (negative, digits) = split_sign(&text[at + 1..]);
    if digits.is_empty() {
        return None;
    }
    let mut exponent = 0i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        exponent = exponent.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
    }
    Some((&text[..at], if negative { -exponent } else { exponent }))
}

fn split_at_point(mantissa: &[u8]) -> (&[u8], &[u8]) {
    match mantissa.iter().position(|&byte| byte == b'.') {
        Some(point) => (&mantissa[..point], &mantissa[point + 1..]),
        None => (mantissa, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, unit: Unit, expected: Option<i64>) {
        assert_eq!(nanoseconds(text.as_bytes(), unit), expected, "{text} {unit:?}");
    }

    #[test]
    fn times_are_exact() {
        use Unit::*;
        check("1700000000.123456789", Seconds, Some(1_700_000_000_123_456_789));
        check(" 12 ", Nanoseconds, Some(12));
        check("-0.5", Seconds, Some(-500_000_000));
        check("+.5", Milliseconds, Some(500_000));
        check("5.", Microseconds, Some(5_000));
        check("1e-9", Seconds, Some(1));
        check("1.5E3", Nanoseconds, Some(1_500));
        check("1e+2", Seconds, Some(100_000_000_000));
        check("00000000000000000000000000007", Seconds, Some(7_000_000_000));
        check("0e99999999999999999999", Seconds, Some(0));
    }

    #[test]
    fn what_is_finer_than_a_nanosecond_is_rounded() {
        use Unit::*;
        check("0.4999", Nanoseconds, Some(0));
        check("0.5", Nanoseconds, Some(1));
        check("-2.5", Nanoseconds, Some(-3));
        check("9.99999999999", Seconds, Some(10_000_000_000));
        check("0.09", Nanoseconds, Some(0));
        check("5e-1", Nanoseconds, Some(1));
        check("9e-2", Nanoseconds, Some(0));
        check("1e-99999999999999999999", Seconds, Some(0));
    }

    #[test]
    fn what_does_not_fit_or_is_no_number_is_nothing() {
        use Unit::*;
        check("9223372036854775807", Nanoseconds, Some(i64::MAX));
        check("9223372036854775807.5", Nanoseconds, None);
        check("9223372036854775808", Nanoseconds, None);
        check("-9223372036854775808", Nanoseconds, None);
        check("18446744073709551615.9", Nanoseconds, None);
        check("9223372037", Seconds, None);
        check("1e99999999999999999999", Nanoseconds, None);
        for text in
            ["", " ", "-", ".", "e5", "1e", "1e+", "1.2.3", "12ms", "0x10", "nan", "1,5", "--1", "1e5.0"]
        {
            check(text, Seconds, None);
        }
    }

    #[test]
    fn headings_have_their_unit() {
        for (heading, unit) in [
            ("Start (ns)", Some(Unit::Nanoseconds)),
            ("time[us]", Some(Unit::Microseconds)),
            ("duration_ms", Some(Unit::Milliseconds)),
            ("Time s", Some(Unit::Seconds)),
            ("wait (µs) ", Some(Unit::Microseconds)),
            ("status", None),
            ("ns", None),
            ("", None),
        ] {
            assert_eq!(Unit::in_heading(heading), unit, "{heading}");
        }
        assert_eq!(split_heading("Start (ns)").unwrap().0, "Start");
    }
}
