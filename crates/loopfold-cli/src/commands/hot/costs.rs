//! The costs of events, as `--cost` gives them.

use crate::input::files;
use anyhow::{Context as _, Result, anyhow, bail};
use loopfold::fold::{DurationSum, MetricSum};
use loopfold::questions::hot::{EventCosts, Limit};
use loopfold::questions::query::{no_such_event, symbols_called};
use loopfold::questions::sums::EventSums;
use loopfold::trace::EventPattern;
use loopfold::{Fold, Symbol};
use std::path::Path;

/// The word for the time that events take.
const DURATION: &str = "duration";
/// The argument of `--cost` for the time that they take without the events inside them.
const SELF: &str = "self";

/// The costs of events, and their unit.
pub(super) struct Costs {
    pub(super) of_events: EventCosts,
    pub(super) unit: Unit,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

/// What a cost counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Events.
    Events,
    /// Nanoseconds.
    Time,
    /// Nanoseconds without those of the events inside.
    SelfTime,
    /// Whatever a metric or a file says.
    Other(String),
}

impl Unit {
    pub(super) fn is_time(&self) -> bool {
        matches!(self, Unit::Time | Unit::SelfTime)
    }

    /// The name of the unit, as the user wrote it.
    pub(super) fn name(&self) -> &str {
        match self {
            Unit::Events => "1",
            Unit::Time => DURATION,
            Unit::SelfTime => SELF,
            Unit::Other(name) => name,
        }
    }
}

impl Costs {
    /// One for each event, or what the argument of `--cost` stands for: durations, self times, a
    /// file that is there, or a metric.
    pub(super) fn of(fold: &Fold, asked: Option<&str>) -> Result<Self> {
        let Some(asked) = asked else {
            let of_events = EventCosts::one_each(fold);
            return Ok(Self { of_events, unit: Unit::Events, notes: Vec::new() });
        };
        if is_file(asked) {
            let costs = read_file(fold, asked).with_context(|| asked.to_string())?;
            return Self::of_means(fold, Unit::Other(asked.to_string()), &costs);
        }
        if asked == SELF {
            return Self::of_self_times(fold);
        }
        let sums = fold.event_sums()?;
        if asked == DURATION {
            let sums = sums.durations.as_deref().context("--cost duration: this trace has no durations")?;
            let means: Vec<Option<f64>> = sums.iter().map(DurationSum::mean).collect();
            let mut costs = Self::of_means(fold, Unit::Time, &means)?;
            if fold.self_sums()?.is_some_and(|own| own.nests) {
                costs.notes.push(
                    "events nest, so durations count some time more than once; --cost self counts every moment \
                     once"
                        .to_string(),
                );
            }
            return Ok(costs);
        }
        let sums = sums.metric(asked).ok_or_else(|| neither(asked, &sums))?;
        let means: Vec<Option<f64>> = sums.iter().map(MetricSum::mean).collect();
        Self::of_means(fold, Unit::Other(asked.to_string()), &means)
    }

    /// Self times are known where events have starts and durations, or the sums of an archive were
    /// made from both.
    fn of_self_times(fold: &Fold) -> Result<Self> {
        let Some(own) = fold.self_sums()? else {
            let is_summed = fold.streams().iter().any(|stream| stream.sums().is_some());
            let why = if is_summed {
                "self times need the times of every event, and this archive has sums without them (fold the trace again)"
            } else {
                "this trace has no starts and durations of events"
            };
            bail!("--cost {SELF}: {why}");
        };
        let means: Vec<Option<f64>> = own.events.iter().map(DurationSum::mean).collect();
        Self::of_means(fold, Unit::SelfTime, &means)
    }

    /// The costs of all events; unknown ones are 0.
    fn of_means(fold: &Fold, unit: Unit, means: &[Option<f64>]) -> Result<Self> {
        let mut costs = Vec::with_capacity(means.len());
        let mut unknown: Vec<Symbol> = Vec::new();
        for (symbol, mean) in fold.alphabet().symbols().zip(means) {
            match *mean {
                Some(cost) if !cost.is_finite() || cost < 0.0 => {
                    let event = fold.alphabet().label(symbol);
                    bail!("--cost {}: {event} cannot cost {cost}", unit.name());
                }
                Some(cost) => costs.push(cost),
                None => {
                    unknown.push(symbol);
                    costs.push(0.0);
                }
            }
        }
        let mut notes = Vec::new();
        if let Some(&first) = unknown.first() {
            let others = match unknown.len() {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            let (event, name) = (fold.alphabet().label(first), unit.name());
            notes.push(format!("--cost {name} has no value for {event}{others}, which cost 0"));
        }
        Ok(Self { of_events: EventCosts::new(&costs)?, unit, notes })
    }

    /// The limit that `--min-cost` means.
    pub(super) fn limit(&self, text: &str) -> Result<Limit> {
        let number = |text: &str| match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(anyhow!("--min-cost {text}: neither a number nor a share such as 0.1%")),
        };
        if let Some(percent) = text.strip_suffix('%') {
            let percent = number(percent)?;
            if !(percent > 0.0 && percent <= 100.0) {
                bail!("--min-cost {text}: a share is more than 0 % and at most 100 %");
            }
            return Ok(Limit::Share(percent / 100.0));
        }
        let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
        let time = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)));
        let cost = match time {
            Some((text, scale)) if self.unit.is_time() => number(text)? * scale,
            _ => number(text)?,
        };
        if cost <= 0.0 {
            bail!("--min-cost {text}: everything would be hot; ask for more than 0");
        }
        Ok(Limit::Cost(cost))
    }
}

fn neither(asked: &str, sums: &EventSums) -> anyhow::Error {
    let metrics: Vec<&str> = sums.metrics.iter().map(|(name, _)| name.as_str()).collect();
    let known = if metrics.is_empty() { "none".to_string() } else { metrics.join(", ") };
    anyhow!("--cost {asked}: there is no such metric (known: {known}) and no such file")
}

/// Unknown events that are named in an error.
const NAMED: usize = 3;

/// Reads costs: on each line an event and, after a tab or a blank, a number.
fn read_file(fold: &Fold, path: &str) -> Result<Vec<Option<f64>>> {
    let text = files::read(Path::new(path))?;
    let text = std::str::from_utf8(&text).map_err(|error| {
        let line = text[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
        anyhow!("line {line}: this is not text in UTF-8")
    })?;
    let mut lines: Vec<(usize, &str, f64)> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = index + 1;
        let (event, cost) = line.trim_end().rsplit_once([' ', '\t']).with_context(|| {
            format!("line {number}: expected an event and a number, separated by a tab or a blank")
        })?;
        let cost: f64 =
            cost.parse().ok().with_context(|| format!("line {number}: {cost:?} is not a number"))?;
        if !cost.is_finite() || cost < 0.0 {
            bail!("line {number}: an event cannot cost {cost}");
        }
        lines.push((number, event.trim(), cost));
    }
    assign(fold, &lines)
}

/// How closely a word names an event: as a pattern that it fits, by its bare name, with some of its
/// fields, or as printed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Naming {
    Pattern,
    Name,
    Fields,
    Label,
}

/// The cost of each symbol. The label of an event counts for more than its bare name, which may
/// stand for several, and that for more than a pattern; so does a name with fields.
fn assign(fold: &Fold, lines: &[(usize, &str, f64)]) -> Result<Vec<Option<f64>>> {
    let alphabet = fold.alphabet();
    let words: Vec<&str> = lines.iter().map(|(_, event, _)| *event).collect();
    let called = symbols_called(alphabet, &words)?;
    let unknown: Vec<&(usize, &str, f64)> =
        lines.iter().zip(&called).filter(|(_, symbols)| symbols.is_empty()).map(|(line, _)| line).collect();
    if !unknown.is_empty() {
        bail!("{}", describe_unknown(fold, &unknown));
    }
    let mut costs: Vec<Option<(f64, Naming, usize)>> = vec![None; alphabet.len()];
    for ((line, event, cost), symbols) in lines.iter().zip(&called) {
        let pattern = EventPattern::parse(event)?;
        for symbol in symbols {
            let naming = match alphabet.label(*symbol) {
                label if label == *event => Naming::Label,
                _ if pattern.calls(&alphabet.meaning(*symbol)) => Naming::Name,
                _ if pattern.has_fields() => Naming::Fields,
                _ => Naming::Pattern,
            };
            match costs[symbol.index()] {
                Some((_, known, before)) if known == naming => {
                    let label = alphabet.label(*symbol);
                    bail!("line {line}: {label} has its cost on line {before} already")
                }
                Some((_, known, _)) if known > naming => {}
                _ => costs[symbol.index()] = Some((*cost, naming, *line)),
            }
        }
    }
    Ok(costs.into_iter().map(|cost| Some(cost?.0)).collect())
}

fn describe_unknown(fold: &Fold, unknown: &[&(usize, &str, f64)]) -> String {
    let describe = |(line, event, _): &&(usize, &str, f64)| {
        format!("line {line}: {}", no_such_event(fold.alphabet(), event))
    };
    let mut text: Vec<String> = unknown.iter().take(NAMED).map(describe).collect();
    if unknown.len() > NAMED {
        text.push(format!("and {} more unknown events", unknown.len() - NAMED));
    }
    text.join("\n")
}

/// Whether `--cost` needs the times of events: for anything but a file that is there.
pub(super) fn needs_times(asked: Option<&str>) -> bool {
    asked.is_some_and(|asked| !is_file(asked))
}

fn is_file(asked: &str) -> bool {
    ![DURATION, SELF].contains(&asked) && Path::new(asked).is_file()
}
