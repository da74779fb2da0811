//! The webhook of EphemeralJobs, which validates.

mod answer;
mod validate;

pub(super) use answer::WEBHOOKS;

#[cfg(test)]
mod recorded_tests;
