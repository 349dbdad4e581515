//! Counters of the kernel that can be measured for every path, by the names that `perf` has for them.

use crate::{Error, Result};

/// A counter, as `perf_event_open` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    name: &'static str,
    kind: u32,
    config: u32,
}

/// Of the processor, and of the kernel itself.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;

const ALL: [Counter; 14] = [
    Counter { name: "cpu-cycles", kind: HARDWARE, config: 0 },
    Counter { name: "instructions", kind: HARDWARE, config: 1 },
    Counter { name: "cache-references", kind: HARDWARE, config: 2 },
    Counter { name: "cache-misses", kind: HARDWARE, config: 3 },
    Counter { name: "branches", kind: HARDWARE, config: 4 },
    Counter { name: "branch-misses", kind: HARDWARE, config: 5 },
    Counter { name: "stalled-cycles-frontend", kind: HARDWARE, config: 7 },
    Counter { name: "stalled-cycles-backend", kind: HARDWARE, config: 8 },
    Counter { name: "task-clock", kind: SOFTWARE, config: 1 },
    Counter { name: "page-faults", kind: SOFTWARE, config: 2 },
    Counter { name: "context-switches", kind: SOFTWARE, config: 3 },
    Counter { name: "cpu-migrations", kind: SOFTWARE, config: 4 },
    Counter { name: "minor-faults", kind: SOFTWARE, config: 5 },
    Counter { name: "major-faults", kind: SOFTWARE, config: 6 },
];

impl Counter {
    /// The counter of this name.
    pub fn named(name: &str) -> Result<Self> {
        let found = ALL.iter().find(|counter| counter.name == name).copied();
        found.ok_or_else(|| {
            let names = ALL.map(|counter| counter.name).join(", ");
            Error::new(format_args!("there is no counter {name}; there are {names}"))
        })
    }

    /// What its sums are called. The instructions of paths are known without counting.
    pub(super) fn metric(self) -> &'static str {
        match self.name {
            "instructions" => "instructions:u",
            name => name,
        }
    }

    /// As the run-time library takes it.
    pub(super) fn variable(self) -> String {
        format!("{}:{}", self.kind, self.config)
    }

    /// What a machine without it is called.
    pub(super) fn missing(self, error: &std::io::Error) -> String {
        let hint = match self.kind {
            HARDWARE => "this machine, or the virtual machine or container, gives no access to it",
            _ => "the kernel gives no access to it (see /proc/sys/kernel/perf_event_paranoid)",
        };
        format!("the counter {} is not recorded: {hint} ({error})", self.name)
    }
}
