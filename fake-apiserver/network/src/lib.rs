//! The network of a simulated cluster, within the process and in virtual time.
//!
//! [`Network::connect`] gives a pair of streams between an address and a listener. A connection goes this way: [`faults`] may refuse,
//! delay or lose it; a Service's address stands for one of its endpoints ([`services`]); a NetworkPolicy may forbid it ([`policy`]); and
//! the [`Machine`] that has the address takes it. [`Network::send`] takes a datagram the same way. [`names`] is the cluster's DNS,
//! [`tls`] encrypts.
//!
//! The objects behind this (Services, EndpointSlices, NetworkPolicies, Namespaces) come from a client of the API, which calls
//! [`Network::present`] and [`Network::gone`].

pub mod faults;
mod flows;
mod machine;
mod names;
mod net;
mod policy;
mod services;
pub mod tls;

pub use machine::{ConnectError, Connection, Datagram, Machine, Protocol, Untaken};
pub use names::{Answer, NoSuchHost, Resolver};
pub use net::{API_SERVER, API_SERVER_ENDPOINT, Kind, Network, WeakNetwork};
pub use services::Variables;
