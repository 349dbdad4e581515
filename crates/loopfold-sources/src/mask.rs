//! Replaces what changes from line to line in a log by placeholders, so that two lines of the
//! same statement become the same event.
//!
//! The scanner goes over a line once, word by word (letters, digits and bytes beyond
//! ASCII make a word). Only a word that begins like something it knows is scanned
//! again. No allocation but for the output; about 4 ns a byte.
//!
//! | placeholder | stands for |
//! | --- | --- |
//! | `<time>` | dates and clock times of the usual kinds, with or without a zone |
//! | `<uuid>` | UUIDs |
//! | `<addr>` | IPv4, IPv6 and MAC addresses; a port stays as `:<num>` |
//! | `<hex>` | `0x…`, and words of six or more hexadecimal digits with both digits and letters |
//! | `<path>` | absolute paths, also of Windows |
//! | `<num>` | decimal numbers with sign, fraction and exponent; a unit behind it stays |
//!
//! Digits within a word that begins with a letter stay: `eth0`, `sha256`, `utf8`.

use std::ops::RangeInclusive;

/// Writes placeholders for times, addresses, numbers and the like.
///
/// ```
/// let mut out = Vec::new();
/// loopfold_sources::Mask.apply(b"12:00:01 GET /a/b took 12ms", &mut out);
/// assert_eq!(out, b"<time> GET <path> took <num>ms");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Mask;

impl Mask {
    /// Appends the line to `out`, with placeholders. What is only there to align columns
    /// goes: all but one of the blanks before a placeholder, and a carriage return.
    pub fn apply(&self, line: &[u8], out: &mut Vec<u8>) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Scanner { line, at: 0, copied: 0, out }.run();
    }
}

const DIGIT: u8 = 1;
/// `a` to `f`.
const HEX_LETTER: u8 = 2;
const LETTER: u8 = 4;
const WORD: u8 = DIGIT | HEX_LETTER | LETTER;
/// Not part of a word, but something may begin here: a path, a sign, `::1`.
const MARK: u8 = 8;

const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        class[byte] = match byte as u8 {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'f' | b'A'..=b'F' => HEX_LETTER,
            b'g'..=b'z' | b'G'..=b'Z' | 0x80.. => LETTER,
            b'/' | b'+' | b'-' | b':' => MARK,
            _ => 0,
        };
        byte += 1;
    }
    class
};

fn class_of(byte: u8) -> u8 {
    CLASS[usize::from(byte)]
}

fn is_word(byte: u8) -> bool {
    class_of(byte) & WORD != 0
}

fn is_hex(byte: u8) -> bool {
    class_of(byte) & (DIGIT | HEX_LETTER) != 0
}

struct Scanner<'a> {
    line: &'a [u8],
    at: usize,
    /// Up to here the line is in `out`.
    copied: usize,
    out: &'a mut Vec<u8>,
}

impl Scanner<'_> {
    fn run(mut self) {
        while let Some(&byte) = self.line.get(self.at) {
            match class_of(byte) {
                0 => self.at += 1,
                MARK => self.mark(byte),
                _ => self.word(),
            }
        }
        self.out.extend_from_slice(&self.line[self.copied..]);
    }

    /// Writes a placeholder for the line from `start` to `end` and continues there.
    fn replace(&mut self, start: usize, end: usize, placeholder: &str) {
        let mut before = &self.line[self.copied..start];
        while let [rest @ .., b' ', b' '] = before {
            before = &before[..rest.len() + 1];
        }
        self.out.extend_from_slice(before);
        self.out.extend_from_slice(placeholder.as_bytes());
        (self.at, self.copied) = (end, end);
    }

    fn before(&self) -> Option<u8> {
        self.at.checked_sub(1).map(|before| self.line[before])
    }

    /// At a byte outside of words that may begin something.
    fn mark(&mut self, byte: u8) {
        let rest = &self.line[self.at..];
        let found = match byte {
            b'/' if may_precede_path(self.before()) => path(rest).map(|length| ("<path>", length)),
            b':' if self.before().is_none_or(|before| !is_word(before) && before != b':') => {
                ipv6(rest).map(|length| ("<addr>", length))
            }
            b'+' | b'-' if self.is_sign() => return self.number(self.at, self.at + 1),
            _ => None,
        };
        match found {
            Some((placeholder, length)) => self.replace(self.at, self.at + length, placeholder),
            None => self.at += 1,
        }
    }

    /// Whether the `+` or `-` here belongs to a number, and is not a hyphen before a
    /// number, a date or an address.
    fn is_sign(&self) -> bool {
        let rest = &self.line[self.at + 1..];
        rest.first().is_some_and(u8::is_ascii_digit)
            && self.before().is_none_or(|before| !is_word(before) && !b"+-.)]}>".contains(&before))
            && recognise(rest, measure_word(rest)).is_none()
    }

    /// At the beginning of a word.
    fn word(&mut self) {
        let start = self.at;
        let rest = &self.line[start..];
        let word = measure_word(rest);
        if let Some((placeholder, length)) = recognise(rest, word) {
            return self.replace(start, start + length, placeholder);
        }
        if start == 0
            && let Some(length) = klog_time(rest, word)
        {
            // The letter before the date is the severity, which stays.
            return self.replace(1, 1 + length, "<time>");
        }
        if rest[0].is_ascii_digit() {
            return self.number(start, start);
        }
        self.at = start + word.length;
    }

    /// Masks the number whose sign is at `start` and whose digits begin at `digits`,
    /// and any further digits in the same word: `1m30s` is `<num>m<num>s`.
    fn number(&mut self, start: usize, digits: usize) {
        self.replace(start, digits + number_length(&self.line[digits..]), "<num>");
        while let Some(&byte) = self.line.get(self.at) {
            match class_of(byte) {
                DIGIT => self.replace(self.at, self.at + number_length(&self.line[self.at..]), "<num>"),
                HEX_LETTER | LETTER => self.at += 1,
                _ => return,
            }
        }
    }
}

/// A word: how long it is and of what it consists.
#[derive(Clone, Copy)]
struct Word {
    length: usize,
    classes: u8,
}

fn measure_word(rest: &[u8]) -> Word {
    let mut classes = 0;
    let mut length = 0;
    for &byte in rest {
        let class = class_of(byte);
        if class & WORD == 0 {
            break;
        }
        classes |= class;
        length += 1;
    }
    Word { length, classes }
}

/// What begins with this word, other than a plain number: its placeholder and length.
/// The word and what follows it rule out nearly everything at once.
fn recognise(rest: &[u8], word: Word) -> Option<(&'static str, usize)> {
    let after = rest.get(word.length).copied();
    if word.classes & LETTER == 0 {
        if let (Some(b'-'), 8) = (after, word.length)
            && let Some(length) = uuid(rest)
        {
            return Some(("<uuid>", length));
        }
        let address = match (after, word.length) {
            (Some(b':'), 1..=4) => mac(rest).or_else(|| ipv6(rest)),
            (Some(b'-'), 2) => mac(rest),
            (Some(b'.'), 1..=3) if word.classes == DIGIT => ipv4(rest),
            _ => None,
        };
        if let Some(length) = address {
            return Some(("<addr>", length));
        }
        if word.length >= 6 && word.classes == DIGIT | HEX_LETTER {
            return Some(("<hex>", word.length));
        }
    }
    if rest.first().is_some_and(u8::is_ascii_digit) {
        if rest.starts_with(b"0x") || rest.starts_with(b"0X") {
            let digits = rest[2..].iter().take_while(|&&byte| is_hex(byte)).count();
            return (digits > 0 && digits + 2 == word.length).then_some(("<hex>", word.length));
        }
        let may_be_time =
            matches!(after, Some(b':' | b'-' | b'/' | b'.' | b' ')) && word.length <= 4 || word.length >= 15;
        if may_be_time {
            return time(rest).map(|length| ("<time>", length));
        }
        return None;
    }
    match (word.length, after) {
        (3, Some(b' ' | b',')) => time(rest).map(|length| ("<time>", length)),
        (1, Some(b':')) => windows_path(rest).map(|length| ("<path>", length)),
        _ => None,
    }
}

/// How many bytes the number without sign takes.
fn number_length(rest: &[u8]) -> usize {
    let digits = |from: usize| rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut length = digits(0);
    if rest.get(length) == Some(&b'.') {
        let fraction = digits(length + 1);
        length += if fraction > 0 { 1 + fraction } else { 0 };
    }
    if matches!(rest.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(length + 1), Some(b'+' | b'-')));
        if rest.len() > length + 1 + sign {
            let exponent = digits(length + 1 + sign);
            length += if exponent > 0 { 1 + sign + exponent } else { 0 };
        }
    }
    length
}

fn may_precede_path(before: Option<u8>) -> bool {
    before.is_none_or(|before| before.is_ascii_whitespace() || b"\"'`=([{<,;:|".contains(&before))
}

/// An absolute path, up to a blank, a quote or a bracket; a colon ends it too, since
/// a line number or another path may follow. A full stop at its end is of the sentence.
fn path(rest: &[u8]) -> Option<usize> {
    let first = *rest.get(1)?;
    if !is_word(first) && !b"_.-~%@+".contains(&first) {
        return None;
    }
    path_end(rest, 1)
}

fn windows_path(rest: &[u8]) -> Option<usize> {
    (rest.get(2) == Some(&b'\\') && rest[0].is_ascii_alphabetic()).then(|| path_end(rest, 3))?
}

fn path_end(rest: &[u8], from: usize) -> Option<usize> {
    let stops = |byte: u8| byte <= b' ' || b"\"'`()[]{}<>,;:|".contains(&byte);
    let mut end = from + rest[from..].iter().take_while(|&&byte| !stops(byte)).count();
    while end > from && matches!(rest[end - 1], b'.' | b'!' | b'?') {
        end -= 1;
    }
    (end > 1).then_some(end)
}

/// The part of a line not yet recognised; a copy of it allows backtracking.
#[derive(Clone, Copy)]
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// Takes one of these bytes.
    fn any(&mut self, of: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        of.contains(&first).then(|| {
            self.0 = rest;
            first
        })
    }

    /// Takes all bytes of a kind; their number must be in range.
    fn run(&mut self, kind: impl Fn(u8) -> bool, lengths: RangeInclusive<usize>) -> Option<&'a [u8]> {
        let longest = self.0.len().min(lengths.end() + 1);
        let length = self.0[..longest].iter().take_while(|&&byte| kind(byte)).count();
        lengths.contains(&length).then(|| {
            let (run, rest) = self.0.split_at(length);
            self.0 = rest;
            run
        })
    }

    /// Takes a decimal number with this many digits.
    fn number(&mut self, lengths: RangeInclusive<usize>) -> Option<u64> {
        let digits = self.run(|byte| byte.is_ascii_digit(), lengths)?;
        Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
    }

    fn blanks(&mut self) -> Option<()> {
        self.run(|byte| byte == b' ', 1..=2).map(|_| ())
    }

    /// Nothing of the word is left.
    fn at_boundary(self) -> bool {
        self.0.first().is_none_or(|&byte| !is_word(byte))
    }

    /// How much of `whole` was taken, if that is whole words.
    fn taken_from(self, whole: &[u8]) -> Option<usize> {
        self.at_boundary().then_some(whole.len() - self.0.len())
    }
}

fn uuid(whole: &[u8]) -> Option<usize> {
    let mut rest = Rest(whole);
    rest.run(is_hex, 8..=8)?;
    for length in [4, 4, 4, 12] {
        rest.any(b"-")?;
        rest.run(is_hex, length..=length)?;
    }
    rest.taken_from(whole)
}

fn mac(whole: &[u8]) -> Option<usize> {
    let mut rest = Rest(whole);
    rest.run(is_hex, 2..=2)?;
    let separator = [rest.any(b":-")?];
    rest.run(is_hex, 2..=2)?;
    for _ in 0..4 {
        rest.any(&separator)?;
        rest.run(is_hex, 2..=2)?;
    }
    let length = rest.taken_from(whole)?;
    let goes_on = rest.any(&separator).is_some() && rest.0.first().is_some_and(|&byte| is_hex(byte));
    (!goes_on).then_some(length)
}

fn ipv4(whole: &[u8]) -> Option<usize> {
    let mut rest = Rest(whole);
    for part in 0..4 {
        if part > 0 {
            rest.any(b".")?;
        }
        rest.number(1..=3).filter(|&number| number < 256)?;
    }
    let length = rest.taken_from(whole)?;
    let goes_on = rest.any(b".").is_some() && rest.0.first().is_some_and(u8::is_ascii_digit);
    (!goes_on).then_some(length)
}

/// Eight groups, or fewer with one `::`. At least one digit, so that `a::b` can be a
/// name of a program.
fn ipv6(whole: &[u8]) -> Option<usize> {
    let mut rest = Rest(whole);
    let (mut groups, mut shortened, mut has_digit) = (0, false, false);
    if whole.starts_with(b"::") {
        shortened = true;
        rest = Rest(&whole[2..]);
    }
    loop {
        let start = rest;
        let Some(group) = rest.run(is_hex, 1..=4) else { break };
        if rest.0.first() == Some(&b'.')
            && let Some(length) = ipv4(start.0)
        {
            rest = Rest(&start.0[length..]);
            groups += 2;
            has_digit = true;
            break;
        }
        groups += 1;
        has_digit |= group.iter().any(u8::is_ascii_digit);
        match rest.0 {
            [b':', b':', ..] if !shortened => {
                shortened = true;
                rest = Rest(&rest.0[2..]);
            }
            // What is longer than a group is not of the address but a port.
            [b':', further @ ..] if Rest(further).run(is_hex, 1..=4).is_some() => rest = Rest(further),
            _ => break,
        }
    }
    let complete = if shortened { (1..8).contains(&groups) } else { groups == 8 };
    let goes_on = rest.0.starts_with(b"::");
    if complete && has_digit && !goes_on { rest.taken_from(whole) } else { None }
}

/// A date, a clock time, or both.
fn time(whole: &[u8]) -> Option<usize> {
    let end = date_and_clock(Rest(whole)).or_else(|| {
        let mut rest = Rest(whole);
        clock(&mut rest)?;
        Some(rest)
    })?;
    end.taken_from(whole)
}

/// The kubernetes log's `I0102 15:04:05.123456`; the length counts from the date.
fn klog_time(whole: &[u8], word: Word) -> Option<usize> {
    if word.length != 5 || !b"IWEFD".contains(&whole[0]) {
        return None;
    }
    let mut rest = Rest(&whole[1..]);
    rest.number(4..=4)?;
    rest.any(b" ")?;
    clock(&mut rest)?;
    rest.taken_from(&whole[1..])
}

fn date_and_clock(mut rest: Rest<'_>) -> Option<Rest<'_>> {
    let date = [iso_date, day_first_date, month_name_date].iter().find_map(|date| {
        let mut after = rest;
        date(&mut after).map(|sure| (after, sure))
    });
    let (after_date, sure) = date.or_else(|| {
        weekday(&mut rest)?;
        let mut after = rest;
        day_first_date(&mut after)
            .or_else(|| {
                after = rest;
                month_name_date(&mut after)
            })
            .map(|sure| (after, sure))
    })?;
    let mut after_clock = after_date;
    if between_date_and_clock(&mut after_clock).and_then(|()| clock(&mut after_clock)).is_some() {
        return Some(or_with_year(after_clock));
    }
    sure.then_some(after_date)
}

fn between_date_and_clock(rest: &mut Rest<'_>) -> Option<()> {
    match rest.0 {
        [b',', b' ', ..] => rest.0 = &rest.0[2..],
        [b'T' | b't' | b' ' | b':' | b'_' | b'-', ..] => rest.0 = &rest.0[1..],
        _ => return None,
    }
    Some(())
}

/// `Oct 11 14:32:52 2000`: a year behind the clock belongs to it.
fn or_with_year(rest: Rest<'_>) -> Rest<'_> {
    let mut longer = rest;
    let year = longer.any(b" ").and_then(|_| longer.number(4..=4));
    let ends = longer.at_boundary() && !matches!(longer.0, [b'.' | b'-' | b':' | b'/', b'0'..=b'9', ..]);
    if year.is_some_and(|year| (1970..2200).contains(&year)) && ends { longer } else { rest }
}

/// `2024-01-02`, `2024/01/02`, `2024.01.02`, `20240102` (before a clock), `17/06/09`
/// (before a clock). Like the other kinds of dates it gives whether it is sure even
/// without a clock.
fn iso_date(rest: &mut Rest<'_>) -> Option<bool> {
    let mut compact = *rest;
    if let Some(date) = compact.number(8..=8) {
        *rest = compact;
        return (is_month(date / 100 % 100) && is_day(date % 100)).then_some(false);
    }
    let mut short = *rest;
    let year_is_long = rest.number(4..=4).is_some();
    if !year_is_long {
        short.number(2..=2)?;
        *rest = short;
    }
    let separator = [rest.any(if year_is_long { b"-/." } else { b"/" })?];
    rest.number(2..=2).filter(|&month| is_month(month))?;
    rest.any(&separator)?;
    rest.number(2..=2).filter(|&day| is_day(day))?;
    Some(year_is_long)
}

/// `02/01/2024`, `02.01.2024`, `02/Jan/2024`, `2 Jan 2024`, `02-Jan-2024`.
fn day_first_date(rest: &mut Rest<'_>) -> Option<bool> {
    rest.number(1..=2).filter(|&day| is_day(day))?;
    let separator = [rest.any(b"/.- ")?];
    if month_name(rest).is_none() {
        if separator == *b" " {
            return None;
        }
        // Americans put the month first, so either may be up to 31.
        rest.number(2..=2).filter(|&day| is_day(day))?;
    }
    rest.any(&separator)?;
    rest.number(4..=4)?;
    Some(true)
}

/// `Jan  2`, `Jan 2 2024`, `Jan 2, 2024`: sure only with a year.
fn month_name_date(rest: &mut Rest<'_>) -> Option<bool> {
    month_name(rest)?;
    rest.blanks()?;
    rest.number(1..=2).filter(|&day| is_day(day))?;
    let mut longer = *rest;
    longer.any(b",");
    if longer.any(b" ").is_some() && longer.number(4..=4).is_some() && longer.at_boundary() {
        *rest = longer;
        return Some(true);
    }
    Some(false)
}

fn month_name(rest: &mut Rest<'_>) -> Option<()> {
    let name = rest.0.first_chunk::<3>()?;
    let is_month = matches!(
        name,
        b"Jan"
            | b"Feb"
            | b"Mar"
            | b"Apr"
            | b"May"
            | b"Jun"
            | b"Jul"
            | b"Aug"
            | b"Sep"
            | b"Oct"
            | b"Nov"
            | b"Dec"
    );
    is_month.then(|| rest.0 = &rest.0[3..])
}

fn weekday(rest: &mut Rest<'_>) -> Option<()> {
    let name = rest.0.first_chunk::<3>()?;
    if !matches!(name, b"Mon" | b"Tue" | b"Wed" | b"Thu" | b"Fri" | b"Sat" | b"Sun") {
        return None;
    }
    rest.0 = &rest.0[3..];
    rest.any(b",");
    rest.blanks()
}

fn is_month(number: u64) -> bool {
    (1..=12).contains(&number)
}

fn is_day(number: u64) -> bool {
    (1..=31).contains(&number)
}

/// `03:04:05` with fraction and zone if they are there, or `030405` behind a `T`.
fn clock(rest: &mut Rest<'_>) -> Option<()> {
    let mut compact = *rest;
    if compact.number(6..=6).is_some() {
        *rest = compact;
    } else {
        rest.number(1..=2).filter(|&hour| hour <= 24)?;
        rest.any(b":")?;
        rest.number(2..=2).filter(|&minute| minute < 60)?;
        rest.any(b":")?;
        rest.number(2..=2).filter(|&second| second <= 60)?;
    }
    fraction(rest);
    zone(rest);
    let goes_on = matches!(rest.0, [b':', next, ..] if is_hex(*next));
    (rest.at_boundary() && !goes_on).then_some(())
}

fn fraction(rest: &mut Rest<'_>) {
    let mut longer = *rest;
    let is_there = longer.any(b".,").and_then(|_| longer.number(1..=9)).is_some();
    // In `10:11:12,13:14:15` another clock follows.
    if is_there && !matches!(longer.0, [b':', b'0'..=b'9', ..]) {
        *rest = longer;
    }
}

fn zone(rest: &mut Rest<'_>) {
    let mut longer = *rest;
    if longer.any(b"Zz").is_none() {
        longer.any(b" ");
        if longer.any(b"+-").is_none() {
            return;
        }
        if longer.number(4..=4).is_none() {
            let hours = longer.number(2..=2);
            let minutes = longer.any(b":").and_then(|_| longer.number(2..=2));
            if hours.is_none() || minutes.is_none() {
                return;
            }
        }
    }
    if longer.at_boundary() {
        *rest = longer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let mut out = Vec::new();
        Mask.apply(line.as_bytes(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{line}");
    }

    #[test]
    fn lines_of_real_logs() {
        check(
            "Oct 11 22:14:15 mymachine su[230]: 'su root' failed for lonvick on /dev/pts/8",
            "<time> mymachine su[<num>]: 'su root' failed for lonvick on <path>",
        );
        check(
            "Jan  2 03:04:05 host sshd[1234]: Accepted publickey for git from 192.168.0.17 port 50022 ssh2",
            "<time> host sshd[<num>]: Accepted publickey for git from <addr> port <num> ssh2",
        );
        check(
            "2024-05-06T07:08:09.123456+02:00 host systemd[1]: Started Session 12 of user root.",
            "<time> host systemd[<num>]: Started Session <num> of user root.",
        );
        check(
            r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif?x=1 HTTP/1.0" 200 2326"#,
            r#"<addr> - frank [<time>] "GET <path> HTTP/<num>" <num> <num>"#,
        );
        check(
            "2023/01/31 10:00:59 [error] 29#29: *1 open() \"/usr/share/nginx/html/x\" failed (2: No such file or directory), client: 172.17.0.1, server: localhost",
            "<time> [error] <num>#<num>: *<num> open() \"<path>\" failed (<num>: No such file or directory), client: <addr>, server: localhost",
        );
        check(
            "[Wed Oct 11 14:32:52.123456 2000] [core:error] [pid 35708:tid 4328636416] [client ::1:55012] AH00128: File does not exist: /srv/www/a.html",
            "[<time>] [core:error] [pid <num>:tid <num>] [client <addr>:<num>] AH00128: File does not exist: <path>",
        );
        check(
            "2015-10-18 18:01:47,978 INFO [main] org.apache.hadoop.mapreduce.v2.app.MRAppMaster: Created MRAppMaster for application appattempt_1445144423722_0020_000001",
            "<time> INFO [main] org.apache.hadoop.mapreduce.v2.app.MRAppMaster: Created MRAppMaster for application appattempt_<num>_<num>_<num>",
        );
        check(
            "17/06/09 20:10:40 INFO storage.BlockManager: Found block rdd_2_0 locally",
            "<time> INFO storage.BlockManager: Found block rdd_<num>_<num> locally",
        );
        check(
            "081109 203615 148 INFO dfs.DataNode$PacketResponder: PacketResponder 1 for block blk_-38865049064139660 terminating",
            "<num> <num> <num> INFO dfs.DataNode$PacketResponder: PacketResponder <num> for block blk_<num> terminating",
        );
        check(
            "I0102 15:04:05.123456   12345 server.go:123] Serving on [::1]:8080 trace=4bf92f3577b34da6a3ce929d0e0e4736",
            "I<time> <num> server.go:<num>] Serving on [<addr>]:<num> trace=<hex>",
        );
        check(
            "2024-01-02 03:04:05,678 - root - WARNING - request 550e8400-e29b-41d4-a716-446655440000 took 1.5e-3s (12ms, -3.5%)",
            "<time> - root - WARNING - request <uuid> took <num>s (<num>ms, <num>%)",
        );
        check(
            "INFO:root:worker-12 pool-1-thread-3 done",
            "INFO:root:worker-<num> pool-<num>-thread-<num> done",
        );
        check(
            "[    1.234567] igb 0000:00:19.0 eth0: MAC 00:1a:2b:3c:4d:5e at 0xffff88003e5a0000",
            "[ <num>] igb <num>:<num>:<num> eth0: MAC <addr> at <hex>",
        );
        check(
            "Exception in thread \"main\" at com.acme.Foo.bar(Foo.java:42) C:\\Users\\x\\a.txt: missing",
            "Exception in thread \"main\" at com.acme.Foo.bar(Foo.java:<num>) <path>: missing",
        );
        check("PATH=/usr/bin:/bin see /etc/passwd.", "PATH=<path>:<path> see <path>.");
        check("GET http://example.org:80/a/12 / a/b", "GET http://example.org:<num>/a/<num> / a/b");
    }

    #[test]
    fn times() {
        for time in [
            "12:34:56",
            "1:02:03",
            "12:34:56.789",
            "12:34:56,789",
            "2024-01-02",
            "2024-01-02 03:04:05",
            "2024-01-02T03:04:05Z",
            "2024-01-02T03:04:05.123456789+0530",
            "2024-01-02 03:04:05 +0000",
            "2024.01.02 03:04:05",
            "20240102T030405Z",
            "20240102T030405",
            "02.01.2024 03:04:05",
            "01/02/2024",
            "02-Jan-2024 03:04:05.678",
            "2 Jan 2024 03:04:05",
            "Tue, 02 Jan 2024 03:04:05 +0000",
            "Tue Jan  2 03:04:05 2024",
            "Jan 2, 2024",
            "Jan 12 03:04:05",
        ] {
            check(time, "<time>");
            check(&format!("a [{time}] b"), "a [<time>] b");
            check(&format!("{time}: x"), "<time>: x");
        }
        check("12:34", "<num>:<num>");
        check("12:34:99", "<num>:<num>:<num>");
        check("2024-13-01", "<num>-<num>-<num>");
        check("Jan went home, May 5 too", "Jan went home, May <num> too");
        check("10:11:12,13:14:15", "<time>,<time>");
        check("17/06/09", "<num>/<num>/<num>");
        check("20240102", "<num>");
    }

    #[test]
    fn addresses() {
        check("10.0.0.1:80 10.0.0.256 1.2.3.4.5", "<addr>:<num> <num>.<num> <num>.<num>.<num>");
        for address in [
            "fe80::1",
            "::1",
            "2001:db8::ff00:42:8329",
            "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
            "::ffff:1.2.3.4",
            "1::",
            "00:1a:2b:3c:4d:5e",
            "00-1A-2B-3C-4D-5E",
        ] {
            check(address, "<addr>");
            check(&format!("from {address}: gone"), "from <addr>: gone");
        }
        check("std::f64::abs a::b ::b", "std::f64::abs a::b ::b");
        check(":: ::: :", ":: ::: :");
    }

    #[test]
    fn numbers_and_hexadecimal_words() {
        check("0 -1 +2 3.5 -1e9 .5 7.", "<num> <num> <num> <num> <num> .<num> <num>.");
        check("a-1 a=-1 (-1) 3-4 --5", "a-<num> a=<num> (<num>) <num>-<num> --<num>");
        check("1m30s 2h5m10.5s 64bit 3rd", "<num>m<num>s <num>h<num>m<num>s <num>bit <num>rd");
        check("0x1F 0X0 0x 0xzz", "<hex> <hex> <num>x <num>xzz");
        check("deadbeef dead42 3f2a facade 12345e", "deadbeef <hex> <num>f<num>a facade <hex>");
        check("x86 utf8 é1 eth0", "x86 utf8 é1 eth0");
        check("1e 1e+ 1e+x", "<num>e <num>e+ <num>e+x");
        check("", "");
    }

    #[test]
    fn any_bytes_are_scanned_without_panic() {
        let pieces: [&[u8]; 24] = [
            b"1",
            b"12",
            b"2024",
            b"-",
            b":",
            b"::",
            b"/",
            b".",
            b" ",
            b"Jan",
            b"Tue",
            b",",
            b"T",
            b"Z",
            b"+",
            b"e",
            b"0x",
            b"af",
            b"C:\\",
            b"\xff",
            b"\0",
            b"I0102",
            b"12:34:56",
            b"00000000",
        ];
        let mut state = 7u64;
        let mut out = Vec::new();
        for _ in 0..200_000 {
            let mut line = Vec::new();
            for _ in 0..8 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                line.extend_from_slice(pieces[(state >> 33) as usize % pieces.len()]);
            }
            out.clear();
            Mask.apply(&line, &mut out);
        }
    }
}
