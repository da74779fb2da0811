//! Exchanges with an API server: played, compared with what a real kube-apiserver answered, or recorded.
//!
//! A [`Case`] is a JSON file of requests; what was answered, reduced to what two servers must have in common, is another one
//! of the same name (`fixtures/apidiff/README.md` has the format). [`play`] plays one case on one server.

mod case;
mod compare;
mod encoded;
mod normalise;
mod ordered;
mod play;
mod pointer;
mod reduce;
mod report;
mod request;
mod seeds;
mod suite;
mod view;

pub use case::{Case, Step, read_all};
pub use compare::Difference;
pub use play::{Server, play};
pub use report::Counts;
pub use report::{CaseResult, Outcome};
pub use seeds::{Seeds, seeds, write_seeds};
pub use suite::{ApidiffOptions, Target, known_failures, prune, run, surprises, totals};
