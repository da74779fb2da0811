//! The webhooks of SidecarSets: `mutate` fills in and writes the hashes, `validate` refuses (`strategy`: selectors and strategies,
//! `containers`, `white_list`: annotations, `conflicts`: between sets, with `overlap`). Both versions come here as they were sent;
//! `convert` makes them one, and `canonical` writes a spec as Go does.

mod answer;
mod canonical;
mod conflicts;
mod containers;
mod convert;
mod mutate;
mod overlap;
mod strategy;
mod validate;
mod white_list;

pub(super) use answer::WEBHOOKS;
pub(super) use convert::CONVERSION;

#[cfg(test)]
mod recorded_tests;
