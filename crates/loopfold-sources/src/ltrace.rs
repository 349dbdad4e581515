//! Reads library calls as ltrace logs them, with or without `-f`, `-S`, `-t`, `-tt`,
//! `-ttt`, `-r`, `-T`, and with the library in front, `libc.so.6->read(…)`. A system
//! call is `read@SYS` or `SYS_read`, as ltrace writes it.
//!
//! Events, streams, fields and costs are those of [`crate::call_log`]. A call that calls
//! back, such as `qsort`, comes before the calls inside it.

use crate::call_log::{self, Tool};
use crate::line_reader::fit_of_lines;
use crate::{Context, Description, Fit, Result, Source};
use std::io::BufRead;

/// See the module.
pub(crate) struct Ltrace;

impl Source for Ltrace {
    fn name(&self) -> &'static str {
        "ltrace"
    }

    fn about(&self) -> &'static str {
        "library calls logged by ltrace (-f, -S, -t, -tt, -ttt, -r, -T)"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["errno", "result", "args", "fd"]
    }

    fn description(&self) -> Description {
        Description {
            event: "a call, by name",
            stream: "a process",
            times: "start, duration (-T, or until resumed)",
            example: "loopfold loops ltrace.txt --key name,errno",
        }
    }

    fn fits(&self, head: &[u8]) -> Fit {
        fit_of_lines(head, Fit::Likely, |line| call_log::judge(line, Tool::Ltrace, |_| true))
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        call_log::read(Tool::Ltrace, input, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reading, events_of, read, times_of};

    #[test]
    fn a_call_comes_before_those_inside_it() {
        let log = "\
[pid 5] 10:00:00.000001 lua->__libc_start_main(0x55, 2 <unfinished ...>
[pid 5] 10:00:00.000002 libc.so.6->qsort(0x1, 2, 8 <unfinished ...>
[pid 5] 10:00:00.000003 strcmp(\"a\", \"b\")    = -1 <0.000001>
[pid 5] 10:00:00.000004 SYS_brk(0)    = 0x1000
[pid 5] 10:00:00.000005 read@SYS(3, \"\", 1)    = 0
[pid 5] 10:00:00.000006 strlen@libc.so.6(\"x\")    = 1
[pid 5] 10:00:00.000009 <... qsort resumed> )     = <void>
[pid 5] 10:00:00.000010 --- SIGINT (Interrupt) ---
[pid 5] 10:00:00.000011 _longjmp(0x7f, 1 <unfinished ...>
[pid 5] 10:00:00.000012 free(0x5587)    = <void>
[pid 5] 10:00:00.000013 +++ exited (status 0) +++
";
        assert_eq!(Ltrace.fits(log.as_bytes()), Fit::Likely);
        let reading = read(&Ltrace, log, Reading::default());
        assert_eq!(
            events_of(&reading, "process 5"),
            [
                "__libc_start_main",
                "qsort",
                "strcmp",
                "SYS_brk",
                "read@SYS",
                "strlen",
                "--- SIGINT ---",
                "_longjmp",
                "free",
                "+++ exited +++"
            ]
        );
        let times = times_of(&reading, "process 5");
        assert_eq!((times[1].1, times[2].1, times[7].1), (7_000, 1_000, -1));
    }

    #[test]
    fn a_call_that_is_emitted_before_it_returns_is_one_event() {
        let mut log = String::from("main(1 <unfinished ...>\n");
        for _ in 0..70_000 {
            log.push_str("f() = 0\n");
        }
        log.push_str("<... main resumed> ) = 0\n");
        let events = events_of(&read(&Ltrace, &log, Reading::default()), "input");
        assert_eq!((events.len(), events[0].as_str(), events[70_000].as_str()), (70_001, "main", "f"));
    }

    #[test]
    fn damage_has_its_line() {
        let error = read(&Ltrace, "f() = 0\n)))\n", Reading::default()).unwrap_err();
        assert!(error.starts_with("line 2: "), "{error}");
    }
}
