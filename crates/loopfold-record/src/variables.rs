//! The environment variables by which the command, the preloaded library and the helper know what
//! the user asked for.

/// The archive to write.
pub(crate) const OUTPUT: &str = "LOOPFOLD_RECORD";
/// The program that folds.
pub(crate) const HELPER: &str = "LOOPFOLD_RECORD_HELPER";
/// Which times are kept.
pub(crate) const TIMES: &str = "LOOPFOLD_RECORD_TIMES";
/// Set if call sites are recorded.
pub(crate) const SITES: &str = "LOOPFOLD_RECORD_SITES";
/// The seconds between segments.
pub(crate) const SEGMENT: &str = "LOOPFOLD_RECORD_SEGMENT";
/// The format of the output.
pub(crate) const TO: &str = "LOOPFOLD_RECORD_TO";
/// The process that the command becomes.
pub(crate) const PID: &str = "LOOPFOLD_RECORD_PID";
/// The library, which is removed if it turns out to be for another MPI.
pub(crate) const SHIM: &str = "LOOPFOLD_RECORD_SHIM";
