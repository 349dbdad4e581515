//! Control flow from the outside: whatever a program does, text and tokens give the same
//! trace, and it is that of an obvious oracle.

use loopfold::Trace;
use loopfold::trace::Collector;
use loopfold_sources::{Context, FunctionNames, Options, by_name};
use loopfold_testing::Rng;
use std::collections::BTreeMap;

/// One thing that control flow does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Call(u32),
    Return,
    Block(u32),
    Thread(u32),
}

const FUNCTIONS: [&str; 4] = ["main", "f", "operator ()", "g<int>::h"];

/// Steps of several kinds of programs: deep ones, shallow ones, with more returns than calls
/// or more calls than returns, of one thread or several.
fn steps(rng: &mut Rng) -> Vec<Step> {
    let weights = [[3, 3, 5, 0], [6, 1, 2, 1], [1, 6, 2, 1], [1, 1, 8, 4], [4, 4, 1, 1]];
    let weights = weights[rng.below(weights.len())];
    let total: usize = weights.iter().sum();
    let length = rng.below(120);
    let step = |rng: &mut Rng| {
        let mut at = rng.below(total);
        let kind = weights.iter().position(|&weight| {
            let here = at < weight;
            at = at.saturating_sub(weight);
            here
        });
        match kind.unwrap() {
            // One function more than has a name.
            0 => Step::Call(rng.below(FUNCTIONS.len() + 1) as u32),
            1 => Step::Return,
            2 => Step::Block(rng.below(4) as u32),
            _ => Step::Thread(rng.below(3) as u32),
        }
    };
    (0..length).map(|_| step(rng)).collect()
}

fn name(function: u32) -> String {
    FUNCTIONS.get(function as usize).map_or_else(|| format!("f{function}"), ToString::to_string)
}

fn text(steps: &[Step]) -> Vec<u8> {
    let line = |step: &Step| match *step {
        Step::Call(function) => format!("call {}\n", name(function)),
        Step::Return => "return\n".to_string(),
        Step::Block(block) => format!("{block}\n"),
        Step::Thread(id) => format!("thread {id}\n"),
    };
    steps.iter().map(line).collect::<String>().into_bytes()
}

fn tokens(steps: &[Step]) -> Vec<u8> {
    let token = |step: &Step| match *step {
        Step::Call(function) => 0x8000_0000 + function,
        Step::Return => u32::MAX,
        Step::Block(block) => block,
        Step::Thread(id) => 0xc000_0000 + id,
    };
    steps.iter().flat_map(|step| token(step).to_le_bytes()).collect()
}

/// What a stream should be: its events as they are shown, the calls open at its end, and the
/// returns from calls that it does not show.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    events: Vec<String>,
    open: Vec<String>,
    unmatched: usize,
}

fn expected(steps: &[Step]) -> BTreeMap<String, Expected> {
    let mut streams: BTreeMap<String, Expected> = BTreeMap::new();
    let mut current = "input".to_string();
    for step in steps {
        if let Step::Thread(id) = step {
            current = format!("thread {id}");
            streams.entry(current.clone()).or_default();
            continue;
        }
        let stream = streams.entry(current.clone()).or_default();
        let function = stream.open.last().cloned().unwrap_or("?".to_string());
        match step {
            Step::Call(called) => {
                stream.events.push(format!("enter {}", name(*called)));
                stream.open.push(name(*called));
            }
            Step::Return => {
                stream.events.push(format!("leave {function}"));
                stream.unmatched += usize::from(stream.open.pop().is_none());
            }
            Step::Block(block) => stream.events.push(format!("{block} function={function}")),
            Step::Thread(_) => {}
        }
    }
    if streams.is_empty() {
        streams.insert(current, Expected::default());
    }
    streams
}

fn read(format: &str, bytes: &[u8]) -> Trace {
    let functions = FunctionNames::new(FUNCTIONS.map(|name| (name, "a.c"))).into();
    let options = Options { functions, ..Options::default() };
    let mut collector = Collector::default();
    let mut context = Context::new(&options, &mut collector, "input", false);
    by_name(format).unwrap().read(&mut &bytes[..], &mut context).unwrap();
    collector.finish().unwrap()
}

/// A trace in the oracle's form; only the number of open calls is known from it.
fn seen(trace: &Trace) -> BTreeMap<String, (Vec<String>, usize, usize)> {
    let stream = |stream: &loopfold::trace::Stream| {
        let note = |key: &str| {
            let note = stream.notes.iter().find(|(known, _)| known == key);
            note.map_or(0, |(_, count)| count.parse().unwrap())
        };
        let events = stream.symbols.iter().map(|&symbol| trace.alphabet.label(symbol)).collect();
        (stream.name.clone(), (events, note("open-calls"), note("unmatched-returns")))
    };
    trace.streams.iter().map(stream).collect()
}

#[test]
fn text_and_tokens_are_the_trace_of_the_oracle() {
    let mut rng = Rng::new(4);
    for _ in 0..4_000 {
        let steps = steps(&mut rng);
        let from_text = read("calls", &text(&steps));
        assert_eq!(read("calls-binary", &tokens(&steps)), from_text, "{steps:?}");
        let expected: BTreeMap<_, _> = expected(&steps)
            .into_iter()
            .map(|(name, stream)| (name, (stream.events, stream.open.len(), stream.unmatched)))
            .collect();
        assert_eq!(seen(&from_text), expected, "{steps:?}");
    }
}

#[test]
fn deep_recursion_is_only_memory() {
    let depth = 1_000_000;
    let text = "call f\n".repeat(depth) + &"return\n".repeat(depth + 1);
    let trace = read("calls", text.as_bytes());
    assert_eq!((trace.events(), trace.alphabet.len()), (2 * depth as u64 + 1, 3));
    assert_eq!(trace.streams[0].notes, [("unmatched-returns".to_string(), "1".to_string())]);
}
