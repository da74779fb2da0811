//! A person's kubectl commands, carried out by a client.

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
/// How often a conditional scaling is tried while others change the object, as by kubectl.
const SCALE_ATTEMPTS_MAX: usize = 4;
/// The annotation in which kubectl keeps the last applied object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The known kinds, by `apiVersion` and `kind`: their resource, and whether it is namespaced.
type KnownKinds = BTreeMap<(String, String), (ApiResource, bool)>;

/// A kubectl for one namespace: finds resources by any of their names and acts on them.
#[derive(Clone)]
pub struct Kubectl {
    client: Client,
    namespace: String,
    /// The kinds that the server was asked about: their resource, and whether it is namespaced.
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
        let (resource, namespaced) = self.known(object).await?;
        let given = text(object, "/metadata/namespace");
        Ok(self.api(
            &resource,
            namespaced,
            Some(given.as_str()).filter(|name| !name.is_empty()),
        ))
    }

    /// The path of all objects of an object's kind, in all namespaces.
    ///
    /// # Errors
    /// If the kind is not served.
    pub async fn path_of_all(&self, object: &Value) -> Result<String, ActionError> {
        let (resource, _) = self.known(object).await?;
        Ok(self.api(&resource, false, None).resource_url().to_owned())
    }

    /// The server's resource of an object's kind, asked once.
    async fn known(&self, object: &Value) -> Result<(ApiResource, bool), ActionError> {
        let id = (text(object, "/apiVersion"), text(object, "/kind"));
        let known = self
            .kinds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.discover(&id.0, &id.1).await?;
        self.kinds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, found.clone());
        Ok(found)
    }

    /// Asks the server for a kind's resource, and whether its objects live in namespaces.
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

    /// The API of a resource by any name that kubectl takes: `pod`, `po`, `clonesets.apps.kruise.io`,
    /// `daemonsets.v1beta1.apps.kruise.io`.
    ///
    /// # Errors
    /// If no such resource is served.
    pub async fn api_named(
        &self,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<Api<DynamicObject>, ActionError> {
        let (short, group) = name.split_once('.').unwrap_or((name, ""));
        let (version, group) = match group.split_once('.') {
            Some((version, group)) if is_version(version) => (version, group),
            _ => ("", group),
        };
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
            let all = api_group.recommended_resources().into_iter().chain(others);
            for (resource, capabilities) in all.filter(|(it, _)| version.is_empty() || it.version == version)
            {
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

    /// Creates an object as kubectl does: unknown fields are refused.
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

    /// `kubectl apply`: creates the object, or changes the difference between it, the last applied one, and the live one.
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

    /// The server's result of a dry run of `apply`, `create`, `update` or `patch`.
    ///
    /// # Errors
    /// If the server refuses it.
    pub async fn dry_run(
        &self,
        api: &Api<DynamicObject>,
        verb: &str,
        subresource: Option<&str>,
        object: &Value,
    ) -> Result<Value, ActionError> {
        let name = text(object, "/metadata/name");
        let live = match verb {
            "create" => None,
            "apply" => api.get_opt(&name).await?,
            _ => Some(api.get(&name).await?),
        };
        let query = format!("?fieldManager={MANAGER}&fieldValidation=Strict&dryRun=All");
        let Some(live) = live else {
            let path = format!("{}{query}", api.resource_url());
            return self.request("POST", &path, Some(object)).await;
        };
        let below = subresource.map(|name| format!("/{name}")).unwrap_or_default();
        let path = format!("{}/{name}{below}{query}", api.resource_url());
        if verb == "update" {
            let mut next = object.clone();
            next["metadata"]["resourceVersion"] = json!(live.metadata.resource_version);
            return self.request("PUT", &path, Some(&next)).await;
        }
        self.send("PATCH", &path, "application/merge-patch+json", Some(object))
            .await
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
            Some(other) => api.patch_subresource(other, name, &params, &patch).await?,
            None => api.patch(name, &params, &patch).await?,
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

    /// `kubectl scale`: sets the number of replicas through the subresource `scale`, if the conditions hold.
    ///
    /// # Errors
    /// If a condition does not hold (in kubectl's words), or the server refuses the change.
    pub async fn scale(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        scaling: &Scaling,
    ) -> Result<(), ActionError> {
        if !scaling.is_conditional() {
            let params = PatchParams {
                field_manager: Some(MANAGER.to_owned()),
                ..PatchParams::default()
            };
            let body = json!({"spec": {"replicas": scaling.replicas}});
            api.patch_subresource("scale", name, &params, &Patch::Merge(&body))
                .await?;
            return Ok(());
        }
        let path = format!("{}/{name}/scale", api.resource_url());
        let mut attempts = 0;
        loop {
            let mut scale = self.request("GET", &path, None).await?;
            scaling.check(&scale)?;
            scale["spec"]["replicas"] = json!(scaling.replicas);
            attempts += 1;
            match self.request("PUT", &path, Some(&scale)).await {
                Err(ActionError::Api(error)) if attempts < SCALE_ATTEMPTS_MAX && is_conflict(&error) => {}
                other => return other.map(|_| ()),
            }
        }
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

    /// The names of the objects of a resource that a label selector selects.
    ///
    /// # Errors
    /// If the server does not list them.
    pub async fn names(&self, api: &Api<DynamicObject>, labels: &str) -> Result<Vec<String>, ActionError> {
        let list = api.list_metadata(&ListParams::default().labels(labels)).await?;
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
        self.send(method, path, "application/json", body).await
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        form: &str,
        body: Option<&Value>,
    ) -> Result<Value, ActionError> {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", form)
            .body(bytes)
            .map_err(|error| ActionError::Object(error.to_string()))?;
        Ok(self.client.request(request).await?)
    }
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_conflict())
}

/// The options of `kubectl scale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaling {
    /// The number of replicas to set.
    replicas: i32,
    /// The number of replicas that the object must have now.
    current: Option<i32>,
    /// The resource version that the object must have now.
    resource_version: Option<String>,
}

impl Scaling {
    /// Reads kubectl's options by name, without their dashes.
    ///
    /// # Errors
    /// An option that kubectl refuses, in its words.
    pub fn of_flags(flags: &BTreeMap<String, String>) -> Result<Self, ActionError> {
        let number = |name: &str| match flags.get(name) {
            None => Ok(None),
            Some(given) => given.parse::<i32>().map(Some).map_err(|_| {
                ActionError::Object(format!("invalid argument \"{given}\" for \"--{name}\" flag"))
            }),
        };
        let refused = |words: &str| Err(ActionError::Object(words.to_owned()));
        let Some(replicas) = number("replicas")? else {
            return refused("required flag(s) \"replicas\" not set");
        };
        if replicas < 0 {
            return refused(
                "The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0",
            );
        }
        let current = number("current-replicas")?.unwrap_or(-1);
        if current < -1 {
            return refused("The --current-replicas must specify an integer of -1 or greater");
        }
        Ok(Self {
            replicas,
            current: (current >= 0).then_some(current),
            resource_version: flags
                .get("resource-version")
                .filter(|version| !version.is_empty())
                .cloned(),
        })
    }

    fn is_conditional(&self) -> bool {
        self.current.is_some() || self.resource_version.is_some()
    }

    /// Compares the object's scale with the conditions.
    fn check(&self, scale: &Value) -> Result<(), ActionError> {
        let unexpected = |of: &str, expected: &str, actual: &str| {
            Err(ActionError::Object(format!(
                "Expected {of} to be {expected}, was {actual}"
            )))
        };
        let replicas = scale
            .pointer("/spec/replicas")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        if let Some(current) = self.current
            && i64::from(current) != replicas
        {
            return unexpected("replicas", &current.to_string(), &replicas.to_string());
        }
        let version = text(scale, "/metadata/resourceVersion");
        match &self.resource_version {
            Some(expected) if *expected != version => unexpected("resource version", expected, &version),
            _ => Ok(()),
        }
    }
}

/// Whether a part of a resource's name is a version: `v1`, `v1beta1`.
fn is_version(part: &str) -> bool {
    let rest = part.strip_prefix('v');
    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// The short names of resources that scenarios often use; discovery through kube does not give them.
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
        "broadcastjobs" => "bcj",
        "advancedcronjobs" => "acj",
        "ephemeraljobs" => "ejob",
        "podunavailablebudgets" => "pub",
        "uniteddeployments" => "ud",
        "workloadspreads" => "ws",
        _ => return None,
    })
}

/// The merge patch of an apply: removes fields that were applied before and are no longer, and sets those that differ from the
/// live object.
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

    /// The options, the words of the refusal, and the number of replicas afterwards.
    #[rstest]
    #[case::unconditional(&[("replicas", "5")], "", 5)]
    #[case::as_expected(&[("replicas", "5"), ("current-replicas", "3")], "", 5)]
    #[case::any_number(&[("replicas", "5"), ("current-replicas", "-1")], "", 5)]
    #[case::not_as_expected(&[("replicas", "5"), ("current-replicas", "2")], "Expected replicas to be 2, was 3", 3)]
    #[case::other_version(&[("replicas", "5"), ("resource-version", "0")], "Expected resource version to be 0, was ", 3)]
    #[case::without_number(&[("current-replicas", "3")], "required flag(s) \"replicas\" not set", 3)]
    #[case::negative(&[("replicas", "-3")], "The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0", 3)]
    #[case::negative_condition(&[("replicas", "5"), ("current-replicas", "-2")], "The --current-replicas must specify an integer of -1 or greater", 3)]
    #[case::no_number(&[("replicas", "x")], "invalid argument \"x\" for \"--replicas\" flag", 3)]
    #[tokio::test(start_paused = true)]
    async fn scales(#[case] flags: &[(&str, &str)], #[case] refusal: &str, #[case] expected: i64) {
        let cluster = fake_apiserver::Cluster::builder()
            .start()
            .await
            .expect("a cluster");
        let kubectl = Kubectl::new(cluster.client(), "default");
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        });
        kubectl.create(&object).await.expect("a deployment");
        let api = kubectl.api_of(&object).await.expect("its API");
        let flags = flags
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let result = match Scaling::of_flags(&flags) {
            Ok(scaling) => kubectl.scale(&api, "web", &scaling).await,
            Err(error) => Err(error),
        };
        let said = result.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(said.is_empty(), refusal.is_empty(), "{said}");
        assert!(said.starts_with(refusal), "{said}");
        let live = api.get("web").await.expect("the deployment");
        assert_eq!(live.data["spec"]["replicas"].as_i64(), Some(expected));
    }
}
