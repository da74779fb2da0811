//! Matching of requests against a policy's `MatchResources`.

use machinery::meta::{at, string_map};
use machinery::selector::matches_selector;
use shared_json::{Array, Map, Value};
use store::{GroupResource, ObjectKey};

use super::Attributes;
use crate::server::ServerState;

/// The namespace that a request is in, or that it is about.
pub(super) fn namespace_of(server: &ServerState, attributes: &Attributes) -> Option<Value> {
    if attributes.is("", "namespaces") {
        return None;
    }
    let key = ObjectKey::new("", &attributes.namespace);
    let stored = server.store.get(&GroupResource::new("", "namespaces"), &key);
    stored.map(|stored| stored.value.clone())
}

/// Whether the rules and selectors of `MatchResources` choose the request.
pub(super) fn matches(rules: &Value, attributes: &Attributes, namespace: Option<&Value>) -> bool {
    let listed = |field: &str| {
        at(rules, field)
            .and_then(Value::as_array)
            .filter(|list| !list.is_empty())
    };
    let equivalent = rules.get("matchPolicy").and_then(Value::as_str) != Some("Exact");
    let chosen = |list: &Array| list.iter().any(|rule| is_about(rule, attributes, equivalent));
    selects_namespace(rules, attributes, namespace)
        && selects_object(rules, attributes)
        && !listed("excludeResourceRules").is_some_and(chosen)
        && listed("resourceRules").is_none_or(chosen)
}

fn is_empty(selector: &Value) -> bool {
    selector.as_object().is_none_or(|parts| {
        parts
            .values()
            .all(|part| part.is_null() || part.as_array().is_some_and(Array::is_empty))
    })
}

fn selects_namespace(rules: &Value, attributes: &Attributes, namespace: Option<&Value>) -> bool {
    let Some(selector) = rules
        .get("namespaceSelector")
        .filter(|selector| !is_empty(selector))
    else {
        return true;
    };
    let own = || attributes.object.as_ref().or(attributes.old.as_ref());
    let holder = if attributes.is("", "namespaces") {
        own()
    } else if attributes.resource.namespaced {
        namespace
    } else {
        return true;
    };
    match holder {
        Some(holder) => matches_selector(Some(selector), string_map(holder, "labels")),
        None => matches_selector(Some(selector), &Map::new()),
    }
}

fn selects_object(rules: &Value, attributes: &Attributes) -> bool {
    let Some(selector) = rules.get("objectSelector").filter(|selector| !is_empty(selector)) else {
        return true;
    };
    let mut objects = [&attributes.object, &attributes.old].into_iter().flatten();
    objects.any(|object| matches_selector(Some(selector), string_map(object, "labels")))
}

fn has(rule: &Value, field: &str, wanted: &str) -> bool {
    let list = rule.get(field).and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|entry| entry == "*" || entry == wanted))
}

fn is_about(rule: &Value, attributes: &Attributes, equivalent: bool) -> bool {
    let resource = &attributes.resource;
    let names = rule
        .get("resourceNames")
        .and_then(Value::as_array)
        .filter(|names| !names.is_empty());
    let scope = match rule.get("scope").and_then(Value::as_str) {
        Some("Namespaced") => resource.namespaced,
        Some("Cluster") => !resource.namespaced,
        _ => true,
    };
    scope
        && has(rule, "operations", attributes.operation.as_str())
        && has(rule, "apiGroups", &resource.group)
        && (equivalent || has(rule, "apiVersions", &resource.version))
        && names.is_none_or(|names| names.iter().any(|name| *name == attributes.name))
        && names_resource(rule, &resource.plural, &attributes.subresource)
}

fn names_resource(rule: &Value, plural: &str, subresource: &str) -> bool {
    let entries = rule.get("resources").and_then(Value::as_array);
    let covers = |given: &str, wanted: &str| given == "*" || given == wanted;
    entries
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .any(|entry| match entry.split_once('/') {
            Some((main, sub)) => covers(main, plural) && covers(sub, subresource),
            None => covers(entry, plural) && subresource.is_empty(),
        })
}
