//! The tasks, one file each.

pub(crate) mod ball_in_cup;
pub(crate) mod cartpole;
pub(crate) mod cheetah;
pub(crate) mod finger;
pub(crate) mod reacher;
pub(crate) mod walker;
