//! The loop nest of each class of streams. Each class is written and dropped before the next one
//! is computed, so that memory is that of the largest class.

use crate::near::near_loops;
use crate::{JsonWriter, Labels, NestTimes, nanoseconds, nest, rounded};
use loopfold::Fold;
use loopfold::questions::classes::Class;
use loopfold::questions::iterations::ClassTimes;
use loopfold::questions::nest::Nest;
use std::io::{Error, Write};

/// What is known of a class.
#[derive(Debug)]
pub struct ClassNest {
    /// Its number, from 1, as a terminal shows the classes.
    pub number: usize,
    /// The class.
    pub class: Class,
    /// Its nest.
    pub nest: Nest,
    /// The times of its streams and loops.
    pub times: Option<ClassTimes>,
    /// Its nest with loops with exceptions, and the times of that one.
    pub near: Option<(Nest, Option<ClassTimes>)>,
}

/// The classes of a fold.
#[derive(Debug)]
pub struct Loops<'a, I> {
    /// The folder that was asked for.
    pub folder: &'a str,
    /// The fold.
    pub fold: &'a Fold,
    /// Its classes.
    pub classes: I,
}

/// Writes the classes of a fold, and those of the masked lines if there are any.
pub fn loops<W: Write, E: From<Error>, I: Iterator<Item = Result<ClassNest, E>>>(
    out: &mut JsonWriter<W>,
    loops: Loops<'_, I>,
    masked: Option<Loops<'_, I>>,
) -> Result<(), E> {
    out.begin_object()?;
    fields(out, loops)?;
    if let Some(masked) = masked {
        out.key("masked")?;
        out.begin_object()?;
        fields(out, masked)?;
        out.end()?;
    }
    Ok(out.end()?)
}

/// How a trace was abstracted.
#[derive(Debug)]
pub struct Abstracted<I> {
    /// The events that were examined.
    pub events: u64,
    /// How many of them were replaced by patterns.
    pub replaced: u64,
    /// The numbers and names of the patterns that are shown.
    pub names: I,
}

/// Writes the classes of a trace in which patterns are single events.
pub fn abstracted<'n, W: Write, E: From<Error>>(
    out: &mut JsonWriter<W>,
    loops: Loops<'_, impl Iterator<Item = Result<ClassNest, E>>>,
    abstracted: Abstracted<impl Iterator<Item = (usize, &'n str)>>,
) -> Result<(), E> {
    out.begin_object()?;
    out.key("abstracted")?;
    out.begin_object()?;
    out.field("events", abstracted.events)?;
    out.field("replaced", abstracted.replaced)?;
    out.key("patterns")?;
    out.begin_array()?;
    for (number, name) in abstracted.names {
        out.begin_object()?;
        out.field("id", number)?;
        out.field("name", name)?;
        out.end()?;
    }
    out.end()?;
    out.end()?;
    fields(out, loops)?;
    Ok(out.end()?)
}

fn fields<W: Write, E: From<Error>>(
    out: &mut JsonWriter<W>,
    Loops { folder, fold, classes }: Loops<'_, impl Iterator<Item = Result<ClassNest, E>>>,
) -> Result<(), E> {
    let mut labels = Labels::new(fold.alphabet());
    out.field("folder", folder)?;
    out.field("streams", fold.streams().len())?;
    out.key("classes")?;
    out.begin_array()?;
    for class in classes {
        class_nest(out, &mut labels, fold, &class?)?;
    }
    out.end()?;
    Ok(labels.cut_field(out)?)
}

fn class_nest<W: Write>(
    out: &mut JsonWriter<W>,
    labels: &mut Labels<'_>,
    fold: &Fold,
    ClassNest { number, class, nest: its_nest, times, near }: &ClassNest,
) -> std::io::Result<()> {
    out.begin_object()?;
    out.key("streams")?;
    out.array(class.streams.iter().map(|&index| fold.stream(index).title()))?;
    out.field("class", *number)?;
    out.field("events", class.events)?;
    out.field("folded", class.folded)?;
    out.field("ratio", rounded(class.ratio(), 2))?;
    out.field("covered", rounded(class.covered(), 4))?;
    out.field("main_share", rounded(class.main_share(), 4))?;
    out.key("nest")?;
    let times = times.as_ref();
    nest(out, labels, its_nest, times.map(|times| NestTimes { fold, times }))?;
    out.key("near")?;
    out.begin_array()?;
    if let Some((nest, times)) = near {
        near_loops(out, labels, nest, times.as_ref().map(|times| NestTimes { fold, times }))?;
    }
    out.end()?;
    if let Some(times) = times {
        out.key("times")?;
        out.begin_array()?;
        for &(stream, total) in &times.streams {
            out.begin_object()?;
            out.field("total_ns", nanoseconds(total))?;
            out.field("stream", fold.stream(stream).title())?;
            out.end()?;
        }
        out.end()?;
    }
    out.end()
}
