//! The rules of Kubernetes for pods and templates of pods: those of the API server, in [`nodes`] which nodes a pod may run on, and in
//! [`schedule`] the times at which jobs begin.
//!
//! [`pod::template`] checks a template wherever it stands: in the built-in workloads, of which `fake-apiserver` is the server, and
//! in OpenKruise's, whose webhooks `controller` answers. All functions are pure: they take JSON values and add the errors to
//! [`errors::Errors`], in the order and in the words of the real server.
//!
//! ```
//! use pod_rules::{errors::Errors, path::Path, pod};
//! use shared_json::json;
//!
//! let template = json!({"spec": {"containers": [{"name": "a"}], "restartPolicy": "Always", "dnsPolicy": "Default"}});
//! let mut errors = Errors::default();
//! pod::template(&pod::Scope::TEMPLATE, &template, &Path::new("spec.template"), &mut errors);
//! let found: Vec<String> = errors.into_vec().iter().map(ToString::to_string).collect();
//! assert!(found.contains(&"spec.template.spec.containers[0].image: Required value".to_owned()), "{found:?}");
//! ```

pub mod addresses;
pub mod amounts;
pub mod app_armor;
pub mod claim;
pub mod durations;
pub mod errors;
pub mod field_error;
pub mod fields;
pub mod go;
pub mod names;
pub mod nodes;
pub mod path;
pub mod pod;
pub mod quantity;
pub mod schedule;
pub mod selectors;
mod unified;
pub mod volume_sources;
pub mod zones;

pub use field_error::{FieldError, FieldErrorKind};
