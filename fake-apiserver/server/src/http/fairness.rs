//! API priority and fairness: the FlowSchema and the priority level of a request, which answers over a socket name in headers.
//!
//! No request waits or is refused for its level.

use std::sync::{Arc, LazyLock};

use http::{HeaderMap, HeaderName, HeaderValue};
use machinery::meta::{ObjectMeta as _, at};
use machinery::user::User;
use machinery::user::service_account;
use shared_json::Value;
use store::{GroupResource, ObjectKey, Stored};

use crate::authz::Act;
use crate::server::ServerState;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The uids of a request's FlowSchema and of its PriorityLevelConfiguration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    schema: String,
    level: String,
}

impl Class {
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        for (name, uid) in [(SCHEMA_UID, &self.schema), (LEVEL_UID, &self.level)] {
            if let Ok(uid) = HeaderValue::from_str(uid) {
                headers.insert(name, uid);
            }
        }
    }
}

/// The class of a request: that of the first schema, by precedence and name, that matches it and whose level exists.
pub(super) fn classify(state: &ServerState, user: &User, act: &Act) -> Option<Class> {
    static SCHEMAS: LazyLock<GroupResource> = LazyLock::new(|| GroupResource::new(GROUP, "flowschemas"));
    static LEVELS: LazyLock<GroupResource> =
        LazyLock::new(|| GroupResource::new(GROUP, "prioritylevelconfigurations"));
    let schemas = state.store.list(&SCHEMAS, None, None, None).ok()?.items;
    let level_of = |schema: &Value| {
        let name = at(schema, "spec.priorityLevelConfiguration.name").and_then(Value::as_str)?;
        state.store.get(&LEVELS, &ObjectKey::new("", name))
    };
    let found = schemas
        .iter()
        .filter(|schema| matches(&schema.value, user, act))
        .filter_map(|schema| Some((schema, level_of(&schema.value)?)))
        .min_by_key(|(schema, _)| rank(schema));
    found.map(|(schema, level)| Class {
        schema: schema.value.uid().to_owned(),
        level: level.value.uid().to_owned(),
    })
}

fn rank(schema: &Arc<Stored>) -> (i64, String) {
    let precedence = at(&schema.value, "spec.matchingPrecedence").and_then(Value::as_i64);
    (precedence.unwrap_or(1000), schema.value.name().to_owned())
}

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    let list = value.get(field).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Whether a list has an entry, or stands for all.
fn has(rule: &Value, field: &str, wanted: &str) -> bool {
    items(rule, field).any(|entry| entry == "*" || entry == wanted)
}

fn matches(schema: &Value, user: &User, act: &Act) -> bool {
    let rules = at(schema, "spec.rules").and_then(Value::as_array);
    rules.into_iter().flatten().any(|rule| {
        items(rule, "subjects").any(|subject| is_subject(subject, user))
            && if act.path.is_empty() {
                items(rule, "resourceRules").any(|rule| is_of_resource(rule, act))
            } else {
                items(rule, "nonResourceRules").any(|rule| is_of_path(rule, act))
            }
    })
}

fn is_subject(subject: &Value, user: &User) -> bool {
    let text = |path: &str| at(subject, path).and_then(Value::as_str).unwrap_or_default();
    match text("kind") {
        "User" => matches!(text("user.name"), name if name == "*" || name == user.name),
        "Group" => {
            let name = text("group.name");
            name == "*" || user.groups.iter().any(|group| group == name)
        }
        "ServiceAccount" => service_account(&user.name).is_some_and(|(namespace, name)| {
            namespace == text("serviceAccount.namespace")
                && matches!(text("serviceAccount.name"), wanted if wanted == "*" || wanted == name)
        }),
        _ => false,
    }
}

fn is_of_resource(rule: &Value, act: &Act) -> bool {
    let resource = if act.subresource.is_empty() {
        act.resource.clone()
    } else {
        format!("{}/{}", act.resource, act.subresource)
    };
    let is_in_scope = if act.namespace.is_empty() {
        rule.get("clusterScope").and_then(Value::as_bool) == Some(true)
    } else {
        has(rule, "namespaces", &act.namespace)
    };
    is_in_scope
        && has(rule, "verbs", &act.verb)
        && has(rule, "apiGroups", &act.group)
        && has(rule, "resources", &resource)
}

fn is_of_path(rule: &Value, act: &Act) -> bool {
    let is_path = |url: &str| match url.strip_suffix('*') {
        Some(start) => act.path.starts_with(start),
        None => act.path == url,
    };
    has(rule, "verbs", &act.verb)
        && items(rule, "nonResourceURLs")
            .filter_map(Value::as_str)
            .any(is_path)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    fn user(name: &str, groups: &[&str]) -> User {
        User {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..User::default()
        }
    }

    fn pods(verb: &str, namespace: &str, subresource: &str) -> Act {
        Act {
            verb: verb.to_owned(),
            resource: "pods".to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            ..Act::default()
        }
    }

    fn path(path: &str) -> Act {
        Act {
            verb: "get".to_owned(),
            path: path.to_owned(),
            ..Act::default()
        }
    }

    fn all_in(namespaces: &[&str], is_cluster_wide: bool, resources: &[&str]) -> Value {
        json!({"resourceRules": [{
            "verbs": ["*"], "apiGroups": [""], "resources": resources, "namespaces": namespaces, "clusterScope": is_cluster_wide,
        }]})
    }

    #[rstest]
    #[case::any_user(json!({"kind": "User", "user": {"name": "*"}}), user("ada", &[]), true)]
    #[case::that_user(json!({"kind": "User", "user": {"name": "ada"}}), user("ada", &[]), true)]
    #[case::another_user(json!({"kind": "User", "user": {"name": "bob"}}), user("ada", &[]), false)]
    #[case::group(json!({"kind": "Group", "group": {"name": "dev"}}), user("ada", &["dev"]), true)]
    #[case::another_group(json!({"kind": "Group", "group": {"name": "ops"}}), user("ada", &["dev"]), false)]
    #[case::any_account(
        json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "*"}}),
        user("system:serviceaccount:n:a", &[]),
        true
    )]
    #[case::account_elsewhere(
        json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "*"}}),
        user("system:serviceaccount:m:a", &[]),
        false
    )]
    fn subjects(#[case] subject: Value, #[case] user: User, #[case] expected: bool) {
        assert_eq!(is_subject(&subject, &user), expected);
    }

    #[rstest]
    #[case::in_all_namespaces(all_in(&["*"], false, &["*"]), pods("get", "n", ""), true)]
    #[case::in_another(all_in(&["m"], false, &["*"]), pods("get", "n", ""), false)]
    #[case::cluster_wide(all_in(&["*"], true, &["*"]), pods("list", "", ""), true)]
    #[case::not_cluster_wide(all_in(&["*"], false, &["*"]), pods("list", "", ""), false)]
    #[case::subresource(all_in(&["*"], false, &["pods/status"]), pods("patch", "n", "status"), true)]
    #[case::not_its_subresource(all_in(&["*"], false, &["pods"]), pods("patch", "n", "status"), false)]
    #[case::path(json!({"nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/healthz"]}]}), path("/healthz"), true)]
    #[case::below(json!({"nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/apis/*"]}]}), path("/apis/x"), true)]
    #[case::not_below(json!({"nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/apis/*"]}]}), path("/api"), false)]
    fn rules(#[case] mut rule: Value, #[case] act: Act, #[case] expected: bool) {
        rule["subjects"] = json!([{"kind": "User", "user": {"name": "*"}}]);
        let schema = json!({"spec": {"rules": [rule]}});
        assert_eq!(matches(&schema, &user("ada", &[]), &act), expected);
    }
}
