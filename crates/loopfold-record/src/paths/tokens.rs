//! Tokens: what the compiler pass and the run-time library write.

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A path, or block, of the innermost open function.
    Path(u32),
    /// The function with this number is entered.
    Enter(u32),
    /// The innermost open function is left.
    Leave,
    /// Only this many functions are still open: a jump or an exception left the others.
    Unwind(u32),
    /// A process begins as a copy of this one; it has the same number.
    Fork(u32),
    /// An event of another recorder happened here.
    Event,
}

const ENTER: u32 = 0x8000_0000;
const MARK: u32 = 0xc000_0000;
const LEAVE: u32 = 0xffff_ffff;
const MARK_SHIFT: u32 = 27;
const MARK_BITS: u32 = (1 << MARK_SHIFT) - 1;

impl Token {
    /// Returns `None` for what no program of this version writes, and for 0.
    #[inline]
    pub(super) fn of(word: u32) -> Option<Self> {
        match word {
            0 => None,
            1..ENTER => Some(Self::Path(word - 1)),
            ENTER..MARK => Some(Self::Enter(word - ENTER)),
            LEAVE => Some(Self::Leave),
            _ => match (word - MARK) >> MARK_SHIFT {
                0 => Some(Self::Unwind(word & MARK_BITS)),
                1 => Some(Self::Fork(word & MARK_BITS)),
                2 => Some(Self::Event),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_as_the_run_time_writes_them() {
        for (word, token) in [
            (0, None),
            (1, Some(Token::Path(0))),
            (0x7fff_ffff, Some(Token::Path(0x7fff_fffe))),
            (0x8000_0000, Some(Token::Enter(0))),
            (0xbfff_ffff, Some(Token::Enter(0x3fff_ffff))),
            (0xc000_0003, Some(Token::Unwind(3))),
            (0xc800_0001, Some(Token::Fork(1))),
            (0xd000_0000, Some(Token::Event)),
            (0xd800_0000, None),
            (0xffff_ffff, Some(Token::Leave)),
        ] {
            assert_eq!(Token::of(word), token, "{word:#x}");
        }
    }
}
