//! The status of resource quotas: what is used.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use kube::Client;
use shared_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list, text};
use super::workloads::pods::is_over;
use crate::admission::amounts::{self, Amounts};
use crate::admission::quota::{in_scope, is_of_pods, usage};
use crate::meta::{ObjectMeta as _, at};
use crate::types::Quantity;

/// The kinds that are watched, by group and plural.
const WATCHED: [(&str, &str, Res); 6] = [
    ("", "pods", Res::Pods),
    ("", "services", Res::Services),
    ("", "persistentvolumeclaims", Res::Claims),
    ("", "resourcequotas", Res::Quotas),
    ("batch", "jobs", Res::Jobs),
    ("resource.k8s.io", "resourceclaims", Res::ResourceClaims),
];

/// After what time the objects that are not watched are counted again: what is created is counted as it comes, this is for what goes.
const RECOUNT_AFTER: Duration = Duration::from_secs(5);

fn whole(count: usize) -> Quantity {
    Quantity::count(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The controller.
pub(super) struct ResourceQuotas;

/// What objects that are watched use of what a quota is about.
fn used(cache: &Cache, quota: &Value) -> Amounts {
    let mut total = Amounts::new();
    for (group, plural, res) in WATCHED {
        for object in cache.in_namespace(res, quota.namespace()) {
            if in_scope(quota, group, plural, object) {
                amounts::add(&mut total, &usage(group, plural, object));
            }
        }
    }
    total
}

/// Whether what is watched says all of the use of a resource.
fn is_watched(resource: &str) -> bool {
    let counted = WATCHED.iter().any(|(group, plural, _)| {
        let name = match *group {
            "" => (*plural).to_owned(),
            group => format!("{plural}.{group}"),
        };
        resource == name || resource.strip_prefix("count/") == Some(&name)
    });
    counted
        || is_of_pods(resource)
        || resource.starts_with("services.")
        || resource == "requests.storage"
        || resource.contains(".storageclass.storage.k8s.io/")
        || resource.ends_with(".deviceclass.resource.k8s.io/devices")
}

/// Counts objects of a kind that is not watched, by its plural and group (`count/secrets`, `count/jobs.batch`).
async fn count(client: &Client, namespace: &str, resource: &str) -> Option<usize> {
    let name = resource.strip_prefix("count/").unwrap_or(resource);
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let version = if group.is_empty() {
        "api/v1".to_owned()
    } else {
        let found = get(client, format!("/apis/{group}")).await?;
        format!("apis/{}", text(&found, "preferredVersion.groupVersion"))
    };
    let found = get(client, format!("/{version}/namespaces/{namespace}/{plural}")).await?;
    Some(list(&found, "items").len())
}

async fn get(client: &Client, path: String) -> Option<Value> {
    let request = http::Request::get(path).body(Vec::new()).ok()?;
    client.request(request).await.ok()
}

/// Whether a change of an object has it counted again. What is given back otherwise, as by a pod that asks for less, is only seen
/// when something else is counted.
fn is_recounted(res: Res, old: &Value, new: &Value) -> bool {
    let given = |pod: &Value| -> Vec<Option<Value>> {
        let lists = ["status.initContainerStatuses", "status.containerStatuses"].into_iter();
        let statuses = lists.flat_map(|path| list(pod, path));
        statuses.map(|status| status.get("resources").cloned()).collect()
    };
    let has_deadline = |pod: &Value| at(pod, "spec.activeDeadlineSeconds").is_some();
    match res {
        Res::Pods => {
            (is_over(new) && !is_over(old))
                || has_deadline(old) != has_deadline(new)
                || given(old) != given(new)
        }
        Res::Services => at(old, "spec.type") != at(new, "spec.type"),
        Res::Claims => true,
        _ => false,
    }
}

#[async_trait]
impl Controller for ResourceQuotas {
    fn name(&self) -> &'static str {
        "resourcequota-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[
            Res::Quotas,
            Res::Pods,
            Res::Services,
            Res::Claims,
            Res::Jobs,
            Res::ResourceClaims,
        ]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            // What others write into its status stays until something is counted.
            Res::Quotas if old.is_some_and(|old| at(old, "spec.hard") == at(object, "spec.hard")) => {
                Vec::new()
            }
            Res::Quotas => vec![Key::of(object)],
            // Most namespaces have no quota.
            _ if cache
                .in_namespace(Res::Quotas, object.namespace())
                .next()
                .is_none() =>
            {
                Vec::new()
            }
            _ => {
                let gone = cache.get(res, object.namespace(), object.name()).is_none();
                if !gone && old.is_some_and(|old| !is_recounted(res, old, object)) {
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
        let used = used(cx.cache, &quota);
        let mut amounts: BTreeMap<String, Value> = BTreeMap::new();
        let mut counted = false;
        for resource in hard.keys() {
            let amount = if is_watched(resource) {
                Some(used.get(resource.as_str()).copied().unwrap_or(Quantity::count(0)))
            } else {
                counted = true;
                count(cx.client, &key.namespace, resource).await.map(whole)
            };
            if let Some(amount) = amount {
                amounts.insert(resource.to_string(), Value::from(amount.canonical()));
            }
        }
        let status = json!({"hard": hard, "used": amounts});
        cx.set_status(Res::Quotas, &quota, &status).await?;
        Ok(if counted {
            Next::After(RECOUNT_AFTER)
        } else {
            Next::Change
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Two pods that run, one without requests and one with a deadline, one that has ended; a claim and a service.
    fn cache() -> Cache {
        let mut cache = Cache::default();
        let mut put = |res: Res, name: &str, mut object: Value| {
            object["metadata"] = json!({"namespace": "d", "name": name, "uid": name});
            cache.put(res, object);
        };
        let containers = json!([
            {"resources": {"requests": {"cpu": "200m"}, "limits": {"memory": "1Gi"}}},
            {"resources": {"requests": {"cpu": "300m", "example.com/gpu": "1"}}},
        ]);
        put(
            Res::Pods,
            "a",
            json!({"status": {"phase": "Running"}, "spec": {"containers": containers, "priorityClassName": "high"}}),
        );
        put(
            Res::Pods,
            "b",
            json!({"status": {"phase": "Succeeded"}, "spec": {"containers": containers}}),
        );
        put(
            Res::Pods,
            "c",
            json!({"status": {"phase": "Running"}, "spec": {"containers": [{}], "activeDeadlineSeconds": 5}}),
        );
        put(
            Res::Claims,
            "e",
            json!({"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "3Gi"}}}}),
        );
        put(
            Res::Services,
            "f",
            json!({"spec": {"type": "NodePort", "ports": [{}, {}]}}),
        );
        put(Res::Quotas, "g", json!({}));
        put(Res::Jobs, "h", json!({}));
        cache
    }

    #[rstest]
    #[case("pods", "2")]
    #[case("count/pods", "3")]
    #[case("requests.cpu", "500m")]
    #[case("cpu", "500m")]
    #[case("limits.memory", "1Gi")]
    #[case("requests.example.com/gpu", "1")]
    #[case("services", "1")]
    #[case("services.nodeports", "2")]
    #[case("services.loadbalancers", "0")]
    #[case("persistentvolumeclaims", "1")]
    #[case("requests.storage", "3Gi")]
    #[case("fast.storageclass.storage.k8s.io/requests.storage", "3Gi")]
    #[case("slow.storageclass.storage.k8s.io/persistentvolumeclaims", "0")]
    #[case("count/services", "1")]
    #[case("count/jobs.batch", "1")]
    #[case("resourcequotas", "1")]
    fn what_is_used(#[case] resource: &str, #[case] expected: &str) {
        let quota = json!({"metadata": {"namespace": "d", "name": "q"}});
        assert!(is_watched(resource));
        let used = used(&cache(), &quota);
        let amount = used.get(resource).copied().unwrap_or(Quantity::count(0));
        assert_eq!(amount.canonical(), expected);
    }

    #[rstest]
    #[case(json!({"scopes": ["Terminating"]}), 1)]
    #[case(json!({"scopes": ["NotTerminating"]}), 1)]
    #[case(json!({"scopes": ["BestEffort"]}), 1)]
    #[case(json!({"scopes": ["NotBestEffort"]}), 1)]
    #[case(json!({"scopes": ["BestEffort", "NotTerminating"]}), 0)]
    #[case(json!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}}), 1)]
    #[case(json!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}}), 1)]
    #[case(json!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]}}), 0)]
    #[case(json!({}), 2)]
    fn of_which_pods(#[case] spec: Value, #[case] expected: i64) {
        let quota = json!({"metadata": {"namespace": "d", "name": "q"}, "spec": spec});
        let used = used(&cache(), &quota);
        let pods = used.get("pods").copied().unwrap_or(Quantity::count(0));
        assert_eq!(pods.canonical(), expected.to_string());
    }

    #[test]
    fn what_is_not_watched_is_counted_when_it_is_asked_for() {
        assert!(!is_watched("count/secrets") && !is_watched("configmaps"));
    }
}
