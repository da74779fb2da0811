//! Requests about workloads, whose type follows from their kind.

use k8s_openapi::api::apps::v1 as apps;
use kube::Resource;
use kube::api::{Api, DeleteParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::NamespaceResourceScope;
use serde_json::{Value, json};

use crate::api::v1alpha1::CloneSet;
use crate::api::v1beta1::StatefulSet;
use crate::kit::{ActError, requests};
use crate::pods::actor::Actor;
use crate::workloads::uniteddeployment::children::Child;
use crate::workloads::uniteddeployment::kinds::ChildKind;

/// Calls a function with the type of a kind.
macro_rules! of_kind {
    ($kind:expr, $call:ident($($argument:expr),*)) => {
        match $kind {
            ChildKind::StatefulSet => $call::<apps::StatefulSet>($($argument),*).await,
            ChildKind::AdvancedStatefulSet => $call::<StatefulSet>($($argument),*).await,
            ChildKind::CloneSet => $call::<CloneSet>($($argument),*).await,
            ChildKind::Deployment => $call::<apps::Deployment>($($argument),*).await,
        }
    };
}

pub(super) fn in_background(uid: &str) -> DeleteParams {
    DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    }
}

/// A kind of workload.
trait Workload:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + std::fmt::Debug
    + serde::de::DeserializeOwned
{
}

impl Workload for apps::StatefulSet {}
impl Workload for apps::Deployment {}
impl Workload for CloneSet {}
impl Workload for StatefulSet {}

/// Creates a workload.
pub(super) async fn create(
    actor: &Actor,
    kind: ChildKind,
    namespace: &str,
    object: &Value,
) -> Result<Value, ActError> {
    of_kind!(kind, create_of(actor, namespace, object))
}

/// A workload with all of its fields.
pub(super) async fn get(
    actor: &Actor,
    kind: ChildKind,
    namespace: &str,
    name: &str,
) -> Result<Value, ActError> {
    of_kind!(kind, get_of(actor, namespace, name))
}

/// Replaces a workload.
pub(super) async fn replace(
    actor: &Actor,
    kind: ChildKind,
    namespace: &str,
    name: &str,
    object: &Value,
) -> Result<Value, ActError> {
    of_kind!(kind, replace_of(actor, namespace, name, object))
}

/// Deletes a workload, and its pods after it.
pub(super) async fn delete(actor: &Actor, namespace: &str, child: &Child) -> Result<(), ActError> {
    of_kind!(child.kind, delete_of(actor, namespace, child))
}

/// Adds an owner to a workload.
pub(super) async fn adopt(
    actor: &Actor,
    namespace: &str,
    child: &Child,
    reference: Value,
) -> Result<(), ActError> {
    of_kind!(child.kind, adopt_of(actor, namespace, child, reference))
}

async fn create_of<K: Workload>(actor: &Actor, namespace: &str, object: &Value) -> Result<Value, ActError> {
    requests::create::<K>(&actor.client, namespace, &PostParams::default(), object).await
}

async fn get_of<K: Workload>(actor: &Actor, namespace: &str, name: &str) -> Result<Value, ActError> {
    requests::get::<K>(&actor.client, namespace, name).await
}

async fn replace_of<K: Workload>(
    actor: &Actor,
    namespace: &str,
    name: &str,
    object: &Value,
) -> Result<Value, ActError> {
    requests::replace::<K>(&actor.client, namespace, name, object).await
}

async fn delete_of<K: Workload>(actor: &Actor, namespace: &str, child: &Child) -> Result<(), ActError> {
    let api: Api<K> = Api::namespaced(actor.client.clone(), namespace);
    api.delete(&child.name, &in_background(&child.uid)).await?;
    Ok(())
}

async fn adopt_of<K: Workload>(
    actor: &Actor,
    namespace: &str,
    child: &Child,
    reference: Value,
) -> Result<(), ActError> {
    let mut object = requests::get::<K>(&actor.client, namespace, &child.name).await?;
    let owners = &mut object["metadata"]["ownerReferences"];
    match owners.as_array_mut() {
        Some(owners) => owners.push(reference),
        None => *owners = json!([reference]),
    }
    requests::replace::<K>(&actor.client, namespace, &child.name, &object).await?;
    Ok(())
}
