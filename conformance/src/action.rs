//! What a person does to a cluster with kubectl, done by a client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PropagationPolicy, ValidationDirective,
};
use kube::core::ApiResource;
use kube::discovery::{Discovery, Scope};
use shared_json::{Map, Value, json};

use crate::history::text;

/// The field manager of everything the harness writes.
const MANAGER: &str = "kubectl";
/// Where kubectl keeps what was last applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What is known of kinds, by `apiVersion` and `kind`: their resource, and whether it is namespaced.
type KnownKinds = BTreeMap<(String, String), (ApiResource, bool)>;

/// A kubectl for one namespace: finds resources by any of their names and acts on them.
#[derive(Clone)]
pub struct Kubectl {
    client: Client,
    namespace: String,
    /// What the server said of kinds: their resource, and whether it is namespaced.
    kinds: Arc<Mutex<KnownKinds>>,
}

/// Why an action did not work.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// The server refused, or could not be reached.
    #[error("{}", api_message(.0))]
    Api(#[from] Box<kube::Error>),
    /// The server does not serve such a resource.
    #[error("the server doesn't have a resource type \"{0}\"")]
    UnknownResource(String),
    /// The object is not one.
    #[error("{0}")]
    Object(String),
}

impl From<kube::Error> for ActionError {
    fn from(error: kube::Error) -> Self {
        Self::Api(Box::new(error))
    }
}

fn api_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// How an applied object came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It was not there before.
    Created,
    /// It was changed.
    Configured,
    /// It was as it should be.
    Unchanged,
}

impl Kubectl {
    /// A kubectl whose objects live in `namespace` unless they say otherwise.
    #[must_use]
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            kinds: Arc::default(),
        }
    }

    /// The default namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The API of an object's kind, in the object's namespace.
    ///
    /// # Errors
    /// If the kind is not served.
    pub async fn api_of(&self, object: &Value) -> Result<Api<DynamicObject>, ActionError> {
        let id = (text(object, "/apiVersion"), text(object, "/kind"));
        let known = self
            .kinds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned();
        let (resource, namespaced) = match known {
            Some(known) => known,
            None => {
                let found = self.discover(&id.0, &id.1).await?;
                self.kinds
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(id, found.clone());
                found
            }
        };
        let given = text(object, "/metadata/namespace");
        Ok(self.api(
            &resource,
            namespaced,
            Some(given.as_str()).filter(|name| !name.is_empty()),
        ))
    }

    /// Asks the server what a kind's resource is called, and whether its objects live in namespaces.
    async fn discover(&self, api_version: &str, kind: &str) -> Result<(ApiResource, bool), ActionError> {
        let unknown = || {
            ActionError::Object(format!(
                "no matches for kind \"{kind}\" in version \"{api_version}\""
            ))
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let list = if group.is_empty() {
            self.client.list_core_api_resources(version).await
        } else {
            self.client.list_api_group_resources(api_version).await
        };
        let list = match list {
            Err(kube::Error::Api(status)) if status.is_not_found() => return Err(unknown()),
            other => other?,
        };
        let entry = list
            .resources
            .into_iter()
            .find(|entry| entry.kind == kind && !entry.name.contains('/'))
            .ok_or_else(unknown)?;
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: entry.name,
        };
        Ok((resource, entry.namespaced))
    }

    fn api(&self, resource: &ApiResource, namespaced: bool, namespace: Option<&str>) -> Api<DynamicObject> {
        if namespaced {
            Api::namespaced_with(
                self.client.clone(),
                namespace.unwrap_or(&self.namespace),
                resource,
            )
        } else {
            Api::all_with(self.client.clone(), resource)
        }
    }

    /// The API of a resource by any name that kubectl takes: `pod`, `po`, `clonesets.apps.kruise.io`.
    ///
    /// # Errors
    /// If no such resource is served.
    pub async fn api_named(
        &self,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Api<DynamicObject>, ActionError> {
        let (short, group) = name.split_once('.').unwrap_or((name, ""));
        let discovery = Discovery::new(self.client.clone()).run_aggregated().await?;
        let mut found = None;
        for api_group in discovery.groups_alphabetical() {
            if !group.is_empty() && api_group.name() != group {
                continue;
            }
            // A resource need not be served in the version that its group prefers.
            let others = api_group
                .versions()
                .flat_map(|version| api_group.versioned_resources(version));
            for (resource, capabilities) in api_group.recommended_resources().into_iter().chain(others) {
                let singular = resource.kind.to_lowercase();
                let short_name = shorthand(&resource.plural) == Some(short);
                if resource.plural == short || singular == short || short_name {
                    found.get_or_insert((resource, capabilities.scope == Scope::Namespaced));
                }
            }
        }
        let (resource, namespaced) = found.ok_or_else(|| ActionError::UnknownResource(name.to_owned()))?;
        Ok(self.api(&resource, namespaced, namespace))
    }

    /// Creates an object.
    ///
    /// # Errors
    /// If the server refuses it.
    pub async fn create(&self, object: &Value) -> Result<(), ActionError> {
        let api = self.api_of(object).await?;
        self.create_by(&api, object, "kubectl-create").await
    }

    /// Creates an object as kubectl does: fields that nobody knows are refused.
    async fn create_by(
        &self,
        api: &Api<DynamicObject>,
        object: &Value,
        manager: &str,
    ) -> Result<(), ActionError> {
        let path = format!(
            "{}?fieldManager={manager}&fieldValidation=Strict",
            api.resource_url()
        );
        self.request("POST", &path, Some(object)).await?;
        Ok(())
    }

    /// `kubectl apply`: creates the object, or changes what differs between it, what was last applied, and what is there.
    ///
    /// # Errors
    /// If the server refuses it.
    pub async fn apply(&self, object: &Value) -> Result<Applied, ActionError> {
        let api = self.api_of(object).await?;
        let name = text(object, "/metadata/name");
        let mut wanted = object.clone();
        let last = format!("{}\n", object);
        wanted["metadata"]["annotations"][LAST_APPLIED] = Value::from(last);
        let Some(live) = api.get_opt(&name).await? else {
            self.create_by(&api, &wanted, "kubectl-client-side-apply").await?;
            return Ok(Applied::Created);
        };
        let live = shared_json::to_value(live).map_err(|error| ActionError::Object(error.to_string()))?;
        let before = live
            .pointer("/metadata/annotations")
            .and_then(|annotations| annotations.get(LAST_APPLIED))
            .and_then(Value::as_str)
            .and_then(|text| shared_json::from_str(text).ok())
            .unwrap_or_else(|| json!({}));
        let patch = three_way(&before, &wanted, &live);
        if patch == json!({}) {
            return Ok(Applied::Unchanged);
        }
        let params = PatchParams {
            field_manager: Some("kubectl-client-side-apply".to_owned()),
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::default()
        };
        api.patch(&name, &params, &Patch::Merge(&patch)).await?;
        Ok(Applied::Configured)
    }

    /// Patches an object; `kind` is `json`, `merge` or `strategic`.
    ///
    /// # Errors
    /// If the server refuses it, or the patch is none.
    pub async fn patch(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        kind: &str,
        subresource: Option<&str>,
        body: &Value,
    ) -> Result<(), ActionError> {
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch: Patch<Value> = match kind {
            "json" => Patch::Json(
                shared_json::from_value(body.clone())
                    .map_err(|error| ActionError::Object(error.to_string()))?,
            ),
            "merge" => Patch::Merge(body.clone()),
            _ => Patch::Strategic(body.clone()),
        };
        match subresource {
            Some("status") => api.patch_status(name, &params, &patch).await?,
            _ => api.patch(name, &params, &patch).await?,
        };
        Ok(())
    }

    /// Sets (`key=value`) and removes (`key-`) labels or annotations.
    ///
    /// # Errors
    /// If the server refuses it.
    pub async fn mark(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        field: &str,
        changes: &[String],
    ) -> Result<(), ActionError> {
        let mut map = Map::new();
        for change in changes {
            match change.split_once('=') {
                Some((key, value)) => map.insert(key.to_owned(), Value::from(value)),
                None => map.insert(change.trim_end_matches('-').to_owned(), Value::Null),
            };
        }
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        api.patch(name, &params, &Patch::Merge(json!({"metadata": {field: map}})))
            .await?;
        Ok(())
    }

    /// Deletes an object; `cascade` is `background`, `foreground` or `orphan`.
    ///
    /// # Errors
    /// If the server refuses it.
    pub async fn delete(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        cascade: Option<&str>,
        grace_seconds: Option<u32>,
    ) -> Result<(), ActionError> {
        let policy = match cascade {
            Some("foreground") => PropagationPolicy::Foreground,
            Some("orphan") => PropagationPolicy::Orphan,
            _ => PropagationPolicy::Background,
        };
        let params = DeleteParams {
            propagation_policy: Some(policy),
            grace_period_seconds: grace_seconds,
            ..DeleteParams::default()
        };
        api.delete(name, &params).await?;
        Ok(())
    }

    /// The names of the objects of a resource.
    ///
    /// # Errors
    /// If the server does not list them.
    pub async fn names(&self, api: &Api<DynamicObject>) -> Result<Vec<String>, ActionError> {
        let list = api.list_metadata(&ListParams::default()).await?;
        Ok(list
            .items
            .into_iter()
            .filter_map(|object| object.metadata.name)
            .collect())
    }

    /// Sends a plain request.
    ///
    /// # Errors
    /// If the server refuses it.
    pub async fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ActionError> {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(bytes)
            .map_err(|error| ActionError::Object(error.to_string()))?;
        Ok(self.client.request(request).await?)
    }
}

/// The short names of what scenarios usually speak of; discovery through kube does not tell them.
fn shorthand(plural: &str) -> Option<&'static str> {
    Some(match plural {
        "pods" => "po",
        "services" => "svc",
        "deployments" => "deploy",
        "replicasets" => "rs",
        "namespaces" => "ns",
        "nodes" => "no",
        "configmaps" => "cm",
        "persistentvolumeclaims" => "pvc",
        "clonesets" => "clone",
        _ => return None,
    })
}

/// The merge patch of an apply: what was applied before and is not any more goes, what differs from the live object is set.
fn three_way(before: &Value, wanted: &Value, live: &Value) -> Value {
    let mut patch = Map::new();
    let (Some(wanted), Some(live)) = (wanted.as_object(), live.as_object()) else {
        return json!({});
    };
    for (key, value) in wanted {
        match live.get(key) {
            Some(present) if present == value => {}
            Some(present) if present.is_object() && value.is_object() => {
                let below = three_way(before.get(key).unwrap_or(&Value::Null), value, present);
                if below != json!({}) {
                    patch.insert(key.clone(), below);
                }
            }
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in before.as_object().into_iter().flatten().map(|(key, _)| key) {
        if !wanted.contains_key(key) && live.contains_key(key) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({}), json!({"a": 1}), json!({"a": 1, "d": 2}), json!({}))]
    #[case(json!({"b": 1}), json!({"a": 2}), json!({"a": 1, "b": 1, "d": 2}), json!({"a": 2, "b": null}))]
    #[case(json!({"s": {"p": [1]}}), json!({"s": {"r": 4}}), json!({"s": {"p": [1], "r": 5}}), json!({"s": {"p": null, "r": 4}}))]
    #[case(json!({"s": {"p": [1]}}), json!({"s": {"r": 4}}), json!({"s": {"r": 4}}), json!({}))]
    #[case(json!({}), json!({"l": [{"a": 1}]}), json!({"l": [{"a": 1, "default": true}]}), json!({"l": [{"a": 1}]}))]
    fn applies(#[case] before: Value, #[case] wanted: Value, #[case] live: Value, #[case] expected: Value) {
        assert_eq!(three_way(&before, &wanted, &live), expected);
    }
}
