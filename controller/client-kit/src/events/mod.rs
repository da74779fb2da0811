//! Events as client-go's `record` package writes them.
//!
//! [`EventRecorder`] takes events from a component without ever blocking it and writes them, in order, from a task of
//! its own. Before one is written, [`EventCorrelator`] decides on it: a new object, a higher count on an
//! old one, a summary of many similar ones, or nothing because the component talks too much.

mod cache;
mod correlator;
mod event;
mod recorder;

pub use correlator::{Correlated, Decision, EventCorrelator};
pub use event::{Event, EventSource, EventType};
pub use recorder::EventRecorder;
