//! Claims of the volumes that live as long as their pods.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, controller_of, list, text};
use super::workloads::pods::{is_over, owner_reference};
use crate::meta::{ObjectMeta as _, at};

/// How long a claim of somebody else is waited for.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The controller.
pub(super) struct EphemeralVolumes;

fn claim_name(pod: &Value, volume: &Value) -> String {
    format!("{}-{}", pod.name(), text(volume, "name"))
}

fn is_ephemeral(volume: &Value) -> bool {
    volume.get("ephemeral").is_some_and(Value::is_object)
}

/// The claim of a pod's volume.
fn claim(pod: &Value, volume: &Value) -> Value {
    let template = at(volume, "ephemeral.volumeClaimTemplate")
        .cloned()
        .unwrap_or_default();
    let mut metadata = json!({
        "name": claim_name(pod, volume), "namespace": pod.namespace(),
        "ownerReferences": [owner_reference("v1", "Pod", pod)],
    });
    for field in ["labels", "annotations"] {
        if let Some(value) = at(&template, &format!("metadata.{field}")) {
            metadata[field] = value.clone();
        }
    }
    json!({"metadata": metadata, "spec": template.get("spec").cloned().unwrap_or_else(|| json!({}))})
}

#[async_trait]
impl Controller for EphemeralVolumes {
    fn name(&self) -> &'static str {
        "ephemeral_volume"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Pods, Res::Claims]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Pods if list(object, "spec.volumes").iter().any(is_ephemeral) => vec![Key::of(object)],
            Res::Claims
                if cache
                    .get(Res::Claims, object.namespace(), object.name())
                    .is_none() =>
            {
                let owner = controller_of(object).filter(|owner| text(owner, "kind") == "Pod");
                owner
                    .map(|owner| Key::new(object.namespace(), text(owner, "name")))
                    .into_iter()
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let pod: Option<Arc<Value>> = cx.cache.get(Res::Pods, &key.namespace, &key.name).cloned();
        let Some(pod) = pod.filter(|pod| !pod.is_terminating() && !is_over(pod)) else {
            return Ok(Next::Change);
        };
        let mut next = Next::Change;
        for volume in list(&pod, "spec.volumes")
            .iter()
            .filter(|volume| is_ephemeral(volume))
        {
            let name = claim_name(&pod, volume);
            match cx.cache.get(Res::Claims, &key.namespace, &name) {
                Some(found) if controller_of(found).is_some_and(|owner| text(owner, "uid") == pod.uid()) => {}
                Some(_) => {
                    let text = format!(
                        "ephemeral volume {}: PVC {}/{name} was not created for pod {}/{} (pod is not owner)",
                        text(volume, "name"),
                        key.namespace,
                        key.namespace,
                        key.name
                    );
                    cx.warning(Res::Pods, &pod, "FailedBinding", text);
                    next = Next::After(RETRY_AFTER);
                }
                None => {
                    cx.create(Res::Claims, &key.namespace, claim(&pod, volume))
                        .await?;
                }
            }
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_made_of_its_template() {
        let pod = json!({"metadata": {"name": "p", "namespace": "d", "uid": "1"}});
        let volume = json!({"name": "v", "ephemeral": {"volumeClaimTemplate": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"storageClassName": "c"},
        }}});
        let made = claim(&pod, &volume);
        assert_eq!(made["metadata"]["name"], "p-v");
        assert_eq!(made["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "1");
        assert_eq!(made["spec"], json!({"storageClassName": "c"}));
        assert!(!is_ephemeral(&json!({"name": "w", "emptyDir": {}})) && is_ephemeral(&volume));
    }
}
