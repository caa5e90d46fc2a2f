//! Recorded actions played again.
