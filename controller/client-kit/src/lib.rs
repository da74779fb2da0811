//! Functions that client-go gives every Kubernetes client and kube-rs does not.
//!
//! Controllers (`controller`), simulated nodes and built-in controllers (`fake-apiserver`) are all clients of the
//! Kubernetes API and know nothing of each other. The code that they share, besides that API, is here:
//!
//! * [`Clock`]: where the time comes from. On a real cluster it is the system's; in a simulation it is tokio's paused
//!   clock, so that a run never depends on the wall.
//! * [`Seed`]: where randomness comes from. Each user forks its own stream by name, so adding one never changes another's.
//! * [`Names`]: the random suffixes of objects' names, in Kubernetes' alphabet. A scenario may hand out chosen ones.
//! * [`EventRecorder`]: events about objects, counted and limited as client-go does.
//! * [`watch_json`] and [`ObjectClient`]: objects as plain JSON, from and to a server in the same process without a detour through text
//!   ([`LocalObjects`]).
//! * [`Backoff`]: waiting longer after each failure.
//! * [`Jumps`]: a clock that runs, and jumps now and then.
//! * [`Agenda`]: the work that waits for its time in the parts of a program.
//! * [`Rules`]: faults and the like, which strike by count and by chance.
//! * [`credentials()`]: the credentials that a Secret has for the registry of an image.
//! * [`AnyCertificate`]: connections by TLS to servers whose certificates are not verified.
//! * [`timer`]: waiting until a time that may never come.
//!
//! **Invariant:** this crate knows no server, no scenario and no OpenKruise.

mod agenda;
mod any_certificate;
mod backoff;
mod clock;
mod credentials;
mod events;
mod jumps;
mod lean;
mod local;
mod names;
mod seed;
mod strikes;
pub mod timer;
mod watch;

pub use agenda::{Agenda, Desk, Due};
pub use any_certificate::AnyCertificate;
pub use backoff::Backoff;
pub use clock::{Clock, SharedClock, SystemClock, TokioClock};
pub use credentials::{Credential, credentials};
pub use events::{Correlated, Decision, Event, EventCorrelator, EventRecorder, EventSource, EventType};
pub use jumps::{CannotJump, Jumps, Outside, RealSleep};
pub use lean::LeanObject;
pub use local::{LocalEvent, LocalObjects, ObjectClient};
pub use names::{AliasNames, NAME_ALPHABET, Names, SeededNames, SharedNames, safe_encode};
pub use seed::{Random, Seed, hex};
pub use strikes::{Frequency, RuleHandle, Rules, Strikes};
pub use watch::{JsonChange, watch_json, watch_metadata};
