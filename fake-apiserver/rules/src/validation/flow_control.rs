//! Priority and fairness: FlowSchemas and PriorityLevelConfigurations.

use pod_rules::names;
use shared_json::{Value, json};

use super::errors::Errors;
use super::fields::{Fields, NOTHING};
use super::path::Path;

/// The name of the schema, and of the level, that are exempt from limits.
const EXEMPT: &str = "exempt";
const PRECEDENCE_MAX: i64 = 10_000;
const QUEUES_MAX: i64 = 10_000_000;
/// How many bits of a flow's hash choose its queues.
const HASH_BITS_MAX: f64 = 60.0;
const VERBS: [&str; 9] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];
/// Kinds of subjects, and where each is described.
const SUBJECTS: [(&str, &str); 3] = [
    ("ServiceAccount", "serviceAccount"),
    ("User", "user"),
    ("Group", "group"),
];
const POSITIVE: &str = "must be positive";

/// A FlowSchema.
pub(super) fn schema(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    let precedence = spec.int("matchingPrecedence").unwrap_or_default();
    let at = path.field("matchingPrecedence");
    if precedence <= 0 {
        errors.invalid(&at, precedence, "must be a positive value");
    }
    if precedence > PRECEDENCE_MAX {
        errors.invalid(
            &at,
            precedence,
            format!("must not be greater than {PRECEDENCE_MAX}"),
        );
    }
    if precedence == 1 && name(object) != EXEMPT {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.invalid(&at, precedence, detail);
    }
    if let Some(method) = spec.part("distinguisherMethod")
        && !matches!(method.text("type"), "ByNamespace" | "ByUser")
    {
        let at = path.field("distinguisherMethod");
        let shown = json!({"Type": method.text("type")}).to_string();
        errors.not_supported_shown(&at.field("type"), shown, &["ByNamespace", "ByUser"]);
    }
    let level = spec.part("priorityLevelConfiguration").unwrap_or(&NOTHING);
    let at = path.field("priorityLevelConfiguration");
    match level.text("name") {
        "" => errors.required(&at.field("name"), "must reference a priority level"),
        name => errors.problems(&at.field("name"), name, names::subdomain_problems(name)),
    }
    let rules = path.field("rules");
    for (index, rule) in spec.list("rules").iter().enumerate() {
        flow_rule(rule, &rules.index(index), errors);
    }
    conditions(object, errors);
}

fn name(object: &Value) -> &str {
    object.part("metadata").map_or("", |meta| meta.text("name"))
}

fn flow_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let subjects = path.field("subjects");
    if rule.list("subjects").is_empty() {
        errors.required(&subjects, "subjects must contain at least one value");
    }
    for (index, each) in rule.list("subjects").iter().enumerate() {
        subject(each, &subjects.index(index), errors);
    }
    if rule.list("resourceRules").is_empty() && rule.list("nonResourceRules").is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.required(path, detail);
    }
    let at = path.field("resourceRules");
    for (index, each) in rule.list("resourceRules").iter().enumerate() {
        resource_rule(each, &at.index(index), errors);
    }
    let at = path.field("nonResourceRules");
    for (index, each) in rule.list("nonResourceRules").iter().enumerate() {
        url_rule(each, &at.index(index), errors);
    }
}

fn subject(subject: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = subject.text("kind");
    let Some((_, field)) = SUBJECTS.iter().find(|(known, _)| *known == kind) else {
        let kinds = ["Group", "ServiceAccount", "User"];
        return errors.not_supported(&path.field("kind"), kind, &kinds);
    };
    let at = path.field(field);
    match subject.part(field) {
        None => errors.required(&at, &format!("{field} is required when subject kind is '{kind}'")),
        Some(described) => {
            let name = described.text("name");
            if name.is_empty() {
                errors.required(&at.field("name"), "");
            } else if kind == "ServiceAccount" && name != "*" {
                errors.problems(&at.field("name"), name, names::subdomain_problems(name));
            }
            if kind == "ServiceAccount" {
                match described.text("namespace") {
                    "" => {
                        let detail = "must specify namespace for service account";
                        errors.required(&at.field("namespace"), detail);
                    }
                    space => errors.problems(&at.field("namespace"), space, names::label_problems(space)),
                }
            }
        }
    }
    let order: [usize; 2] = match kind {
        "ServiceAccount" => [1, 2],
        "User" => [0, 2],
        _ => [0, 1],
    };
    for (other, field) in order.iter().filter_map(|index| SUBJECTS.get(*index)) {
        if subject.has(field) {
            let detail = format!("{field} is forbidden when subject kind is not '{other}'");
            errors.forbidden(&path.field(field), &detail);
        }
    }
}

fn has_all(list: &[Value]) -> bool {
    list.iter().any(|item| item == "*")
}

/// `*` must stand alone.
fn alone(rule: &Value, field: &str, what: &str, path: &Path<'_>, errors: &mut Errors) -> bool {
    let list = rule.list(field);
    if list.len() > 1 && has_all(list) {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.invalid(&path.field(field), list.to_vec(), detail);
    }
    has_all(list)
}

fn verbs(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let list = rule.list("verbs");
    if list.is_empty() {
        errors.required(&path.field("verbs"), "verbs must contain at least one value");
    } else if !alone(rule, "verbs", "verbs", path, errors)
        && !rule.texts("verbs").all(|verb| VERBS.contains(&verb))
    {
        errors.not_supported(&path.field("verbs"), list.to_vec(), &VERBS);
    }
}

fn resource_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    verbs(rule, path, errors);
    for (field, one, what) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        if rule.list(field).is_empty() {
            let detail = format!("resource rules must supply at least one {one}");
            errors.required(&path.field(field), &detail);
        } else {
            alone(rule, field, what, path, errors);
        }
    }
    let at = path.field("namespaces");
    if rule.list("namespaces").is_empty() && !rule.is_true("clusterScope") {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.required(&at, detail);
    } else if !alone(rule, "namespaces", "namespaces", path, errors) {
        for (index, space) in rule.texts("namespaces").enumerate() {
            for problem in names::label_problems(space) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {problem}");
                errors.invalid(&at.index(index), space, detail);
            }
        }
    }
}

fn url_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    verbs(rule, path, errors);
    let at = path.field("nonResourceURLs");
    if rule.list("nonResourceURLs").is_empty() {
        errors.required(&at, "nonResourceURLs must contain at least one value");
    } else if !alone(rule, "nonResourceURLs", "non-resource URLs", path, errors) {
        for (index, url) in rule.texts("nonResourceURLs").enumerate() {
            if let Some(problem) = url_problem(url) {
                errors.invalid(&at.index(index), url, problem);
            }
        }
    }
}

fn url_problem(url: &str) -> Option<&'static str> {
    let stars = url.matches('*').count();
    if url.is_empty() {
        Some("must not be empty")
    } else if !url.starts_with('/') {
        Some("must start with slash")
    } else if url.contains(' ') {
        Some("must not contain white-space")
    } else if url.contains("//") {
        Some("must not contain double slash")
    } else if stars > 1 || (stars == 1 && !url.ends_with("/*")) {
        Some("wildcard can only do suffix matching")
    } else {
        None
    }
}

fn conditions(object: &Value, errors: &mut Errors) {
    let status = object.part("status").unwrap_or(&NOTHING);
    let path = Path::new("status.conditions");
    let conditions = status.list("conditions");
    for (index, condition) in conditions.iter().enumerate() {
        let at = path.index(index);
        let kind = condition.text("type");
        let before = conditions.iter().take(index);
        if before.into_iter().any(|other| other.text("type") == kind) {
            errors.duplicate(&at.field("type"), kind);
        }
        if kind.is_empty() {
            errors.required(&at.field("type"), "");
        }
    }
}

/// The status of either kind.
pub(super) fn status(new: &Value, _: &Value, errors: &mut Errors) {
    conditions(new, errors);
}

/// A PriorityLevelConfiguration.
pub(super) fn level(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    let kind = spec.text("type");
    if (name(object) == EXEMPT) != (kind == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.invalid(&path.field("type"), kind, detail);
    }
    match kind {
        "Exempt" => {
            if spec.has("limited") {
                let detail = "must be nil if the type is not Limited";
                errors.forbidden(&path.field("limited"), detail);
            }
            if let Some(exempt) = spec.part("exempt") {
                shares(exempt, &path.field("exempt"), errors);
                lendable(exempt, &path.field("exempt"), errors);
            }
        }
        "Limited" => {
            if spec.has("exempt") {
                let detail = "must be nil if the type is Limited";
                errors.forbidden(&path.field("exempt"), detail);
            }
            match spec.part("limited") {
                None => {
                    let detail = "must not be empty when type is Limited";
                    errors.required(&path.field("limited"), detail);
                }
                Some(limited) => limits(limited, &path.field("limited"), errors),
            }
        }
        _ => errors.not_supported(&path.field("type"), kind, &["Exempt", "Limited"]),
    }
    conditions(object, errors);
}

fn shares(limits: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(shares) = limits
        .int("nominalConcurrencyShares")
        .filter(|shares| *shares < 0)
    {
        let at = path.field("nominalConcurrencyShares");
        errors.invalid(&at, shares, "must be a non-negative integer");
    }
}

fn lendable(limits: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(percent) = limits.int("lendablePercent") {
        errors.in_range(&path.field("lendablePercent"), percent, 0, 100);
    }
}

fn limits(limited: &Value, path: &Path<'_>, errors: &mut Errors) {
    shares(limited, path, errors);
    let response = limited.part("limitResponse").unwrap_or(&NOTHING);
    let at = path.field("limitResponse");
    match (response.text("type"), response.part("queuing")) {
        ("Reject", Some(_)) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            errors.forbidden(&at.field("queuing"), detail);
        }
        ("Reject", None) => {}
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.required(&at.field("queuing"), detail);
        }
        ("Queue", Some(queuing)) => queues(queuing, &at.field("queuing"), errors),
        (kind, _) => errors.not_supported(&at.field("type"), kind, &["Queue", "Reject"]),
    }
    lendable(limited, path, errors);
    if let Some(percent) = limited
        .int("borrowingLimitPercent")
        .filter(|percent| *percent < 0)
    {
        let detail = "if specified, must be a non-negative integer";
        errors.invalid(&path.field("borrowingLimitPercent"), percent, detail);
    }
}

fn queues(queuing: &Value, path: &Path<'_>, errors: &mut Errors) {
    let number = |field: &str| queuing.int(field).unwrap_or_default();
    let (length, queues, hand) = (number("queueLengthLimit"), number("queues"), number("handSize"));
    if length <= 0 {
        errors.invalid(&path.field("queueLengthLimit"), length, POSITIVE);
    }
    if queues <= 0 {
        errors.invalid(&path.field("queues"), queues, POSITIVE);
    } else if queues > QUEUES_MAX {
        let detail = format!("must not be greater than {QUEUES_MAX}");
        errors.invalid(&path.field("queues"), queues, detail);
    }
    let at = path.field("handSize");
    if hand <= 0 {
        errors.invalid(&at, hand, POSITIVE);
    } else if hand > queues {
        let detail = format!("should not be greater than queues ({queues})");
        errors.invalid(&at, hand, detail);
    } else if ((queues as f64).log2() * hand as f64).ceil() > HASH_BITS_MAX {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS_MAX}"
        );
        errors.invalid(&at, hand, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn said(check: fn(&Value, &mut Errors), object: &Value) -> Vec<String> {
        let mut errors = Errors::default();
        check(object, &mut errors);
        errors.into_vec().iter().map(ToString::to_string).collect()
    }

    #[rstest]
    #[case(json!({"matchingPrecedence": 5, "priorityLevelConfiguration": {"name": "x"}}), &[])]
    #[case(json!({"matchingPrecedence": 1, "priorityLevelConfiguration": {"name": ""}}), &[
        "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
        "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
    ])]
    #[case(json!({"matchingPrecedence": 5, "priorityLevelConfiguration": {"name": "x"}, "rules": [{}]}), &[
        "spec.rules[0].subjects: Required value: subjects must contain at least one value",
        "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
    ])]
    #[case(json!({"matchingPrecedence": 5, "priorityLevelConfiguration": {"name": "x"}, "rules": [{
        "subjects": [{"kind": "User"}, {"kind": "Group", "group": {"name": "g"}, "user": {"name": "u"}}],
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*", "a"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["get", "put"], "nonResourceURLs": ["a", "/a*"]}],
    }]}), &[
        "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
        "spec.rules[0].subjects[1].user: Forbidden: user is forbidden when subject kind is not 'User'",
        "spec.rules[0].resourceRules[0].apiGroups: Invalid value: [\"*\",\"a\"]: if '*' is present, must not specify other api groups",
        "spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace",
        "spec.rules[0].nonResourceRules[0].verbs: Unsupported value: [\"get\",\"put\"]: supported values: \"create\", \"delete\", \"deletecollection\", \"get\", \"list\", \"patch\", \"proxy\", \"update\", \"watch\"",
        "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: \"a\": must start with slash",
        "spec.rules[0].nonResourceRules[0].nonResourceURLs[1]: Invalid value: \"/a*\": wildcard can only do suffix matching",
    ])]
    fn schemas(#[case] spec: Value, #[case] expect: &[&str]) {
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        assert_eq!(said(schema, &object), expect);
    }

    #[rstest]
    #[case("exempt", json!({"type": "Exempt"}), &[])]
    #[case("a", json!({"type": "Exempt", "limited": {}}), &[
        "spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
        "spec.limited: Forbidden: must be nil if the type is not Limited",
    ])]
    #[case("a", json!({"type": "Limited"}), &["spec.limited: Required value: must not be empty when type is Limited"])]
    #[case("a", json!({"type": "Limited", "limited": {"lendablePercent": 101, "limitResponse": {"type": "Queue",
        "queuing": {"queues": 1024, "handSize": 7, "queueLengthLimit": 0}}}}), &[
        "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: 0: must be positive",
        "spec.limited.limitResponse.queuing.handSize: Invalid value: 7: required entropy bits of deckSize 1024 and handSize 7 should not be greater than 60",
        "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
    ])]
    fn levels(#[case] name: &str, #[case] spec: Value, #[case] expect: &[&str]) {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        assert_eq!(said(level, &object), expect);
    }
}
