//! Live progress of a run.
