//! Rules for images that several kinds and the daemon share: `reference` reads references, `rules` validates jobs that pull images,
//! `defaults` fills them in.

pub(crate) mod defaults;
mod reference;
pub(crate) mod rules;

pub(crate) use reference::ImageReference;

use crate::gates::FeatureGates;

/// The finalizer of jobs that have copies of Secrets.
pub(crate) const KEPT: &str = "apps.kruise.io/deletion-protection";
/// The namespace of the Secrets that the daemon may read, unless said otherwise.
pub(crate) const SECRETS_NAMESPACE: &str = "kruise-daemon-config";
/// The mode of Secrets that are copies which jobs share.
pub(crate) const SHARED_COPY: &str = "batch";
/// How many seconds an attempt to pull an image may take unless something else is said.
pub(crate) const TIMEOUT_S: i32 = 600;
/// How many attempts follow the first unless something else is said.
pub(crate) const BACKOFF_LIMIT: i32 = 3;

/// The gates that jobs need which pull images.
const JOB_GATES: [&str; 2] = ["KruiseDaemon", "ImagePullJobGate"];

/// The error that refuses such jobs where a gate is off.
pub(crate) fn gate_error(gates: &FeatureGates) -> Option<String> {
    let off = JOB_GATES.into_iter().find(|gate| !gates.is_on(gate))?;
    Some(format!("feature-gate {off} is not enabled"))
}
