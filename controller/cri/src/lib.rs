//! The Container Runtime Interface (CRI, `runtime.v1`) over a unix socket.
//!
//! [`Client`] makes a [`Call`]: a request that names its method and the type of its answer. [`messages`] has the messages of the
//! calls that OpenKruise's daemon and a kubelet make, with the fields that they use; prost skips the others. [`serve`] answers calls
//! by functions, for tests and simulated runtimes.
//!
//! CRI is gRPC: a request is an HTTP/2 POST whose body is one message, and the result is a message and a [`Status`] in the trailers.
//! `framing` has both directions of that. The workspace has hyper already, so that a gRPC crate would add dependencies and no code
//! that is missing here; generated bindings need `protoc`.

mod authority;
mod call;
mod client;
mod framing;
pub mod messages;
mod server;
mod status;

pub use call::Call;
pub use client::Client;
pub use server::{Service, serve};
pub use status::{Code, Status};
