//! Deployments: a ReplicaSet for each template, old ones giving way to the new one.

use std::sync::Arc;

use async_trait::async_trait;
use go_dump::{Program, template_hash};
use machinery::meta::{ObjectMeta as _, string_map};
use shared_json::{Value, json};

use super::adoption::{claim, concerned};
use super::deployment_plan::{
    DESIRED, MAX, NOT_CREATED, REVISION, REVISION_HISTORY, Scale, View, has_deadline, is_complete,
    is_scaling, max_surge, new_set_condition, new_size, proportional, replicas, rolling, scale,
    set_condition, status,
};
use super::pod_control::{is_namespace_going, refusal};
use super::pods::{owner_reference, sort_by_age};
use crate::runtime::is_over;
use crate::runtime::{Cache, Controller, Cx, Key, Next, Res, condition, controller_of, list, number, text};

const HASH_LABEL: &str = "pod-template-hash";
/// Annotations of the deployment that are not its ReplicaSets'.
const OWN_ANNOTATIONS: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// The controller.
pub(crate) struct Deployments;

#[async_trait]
impl Controller for Deployments {
    fn name(&self) -> &'static str {
        "deployment-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Deployments, Res::ReplicaSets, Res::Pods]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Deployments => vec![Key::of(object)],
            Res::ReplicaSets => concerned(cache, Res::Deployments, object, old),
            _ => {
                let Some(owner) = controller_of(object) else {
                    return Vec::new();
                };
                // Only a pod that is gone lets a deployment that recreates go on.
                let there = cache.get(Res::Pods, object.namespace(), object.name());
                if there.is_some() {
                    return Vec::new();
                }
                let set = cache.get(Res::ReplicaSets, object.namespace(), text(owner, "name"));
                set.map(|set| concerned(cache, Res::Deployments, set, None))
                    .unwrap_or_default()
            }
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(mut d) = cx.cache.get(Res::Deployments, &key.namespace, &key.name).cloned() else {
            return Ok(Next::Change);
        };
        let mut sets = claim(cx, Res::Deployments, &d, Res::ReplicaSets).await?;
        sort_by_age(&mut sets);
        let mut rolls = false;
        if !d.is_terminating() {
            d = check_paused(cx, d).await?;
            let paused = is_paused(&d);
            let (new, old) = split(&d, &sets);
            if paused || is_scaling(&d, &sets) {
                let new = match new {
                    Some(new) => Some(take(cx, &mut d, new, &old).await?),
                    None => None,
                };
                let steps = proportional(&d, new.as_ref(), &old);
                apply(cx, &d, &steps).await?;
                if paused {
                    clean(cx, &d, &old).await?;
                }
            } else if text(&d, "spec.strategy.type") == "Recreate" {
                rolls = true;
                recreate(cx, &mut d, new, &old).await?;
            } else {
                rolls = true;
                let new = ensure(cx, &mut d, new, &old).await?;
                let steps = rolling(&d, &new, &old);
                apply(cx, &d, &steps).await?;
            }
        }
        self.finish(cx, key, rolls).await
    }
}

impl Deployments {
    /// Tells the status; of progress only while nothing is paused or resized.
    async fn finish(&self, cx: &mut Cx<'_>, key: &Key, rolls: bool) -> Result<Next, kube::Error> {
        let Some(d) = cx.cache.get(Res::Deployments, &key.namespace, &key.name).cloned() else {
            return Ok(Next::Change);
        };
        let mut sets = cx.cache.owned(Res::ReplicaSets, d.uid());
        sort_by_age(&mut sets);
        let (new, old) = split(&d, &sets);
        let stamp = cx.stamp();
        let (status, next) = status(&View {
            deployment: &d,
            new: new.as_ref(),
            old: &old,
            rolls,
            now: cx.now(),
            stamp: &stamp,
        });
        let complete = is_complete(&d, &status);
        cx.set_status(Res::Deployments, &d, &status).await?;
        if complete && !d.is_terminating() {
            clean(cx, &d, &old).await?;
        }
        Ok(next.into())
    }
}

fn is_paused(d: &Value) -> bool {
    d.pointer("/spec/paused").and_then(Value::as_bool) == Some(true)
}

fn without_hash(template: Option<&Value>) -> String {
    let mut template = template.cloned().unwrap_or_default();
    if let Some(labels) = template
        .pointer_mut("/metadata/labels")
        .and_then(Value::as_object_mut)
    {
        labels.remove(HASH_LABEL);
    }
    shared_json::to_go_string(&template)
}

/// The set of the present template (the oldest, if there are several), and the others.
fn split(d: &Value, sets: &[Arc<Value>]) -> (Option<Arc<Value>>, Vec<Arc<Value>>) {
    let wanted = without_hash(d.pointer("/spec/template"));
    let new = sets
        .iter()
        .find(|set| without_hash(set.pointer("/spec/template")) == wanted)
        .cloned();
    let old = sets
        .iter()
        .filter(|set| new.as_ref().is_none_or(|new| new.uid() != set.uid()))
        .cloned()
        .collect();
    (new, old)
}

fn revision(object: &Value) -> i64 {
    string_map(object, "annotations")
        .get(REVISION)
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

/// Tells that a deployment was paused or goes on again, so that its deadline does not run meanwhile.
async fn check_paused(cx: &mut Cx<'_>, d: Arc<Value>) -> Result<Arc<Value>, kube::Error> {
    if !has_deadline(&d) {
        return Ok(d);
    }
    let current = condition(&d, "Progressing").map(|condition| text(condition, "reason").to_owned());
    let reason = current.as_deref();
    if reason == Some("ProgressDeadlineExceeded") {
        return Ok(d);
    }
    let new = match (is_paused(&d), reason) {
        (true, reason) if reason != Some("DeploymentPaused") => ("DeploymentPaused", "Deployment is paused"),
        (false, Some("DeploymentPaused")) => ("DeploymentResumed", "Deployment is resumed"),
        _ => return Ok(d),
    };
    let mut conditions = list(&d, "status.conditions").to_vec();
    let mut condition = new_set_condition(new.0, new.1.to_owned(), &cx.stamp());
    condition["status"] = json!("Unknown");
    set_condition(&mut conditions, condition);
    let mut status = d.get("status").cloned().unwrap_or_else(|| json!({}));
    status["conditions"] = Value::from(conditions);
    cx.set_status(Res::Deployments, &d, &status).await?;
    Ok(cx
        .cache
        .get(Res::Deployments, d.namespace(), d.name())
        .cloned()
        .unwrap_or(d))
}

/// The annotations that a set is to have.
fn annotations(d: &Value, set: Option<&Value>, number: i64) -> Value {
    let mut out = set
        .map(|set| string_map(set, "annotations").clone())
        .unwrap_or_default();
    for (key, value) in string_map(d, "annotations") {
        if !OWN_ANNOTATIONS.contains(&key.as_str()) {
            out.insert(key.clone(), value.clone());
        }
    }
    let before = set.map(revision).unwrap_or_default();
    if before < number {
        if before > 0 {
            let history = out
                .get(REVISION_HISTORY)
                .and_then(Value::as_str)
                .unwrap_or_default();
            let history = if history.is_empty() {
                before.to_string()
            } else {
                format!("{history},{before}")
            };
            out.insert(REVISION_HISTORY.to_owned(), Value::from(history));
        }
        out.insert(REVISION.to_owned(), Value::from(number.to_string()));
    }
    out.insert(DESIRED.to_owned(), Value::from(replicas(d).to_string()));
    out.insert(
        MAX.to_owned(),
        Value::from((replicas(d) + max_surge(d)).to_string()),
    );
    Value::Object(out)
}

/// Brings a set that exists up to date, and writes its revision to the deployment.
async fn take(
    cx: &mut Cx<'_>,
    d: &mut Arc<Value>,
    set: Arc<Value>,
    old: &[Arc<Value>],
) -> Result<Arc<Value>, kube::Error> {
    let number_now = old.iter().map(|set| revision(set)).max().unwrap_or_default() + 1;
    let number_now = number_now.max(revision(&set));
    let wanted = annotations_of_existing(d, &set, number_now);
    let min_ready = number(d, "spec.minReadySeconds", 0);
    let mut set = set;
    if Value::Object(string_map(&set, "annotations").clone()) != wanted
        || number(&set, "spec.minReadySeconds", 0) != min_ready
    {
        let mut changed = Value::clone(&set);
        changed["metadata"]["annotations"] = wanted;
        if min_ready > 0 {
            changed["spec"]["minReadySeconds"] = Value::from(min_ready);
        }
        set = Arc::new(cx.update(Res::ReplicaSets, &with_kind(changed)).await?);
    }
    let found = (has_deadline(d) && condition(d, "Progressing").is_none())
        .then(|| format!("Found new replica set \"{}\"", set.name()));
    tell(cx, d, number_now, found.map(|text| ("FoundNewReplicaSet", text))).await?;
    Ok(set)
}

/// The sizes in the annotations are written when the set is sized.
fn annotations_of_existing(d: &Value, set: &Value, number: i64) -> Value {
    let mut wanted = annotations(d, Some(set), number);
    for key in [DESIRED, MAX] {
        match string_map(set, "annotations").get(key) {
            Some(present) => wanted[key] = present.clone(),
            None => {
                if let Some(wanted) = wanted.as_object_mut() {
                    wanted.remove(key);
                }
            }
        }
    }
    wanted
}

fn with_kind(mut set: Value) -> Value {
    set["apiVersion"] = json!("apps/v1");
    set["kind"] = json!("ReplicaSet");
    set
}

/// Writes the deployment's revision, and a condition, in one.
async fn tell(
    cx: &mut Cx<'_>,
    d: &mut Arc<Value>,
    number: i64,
    progress: Option<(&str, String)>,
) -> Result<(), kube::Error> {
    let mut changed = Value::clone(d);
    changed["metadata"]["annotations"][REVISION] = Value::from(number.to_string());
    if revision(d) == number && progress.is_none() {
        return Ok(());
    }
    // The status is not the place for annotations, but that is how the real controller writes them: its own writes count for
    // no generation.
    if let Some((reason, message)) = progress {
        let mut conditions = list(d, "status.conditions").to_vec();
        set_condition(&mut conditions, new_set_condition(reason, message, &cx.stamp()));
        changed["status"]["conditions"] = Value::from(conditions);
    }
    if changed == **d {
        return Ok(());
    }
    cx.put_status(Res::Deployments, changed).await?;
    if let Some(newest) = cx.cache.get(Res::Deployments, d.namespace(), d.name()) {
        *d = Arc::clone(newest);
    }
    Ok(())
}

/// The set of the present template, made if there is none.
async fn ensure(
    cx: &mut Cx<'_>,
    d: &mut Arc<Value>,
    new: Option<Arc<Value>>,
    old: &[Arc<Value>],
) -> Result<Arc<Value>, kube::Error> {
    if let Some(new) = new {
        return take(cx, d, new, old).await;
    }
    let revision = old.iter().map(|set| revision(set)).max().unwrap_or_default() + 1;
    let collisions = d.pointer("/status/collisionCount").and_then(Value::as_i64);
    let mut template = d.pointer("/spec/template").cloned().unwrap_or_default();
    let hash = template_hash(&Program::KUBERNETES, &template, collisions);
    template["metadata"]["labels"][HASH_LABEL] = Value::from(hash.clone());
    let mut selector = d.pointer("/spec/selector").cloned().unwrap_or_else(|| json!({}));
    selector["matchLabels"][HASH_LABEL] = Value::from(hash.clone());
    let size = new_size(d, old, None);
    let mut set = json!({
        "metadata": {
            "name": format!("{}-{hash}", d.name()), "namespace": d.namespace(),
            "labels": template["metadata"]["labels"], "annotations": annotations(d, None, revision),
            "ownerReferences": [owner_reference("apps/v1", "Deployment", d)],
        },
        "spec": {"replicas": size, "selector": selector, "template": template},
    });
    let min_ready = number(d, "spec.minReadySeconds", 0);
    if min_ready > 0 {
        set["spec"]["minReadySeconds"] = Value::from(min_ready);
    }
    match cx.create(Res::ReplicaSets, d.namespace(), set).await {
        Ok(created) => {
            if size > 0 {
                let text = format!("Scaled up replica set {} from 0 to {size}", created.name());
                cx.normal(Res::Deployments, d, "ScalingReplicaSet", text);
            }
            let text = format!("Created new replica set \"{}\"", created.name());
            let progress = has_deadline(d).then_some(("NewReplicaSetCreated", text));
            tell(cx, d, revision, progress).await?;
            Ok(Arc::new(created))
        }
        Err(error) => {
            if matches!(&error, kube::Error::Api(status) if status.reason == "AlreadyExists") {
                // Another template has this name: the next one is looked for.
                let mut status = d.get("status").cloned().unwrap_or_else(|| json!({}));
                status["collisionCount"] = Value::from(collisions.unwrap_or_default() + 1);
                cx.set_status(Res::Deployments, d, &status).await?;
            } else if !is_namespace_going(&error) {
                let text = format!(
                    "Failed to create new replica set \"{}-{hash}\": {}",
                    d.name(),
                    refusal(&error)
                );
                cx.warning(Res::Deployments, d, NOT_CREATED, text.clone());
                if has_deadline(d) {
                    let mut status = d.get("status").cloned().unwrap_or_else(|| json!({}));
                    let mut conditions = list(d, "status.conditions").to_vec();
                    set_condition(&mut conditions, new_set_condition(NOT_CREATED, text, &cx.stamp()));
                    status["conditions"] = Value::from(conditions);
                    cx.set_status(Res::Deployments, d, &status).await?;
                }
            }
            Err(error)
        }
    }
}

/// All old pods end before the first new one begins.
async fn recreate(
    cx: &mut Cx<'_>,
    d: &mut Arc<Value>,
    new: Option<Arc<Value>>,
    old: &[Arc<Value>],
) -> Result<(), kube::Error> {
    let down: Vec<Scale> = old
        .iter()
        .filter(|set| replicas(set) > 0)
        .map(|set| scale(set, 0))
        .collect();
    if !down.is_empty() {
        return apply(cx, d, &down).await;
    }
    let still_run = old.iter().any(|set| {
        cx.cache
            .owned(Res::Pods, set.uid())
            .iter()
            .any(|pod| !is_over(pod))
    });
    if still_run {
        return Ok(());
    }
    let new = ensure(cx, d, new, old).await?;
    if replicas(&new) != replicas(d) {
        return apply(cx, d, &[scale(&new, replicas(d))]).await;
    }
    Ok(())
}

/// Gives sets their sizes, with the annotations of the size of the whole.
async fn apply(cx: &mut Cx<'_>, d: &Value, steps: &[Scale]) -> Result<(), kube::Error> {
    for step in steps {
        let Some(set) = cx.cache.get(Res::ReplicaSets, d.namespace(), &step.name).cloned() else {
            continue;
        };
        let mut changed = Value::clone(&set);
        changed["spec"]["replicas"] = Value::from(step.to);
        changed["metadata"]["annotations"][DESIRED] = Value::from(replicas(d).to_string());
        changed["metadata"]["annotations"][MAX] = Value::from((replicas(d) + max_surge(d)).to_string());
        cx.update(Res::ReplicaSets, &with_kind(changed)).await?;
        let word = if step.to > step.from { "up" } else { "down" };
        let text = format!(
            "Scaled {word} replica set {} from {} to {}",
            step.name, step.from, step.to
        );
        cx.normal(Res::Deployments, d, "ScalingReplicaSet", text);
    }
    // Sets that keep their size still learn the size of the whole.
    let sets: Vec<Arc<Value>> = cx.cache.owned(Res::ReplicaSets, d.uid());
    for set in sets
        .iter()
        .filter(|set| replicas(set) > 0 && is_scaling(d, std::slice::from_ref(set)))
    {
        let mut changed = Value::clone(set);
        changed["metadata"]["annotations"][DESIRED] = Value::from(replicas(d).to_string());
        changed["metadata"]["annotations"][MAX] = Value::from((replicas(d) + max_surge(d)).to_string());
        cx.update(Res::ReplicaSets, &with_kind(changed)).await?;
    }
    Ok(())
}

/// Deletes the oldest empty sets beyond the limit.
async fn clean(cx: &mut Cx<'_>, d: &Value, old: &[Arc<Value>]) -> Result<(), kube::Error> {
    let limit = usize::try_from(number(d, "spec.revisionHistoryLimit", 10)).unwrap_or_default();
    let mut candidates: Vec<&Arc<Value>> = old.iter().filter(|set| !set.is_terminating()).collect();
    candidates.sort_by_key(|set| revision(set));
    let surplus = candidates.len().saturating_sub(limit);
    for set in candidates.into_iter().take(surplus) {
        let in_use = replicas(set) > 0
            || number(set, "status.replicas", 0) > 0
            || number(set, "status.observedGeneration", 0) < set.generation();
        if !in_use {
            cx.delete(Res::ReplicaSets, set, None).await?;
        }
    }
    Ok(())
}
