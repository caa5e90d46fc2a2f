//! Run folders and checkpoints.
