//! Reads logs of executed instructions as the RISC-V simulator Spike writes them with `-l`
//! (`core   0: 0x… (0x…) slliw a0, a0, 1`) or `--log-commits`
//! (`core   0: 3 0x… (0x…) x10 0x…`).
//!
//! One stream per core, `core N`; events and fields as [`crate::instructions`] says. A
//! commit line of an instruction that has its own line is redundant and is
//! skipped; where there are only commit lines, there are no mnemonics. A trap is the
//! event `0x… trap_…` at the address it was taken at. Lines of the simulator and of the
//! simulated program's console are not damage: both end up in the same file.
//!
//! Linear time, no memory but a window.

use crate::instructions::{Instruction, Processors, split_mnemonic};
use crate::line_reader::{LineReader, Verdict, decimal, fit_of_lines, split_word};
use crate::{Context, Description, Fit, Result, Source};
use hashbrown::HashMap;
use std::io::BufRead;

/// See the module.
pub(crate) struct Spike;

impl Source for Spike {
    fn name(&self) -> &'static str {
        "spike"
    }

    fn about(&self) -> &'static str {
        "instructions logged by the RISC-V simulator Spike (-l, --log-commits)"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["pc", "mnemonic", "class"]
    }

    fn description(&self) -> Description {
        Description {
            event: "the address and mnemonic of an instruction: `0x80002318 slliw`",
            stream: "a core",
            times: "",
            example: "loopfold loops spike.log --key class",
        }
    }

    fn fits(&self, head: &[u8]) -> Fit {
        fit_of_lines(head, Fit::Certain, |line| match parse(line) {
            Parsed::Instruction(_) | Parsed::Commit(_) | Parsed::Trap(_) => Verdict::For,
            Parsed::Cut => Verdict::Against,
            Parsed::Other => Verdict::Neutral,
        })
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let mut cores = Processors::new("core", context);
        // The address of each core's last instruction whose commit line may follow.
        let mut uncommitted: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut has_commits = false;
        let mut seen_any = false;
        let mut lines = LineReader::new(input);
        while let Some(line) = lines.next_line()? {
            match parse(line.bytes) {
                Parsed::Instruction(instruction) => {
                    seen_any = true;
                    // Copying each address is for logs that have both kinds of lines.
                    if has_commits || line.number < LINES_UNTIL_FIRST_COMMIT {
                        let address = uncommitted.entry(instruction.processor).or_default();
                        address.clear();
                        address.extend_from_slice(instruction.address);
                    }
                    cores.push(instruction, context)?;
                }
                Parsed::Trap(instruction) => cores.push(instruction, context)?,
                Parsed::Commit(instruction) => {
                    seen_any = true;
                    has_commits = true;
                    let own_line = uncommitted.remove(&instruction.processor);
                    if own_line.is_none_or(|address| address != instruction.address) {
                        cores.push(instruction, context)?;
                    }
                }
                Parsed::Cut => context.damaged(
                    line.place(),
                    "expected an instruction: an address and a word in parentheses, both hexadecimal",
                )?,
                Parsed::Other => {}
            }
        }
        if !seen_any {
            context.damaged("the file", "no line is an instruction as Spike logs it")?;
        }
        Ok(())
    }
}

/// If a log has commit lines, the first is the second line of its core. Many cores
/// and messages may come before.
const LINES_UNTIL_FIRST_COMMIT: u64 = 100_000;

/// A parsed line.
enum Parsed<'a> {
    Instruction(Instruction<'a>),
    Commit(Instruction<'a>),
    Trap(Instruction<'a>),
    /// It began as an instruction.
    Cut,
    /// A label, a message, the console of the simulated program.
    Other,
}

fn parse(line: &[u8]) -> Parsed<'_> {
    let Some((processor, rest)) = split_core(line) else { return Parsed::Other };
    match rest.first() {
        Some(b'0') if rest.starts_with(b"0x") => match split_instruction(rest) {
            Some((address, text)) => {
                let (mnemonic, operands) = split_mnemonic(text);
                if mnemonic.is_empty() {
                    return Parsed::Cut;
                }
                Parsed::Instruction(Instruction { processor, address, mnemonic, operands })
            }
            None => Parsed::Cut,
        },
        Some(b'0'..=b'9') => {
            let (_privilege, rest) = split_word(rest);
            match split_instruction(rest) {
                Some((address, _)) => {
                    Parsed::Commit(Instruction { processor, address, mnemonic: b"", operands: b"" })
                }
                None => Parsed::Cut,
            }
        }
        _ => trap(processor, rest).map_or(Parsed::Other, Parsed::Trap),
    }
}

/// The number in `core   0:` and what follows.
fn split_core(line: &[u8]) -> Option<(u64, &[u8])> {
    let rest = line.strip_prefix(b"core")?.trim_ascii_start();
    let colon = memchr::memchr(b':', &rest[..rest.len().min(20)])?;
    Some((decimal(&rest[..colon])?, rest[colon + 1..].trim_ascii_start()))
}

/// The digits of the address, and what follows the instruction word.
fn split_instruction(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (address, rest) = split_hexadecimal(text)?;
    let (_word, rest) = split_hexadecimal(rest.strip_prefix(b" (")?)?;
    let rest = rest.strip_prefix(b")")?;
    Some((address, rest))
}

fn split_hexadecimal(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits = text.strip_prefix(b"0x")?;
    let length = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    (1..=16).contains(&length).then(|| digits.split_at(length))
}

/// `exception trap_user_ecall, epc 0x…`, or `interrupt` in place of `exception`.
fn trap(processor: u64, text: &[u8]) -> Option<Instruction<'_>> {
    let text = text.strip_prefix(b"exception ").or_else(|| text.strip_prefix(b"interrupt "))?;
    let comma = memchr::memchr(b',', text)?;
    let epc = text[comma + 1..].trim_ascii_start().strip_prefix(b"epc ")?;
    let (address, _) = split_hexadecimal(epc)?;
    Some(Instruction { processor, address, mnemonic: &text[..comma], operands: b"" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reading, damage_of, events_of, read};

    const LOG: &str = "\
warning: tohost and fromhost symbols not in ELF
core   0: 0x0000000000001000 (0x00000297) auipc   t0, 0x0
core   0: >>>>  main
core   0: 0x0000000080000004 (0x0000b187) fld     ft3, 0(ra)
Hello from the program
core   1: 0x0000000080000008 (0x0001) c.nop
core   0: exception trap_user_ecall, epc 0x0000000080000010
core   0:           tval 0x0000000000000000
core   0: 0x000000008000000c (0x02208053) fadd.s  ft0, ft1, ft2
";

    #[test]
    fn instructions_are_events_of_their_core() {
        assert_eq!(Spike.fits(LOG.as_bytes()), Fit::Certain);
        let reading = read(&Spike, LOG, Reading::default());
        assert_eq!(
            events_of(&reading, "core 0"),
            ["0x1000 auipc", "0x80000004 fld", "0x80000010 trap_user_ecall", "0x8000000c fadd.s"]
        );
        assert_eq!(events_of(&reading, "core 1"), ["0x80000008 c.nop"]);
    }

    #[test]
    fn the_key_chooses_what_an_instruction_is() {
        let by = |key| events_of(&read(&Spike, LOG, Reading::by(&[key])), "core 0");
        assert_eq!(by("pc"), ["0x1000", "0x80000004", "0x80000010", "0x8000000c"]);
        assert_eq!(by("mnemonic"), ["auipc", "fld", "trap_user_ecall", "fadd.s"]);
        assert_eq!(by("class"), ["l", "a"]);
    }

    #[test]
    fn commit_lines_are_no_second_events() {
        let both = "\
core   0: 0x0000000080000000 (0x00000297) auipc   t0, 0x0
core   0: 3 0x0000000080000000 (0x00000297) x5  0x0000000080000000
core   0: 0x0000000080000004 (0x0000b183) ld      gp, 0(ra)
core   0: 3 0x0000000080000004 (0x0000b183) x3  0x0 mem 0x80001000
";
        let reading = read(&Spike, both, Reading::default());
        assert_eq!(events_of(&reading, "core 0"), ["0x80000000 auipc", "0x80000004 ld"]);
        let commits: String =
            both.lines().filter(|line| line.contains(": 3 ")).map(|line| format!("{line}\n")).collect();
        let reading = read(&Spike, &commits, Reading::default());
        assert_eq!(events_of(&reading, "core 0"), ["0x80000000", "0x80000004"]);
    }

    #[test]
    fn a_line_cut_short_is_damage() {
        let cut = "core   0: 0x0000000080000000 (0x00000297) auipc   t0, 0x0\ncore   0: 0x00000000800000";
        let error = read(&Spike, cut, Reading::default()).unwrap_err();
        assert!(error.starts_with("line 2: expected an instruction"), "{error}");
        let reading = read(&Spike, cut, Reading::lenient());
        assert_eq!((events_of(&reading, "core 0").len(), damage_of(&reading)), (1, 1));
        assert!(read(&Spike, "no log\n", Reading::default()).is_err());
    }
}
