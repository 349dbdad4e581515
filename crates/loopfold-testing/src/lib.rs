//! Generated streams, and slow, obvious oracles.
