//! The webhooks of AdvancedCronJobs: `mutate` fills in, `validate` refuses (`images`: templates of jobs that pull images), `forbid`
//! keeps fields as they are. Both versions come here as they were sent.

mod answer;
mod forbid;
mod images;
mod mutate;
mod validate;

pub(super) use answer::WEBHOOKS;

#[cfg(test)]
mod recorded_tests;
