//! Carries out the plan: `perform` does the work of a pass, `writes` has the requests about workloads of four kinds.

mod perform;
mod writes;

pub(super) use perform::{Performer, member};
