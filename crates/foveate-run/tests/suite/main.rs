//! The integration tests of `foveate-run`, in one program: it is linked once.

mod cartpole_golden;
mod classic_golden;
mod import_golden;
mod mnist;
mod policy_gradients;
mod presets;
mod published_weights;
mod tensorboard_reads;
