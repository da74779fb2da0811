//! The status of resource quotas: the used amounts.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use machinery::meta::{ObjectMeta as _, at};
use machinery::quota::amounts::{self, Amounts};
use machinery::quota::{in_scope, is_of_kind, is_of_pods, usage};
use machinery::types::Quantity;
use shared_json::{Value, json};

use super::runtime::is_over;
use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list, text};

/// The kinds that are watched, by group and plural.
const WATCHED: [(&str, &str, Res); 6] = [
    ("", "pods", Res::Pods),
    ("", "services", Res::Services),
    ("", "persistentvolumeclaims", Res::Claims),
    ("", "resourcequotas", Res::Quotas),
    ("batch", "jobs", Res::Jobs),
    ("resource.k8s.io", "resourceclaims", Res::ResourceClaims),
];

/// The period of the recount of objects that are not watched: admission counts their creation, the recount their deletion.
const RECOUNT_AFTER: Duration = Duration::from_secs(5);
/// The period of the recount of everything, whatever has happened (the real default).
const RESYNC_AFTER: Duration = Duration::from_secs(300);

fn whole(count: usize) -> Quantity {
    Quantity::count(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The controller.
pub(super) struct ResourceQuotas;

/// Whether a pod is a full grace period past its deletion deadline. Such pods sit on a lost node and are not charged.
fn is_overdue(pod: &Value, now: Timestamp) -> bool {
    let going: Option<Timestamp> = pod.meta_str("deletionTimestamp").parse().ok();
    let grace = at(pod, "metadata.deletionGracePeriodSeconds").and_then(Value::as_i64);
    let end = going.zip(grace).map(|(going, grace)| {
        let end = going.checked_add(SignedDuration::from_secs(grace));
        end.unwrap_or(Timestamp::MAX)
    });
    end.is_some_and(|end| now > end)
}

/// The usage by watched objects in the scope of a quota.
fn used(cache: &Cache, quota: &Value, now: Timestamp) -> Amounts {
    let mut total = Amounts::new();
    for (group, plural, res) in WATCHED {
        for object in cache.in_namespace(res, quota.namespace()) {
            if in_scope(quota, group, plural, object) {
                let mut used = usage(group, plural, object);
                if res == Res::Pods && is_overdue(object, now) {
                    used.retain(|name, _| name.starts_with("count/"));
                }
                amounts::add(&mut total, &used);
            }
        }
    }
    total
}

/// Whether a quota counts objects of a kind, by the limits in its status.
fn is_about(quota: &Value, res: Res) -> bool {
    let kind = WATCHED.iter().find(|(_, _, watched)| *watched == res);
    let limits = at(quota, "status.hard").and_then(Value::as_object);
    kind.zip(limits)
        .is_some_and(|((group, plural, _), limits)| limits.keys().any(|name| is_of_kind(name, group, plural)))
}

/// Whether watched objects alone make up the usage of a resource.
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

/// Whether a change of an object starts a recount. Other decreases, as of a pod that asks for less, are only seen
/// when something else is counted.
fn is_recounted(res: Res, old: &Value, new: &Value) -> bool {
    // Only what is told of a container before and after.
    let is_given_other = |path: &str| {
        list(old, path).iter().any(|before| {
            let after = list(new, path)
                .iter()
                .find(|after| after["name"] == before["name"]);
            after.is_some_and(|after| after.get("resources") != before.get("resources"))
        })
    };
    let has_deadline = |pod: &Value| at(pod, "spec.activeDeadlineSeconds").is_some();
    // What such services have besides is counted by their type.
    let counted_type = |service: &Value| {
        let kind = text(service, "spec.type");
        Some(kind.to_owned()).filter(|kind| matches!(kind.as_str(), "NodePort" | "LoadBalancer"))
    };
    match res {
        Res::Pods => {
            (is_over(new) && !is_over(old))
                || has_deadline(old) != has_deadline(new)
                || is_given_other("status.containerStatuses")
                || is_given_other("status.initContainerStatuses")
        }
        Res::Services => counted_type(old) != counted_type(new),
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
                    .filter(|quota| is_about(quota, res))
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
        let used = used(cx.cache, &quota, cx.now());
        let mut amounts: BTreeMap<String, Value> = BTreeMap::new();
        let mut counted = false;
        for resource in hard.keys() {
            let amount = if is_watched(resource) {
                Some(used.get(resource.as_str()).copied().unwrap_or(Quantity::count(0)))
            } else {
                counted = true;
                count(cx.client, &key.namespace, resource).await.map(whole)
            };
            // What cannot be counted now stays as it was counted before.
            let before = || at(&quota, "status.used")?.get(resource.as_str()).cloned();
            let amount = amount.map(|amount| Value::from(amount.canonical()));
            if let Some(amount) = amount.or_else(before) {
                amounts.insert(resource.to_string(), amount);
            }
        }
        let status = json!({"hard": hard, "used": amounts});
        cx.set_status(Res::Quotas, &quota, &status).await?;
        Ok(if counted {
            Next::After(RECOUNT_AFTER)
        } else {
            Next::After(RESYNC_AFTER)
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
        let used = used(&cache(), &quota, Timestamp::UNIX_EPOCH);
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
        let used = used(&cache(), &quota, Timestamp::UNIX_EPOCH);
        let pods = used.get("pods").copied().unwrap_or(Quantity::count(0));
        assert_eq!(pods.canonical(), expected.to_string());
    }

    #[rstest]
    #[case(Res::Pods, json!({}), json!({}), false)]
    #[case(Res::Pods, json!({"status": {"phase": "Pending"}}), json!({"status": {"phase": "Running"}}), false)]
    #[case(Res::Pods, json!({"status": {"phase": "Running"}}), json!({"status": {"phase": "Failed"}}), true)]
    #[case(Res::Pods, json!({"status": {"phase": "Failed"}}), json!({"status": {"phase": "Succeeded"}}), false)]
    #[case(Res::Pods, json!({"spec": {}}), json!({"spec": {"activeDeadlineSeconds": 3}}), true)]
    #[case(Res::Pods, json!({"spec": {"activeDeadlineSeconds": 9}}), json!({"spec": {"activeDeadlineSeconds": 3}}), false)]
    #[case(Res::Pods, told("a", "1"), told("a", "1"), false)]
    #[case(Res::Pods, told("a", "1"), told("a", "2"), true)]
    #[case(Res::Pods, told("a", ""), told("a", "2"), true)]
    #[case::what_is_told_first(Res::Pods, json!({}), told("a", "1"), false)]
    #[case::of_another_container(Res::Pods, told("a", "1"), told("b", "2"), false)]
    #[case(Res::Services, typed("ClusterIP"), typed("NodePort"), true)]
    #[case(Res::Services, typed("NodePort"), typed("LoadBalancer"), true)]
    #[case(Res::Services, typed("ClusterIP"), typed("ExternalName"), false)]
    #[case(Res::Services, typed("NodePort"), typed("NodePort"), false)]
    #[case(Res::Claims, json!({}), json!({}), true)]
    #[case(Res::Jobs, json!({}), json!({"status": {}}), false)]
    #[case(Res::ResourceClaims, json!({}), json!({"status": {}}), false)]
    fn what_is_counted_again(
        #[case] res: Res,
        #[case] old: Value,
        #[case] new: Value,
        #[case] expected: bool,
    ) {
        assert_eq!(is_recounted(res, &old, &new), expected);
    }

    /// A pod whose container has so many allocated processors, or an unknown number.
    fn told(name: &str, cpu: &str) -> Value {
        let mut status = json!({"name": name});
        if !cpu.is_empty() {
            status["resources"] = json!({"requests": {"cpu": cpu}});
        }
        json!({"status": {"containerStatuses": [status]}})
    }

    fn typed(kind: &str) -> Value {
        json!({"spec": {"type": kind}})
    }

    #[test]
    fn what_is_not_watched_is_counted_when_it_is_asked_for() {
        assert!(!is_watched("count/secrets") && !is_watched("configmaps"));
    }
}
