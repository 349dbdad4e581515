//! A fixed Huffman code of letters, with fewer bits for those that are frequent in names.
//!
//! It only reduces the number of decisions for a letter; the decisions themselves are coded
//! adaptively.

/// A byte of a name, or its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Letter(u16);

impl Letter {
    pub(super) const END: Self = Self(256);

    /// The byte, unless it is the end.
    pub(super) fn byte(self) -> Option<u8> {
        u8::try_from(self.0).ok()
    }

    pub(super) fn number(self) -> u32 {
        self.0.into()
    }

    /// Its code and how many bits that has.
    pub(super) fn code(self) -> (u32, u32) {
        match TABLE[usize::from(self.0)] {
            (_, 0) => {
                let (other, length) = TABLE[OTHER_LETTER];
                (other << 8 | self.number(), length + 8)
            }
            code => code,
        }
    }
}

impl From<u8> for Letter {
    fn from(byte: u8) -> Self {
        Self(byte.into())
    }
}

/// How many codes there are of each length. Codes of one length are consecutive numbers;
/// the first is twice the number after the last one of the length before.
const CODES: [u32; 12] = [0, 0, 0, 1, 3, 10, 11, 12, 16, 11, 17, 18];

/// What they stand for, in order, except for two: the first code of all is the end, and the
/// first of eight bits says that the eight bits of any other byte follow.
const BYTES: &[u8; 97] = b" et0_acilnors\x00124dfgmpux./36789=bhvy',-5:EIMPSXkwz\xff\
    ()+ACDLNORj*<>BFGHKTUVWZ[\\]q!\"#$%&;?@JQY^`{|}~";
const END: u32 = 0;
const OTHER: u32 = 37;
const OTHER_LETTER: usize = 257;

/// The code and its length of each byte, the end and others; a byte without one is among
/// the others.
static TABLE: [(u32, u32); 258] = {
    let mut table = [(0, 0); 258];
    let (mut index, mut code) = (0, 0);
    let mut length = 1;
    while length < CODES.len() {
        code <<= 1;
        let last = index + CODES[length];
        while index < last {
            table[letter_at(index)] = (code, length as u32);
            code += 1;
            index += 1;
        }
        length += 1;
    }
    table
};

/// The letter of the code at this index.
const fn letter_at(index: u32) -> usize {
    match index {
        END => Letter::END.0 as usize,
        OTHER => OTHER_LETTER,
        _ if index < OTHER => BYTES[index as usize - 1] as usize,
        _ => BYTES[index as usize - 2] as usize,
    }
}

/// The known part of a code.
#[derive(Default)]
pub(super) struct Known {
    bits: u32,
    length: u32,
    /// The first code of this length, and which of all codes that is.
    first: u32,
    index: u32,
    /// How many bits of another byte are still to come.
    other: u32,
}

impl Known {
    /// How many bits are known.
    pub(super) fn length(&self) -> u32 {
        self.length
    }

    /// The bits, below a one.
    pub(super) fn bits(&self) -> u32 {
        1 << self.length | self.bits
    }

    /// Takes one more bit and returns the letter if it is complete.
    pub(super) fn learn(&mut self, bit: bool) -> Option<Letter> {
        self.bits = self.bits << 1 | u32::from(bit);
        self.length += 1;
        if self.other > 0 {
            self.other -= 1;
            return (self.other == 0).then_some(Letter::from(self.bits as u8));
        }
        let shorter = CODES[self.length as usize - 1];
        self.first = (self.first + shorter) << 1;
        self.index += shorter;
        let number = self.bits - self.first;
        if number >= CODES[self.length as usize] {
            return None;
        }
        match letter_at(self.index + number) {
            OTHER_LETTER => {
                self.other = 8;
                None
            }
            letter => Some(Letter(letter as u16)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_has_a_code_of_its_own_and_no_bits_are_none() {
        let mut share = 0.0;
        for letter in (0..=255).map(Letter::from).chain([Letter::END]) {
            let (code, length) = letter.code();
            let mut known = Known::default();
            for left in (0..length).rev() {
                let found = known.learn(code >> left & 1 == 1);
                assert_eq!(found, (left == 0).then_some(letter), "{letter:?}");
            }
            share += 0.5f64.powi(length as i32);
        }
        // All bytes that have a short code could also be written as others.
        assert_eq!(share + BYTES.len() as f64 * 0.5f64.powi(16), 1.0);
        assert_eq!(Letter::from(b'e').code().1, 4);
    }
}
