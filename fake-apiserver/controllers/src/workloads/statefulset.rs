//! StatefulSets: pods with names, one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use machinery::meta::{ObjectMeta as _, string_map};
use machinery::selector::matches_selector;
use shared_json::{Value, json};

use super::adoption::{claim, concerned};
use super::pod_control::refusal;
use super::pods::{availability, from_template, owner_reference};
use super::revisions::{History, ensure, is_orphan, template_of, truncate};
use super::statefulset_claims::{claim_name, ensure_claims, retain_claims, retain_new, waits_for_claims};
use crate::runtime::{Cache, Controller, Cx, Key, Next, Res, list, number, text};
use crate::runtime::{is_over, is_ready};

const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";
const HASH_LABEL: &str = "controller.kubernetes.io/hash";
const REVISION_LABEL: &str = "controller-revision-hash";

/// How soon it is looked again whether a claim of the pod before has gone.
const STALE_CLAIM: Duration = Duration::from_secs(1);

/// The controller.
pub(crate) struct StatefulSets;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Make the pod with that ordinal, of the new revision or the one before.
    Create { ordinal: i64, update: bool },
    /// Delete a pod that has ended, to make it anew.
    Replace(String),
    /// Delete a pod that is too many.
    Delete(String),
    /// Delete a pod that is not of the revision that it should be.
    Renew(String),
}

/// A set and its state.
pub(super) struct View<'a> {
    pub set: &'a Value,
    pub pods: &'a [Arc<Value>],
    pub current: &'a str,
    pub update: &'a str,
    pub now: Timestamp,
}

/// The number at the end of a pod's name.
pub(super) fn ordinal(set: &Value, pod: &Value) -> Option<i64> {
    let rest = pod.name().strip_prefix(set.name())?.strip_prefix('-')?;
    rest.parse()
        .ok()
        .filter(|number: &i64| *number >= 0 && rest == number.to_string())
}

fn revision_of(pod: &Value) -> &str {
    string_map(pod, "labels")
        .get(REVISION_LABEL)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The number of the first pod.
pub(super) fn first(set: &Value) -> i64 {
    number(set, "spec.ordinals.start", 0)
}

fn is_parallel(set: &Value) -> bool {
    text(set, "spec.podManagementPolicy") == "Parallel"
}

impl View<'_> {
    fn is_available(&self, pod: &Value) -> bool {
        availability(pod, number(self.set, "spec.minReadySeconds", 0), self.now).0
    }

    fn is_unavailable(&self, pod: &Value) -> bool {
        !self.is_available(pod) || pod.is_terminating()
    }

    /// Whether the next pod may be made or deleted, where that is done one after the other.
    fn is_healthy(&self, pod: &Value) -> bool {
        text(pod, "status.phase") == "Running" && !self.is_unavailable(pod)
    }

    /// Whether a pod that is made now is of the new revision.
    fn wants_update(&self, ordinal: i64) -> bool {
        let set = self.set;
        if text(set, "spec.updateStrategy.type") == "OnDelete" {
            return true;
        }
        match set.pointer("/spec/updateStrategy/rollingUpdate") {
            Some(rolling) => ordinal >= first(set) + number(rolling, "partition", 0),
            None => ordinal >= first(set) + number(set, "status.currentReplicas", 0),
        }
    }

    /// The actions to take now, in order.
    pub(super) fn steps(&self) -> Vec<Step> {
        let set = self.set;
        if set.is_terminating() {
            return Vec::new();
        }
        let (start, count) = (first(set), number(set, "spec.replicas", 1));
        let parallel = is_parallel(set);
        let by_ordinal: BTreeMap<i64, &Arc<Value>> = self
            .pods
            .iter()
            .filter_map(|pod| Some((ordinal(set, pod)?, pod)))
            .collect();
        let mut steps = Vec::new();
        for ordinal in start..start.saturating_add(count) {
            match by_ordinal.get(&ordinal) {
                None => steps.push(Step::Create {
                    ordinal,
                    update: self.wants_update(ordinal),
                }),
                Some(pod) if is_over(pod) && !pod.is_terminating() => {
                    steps.push(Step::Replace(pod.name().to_owned()))
                }
                Some(pod) if self.is_healthy(pod) => continue,
                Some(_) if parallel => continue,
                Some(_) => return steps,
            }
            if !parallel {
                return steps;
            }
        }
        // Those that are too many go from the last to the first.
        let beyond: Vec<&&Arc<Value>> = by_ordinal
            .iter()
            .filter(|(ordinal, _)| **ordinal < start || **ordinal >= start + count)
            .map(|(_, pod)| pod)
            .collect();
        // One that is not available may go all the same if it is the first of all that are not.
        let in_range = by_ordinal
            .iter()
            .filter(|(ordinal, _)| **ordinal >= start && **ordinal < start + count)
            .map(|(_, pod)| pod);
        let first_unavailable = in_range
            .chain(beyond.iter().copied())
            .find(|pod| self.is_unavailable(pod));
        for pod in beyond.iter().rev() {
            if pod.is_terminating() {
                if parallel {
                    continue;
                }
                return steps;
            }
            let is_first = first_unavailable.is_some_and(|first| first.name() == pod.name());
            if !parallel && !self.is_healthy(pod) && !is_first {
                return steps;
            }
            steps.push(Step::Delete(pod.name().to_owned()));
            if !parallel {
                return steps;
            }
        }
        if !beyond.is_empty() && !parallel {
            return steps;
        }
        steps.extend(self.updates(start, count, &by_ordinal));
        steps
    }

    /// Which pods are looked after, in that order: those that are not too many, where one comes after the other up to the first
    /// that holds up the others; and if none does, those that are too many.
    fn tended(&self) -> Vec<&Arc<Value>> {
        let (start, count) = (first(self.set), number(self.set, "spec.replicas", 1));
        let mut by_ordinal: BTreeMap<i64, &Arc<Value>> = self
            .pods
            .iter()
            .filter_map(|pod| Some((ordinal(self.set, pod)?, pod)))
            .collect();
        let mut out = Vec::new();
        for ordinal in start..start.saturating_add(count) {
            let pod = by_ordinal.remove(&ordinal);
            out.extend(pod);
            if !is_parallel(self.set) && pod.is_none_or(|pod| !self.is_healthy(pod)) {
                return out;
            }
        }
        out.extend(by_ordinal.into_values().rev());
        out
    }

    /// Restores the identity label of pods, and missing parts of their claims.
    async fn tend(&self, cx: &mut Cx<'_>) -> Result<(), kube::Error> {
        let (set, is_ordered) = (self.set, !is_parallel(self.set));
        let (start, count) = (first(set), number(set, "spec.replicas", 1));
        for pod in self.tended() {
            let Some(ordinal) = ordinal(set, pod) else {
                continue;
            };
            if !(start..start.saturating_add(count)).contains(&ordinal) {
                retain_claims(cx, set, pod).await?;
                continue;
            }
            if is_over(pod) {
                continue;
            }
            if text(pod, "status.phase") == "Pending" {
                ensure_claims(cx, set, ordinal)
                    .await
                    .map_err(|(_, error)| error)?;
                retain_new(cx, set, pod).await?;
            }
            if is_ordered && !self.is_healthy(pod) {
                continue;
            }
            let named = string_map(pod, "labels").get(NAME_LABEL).and_then(Value::as_str);
            let is_misnamed = named != Some(pod.name());
            if is_misnamed {
                let labels = json!({NAME_LABEL: pod.name(), INDEX_LABEL: ordinal.to_string()});
                cx.patch(Res::Pods, pod, "", json!({"metadata": {"labels": labels}}))
                    .await?;
            }
            if retain_claims(cx, set, pod).await? || is_misnamed {
                let text = format!(
                    "Update Pod {} in StatefulSet {} successful",
                    pod.name(),
                    set.name()
                );
                cx.normal(Res::StatefulSets, set, "SuccessfulUpdate", text);
            }
        }
        Ok(())
    }

    /// The last pod of another revision, unless one behind it is not available yet.
    fn updates(&self, start: i64, count: i64, pods: &BTreeMap<i64, &Arc<Value>>) -> Option<Step> {
        let set = self.set;
        if text(set, "spec.updateStrategy.type") == "OnDelete" {
            return None;
        }
        let partition = number(set, "spec.updateStrategy.rollingUpdate.partition", 0);
        for ordinal in (start + partition..start + count).rev() {
            let pod = pods.get(&ordinal)?;
            if revision_of(pod) != self.update && !pod.is_terminating() {
                return Some(Step::Renew(pod.name().to_owned()));
            }
            if self.is_unavailable(pod) {
                return None;
            }
        }
        None
    }

    /// The status, and when a pod will have been ready for long enough.
    /// `steps` are the actions taken now: the status counts the pods from before them, as the real one does.
    pub(super) fn status(&self, collisions: i64, steps: &[Step]) -> (Value, Option<Duration>) {
        let set = self.set;
        let min_ready = number(set, "spec.minReadySeconds", 0);
        let count = number(set, "spec.replicas", 1);
        let (mut replicas, mut ready, mut available, mut current, mut updated) = (0, 0, 0, 0, 0);
        let mut next: Option<Duration> = None;
        for pod in self.pods {
            replicas += 1;
            if is_ready(pod) && text(pod, "status.phase") == "Running" {
                ready += 1;
                let (is, left) = availability(pod, min_ready, self.now);
                available += i64::from(is);
                next = [next, left].into_iter().flatten().min();
            }
            if !pod.is_terminating() {
                current += i64::from(revision_of(pod) == self.current);
                updated += i64::from(revision_of(pod) == self.update);
            }
        }
        let renewed = steps.iter().filter(|step| matches!(step, Step::Renew(_))).count();
        current -= i64::try_from(renewed).unwrap_or_default();
        let mut current_revision = self.current;
        let complete = updated == count
            && ready == count
            && replicas == count
            && text(set, "spec.updateStrategy.type") == "RollingUpdate";
        if complete {
            current_revision = self.update;
            current = updated;
        }
        let mut status = json!({
            "observedGeneration": set.generation(), "replicas": replicas, "collisionCount": collisions,
            "availableReplicas": available, "currentRevision": current_revision, "updateRevision": self.update,
        });
        for (field, count) in [
            ("readyReplicas", ready),
            ("currentReplicas", current),
            ("updatedReplicas", updated),
        ] {
            if count > 0 {
                status[field] = Value::from(count);
            }
        }
        (status, next)
    }
}

/// The pod with an ordinal.
fn new_pod(set: &Value, template: &Value, ordinal: i64, revision: &str) -> Value {
    let mut pod = from_template(template, owner_reference("apps/v1", "StatefulSet", set));
    let name = format!("{}-{ordinal}", set.name());
    pod["metadata"]["labels"][NAME_LABEL] = Value::from(name.clone());
    pod["metadata"]["labels"][INDEX_LABEL] = Value::from(ordinal.to_string());
    pod["metadata"]["labels"][REVISION_LABEL] = Value::from(revision);
    pod["metadata"]["generateName"] = Value::from(format!("{}-", set.name()));
    pod["metadata"]["name"] = Value::from(name.clone());
    pod["spec"]["hostname"] = Value::from(name);
    let service = text(set, "spec.serviceName");
    if !service.is_empty() {
        pod["spec"]["subdomain"] = Value::from(service);
    }
    let templates = list(set, "spec.volumeClaimTemplates");
    let mut volumes: Vec<Value> = templates
        .iter()
        .map(|template| {
            json!({
                "name": text(template, "metadata.name"),
                "persistentVolumeClaim": {"claimName": claim_name(template, set, ordinal)},
            })
        })
        .collect();
    let own = list(&pod, "spec.volumes").iter().filter(|volume| {
        !templates
            .iter()
            .any(|template| text(template, "metadata.name") == text(volume, "name"))
    });
    volumes.extend(own.cloned());
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = Value::from(volumes);
    }
    pod
}

async fn act(
    cx: &mut Cx<'_>,
    set: &Value,
    pods: &[Arc<Value>],
    step: Step,
    history: &History,
    current: &str,
) -> Result<(), kube::Error> {
    match step {
        Step::Create { ordinal, update } => {
            if let Err((why, error)) = ensure_claims(cx, set, ordinal).await {
                let text = format!(
                    "Create Pod {}-{ordinal} in StatefulSet {} failed error: {why}",
                    set.name(),
                    set.name(),
                );
                cx.warning(Res::StatefulSets, set, "FailedCreate", text);
                return Err(error);
            }
            let revision = if update { history.update.name() } else { current };
            let found = history
                .all
                .iter()
                .find(|known| known.name() == revision)
                .unwrap_or(&history.update);
            let template = template_of(found).unwrap_or_else(|| set["spec"]["template"].clone());
            let pod = new_pod(set, &template, ordinal, found.name());
            let name = format!("{}-{ordinal}", set.name());
            match cx.create(Res::Pods, set.namespace(), pod).await {
                Ok(pod) => {
                    retain_new(cx, set, &pod).await?;
                    let text = format!("Create Pod {name} in StatefulSet {} successful", set.name());
                    cx.normal(Res::StatefulSets, set, "SuccessfulCreate", text);
                }
                // Somebody else's pod has the name: nothing is said about it.
                Err(error) if matches!(&error, kube::Error::Api(status) if status.reason == "AlreadyExists") =>
                {
                    return Err(error);
                }
                Err(error) => {
                    let text = format!(
                        "Create Pod {name} in StatefulSet {} failed error: {}",
                        set.name(),
                        refusal(&error)
                    );
                    cx.warning(Res::StatefulSets, set, "FailedCreate", text);
                    return Err(error);
                }
            }
        }
        Step::Replace(name) | Step::Delete(name) | Step::Renew(name) => {
            let Some(pod) = pods.iter().find(|pod| pod.name() == name) else {
                return Ok(());
            };
            cx.delete(Res::Pods, pod, None).await?;
            let text = format!("Delete Pod {name} in StatefulSet {} successful", set.name());
            cx.normal(Res::StatefulSets, set, "SuccessfulDelete", text);
        }
    }
    Ok(())
}

#[async_trait]
impl Controller for StatefulSets {
    fn name(&self) -> &'static str {
        "statefulset-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::StatefulSets, Res::Pods, Res::Revisions, Res::Claims]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::StatefulSets => vec![Key::of(object)],
            Res::Pods => concerned(cache, Res::StatefulSets, object, old),
            _ => Vec::new(),
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(set) = cx
            .cache
            .get(Res::StatefulSets, &key.namespace, &key.name)
            .cloned()
        else {
            return Ok(Next::Change);
        };
        let pods = claim(cx, Res::StatefulSets, &set, Res::Pods).await?;
        let pods: Vec<Arc<Value>> = pods
            .into_iter()
            .filter(|pod| ordinal(&set, pod).is_some())
            .collect();
        let history = history(cx, &set).await?;
        let collisions = history.collisions.unwrap_or_default();
        let current = match text(&set, "status.currentRevision") {
            "" => history.update.name().to_owned(),
            known if history.all.iter().any(|revision| revision.name() == known) => known.to_owned(),
            _ => history.update.name().to_owned(),
        };
        let view = View {
            set: &set,
            pods: &pods,
            current: &current,
            update: history.update.name(),
            now: cx.now(),
        };
        let mut steps = view.steps();
        let waits = |step: &Step| matches!(step, Step::Create { ordinal, .. } if waits_for_claims(cx.cache, &set, *ordinal));
        let held_up = steps.iter().any(waits).then_some(STALE_CLAIM);
        steps.retain(|step| !waits(step));
        let (status, next) = view.status(collisions, &steps);
        let acts = !steps.is_empty();
        let mut result = if set.is_terminating() {
            Ok(())
        } else {
            view.tend(cx).await
        };
        for step in steps {
            if result.is_err() {
                break;
            }
            result = act(cx, &set, &pods, step, &history, &current).await;
        }
        cx.set_status(Res::StatefulSets, &set, &status).await?;
        result?;
        if acts {
            return Ok(Next::After(Duration::ZERO));
        }
        if !set.is_terminating() {
            let current = text(&status, "currentRevision");
            let live = |revision: &Value| {
                revision.name() == current || pods.iter().any(|pod| revision_of(pod) == revision.name())
            };
            truncate(cx, &set, &history, live, false).await?;
        }
        Ok([next, held_up].into_iter().flatten().min().into())
    }
}

/// The revisions of a set: its own, and those without an owner that its selector matches.
pub(super) async fn history(cx: &mut Cx<'_>, object: &Value) -> Result<History, kube::Error> {
    let revisions = claimed(cx, Res::StatefulSets, object).await?;
    ensure(cx, Res::StatefulSets, object, revisions, HASH_LABEL).await
}

/// The revisions of an object, after it has adopted those that it selects and that have no owner.
pub(super) async fn claimed(
    cx: &mut Cx<'_>,
    res: Res,
    object: &Value,
) -> Result<Vec<Arc<Value>>, kube::Error> {
    let mut revisions = cx.cache.owned(Res::Revisions, object.uid());
    let orphans: Vec<Arc<Value>> = cx
        .cache
        .in_namespace(Res::Revisions, object.namespace())
        .filter(|revision| {
            is_orphan(revision)
                && matches_selector(object.pointer("/spec/selector"), string_map(revision, "labels"))
        })
        .cloned()
        .collect();
    for orphan in orphans {
        let owner = owner_reference(res.api_version(), res.kind(), object);
        let adopted = cx
            .patch(
                Res::Revisions,
                &orphan,
                "",
                json!({"metadata": {"ownerReferences": [owner]}}),
            )
            .await?;
        revisions.push(Arc::new(adopted));
    }
    Ok(revisions)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A pod in short: ordinal, revision, and `r` if it is ready, `t` if it is going, `f` if it has failed.
    fn pod(short: &str) -> Arc<Value> {
        let mut parts = short.split(' ');
        let (ordinal, revision, state) = (
            parts.next().unwrap(),
            parts.next().unwrap(),
            parts.next().unwrap_or(""),
        );
        let mut pod = json!({
            "metadata": {"name": format!("s-{ordinal}"), "labels": {REVISION_LABEL: revision}},
            "status": {
                "phase": if state == "f" { "Failed" } else { "Running" },
                "conditions": [{"type": "Ready", "status": if state == "r" { "True" } else { "False" }}],
            },
        });
        if state == "t" {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Arc::new(pod)
    }

    #[rstest]
    #[case(json!({"replicas": 2}), &[], &["+0"])]
    #[case(json!({"replicas": 2}), &["0 b"], &[])]
    #[case(json!({"replicas": 2}), &["0 b r"], &["+1"])]
    #[case(json!({"replicas": 3, "podManagementPolicy": "Parallel"}), &["0 b"], &["+1", "+2"])]
    #[case(json!({"replicas": 2, "ordinals": {"start": 5}}), &["5 b r"], &["+6"])]
    #[case(json!({"replicas": 1}), &["0 b r", "1 b r", "2 b r"], &["-s-2"])]
    #[case(json!({"replicas": 1}), &["0 b r", "1 b r", "2 b t"], &[])]
    #[case(json!({"replicas": 1, "podManagementPolicy": "Parallel"}), &["0 b r", "1 b r", "2 b t"], &["-s-1"])]
    #[case(json!({"replicas": 2}), &["0 b f", "1 b r"], &["!s-0"])]
    #[case(json!({"replicas": 3}), &["0 a r", "1 a r", "2 a r"], &["-s-2"])]
    #[case(json!({"replicas": 3}), &["0 a r", "1 a r", "2 b"], &[])]
    #[case(json!({"replicas": 3}), &["0 a r", "1 a r", "2 b r"], &["-s-1"])]
    #[case(json!({"replicas": 3}), &["0 b r", "1 b r", "2 b r"], &[])]
    #[case(
        json!({"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}),
        &["0 a r", "1 a r", "2 b r"],
        &[]
    )]
    #[case::the_last_goes_though_it_is_not_ready(
        json!({"replicas": 2, "podManagementPolicy": "Parallel"}),
        &["0 a r", "1 a"],
        &["-s-1"]
    )]
    #[case::one_after_the_other(
        json!({"replicas": 3, "podManagementPolicy": "Parallel"}),
        &["0 a r", "1 a r", "2 b"],
        &[]
    )]
    #[case::too_many_and_not_ready(json!({"replicas": 1}), &["0 b r", "1 b r", "2 b"], &["-s-2"])]
    #[case::too_many_and_one_before_is_not_ready(json!({"replicas": 1}), &["0 b r", "1 b", "2 b"], &[])]
    #[case(json!({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}), &["0 a r", "1 a r"], &[])]
    #[case(
        json!({"replicas": 2, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}),
        &["0 a r"],
        &["+1 old"]
    )]
    fn steps(#[case] spec: Value, #[case] pods: &[&str], #[case] expected: &[&str]) {
        let set = json!({"metadata": {"name": "s"}, "spec": spec});
        let pods: Vec<Arc<Value>> = pods.iter().map(|short| pod(short)).collect();
        let view = View {
            set: &set,
            pods: &pods,
            current: "a",
            update: "b",
            now: Timestamp::UNIX_EPOCH,
        };
        let steps: Vec<String> = view
            .steps()
            .into_iter()
            .map(|step| match step {
                Step::Create {
                    ordinal,
                    update: true,
                } => format!("+{ordinal}"),
                Step::Create {
                    ordinal,
                    update: false,
                } => format!("+{ordinal} old"),
                Step::Delete(name) | Step::Renew(name) => format!("-{name}"),
                Step::Replace(name) => format!("!{name}"),
            })
            .collect();
        assert_eq!(steps, expected);
    }
}
