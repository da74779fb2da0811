//! The webhooks of NodeImages: `mutate` fills in, `validate` refuses. Both versions come here as they were sent.

mod answer;
mod mutate;
mod validate;

pub(super) use answer::WEBHOOKS;

#[cfg(test)]
mod recorded_tests;
