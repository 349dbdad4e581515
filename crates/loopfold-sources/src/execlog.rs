//! Reads logs of executed instructions as QEMU's plugin execlog writes them:
//! `0, 0x10564, 0x22000ef, "022000ef  jal ra,34", load, 0x4000800860`.
//!
//! One stream per virtual processor, `cpu N`; events and fields as
//! [`crate::instructions`] says.
//!
//! QEMU writes an instruction and its line end one after the other, without a lock, so
//! with several processors a line can hold two instructions and a later one be empty:
//! `0, 0x…, 0x…, "…", load, 0x000a61c41, 0x…, 0x…, "…"`. They are separated by where a
//! quote ends and how the next instruction begins. Only the digits before it can be
//! doubtful: whether `c41` is an address that ends in `c4` and processor 1, or one that
//! ends in `c` and processor 41. A processor that was seen before, and is not the one
//! that wrote the first part, decides. Where none or several do, the line is damaged, and
//! leniently the second instruction belongs to the processor with the shortest number.
//!
//! Linear time, no memory but a window.

use crate::instructions::{Instruction, Processors, split_mnemonic};
use crate::line_reader::{Line, LineReader, Verdict, decimal, fit_of_lines, hexadecimal};
use crate::{Context, Description, Fit, Result, Source};
use std::io::BufRead;

/// See the module.
pub(crate) struct Execlog;

impl Source for Execlog {
    fn name(&self) -> &'static str {
        "execlog"
    }

    fn about(&self) -> &'static str {
        "instructions logged by QEMU's plugin execlog"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["pc", "mnemonic", "class"]
    }

    fn description(&self) -> Description {
        Description {
            event: "the address and mnemonic of an instruction: `0x80002318 slliw`",
            stream: "a core",
            times: "",
            example: "loopfold loops execlog.txt",
        }
    }

    fn fits(&self, head: &[u8]) -> Fit {
        fit_of_lines(head, Fit::Certain, |line| match Record::split(line) {
            Some(_) => Verdict::For,
            None if line.is_empty() => Verdict::Neutral,
            None => Verdict::Against,
        })
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let mut processors = Processors::new("cpu", context);
        let mut lines = LineReader::new(input);
        while let Some(line) = lines.next_line()? {
            if !line.bytes.is_empty() {
                read_line(line, &mut processors, context)?;
            }
        }
        Ok(())
    }
}

/// Parses a line: one instruction, or several that were interleaved.
fn read_line(line: Line<'_>, processors: &mut Processors, context: &mut Context<'_>) -> Result<()> {
    let Some((mut record, mut tail)) = Record::split(line.bytes) else {
        return context
            .damaged(line.place(), "expected a processor, an address, a word and an instruction in quotes");
    };
    let Some(mut processor) = decimal(record.processor) else {
        return context.damaged(line.place(), "the number of the processor is out of range");
    };
    loop {
        processors.push(record.instruction(processor), context)?;
        // A quote after the quotes of this instruction opens those of another.
        let Some(quote) = memchr::memchr(b'"', tail) else { return Ok(()) };
        let Some((digits, rest)) = split_before_record(tail, quote) else {
            return context.damaged(line.place(), "two instructions that cannot be separated");
        };
        let Some((next, next_tail)) = Record::after_processor(digits, rest) else {
            return context.damaged(line.place(), "the second instruction on the line is cut short");
        };
        let is_other = |number: u64| number != processor && processors.knows(number);
        processor = match processor_in(digits, tail, is_other) {
            Ok(next) => next,
            Err(guess) => {
                context.damaged(line.place(), "the second instruction may be of several processors")?;
                guess
            }
        };
        (record, tail) = (next, next_tail);
    }
}

/// The digits before `, 0x…, 0x…, "` with the quote at `quote`, and what follows them.
fn split_before_record(text: &[u8], quote: usize) -> Option<(&[u8], &[u8])> {
    let mut end = quote;
    for _ in 0..2 {
        let before = text[..end].strip_suffix(b", ")?;
        let digits = before.iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count();
        end = before[..before.len() - digits].strip_suffix(b"0x")?.len();
    }
    let end = text[..end].strip_suffix(b", ")?.len();
    let digits = text[..end].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then(|| (&text[end - digits..end], &text[end..]))
}

/// The processor at the end of `digits`; the first digits may belong to the address before it.
/// If that is ambiguous, the one with the shortest number.
fn processor_in(digits: &[u8], tail: &[u8], is_other: impl Fn(u64) -> bool) -> Result<u64, u64> {
    let shortest = u64::from(digits[digits.len() - 1] - b'0');
    if tail.starts_with(digits) {
        // Nothing but the closing quote stands before them.
        return decimal(digits).ok_or(shortest);
    }
    let mut fitting = (1..=digits.len().min(4)).filter_map(|length| {
        let number = &digits[digits.len() - length..];
        let is_plain = length == 1 || number[0] != b'0';
        decimal(number).filter(|&number| is_plain && is_other(number))
    });
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(only),
        (Some(first), Some(_)) => Err(first),
        (None, _) => Err(shortest),
    }
}

/// What is written of one instruction.
struct Record<'a> {
    processor: &'a [u8],
    address: &'a [u8],
    word: &'a [u8],
    disassembly: &'a [u8],
}

impl<'a> Record<'a> {
    /// The instruction at the beginning of a line, and what follows its quotes.
    fn split(line: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let (processor, rest) = line.split_at(digits);
        Self::after_processor(processor, rest)
    }

    fn after_processor(processor: &'a [u8], rest: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (address, rest) = split_hexadecimal(rest)?;
        let (word, rest) = split_hexadecimal(rest)?;
        let rest = rest.strip_prefix(b", \"")?;
        let end = memchr::memchr(b'"', rest)?;
        let disassembly = &rest[..end];
        Some((Self { processor, address, word, disassembly }, &rest[end + 1..]))
    }

    fn instruction(&self, processor: u64) -> Instruction<'a> {
        let (mut mnemonic, mut operands) = split_mnemonic(self.disassembly);
        if !operands.is_empty() && self.is_encoding(mnemonic) {
            (mnemonic, operands) = split_mnemonic(operands);
        }
        Instruction { processor, address: self.address, mnemonic, operands }
    }

    /// QEMU's own disassemblers begin with the encoding, others do not: `fadd` is a
    /// mnemonic, `8082` is not.
    fn is_encoding(&self, text: &[u8]) -> bool {
        if text.len() < 4 || !text.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        text.iter().any(u8::is_ascii_digit) || self.word_ends_with(text)
    }

    fn word_ends_with(&self, text: &[u8]) -> bool {
        let (Some(word), Some(text_value)) = (hexadecimal(self.word), hexadecimal(text)) else {
            return false;
        };
        let bits = 4 * text.len() as u32;
        let mask = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
        word & mask == text_value
    }
}

/// The digits in `, 0x…`, and what follows.
fn split_hexadecimal(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits = text.strip_prefix(b", 0x")?;
    let length = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    (1..=16).contains(&length).then(|| digits.split_at(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reading, damage_of, events_of, read};

    #[test]
    fn instructions_are_events_of_their_cpu() {
        let log = "\
0, 0x10564, 0x22000ef, \"022000ef          jal                     ra,34                   # 0x10586\"
1, 0x10568, 0x87aa, \"87aa              fld                     fa5,0(a0)\", load, 0x4000800860
0, 0x40, 0x1e622820, \"fadd d0, d1, d2\"
0, 0x44, 0x8082, \"8082              ret                     \"
1, 0x48, 0xf3a4, \"rep movsb (%rsi), %es:(%rdi)\", load, 0x10, store, 0x20, RAM
";
        assert_eq!(Execlog.fits(log.as_bytes()), Fit::Certain);
        let reading = read(&Execlog, log, Reading::default());
        assert_eq!(events_of(&reading, "cpu 0"), ["0x10564 jal", "0x40 fadd", "0x44 ret"]);
        assert_eq!(events_of(&reading, "cpu 1"), ["0x10568 fld", "0x48 rep movsb"]);
        assert_eq!(events_of(&read(&Execlog, log, Reading::by(&["class"])), "cpu 1"), ["l"]);
    }

    #[test]
    fn spliced_lines_are_taken_apart() {
        let log = "\
0, 0x10, 0x1, \"0001 nop a\"
1, 0x12, 0x1, \"0001 nop a\"
0, 0x14, 0x2, \"0002 add a3,a2,a5\"1, 0x20, 0x3, \"0003 sub a,b\"
1, 0x22, 0x4, \"0004 lw a4,0(s0)\", load, 0x000a61c40, 0x16, 0x5, \"0005 sd a,b\", store, 0x0009ad581, 0x24, 0x6, \"0006 beq x\"

";
        let reading = read(&Execlog, log, Reading::default());
        assert_eq!(events_of(&reading, "cpu 0"), ["0x10 nop", "0x14 add", "0x16 sd"]);
        assert_eq!(events_of(&reading, "cpu 1"), ["0x12 nop", "0x20 sub", "0x22 lw", "0x24 beq"]);
    }

    #[test]
    fn a_doubtful_splice_is_damage() {
        let log = "\
0, 0x10, 0x1, \"0001 nop a\"
1, 0x10, 0x1, \"0001 nop a\"
41, 0x10, 0x1, \"0001 nop a\"
0, 0x22, 0x4, \"0004 lw a4,0(s0)\", load, 0x0000a61c41, 0x16, 0x5, \"0005 sd a,b\"
";
        let error = read(&Execlog, log, Reading::default()).unwrap_err();
        assert_eq!(error, "line 4: the second instruction may be of several processors");
        let reading = read(&Execlog, log, Reading::lenient());
        assert_eq!(events_of(&reading, "cpu 1"), ["0x10 nop", "0x16 sd"]);
        assert_eq!(damage_of(&reading), 1);
    }

    #[test]
    fn lines_that_fit_nothing_are_damage() {
        for bad in ["0, 0x10", "hello", "0, 0x10, 0x1, \"add", "99999999999999999999, 0x1, 0x1, \"add a\""] {
            assert!(read(&Execlog, bad, Reading::default()).unwrap_err().starts_with("line 1: "), "{bad}");
            assert_eq!(damage_of(&read(&Execlog, bad, Reading::lenient())), 1);
        }
    }
}
