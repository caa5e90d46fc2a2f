//! The lab: a page in the browser where an agent drives live and can be interfered with.
//!
//! * [`Session`]: one page's session, without a socket: commands in, frames out.
//! * [`Lab`]: the server, one thread for every page.
//! * [`Cast`]: who can drive where.
//!
//! Everything that comes over the socket is hostile: what it may say is in [`protocol`], bounded and checked before
//! anything is done. A page that vanishes, stalls or floods harms its own session only, and sessions are few.

mod cast;
mod frame;
mod guard;
mod http;
mod lane;
mod pace;
pub mod protocol;
mod reel;
mod runs;
mod server;
mod session;
mod talk;

pub use cast::{Cast, Player};
pub use pace::Pace;
pub use reel::FilmOrder;
pub use server::{Lab, LabRequest, MAX_SESSIONS, Token};
pub use session::Session;

#[cfg(test)]
mod tests;
