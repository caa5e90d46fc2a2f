//! A session of the lab without socket, file or clock, and the page that shows it.
//!
//! * [`Session`]: one page's session: commands in, frames out.
//! * [`LabSetup`]: the world and the agents of a session.
//! * [`BrowserLab`]: sessions in worlds that need nothing but this crate, one after the other; compiled to WebAssembly, its methods
//!   are the exports of the module.
//! * [`page_file`], [`exported_page`]: the files of the page that a server shows, and the same page as one file with the module
//!   inside.
//!
//! What a page says is hostile: it is in [`protocol`], bounded and checked before anything is done. So is a weight file that a
//! visitor opens.

mod browser_lab;
#[cfg(any(test, target_arch = "wasm32"))]
mod c_library;
#[cfg(target_arch = "wasm32")]
mod exports;
mod frame;
mod pace;
#[cfg(not(target_arch = "wasm32"))]
mod page;
pub mod protocol;
mod recording;
pub mod run_length;
mod runner;
mod session;
mod setup;

pub use browser_lab::BrowserLab;
pub use frame::FILM;
pub use pace::Pace;
#[cfg(not(target_arch = "wasm32"))]
pub use page::{exported_page, page_file};
pub use recording::FilmJob;
pub use session::Session;
pub use setup::{LabAgent, LabSetup, MakeAgent, MakeWorld, Scenes, SessionError};
