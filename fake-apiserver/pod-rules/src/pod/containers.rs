//! Containers of all three sorts.

use std::collections::BTreeSet;

use shared_json::{Map, Value};

use super::{Around, Release, env, mounts, ports, probes, security};
use crate::amounts;
use crate::errors::Errors;
use crate::fields::{Fields, NOTHING};
use crate::names;
use crate::path::Path;

const NOT_FOR_INIT: &str = "may not be set for init containers without restartPolicy=Always";

/// The main containers.
pub(super) fn main(around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    let containers = around.spec.list("containers");
    if containers.is_empty() {
        return errors.required(path, "");
    }
    let mut names = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let at = path.index(index);
        common(around, container, &at, errors);
        if !names.insert(container.text("name")) {
            errors.duplicate(&at.field("name"), container.text("name"));
        }
        probes::lifecycle(around, container, &at.field("lifecycle"), errors);
        probes::all(around.release, container, &at, errors);
        restart_rules(around.release, container, false, &at, errors);
    }
    ports::conflicts(containers.iter().enumerate(), path, errors);
}

/// The containers that run before.
pub(super) fn init(around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    let mut names: BTreeSet<&str> = around
        .spec
        .list("containers")
        .iter()
        .map(|container| container.text("name"))
        .collect();
    for (index, container) in around.spec.list("initContainers").iter().enumerate() {
        let at = path.index(index);
        common(around, container, &at, errors);
        restart_rules(around.release, container, true, &at, errors);
        let name = container.text("name");
        if names.contains(name) {
            errors.duplicate(&at.field("name"), name);
        } else if !name.is_empty() {
            names.insert(name);
        }
        // The real server gives each of them the first's place.
        ports::conflicts(std::iter::once((0, container)), path, errors);
        if container.text("restartPolicy") == "Always" {
            probes::lifecycle(around, container, &at.field("lifecycle"), errors);
            probes::all(around.release, container, &at, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.has(field) {
                errors.forbidden(&at.field(field), NOT_FOR_INIT);
            }
        }
        let policies = at.field("resizePolicy");
        for (index, policy) in container.list("resizePolicy").iter().enumerate() {
            if policy.text("restartPolicy") == "RestartContainer" {
                errors.invalid(
                    &policies.index(index).field("restartPolicy"),
                    "RestartContainer",
                    "must not be set to 'RestartContainer' for non-sidecar initContainers",
                );
            }
        }
    }
}

/// Fields that a container for debugging cannot have.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];
const NO_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// The containers for debugging.
pub(super) fn ephemeral(around: &Around<'_>, path: &Path<'_>, errors: &mut Errors) {
    let list = around.spec.list("ephemeralContainers");
    if list.is_empty() {
        return;
    }
    let others: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|field| around.spec.list(field))
        .map(|container| container.text("name"))
        .collect();
    let mut names = others.clone();
    for (index, container) in list.iter().enumerate() {
        let at = path.index(index);
        common(around, container, &at, errors);
        trimmed_image(container, &at, errors);
        if !names.insert(container.text("name")) {
            errors.duplicate(&at.field("name"), container.text("name"));
        }
        let target = container.text("targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(&at.field("targetContainerName"), target);
        }
        for field in NOT_EPHEMERAL {
            let set = match container.part(field) {
                // The one of these that is no pointer in Go is not there when it is empty.
                Some(Value::Object(map)) => field != "resources" || !map.is_empty(),
                other => other.is_some(),
            };
            if set {
                errors.forbidden(&at.field(field), NO_EPHEMERAL);
            }
        }
        let mounts = at.field("volumeMounts");
        for (index, mount) in container.list("volumeMounts").iter().enumerate() {
            for field in ["subPath", "subPathExpr"] {
                if !mount.text(field).is_empty() {
                    errors.forbidden(&mounts.index(index).field(field), NO_EPHEMERAL);
                }
            }
        }
    }
}

/// The rules for every container.
fn common(around: &Around<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = container.text("name");
    if name.is_empty() {
        errors.required(&path.field("name"), "");
    } else {
        errors.problems(&path.field("name"), name, names::label_problems(name));
    }
    if container.text("image").is_empty() {
        errors.required(&path.field("image"), "");
    }
    errors.one_of(
        &path.field("terminationMessagePolicy"),
        container.text("terminationMessagePolicy"),
        &["File", "FallbackToLogsOnError"],
    );
    ports::check(container.list("ports"), &path.field("ports"), errors);
    env::variables(around.release, container.list("env"), &path.field("env"), errors);
    env::sources(
        around.release,
        container.list("envFrom"),
        &path.field("envFrom"),
        errors,
    );
    mounts::check(around, container, path, errors);
    pull_policy(
        container.text("imagePullPolicy"),
        &path.field("imagePullPolicy"),
        errors,
    );
    let resources = container.part("resources").unwrap_or(&NOTHING);
    let at = path.field("resources");
    amounts::requirements(
        resources.map("requests"),
        resources.map("limits"),
        amounts::container_resource_name,
        &at,
        errors,
    );
    claims(around.spec, resources.list("claims"), &at.field("claims"), errors);
    resize_policy(around, container, &path.field("resizePolicy"), errors);
    security::of_container(around, container, &path.field("securityContext"), errors);
}

/// When an image is fetched.
pub(super) fn pull_policy(policy: &str, path: &Path<'_>, errors: &mut Errors) {
    errors.one_of(path, policy, &["Always", "IfNotPresent", "Never"]);
}

/// An image must not be padded; templates may be completed later and are not asked.
pub(super) fn trimmed_image(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let image = container.text("image");
    if image.trim().len() != image.len() {
        errors.invalid(
            &path.field("image"),
            image,
            "must not have leading or trailing whitespace",
        );
    }
}

fn claims(spec: &Value, claims: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let at = path.index(index);
        let (name, request) = (claim.text("name"), claim.text("request"));
        if name.is_empty() {
            errors.required(&at, "");
            continue;
        }
        if seen.contains(name) {
            errors.duplicate(&at, name);
        } else {
            let key = if request.is_empty() {
                name.to_owned()
            } else {
                errors.problems(&at.field("request"), request, names::label_problems(request));
                format!("{name}/{request}")
            };
            let part = format!("{name}/");
            let overlaps = request.is_empty() && seen.iter().any(|other| other.starts_with(&part));
            if overlaps {
                errors.duplicate(&at, name);
            } else if seen.contains(&key) {
                errors.duplicate(&at, key.as_str());
            }
            seen.insert(key);
        }
        let mut known: Vec<&str> = spec
            .list("resourceClaims")
            .iter()
            .map(|claim| claim.text("name"))
            .filter(|name| !name.is_empty())
            .collect();
        if !known.contains(&name) {
            known.sort_unstable();
            let mut error = crate::field_error::FieldError::not_found(at.to_string(), name);
            error.detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
            error.detail.push_str(&match known.as_slice() {
                [] => " which is empty".to_owned(),
                known => format!(": {}", known.join(", ")),
            });
            errors.push(error);
        }
    }
}

fn resize_policy(around: &Around<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, policy) in container.list("resizePolicy").iter().enumerate() {
        let (resource, restart) = (policy.text("resourceName"), policy.text("restartPolicy"));
        if !seen.insert(resource) {
            errors.duplicate(&path.index(index), resource);
        }
        errors.one_of(path, resource, &["cpu", "memory"]);
        errors.one_of(path, restart, &["NotRequired", "RestartContainer"]);
        if around.spec.text("restartPolicy") == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.invalid(path, restart, detail);
        }
    }
}

/// How a container of its own mind is restarted.
fn restart_rules(release: Release, container: &Value, is_init: bool, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("restartPolicy");
    if release < Release::V1_36 {
        return match container.text_if_set("restartPolicy") {
            Some(policy) if is_init => errors.one_of_or_empty(&at, policy, &["Always"]),
            Some(_) => errors.forbidden(&at, "may not be set for non-init containers"),
            None => {}
        };
    }
    let rules = container.list("restartPolicyRules");
    match container.text_if_set("restartPolicy") {
        None if rules.is_empty() => return,
        None => {
            errors.required(&at, "must specify restartPolicy when restart rules are used");
            if is_init {
                return;
            }
        }
        Some(policy) => errors.one_of_or_empty(&at, policy, &["Always", "Never", "OnFailure"]),
    }
    let path = path.field("restartPolicyRules");
    if rules.len() > 20 {
        errors.too_many(&path, rules.len(), 20);
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = path.index(index);
        errors.one_of_or_empty(
            &at.field("action"),
            rule.text("action"),
            &["Restart", "RestartAllContainers"],
        );
        let at = at.field("exitCodes");
        let Some(codes) = rule.part("exitCodes") else {
            errors.required(&at, "must be specified");
            continue;
        };
        errors.one_of_or_empty(&at.field("operator"), codes.text("operator"), &["In", "NotIn"]);
        let values = codes.list("values").len();
        if values > 255 {
            errors.too_many(&at.field("values"), values, 255);
        }
    }
}

/// The resources of a pod as a whole, which its containers must fit.
pub(super) fn of_pod(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(resources) = spec.part("resources") else {
        return;
    };
    let path = path.field("resources");
    if spec.part("os").is_some_and(|os| os.text("name") == "windows") {
        return errors.forbidden(&path, "may not be set for a windows pod");
    }
    if resources.has("claims") {
        errors.forbidden(
            &path.field("claims"),
            "claims may not be set for Resources at pod-level",
        );
    }
    amounts::requirements(
        resources.map("requests"),
        resources.map("limits"),
        pod_resource_name,
        &path,
        errors,
    );
    claims(spec, resources.list("claims"), &path.field("claims"), errors);
    let requests = path.field("requests");
    for (name, amount) in resources.map("requests") {
        let is_asked = |container: &Value| {
            let resources = container.part("resources").unwrap_or(&NOTHING);
            resources.map("requests").contains_key(name)
        };
        if !spec.list("containers").iter().any(is_asked) {
            continue;
        }
        let sum = sum(spec, name);
        let amount = crate::quantity::Quantity::of(amount);
        if sum.nanos() > amount.nanos() {
            let detail = format!(
                "must be greater than or equal to aggregate container requests of {}",
                sum.canonical()
            );
            errors.invalid(&requests.key(name), amount.canonical(), detail);
        }
    }
    let containers = path.field("containers");
    for (index, container) in spec.list("containers").iter().enumerate() {
        let limits: &Map = container.part("resources").unwrap_or(&NOTHING).map("limits");
        for (name, limit) in limits {
            let Some(most) = resources.map("limits").get(name) else {
                continue;
            };
            let (limit, most) = (
                crate::quantity::Quantity::of(limit),
                crate::quantity::Quantity::of(most),
            );
            if limit.nanos() > most.nanos() {
                let detail = format!("must be less than or equal to pod limits of {}", most.canonical());
                let at = containers.index(index);
                errors.invalid(&at.key(name).field("limits"), limit.canonical(), detail);
            }
        }
    }
}

fn sum(spec: &Value, resource: &str) -> crate::quantity::Quantity {
    let requests = spec.list("containers").iter().filter_map(|container| {
        container
            .part("resources")?
            .map("requests")
            .get(resource)
            .map(crate::quantity::Quantity::of)
    });
    requests.fold(
        crate::quantity::Quantity::count(0),
        crate::quantity::Quantity::plus,
    )
}

fn pod_resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let found = errors.len();
    amounts::resource_name(name, path, errors);
    if errors.len() == found && !amounts::is_huge_page(name) && !matches!(name, "cpu" | "memory") {
        errors.not_supported(path, name, &["cpu", "hugepages-", "memory"]);
    }
}
