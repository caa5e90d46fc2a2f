//! The lab: a page in the browser on which an agent drives live while its user changes what it sees and does.
//!
//! * [`Lab`]: the server, one thread for every page, each with a [`Session`].
//! * [`lab_setup`]: who can drive where.
//! * [`exported_page`]: the same page with its session inside, which needs no server.
//!
//! Everything that comes over the socket is hostile: what it may say is in [`foveate_web::protocol`], bounded and checked before
//! anything is done. A page that vanishes, stalls or floods harms its own session only, and sessions are few.

mod connection;
mod guard;
mod http;
mod server;
mod setup;

pub use foveate_web::{LabAgent, LabSetup, Session, exported_page};
pub use server::{Lab, LabRequest, MAX_SESSIONS, Token};
pub use setup::lab_setup;

#[cfg(test)]
mod tests;
