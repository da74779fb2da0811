//! Prevention of privilege escalation: roles and bindings that grant more than their writer has are refused,
//! unless the writer may `escalate` roles or `bind` the role in question.

use machinery::meta::{ObjectMeta as _, at};
use machinery::status::ApiError;
use shared_json::{Array, Value, json};
use store::{GroupResource, ObjectKey};

use super::{Act, allows, is_master, rbac};
use crate::context::Context;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Refuses a role or a binding that grants more than its writer has. `old` is the stored object.
///
/// # Errors
/// 403; 404 where a role that is bound does not exist.
pub(crate) fn check(context: &Context, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    if context.resource.group != GROUP
        || is_master(&context.user)
        || old.is_some_and(|old| is_same(object, old))
    {
        return Ok(());
    }
    let resource = context.resource.plural.as_str();
    let namespace = context.request.namespace.as_str();
    let may = |verb: &str, resource: &str, name: &str| {
        let act = Act {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Act::default()
        };
        allows(context.state(), &context.user, &act)
    };
    let rules = if matches!(resource, "rolebindings" | "clusterrolebindings") {
        let text = |path: &str| at(object, path).and_then(Value::as_str).unwrap_or_default();
        let (kind, name) = (text("roleRef.kind"), text("roleRef.name"));
        let (table, of) = if kind == "Role" {
            ("roles", namespace)
        } else {
            ("clusterroles", "")
        };
        if may("bind", table, name) {
            return Ok(());
        }
        let table = GroupResource::new(GROUP, table);
        let role = context.state().store.get(&table, &ObjectKey::new(of, name));
        // It is the binding of this name that is said not to be there.
        let role = role.ok_or_else(|| ApiError::not_found(&context.resource.group_resource(), name))?;
        rules_of(&role.value)
    } else {
        if may("escalate", resource, object.name()) {
            return Ok(());
        }
        if object.get("aggregationRule").is_some_and(|rule| !rule.is_null()) {
            let everything = [
                json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
                json!({"nonResourceURLs": ["*"], "verbs": ["*"]}),
            ];
            if !missing(context, &everything).is_empty() {
                let why = "must have cluster-admin privileges to use the aggregationRule";
                return Err(ApiError::forbidden(
                    &context.resource.group_resource(),
                    object.name(),
                    why,
                ));
            }
        }
        rules_of(object)
    };
    let missing = missing(context, &rules);
    if missing.is_empty() {
        return Ok(());
    }
    let user = &context.user;
    let unresolved = rbac::unresolved(context.state(), user, &context.request.namespace);
    let unresolved = match unresolved.is_empty() {
        true => String::new(),
        false => format!("; resolution errors: [{}]", rbac::aggregate(&unresolved)),
    };
    let why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}{unresolved}",
        user.name,
        quoted(user.groups.iter().map(String::as_str)),
        missing.join("\n")
    );
    Err(ApiError::forbidden(
        &context.resource.group_resource(),
        object.name(),
        &why,
    ))
}

/// Whether an update changes nothing that grants rights: labels, owners and finalizers may change.
fn is_same(object: &Value, old: &Value) -> bool {
    ["rules", "aggregationRule", "roleRef", "subjects"]
        .iter()
        .all(|field| object.get(field) == old.get(field))
}

fn rules_of(role: &Value) -> Array {
    role.get("rules")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

/// The parts of rules that the user does not have, as the real server prints them, in order.
fn missing(context: &Context, rules: &[Value]) -> Vec<String> {
    let own = rbac::rules(context.state(), &context.user, &context.request.namespace);
    let parts = rules.iter().flat_map(parts);
    let missing: Vec<Part> = parts
        .filter(|part| !own.iter().any(|rule| part.is_in(rule)))
        .collect();
    let mut out: Vec<String> = compact(missing).iter().map(Part::text).collect();
    out.sort();
    out.dedup();
    out
}

/// A rule about one thing; of one verb, unless compacted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Part {
    group: Option<String>,
    resource: Option<String>,
    url: Option<String>,
    name: Option<String>,
    verbs: Vec<String>,
}

fn texts<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    let list = rule.get(field).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A rule taken apart.
fn parts(rule: &Value) -> Vec<Part> {
    let mut out = Vec::new();
    let verbs = texts(rule, "verbs");
    for group in texts(rule, "apiGroups") {
        for resource in texts(rule, "resources") {
            for verb in &verbs {
                let part = Part {
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    verbs: vec![(*verb).to_owned()],
                    ..Part::default()
                };
                let names = texts(rule, "resourceNames");
                if names.is_empty() {
                    out.push(part);
                } else {
                    out.extend(names.iter().map(|name| Part {
                        name: Some((*name).to_owned()),
                        ..part.clone()
                    }));
                }
            }
        }
    }
    for url in texts(rule, "nonResourceURLs") {
        for verb in &verbs {
            out.push(Part {
                url: Some(url.to_owned()),
                verbs: vec![(*verb).to_owned()],
                ..Part::default()
            });
        }
    }
    out
}

impl Part {
    /// Whether a rule covers this.
    fn is_in(&self, rule: &Value) -> bool {
        let all = |field: &str, wanted: &str| {
            texts(rule, field)
                .iter()
                .any(|given| *given == "*" || *given == wanted)
        };
        if !self.verbs.iter().all(|verb| all("verbs", verb)) {
            return false;
        }
        if let Some(url) = &self.url {
            return texts(rule, "nonResourceURLs")
                .iter()
                .any(|given| match given.strip_suffix('*') {
                    Some(prefix) => url.starts_with(prefix),
                    None => *given == url,
                });
        }
        let (group, resource) = (
            self.group.as_deref().unwrap_or(""),
            self.resource.as_deref().unwrap_or(""),
        );
        let any_of = resource.split_once('/').map(|(_, part)| format!("*/{part}"));
        let names = texts(rule, "resourceNames");
        all("apiGroups", group)
            && (all("resources", resource)
                || any_of.is_some_and(|any| texts(rule, "resources").contains(&any.as_str())))
            && (names.is_empty() || self.name.as_deref().is_some_and(|name| names.contains(&name)))
    }

    /// `{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`
    fn text(&self) -> String {
        let mut fields = Vec::new();
        for (field, value) in [
            ("APIGroups", &self.group),
            ("Resources", &self.resource),
            ("NonResourceURLs", &self.url),
            ("ResourceNames", &self.name),
        ] {
            if let Some(value) = value {
                fields.push(format!("{field}:[{value:?}]"));
            }
        }
        fields.push(format!("Verbs:{}", quoted(self.verbs.iter().map(String::as_str))));
        format!("{{{}}}", fields.join(", "))
    }
}

/// `["a" "b"]`, as Go prints a list of texts.
fn quoted<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!(
        "[{}]",
        texts
            .map(|text| format!("{text:?}"))
            .collect::<Vec<_>>()
            .join(" ")
    )
}

/// Puts the verbs of the same resource together.
fn compact(parts: Vec<Part>) -> Vec<Part> {
    let mut out: Vec<Part> = Vec::new();
    for part in parts {
        let simple = part.url.is_none() && part.name.is_none();
        let same = out.iter_mut().find(|other| {
            simple && other.name.is_none() && (&other.group, &other.resource) == (&part.group, &part.resource)
        });
        match same {
            Some(other) => other.verbs.extend(part.verbs),
            None => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}), json!([]),
        r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}"#)]
    #[case(json!({"apiGroups": [""], "resources": ["secrets", "pods"], "verbs": ["get", "list"]}),
        json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]),
        r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}"#)]
    #[case(json!({"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["patch"]}),
        json!([{"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["patch"]}]), "")]
    #[case(json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"], "verbs": ["get"]}),
        json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["b"], "verbs": ["get"]}]),
        r#"{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}"#)]
    #[case(json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}), json!([{"nonResourceURLs": ["/m*"], "verbs": ["get"]}]), "")]
    #[case(json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}), json!([]), r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#)]
    fn what_is_missing(#[case] granted: Value, #[case] own: Value, #[case] expected: &str) {
        let own = own.as_array().cloned().unwrap_or_default();
        let missing: Vec<Part> = parts(&granted)
            .into_iter()
            .filter(|part| !own.iter().any(|rule| part.is_in(rule)))
            .collect();
        let text: Vec<String> = compact(missing).iter().map(Part::text).collect();
        assert_eq!(text.join(" "), expected);
    }
}
