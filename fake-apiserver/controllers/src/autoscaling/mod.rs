//! Horizontal pod autoscalers: workloads that follow a load that tests set.
//!
//! Order, conditions, events and texts are those of kube-controller-manager's `horizontal.go`; a pass every 15 seconds.

mod limits;
mod metrics;
mod usage;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use machinery::meta::{ObjectMeta as _, string_map};
use machinery::selector::LabelSelector;
use shared_json::{Map, Value, json};

use self::limits::{Bounds, Condition, Memory};
use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list, number, text};

/// How often a workload is looked at (the real default).
const PERIOD: Duration = Duration::from_secs(15);
/// The same where nothing is to wait for long.
const QUICK_PERIOD: Duration = Duration::from_millis(100);

/// How often a size is written where others write, too (client-go's default).
const WRITES_MAX: u8 = 5;

/// The controller.
pub(super) struct Autoscalers {
    period: Duration,
    memories: BTreeMap<Key, Memory>,
    /// The plural of a kind, by its API version and itself.
    plurals: BTreeMap<(String, String), String>,
    /// The pods that each autoscaler's target has, as a selector.
    selectors: BTreeMap<Key, String>,
}

impl Default for Autoscalers {
    fn default() -> Self {
        Self {
            period: PERIOD,
            memories: BTreeMap::new(),
            plurals: BTreeMap::new(),
            selectors: BTreeMap::new(),
        }
    }
}

/// A pass over one autoscaler: its next status.
struct Pass {
    conditions: Vec<Condition>,
    current: i64,
    desired: i64,
    metrics: Vec<Value>,
    rescaled: bool,
}

impl Pass {
    fn set(&mut self, kind: &'static str, is: bool, reason: &'static str, message: impl Into<String>) {
        self.conditions.push((kind, is, reason, message.into()));
    }
}

/// An API's own message where there is one.
fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Sets a target's size. If another client has changed the target meanwhile, reads it again.
async fn resize(cx: &Cx<'_>, path: &str, mut scale: Value, size: i64) -> Result<(), kube::Error> {
    let mut left = WRITES_MAX;
    loop {
        scale["spec"]["replicas"] = Value::from(size);
        left -= 1;
        match cx.write(path, &scale).await {
            Err(kube::Error::Api(status)) if status.reason == "Conflict" && left > 0 => {
                scale = cx.read(path).await?;
            }
            other => return other,
        }
    }
}

impl Autoscalers {
    /// Where the target's scale is.
    async fn scale_path(&mut self, cx: &Cx<'_>, autoscaler: &Value) -> Result<String, String> {
        let version = text(autoscaler, "spec.scaleTargetRef.apiVersion");
        let kind = text(autoscaler, "spec.scaleTargetRef.kind");
        let root = match version.contains('/') {
            true => format!("/apis/{version}"),
            false => format!("/api/{version}"),
        };
        let known = (version.to_owned(), kind.to_owned());
        let plural = match self.plurals.get(&known) {
            Some(plural) => plural.clone(),
            None => {
                let served = cx.read(&root).await.unwrap_or_default();
                let resource = list(&served, "resources")
                    .iter()
                    .find(|resource| text(resource, "kind") == kind && !text(resource, "name").contains('/'));
                let Some(resource) = resource else {
                    let group = version.split_once('/').map_or("", |(group, _)| group);
                    return Err(format!("no matches for kind \"{kind}\" in group \"{group}\""));
                };
                let plural = text(resource, "name").to_owned();
                self.plurals.insert(known, plural.clone());
                plural
            }
        };
        Ok(format!(
            "{root}/namespaces/{}/{plural}/{}/scale",
            autoscaler.namespace(),
            text(autoscaler, "spec.scaleTargetRef.name")
        ))
    }

    async fn scale(&mut self, cx: &Cx<'_>, autoscaler: &Value) -> Result<(String, Value), String> {
        let path = self.scale_path(cx, autoscaler).await?;
        let scale = cx.read(&path).await.map_err(|error| told(&error))?;
        Ok((path, scale))
    }

    async fn pass(&mut self, cx: &mut Cx<'_>, key: &Key, autoscaler: &Value) -> Pass {
        let mut pass = Pass {
            conditions: Vec::new(),
            current: number(autoscaler, "status.currentReplicas", 0),
            desired: number(autoscaler, "status.desiredReplicas", 0),
            metrics: list(autoscaler, "status.currentMetrics").to_vec(),
            rescaled: false,
        };
        let (path, scale) = match self.scale(cx, autoscaler).await {
            Ok(found) => found,
            Err(why) => {
                cx.warning(Res::Autoscalers, autoscaler, "FailedGetScale", why.clone());
                let why = format!("the HPA controller was unable to get the target's current scale: {why}");
                pass.set("AbleToScale", false, "FailedGetScale", why);
                return pass;
            }
        };
        let message = "the HPA controller was able to get the target's current scale";
        pass.set("AbleToScale", true, "SucceededGetScale", message);
        let wanted = number(&scale, "spec.replicas", 0);
        pass.current = wanted;
        let memory = self.memories.entry(key.clone()).or_default();
        memory.first_look(cx.now(), wanted);
        let bounds = Bounds {
            min: number(autoscaler, "spec.minReplicas", 1),
            max: number(autoscaler, "spec.maxReplicas", 1),
        };
        let (size, reason) = if wanted == 0 && bounds.min != 0 {
            let message = "scaling is disabled since the replica count of the target is zero";
            pass.set("ScalingActive", false, "ScalingDisabled", message);
            (0, String::new())
        } else if wanted > bounds.max {
            (
                bounds.max,
                "Current number of replicas above Spec.MaxReplicas".to_owned(),
            )
        } else if wanted < bounds.min {
            (
                bounds.min,
                "Current number of replicas below Spec.MinReplicas".to_owned(),
            )
        } else {
            match self.measured(cx, (key, autoscaler), (&scale, bounds), &mut pass) {
                Some(found) => found,
                None => return pass,
            }
        };
        pass.desired = size;
        if size != wanted {
            self.rescale(cx, (key, autoscaler), (&path, scale), (size, &reason), &mut pass)
                .await;
        }
        pass
    }

    /// Gives the target another size.
    async fn rescale(
        &mut self,
        cx: &mut Cx<'_>,
        (key, autoscaler): (&Key, &Value),
        (path, scale): (&str, Value),
        (size, reason): (i64, &str),
        pass: &mut Pass,
    ) {
        let wanted = pass.current;
        if let Err(error) = resize(cx, path, scale, size).await {
            let why = told(&error);
            let message = format!("New size: {size}; reason: {reason}; error: {why}");
            cx.warning(Res::Autoscalers, autoscaler, "FailedRescale", message);
            let message = format!("the HPA controller was unable to update the target scale: {why}");
            pass.set("AbleToScale", false, "FailedUpdateScale", message);
            return;
        }
        let message = format!("the HPA controller was able to update the target scale to {size}");
        pass.set("AbleToScale", true, "SucceededRescale", message);
        let message = format!("New size: {size}; reason: {reason}");
        cx.normal(Res::Autoscalers, autoscaler, "SuccessfulRescale", message);
        let memory = self.memories.entry(key.clone()).or_default();
        memory.changed(autoscaler.pointer("/spec/behavior"), cx.now(), wanted, size);
        pass.rescaled = true;
    }

    /// The size that the metrics of the target's pods ask for, and why; none if it cannot be known.
    fn measured(
        &mut self,
        cx: &mut Cx<'_>,
        (key, autoscaler): (&Key, &Value),
        (scale, bounds): (&Value, Bounds),
        pass: &mut Pass,
    ) -> Option<(i64, String)> {
        let wanted = pass.current;
        let pods = self.pods(cx, (key, autoscaler), scale, pass)?;
        let (outcome, unknown) = metrics::evaluate(
            autoscaler,
            &pods,
            wanted,
            number(scale, "status.replicas", 0),
            cx.now(),
        );
        for failed in &unknown.failed {
            cx.warning(
                Res::Autoscalers,
                autoscaler,
                failed.reason,
                failed.message.clone(),
            );
        }
        pass.metrics = outcome.statuses;
        if let Some(why) = unknown.why {
            if let Some(first) = unknown.failed.first() {
                let message = format!(
                    "the HPA was unable to compute the replica count: {}",
                    first.message
                );
                pass.set("ScalingActive", false, first.reason, message);
            }
            self.compute_failed(cx, autoscaler, &why);
            return None;
        }
        let message = format!(
            "the HPA was able to successfully calculate a replica count from {}",
            outcome.metric
        );
        pass.set("ScalingActive", true, "ValidMetricFound", message);
        let reason = match outcome.replicas.cmp(&wanted) {
            Ordering::Greater => format!("{} above target", outcome.metric),
            Ordering::Less => "All metrics below target".to_owned(),
            // An earlier proposal may still count.
            Ordering::Equal => String::new(),
        };
        let memory = self.memories.entry(key.clone()).or_default();
        let (limited, conditions) = memory.limit(
            autoscaler.pointer("/spec/behavior"),
            wanted,
            outcome.replicas,
            bounds,
            cx.now(),
        );
        pass.conditions.extend(conditions);
        Some((limited, reason))
    }

    /// The pods that the target's selector selects, if it is this autoscaler's alone to size them.
    fn pods(
        &mut self,
        cx: &mut Cx<'_>,
        (key, autoscaler): (&Key, &Value),
        scale: &Value,
        pass: &mut Pass,
    ) -> Option<Vec<Arc<Value>>> {
        let selector = text(scale, "status.selector");
        if selector.is_empty() {
            let why = "selector is required";
            cx.warning(Res::Autoscalers, autoscaler, "SelectorRequired", why.to_owned());
            let message = "the HPA target's scale is missing a selector";
            pass.set("ScalingActive", false, "InvalidSelector", message);
            self.compute_failed(cx, autoscaler, why);
            return None;
        }
        let written = selector.to_owned();
        let selector = match LabelSelector::parse(selector) {
            Ok(selector) => selector,
            Err(error) => {
                let message = format!(
                    "couldn't convert selector into a corresponding internal selector object: {error}"
                );
                cx.warning(Res::Autoscalers, autoscaler, "InvalidSelector", message.clone());
                self.compute_failed(cx, autoscaler, &message);
                pass.set("ScalingActive", false, "InvalidSelector", message);
                return None;
            }
        };
        let pods: Vec<Arc<Value>> = cx
            .cache
            .in_namespace(Res::Pods, &key.namespace)
            .filter(|pod| selector.matches(string_map(pod, "labels")))
            .cloned()
            .collect();
        self.selectors.insert(key.clone(), written.clone());
        let rivals = self.rivals(cx.cache, key, &pods);
        if rivals.len() > 1 {
            let message = format!(
                "pods by selector {written} are controlled by multiple HPAs: [{}]",
                rivals.join(" ")
            );
            cx.warning(Res::Autoscalers, autoscaler, "AmbiguousSelector", message.clone());
            pass.set("ScalingActive", false, "AmbiguousSelector", message.clone());
            self.compute_failed(cx, autoscaler, &message);
            return None;
        }
        Some(pods)
    }

    /// The autoscalers that size the same pods.
    fn rivals(&self, cache: &Cache, key: &Key, pods: &[Arc<Value>]) -> Vec<String> {
        let of_same_pods = |selector: &str| {
            LabelSelector::parse(selector)
                .is_ok_and(|selector| pods.iter().any(|pod| selector.matches(string_map(pod, "labels"))))
        };
        self.selectors
            .iter()
            .filter(|(other, _)| other.namespace == key.namespace)
            .filter(|(other, _)| {
                cache
                    .get(Res::Autoscalers, &other.namespace, &other.name)
                    .is_some()
            })
            .filter(|(_, selector)| of_same_pods(selector))
            .map(|(other, _)| format!("{}/{}", other.namespace, other.name))
            .collect()
    }

    fn compute_failed(&self, cx: &Cx<'_>, autoscaler: &Value, why: &str) {
        let reason = "FailedComputeMetricsReplicas";
        cx.warning(Res::Autoscalers, autoscaler, reason, why.to_owned());
    }
}

/// The status after a pass.
fn status(autoscaler: &Value, pass: &Pass, stamp: &str) -> Value {
    let mut conditions = list(autoscaler, "status.conditions").to_vec();
    for (kind, is, reason, message) in &pass.conditions {
        let is = if *is { "True" } else { "False" };
        let old = conditions.iter().position(|old| text(old, "type") == *kind);
        let since = old
            .and_then(|index| conditions.get(index))
            .filter(|old| text(old, "status") == is)
            .map_or(stamp, |old| text(old, "lastTransitionTime"));
        let new = json!({"type": kind, "status": is, "reason": reason, "message": message, "lastTransitionTime": since});
        match old.and_then(|index| conditions.get_mut(index)) {
            Some(old) => *old = new,
            None => conditions.push(new),
        }
    }
    let mut status = Map::new();
    status.insert("currentReplicas".to_owned(), Value::from(pass.current));
    status.insert("desiredReplicas".to_owned(), Value::from(pass.desired));
    let last = match pass.rescaled {
        true => Some(Value::from(stamp)),
        false => autoscaler.pointer("/status/lastScaleTime").cloned(),
    };
    status.extend(last.map(|last| ("lastScaleTime".to_owned(), last)));
    if !pass.metrics.is_empty() {
        status.insert("currentMetrics".to_owned(), Value::from(pass.metrics.clone()));
    }
    status.insert("conditions".to_owned(), Value::from(conditions));
    Value::Object(status)
}

#[async_trait]
impl Controller for Autoscalers {
    fn name(&self) -> &'static str {
        "horizontal-pod-autoscaler"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Autoscalers, Res::Pods]
    }

    fn be_quick(&mut self) {
        self.period = QUICK_PERIOD;
    }

    fn affected(&self, _: &Cache, res: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Autoscalers => vec![Key::of(object)],
            _ => Vec::new(),
        }
    }

    fn delay(&self, _: Res, _: &Value, _: Option<&Value>) -> Duration {
        self.period
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let found = cx.cache.get(Res::Autoscalers, &key.namespace, &key.name);
        let Some(autoscaler) = found.cloned() else {
            self.memories.remove(key);
            self.selectors.remove(key);
            return Ok(Next::Change);
        };
        let pass = self.pass(cx, key, &autoscaler).await;
        let now = cx.now();
        if let Some(memory) = self.memories.get_mut(key) {
            memory.forget(now);
        }
        let status = status(&autoscaler, &pass, &cx.stamp());
        cx.set_status(Res::Autoscalers, &autoscaler, &status).await?;
        Ok(Next::After(self.period))
    }
}
