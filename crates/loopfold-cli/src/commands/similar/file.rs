//! Files of patterns: an event a line, as `cat` prints it, or for each process after a line
//! such as `rank 0:`. Empty lines and those that begin with # are passed over.

use crate::input::files;
use anyhow::{Context as _, Result, bail};
use loopfold_sources::Input;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

/// A parsed file.
pub(super) struct Written {
    /// All events with the numbers of their lines, from 1.
    pub(super) events: Vec<(usize, String)>,
    /// The range of each process in `events`; `None` if the file names no process.
    pub(super) processes: Option<BTreeMap<usize, std::ops::Range<usize>>>,
}

/// A file that is longer is something else.
const LONGEST: u64 = 1 << 26;
/// The most bad lines that an error lists.
const MOST_LISTED: usize = 8;

pub(super) fn read(path: &Path) -> Result<Written> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let file = files::open(path).with_context(|| name.clone())?;
    Input::open(file, false)?.take(LONGEST + 1).read_to_end(&mut bytes).with_context(|| name.clone())?;
    if bytes.len() as u64 > LONGEST {
        bail!("{name}: too long for a pattern");
    }
    parse(&bytes).with_context(|| name)
}

fn parse(bytes: &[u8]) -> Result<Written> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut events: Vec<(usize, String)> = Vec::new();
    let mut processes: BTreeMap<usize, std::ops::Range<usize>> = BTreeMap::new();
    let mut heads: Vec<(usize, usize)> = Vec::new();
    let mut bad = Vec::new();
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let Ok(line) = std::str::from_utf8(line) else {
            bad.push(format!("line {number}: not text in UTF-8"));
            continue;
        };
        let Some(head) = line.strip_prefix("rank ").and_then(|rest| rest.strip_suffix(':')) else {
            events.push((number, line.to_string()));
            continue;
        };
        if heads.is_empty()
            && let Some((first, _)) = events.first()
        {
            bad.push(format!("line {first}: an event of no process, before `{line}` in line {number}"));
        }
        match head.trim().parse::<usize>() {
            Ok(process) if processes.contains_key(&process) => {
                bad.push(format!("line {number}: there was a `rank {process}:` before"));
            }
            Ok(process) => {
                processes.insert(process, events.len()..events.len());
                heads.push((number, process));
                continue;
            }
            Err(_) => bad.push(format!("line {number}: a rank is a number, as in `rank 0:`")),
        }
    }
    for (index, &(number, process)) in heads.iter().enumerate() {
        let end = heads.get(index + 1).map_or(events.len(), |(_, next)| processes[next].start);
        let begin = processes[&process].start;
        if begin == end {
            bad.push(format!("line {number}: rank {process} has no events"));
        }
        processes.insert(process, begin..end);
    }
    if !bad.is_empty() {
        let more = bad.len().saturating_sub(MOST_LISTED);
        bad.truncate(MOST_LISTED);
        if more > 0 {
            bad.push(format!("and {more} more like that"));
        }
        bail!("this is not a pattern\n{}", bad.join("\n"));
    }
    if events.is_empty() {
        bail!("there are no events in it");
    }
    Ok(Written { events, processes: (!processes.is_empty()).then_some(processes) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn events_belong_to_the_process_above_them() {
        let written = parse(b"# one\nrank 3:\r\n a b \n\n#x\nc\nrank 0:\nd\n").unwrap();
        let texts: Vec<&str> = written.events.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["a b", "c", "d"]);
        assert_eq!(written.events[1].0, 6);
        assert_eq!(written.processes.unwrap(), BTreeMap::from([(0, 2..3), (3, 0..2)]));
        assert!(parse(b"a\nb\n").unwrap().processes.is_none());
    }

    #[test]
    fn bad_lines_are_listed_with_their_numbers() {
        let check = |text: &[u8], expected: &[&str]| {
            let error = format!("{:#}", parse(text).err().unwrap());
            expected.iter().for_each(|part| assert!(error.contains(part), "{part:?} is not in {error}"));
        };
        check(b"a\nrank 0:\nb\n", &["line 1: an event of no process", "line 2"]);
        check(b"rank 0:\na\n\nrank 0:\nb\n", &["line 4: there was"]);
        check(b"rank x:\na\nrank -1:\n", &["line 1: a rank is a number", "line 3"]);
        check(b"rank 0:\n\nrank 1:\na\n", &["line 1: rank 0 has no events"]);
        check(b"a\n\xff\n", &["line 2: not text"]);
        check(b"# nothing\n", &["no events"]);
        check(&b"rank 99999999999999999999:\n".repeat(20), &["line 1:", "and 12 more"]);
    }
}
