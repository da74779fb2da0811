//! Claims of the volumes that live as long as their pods.

use std::sync::Arc;

use async_trait::async_trait;
use machinery::meta::{ObjectMeta as _, at};
use shared_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, controller_of, list, text};
use super::workloads::pod_control::refusal;
use super::workloads::pods::owner_reference;

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

/// The missing claims of a pod, by name, and whether a claim of another owner has that name.
fn wanting(cache: &Cache, pod: &Value) -> Vec<(String, bool)> {
    let volumes = list(pod, "spec.volumes")
        .iter()
        .filter(|volume| is_ephemeral(volume));
    volumes
        .map(|volume| claim_name(pod, volume))
        .filter_map(|name| match cache.get(Res::Claims, pod.namespace(), &name) {
            Some(found) => {
                let own = controller_of(found).is_some_and(|owner| text(owner, "uid") == pod.uid());
                (!own).then_some((name, true))
            }
            None => Some((name, false)),
        })
        .collect()
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
        // One that has ended keeps its claims, too.
        let Some(pod) = pod.filter(|pod| !pod.is_terminating()) else {
            return Ok(Next::Change);
        };
        for (name, taken) in wanting(cx.cache, &pod) {
            let volumes = list(&pod, "spec.volumes");
            let Some(volume) = volumes.iter().find(|volume| claim_name(&pod, volume) == name) else {
                continue;
            };
            let of = format!("ephemeral volume {}", text(volume, "name"));
            let failure = if taken {
                let why = format!(
                    "PVC {}/{name} was not created for pod {}/{} (pod is not owner)",
                    key.namespace, key.namespace, key.name
                );
                let text = format!("{of}: {why}");
                Some((text, kube::Error::Service(why.into())))
            } else {
                let made = cx.create(Res::Claims, &key.namespace, claim(&pod, volume)).await;
                made.err()
                    .map(|error| (format!("{of}: create PVC {name}: {}", refusal(&error)), error))
            };
            // It is tried again like anything that fails.
            if let Some((text, error)) = failure {
                cx.warning(Res::Pods, &pod, "FailedBinding", text);
                return Err(error);
            }
        }
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod `p` of uid `1` with these volumes: each a name, and the template of its claim.
    fn pod(volumes: &[(&str, Value)]) -> Value {
        let volumes: Vec<Value> = volumes
            .iter()
            .map(|(name, template)| match template {
                Value::Null => json!({"name": name, "emptyDir": {}}),
                template => json!({"name": name, "ephemeral": {"volumeClaimTemplate": template}}),
            })
            .collect();
        json!({"metadata": {"name": "p", "namespace": "d", "uid": "1"}, "spec": {"volumes": volumes}})
    }

    #[test]
    fn a_claim_is_made_of_its_template() {
        let owner = json!([{
            "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": true, "blockOwnerDeletion": true,
        }]);
        for (template, more, spec) in [
            (
                json!({"spec": {"storageClassName": "c"}}),
                json!({}),
                json!({"storageClassName": "c"}),
            ),
            (
                json!({"metadata": {"labels": {"a": "b"}}, "spec": {}}),
                json!({"labels": {"a": "b"}}),
                json!({}),
            ),
            (
                json!({"metadata": {"annotations": {"a": "b"}, "name": "mine", "finalizers": ["x"]}, "spec": {}}),
                json!({"annotations": {"a": "b"}}),
                json!({}),
            ),
            (
                json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
                json!({}),
                json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
            ),
            (json!({}), json!({}), json!({})),
        ] {
            let pod = pod(&[("v", template.clone())]);
            let mut metadata = json!({"name": "p-v", "namespace": "d", "ownerReferences": owner});
            for (field, value) in more.as_object().unwrap() {
                metadata[field] = value.clone();
            }
            let expected = json!({"metadata": metadata, "spec": spec});
            assert_eq!(
                claim(&pod, &list(&pod, "spec.volumes")[0]),
                expected,
                "{template}"
            );
        }
    }

    /// The missing claims of a pod whose namespace has these claims: each a name, and the uid of its controller.
    #[track_caller]
    fn check(pod: &Value, claims: &[(&str, &str)], expected: &str) {
        let mut cache = Cache::default();
        for (name, owner) in claims {
            let mut claim = json!({"metadata": {"namespace": "d", "name": name, "uid": name}});
            if !owner.is_empty() {
                claim["metadata"]["ownerReferences"] =
                    json!([{"uid": owner, "kind": "Pod", "name": "p", "controller": true}]);
            }
            cache.put(Res::Claims, claim);
        }
        let found: Vec<String> = wanting(&cache, pod)
            .into_iter()
            .map(|(name, taken)| format!("{name}{}", if taken { "!" } else { "" }))
            .collect();
        assert_eq!(found.join(" "), expected, "{claims:?}");
    }

    #[test]
    fn what_is_wanting() {
        let none = pod(&[("v", Value::Null)]);
        let one = pod(&[("v", json!({}))]);
        let two = pod(&[("v", json!({})), ("x", Value::Null), ("w", json!({}))]);
        check(&none, &[], "");
        check(&none, &[("p-v", "")], "");
        check(&one, &[], "p-v");
        check(&one, &[("p-v", "1")], "");
        check(&one, &[("p-v", "2")], "p-v!");
        check(&one, &[("p-v", "")], "p-v!");
        check(&one, &[("v", "1")], "p-v");
        check(&one, &[("p-w", "1")], "p-v");
        check(&two, &[], "p-v p-w");
        check(&two, &[("p-v", "1")], "p-w");
        check(&two, &[("p-w", "1")], "p-v");
        check(&two, &[("p-v", "2")], "p-v! p-w");
        check(&two, &[("p-v", "1"), ("p-w", "")], "p-w!");
        check(&two, &[("p-v", "1"), ("p-w", "1")], "");
        check(
            &json!({"metadata": {"name": "p", "namespace": "d", "uid": "1"}, "spec": {}}),
            &[],
            "",
        );
    }
}
