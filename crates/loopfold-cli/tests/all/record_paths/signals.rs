//! Handlers, and jumps out of them.

use super::{check_nesting, enter, leave, path, record, record_with};

#[test]
fn handlers_have_a_stream_of_their_own() {
    let recorded = record(&["raised"]);
    assert!(recorded.output.status.success(), "{}", recorded.errors());
    let streams = recorded.streams();
    let handler = "n::handler(int)";
    let called = [enter(handler), path(2, handler, 0), leave(handler)];
    assert_eq!(streams["main signals"], vec![called; 8].concat());
    let returns = vec![[enter("work"), path(1, "work", 1), leave("work")]; 4].concat();
    // Every fourth call leaves by a jump, which leaves `work`, too.
    let round = [&[path(0, "main", 0)][..], &returns].concat();
    let expected = [&[enter("main")][..], &round, &round, &[path(0, "main", 0), leave("main")]].concat();
    assert_eq!(streams["main"], expected);
}

#[test]
fn handlers_may_interrupt_any_instruction() {
    for options in [&[][..], &["--cycles"]] {
        let recorded = record_with(options, &["interrupted", "500"]);
        assert!(recorded.output.status.success(), "{}", recorded.errors());
        for (name, events) in recorded.streams() {
            check_nesting(&name, &events, false);
        }
        // One that comes before the jump has arrived is inside of the handler that jumps.
        let streams = recorded.streams().into_iter().filter(|(name, _)| name.starts_with("main signals"));
        let events = streams.flat_map(|(_, events)| events);
        let handled = events.filter(|event| event.starts_with("enter")).count();
        assert!(handled >= 2000);
    }
}
