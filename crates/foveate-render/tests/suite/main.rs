//! The integration tests of `foveate-render`, in one program: it is linked once.

mod dm_control;
mod oracle;
mod pictures;
