//! The webhook of pods that exist: the pod of a request, the operation on it, and whether its budget allows that.

use client_kit::Seed;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::asker::{Asker, Denied, Wish};
use super::operation::Operation;
use super::resize::is_resize;
use super::state::is_marked;
use super::{DELETE_GATE, UPDATE_GATE};
use crate::api::labels;
use crate::kit::ObjectKey;
use crate::kit::admission::{Refusal, Request};
use crate::pods::CachedPod;

/// Answers a request about a pod that exists.
///
/// # Errors
/// The refusal.
pub(in crate::injection) async fn guard(request: &Request<'_>) -> Result<(), Refusal> {
    let gates = &request.surroundings.gates;
    let gate = if request.operation == "UPDATE" {
        UPDATE_GATE
    } else {
        DELETE_GATE
    };
    if !gates.is_on(gate) {
        return Ok(());
    }
    let Some((pod, operation)) = subject(request).await? else {
        return Ok(());
    };
    let Some(asker) = Asker::of(request.surroundings).await? else {
        return Ok(());
    };
    let wish = Wish {
        operation,
        user: request.user,
        dry_run: request.dry_run,
        seed: Seed(0).fork(request.uid),
    };
    match asker.ask(&pod, wish).await {
        Ok(()) => Ok(()),
        Err(Denied::Refused(text)) => Err(Refusal::new(403, text)),
    }
}

/// The pod that goes out of service, and by which operation; none if none does, or no budget guards it.
async fn subject(request: &Request<'_>) -> Result<Option<(CachedPod, Operation)>, Refusal> {
    match (request.operation, request.subresource) {
        ("DELETE", "") => {
            let Some(old) = request.old.filter(|old| is_related(old)) else {
                return Ok(None);
            };
            Ok(Some((decoded(old)?, Operation::Delete)))
        }
        ("UPDATE", "") => {
            let (Some(old), Some(new)) = (request.old, request.object) else {
                return Ok(None);
            };
            let operation = update(old, new).filter(|_| is_related(old) && is_related(new));
            operation
                .map(|operation| Ok((decoded(old)?, operation)))
                .transpose()
        }
        ("CREATE", "eviction") => {
            let key = ObjectKey::new(request.namespace, request.name);
            let found = request.surroundings.object::<CachedPod>(&key).await;
            let missing = || Refusal::new(400, format!("Pod {:?} not found", request.name));
            let pod = found
                .map_err(|message| Refusal::new(400, message))?
                .ok_or_else(missing)?;
            Ok(Some((pod, Operation::Evict)))
        }
        _ => Ok(None),
    }
}

fn decoded(pod: &Value) -> Result<CachedPod, Refusal> {
    CachedPod::deserialize(pod).map_err(|error| Refusal::new(400, error))
}

/// Whether a pod names a budget.
fn is_related(pod: &Value) -> bool {
    let annotations = pod.pointer("/metadata/annotations");
    let related = annotations.and_then(|notes| notes.get(labels::RELATED_BUDGET)?.as_str());
    related.is_some_and(|name| !name.is_empty())
}

/// By which operation an update takes a pod out of service, if it does.
fn update(old: &Value, new: &Value) -> Option<Operation> {
    let marked = |pod: &Value| {
        let labels = pod.pointer("/metadata/labels").and_then(Value::as_object);
        labels.is_some_and(|labels: &Map<String, Value>| is_marked(labels.keys()))
    };
    let newly_marked = marked(new) && !marked(old);
    if old.get("spec") == new.get("spec") && !newly_marked {
        return None;
    }
    match !newly_marked && is_resize(old, new) {
        true => Some(Operation::Resize),
        false => Some(Operation::Update),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::gates::FeatureGates;
    use crate::kit::admission::Surroundings;
    use crate::test_server::OneObject;

    fn pod(image: &str, labels: &Value) -> Value {
        json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "main", "image": image }] } })
    }

    #[rstest]
    #[case::row_32("v1", json!({ "zz": "1" }), None)]
    #[case::an_image("v2", json!({}), Some(Operation::Update))]
    #[case::row_33("v1", json!({ "unavailable-pod.kruise.io/a": "" }), Some(Operation::Update))]
    fn updates(#[case] image: &str, #[case] labels: Value, #[case] want: Option<Operation>) {
        assert_eq!(update(&pod("v1", &json!({})), &pod(image, &labels)), want);
    }

    /// Row 34.
    #[test]
    fn a_second_mark_takes_nothing_out_of_service() {
        let one = json!({ "unavailable-pod.kruise.io/a": "" });
        let two = json!({ "unavailable-pod.kruise.io/a": "", "unavailable-pod.kruise.io/b": "" });
        assert_eq!(update(&pod("v1", &one), &pod("v1", &two)), None);
    }

    /// A pod that no cache has is found at the API server.
    #[tokio::test]
    async fn the_pod_of_an_eviction_is_asked_for() {
        let stored = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "default", "uid": "u" } });
        let mut surroundings = Surroundings::alone(FeatureGates::default());
        surroundings.client = Some(OneObject::new(stored).client());
        let evicted = async |name: &str| {
            let request = Request {
                uid: "",
                operation: "CREATE",
                subresource: "eviction",
                name,
                namespace: "default",
                user: "",
                dry_run: false,
                object: None,
                old: None,
                surroundings: &surroundings,
            };
            subject(&request).await
        };
        let (pod, operation) = evicted("p").await.unwrap().unwrap();
        assert_eq!(
            (pod.metadata.uid.as_deref(), operation),
            (Some("u"), Operation::Evict)
        );
    }

    #[rstest]
    #[case(json!({ "kruise.io/related-pub": "pub" }), true)]
    #[case(json!({ "kruise.io/related-pub": "" }), false)]
    #[case(json!({}), false)]
    fn budgets_are_named_in_annotations(#[case] annotations: Value, #[case] want: bool) {
        assert_eq!(
            is_related(&json!({ "metadata": { "annotations": annotations } })),
            want
        );
    }
}
