//! Admission webhooks, as functions from a review to its answer.
//!
//! [`review`] takes an `AdmissionReview` for one of the paths that [`rules`] lists and gives it back with the response
//! filled in; whoever has the requests (a server of TLS, or an API server in the same process) calls it. `mutate` holds
//! what is filled in, `validate` what is refused, `template` both for pod templates.

mod forbid;
mod mutate;
mod pod;
mod review;
mod rules;
mod strategy;
mod template_defaults;
mod template_rules;
mod validate;

pub use mutate::mutate_cloneset;
pub use pod::mutate_pod;
pub use pod_rules::{FieldError, FieldErrorKind};
pub use review::review;
pub use rules::{Rule, WebhookKind, rules};
pub use validate::validate_cloneset;

#[cfg(test)]
mod recorded_tests;
