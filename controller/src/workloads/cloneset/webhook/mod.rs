//! The webhooks of CloneSets: `mutate` has the defaults, `validate` the refusals.

mod answer;
mod forbid;
mod mutate;
mod strategy;
mod validate;

pub(super) use answer::WEBHOOKS;

#[cfg(test)]
mod recorded_tests;
