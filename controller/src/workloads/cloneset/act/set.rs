//! Writing the set itself: its status, and the names of pods that are gone out of its spec.

use kube::ResourceExt;
use kube::api::{Patch, PostParams};
use serde_json::{Value, json};

use super::objects::{Actor, patch_params};
use crate::api::v1alpha1::{CloneSet, CloneSetStatus};
use crate::kit::ObjectKey;
use crate::kit::{ActError, Kind};

/// How often a write is tried when somebody else wrote meanwhile (client-go's default for conflicts).
const WRITE_TRIES_MAX: u32 = 5;

impl Actor {
    /// Writes the status and gives back the set as it is then.
    pub(crate) async fn write_status(
        &self,
        set: &CloneSet,
        status: &CloneSetStatus,
    ) -> Result<CloneSet, ActError> {
        let api = self.api::<CloneSet>(&ObjectKey::of(set));
        let mut set = set.clone();
        let mut attempt = 1;
        loop {
            set.status = Some(status.clone());
            match api
                .replace_status(&set.name_any(), &PostParams::default(), &set)
                .await
                .map_err(ActError::from)
            {
                Ok(written) => return Ok(written),
                Err(error) if error.kind == Kind::Conflict && attempt < WRITE_TRIES_MAX => {
                    attempt += 1;
                    let uid = set.uid();
                    set = api.get(&set.name_any()).await?;
                    if set.uid() != uid {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Leaves only the names in `keep` in `spec.scaleStrategy.podsToDelete`.
    pub(super) async fn trim_pods_to_delete(&self, set: &CloneSet, keep: &[String]) -> Result<(), ActError> {
        let names = if keep.is_empty() { Value::Null } else { json!(keep) };
        let patch = json!({
            "metadata": { "uid": set.uid(), "resourceVersion": set.resource_version() },
            "spec": { "scaleStrategy": { "podsToDelete": names } },
        });
        let api = self.api::<CloneSet>(&ObjectKey::of(set));
        api.patch(&set.name_any(), &patch_params(), &Patch::Merge(&patch))
            .await?;
        Ok(())
    }
}
