//! The history of a template: ControllerRevisions and the hashes in names.

use std::sync::Arc;

use client_kit::safe_encode;
use go_dump::{Program, template_hash};
use machinery::meta::{ObjectMeta as _, at, string_map};
use shared_json::{Value, json, to_go_string};

use super::pods::owner_reference;
use crate::runtime::{Cx, Res, list, number, text};

/// FNV-1 over bytes, 32 bits.
fn fnv(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0x811c_9dc5_u32, |hash, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte)
    })
}

/// The data of a revision: the template, to be put in place of the old one.
pub(super) fn data(object: &Value) -> Value {
    let mut template = object
        .pointer("/spec/template")
        .cloned()
        .unwrap_or_else(|| json!({}));
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}

/// The hash of a revision's data, with the count of collisions.
pub(super) fn data_hash(data: &Value, collisions: i64) -> String {
    safe_encode(&fnv(&[to_go_string(data).as_bytes(), collisions.to_string().as_bytes()]).to_string())
}

/// The revisions of an object, and which of them its template is now.
pub(super) struct History {
    /// By number, oldest first.
    pub all: Vec<Arc<Value>>,
    /// The one that the template is.
    pub update: Arc<Value>,
    /// How often a name was taken by a revision of something else.
    pub collisions: Option<i64>,
}

/// Finds the revision of the present template among those that the object has; makes it, or makes it the newest again.
pub(super) async fn ensure(
    cx: &mut Cx<'_>,
    res: Res,
    object: &Value,
    mut revisions: Vec<Arc<Value>>,
    hash_label: &str,
) -> Result<History, kube::Error> {
    revisions.sort_by_key(|revision| (number(revision, "revision", 0), revision.name().to_owned()));
    let wanted = data(object);
    let mut collisions = at(object, "status.collisionCount").and_then(Value::as_i64);
    let next = revisions.last().map_or(0, |last| number(last, "revision", 0)) + 1;
    let equal = revisions
        .iter()
        .rposition(|revision| revision.get("data").map(to_go_string) == Some(to_go_string(&wanted)));
    if let Some(at) = equal
        && let Some(found) = revisions.get(at).cloned()
    {
        if at + 1 == revisions.len() {
            return Ok(History {
                all: revisions,
                update: found,
                collisions,
            });
        }
        let newest = Arc::new(
            cx.patch(Res::Revisions, &found, "", json!({"revision": next}))
                .await?,
        );
        revisions.remove(at);
        revisions.push(Arc::clone(&newest));
        return Ok(History {
            all: revisions,
            update: newest,
            collisions,
        });
    }
    loop {
        let hash = match res {
            // As the names of ReplicaSets are made.
            Res::DaemonSets => template_hash(&Program::KUBERNETES, &object["spec"]["template"], collisions),
            _ => data_hash(&wanted, collisions.unwrap_or_default()),
        };
        let name = format!("{}-{hash}", object.name());
        let mut labels = object
            .pointer("/spec/template/metadata/labels")
            .cloned()
            .unwrap_or_else(|| json!({}));
        labels[hash_label] = Value::from(hash.clone());
        let annotations = string_map(object, "annotations").clone();
        let mut revision = json!({
            "metadata": {
                "name": name, "namespace": object.namespace(), "labels": labels,
                "ownerReferences": [owner_reference(res.api_version(), res.kind(), object)],
            },
            "data": wanted, "revision": next,
        });
        if !annotations.is_empty() {
            revision["metadata"]["annotations"] = Value::Object(annotations);
        }
        match cx.create(Res::Revisions, object.namespace(), revision).await {
            Ok(created) => {
                let created = Arc::new(created);
                revisions.push(Arc::clone(&created));
                return Ok(History {
                    all: revisions,
                    update: created,
                    collisions,
                });
            }
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let path = format!("{}/{name}", Res::Revisions.path(object.namespace()));
                let taken = cx.read(&path).await?;
                if taken.get("data").map(to_go_string) == Some(to_go_string(&wanted)) {
                    return Ok(History {
                        all: revisions,
                        update: Arc::new(taken),
                        collisions,
                    });
                }
                collisions = Some(collisions.unwrap_or_default() + 1);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Of a DaemonSet's revisions those that stay: of several that are its present template only the newest, whose label all of its pods get then,
/// whatever they were made of. A revision without a label has its name for one.
pub(super) async fn without_doubles(
    cx: &mut Cx<'_>,
    object: &Value,
    revisions: Vec<Arc<Value>>,
    pods: &mut [Arc<Value>],
    hash_label: &str,
) -> Result<Vec<Arc<Value>>, kube::Error> {
    let is_labelled = |revision: &Arc<Value>| string_map(revision, "labels").contains_key(hash_label);
    if revisions.len() < 2 && revisions.iter().all(is_labelled) {
        return Ok(revisions);
    }
    let wanted = to_go_string(&data(object));
    let (mut present, mut rest) = (Vec::new(), Vec::new());
    for mut revision in revisions {
        if !is_labelled(&revision) {
            let labels = json!({"metadata": {"labels": {hash_label: revision.name()}}});
            revision = Arc::new(cx.patch(Res::Revisions, &revision, "", labels).await?);
        }
        let is_present = revision.get("data").map(to_go_string).as_ref() == Some(&wanted);
        if is_present { &mut present } else { &mut rest }.push(revision);
    }
    present.sort_by_key(|revision| (number(revision, "revision", 0), revision.name().to_owned()));
    let Some(newest) = present.pop() else {
        return Ok(rest);
    };
    if !present.is_empty() {
        let label = string_map(&newest, "labels")
            .get(hash_label)
            .cloned()
            .unwrap_or_default();
        for pod in pods {
            if string_map(pod, "labels").get(hash_label) != Some(&label) {
                let labels = json!({"metadata": {"labels": {hash_label: label}}});
                *pod = Arc::new(cx.patch(Res::Pods, pod, "", labels).await?);
            }
        }
    }
    for double in present {
        cx.delete(Res::Revisions, &double, None).await?;
    }
    rest.push(newest);
    Ok(rest)
}

/// Deletes the oldest revisions beyond the limit that are not `live`: of which there are no pods. Whether those that are live
/// count is up to the kind.
pub(super) async fn truncate(
    cx: &mut Cx<'_>,
    object: &Value,
    history: &History,
    live: impl Fn(&Value) -> bool,
    live_count: bool,
) -> Result<(), kube::Error> {
    let limit = usize::try_from(number(object, "spec.revisionHistoryLimit", 10)).unwrap_or_default();
    let old = || {
        history
            .all
            .iter()
            .filter(|revision| revision.name() != history.update.name())
    };
    let counted = old().filter(|revision| live_count || !live(revision)).count();
    let gone: Vec<&Arc<Value>> = old()
        .filter(|revision| !live(revision))
        .take(counted.saturating_sub(limit))
        .collect();
    for revision in gone {
        cx.delete(Res::Revisions, revision, None).await?;
    }
    Ok(())
}

/// The template that a revision stands for.
pub(super) fn template_of(revision: &Value) -> Option<Value> {
    let mut template = revision.pointer("/data/spec/template").cloned()?;
    if let Some(map) = template.as_object_mut() {
        map.remove("$patch");
    }
    Some(template)
}

/// How many owner references there are; a revision without any may be adopted.
pub(super) fn is_orphan(revision: &Value) -> bool {
    list(revision, "metadata.ownerReferences").iter().all(|owner| {
        text(owner, "controller") != "true" && owner.get("controller") != Some(&Value::Bool(true))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_differ_by_content_and_collisions() {
        let data = data(&json!({"spec": {"template": {"spec": {}}}}));
        assert_eq!(data_hash(&data, 0), data_hash(&data, 0));
        assert_ne!(data_hash(&data, 0), data_hash(&data, 1));
    }
}
