//! The integration tests of `foveate-envs`, in one program: it is linked once.

mod capabilities;
mod car_racing;
mod expert;
#[path = "../../oracle/frames.rs"]
#[allow(dead_code, reason = "texts and CPU times are for an example")]
mod frames;
mod oracle_cartpole;
mod oracle_exact;
mod oracle_fast;
mod oracle_frames;
mod oracle_minigrid;
mod oracle_physics;
mod oracle_tracks;
mod picture_fast;
mod variants;
mod view;
mod wrap;
