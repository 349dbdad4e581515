//! Reads control flow as 32-bit little-endian tokens, without a header:
//!
//! | token | meaning |
//! | --- | --- |
//! | below `0x80000000` | a block, or a path of blocks, of the current function |
//! | `0x80000000 + f` | function f is entered |
//! | `0xc0000000 + t` | what follows happens in thread t |
//! | `0xffffffff` | the current function is left |
//!
//! The names of functions come from the option `functions`, else they are `f12`. Events, streams
//! and notes are those of [`crate::calls`]; this is its compact form. Linear time; memory is O(functions
//! seen).

use crate::frames::Frames;
use crate::{Context, Description, Fit, Result, Source, SourceOption, Takes};
use hashbrown::HashMap;
use loopfold::trace::Name;
use std::io::BufRead;

const OPTIONS: &[SourceOption] = &[SourceOption::new(
    "names",
    "Read the names of functions from this JSON file, instead of the one beside the trace",
    Takes::File("FILE", |options, file| options.names = Some(file)),
)];

/// See the module.
pub(crate) struct CallsBinary;

const EXIT: u32 = u32::MAX;
const ENTRY: u32 = 0b10;
const BLOCK_BITS: u32 = 31;
const NUMBER_BITS: u32 = 30;
const NUMBER: u32 = (1 << NUMBER_BITS) - 1;
const WIDTH: usize = 4;

impl Source for CallsBinary {
    fn name(&self) -> &'static str {
        "calls-binary"
    }

    fn about(&self) -> &'static str {
        "control flow as 32-bit tokens (.bb, .trc), names in a JSON file beside it"
    }

    fn fields(&self) -> &'static [&'static str] {
        &["function"]
    }

    fn description(&self) -> Description {
        Description {
            event: "a call, a block or a return",
            stream: "a thread, or the input",
            times: "",
            example: "loopfold fold gzip.bb --names gzip.json -o gzip.fold",
        }
    }

    fn options(&self) -> &'static [SourceOption] {
        OPTIONS
    }

    /// Numbers have no magic bytes; such files are recognized by their file name extension.
    fn fits(&self, _head: &[u8]) -> Fit {
        Fit::No
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let mut reader = Reader { frames: Frames::new()?, functions: HashMap::default() };
        let outcome = reader.read(input, context);
        reader.frames.finish(context)?;
        outcome
    }
}

struct Reader {
    frames: Frames,
    /// What the frames call the functions seen so far.
    functions: HashMap<u32, u32, foldhash::fast::RandomState>,
}

impl Reader {
    fn read(&mut self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let mut offset = 0u64;
        // The beginning of a token that the end of a buffer cuts in two.
        let (mut begun, mut has) = ([0; WIDTH], 0);
        loop {
            let buffer = input.fill_buf()?;
            let length = buffer.len();
            if length == 0 {
                break;
            }
            let missing = if has > 0 { (WIDTH - has).min(length) } else { 0 };
            let (head, rest) = buffer.split_at(missing);
            begun[has..has + missing].copy_from_slice(head);
            has += missing;
            if has == WIDTH {
                self.take(u32::from_le_bytes(begun), context)?;
                has = 0;
            }
            let (whole, cut) = rest.as_chunks::<WIDTH>();
            for token in whole {
                self.take(u32::from_le_bytes(*token), context)?;
            }
            begun[has..has + cut.len()].copy_from_slice(cut);
            has += cut.len();
            offset += length as u64;
            input.consume(length);
        }
        if has > 0 {
            let place = format!("byte {}", offset - has as u64);
            context.damaged(place, format_args!("{has} of the {WIDTH} bytes of a token: it is cut off"))?;
        }
        Ok(())
    }

    #[inline]
    fn take(&mut self, token: u32, context: &mut Context<'_>) -> Result<()> {
        if token >> BLOCK_BITS == 0 {
            self.frames.block(Name::Integer(token.into()), context)
        } else if token == EXIT {
            self.frames.leave(context)
        } else if token >> NUMBER_BITS == ENTRY {
            let function = self.function(token & NUMBER, context)?;
            self.frames.enter(function, context)
        } else {
            self.frames.switch((token & NUMBER).to_string().as_bytes(), context)
        }
    }

    fn function(&mut self, number: u32, context: &Context<'_>) -> Result<u32> {
        if let Some(&known) = self.functions.get(&number) {
            return Ok(known);
        }
        let function = self.frames.function(context.options.functions.name(number).as_bytes())?;
        self.functions.insert(number, function);
        Ok(function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reading, damage_of, events_of, note_of, read, streams_of};
    use crate::{FunctionNames, Options};
    use loopfold::trace::Collector;
    use std::io::BufReader;

    fn bytes(tokens: &[u32]) -> Vec<u8> {
        tokens.iter().flat_map(|token| token.to_le_bytes()).collect()
    }

    const ENTER: u32 = 0x8000_0000;
    const THREAD: u32 = 0xc000_0000;

    #[test]
    fn tokens_are_entries_blocks_exits_and_threads() {
        let tokens = [ENTER, 0, ENTER | 1, 0x7fff_ffff, EXIT, THREAD | 3, EXIT, 5, ENTER | 0x3fff_ffff];
        let reading = read(&CallsBinary, bytes(&tokens), Reading::default());
        assert_eq!(streams_of(&reading), ["input", "thread 3"]);
        assert_eq!(
            events_of(&reading, "input"),
            ["enter f0", "0 function=f0", "enter f1", "2147483647 function=f1", "leave f1"]
        );
        assert_eq!(events_of(&reading, "thread 3"), ["leave ?", "5 function=?", "enter f1073741823"]);
        assert_eq!(note_of(&reading, "input", "open-calls").unwrap(), "1");
        assert_eq!(note_of(&reading, "thread 3", "unmatched-returns").unwrap(), "1");
    }

    #[test]
    fn functions_have_the_names_that_are_given() {
        let options =
            Options { functions: FunctionNames::new([("main", ""), ("g", "")]).into(), ..Options::default() };
        let tokens = bytes(&[ENTER | 1, 7, EXIT, ENTER | 2]);
        let reading = read(&CallsBinary, tokens, Reading { options, key: None });
        assert_eq!(events_of(&reading, "input"), ["enter g", "7 function=g", "leave g", "enter f2"]);
    }

    #[test]
    fn tokens_are_read_across_buffers_of_any_size() {
        let tokens: Vec<u32> = (0..50).map(|n| if n % 5 == 0 { ENTER | n } else { n }).collect();
        let whole = read(&CallsBinary, bytes(&tokens), Reading::default()).unwrap().0;
        for buffer in 1..12 {
            let mut collector = Collector::default();
            let options = Options::default();
            let mut context = Context::new(&options, &mut collector, "input", false);
            let bytes = bytes(&tokens);
            CallsBinary.read(&mut BufReader::with_capacity(buffer, &bytes[..]), &mut context).unwrap();
            assert_eq!(collector.finish().unwrap(), whole, "{buffer}");
        }
    }

    #[test]
    fn a_token_that_is_cut_is_damage() {
        let tokens = bytes(&[1, 2]);
        for length in 5..8 {
            let error = read(&CallsBinary, &tokens[..length], Reading::default()).unwrap_err();
            assert!(error.starts_with("byte 4: "), "{error}");
            assert_eq!(damage_of(&read(&CallsBinary, &tokens[..length], Reading::lenient())), 1);
        }
    }
}
