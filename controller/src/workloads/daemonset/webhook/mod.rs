//! The webhooks of DaemonSets: `mutate` fills in, `validate` refuses (`strategy`: the strategy), `forbid` keeps fields as they
//! are. Both versions come here as they were sent.

mod answer;
mod forbid;
mod mutate;
mod strategy;
mod validate;

pub(super) use answer::WEBHOOKS;

#[cfg(test)]
mod recorded_tests;
