//! Role-based access control: bindings give roles to subjects, roles list the allowed actions.

use std::sync::Arc;

use machinery::meta::{ObjectMeta as _, at, string_map};
use machinery::selector::matches_selector;
use machinery::user::service_account;
use shared_json::{Array, Value};
use store::{GroupResource, ObjectKey, Stored};

use super::Act;
use crate::authn::User;
use crate::server::ServerState;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether some role of the user's allows an act.
pub(crate) fn allows(state: &ServerState, user: &User, act: &Act) -> bool {
    let mut allowed = false;
    visit(state, user, &act.namespace, &mut |rule| {
        allowed = allowed || covers(rule, act);
    });
    allowed
}

/// Whether a cluster role of this name allows an act, regardless of its bindings.
pub(super) fn role_allows(state: &ServerState, role: &str, act: &Act) -> bool {
    let table = GroupResource::new(GROUP, "clusterroles");
    let role = state.store.get(&table, &ObjectKey::new("", role));
    role.is_some_and(|role| {
        let rules = role.value.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().any(|rule| covers(rule, act))
    })
}

/// Which binding allows an act, in the real server's words; none if nothing does.
pub(super) fn reason(state: &ServerState, user: &User, act: &Act) -> Option<String> {
    for binding in list(state, "clusterrolebindings", None) {
        if let Some(subject) = subject_of(&binding.value, user, "")
            && role_covers(state, &binding.value, "", act)
        {
            let name = binding.value.name();
            return Some(by("ClusterRoleBinding", name, &binding.value, subject));
        }
    }
    if act.namespace.is_empty() {
        return None;
    }
    for binding in list(state, "rolebindings", Some(&act.namespace)) {
        if let Some(subject) = subject_of(&binding.value, user, &act.namespace)
            && role_covers(state, &binding.value, &act.namespace, act)
        {
            let name = format!("{}/{}", binding.value.name(), act.namespace);
            return Some(by("RoleBinding", &name, &binding.value, subject));
        }
    }
    None
}

/// The roles that the user's bindings refer to and that are not there, in the real server's words.
pub(crate) fn unresolved(state: &ServerState, user: &User, namespace: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut look = |binding: &Value, namespace: &str| {
        if applies(binding, user, namespace) && role_of(state, binding, namespace).is_none() {
            let text = |path: &str| at(binding, path).and_then(Value::as_str).unwrap_or_default();
            let kind = text("roleRef.kind").to_lowercase();
            let complaint = format!("{kind}.{GROUP} {:?} not found", text("roleRef.name"));
            if !out.contains(&complaint) {
                out.push(complaint);
            }
        }
    };
    for binding in list(state, "clusterrolebindings", None) {
        look(&binding.value, "");
    }
    if !namespace.is_empty() {
        for binding in list(state, "rolebindings", Some(namespace)) {
            look(&binding.value, namespace);
        }
    }
    out
}

/// Why nothing allows an act, if there is something to say.
pub(super) fn why_not(state: &ServerState, user: &User, act: &Act) -> Option<String> {
    let unresolved = unresolved(state, user, &act.namespace);
    (!unresolved.is_empty()).then(|| format!("RBAC: {}", aggregate(&unresolved)))
}

/// Several errors as one.
pub(crate) fn aggregate(errors: &[String]) -> String {
    match errors {
        [error] => error.clone(),
        errors => format!("[{}]", errors.join(", ")),
    }
}

fn role_covers(state: &ServerState, binding: &Value, namespace: &str, act: &Act) -> bool {
    let mut allowed = false;
    role(state, binding, namespace, &mut |rule| {
        allowed = allowed || covers(rule, act);
    });
    allowed
}

fn by(kind: &str, name: &str, binding: &Value, subject: &Value) -> String {
    let text = |value: &Value, path: &str| {
        at(value, path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let who = match text(subject, "kind").as_str() {
        "ServiceAccount" => format!("{}/{}", text(subject, "name"), text(subject, "namespace")),
        _ => text(subject, "name"),
    };
    format!(
        "RBAC: allowed by {kind} {name:?} of {} {:?} to {} {who:?}",
        text(binding, "roleRef.kind"),
        text(binding, "roleRef.name"),
        text(subject, "kind"),
    )
}

/// The rules that hold for a user in a namespace (and everywhere), in order of bindings.
pub(crate) fn rules(state: &ServerState, user: &User, namespace: &str) -> Vec<Value> {
    let mut out = Vec::new();
    visit(state, user, namespace, &mut |rule| out.push(rule.clone()));
    out
}

fn list(state: &ServerState, resource: &str, namespace: Option<&str>) -> Vec<Arc<Stored>> {
    let snapshot = state
        .store
        .list(&GroupResource::new(GROUP, resource), namespace, None, None);
    snapshot.map(|snapshot| snapshot.items).unwrap_or_default()
}

fn visit(state: &ServerState, user: &User, namespace: &str, see: &mut impl FnMut(&Value)) {
    for binding in list(state, "clusterrolebindings", None) {
        if applies(&binding.value, user, "") {
            role(state, &binding.value, "", see);
        }
    }
    if namespace.is_empty() {
        return;
    }
    for binding in list(state, "rolebindings", Some(namespace)) {
        if applies(&binding.value, user, namespace) {
            role(state, &binding.value, namespace, see);
        }
    }
}

/// Whether a binding names the user, one of their groups, or the service account that they are.
fn applies(binding: &Value, user: &User, namespace: &str) -> bool {
    subject_of(binding, user, namespace).is_some()
}

/// The first of a binding's subjects that the user is.
fn subject_of<'a>(binding: &'a Value, user: &User, namespace: &str) -> Option<&'a Value> {
    let subjects = binding.get("subjects").and_then(Value::as_array);
    subjects.into_iter().flatten().find(|subject| {
        let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("kind") {
            "User" => text("name") == user.name,
            "Group" => user.groups.iter().any(|group| group == text("name")),
            "ServiceAccount" => {
                let of = if text("namespace").is_empty() {
                    namespace
                } else {
                    text("namespace")
                };
                service_account(&user.name) == Some((of, text("name")))
            }
            _ => false,
        }
    })
}

/// The role that a binding refers to.
fn role_of(state: &ServerState, binding: &Value, namespace: &str) -> Option<Arc<Stored>> {
    let text = |path: &str| at(binding, path).and_then(Value::as_str).unwrap_or_default();
    let (resource, key) = match text("roleRef.kind") {
        "ClusterRole" => ("clusterroles", ObjectKey::new("", text("roleRef.name"))),
        _ => ("roles", ObjectKey::new(namespace, text("roleRef.name"))),
    };
    state.store.get(&GroupResource::new(GROUP, resource), &key)
}

/// Shows the rules of the role that a binding refers to.
fn role(state: &ServerState, binding: &Value, namespace: &str, see: &mut impl FnMut(&Value)) {
    let Some(found) = role_of(state, binding, namespace) else {
        return;
    };
    own_rules(&found.value, see);
    // On a real cluster a controller writes these rules into the role; here they are always as if it had.
    let mut open: Vec<Arc<Stored>> = vec![found];
    let mut seen: Vec<String> = Vec::new();
    while let Some(role) = open.pop() {
        seen.push(role.value.name().to_owned());
        let selectors = at(&role.value, "aggregationRule.clusterRoleSelectors").and_then(Value::as_array);
        for selector in selectors.into_iter().flatten() {
            for part in list(state, "clusterroles", None) {
                let name = part.value.name();
                if !seen.iter().any(|known| known == name)
                    && matches_selector(Some(selector), string_map(&part.value, "labels"))
                {
                    own_rules(&part.value, see);
                    open.push(part);
                }
            }
        }
    }
}

fn own_rules(role: &Value, see: &mut impl FnMut(&Value)) {
    let rules = role.get("rules").and_then(Value::as_array);
    rules.into_iter().flatten().for_each(see);
}

/// Whether a rule covers an act.
fn covers(rule: &Value, act: &Act) -> bool {
    let has = |field: &str, wanted: &dyn Fn(&str) -> bool| {
        let list = rule.get(field).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).any(wanted)
    };
    if !has("verbs", &|verb| verb == "*" || verb == act.verb) {
        return false;
    }
    if act.resource.is_empty() {
        return has("nonResourceURLs", &|url| match url.strip_suffix('*') {
            Some(prefix) => act.path.starts_with(prefix),
            None => act.path == url,
        });
    }
    let combined = format!("{}/{}", act.resource, act.subresource);
    let any_of_subresource = format!("*/{}", act.subresource);
    let resource = |given: &str| {
        given == "*"
            || if act.subresource.is_empty() {
                given == act.resource
            } else {
                given == combined || given == any_of_subresource
            }
    };
    let named = rule
        .get("resourceNames")
        .and_then(Value::as_array)
        .is_none_or(Array::is_empty);
    has("apiGroups", &|group| group == "*" || group == act.group)
        && has("resources", &resource)
        && (named || has("resourceNames", &|name| name == act.name))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    fn act(text: &str) -> Act {
        let words: Vec<&str> = text.split(' ').collect();
        let (resource, subresource) = words[2].split_once('/').unwrap_or((words[2], ""));
        Act {
            verb: words[0].to_owned(),
            group: words[1].trim_matches('"').to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: words.get(3).copied().unwrap_or_default().to_owned(),
            ..Act::default()
        }
    }

    #[rstest]
    #[case(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), "get \"\" pods", true)]
    #[case(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), "get \"\" pods/status", false)]
    #[case(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), "get apps pods", false)]
    #[case(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), "delete apps deployments/scale x", true)]
    #[case(json!({"verbs": ["patch"], "apiGroups": ["apps"], "resources": ["*/scale"]}), "patch apps deployments/scale x", true)]
    #[case(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}), "get \"\" pods a", true)]
    #[case(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}), "get \"\" pods b", false)]
    fn rules(#[case] rule: Value, #[case] asked: &str, #[case] expected: bool) {
        assert_eq!(covers(&rule, &act(asked)), expected);
    }

    #[rstest]
    #[case("/healthz/*", "/healthz/etcd", true)]
    #[case("/healthz", "/healthz/etcd", false)]
    #[case("*", "/metrics", true)]
    fn paths(#[case] url: &str, #[case] path: &str, #[case] expected: bool) {
        let rule = json!({"verbs": ["get"], "nonResourceURLs": [url]});
        assert_eq!(covers(&rule, &Act::path(&http::Method::GET, path)), expected);
    }
}
