//! Measures how fast sources read: CPU time from bytes in memory to a trace in memory.
//!
//! The inputs are generated: the trace of LU with calls as an MPI tracer writes them, a
//! line each; training steps on a GPU as the PyTorch profiler writes them; and calls,
//! blocks and exits of a program with a hundred functions, as text and as tokens.

use super::{Settings, progress};
use crate::clock;
use crate::table::{Column, Table, grouped, short};
use anyhow::Result;
use loopfold::trace::{Collector, Sink as _};
use loopfold_sources::{Context, Options};
use loopfold_testing::streams;
use std::io::{Cursor, Write};

/// How fast a source reads.
pub(crate) struct Speed {
    /// What the source is called.
    pub(crate) source: &'static str,
    /// Millions of bytes in a second of CPU time.
    pub(crate) megabytes: f64,
    /// How many it should be.
    pub(crate) target: f64,
}

struct Input {
    source: &'static str,
    make: fn(usize) -> Vec<u8>,
    target: f64,
}

const INPUTS: [Input; 5] = [
    Input { source: "lines", make: mpi_lines, target: 150.0 },
    Input { source: "mpi-text", make: mpi_lines, target: 100.0 },
    Input { source: "chrome", make: profiler_json, target: 250.0 },
    Input { source: "calls", make: calls_text, target: 50.0 },
    Input { source: "calls-binary", make: calls_tokens, target: 50.0 },
];

/// Measures the sources and prints the table.
pub(crate) fn run(settings: &Settings) -> Result<Vec<Speed>> {
    let size = if settings.quick { 10_000_000 } else { 100_000_000 };
    let columns = [
        Column::Text("source"),
        Column::Number("bytes"),
        Column::Number("events"),
        Column::Number("MB/s"),
        Column::Number("ns an event"),
    ];
    let mut table = Table::new("Reading, from memory to memory (CPU time)", &columns);
    let mut speeds = Vec::new();
    for input in INPUTS {
        progress(format_args!("reading `{}`", input.source));
        let bytes = (input.make)(size);
        let length = grouped(bytes.len() as u128);
        let Some((events, seconds)) = read(input.source, bytes.as_slice())? else {
            table.row([input.source.to_string(), length, "not available".to_string()]);
            continue;
        };
        let megabytes = bytes.len() as f64 / 1e6 / seconds;
        let nanoseconds = 1e9 * seconds / events as f64;
        table.row([input.source.to_string(), length, grouped(events), short(megabytes), short(nanoseconds)]);
        speeds.push(Speed { source: input.source, megabytes, target: input.target });
    }
    println!("{table}");
    Ok(speeds)
}

/// Reads an input and counts its events and the seconds it takes, if there is such a
/// source.
fn read(source: &str, bytes: &[u8]) -> Result<Option<(u64, f64)>> {
    let Some(source) = loopfold_sources::ALL.iter().find(|known| known.name() == source) else {
        return Ok(None);
    };
    let options = Options::default();
    let mut collector = Collector::default();
    let mut context = Context::new(&options, &mut collector, "generated", false);
    let (outcome, time) = clock::timed(|| source.read(&mut Cursor::new(bytes), &mut context));
    outcome?;
    Ok(Some((collector.events(), time.as_secs_f64())))
}

/// About `size` bytes of the calls of an inner rank of LU.
fn mpi_lines(size: usize) -> Vec<u8> {
    const LINE: usize = 42;
    const STEP: usize = 1292;
    let calls: Vec<String> = (0..=u32::from(u8::MAX)).map(mpi_call).collect();
    let mut text = Vec::with_capacity(size + size / 8);
    for letter in streams::lu(160, (size / LINE / STEP).max(1)) {
        text.extend_from_slice(calls[letter as usize].as_bytes());
        text.push(b'\n');
    }
    text
}

/// The call that a letter of table I stands for.
fn mpi_call(letter: u32) -> String {
    let peer = [1, 4, 6, 9][letter as usize % 4];
    match char::from_u32(letter).unwrap_or(' ') {
        'N' | 'I' | 'M' | 'G' => format!("MPI_Recv src={peer} tag={letter} bytes=4080 comm=0"),
        'K' | 'D' | 'L' | 'B' => format!("MPI_Send dest={peer} tag={letter} bytes=4080 comm=0"),
        'Q' => "MPI_Irecv src=-1 tag=1 bytes=212160 comm=0".to_string(),
        'Y' => "MPI_Wait".to_string(),
        'J' | 'H' | 'E' | 'C' => format!("MPI_Send dest={peer} tag={letter} bytes=212160 comm=0"),
        'V' | 'W' | 'X' => format!("MPI_Bcast root=0 bytes={} comm=0", 4 * letter),
        _ => format!("MPI_Allreduce op=sum count={letter} type=double comm=0"),
    }
}

/// What a program does next.
enum Step {
    Call(u32),
    Return,
    Block(u32),
}

/// The steps of a program, without end: loops in which functions call others.
fn program() -> impl Iterator<Item = Step> {
    const FUNCTIONS: u32 = 100;
    const DEEPEST: u32 = 30;
    let mut depth = 0;
    streams::nests(1 << 16, 11).into_iter().cycle().map(move |letter| match letter % 5 {
        0 if depth < DEEPEST => {
            depth += 1;
            Step::Call(letter / 5 % FUNCTIONS)
        }
        1 if depth > 1 => {
            depth -= 1;
            Step::Return
        }
        _ => Step::Block(letter),
    })
}

/// About `size` bytes of control flow, a line each.
fn calls_text(size: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(size + 64);
    for step in program() {
        let line = match step {
            Step::Call(function) => format!("call function_{function}\n"),
            Step::Return => "return\n".to_string(),
            Step::Block(block) => format!("{block}\n"),
        };
        text.extend_from_slice(line.as_bytes());
        if text.len() >= size {
            break;
        }
    }
    text
}

/// `size` bytes of control flow as tokens.
fn calls_tokens(size: usize) -> Vec<u8> {
    let token = |step| match step {
        Step::Call(function) => 0x8000_0000 | function,
        Step::Return => u32::MAX,
        Step::Block(block) => block,
    };
    program().take(size / 4).flat_map(|step| token(step).to_le_bytes()).collect()
}

/// About `size` bytes of a profile of training steps: on the host each operator and its
/// launch, on the GPU queue its kernel.
fn profiler_json(size: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(size + 4096);
    let outcome = write_profile(&mut text, size);
    debug_assert!(outcome.is_ok(), "writing to memory");
    text
}

const OPERATORS: [(&str, &str); 6] = [
    ("aten::cudnn_convolution", "implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1>"),
    ("aten::cudnn_batch_norm", "cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1>"),
    ("aten::clamp_min_", "at::native::vectorized_elementwise_kernel<4, clamp_min, Array<char*, 2>>"),
    ("aten::max_pool2d_with_indices", "max_pool_forward_nchw<float, float>(int, float const*)"),
    ("aten::add_", "at::native::vectorized_elementwise_kernel<4, AddFunctor, Array<char*, 3>>"),
    ("aten::addmm", "ampere_sgemm_32x128_tn"),
];

fn write_profile(text: &mut Vec<u8>, size: usize) -> std::io::Result<()> {
    writeln!(text, "{{\n  \"schemaVersion\": 1,\n  \"displayTimeUnit\": \"ms\",\n  \"traceEvents\": [")?;
    let mut order = streams::nests(4096, 11).into_iter().cycle();
    let (mut clock, mut correlation) = (1_665_000_000_000_000u64, 1u64);
    while text.len() < size {
        let (operator, kernel) = OPERATORS[order.next().unwrap_or_default() as usize % OPERATORS.len()];
        let duration = 7 + correlation % 13;
        writeln!(
            text,
            "  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{operator}\", \"pid\": 31052, \"tid\": 31052,\n    \
             \"ts\": {clock}.125, \"dur\": {duration}.500,\n    \"args\": {{\n      \"External id\": {correlation}, \
             \"Record function id\": 0, \"Ev Idx\": {correlation}\n    }}\n  }},"
        )?;
        writeln!(
            text,
            "  {{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 31052, \
             \"tid\": 31052,\n    \"ts\": {}.625, \"dur\": 4.250,\n    \"args\": {{\n      \"External id\": \
             {correlation}, \"cbid\": 211, \"correlation\": {correlation}\n    }}\n  }},",
            clock + 2
        )?;
        writeln!(
            text,
            "  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{kernel}\", \"pid\": 0, \"tid\": 7,\n    \
             \"ts\": {}.250, \"dur\": {duration}.750,\n    \"args\": {{\n      \"External id\": {correlation}, \
             \"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": 7, \"correlation\": {correlation}, \
             \"registers per thread\": 32,\n      \"shared memory\": 0, \"blocks per SM\": 9.8, \"grid\": [784, 1, 1], \
             \"block\": [128, 1, 1]\n    }}\n  }},",
            clock + 9
        )?;
        clock += 25;
        correlation += 1;
    }
    writeln!(
        text,
        "  {{\n    \"ph\": \"i\", \"s\": \"g\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": \"\", \
         \"ts\": {clock}.000\n  }}\n  ],\n  \"traceName\": \"trace.json\"\n}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_have_about_the_size_asked_for() {
        for input in INPUTS {
            let size = (input.make)(3_000_000).len();
            assert!((2_000_000..4_000_000).contains(&size), "{}: {size}", input.source);
        }
    }

    #[test]
    fn sources_read_the_inputs() {
        for input in INPUTS {
            let read = read(input.source, &(input.make)(100_000)).unwrap();
            assert!(read.is_none_or(|(events, _)| events > 100), "{}", input.source);
        }
    }
}
