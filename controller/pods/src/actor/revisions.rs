//! Writing revisions.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kruise_kit::{ActError, Kind, Owner};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::{Value, json};

use super::objects::{Actor, patch_params};
use crate::revision_plan::{RevisionAction, data_of};

/// How creating a revision ended.
pub enum Written {
    /// It exists as wanted.
    Done(Box<ControllerRevision>),
    /// Its name is taken by another template: try again with a higher collision count.
    Collision,
}

impl Actor {
    /// Creates or renumbers a revision.
    pub async fn write_revision(&self, owner: &Owner, action: &RevisionAction) -> Result<Written, ActError> {
        let key = &owner.key;
        let api = self.api::<ControllerRevision>(key);
        match action {
            RevisionAction::Renumber { name, number } => {
                let patch = json!({ "revision": number });
                let written = api
                    .patch(name, &patch_params(), &Patch::Strategic(&patch))
                    .await?;
                Ok(Written::Done(Box::new(written)))
            }
            RevisionAction::Create(revision) => {
                let mut object =
                    serde_json::to_value(revision).map_err(|e| ActError::planned(&e.to_string()))?;
                if let (Some(data), Some(map)) = (data_of(revision), object.as_object_mut()) {
                    map.insert("data".to_owned(), data.clone());
                }
                match self.create::<ControllerRevision>(&key.namespace, &object).await {
                    Ok(created) => done(created),
                    Err(error) if error.kind == Kind::AlreadyExists => {
                        let found = api.get(&revision.name_any()).await?;
                        let same = data_of(&found) == data_of(revision);
                        Ok(if same {
                            Written::Done(Box::new(found))
                        } else {
                            Written::Collision
                        })
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Makes a revision the owner's.
    pub(super) async fn adopt_revision(&self, owner: &Owner, name: &str) -> Result<(), ActError> {
        let api = self.api::<ControllerRevision>(&owner.key);
        let patch = json!({ "metadata": { "ownerReferences": [owner.reference()] } });
        match api.patch(name, &patch_params(), &Patch::Strategic(&patch)).await {
            Err(error) => {
                let error = ActError::from(error);
                if error.kind == Kind::NotFound {
                    Ok(())
                } else {
                    Err(error)
                }
            }
            Ok(_) => Ok(()),
        }
    }

    /// Deletes a revision that no pod runs.
    pub(super) async fn delete_revision(&self, owner: &Owner, name: &str) -> Result<(), ActError> {
        let api = self.api::<ControllerRevision>(&owner.key);
        let params = DeleteParams {
            preconditions: None::<Preconditions>,
            ..DeleteParams::default()
        };
        match api.delete(name, &params).await.map_err(ActError::from) {
            Err(error) if error.kind != Kind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn done(created: Value) -> Result<Written, ActError> {
    let created = serde_json::from_value(created).map_err(|error| ActError::planned(&error.to_string()))?;
    Ok(Written::Done(Box::new(created)))
}
