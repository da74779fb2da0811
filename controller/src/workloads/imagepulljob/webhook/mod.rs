//! The webhooks of ImagePullJobs: defaults and errors. Both versions come here as they were sent.

mod answer;
mod validate;

pub(super) use answer::WEBHOOKS;

#[cfg(test)]
mod recorded_tests;
