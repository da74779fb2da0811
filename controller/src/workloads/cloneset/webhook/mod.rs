//! The webhooks of CloneSets: `mutate` holds what is filled in, `validate` what is refused.

mod answer;
mod forbid;
mod mutate;
mod strategy;
mod validate;

pub(super) use answer::WEBHOOKS;

#[cfg(test)]
mod recorded_tests;
