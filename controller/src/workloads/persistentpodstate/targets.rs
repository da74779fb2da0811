//! The sets whose pods are recorded: StatefulSets of two groups, and workloads of listed kinds that have ordinals like them.

use std::borrow::Cow;

use k8s_openapi::api::apps::v1::StatefulSet as BuiltIn;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Resource;
use serde::Deserialize;
use serde_json::Value;

use crate::api::v1alpha1::TargetReference;
use crate::api::v1beta1::StatefulSet;
use crate::pods::ordinals::{Reserved, ordinals};
use crate::targets::{self, group_of};

/// A set, as far as its pods' ordinals follow from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Its uid.
    pub(super) uid: String,
    /// The ordinals of its pods.
    pub(super) ordinals: Vec<i32>,
}

/// The groups whose StatefulSets can be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// Kubernetes' own.
    BuiltIn,
    /// OpenKruise's.
    Advanced,
}

impl Group {
    /// The group that a reference names, in any version; none for another kind.
    pub(super) fn of(reference: &TargetReference) -> Option<Self> {
        match (group_of(&reference.api_version), reference.kind.as_str()) {
            ("apps", "StatefulSet") => Some(Self::BuiltIn),
            ("apps.kruise.io", "StatefulSet") => Some(Self::Advanced),
            _ => None,
        }
    }
}

/// A StatefulSet of Kubernetes as the cache holds it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct CachedSet {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: SetSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct SetSpec {
    replicas: Option<i32>,
    ordinals: Option<SetOrdinals>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct SetOrdinals {
    start: i32,
}

impl Resource for CachedSet {
    type DynamicType = ();
    type Scope = <BuiltIn as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        BuiltIn::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        BuiltIn::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        BuiltIn::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        BuiltIn::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The set, unless it is going.
fn target(metadata: &ObjectMeta, start: i32, replicas: Option<i32>, reserved: &Reserved) -> Option<Target> {
    metadata.deletion_timestamp.is_none().then(|| Target {
        uid: metadata.uid.clone().unwrap_or_default(),
        ordinals: ordinals(start, replicas.unwrap_or(1), reserved),
    })
}

impl Target {
    /// A set of Kubernetes, unless it is going.
    pub(super) fn of_built_in(set: &CachedSet) -> Option<Self> {
        let start = set.spec.ordinals.as_ref().map_or(0, |ordinals| ordinals.start);
        target(&set.metadata, start, set.spec.replicas, &Reserved::default())
    }

    /// A set of OpenKruise, unless it is going.
    pub(super) fn of_advanced(set: &StatefulSet) -> Option<Self> {
        let start = set.spec.ordinals.as_ref().and_then(|ordinals| ordinals.start);
        let reserved = Reserved::of(set.spec.reserve_ordinals.as_deref().unwrap_or_default());
        target(&set.metadata, start.unwrap_or(0), set.spec.replicas, &reserved)
    }

    /// A workload of a listed kind with this number of pods, unless it is going.
    pub(super) fn of_listed(workload: &targets::Target, replicas: i32) -> Option<Self> {
        let start = workload.at("/spec/ordinals/start").and_then(Value::as_i64);
        let start = start.and_then(|start| i32::try_from(start).ok());
        let reserved = workload.at("/spec/reserveOrdinals").cloned();
        let reserved: Option<Vec<IntOrString>> = reserved.and_then(|list| serde_json::from_value(list).ok());
        let reserved = Reserved::of(&reserved.unwrap_or_default());
        target(workload.metadata(), start.unwrap_or(0), Some(replicas), &reserved)
    }
}
