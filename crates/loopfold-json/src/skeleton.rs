//! A performance skeleton, and how well it predicts.

use crate::{JsonWriter, rounded};
use loopfold::skeleton::{Scale, Skeleton};
use std::io::{Result, Write};

/// What was measured, in seconds between `MPI_Init` and `MPI_Finalize`.
#[derive(Clone, Copy, Debug)]
pub struct Checked<'a> {
    /// Executions of the program.
    pub programs: &'a [f64],
    /// Executions of the skeleton.
    pub skeletons: &'a [f64],
}

impl Checked<'_> {
    /// The fastest execution of the program.
    pub fn program(&self) -> f64 {
        fastest(self.programs)
    }

    /// The fastest execution of the skeleton.
    pub fn skeleton(&self) -> f64 {
        fastest(self.skeletons)
    }

    /// What the skeleton predicts for the program.
    pub fn predicted(&self, scale: Scale) -> f64 {
        self.skeleton() / scale.value()
    }
}

fn fastest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Writes what a skeleton is.
pub fn skeleton<W: Write>(out: &mut JsonWriter<W>, skeleton: &Skeleton, scale: Scale) -> Result<()> {
    out.begin_object()?;
    fields(out, skeleton, scale)?;
    out.end()
}

/// Writes the same, and what was measured.
pub fn checked<W: Write>(
    out: &mut JsonWriter<W>,
    skeleton: &Skeleton,
    scale: Scale,
    checked: &Checked<'_>,
) -> Result<()> {
    out.begin_object()?;
    fields(out, skeleton, scale)?;
    out.key("check")?;
    out.begin_object()?;
    out.field("program", checked.program())?;
    out.field("skeleton", checked.skeleton())?;
    out.field("predicted", checked.predicted(scale))?;
    for (key, times) in [("programs", checked.programs), ("skeletons", checked.skeletons)] {
        out.key(key)?;
        out.array(times.iter().copied())?;
    }
    out.end()?;
    out.end()
}

fn fields<W: Write>(out: &mut JsonWriter<W>, skeleton: &Skeleton, scale: Scale) -> Result<()> {
    out.field("scale", scale.to_string().as_str())?;
    out.field("ranks", skeleton.ranks)?;
    out.field("recorded", skeleton.recorded_seconds)?;
    out.field("calls", skeleton.calls.1)?;
    out.field("recorded_calls", skeleton.calls.0)?;
    out.key("loops")?;
    out.begin_array()?;
    for one in &skeleton.loops {
        out.begin_object()?;
        out.field("recorded", one.recorded)?;
        out.field("left", one.left)?;
        out.field("group", one.group)?;
        out.field("share", rounded(one.share, 4))?;
        out.end()?;
    }
    out.end()?;
    out.key("notes")?;
    out.array(skeleton.notes.iter().map(String::as_str))
}
