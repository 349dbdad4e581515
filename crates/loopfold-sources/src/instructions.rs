//! Emits executed instructions, for all logs of them: an address, a mnemonic, and the processor
//! that executed it.
//!
//! The event is the address and the mnemonic, `0x80002318 slliw`. Fields: `pc`,
//! `mnemonic`, and `class`, a letter for floating-point instructions. When `class` is
//! asked for, all other instructions are left out, so that the trace is that of the
//! floating-point unit:
//!
//! | letter | instructions |
//! | --- | --- |
//! | `l` `s` | load, store |
//! | `a` | add, subtract |
//! | `m` `d` `r` | multiply, divide, square root |
//! | `f` | fused multiply and add |
//! | `c` | conversion, rounding |
//! | `x` | comparison, minimum, maximum, classification |
//! | `v` | move, negation, absolute value, sign injection |
//!
//! RISC-V (with compressed instructions), AArch64, and SSE and AVX of x86 are known. Time is
//! linear in the text; memory is O(streams).

use crate::{Context, Result};
use hashbrown::HashMap;
use loopfold::StreamId;
use loopfold::trace::{Event, Field, Value};

/// An executed instruction, as a log has it.
#[derive(Clone, Copy)]
pub(crate) struct Instruction<'a> {
    /// The number of the processor.
    pub(crate) processor: u64,
    /// The address as hexadecimal digits.
    pub(crate) address: &'a [u8],
    /// Empty where the log has none.
    pub(crate) mnemonic: &'a [u8],
    pub(crate) operands: &'a [u8],
}

/// Pushes instructions, one stream per processor.
pub(crate) struct Processors {
    /// What the format calls a processor, `core` or `cpu`.
    word: &'static str,
    streams: HashMap<u64, StreamId>,
    last: Option<(u64, StreamId)>,
    name: Vec<u8>,
    wants_address: bool,
    wants_mnemonic: bool,
    wants_class: bool,
    /// Instructions without a class are left out.
    only_classes: bool,
}

impl Processors {
    pub(crate) fn new(word: &'static str, context: &Context<'_>) -> Self {
        Self {
            word,
            streams: HashMap::new(),
            last: None,
            name: Vec::new(),
            wants_address: context.wants("pc"),
            wants_mnemonic: context.wants("mnemonic"),
            wants_class: context.wants("class"),
            // A request for all fields is not a request for the class.
            only_classes: context.wants("class") && !context.wants("all"),
        }
    }

    /// Whether instructions of this processor were seen.
    pub(crate) fn knows(&self, processor: u64) -> bool {
        self.streams.contains_key(&processor)
    }

    pub(crate) fn push(&mut self, instruction: Instruction<'_>, context: &mut Context<'_>) -> Result<()> {
        let Instruction { processor, address, mnemonic, operands } = instruction;
        let class = if self.wants_class { floating_point_class(mnemonic, operands) } else { None };
        if self.only_classes && class.is_none() {
            return Ok(());
        }
        let stream = self.stream_of(processor, context)?;
        let name = &mut self.name;
        name.clear();
        name.extend_from_slice(b"0x");
        name.extend_from_slice(without_leading_zeros(address));
        let address_end = name.len();
        if !mnemonic.is_empty() {
            name.push(b' ');
            name.extend_from_slice(mnemonic);
        }
        let mut fields = [Field { key: "", value: Value::Integer(0) }; 3];
        let mut used = 0;
        let mut add = |wanted: bool, key, text| {
            if wanted {
                fields[used] = Field { key, value: Value::Text(text) };
                used += 1;
            }
        };
        add(self.wants_address, "pc", &name[..address_end]);
        add(self.wants_mnemonic && !mnemonic.is_empty(), "mnemonic", mnemonic);
        add(class.is_some(), "class", class.unwrap_or_default());
        context.push_event(stream, &Event { fields: &fields[..used], ..Event::named(name) })
    }

    fn stream_of(&mut self, processor: u64, context: &mut Context<'_>) -> Result<StreamId> {
        if let Some((last, stream)) = self.last
            && last == processor
        {
            return Ok(stream);
        }
        let stream = match self.streams.get(&processor) {
            Some(&stream) => stream,
            None => {
                let stream = context.stream(&format!("{} {processor}", self.word))?;
                self.streams.insert(processor, stream);
                stream
            }
        };
        self.last = Some((processor, stream));
        Ok(stream)
    }
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    &digits[zeros.min(digits.len().saturating_sub(1))..]
}

/// Splits a disassembled instruction into mnemonic and operands. Prefixes that x86
/// disassemblers write as words of their own belong to the mnemonic.
pub(crate) fn split_mnemonic(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii();
    let mut end = 0;
    loop {
        let begin = end;
        end += text[begin..].iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        let word = &text[begin..end];
        let blanks = text[end..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if !is_prefix(word) || end + blanks == text.len() {
            return (&text[..end], &text[end + blanks..]);
        }
        end += blanks;
    }
}

fn is_prefix(word: &[u8]) -> bool {
    matches!(
        word,
        b"lock"
            | b"rep"
            | b"repe"
            | b"repz"
            | b"repne"
            | b"repnz"
            | b"bnd"
            | b"notrack"
            | b"data16"
            | b"addr32"
    )
}

/// The letter of a floating-point instruction. Returns `None` for any other.
pub(crate) fn floating_point_class(mnemonic: &[u8], operands: &[u8]) -> Option<&'static [u8]> {
    let letter = match mnemonic.strip_prefix(b"c.").unwrap_or(mnemonic) {
        base @ [b'f', ..] => of_f_family(base),
        base @ ([b'l', b'd', ..] | [b's', b't', ..]) => of_arm_memory(base, operands),
        b"scvtf" | b"ucvtf" => Some('c'),
        base => of_x86(base, operands),
    };
    Some(match letter? {
        'l' => b"l",
        's' => b"s",
        'a' => b"a",
        'm' => b"m",
        'd' => b"d",
        'r' => b"r",
        'f' => b"f",
        'c' => b"c",
        'x' => b"x",
        _ => b"v",
    })
}

/// RISC-V and AArch64 begin floating-point mnemonics with `f`.
fn of_f_family(mnemonic: &[u8]) -> Option<char> {
    let base = mnemonic.split(|&byte| byte == b'.').next()?;
    Some(match base {
        b"flh" | b"flw" | b"fld" | b"flq" | b"flwsp" | b"fldsp" | b"flqsp" => 'l',
        b"fsh" | b"fsw" | b"fsd" | b"fsq" | b"fswsp" | b"fsdsp" | b"fsqsp" => 's',
        b"fadd" | b"fsub" | b"faddp" | b"fabd" => 'a',
        b"fmul" | b"fnmul" | b"fmulx" => 'm',
        b"fdiv" => 'd',
        b"fsqrt" => 'r',
        b"fmadd" | b"fmsub" | b"fnmadd" | b"fnmsub" | b"fmla" | b"fmls" => 'f',
        b"feq" | b"flt" | b"fle" | b"fgt" | b"fge" | b"fltq" | b"fleq" | b"fclass" => 'x',
        b"fmv" | b"fneg" | b"fabs" | b"fsgnj" | b"fsgnjn" | b"fsgnjx" | b"fmvh" | b"fmvp" | b"fli" => 'v',
        b"fmov" | b"fcsel" => 'v',
        _ if base.starts_with(b"fcvt") || base.starts_with(b"frint") || base.starts_with(b"fround") => 'c',
        _ if [&b"fmin"[..], b"fmax", b"fcm", b"fccmp"].iter().any(|start| base.starts_with(start)) => 'x',
        // Among others fence, and the instructions for the control register.
        _ => return None,
    })
}

/// On AArch64 the register shows whether a load or store is one of floating point.
fn of_arm_memory(mnemonic: &[u8], operands: &[u8]) -> Option<char> {
    let is_memory =
        [&b"ldr"[..], b"ldp", b"ldur", b"ldnp", b"str", b"stp", b"stur", b"stnp"].contains(&mnemonic);
    let is_float = matches!(operands, [b'b' | b'h' | b's' | b'd' | b'q', b'0'..=b'9', ..]);
    (is_memory && is_float).then_some(if mnemonic[0] == b'l' { 'l' } else { 's' })
}

/// SSE and AVX end floating-point mnemonics with the form of their operands.
fn of_x86(mnemonic: &[u8], operands: &[u8]) -> Option<char> {
    let base = match mnemonic {
        [b'v', rest @ ..] => rest,
        _ => mnemonic,
    };
    if base.starts_with(b"cvt") {
        return Some('c');
    }
    if [&b"fmadd"[..], b"fmsub", b"fnmadd", b"fnmsub"].iter().any(|start| base.starts_with(start)) {
        return Some('f');
    }
    let (stem, form) = base.split_at_checked(base.len().checked_sub(2)?)?;
    if !matches!(form, b"ss" | b"sd" | b"ps" | b"pd") || !has_vector_register(operands) {
        return None;
    }
    Some(match stem {
        b"add" | b"sub" | b"hadd" | b"hsub" | b"addsub" => 'a',
        b"mul" => 'm',
        b"div" => 'd',
        b"sqrt" => 'r',
        b"min" | b"max" | b"comi" | b"ucomi" => 'x',
        _ if stem.starts_with(b"cmp") => 'x',
        _ if stem.starts_with(b"round") => 'c',
        _ if stem.starts_with(b"mov") => direction_of_move(operands),
        b"xor" | b"and" | b"andn" | b"or" | b"shuf" | b"unpckl" | b"unpckh" | b"blend" => 'v',
        _ => return None,
    })
}

/// `movsd` without such a register copies strings.
fn has_vector_register(operands: &[u8]) -> bool {
    memchr::memmem::find(operands, b"mm").is_some()
}

/// Which operand of a move is in memory: `(%rax)`, the target last, or `[rax]`, the
/// target first.
fn direction_of_move(operands: &[u8]) -> char {
    let first = operands.split(|&byte| byte == b',').next().unwrap_or_default();
    match (memchr::memchr(b'[', operands), memchr::memchr(b'(', operands)) {
        (Some(at), _) => {
            if at < first.len() {
                's'
            } else {
                'l'
            }
        }
        (_, Some(_)) => {
            if operands.ends_with(b")") {
                's'
            } else {
                'l'
            }
        }
        _ => 'v',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floating_point_instructions_have_classes() {
        let cases: &[(&str, &str, &str)] = &[
            ("flw", "fa5,0(a0)", "l"),
            ("c.fldsp", "fs0, 8(sp)", "l"),
            ("c.fsd", "fa0, 8(a0)", "s"),
            ("fsub.s", "", "a"),
            ("fmul.d", "", "m"),
            ("fdiv.d", "", "d"),
            ("fsqrt.d", "", "r"),
            ("fnmsub.s", "", "f"),
            ("fcvt.d.w", "", "c"),
            ("flt.d", "", "x"),
            ("fmax.d", "", "x"),
            ("fsgnjx.d", "", "v"),
            ("fmv.x.d", "", "v"),
            ("fence", "", ""),
            ("fsrm", "a0", ""),
            ("frcsr", "a0", ""),
            ("add", "a0, a0, a1", ""),
            ("c.addi", "sp, -32", ""),
            ("sd", "ra, 8(sp)", ""),
            ("ldr", "d0, [x1]", "l"),
            ("ldr", "x0, [x1]", ""),
            ("stp", "s0, s1, [sp]", "s"),
            ("fmla", "v0.2d, v1.2d, v2.2d", "f"),
            ("fcmpe", "d0, d1", "x"),
            ("addsd", "%xmm1, %xmm0", "a"),
            ("vmulpd", "ymm0, ymm1, ymm2", "m"),
            ("vfmadd231sd", "%xmm2, %xmm1, %xmm0", "f"),
            ("cvtsi2sd", "%eax, %xmm0", "c"),
            ("movsd", "(%rax), %xmm0", "l"),
            ("movsd", "%xmm0, 8(%rax)", "s"),
            ("movapd", "xmm0, xmmword ptr [rax]", "l"),
            ("movss", "dword ptr [rax], xmm0", "s"),
            ("movaps", "%xmm1, %xmm0", "v"),
            ("movsd", "dword ptr es:[rdi], dword ptr [rsi]", ""),
            ("s", "", ""),
            ("", "", ""),
        ];
        for &(mnemonic, operands, expected) in cases {
            let class = floating_point_class(mnemonic.as_bytes(), operands.as_bytes());
            assert_eq!(class.unwrap_or_default(), expected.as_bytes(), "{mnemonic} {operands}");
        }
    }

    #[test]
    fn prefixes_belong_to_the_mnemonic() {
        let split = |text: &'static str| {
            let (mnemonic, operands) = split_mnemonic(text.as_bytes());
            (std::str::from_utf8(mnemonic).unwrap(), std::str::from_utf8(operands).unwrap())
        };
        assert_eq!(split("addi   a0,a0,1 "), ("addi", "a0,a0,1"));
        assert_eq!(split("rep stosq %al, (%rdi)"), ("rep stosq", "%al, (%rdi)"));
        assert_eq!(split("ret"), ("ret", ""));
        assert_eq!(split("lock"), ("lock", ""));
        assert_eq!(split(""), ("", ""));
    }

    #[test]
    fn an_address_keeps_one_digit() {
        assert_eq!(without_leading_zeros(b"0000"), b"0");
        assert_eq!(without_leading_zeros(b"00a0"), b"a0");
        assert_eq!(without_leading_zeros(b""), b"");
    }
}
