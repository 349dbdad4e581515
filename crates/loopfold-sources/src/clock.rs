//! Wall clocks and dates as tools print them, in whole nanoseconds.
//!
//! Linear in the length of the text; allocates nothing.

use crate::decimal::{Unit, nanoseconds};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 24 * 60 * 60 * SECOND;

fn digit(byte: u8) -> Option<i64> {
    byte.is_ascii_digit().then(|| i64::from(byte - b'0'))
}

/// The nanoseconds since midnight of `hh:mm:ss`, with or without a fraction.
pub(crate) fn time_of_day(text: &[u8]) -> Option<i64> {
    let (hours, rest) = split_number(text)?;
    let (minutes, seconds) = split_number(rest)?;
    if hours > 23 || minutes > 59 || seconds.first() == Some(&b'-') {
        return None;
    }
    let seconds = nanoseconds(seconds, Unit::Seconds)?;
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
