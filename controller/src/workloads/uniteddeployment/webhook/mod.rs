//! The webhooks of UnitedDeployments: `mutate` fills in, `validate` refuses (`template`: templates, `subsets`: subsets and their
//! numbers), `forbid` keeps fields as they are.

mod answer;
mod forbid;
mod mutate;
mod subsets;
mod template;
mod validate;

pub(super) use answer::WEBHOOKS;

#[cfg(test)]
mod recorded_tests;
