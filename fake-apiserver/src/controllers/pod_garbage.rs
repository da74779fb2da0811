//! Pods that nobody will remove otherwise: of nodes that are gone, and finished ones beyond a limit.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list, text};
use super::workloads::pods::{is_over, sort_by_age};
use crate::meta::ObjectMeta as _;

/// How long a pod's node may be unknown before its pods are removed (the real one's quarantine).
const QUARANTINE: Duration = Duration::from_secs(40);
/// How many finished pods there may be (the real default).
const FINISHED_MAX: usize = 12_500;

/// The controller. Its keys are nodes, and the empty name for the limit.
pub(super) struct PodGarbage;

#[async_trait]
impl Controller for PodGarbage {
    fn name(&self) -> &'static str {
        "pod-garbage-collector"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Pods, Res::Nodes]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Nodes if cache.get(Res::Nodes, "", object.name()).is_none() => {
                vec![Key::new("", object.name())]
            }
            Res::Pods => {
                let node = text(object, "spec.nodeName");
                let placed = !node.is_empty() && old.is_none_or(|old| text(old, "spec.nodeName") != node);
                let mut keys = Vec::new();
                if placed && cache.get(Res::Nodes, "", node).is_none() {
                    keys.push(Key::new("", node));
                }
                if is_over(object) && old.is_none_or(|old| !is_over(old)) {
                    keys.push(Key::new("", ""));
                }
                keys
            }
            _ => Vec::new(),
        }
    }

    fn delay(&self, _: Res, _: &Value, _: Option<&Value>) -> Duration {
        QUARANTINE
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        if key.name.is_empty() {
            return limit(cx).await;
        }
        if cx.cache.get(Res::Nodes, "", &key.name).is_some() {
            return Ok(Next::Change);
        }
        let pods: Vec<Arc<Value>> = cx
            .cache
            .all(Res::Pods)
            .filter(|pod| text(pod, "spec.nodeName") == key.name)
            .cloned()
            .collect();
        for pod in pods {
            let mut conditions = list(&pod, "status.conditions").to_vec();
            conditions.push(json!({
                "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists", "lastTransitionTime": cx.stamp(),
            }));
            let mut status = json!({"conditions": conditions});
            if !is_over(&pod) {
                status["phase"] = json!("Failed");
            }
            cx.patch(Res::Pods, &pod, "/status", json!({"status": status}))
                .await?;
            cx.delete_with(Res::Pods, &pod, None, Some(0)).await?;
        }
        Ok(Next::Change)
    }
}

async fn limit(cx: &mut Cx<'_>) -> Result<Next, kube::Error> {
    let mut finished: Vec<Arc<Value>> = cx
        .cache
        .all(Res::Pods)
        .filter(|pod| is_over(pod))
        .cloned()
        .collect();
    let surplus = finished.len().saturating_sub(FINISHED_MAX);
    sort_by_age(&mut finished);
    for pod in finished.iter().take(surplus) {
        cx.delete_with(Res::Pods, pod, None, Some(0)).await?;
    }
    Ok(Next::Change)
}
