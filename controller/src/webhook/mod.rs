//! The webhooks of all kinds: from a review to its answer.
//!
//! [`review`] takes an `AdmissionReview` for one of the paths that [`rules`] lists and gives it back with the response
//! filled in; whoever has the requests (a server of TLS, or an API server in the same process) calls it. A kind's room has
//! the rules themselves, `injection` those of pods. [`convert`] answers a `ConversionReview`.

mod convert;
mod review;

pub use crate::kit::admission::{Rule, Surroundings, WebhookKind};
pub use crate::kit::{Shared, WebhookCaches};
pub use convert::{CONVERT_PATH, convert};
pub(crate) use convert::{conversion, to_version};
pub use pod_rules::{FieldError, FieldErrorKind};
pub use review::{review, rules};
