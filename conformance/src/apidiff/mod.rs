//! Exchanges with an API server: played, compared with the answers of a real kube-apiserver, or recorded.
//!
//! A [`Case`] is a JSON file of requests; the recorded answers, reduced to the parts that two servers must share, are another one
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
