//! The lab: a page in the browser on which an agent drives live while its user changes what it sees and does.
//!
//! * [`Session`]: one page's session, without a socket: commands in, frames out.
//! * [`Lab`]: the server, one thread for every page.
//! * [`LabSetup`]: who can drive where.
//!
//! Everything that comes over the socket is hostile: what it may say is in [`protocol`], bounded and checked before
//! anything is done. A page that vanishes, stalls or floods harms its own session only, and sessions are few.

mod connection;
mod frame;
mod guard;
mod http;
mod pace;
pub mod protocol;
mod recording;
mod run_length;
mod runner;
mod server;
mod session;
mod setup;

pub use pace::Pace;
pub use recording::FilmJob;
pub use server::{Lab, LabRequest, MAX_SESSIONS, Token};
pub use session::Session;
pub use setup::{LabAgent, LabSetup};

#[cfg(test)]
mod tests;
