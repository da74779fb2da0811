//! The webhooks of StatefulSets: `mutate` fills in, `validate` refuses (`strategy`: the strategies), `forbid` keeps fields as they
//! are, `claims` the templates of claims where claims follow them. Both versions come here as they were sent.

mod answer;
mod claims;
mod forbid;
mod mutate;
mod strategy;
mod validate;

pub(super) use answer::WEBHOOKS;

#[cfg(test)]
mod recorded_tests;
