//! Reads tables: a row is an event, and the user names the columns that make it.
//!
//! Tables differ in everything, so only a row of headings is assumed:
//! the separator is the one that the headings use, columns are chosen by heading or
//! number, and the unit of a time is read from its heading where that has one.
//!
//! Linear time: that of the csv crate and one pass over each cell that is used. Memory: one
//! row; rows can have any length, headings at most 1 MB.

use crate::decimal::{Unit, nanoseconds, split_heading};
use crate::streams::Streams;
use crate::{Context, Description, Error, Fit, Options, Result, Source, SourceOption, Takes};
use csv::ByteRecord;
use loopfold::StreamId;
use loopfold::trace::{Event, Field, Timing, Value};
use std::fmt::Display;
use std::io::{BufRead, Cursor, Read};

/// More is no row of headings.
const LONGEST_HEADINGS: usize = 1 << 20;

/// A message lists no more columns than this.
const COLUMNS_LISTED: usize = 40;

/// A message shows no more of a cell than this.
const CELL_SHOWN: usize = 40;

const OPTIONS: &[SourceOption] = &[
    SourceOption::new(
        "event",
        "Make the event of these columns, by heading or number; the first one is its name",
        Takes::List("COLUMN", |options, column| options.event.push(column)),
    )
    .implying_format(),
    SourceOption::new(
        "stream-by",
        "Name the stream by this column",
        Takes::Text("COLUMN", |options, column| options.stream_by = Some(column)),
    ),
    SourceOption::new(
        "start",
        "Read the start of each event from this column",
        Takes::Text("COLUMN", |options, column| options.start = Some(column)),
    )
    .implying_format(),
    SourceOption::new(
        "duration",
        "Read the duration of each event from this column",
        Takes::Text("COLUMN", |options, column| options.duration = Some(column)),
    )
    .implying_format(),
    SourceOption::new(
        "metric",
        "Read metrics from these columns",
        Takes::List("COLUMN", |options, column| options.metric.push(column)),
    )
    .implying_format(),
    SourceOption::new(
        "time-unit",
        "Set the unit of times whose heading has none [default: s]",
        Takes::OneOf("UNIT", &["s", "ms", "us", "ns"], |options, unit| options.time_unit = Some(unit)),
    ),
];

/// The source.
pub(crate) struct Csv;

impl Source for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn about(&self) -> &'static str {
        "a table with headings, every row an event"
    }

    /// A table needs columns, so it is never guessed from its content.
    fn fields(&self) -> &'static [&'static str] {
        &["*"]
    }

    fn description(&self) -> Description {
        Description {
            event: "the columns of --event",
            stream: "the column of --stream-by, or the input",
            times: "--start, --duration",
            example: "loopfold loops table.csv --event name --stream-by thread --start time --duration dur",
        }
    }

    fn options(&self) -> &'static [SourceOption] {
        OPTIONS
    }

    fn fits(&self, _head: &[u8]) -> Fit {
        Fit::No
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let head = read_headings(input)?;
        let crlf = head.ends_with(b"\r\n");
        let mut rows = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter_of(&head))
            .from_reader(Cursor::new(head).chain(input));
        let mut row = ByteRecord::new();
        rows.read_byte_record(&mut row).map_err(from_csv)?;
        let headings = Headings::new(&row);
        let columns = Columns::choose(&headings, context)?;
        let mut streams = Streams::default();
        // Opened even if no row follows.
        let only = if columns.stream.is_none() { Some(context.only_stream()?) } else { None };
        while rows.read_byte_record(&mut row).map_err(from_csv)? {
            let place = Place { row: &row, line_after: rows.position().line(), crlf };
            if row.len() == headings.0.len() {
                let stream = match (only, columns.stream) {
                    (None, Some(column)) => streams.named(row[column].trim_ascii(), context)?,
                    (Some(only), _) => only,
                    (None, None) => context.only_stream()?,
                };
                columns.push(place, stream, context)?;
            } else {
                context.damaged(
                    place,
                    format_args!(
                        "expected {} cells, as there are headings, found {}",
                        headings.0.len(),
                        row.len()
                    ),
                )?;
            }
        }
        Ok(())
    }
}

fn from_csv(error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        other => Error::damaged("table", format_args!("{other:?}")),
    }
}

/// Where a row begins; worked out only when it is shown.
#[derive(Clone, Copy)]
struct Place<'a> {
    row: &'a ByteRecord,
    /// The line that the reader is in after the row.
    line_after: u64,
    /// Whether lines end in `\r\n`, where the reader takes the `\n` with the next row.
    crlf: bool,
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The reader counts blank lines before a row to the row, so go back from its
        // end; but the last row of a file may lack the newline.
        let reader_began = self.row.position().map_or(0, csv::Position::line) + u64::from(self.crlf);
        let inside = memchr::memchr_iter(b'\n', self.row.as_slice()).count() as u64;
        let back_from_end = self.line_after.saturating_sub(inside + u64::from(!self.crlf));
        write!(f, "line {}", reader_began.max(back_from_end))
    }
}

/// The first row as bytes, without a byte order mark. A newline in quotes does not end it.
fn read_headings(input: &mut dyn BufRead) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut limited = input.take(LONGEST_HEADINGS as u64);
    while limited.read_until(b'\n', &mut head)? > 0 {
        let quotes = head.iter().filter(|&&byte| byte == b'"').count();
        let is_blank = head.trim_ascii().is_empty();
        if quotes % 2 == 0 && !is_blank {
            break;
        }
    }
    if head.len() == LONGEST_HEADINGS {
        return Err(Error::damaged(
            "line 1",
            format_args!(
                "the headings take more than {LONGEST_HEADINGS} bytes; is this a table? --format names other formats"
            ),
        ));
    }
    if head.starts_with(b"\xef\xbb\xbf") {
        head.drain(..3);
    }
    Ok(head)
}

/// The separator that the headings use most, outside of quotes.
fn delimiter_of(head: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
    let mut quoted = false;
    for &byte in head {
        quoted ^= byte == b'"';
        if let Some((_, count)) = counts.iter_mut().find(|(delimiter, _)| *delimiter == byte && !quoted) {
            *count += 1;
        }
    }
    // The first of equals.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |&(delimiter, _)| delimiter)
}

/// What the columns are called.
struct Headings(Vec<String>);

impl Headings {
    fn new(row: &ByteRecord) -> Self {
        Self(row.iter().map(|cell| String::from_utf8_lossy(cell.trim_ascii()).into_owned()).collect())
    }

    /// The column a user means: by its heading; by its heading in other letters or
    /// without its unit if there is only one such; or by its number.
    fn find(&self, option: &str, wanted: &str) -> Result<usize> {
        let wanted = wanted.trim();
        let only = |fits: &dyn Fn(&str) -> bool| {
            let mut found = (0..self.0.len()).filter(|&column| fits(&self.0[column]));
            found.next().filter(|_| found.next().is_none())
        };
        let exact = self.0.iter().position(|heading| heading == wanted);
        let by_number = || {
            wanted.parse().ok().filter(|number| (1..=self.0.len()).contains(number)).map(|number| number - 1)
        };
        exact
            .or_else(|| only(&|heading| heading.eq_ignore_ascii_case(wanted)))
            .or_else(by_number)
            .or_else(|| only(&|heading| title_of(heading).eq_ignore_ascii_case(wanted)))
            .ok_or_else(|| {
                Error::option(format_args!(
                    "{option}: no column {wanted:?}{}; {}",
                    self.nearest(wanted),
                    self.list()
                ))
            })
    }

    fn list(&self) -> String {
        if self.0.is_empty() {
            return "the input is empty".to_string();
        }
        let shown = self.0.iter().enumerate().take(COLUMNS_LISTED);
        let listed: Vec<String> =
            shown.map(|(index, heading)| format!("{} {}", index + 1, shorten(heading.as_bytes()))).collect();
        let more = self.0.len().saturating_sub(COLUMNS_LISTED);
        let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("the columns are {}{and_more}", listed.join(", "))
    }

    fn nearest(&self, wanted: &str) -> String {
        let wanted = wanted.to_lowercase();
        self.0
            .iter()
            .filter(|heading| heading.len() <= 2 * wanted.len() + 2)
            .map(|heading| (edits(&wanted, &title_of(heading).to_lowercase()), heading))
            .min_by_key(|(distance, _)| *distance)
            .filter(|(distance, _)| *distance <= wanted.len().div_ceil(3))
            .map_or(String::new(), |(_, heading)| format!("; did you mean {heading:?}?"))
    }
}

fn title_of(heading: &str) -> &str {
    split_heading(heading).map_or(heading, |(title, _)| title)
}

/// The Levenshtein distance, for a guess at what was meant.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Which columns make what of an event.
struct Columns<'a> {
    name: usize,
    fields: Vec<(&'a str, usize)>,
    stream: Option<usize>,
    start: Option<TimeColumn<'a>>,
    duration: Option<TimeColumn<'a>>,
    metrics: Vec<(&'a str, usize)>,
}

#[derive(Clone, Copy)]
struct TimeColumn<'a> {
    heading: &'a str,
    column: usize,
    unit: Unit,
}

impl<'a> Columns<'a> {
    fn choose(headings: &'a Headings, context: &Context<'_>) -> Result<Self> {
        let options = context.options;
        let Some((name, others)) = options.event.split_first() else {
            return Err(Error::option(format_args!(
                "choose the columns that make an event with --event; {}",
                headings.list()
            )));
        };
        let named = |option, wanted: &String| {
            headings.find(option, wanted).map(|column| (headings.0[column].as_str(), column))
        };
        let name = headings.find("--event", name)?;
        let mut fields = others.iter().map(|other| named("--event", other)).collect::<Result<Vec<_>>>()?;
        for (column, heading) in headings.0.iter().enumerate() {
            let is_used = column == name || fields.iter().any(|&(_, used)| used == column);
            if !is_used && context.wants(heading) {
                fields.push((heading, column));
            }
        }
        let stream =
            options.stream_by.as_ref().map(|wanted| headings.find("--stream-by", wanted)).transpose()?;
        let mut chosen = Self { name, fields, stream, start: None, duration: None, metrics: Vec::new() };
        chosen.choose_times(headings, options)?;
        if !context.wants_times() {
            (chosen.start, chosen.duration) = (None, None);
            chosen.metrics.clear();
        }
        Ok(chosen)
    }

    fn choose_times(&mut self, headings: &'a Headings, options: &Options) -> Result<()> {
        let default_unit = match options.time_unit.as_deref() {
            None => Unit::Seconds,
            Some(name) => Unit::named(name).ok_or_else(|| {
                Error::option(format_args!(
                    "--time-unit: {name:?} is not a unit; the units are s, ms, us, ns"
                ))
            })?,
        };
        let time = |option, wanted: &Option<String>| {
            let Some(wanted) = wanted else { return Ok(None) };
            headings.find(option, wanted).map(|column| {
                let heading = headings.0[column].as_str();
                let unit = Unit::in_heading(heading).unwrap_or(default_unit);
                Some(TimeColumn { heading, column, unit })
            })
        };
        self.start = time("--start", &options.start)?;
        self.duration = time("--duration", &options.duration)?;
        for wanted in &options.metric {
            let column = headings.find("--metric", wanted)?;
            self.metrics.push((&headings.0[column], column));
        }
        Ok(())
    }

    /// Pushes the event that a row is. The row has all columns.
    fn push(&self, place: Place<'_>, stream: StreamId, context: &mut Context<'_>) -> Result<()> {
        let row = place.row;
        let start = time_of(self.start, place, context)?;
        let duration = match time_of(self.duration, place, context)? {
            Some(negative) if negative < 0 => {
                context.damaged(place, "the duration is negative")?;
                None
            }
            duration => duration,
        };
        let mut metrics = Vec::with_capacity(self.metrics.len());
        for &(heading, column) in &self.metrics {
            if let Some(value) = metric_of(heading, &row[column], place, context)? {
                metrics.push((heading, value));
            }
        }
        let field = |&(key, column): &(&'a str, usize)| Field { key, value: value_of(&row[column]) };
        let fields: Vec<Field<'_>> = self.fields.iter().map(field).collect();
        let symbol = context.intern(&Event { fields: &fields, ..Event::named(&row[self.name]) })?;
        context.push(stream, symbol, Timing { start, duration, metrics: &metrics })
    }
}

/// The time in a cell. Returns `None` if there is no such column or the cell is blank.
fn time_of(
    column: Option<TimeColumn<'_>>,
    place: Place<'_>,
    context: &mut Context<'_>,
) -> Result<Option<i64>> {
    let Some(TimeColumn { heading, column, unit }) = column else { return Ok(None) };
    let cell = &place.row[column];
    if cell.trim_ascii().is_empty() {
        return Ok(None);
    }
    let time = nanoseconds(cell, unit);
    if time.is_none() {
        let reason = format_args!(
            "{} in column {heading:?} is not a number of {} within 292 years",
            shorten(cell),
            unit.name()
        );
        context.damaged(place, reason)?;
    }
    Ok(time)
}

fn metric_of(heading: &str, cell: &[u8], place: Place<'_>, context: &mut Context<'_>) -> Result<Option<f64>> {
    let cell = cell.trim_ascii();
    if cell.is_empty() {
        return Ok(None);
    }
    let value = std::str::from_utf8(cell).ok().and_then(|text| text.parse().ok());
    let value = value.filter(|value: &f64| !value.is_infinite());
    if value.is_none() {
        let reason = format_args!("{} in column {heading:?} is not a number that fits", shorten(cell));
        context.damaged(place, reason)?;
    }
    Ok(value)
}

/// A number where writing the number gives the text back, so that nothing is lost.
fn value_of(cell: &[u8]) -> Value<'_> {
    let digits = cell.strip_prefix(b"-").unwrap_or(cell);
    let is_plain = match digits {
        b"0" => digits.len() == cell.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let number = is_plain.then(|| std::str::from_utf8(cell).ok()?.parse().ok()).flatten();
    number.map_or(Value::Text(cell), Value::Integer)
}

/// A cell as a message shows it.
fn shorten(cell: &[u8]) -> String {
    let text = String::from_utf8_lossy(&cell[..cell.len().min(CELL_SHOWN)]).into_owned();
    if cell.len() > CELL_SHOWN { format!("{:?}…", text) } else { format!("{text:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopfold::trace::{Collector, Times, Trace};
    use std::io::BufReader;

    fn read(text: &[u8], options: &Options) -> Result<(Trace, u64)> {
        let mut collector = Collector::default();
        let mut context = Context::new(options, &mut collector, "x.csv", false);
        Csv.read(&mut BufReader::with_capacity(5, text), &mut context)?;
        let damage = context.into_damage().count;
        Ok((collector.finish()?, damage))
    }

    fn labels(trace: &Trace, stream: usize) -> Vec<String> {
        trace.streams[stream].symbols.iter().map(|&symbol| trace.alphabet.label(symbol)).collect()
    }

    fn events(columns: &[&str]) -> Options {
        Options { event: columns.iter().map(ToString::to_string).collect(), ..Options::default() }
    }

    #[track_caller]
    fn check_error(text: &str, options: &Options, expected: &str) {
        let error = read(text.as_bytes(), options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn columns_make_events_in_streams_with_times() {
        let text = "\u{feff}Start (ns);\"Duration, ms\";Name;size;tid\n\
                    1700000000123456789;1.5;\"a \"\"b\"\"\nc\";8;1\n\
                    1700000000123456799;;send;08;2\n\n\
                    5;0.000001;send;-9;1\n";
        let options = Options {
            stream_by: Some("TID".into()),
            start: Some("start".into()),
            duration: Some("2".into()),
            metric: vec!["size".into()],
            time_unit: Some("ms".into()),
            ..events(&["Name", "size"])
        };
        let (trace, damage) = read(text.as_bytes(), &options).unwrap();
        assert_eq!(damage, 0);
        assert_eq!((trace.streams[0].name.as_str(), trace.streams[1].name.as_str()), ("1", "2"));
        assert_eq!(labels(&trace, 0), ["a \"b\"\\nc size=8", "send size=-9"]);
        assert_eq!(labels(&trace, 1), ["send size=08"]);
        let times = &trace.streams[0].times;
        assert_eq!(times.starts.as_ref().unwrap().values().unwrap(), [1_700_000_000_123_456_789, 5]);
        assert_eq!(times.durations.as_ref().unwrap().values().unwrap(), [1_500_000, 1]);
        assert_eq!(times.metrics[0].1.values().unwrap(), [8.0, -9.0]);
        assert!(trace.streams[1].times.durations.is_none());
    }

    #[test]
    fn headings_are_found_or_listed() {
        let text = "name,start,end\na,1,2\n";
        check_error(
            text,
            &Options::default(),
            "choose the columns that make an event with --event; the columns are 1 \"name\", 2 \"start\", 3 \"end\"",
        );
        check_error(
            text,
            &events(&["nam"]),
            "--event: no column \"nam\"; did you mean \"name\"?; the columns are",
        );
        check_error(text, &events(&["4"]), "no column \"4\"; the columns are");
        check_error(text, &Options { start: Some("x".into()), ..events(&["1"]) }, "--start: no column \"x\"");
        check_error(text, &Options { time_unit: Some("h".into()), ..events(&["1"]) }, "--time-unit");
        check_error("", &events(&["name"]), "the input is empty");
        assert_eq!(labels(&read(text.as_bytes(), &events(&["3"])).unwrap().0, 0), ["2"]);
    }

    #[test]
    fn separators_are_found_in_the_headings() {
        for separator in [",", ";", "\t", "|"] {
            let text = "a b,\"c,,;;||\",d\r\n1,2,3\r\n".replace(",", separator);
            assert_eq!(labels(&read(text.as_bytes(), &events(&["d"])).unwrap().0, 0), ["3"]);
        }
        assert_eq!(delimiter_of(b"single"), b',');
    }

    #[test]
    fn rows_and_numbers_that_do_not_fit_are_damage() {
        let text = "name,t\na,1\nb\nc,1,2\nd,99999999999\ne,x\nf,-1\n\u{ff},2\n";
        let options = Options { duration: Some("t".into()), ..events(&["name"]) };
        check_error(text, &options, "line 3: expected 2 cells, as there are headings, found 1");
        check_error(
            "name,t\nd,99999999999\n",
            &options,
            "line 2: \"99999999999\" in column \"t\" is not a number of s",
        );
        check_error("name,t\n\n\"d\n\",x\n", &options, "line 3: \"x\" in column \"t\"");
        for end in ["", "\n", "\nc,1\n"] {
            check_error(&format!("name,t\na,1\nb{end}"), &options, "line 3: expected 2 cells");
            let crlf = format!("name,t\n\na,1\n\"\n\",1\n\nb{end}").replace('\n', "\r\n");
            check_error(&crlf, &options, "line 7: expected 2 cells");
        }
        check_error("name,t\nf,-1\n", &options, "line 2: the duration is negative");
        let metric = Options { metric: vec!["t".into()], ..events(&["name"]) };
        check_error("name,t\nf,1e999\n", &metric, "line 2: \"1e999\" in column \"t\" is not a number");
        let (trace, damage) = read(text.as_bytes(), &Options { lenient: true, ..options }).unwrap();
        assert_eq!(damage, 5);
        assert_eq!(labels(&trace, 0), ["a", "d", "e", "f", "ÿ"]);
        let unknown = Times::UNKNOWN_DURATION;
        let durations = trace.streams[0].times.durations.as_ref().unwrap().values().unwrap();
        assert_eq!(durations, [1_000_000_000, unknown, unknown, unknown, 2_000_000_000]);
    }

    #[test]
    fn other_columns_are_given_when_wanted() {
        use loopfold::trace::{Projection, TimesKept};
        let options = events(&["name"]);
        let key = Some(vec!["name".to_string(), "size".to_string()]);
        let mut collector = Collector::new(Projection { key, ..Projection::default() }, TimesKept::None);
        let mut context = Context::new(&options, &mut collector, "x.csv", false);
        Csv.read(&mut &b"name,t,size\nsend,1,8\n"[..], &mut context).unwrap();
        assert_eq!(labels(&collector.finish().unwrap(), 0), ["send size=8"]);
    }

    #[test]
    fn numbers_are_integers_only_where_nothing_is_lost() {
        for (text, is_number) in [
            ("0", true),
            ("-7", true),
            ("007", false),
            ("-0", false),
            ("", false),
            ("-", false),
            ("1.0", false),
            ("9223372036854775808", false),
        ] {
            assert_eq!(matches!(value_of(text.as_bytes()), Value::Integer(_)), is_number, "{text}");
        }
    }
}
