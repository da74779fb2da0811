//! Ownership of pods: by the controller in their owner references, and by selector (adoption and release).

use std::sync::Arc;

use machinery::meta::{ObjectMeta as _, string_map};
use machinery::selector::matches_selector;
use shared_json::{Array, Value, json};

use super::job_plan::FINALIZER;
use super::pods::owner_reference;
use super::statefulset::ordinal;
use crate::runtime::is_over;
use crate::runtime::{Alike, Cache, Cx, Key, Res, controller_of, text};

fn selects(res: Res, owner: &Value, object: &Value) -> bool {
    let selector = owner.pointer("/spec/selector");
    if res == Res::ReplicationControllers {
        // The older form: labels alone.
        let wanted = selector.and_then(Value::as_object);
        let have = string_map(object, "labels");
        return wanted.is_some_and(|wanted| {
            !wanted.is_empty() && wanted.iter().all(|(key, value)| have.get(key) == Some(value))
        });
    }
    let empty = selector.is_some_and(|selector| {
        let is_empty = |field: &str| {
            selector.get(field).is_none_or(|part| {
                part.as_object().is_none_or(shared_json::Map::is_empty)
                    && part.as_array().is_none_or(Array::is_empty)
            })
        };
        is_empty("matchLabels") && is_empty("matchExpressions")
    });
    !empty && matches_selector(selector, string_map(object, "labels"))
}

/// Whether an object is one that an owner adopts or keeps. The pods of a StatefulSet are called by its name and a number.
fn belongs(owner_res: Res, owner: &Value, res: Res, object: &Value) -> bool {
    let is_numbered = owner_res == Res::StatefulSets && res == Res::Pods;
    selects(owner_res, owner, object) && (!is_numbered || ordinal(owner, object).is_some())
}

/// Whether owners of a kind look at no pods but those that have not ended.
fn counts_running(owner_res: Res) -> bool {
    matches!(owner_res, Res::ReplicaSets | Res::ReplicationControllers)
}

/// The objects of kind `res` that `owner` controls, after those that its selector has come to match were adopted and
/// those that it has ceased to match were let go.
pub(crate) async fn claim(
    cx: &mut Cx<'_>,
    owner_res: Res,
    owner: &Value,
    res: Res,
) -> Result<Vec<Arc<Value>>, kube::Error> {
    let owned = cx.cache.owned(res, owner.uid());
    let (mut kept, mut lost) = (Vec::new(), Vec::new());
    for object in owned {
        if belongs(owner_res, owner, res, &object) {
            kept.push(object);
        } else if !object.is_terminating() {
            lost.push(object);
        }
    }
    if owner.is_terminating() {
        return Ok(kept);
    }
    let mut orphans = cx.cache.orphans(res, owner.namespace());
    orphans.retain(|object| {
        let passed_over = object.is_terminating() || (counts_running(owner_res) && is_over(object));
        !passed_over && belongs(owner_res, owner, res, object)
    });
    for object in lost {
        let references = references(&object, |reference| text(reference, "uid") != owner.uid());
        let metadata = metadata(owner_res, &object, references, false);
        cx.patch(res, &object, "", json!({"metadata": metadata})).await?;
    }
    for object in orphans {
        let mut references = references(&object, |_| true);
        // Before others, as a strategic merge patch puts it.
        references.insert(
            0,
            owner_reference(owner_res.api_version(), owner_res.kind(), owner),
        );
        let metadata = metadata(owner_res, &object, references, true);
        let adopted = cx.patch(res, &object, "", json!({"metadata": metadata})).await?;
        kept.push(Arc::new(adopted));
    }
    kept.sort_by(|one, other| one.name().cmp(other.name()));
    Ok(kept)
}

/// Whether a set of replicas keeps all pods that it has, and adopts none.
pub(super) fn keeps_all(cache: &Cache, res: Res, owner: &Value) -> bool {
    let selects = |alike: &Alike| selects(res, owner, &alike.labelled);
    cache.owned_numbers(owner.uid()).all(selects) && !cache.orphan_numbers(owner.namespace()).any(selects)
}

/// The metadata patch of an object that gets owners: jobs also add a finalizer to their pods, until they have counted them.
fn metadata(owner_res: Res, object: &Value, references: Vec<Value>, adopted: bool) -> Value {
    let mut metadata = json!({"ownerReferences": references});
    if owner_res == Res::Jobs {
        let mut finalizers = object.finalizers();
        finalizers.retain(|name| *name != FINALIZER);
        if adopted {
            finalizers.push(FINALIZER);
        }
        metadata["finalizers"] = json!(finalizers);
    }
    metadata
}

fn references(object: &Value, keep: impl Fn(&Value) -> bool) -> Vec<Value> {
    let list = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter(|reference| keep(reference))
        .cloned()
        .collect()
}

/// The workloads of kind `res` that a change of a dependent concerns: its controller, the one that it has just left, or,
/// for one without any, those whose selectors match.
pub(crate) fn concerned(cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
    let of = |object: &Value| {
        let owner = controller_of(object)?;
        (text(owner, "kind") == res.kind()
            && text(owner, "apiVersion").split('/').next() == res.api_version().split('/').next())
        .then(|| Key::new(object.namespace(), text(owner, "name")))
    };
    let mut keys: Vec<Key> = of(object).into_iter().collect();
    if let Some(before) = old.and_then(of)
        && !keys.contains(&before)
    {
        keys.push(before);
    }
    if controller_of(object).is_none() {
        keys.extend(
            cache
                .in_namespace(res, object.namespace())
                .filter(|owner| selects(res, owner, object))
                .map(|owner| Key::of(owner)),
        );
    }
    keys
}
