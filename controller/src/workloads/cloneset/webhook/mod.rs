//! The webhooks of CloneSets: `mutate` holds what is filled in, `validate` what is refused, `template_rules` and
//! `template_defaults` both for pod templates.

mod answer;
mod forbid;
mod mutate;
mod strategy;
mod template_defaults;
mod template_rules;
mod validate;

pub(super) use answer::WEBHOOKS;

#[cfg(test)]
mod recorded_tests;
