//! The status of resource quotas: what is used.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kube::Client;
use serde_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list};
use super::workloads::pods::is_over;
use crate::meta::{ObjectMeta as _, at};
use crate::types::Quantity;

/// The kinds that are counted by name: what the quota calls them, and the kind.
const COUNTED: [(&str, Res); 8] = [
    ("pods", Res::Pods),
    ("services", Res::Services),
    ("resourcequotas", Res::Quotas),
    ("persistentvolumeclaims", Res::Claims),
    ("count/pods", Res::Pods),
    ("count/services", Res::Services),
    ("count/persistentvolumeclaims", Res::Claims),
    ("count/jobs.batch", Res::Jobs),
];

fn whole(count: usize) -> Quantity {
    Quantity::count(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The controller.
pub(super) struct ResourceQuotas;

/// The amount of a resource that a pod asks for or is limited to, over its containers.
fn pod_amount(pod: &Value, list_name: &str, resource: &str) -> Quantity {
    let of = |container: &Value| {
        let amount =
            at(container, &format!("resources.{list_name}")).and_then(|amounts| amounts.get(resource));
        amount.map_or(Quantity::count(0), Quantity::of)
    };
    let sum = list(pod, "spec.containers")
        .iter()
        .map(&of)
        .fold(Quantity::count(0), Quantity::plus);
    // Init containers run one at a time, before the others.
    let init = list(pod, "spec.initContainers")
        .iter()
        .map(of)
        .max_by_key(|amount| amount.nanos());
    init.filter(|init| init.nanos() > sum.nanos()).unwrap_or(sum)
}

/// What is used of a resource that is counted or summed from what is watched; none for what is not.
fn used(cache: &Cache, namespace: &str, resource: &str) -> Option<Quantity> {
    let pods = || {
        cache
            .in_namespace(Res::Pods, namespace)
            .filter(|pod| !is_over(pod))
    };
    if resource == "pods" {
        return Some(whole(pods().count()));
    }
    if let Some((_, res)) = COUNTED.iter().find(|(name, _)| *name == resource) {
        return Some(whole(cache.in_namespace(*res, namespace).count()));
    }
    if resource == "requests.storage" {
        let amounts = cache.in_namespace(Res::Claims, namespace).filter_map(|claim| {
            claim
                .pointer("/spec/resources/requests/storage")
                .map(Quantity::of)
        });
        return Some(amounts.fold(Quantity::count(0), Quantity::plus));
    }
    let (list_name, name) = match resource.split_once('.') {
        Some(("requests", name)) => ("requests", name),
        Some(("limits", name)) => ("limits", name),
        _ => ("requests", resource),
    };
    matches!(name, "cpu" | "memory" | "ephemeral-storage").then(|| {
        pods()
            .map(|pod| pod_amount(pod, list_name, name))
            .fold(Quantity::count(0), Quantity::plus)
    })
}

/// Counts objects of a kind that is not watched, by its plural and group (`count/secrets`, `count/jobs.batch`).
async fn count(client: &Client, namespace: &str, resource: &str) -> Option<usize> {
    let name = resource.strip_prefix("count/").unwrap_or(resource);
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let version = if group.is_empty() {
        "api/v1".to_owned()
    } else {
        format!("apis/{group}/v1")
    };
    let request = http::Request::get(format!("/{version}/namespaces/{namespace}/{plural}"))
        .body(Vec::new())
        .ok()?;
    let answer: Value = client.request(request).await.ok()?;
    Some(list(&answer, "items").len())
}

#[async_trait]
impl Controller for ResourceQuotas {
    fn name(&self) -> &'static str {
        "resourcequota-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Quotas, Res::Pods, Res::Services, Res::Claims, Res::Jobs]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Quotas => vec![Key::of(object)],
            _ => {
                // Only what comes, goes or ends changes what is used.
                let gone = cache.get(res, object.namespace(), object.name()).is_none();
                let same = old.is_some_and(|old| {
                    is_over(old) == is_over(object) && old.get("spec") == object.get("spec")
                });
                if same && !gone {
                    return Vec::new();
                }
                cache
                    .in_namespace(Res::Quotas, object.namespace())
                    .map(|quota| Key::of(quota))
                    .collect()
            }
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(quota) = cx.cache.get(Res::Quotas, &key.namespace, &key.name).cloned() else {
            return Ok(Next::Change);
        };
        let hard = at(&quota, "spec.hard")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let mut amounts: BTreeMap<String, Value> = BTreeMap::new();
        for resource in hard.keys() {
            let amount = match used(cx.cache, &key.namespace, resource) {
                Some(amount) => Some(amount),
                None => count(cx.client, &key.namespace, resource).await.map(whole),
            };
            if let Some(amount) = amount {
                amounts.insert(resource.clone(), Value::from(amount.canonical()));
            }
        }
        let status = json!({"hard": hard, "used": amounts});
        cx.set_status(Res::Quotas, &quota, &status).await?;
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("pods", Some("1"))]
    #[case("count/pods", Some("2"))]
    #[case("requests.cpu", Some("500m"))]
    #[case("cpu", Some("500m"))]
    #[case("limits.memory", Some("1Gi"))]
    #[case("count/secrets", None)]
    fn what_is_used(#[case] resource: &str, #[case] expected: Option<&str>) {
        let mut cache = Cache::default();
        let pod = |name: &str, phase: &str| {
            json!({
                "metadata": {"namespace": "d", "name": name, "uid": name}, "status": {"phase": phase},
                "spec": {"containers": [
                    {"resources": {"requests": {"cpu": "200m"}, "limits": {"memory": "1Gi"}}},
                    {"resources": {"requests": {"cpu": "300m"}}},
                ]},
            })
        };
        cache.put(Res::Pods, pod("a", "Running"));
        cache.put(Res::Pods, pod("b", "Succeeded"));
        let amount = used(&cache, "d", resource).map(Quantity::canonical);
        assert_eq!(amount.as_deref(), expected);
    }
}
