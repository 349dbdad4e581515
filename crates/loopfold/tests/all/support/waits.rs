//! The definitions of `questions::waits`, literally: all events in lists, all messages in
//! lists, one after the other.

use loopfold::fold::Target;
use loopfold::questions::waits::{Class, Config, Focus, Sum, Waits};
use loopfold::trace::{Collector, Event, Field, Meaning, Name, Role, Sink, Times, Timing, Value};
use loopfold::{Fold, RuleId, Symbol, Trace};
use loopfold_testing::waits::{Kind, Simulated};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A trace of what happened; `timing` may change the times of a call of a process.
pub fn trace_of(
    simulated: &Simulated,
    mut timing: impl FnMut(usize, i64, i64) -> (Option<i64>, Option<i64>),
) -> Trace {
    let mut collector = Collector::default();
    for (process, calls) in simulated.calls.iter().enumerate() {
        let stream = collector.stream(&format!("rank {process}")).unwrap();
        for (comm, members) in simulated.comms.iter().enumerate().skip(1) {
            let members: Vec<String> = members.iter().map(ToString::to_string).collect();
            collector.describe(stream, &format!("comm {comm}"), &members.join(",")).unwrap();
        }
        for call in calls {
            let field = |&(key, number): &(&'static str, i64)| Field { key, value: Value::Integer(number) };
            let fields: Vec<Field<'_>> = call.fields.iter().map(field).collect();
            let role = match call.kind {
                Kind::Plain => Role::Plain,
                Kind::Enter => Role::Enter,
                Kind::Leave => Role::Leave,
                Kind::Send => Role::Send,
                Kind::Receive => Role::Receive,
                Kind::Collective => Role::Collective,
            };
            let symbol =
                collector.intern(&Event { role, fields: &fields, ..Event::named(call.name) }).unwrap();
            let (start, duration) = timing(process, call.start, call.duration);
            collector.push(stream, symbol, Timing { start, duration, ..Timing::UNKNOWN }).unwrap();
        }
    }
    collector.finish().unwrap()
}

/// One wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    pub class: &'static str,
    pub waiting: u32,
    pub cause: u32,
    pub time: u64,
    /// The stream and the position.
    pub at: (usize, usize),
    pub call: String,
    pub function: Option<String>,
    pub loops: Vec<u64>,
    pub iteration: u64,
    pub is_wrong_order: bool,
}

#[derive(Debug, Default)]
pub struct Oracle {
    pub waits: Vec<Wait>,
    /// All events that communicate and have a start, with the time that they lasted.
    pub calls: Vec<Wait>,
    /// Every event: stream and position, enter, leave, loops and iteration.
    pub events: Vec<At>,
    pub messages: u64,
    /// Count and worst by sender and receiver.
    pub violations: BTreeMap<(u32, u32), (u64, u64)>,
    /// Sends without a receive, and receives without a send.
    pub unmatched: (u64, u64),
    pub incomplete: u64,
    pub disagreeing: u64,
}

#[derive(Clone, Debug)]
pub struct At {
    pub at: (usize, usize),
    pub enter: Option<i64>,
    pub leave: Option<i64>,
    pub loops: Vec<u64>,
    pub iteration: u64,
}

/// For a stream and a position the loop that numbers its iteration: its times, the events of its
/// shortest iteration, and which iteration it is.
pub type Numbers = BTreeMap<(usize, usize), (u64, u64, u64)>;

struct Visited {
    stream: usize,
    position: usize,
    rank: u32,
    symbol: Symbol,
    enter: Option<i64>,
    leave: Option<i64>,
    has_duration: bool,
    function: Option<String>,
    loops: Vec<u64>,
    iteration: u64,
    /// Indexes of ends.
    parts: Vec<usize>,
}

/// What ends a wait: class, time, process.
type End = Option<(&'static str, i64, u32)>;

/// An end of a message or a member of an operation: the event, its time and its end.
#[derive(Clone, Copy)]
struct Side {
    rank: u32,
    enter: Option<i64>,
    end: usize,
    /// When it comes in the merge of all streams.
    order: usize,
}

/// By members and name of the communicator, sender, receiver and tag.
type Messages = BTreeMap<(Vec<u32>, String, u32, u32, String), Vec<Side>>;

const NOT_SHOWN: [&str; 13] = [
    "tag",
    "bytes",
    "recvtag",
    "recvbytes",
    "op",
    "n",
    "color",
    "key",
    "newcomm",
    "dest",
    "src",
    "done",
    "cancelled",
];

fn text(value: Value<'_>) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
    }
}

fn name_of(meaning: &Meaning<'_>) -> String {
    match meaning.name {
        Name::Text(name) => String::from_utf8_lossy(name).into_owned(),
        Name::Integer(number) => number.to_string(),
    }
}

fn field(meaning: &Meaning<'_>, key: &str) -> Option<String> {
    meaning.field(key).map(text)
}

/// The times of loops, and the events of their iterations.
type Loops = Vec<(u64, u64)>;

fn unfold(
    fold: &Fold,
    rule: RuleId,
    loops: &[(u64, u64)],
    iteration: u64,
    out: &mut Vec<(Symbol, Loops, u64)>,
) {
    for item in fold.body(rule) {
        for time in 0..item.times() {
            let mut inner = loops.to_vec();
            let mut inner_iteration = iteration;
            if item.times() > 1 {
                if loops.is_empty() {
                    inner_iteration = time;
                }
                let length = match item.target() {
                    Target::Symbol(_) => 1,
                    Target::Rule(rule) => fold.length(rule),
                };
                inner.push((item.times(), length));
            }
            match item.target() {
                Target::Symbol(symbol) => out.push((symbol, inner, inner_iteration)),
                Target::Rule(rule) => unfold(fold, rule, &inner, inner_iteration, out),
            }
        }
    }
}

fn visited(fold: &Fold, numbers: &Numbers) -> Vec<Visited> {
    let mut all = Vec::new();
    for (stream, folded) in fold.streams().iter().enumerate() {
        let mut events = Vec::new();
        unfold(fold, folded.root(), &[], 0, &mut events);
        let starts = folded.times().starts.as_ref().unwrap().values().unwrap();
        let durations = folded.times().durations.as_ref().map(|column| column.values().unwrap());
        let mut functions: Vec<String> = Vec::new();
        for (position, (symbol, loops, iteration)) in events.into_iter().enumerate() {
            let meaning = fold.alphabet().meaning(symbol);
            let numbered = numbers.get(&(stream, position)).copied();
            let is_inner = |length| numbered.is_none_or(|(_, shortest, _)| length < shortest);
            let inner = loops.iter().filter(|&&(_, length)| is_inner(length)).map(|&(times, _)| times);
            let loops: Vec<u64> = numbered.map(|(times, ..)| times).into_iter().chain(inner).collect();
            let iteration = numbered.map_or(iteration, |(.., iteration)| iteration);
            let enter = Some(starts[position]).filter(|&start| start != Times::UNKNOWN_START);
            let duration = durations.as_ref().map_or(-1, |durations| durations[position]);
            let function = functions.last().cloned();
            match meaning.role {
                Role::Enter => functions.push(name_of(&meaning)),
                Role::Leave => drop(functions.pop()),
                _ => {}
            }
            let rank = folded.name().raw().strip_prefix("rank ").unwrap().parse().unwrap();
            let leave = enter.map(|enter| enter + duration.max(0));
            let has_duration = duration >= 0;
            let parts = Vec::new();
            all.push(Visited {
                stream,
                position,
                rank,
                symbol,
                enter,
                leave,
                has_duration,
                function,
                loops,
                iteration,
                parts,
            });
        }
    }
    all
}

/// When each event comes in the merge of all streams by enter, by stream and position.
fn merged(events: &[Visited]) -> BTreeMap<(usize, usize), usize> {
    let mut keys: Vec<(i64, usize, usize)> = Vec::new();
    let mut streams: BTreeMap<usize, VecDeque<(i64, usize)>> = BTreeMap::new();
    let mut last: BTreeMap<usize, i64> = BTreeMap::new();
    for event in events {
        let last = last.entry(event.stream).or_insert(i64::MIN);
        *last = event.enter.unwrap_or(*last);
        streams.entry(event.stream).or_default().push_back((*last, event.position));
    }
    while let Some((&stream, _)) = streams
        .iter()
        .filter(|(_, events)| !events.is_empty())
        .min_by_key(|&(&stream, events)| (events[0].0, stream))
    {
        let (enter, position) = streams.get_mut(&stream).unwrap().pop_front().unwrap();
        keys.push((enter, stream, position));
    }
    keys.iter().enumerate().map(|(order, &(_, stream, position))| ((stream, position), order)).collect()
}

/// Computes the waits of a fold whose streams are called after ranks, one for each.
pub fn waits(fold: &Fold, numbers: &Numbers) -> Oracle {
    let mut events = visited(fold, numbers);
    let mut oracle = Oracle::default();
    let at = |event: &Visited| At {
        at: (event.stream, event.position),
        enter: event.enter,
        leave: event.leave,
        loops: event.loops.clone(),
        iteration: event.iteration,
    };
    oracle.events = events.iter().map(at).collect();
    let everyone: Vec<u32> =
        events.iter().map(|event| event.rank).collect::<BTreeSet<_>>().into_iter().collect();
    let members = |stream: usize, comm: &str| -> Vec<u32> {
        let note = fold.streams()[stream].note(&format!("comm {comm}"));
        note.map_or(everyone.clone(), |note| {
            note.raw().split(',').map(|rank| rank.parse().unwrap()).collect()
        })
    };
    let order = merged(&events);
    let mut ends: Vec<End> = Vec::new();
    let mut sends = Messages::new();
    let mut receives = sends.clone();
    type Call = (String, Option<String>, Side);
    let mut collectives: BTreeMap<(Vec<u32>, String), BTreeMap<u32, Vec<Call>>> = BTreeMap::new();
    let mut pending: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for event in &mut events {
        let meaning = fold.alphabet().meaning(event.symbol);
        let name = name_of(&meaning).to_lowercase().replace("mpi_", "");
        let is_nonblocking = name.starts_with('i');
        let comm = field(&meaning, "comm").unwrap_or("0".into());
        let group = members(event.stream, &comm);
        let tag = field(&meaning, "tag").unwrap_or("0".into());
        let mut side = || {
            ends.push(None);
            let end = ends.len() - 1;
            match is_nonblocking {
                true => pending.entry(event.stream).or_default().push(end),
                false => event.parts.push(end),
            }
            Side { rank: event.rank, enter: event.enter, end, order: order[&(event.stream, event.position)] }
        };
        let peer = |key| Some(group[field(&meaning, key)?.parse::<usize>().ok()?]);
        if meaning.role == Role::Collective {
            let calls = collectives.entry((group.clone(), comm.clone())).or_default();
            let kind = name.strip_prefix('i').unwrap_or(&name).replace("alltoall", "allreduce");
            calls.entry(event.rank).or_default().push((kind, field(&meaning, "root"), side()));
        }
        if let Some(from) = peer("src") {
            let key = (group.clone(), comm.clone(), from, event.rank, tag.clone());
            receives.entry(key).or_default().push(side());
        }
        if let Some(to) = peer("dest") {
            let key = (group.clone(), comm.clone(), event.rank, to, tag.clone());
            sends.entry(key).or_default().push(side());
        }
        if name.starts_with("wait") {
            let pending = pending.entry(event.stream).or_default();
            let count = field(&meaning, "n").map_or(1, |n| n.parse().unwrap());
            let indexes: Vec<usize> = match field(&meaning, "done") {
                Some(done) => vec![done.parse().unwrap()],
                None => (0..count).collect(),
            };
            let done: Vec<usize> = indexes.iter().filter_map(|&index| pending.get(index).copied()).collect();
            pending.retain(|request| !done.contains(request));
            event.parts.extend(done);
        }
    }
    let nothing = Vec::new();
    let mut wrong_order: BTreeSet<usize> = BTreeSet::new();
    // The receiver, when a message is sent, and when it is received.
    let mut all: Vec<(u32, usize, usize)> = Vec::new();
    let channels: BTreeSet<_> = sends.keys().chain(receives.keys()).cloned().collect();
    for key in channels {
        let (sent, received) = (sends.get(&key).unwrap_or(&nothing), receives.get(&key).unwrap_or(&nothing));
        let receive_of = |nth: usize| received.get(nth).map_or(usize::MAX, |receive: &Side| receive.order);
        all.extend(sent.iter().enumerate().map(|(nth, send)| (key.3, send.order, receive_of(nth))));
        for (send, receive) in sent.iter().zip(received) {
            oracle.messages += 1;
            ends[receive.end] = send.enter.map(|time| ("late sender", time, send.rank));
            ends[send.end] = receive.enter.map(|time| ("late receiver", time, receive.rank));
        }
        oracle.unmatched.0 += sent.len().saturating_sub(received.len()) as u64;
        oracle.unmatched.1 += received.len().saturating_sub(sent.len()) as u64;
    }
    for (key, sent) in &sends {
        for (send, receive) in sent.iter().zip(receives.get(key).unwrap_or(&nothing)) {
            let is_there = |&(to, sent, received): &(u32, usize, usize)| {
                to == key.3 && sent < send.order && received > send.order
            };
            if receive.order < send.order && all.iter().any(is_there) {
                wrong_order.insert(receive.end);
            }
        }
    }
    for ((group, _), calls) in &collectives {
        let present = group.iter().filter(|rank| everyone.contains(rank)).count();
        let most = calls.values().map(Vec::len).max().unwrap_or(0);
        for nth in 0..most {
            let ranks = group.iter().filter_map(|rank| calls.get(rank)?.get(nth)).collect::<Vec<_>>();
            if ranks.len() < present {
                oracle.incomplete += 1;
            } else if ranks.iter().any(|call| (&call.0, &call.1) != (&ranks[0].0, &ranks[0].1)) {
                oracle.disagreeing += 1;
            } else {
                let root = ranks[0].1.as_ref().map(|root| group[root.parse::<usize>().unwrap()]);
                operation(&ranks[0].0, root, &ranks.iter().map(|call| call.2).collect::<Vec<_>>(), &mut ends);
            }
        }
    }
    for event in &events {
        let meaning = fold.alphabet().meaning(event.symbol);
        let (Some(enter), Some(leave)) = (event.enter, event.leave) else { continue };
        let mut longest: Option<(u64, &'static str, u32, bool)> = None;
        for &part in &event.parts {
            let Some((class, time, cause)) = ends[part] else { continue };
            if class == "late sender" && event.has_duration && leave < time {
                let (count, worst) = oracle.violations.entry((cause, event.rank)).or_default();
                (*count, *worst) = (*count + 1, (*worst).max((time - leave) as u64));
            }
            let wait = if class == "late receiver" && time > leave { 0 } else { time.min(leave) - enter };
            if wait > 0 && longest.is_none_or(|(longest, ..)| wait as u64 > longest) {
                longest =
                    Some((wait as u64, class, cause, class == "late sender" && wrong_order.contains(&part)));
            }
        }
        let shown = meaning.fields.iter().filter(|field| !NOT_SHOWN.contains(&field.key));
        let fields: String = shown.map(|field| format!(" {}={}", field.key, text(field.value))).collect();
        let call = Wait {
            class: "",
            waiting: event.rank,
            cause: event.rank,
            time: (leave - enter) as u64,
            at: (event.stream, event.position),
            call: name_of(&meaning) + &fields,
            function: event.function.clone(),
            loops: event.loops.clone(),
            iteration: event.iteration,
            is_wrong_order: false,
        };
        let roles = [Role::Send, Role::Receive, Role::Collective];
        let has_peer = ["dest", "src"].iter().any(|key| meaning.field(key).is_some());
        let completes = call.call.to_lowercase().starts_with("mpi_wait");
        if roles.contains(&meaning.role) || has_peer || completes {
            // What has no duration takes no time.
            oracle.calls.push(call.clone());
        }
        if let Some((time, class, cause, is_wrong_order)) = longest {
            oracle.waits.push(Wait { class, cause, time, is_wrong_order, ..call });
        }
    }
    oracle
}

/// Sets what ends the waits of the members, which are in the order of the communicator.
fn operation(kind: &str, root: Option<u32>, members: &[Side], ends: &mut [End]) {
    let times = |sides: &[Side]| -> Vec<(i64, u32)> {
        sides.iter().filter_map(|side| Some((side.enter?, side.rank))).collect()
    };
    let last =
        |sides: &[Side]| times(sides).into_iter().max_by_key(|&(time, rank)| (time, std::cmp::Reverse(rank)));
    let others: Vec<Side> = members.iter().copied().filter(|side| Some(side.rank) != root).collect();
    for (index, side) in members.iter().enumerate() {
        let is_root = Some(side.rank) == root;
        let root_side = || members.iter().find(|side| Some(side.rank) == root);
        ends[side.end] = match kind {
            "barrier" => last(members).map(|(time, rank)| ("wait at barrier", time, rank)),
            "allreduce" => last(members).map(|(time, rank)| ("wait at N×N", time, rank)),
            "bcast" if !is_root => {
                root_side().and_then(|root| Some(("late broadcast", root.enter?, root.rank)))
            }
            "reduce" if is_root => {
                times(&others).into_iter().min().map(|(time, rank)| ("early reduce", time, rank))
            }
            "scan" => last(&members[..index]).map(|(time, rank)| ("early scan", time, rank)),
            _ => None,
        };
    }
}

/// The class, the call, the function and the loops.
type Place = (&'static str, String, Option<String>, Vec<u64>);
/// Time and count.
pub type Sums<K> = BTreeMap<K, (u64, u64)>;

fn summed<K: Ord>(waits: &[Wait], key: impl Fn(&Wait) -> K) -> Sums<K> {
    let mut sums = Sums::new();
    for wait in waits {
        let sum: &mut (u64, u64) = sums.entry(key(wait)).or_default();
        *sum = (sum.0 + wait.time, sum.1 + 1);
    }
    sums
}

pub fn pair(sum: Sum) -> (u64, u64) {
    (sum.time, sum.count)
}

/// Compares everything that is answered with the sums of single waits.
#[track_caller]
pub fn compare(fold: &Fold) {
    compare_focused(fold, &Focus::default(), &Numbers::new());
}

/// The same for a part of a fold. `numbers` are those of the focus, position by position.
#[track_caller]
pub fn compare_focused(fold: &Fold, focus: &Focus, numbers: &Numbers) {
    let found = Waits::focused(fold, &Config::new(), focus).unwrap();
    let mut expected = waits(fold, numbers);
    assert_eq!(found.messages, expected.messages);
    assert_eq!((found.left_out.unreceived, found.left_out.unsent), expected.unmatched);
    assert_eq!(found.left_out.incomplete, expected.incomplete);
    assert_eq!(found.left_out.disagreeing, expected.disagreeing);
    let violations: BTreeMap<_, _> =
        found.violations.iter().map(|one| ((one.from, one.to), (one.count, one.worst))).collect();
    assert_eq!(violations, expected.violations);
    let is_counted = |(stream, position): (usize, usize)| {
        focus
            .parts
            .as_ref()
            .is_none_or(|parts| parts[stream].iter().any(|range| range.contains(&(position as u64))))
    };
    let is_chosen = |stream: usize| focus.streams.as_ref().is_none_or(|chosen| chosen[stream]);
    let rank_of = |stream: usize| -> u32 {
        fold.streams()[stream].name().raw().strip_prefix("rank ").unwrap().parse().unwrap()
    };
    let chosen_ranks: BTreeSet<u32> =
        (0..fold.streams().len()).filter(|&stream| is_chosen(stream)).map(rank_of).collect();
    expected.waits.retain(|wait| is_counted(wait.at));
    let about = |wait: &Wait| is_chosen(wait.at.0) || chosen_ranks.contains(&wait.cause);
    let all: Vec<Wait> = expected.waits.iter().filter(|wait| about(wait)).cloned().collect();
    expected.waits.retain(|wait| is_chosen(wait.at.0));
    expected.calls.retain(|call| is_counted(call.at) && is_chosen(call.at.0));
    let mut total = 0;
    for stream in (0..fold.streams().len()).filter(|&stream| is_chosen(stream)) {
        let own = || expected.events.iter().filter(|event| event.at.0 == stream && is_counted(event.at));
        let (first, last) =
            (own().filter_map(|event| event.enter).min(), own().filter_map(|event| event.leave).max());
        total += first.zip(last).map_or(0, |(first, last)| (last - first) as u64);
    }
    assert_eq!(found.total, total);
    compare_sums(&found, &expected, &all);
    compare_calls(&found, &expected);
}

fn compare_sums(found: &Waits, expected: &Oracle, all: &[Wait]) {
    let by_class = summed(&expected.waits, |wait| wait.class);
    for class in Class::ALL {
        let known = by_class.get(class.name()).copied().unwrap_or_default();
        assert_eq!(pair(found.classes[class as usize]), known, "{class:?}");
    }
    let place_of =
        |wait: &Wait| -> Place { (wait.class, wait.call.clone(), wait.function.clone(), wait.loops.clone()) };
    let by_pair = summed(&expected.waits, |wait| (place_of(wait), wait.waiting, wait.cause));
    let by_iteration = summed(&expected.waits, |wait| (place_of(wait), wait.iteration));
    let mut pairs = Sums::new();
    for place in &found.places {
        let function = found.function(place).map(String::from);
        let key = (place.class.name(), found.alphabet().label(place.call), function, place.loops.clone());
        for one in &place.pairs {
            pairs.insert((key.clone(), one.waiting, one.cause), pair(one.sum));
        }
        let iterations = by_iteration.iter().filter(|((place, _), _)| *place == key);
        let worst =
            iterations.map(|((_, iteration), sum)| (sum.0, std::cmp::Reverse(*iteration))).max().unwrap();
        let known = place.worst.map(|worst| (worst.time, std::cmp::Reverse(worst.first)));
        assert_eq!(known, (!place.loops.is_empty()).then_some(worst));
    }
    assert_eq!(pairs, by_pair);
    let of_all: Sums<(u32, u32)> =
        found.pairs.iter().map(|one| ((one.waiting, one.cause), pair(one.sum))).collect();
    assert_eq!(of_all, summed(all, |wait| (wait.waiting, wait.cause)));
    let (caused, waited) = (summed(all, |wait| wait.cause), summed(all, |wait| wait.waiting));
    for rank in &found.ranks {
        assert_eq!(pair(rank.caused), caused.get(&rank.rank).copied().unwrap_or_default());
        assert_eq!(pair(rank.waited), waited.get(&rank.rank).copied().unwrap_or_default());
    }
    assert!(found.ranks.is_sorted_by_key(|rank| std::cmp::Reverse(rank.caused.time)));
    let by_times = summed(&expected.waits, |wait| (wait.loops.first().copied(), wait.iteration));
    for worst in &found.iterations {
        let of_loop = by_times.iter().filter(|((times, _), _)| *times == Some(worst.times));
        let most = of_loop.map(|((_, iteration), sum)| (sum.0, std::cmp::Reverse(*iteration))).max().unwrap();
        assert_eq!((worst.time, std::cmp::Reverse(worst.first)), most);
        let inside = expected
            .events
            .iter()
            .filter(|event| (event.loops.first(), event.iteration) == (Some(&worst.times), worst.first));
        assert_eq!(worst.start, inside.filter_map(|event| event.enter).min());
    }
}

/// The time in calls is that of the waits, what comes after them, and calls without any.
fn compare_calls(found: &Waits, expected: &Oracle) {
    let waited: BTreeMap<(usize, usize), u64> =
        expected.waits.iter().map(|wait| (wait.at, wait.time)).collect();
    let after =
        expected.calls.iter().filter_map(|call| Some(call.time.saturating_sub(*waited.get(&call.at)?)));
    assert_eq!(found.after_waits, after.sum::<u64>());
    let without: Vec<Wait> =
        expected.calls.iter().filter(|call| !waited.contains_key(&call.at)).cloned().collect();
    let by_rank =
        summed(&without, |call| (call.call.clone(), call.function.clone(), call.loops.clone(), call.waiting));
    let mut ranks = Sums::new();
    for calls in &found.calls {
        let (call, function) = (found.alphabet().label(calls.call), found.function_of(calls));
        for &(rank, sum) in &calls.ranks {
            let key = (call.clone(), function.map(String::from), calls.loops.clone(), rank);
            ranks.insert(key, pair(sum));
        }
    }
    let times = |sums: Sums<_>| -> BTreeMap<_, u64> {
        sums.into_iter().map(|(key, (time, _))| (key, time)).filter(|(_, time)| *time > 0).collect()
    };
    assert_eq!(times(ranks), times(by_rank));
    let all: u64 = expected.calls.iter().map(|call| call.time).sum();
    assert_eq!(found.in_calls(), all);
}
