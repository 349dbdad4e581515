//! Reads traces of valgrind's tool lackey.
//!
//! With `--trace-superblocks=yes` (`SB 0401ab70`) the event is the address of the
//! block, a number. With `--trace-mem=yes` (`I  04001000,3`, ` L 1ffe80,8`) an
//! instruction is the event `I 04001000`, and a load, store or modification its letter
//! and size, `L8`: data addresses differ in every iteration, so that with them no loop would
//! be seen. The field `address` has them. Lines of valgrind
//! itself (`==123== …`) are skipped.
//!
//! One stream. Linear time, no memory but a window.

use crate::line_reader::{LineReader, Verdict, decimal, fit_of_lines, hexadecimal};
use crate::{Context, Description, Fit, Result, Source};
use loopfold::trace::{Event, Field, Value};
use std::io::BufRead;

/// See the module.
pub(crate) struct Lackey;

impl Source for Lackey {
    fn name(&self) -> &'static str {
        "lackey"
    }

    fn about(&self) -> &'static str {
        "superblocks or memory accesses traced by valgrind's lackey"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["address"]
    }

    fn description(&self) -> Description {
        Description {
            event: "the address of a superblock; in memory mode `I 04001000`, `L8`, `S4`, `M4`",
            stream: "the input",
            times: "",
            example: "loopfold loops lackey.txt",
        }
    }

    fn fits(&self, head: &[u8]) -> Fit {
        let by_lines = fit_of_lines(head, Fit::Likely, |line| match Parsed::of(line) {
            Some(Parsed::Message) => Verdict::Neutral,
            Some(_) => Verdict::For,
            None => Verdict::Against,
        });
        let has_title = memchr::memmem::find(head, b"== Lackey").is_some();
        if has_title && by_lines > Fit::No { Fit::Certain } else { by_lines }
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let stream = context.only_stream()?;
        let wants_address = context.wants("address");
        let mut name = Vec::new();
        let mut lines = LineReader::new(input);
        while let Some(line) = lines.next_line()? {
            let Some(parsed) = Parsed::of(line.bytes) else {
                context.damaged(
                    line.place(),
                    "expected SB and an address, or I, L, S or M, an address and a size",
                )?;
                continue;
            };
            let address = match parsed {
                Parsed::Message => continue,
                Parsed::Block { address, number } => {
                    if !wants_address {
                        context.push_event(stream, &Event::integer(number))?;
                        continue;
                    }
                    name.clear();
                    name.extend_from_slice(b"SB");
                    address
                }
                Parsed::Access { letter, address, size } => {
                    name.clear();
                    name.push(letter);
                    if letter == b'I' {
                        name.push(b' ');
                        name.extend_from_slice(address);
                    } else {
                        name.extend_from_slice(size);
                    }
                    address
                }
            };
            let field = [Field { key: "address", value: Value::Text(address) }];
            let fields = if wants_address { &field[..] } else { &[] };
            context.push_event(stream, &Event { fields, ..Event::named(&name) })?;
        }
        Ok(())
    }
}

/// A parsed line.
enum Parsed<'a> {
    Block { address: &'a [u8], number: u64 },
    Access { letter: u8, address: &'a [u8], size: &'a [u8] },
    Message,
}

impl<'a> Parsed<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        if let Some(address) = line.strip_prefix(b"SB ") {
            let address = address.trim_ascii();
            return Some(Parsed::Block { address, number: hexadecimal(address)? });
        }
        match line {
            [b'I', b' ', b' ', rest @ ..] => Self::access(b'I', rest),
            [b' ', letter @ (b'L' | b'S' | b'M'), b' ', rest @ ..] => Self::access(*letter, rest),
            [b'=', b'=', ..] | [b'-', b'-', ..] | [b'*', b'*', ..] => Some(Parsed::Message),
            _ if line.trim_ascii().is_empty() => Some(Parsed::Message),
            _ => None,
        }
    }

    fn access(letter: u8, rest: &'a [u8]) -> Option<Self> {
        let rest = rest.trim_ascii();
        let comma = memchr::memchr(b',', rest)?;
        let (address, size) = (&rest[..comma], &rest[comma + 1..]);
        decimal(size)?;
        hexadecimal(address)?;
        Some(Parsed::Access { letter, address, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reading, damage_of, events_of, read};

    #[test]
    fn superblocks_are_numbers() {
        let log = "==9== Lackey, an example Valgrind tool\n==9== \nSB 00000010\nSB 1fff\n==9== \n";
        assert_eq!(Lackey.fits(log.as_bytes()), Fit::Certain);
        assert_eq!(events_of(&read(&Lackey, log, Reading::default()), "input"), ["16", "8191"]);
        assert_eq!(events_of(&read(&Lackey, log, Reading::by(&["address"])), "input"), ["00000010", "1fff"]);
    }

    #[test]
    fn accesses_have_a_letter_and_a_size() {
        let log = "I  04001000,3\n L 1ffe80,8\n S 1ffe88,4\n M 0421c7cc,4\n";
        assert_eq!(Lackey.fits(log.as_bytes()), Fit::Likely);
        let default = events_of(&read(&Lackey, log, Reading::default()), "input");
        assert_eq!(default, ["I 04001000", "L8", "S4", "M4"]);
        let full = events_of(&read(&Lackey, log, Reading::by(&["name", "address"])), "input");
        assert_eq!(full[1], "L8 address=1ffe80");
    }

    #[test]
    fn lines_that_fit_nothing_are_damage() {
        for bad in [
            "SB 04\nSB \n",
            "SB 04\nSB 0x1\n",
            "SB 1\nSB 11112222333344445555\n",
            "SB 1\nI  04,\n",
            "SB 1\nhello\n",
        ] {
            let error = read(&Lackey, bad, Reading::default()).unwrap_err();
            assert!(error.starts_with("line 2: "), "{error}");
            assert_eq!(damage_of(&read(&Lackey, bad, Reading::lenient())), 1);
        }
    }
}
