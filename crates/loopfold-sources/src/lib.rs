//! Sources: one file per format that other tools write.
