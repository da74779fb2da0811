//! Asks the API server for workloads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResourceList, ObjectMeta, OwnerReference};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, PartialObjectMeta};
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::reference::group_of;
use crate::api::v1alpha1::TargetReference;
use crate::kit::{ActError, Shared, controller_of};

/// The kinds whose number of pods is `spec.replicas`, with their groups.
const WITH_REPLICAS: [(&str, &str); 6] = [
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("", "ReplicationController"),
    ("apps.kruise.io", "CloneSet"),
    ("apps.kruise.io", "StatefulSet"),
];
/// The number of pods of a workload that does not say it.
const UNKNOWN: i32 = -1;

/// The resources of kinds, by version and kind, as the server named them.
type Kinds = BTreeMap<(String, String), (ApiResource, bool)>;

/// Looks workloads up.
#[derive(Clone)]
pub(crate) struct Lookup {
    client: Client,
    kinds: Arc<Mutex<Kinds>>,
}

/// A workload.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The version as it was asked for.
    pub(crate) api_version: String,
    /// Its kind.
    pub(crate) kind: String,
    /// The object.
    object: DynamicObject,
    /// Its resource, and whether it has a scale.
    resource: (ApiResource, bool),
}

impl Target {
    /// Its name.
    pub(crate) fn name(&self) -> String {
        self.object.name_any()
    }

    /// Its uid.
    pub(crate) fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Its metadata.
    pub(crate) fn metadata(&self) -> &ObjectMeta {
        &self.object.metadata
    }

    /// Whether it is being deleted.
    pub(crate) fn is_ending(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// The value at a place in it, such as `/spec/template`.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Value> {
        self.object.data.pointer(pointer)
    }

    /// A label of it.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.object.labels().get(key).map(String::as_str)
    }

    /// Its own controller.
    pub(crate) fn controller(&self) -> Option<&OwnerReference> {
        controller_of(&self.object.metadata)
    }

    /// Whether it is of a kind of `apps`.
    pub(crate) fn is_apps(&self, kind: &str) -> bool {
        self.kind == kind && group_of(&self.api_version) == "apps"
    }

    /// The reference to it.
    pub(crate) fn reference(&self) -> TargetReference {
        TargetReference {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            name: self.name(),
        }
    }
}

impl Lookup {
    /// Looks up through `client`, and shares the knowledge of kinds.
    pub(crate) fn shared(client: Client, shared: &Shared) -> Self {
        Self {
            client,
            kinds: shared.of(),
        }
    }

    /// The workload that a reference names in a namespace, if there is one.
    ///
    /// # Errors
    /// Those of the requests, and that there is no such kind.
    pub(crate) async fn get(
        &self,
        namespace: &str,
        reference: &TargetReference,
    ) -> Result<Option<Target>, ActError> {
        let resource = self.resource(&reference.api_version, &reference.kind).await?;
        let api = self.api(namespace, &resource.0);
        let found = api.get_opt(&reference.name).await?;
        Ok(found.map(|object| Target {
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
            object,
            resource,
        }))
    }

    /// The object that a controller reference names. Another one of the same name counts as none.
    ///
    /// # Errors
    /// Those of the requests, and that there is no such kind.
    pub(crate) async fn owner(
        &self,
        namespace: &str,
        owner: &OwnerReference,
    ) -> Result<Option<Target>, ActError> {
        let found = self.get(namespace, &owner.into()).await?;
        Ok(found.filter(|found| found.uid() == owner.uid))
    }

    /// The workload of a pod with this controller: the controller itself, or the Deployment of a ReplicaSet.
    ///
    /// # Errors
    /// Those of the requests, and that there is no such kind.
    pub(crate) async fn workload(
        &self,
        namespace: &str,
        owner: &OwnerReference,
    ) -> Result<Option<Target>, ActError> {
        let Some(found) = self.owner(namespace, owner).await? else {
            return Ok(None);
        };
        if found.is_apps("ReplicaSet")
            && let Some(above) = found.controller()
            && above.kind == "Deployment"
        {
            return self.owner(namespace, above).await;
        }
        Ok(Some(found))
    }

    /// How many pods a workload is to have; −1 where it does not say.
    ///
    /// # Errors
    /// Those of the requests.
    pub(crate) async fn replicas(&self, namespace: &str, target: &Target) -> Result<i32, ActError> {
        let number = |value: Option<&Value>| {
            let number = value.and_then(Value::as_i64);
            number.and_then(|number| i32::try_from(number).ok())
        };
        let kind = (group_of(&target.api_version), target.kind.as_str());
        if WITH_REPLICAS.contains(&kind) {
            return Ok(number(target.at("/spec/replicas")).unwrap_or(1));
        }
        let (resource, scales) = &target.resource;
        if !scales {
            return Ok(UNKNOWN);
        }
        let scale = self.api(namespace, resource).get_scale(&target.name()).await?;
        Ok(scale.spec.and_then(|spec| spec.replicas).unwrap_or(0))
    }

    /// The selector of the pods of a workload, in text form, as its scale says it.
    ///
    /// # Errors
    /// Those of the requests.
    pub(crate) async fn pod_selector(
        &self,
        namespace: &str,
        target: &Target,
    ) -> Result<Option<String>, ActError> {
        let (resource, scales) = &target.resource;
        if !scales {
            return Ok(None);
        }
        let scale = self.api(namespace, resource).get_scale(&target.name()).await?;
        let selector = scale.status.and_then(|status| status.selector);
        Ok(selector.filter(|selector| !selector.is_empty()))
    }

    /// The names of the pods that a selector in text form selects.
    ///
    /// # Errors
    /// Those of the requests.
    pub(crate) async fn pods(&self, namespace: &str, selector: &str) -> Result<Vec<String>, ActError> {
        let resource = self.resource("v1", "Pod").await?;
        let params = ListParams::default().labels(selector);
        let list = self.api(namespace, &resource.0).list_metadata(&params).await?;
        Ok(list.items.iter().map(ResourceExt::name_any).collect())
    }

    /// The ReplicaSets of a Deployment that are not being deleted.
    ///
    /// # Errors
    /// Those of the requests.
    pub(crate) async fn replica_sets(
        &self,
        namespace: &str,
        deployment: &Target,
    ) -> Result<Vec<Target>, ActError> {
        let resource = self.resource("apps/v1", "ReplicaSet").await?;
        let list = self
            .api(namespace, &resource.0)
            .list(&ListParams::default())
            .await?;
        let sets = list.items.into_iter().map(|object| Target {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            object,
            resource: resource.clone(),
        });
        let own = |set: &Target| {
            set.controller()
                .is_some_and(|owner| owner.uid == deployment.uid())
        };
        Ok(sets.filter(|set| own(set) && !set.is_ending()).collect())
    }

    /// The metadata of all workloads of a kind, or of those of one namespace.
    ///
    /// # Errors
    /// Those of the requests, and that there is no such kind.
    pub(crate) async fn all(
        &self,
        namespace: Option<&str>,
        api_version: &str,
        kind: &str,
    ) -> Result<Api<PartialObjectMeta<DynamicObject>>, ActError> {
        let (resource, _) = self.resource(api_version, kind).await?;
        Ok(match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        })
    }

    fn api(&self, namespace: &str, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, resource)
    }

    /// The resource of a kind, and whether it has a scale.
    async fn resource(&self, api_version: &str, kind: &str) -> Result<(ApiResource, bool), ActError> {
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(known) = self.lock().get(&key) {
            return Ok(known.clone());
        }
        let served = match api_version.contains('/') {
            true => self.client.list_api_group_resources(api_version).await,
            false => self.client.list_core_api_resources(api_version).await,
        };
        let missing = || {
            ActError::planned(&format!(
                "no matches for kind {kind:?} in version {api_version:?}"
            ))
        };
        let served = match served {
            Err(kube::Error::Api(status)) if status.code == 404 => return Err(missing()),
            served => served?,
        };
        let found = resource_of(&served, api_version, kind).ok_or_else(missing)?;
        self.lock().insert(key, found.clone());
        Ok(found)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kinds> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The resource of a kind among those that the server serves in a version.
fn resource_of(served: &APIResourceList, api_version: &str, kind: &str) -> Option<(ApiResource, bool)> {
    let mut all = served.resources.iter();
    let found = all.find(|resource| resource.kind == kind && !resource.name.contains('/'))?;
    let scale = format!("{}/scale", found.name);
    let scales = served.resources.iter().any(|resource| resource.name == scale);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: found.name.clone(),
    };
    Some((resource, scales))
}
