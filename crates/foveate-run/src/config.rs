//! Training configuration: say, check, use.
