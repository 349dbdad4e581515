//! Nests and times as JSON; `docs/json.md` describes the shapes.

use loopfold::questions::iterations::{LoopTimes, StreamTimes};
use loopfold::questions::nest::{Nest, Node};
use loopfold::trace::Alphabet;
use serde_json::{Value, json};

/// A nest: events are strings, loops objects with `times` and `body`, what is left out
/// an object with `left_out`. Loops whose times are known have `time`.
pub(crate) fn nest(alphabet: &Alphabet, nest: &Nest, times: Option<&StreamTimes>) -> Value {
    // Built from an explicit stack: nests can be deeper than the program's own.
    struct Open {
        node: usize,
        end: usize,
        body: Vec<Value>,
    }
    let loops = times.map_or(&[][..], |times| &times.loops);
    let mut open = vec![Open { node: usize::MAX, end: nest.nodes.len(), body: Vec::new() }];
    let mut at = 0;
    loop {
        while open.len() > 1
            && let Some(done) = open.pop_if(|innermost| innermost.end == at)
        {
            let Node::Loop { times, .. } = nest.nodes[done.node] else { continue };
            let mut value = json!({"times": times, "body": done.body});
            if let Ok(index) = loops.binary_search_by_key(&done.node, |times| times.node) {
                value["time"] = loop_time(&loops[index]);
            }
            if let Some(outer) = open.last_mut() {
                outer.body.push(value);
            }
        }
        let Some(innermost) = open.last_mut() else { return Value::Null };
        match nest.nodes.get(at) {
            None => return Value::Array(std::mem::take(&mut innermost.body)),
            Some(Node::Event(symbol)) => innermost.body.push(Value::String(alphabet.label(*symbol))),
            Some(Node::LeftOut(events)) => innermost.body.push(json!({"left_out": events})),
            Some(Node::Loop { end, .. }) => open.push(Open { node: at, end: *end, body: Vec::new() }),
        }
        at += 1;
    }
}

fn loop_time(times: &LoopTimes) -> Value {
    let spread = &times.times;
    json!({
        "total_ns": nanoseconds(spread.total),
        "iterations": spread.count,
        "mean_ns": spread.mean(),
        "deviation_ns": spread.deviation(),
        "median_ns": times.median,
        "min_ns": nanoseconds(spread.minimum),
        "max_ns": nanoseconds(spread.maximum),
        "slowest": times.slowest.map(|slowest| slowest.iteration),
        "slowest_start": times.slowest.map(|slowest| slowest.position),
        "shared": times.shared,
    })
}

/// A time as a number of JSON.
pub(crate) fn nanoseconds(time: i128) -> i64 {
    time.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
