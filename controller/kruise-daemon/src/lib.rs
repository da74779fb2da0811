//! OpenKruise's daemon as a program for a real node.
//!
//! The daemon itself is [`controller::daemon`]. Its needs of a node are here: [`runtimes`] finds the container runtimes behind
//! the node's sockets and speaks CRI with them, `network` reaches pods by TCP. `flags` and `environment` read the command line and the
//! environment under OpenKruise's names, `endpoints` serves `/healthz` and `/metrics`, [`run()`] puts all that together.

mod endpoints;
mod environment;
mod error;
mod flags;
mod network;
mod run;
pub mod runtimes;

pub use error::DaemonError;
pub use flags::table;
pub use run::{main, run};
