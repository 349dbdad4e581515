//! Reads integers of 8, 16, 32 or 64 bits, little-endian, one after the other: program
//! counters, block numbers, the symbols of another tool.
//!
//! Time and memory: one pass over the buffer, nothing kept.

use crate::{Context, Description, Fit, Result, Source};
use loopfold::trace::Event;
use std::io::BufRead;

/// Integers of a certain width, in bytes.
pub(crate) struct Integers<const WIDTH: usize>;

impl<const WIDTH: usize> Source for Integers<WIDTH> {
    fn name(&self) -> &'static str {
        match WIDTH {
            1 => "u8",
            2 => "u16",
            4 => "u32",
            _ => "u64",
        }
    }

    fn about(&self) -> &'static str {
        match WIDTH {
            1 => "binary, every byte a number",
            2 => "binary, 16-bit little-endian numbers",
            4 => "binary, 32-bit little-endian numbers",
            _ => "binary, 64-bit little-endian numbers",
        }
    }

    fn description(&self) -> Description {
        Description {
            event: "a number",
            stream: "the input",
            times: "",
            example: match WIDTH {
                1 => "loopfold loops states.u8",
                2 => "loopfold loops codes.bin --format u16",
                4 => "loopfold loops ids.u32le.zst",
                _ => "loopfold loops pc.u64le",
            },
        }
    }

    /// Bytes do not show whether they are integers, nor their width.
    fn fits(&self, _head: &[u8]) -> Fit {
        Fit::No
    }

    fn read(&self, input: &mut dyn BufRead, context: &mut Context<'_>) -> Result<()> {
        let stream = context.only_stream()?;
        let mut offset = 0u64;
        // The beginning of an integer that the end of a buffer cuts in two.
        let mut begun = [0; WIDTH];
        let mut has = 0;
        loop {
            let buffer = input.fill_buf()?;
            let length = buffer.len();
            if length == 0 {
                break;
            }
            let mut rest = buffer;
            if has > 0 {
                let missing = (WIDTH - has).min(rest.len());
                begun[has..has + missing].copy_from_slice(&rest[..missing]);
                rest = &rest[missing..];
                has += missing;
                if has == WIDTH {
                    context.push_event(stream, &Event::integer(value_of(&begun)))?;
                    has = 0;
                }
            }
            let (whole, cut) = rest.as_chunks::<WIDTH>();
            for bytes in whole {
                context.push_event(stream, &Event::integer(value_of(bytes)))?;
            }
            begun[has..has + cut.len()].copy_from_slice(cut);
            has += cut.len();
            offset += length as u64;
            input.consume(length);
        }
        if has > 0 {
            left_over(offset - has as u64, has, WIDTH, context)?;
        }
        Ok(())
    }
}

fn value_of<const WIDTH: usize>(bytes: &[u8; WIDTH]) -> u64 {
    let mut value = [0; 8];
    value[..WIDTH].copy_from_slice(bytes);
    u64::from_le_bytes(value)
}

fn left_over(offset: u64, count: usize, width: usize, context: &mut Context<'_>) -> Result<()> {
    let bytes = if count == 1 { "1 byte".to_string() } else { format!("{count} bytes") };
    let help = match count {
        4 => "u32, u16 or u8",
        2 | 6 => "u16 or u8",
        _ => "u8",
    };
    context.damaged(
        format_args!("byte {offset}"),
        format_args!("{bytes} left over; the length is not a multiple of {width}; try --format {help}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use loopfold::trace::Collector;
    use std::io::BufReader;

    fn labels(source: &dyn Source, bytes: &[u8], buffer: usize, lenient: bool) -> Result<(Vec<String>, u64)> {
        let options = Options { lenient, ..Options::default() };
        let mut collector = Collector::default();
        let mut context = Context::new(&options, &mut collector, "x", false);
        source.read(&mut BufReader::with_capacity(buffer, bytes), &mut context)?;
        let damage = context.into_damage().count;
        let trace = collector.finish()?;
        let labels = trace.streams[0].symbols.iter().map(|&symbol| trace.alphabet.label(symbol)).collect();
        Ok((labels, damage))
    }

    #[test]
    fn integers_are_read_across_buffers_of_any_size() {
        let bytes: Vec<u8> = [0u64, 1, u64::MAX, 0x8000_2318].iter().flat_map(|n| n.to_le_bytes()).collect();
        for buffer in 1..20 {
            let (all, _) = labels(&Integers::<8>, &bytes, buffer, false).unwrap();
            assert_eq!(all, ["0", "1", "18446744073709551615", "2147492632"]);
            assert_eq!(labels(&Integers::<1>, &bytes, buffer, false).unwrap().0.len(), 32);
            assert_eq!(labels(&Integers::<2>, &bytes, buffer, false).unwrap().0[12], "8984");
        }
    }

    #[test]
    fn what_is_left_over_is_an_error_or_left_out() {
        let bytes = [1, 0, 0, 0, 2, 0, 0, 0, 9];
        for buffer in 1..10 {
            let error = labels(&Integers::<4>, &bytes, buffer, false).unwrap_err();
            assert_eq!(
                error.to_string(),
                "byte 8: 1 byte left over; the length is not a multiple of 4; try --format u8"
            );
            let (all, damage) = labels(&Integers::<4>, &bytes, buffer, true).unwrap();
            assert_eq!((all, damage), (vec!["1".to_string(), "2".to_string()], 1));
        }
    }
}
