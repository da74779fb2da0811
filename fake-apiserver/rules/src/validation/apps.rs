//! Workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers, ControllerRevisions.

use machinery::selector::matches_selector;
use pod_rules::names;
use shared_json::Value;

use super::errors::Errors;
use super::fields::{Fields, NOTHING, same};
use super::path::Path;
use super::pod::{self, Scope};
use super::{claim, go, immutable, selectors};

/// A number or a share, `25%`.
pub(super) fn int_or_percent(value: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Some(Value::String(text)) => errors.problems(path, text, names::percent_problems(text)),
        value => errors.not_negative(path, value.and_then(Value::as_i64)),
    }
}

fn share(value: Option<&Value>) -> Option<i64> {
    let text = value?.as_str()?;
    if names::percent_problems(text).is_empty() {
        text.trim_end_matches('%').parse().ok()
    } else {
        None
    }
}

/// The number, or that of percents.
fn number(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::String(text)) => share(value).or_else(|| text.parse().ok()).unwrap_or_default(),
        value => value.and_then(Value::as_i64).unwrap_or_default(),
    }
}

/// A share of at most everything.
pub(super) fn at_most_all(value: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    if share(value).is_some_and(|share| share > 100) {
        errors.invalid(
            path,
            value.cloned().unwrap_or_default(),
            "must not be greater than 100%",
        );
    }
}

fn shown(value: Option<&Value>) -> Value {
    value.cloned().unwrap_or_else(|| Value::from(0))
}

/// A required, non-empty selector; `what` is the name of the kind in the complaint.
fn own_selector(spec: &Value, what: &str, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("selector");
    match spec.part("selector") {
        None => errors.required(&at, ""),
        Some(selector) => {
            selectors::selector(Some(selector), &at, errors);
            if selectors::is_empty(selector) {
                let detail = format!("empty selector is invalid for {what}");
                errors.invalid(&at, selectors::shown(selector), detail);
            }
        }
    }
}

/// The common rules for templates of workloads: their labels are selected, and their pods run for ever.
struct Template<'a> {
    /// How complaints call the kind.
    kind: &'a str,
    scope: Scope<'a>,
    /// Whether an empty selector is held to select nothing (daemon sets) or is not looked at.
    empty_selects: bool,
}

impl Template<'_> {
    fn labels_match(&self, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
        let template = spec.part("template").unwrap_or(&NOTHING);
        let labels = template.part("metadata").unwrap_or(&NOTHING).map("labels");
        let selector = spec.part("selector");
        let empty = selector.is_none_or(selectors::is_empty);
        if empty && !self.empty_selects && selector.is_some() {
            return;
        }
        if !matches_selector(selector, labels) {
            let value = template
                .part("metadata")
                .and_then(|meta| meta.part("labels"))
                .cloned();
            errors.invalid(
                &path.field("template.metadata.labels"),
                value.unwrap_or_default(),
                "`selector` does not match template `labels`",
            );
        }
    }

    fn restarts(&self, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
        let pod = spec
            .part("template")
            .and_then(|template| template.part("spec"))
            .unwrap_or(&NOTHING);
        let at = path.field("template.spec");
        if pod.text("restartPolicy") != "Always" {
            errors.not_supported(&at.field("restartPolicy"), pod.text("restartPolicy"), &["Always"]);
        }
        if pod.has("activeDeadlineSeconds") {
            let detail = format!("activeDeadlineSeconds in {} is not Supported", self.kind);
            errors.forbidden(&at.field("activeDeadlineSeconds"), &detail);
        }
    }
}

fn of_replica_set(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if spec
        .part("selector")
        .is_some_and(|selector| !selectors::is_usable(selector))
    {
        let value = spec.part("selector").map(selectors::shown).unwrap_or_default();
        return errors.invalid(&path.field("selector"), value, "invalid label selector");
    }
    let template = Template {
        kind: "ReplicaSet",
        scope: Scope::TEMPLATE,
        empty_selects: false,
    };
    // Without a selector nothing is selected, which Go does not call empty.
    template.labels_match(spec, path, errors);
    let value = spec.part("template").unwrap_or(&NOTHING);
    pod::template(&template.scope, value, &path.field("template"), errors);
    template.restarts(spec, path, errors);
}

/// A Deployment.
pub(super) fn deployment(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    errors.not_negative(&path.field("replicas"), spec.int("replicas"));
    own_selector(spec, "deployment", &path, errors);
    of_replica_set(spec, &path, errors);
    let strategy = spec.part("strategy");
    let at = path.field("strategy");
    let rolling = strategy.and_then(|strategy| strategy.part("rollingUpdate"));
    match strategy.map_or("", |strategy| strategy.text("type")) {
        "Recreate" => {
            if rolling.is_some() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                errors.forbidden(&at.field("rollingUpdate"), detail);
            }
        }
        "RollingUpdate" => {
            let at = at.field("rollingUpdate");
            match rolling {
                None => errors.required(&at, "this should be defaulted and never be nil"),
                Some(rolling) => rolling_deployment(rolling, &at, errors),
            }
        }
        _ => errors.not_supported_shown(
            &at,
            go::text("apps.DeploymentStrategy", strategy),
            &["Recreate", "RollingUpdate"],
        ),
    }
    for field in [
        "minReadySeconds",
        "revisionHistoryLimit",
        "progressDeadlineSeconds",
    ] {
        errors.not_negative(&path.field(field), spec.int(field));
    }
    let ready = spec.int("minReadySeconds").unwrap_or_default();
    if let Some(deadline) = spec
        .int("progressDeadlineSeconds")
        .filter(|deadline| *deadline <= ready)
    {
        let detail = "must be greater than minReadySeconds";
        errors.invalid(&path.field("progressDeadlineSeconds"), deadline, detail);
    }
}

fn rolling_deployment(rolling: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (rolling.part("maxUnavailable"), rolling.part("maxSurge"));
    let at = path.field("maxUnavailable");
    int_or_percent(unavailable, &at, errors);
    int_or_percent(surge, &path.field("maxSurge"), errors);
    if number(unavailable) == 0 && number(surge) == 0 {
        errors.invalid(&at, shown(unavailable), "may not be 0 when `maxSurge` is 0");
    }
    at_most_all(unavailable, &at, errors);
}

/// A changed Deployment.
pub(super) fn deployment_update(new: &Value, old: &Value, errors: &mut Errors) {
    deployment(new, errors);
    selector_stays(new, old, errors);
}

fn selector_stays(new: &Value, old: &Value, errors: &mut Errors) {
    immutable(new, old, "/spec/selector", &Path::new("spec.selector"), errors);
}

/// A ReplicaSet.
pub(super) fn replica_set(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    for field in ["replicas", "minReadySeconds"] {
        errors.not_negative(&path.field(field), spec.int(field));
    }
    own_selector(spec, "deployment", &path, errors);
    of_replica_set(spec, &path, errors);
}

/// A changed ReplicaSet.
pub(super) fn replica_set_update(new: &Value, old: &Value, errors: &mut Errors) {
    replica_set(new, errors);
    selector_stays(new, old, errors);
}

/// A DaemonSet.
pub(super) fn daemon_set(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    selectors::selector(spec.part("selector"), &path.field("selector"), errors);
    let template = Template {
        kind: "DaemonSet",
        scope: Scope::TEMPLATE,
        empty_selects: true,
    };
    if spec.part("selector").is_none_or(selectors::is_usable) {
        template.labels_match(spec, &path, errors);
    }
    if let Some(selector) = spec
        .part("selector")
        .filter(|selector| selectors::is_empty(selector))
    {
        let detail = "empty selector is invalid for daemonset";
        errors.invalid(&path.field("selector"), selectors::shown(selector), detail);
    }
    let value = spec.part("template").unwrap_or(&NOTHING);
    pod::template(&template.scope, value, &path.field("template"), errors);
    template.restarts(spec, &path, errors);
    errors.not_negative(&path.field("minReadySeconds"), spec.int("minReadySeconds"));
    daemon_strategy(spec, &path.field("updateStrategy"), errors);
    errors.not_negative(
        &path.field("revisionHistoryLimit"),
        spec.int("revisionHistoryLimit"),
    );
}

fn daemon_strategy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let strategy = spec.part("updateStrategy");
    match strategy.map_or("", |strategy| strategy.text("type")) {
        "OnDelete" => {}
        "RollingUpdate" => {
            let path = path.field("rollingUpdate");
            let Some(rolling) = strategy.and_then(|strategy| strategy.part("rollingUpdate")) else {
                return errors.required(&path, "");
            };
            let (unavailable, surge) = (rolling.part("maxUnavailable"), rolling.part("maxSurge"));
            let (unavailable_path, surge_path) = (path.field("maxUnavailable"), path.field("maxSurge"));
            int_or_percent(unavailable, &unavailable_path, errors);
            int_or_percent(surge, &surge_path, errors);
            at_most_all(unavailable, &unavailable_path, errors);
            at_most_all(surge, &surge_path, errors);
            match (number(unavailable) != 0, number(surge) != 0) {
                (true, true) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    errors.invalid(&surge_path, shown(surge), detail);
                }
                (false, false) => errors.required(&unavailable_path, "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => errors.not_supported_shown(
            path,
            go::text("apps.DaemonSetUpdateStrategy", strategy),
            &["RollingUpdate", "OnDelete"],
        ),
    }
}

/// A changed DaemonSet.
pub(super) fn daemon_set_update(new: &Value, old: &Value, errors: &mut Errors) {
    selector_stays(new, old, errors);
    daemon_set(new, errors);
}

/// A StatefulSet.
pub(super) fn stateful_set(object: &Value, errors: &mut Errors) {
    stateful_spec(object, None, errors);
}

fn stateful_spec(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    match spec.text("podManagementPolicy") {
        "" => errors.required(&path.field("podManagementPolicy"), ""),
        "OrderedReady" | "Parallel" => {}
        other => errors.invalid(
            &path.field("podManagementPolicy"),
            other,
            "must be 'OrderedReady' or 'Parallel'",
        ),
    }
    stateful_strategy(spec, &path.field("updateStrategy"), errors);
    if let Some(policy) = spec.part("persistentVolumeClaimRetentionPolicy") {
        let at = path.field("persistentVolumeClaimRetentionPolicy");
        for field in ["whenDeleted", "whenScaled"] {
            errors.one_of_or_empty(&at.field(field), policy.text(field), &["Retain", "Delete"]);
        }
    }
    let claims = spec.list("volumeClaimTemplates");
    if old.is_none() {
        let list = path.field("volumeClaimTemplates");
        for (index, template) in claims.iter().enumerate() {
            let at = list.index(index);
            let spec = template.part("spec").unwrap_or(&NOTHING);
            claim::spec(spec, &at.field("spec"), errors);
        }
    }
    for field in ["replicas", "minReadySeconds"] {
        errors.not_negative(&path.field(field), spec.int(field));
    }
    if let Some(ordinals) = spec.part("ordinals") {
        errors.not_negative(&path.field("ordinals.start"), ordinals.int("start"));
    }
    let service = spec.text("serviceName");
    if old.is_none() && !service.is_empty() {
        errors.problems(
            &path.field("serviceName"),
            service,
            names::label_problems(service),
        );
    }
    own_selector(spec, "statefulset", &path, errors);
    let claim_names: Vec<&str> = claims
        .iter()
        .map(|template| template.part("metadata").map_or("", |meta| meta.text("name")))
        .collect();
    let template = Template {
        kind: "StatefulSet",
        scope: Scope {
            claims: &claim_names,
            named_by_set: true,
            ..Scope::TEMPLATE
        },
        empty_selects: false,
    };
    if spec
        .part("selector")
        .is_some_and(|selector| !selectors::is_usable(selector))
    {
        let value = spec.part("selector").map(selectors::shown).unwrap_or_default();
        errors.invalid(&path.field("selector"), value, "");
    } else {
        template.labels_match(spec, &path, errors);
        let value = spec.part("template").unwrap_or(&NOTHING);
        let at = path.field("template");
        // A template that was wrong may stay wrong.
        let was_invalid = old.is_some_and(|old| {
            let mut found = Errors::default();
            if !std::ptr::eq(old, object) {
                stateful_spec(old, Some(old), &mut found);
            }
            !found.is_empty()
        });
        if !was_invalid {
            pod::template(&template.scope, value, &at, errors);
        }
        // The real server looks at these twice.
        let meta = value.part("metadata").unwrap_or(&NOTHING);
        selectors::labels(meta.map("labels"), &at.field("labels"), errors);
        pod::annotations(meta.map("annotations"), &at.field("annotations"), errors);
    }
    template.restarts(spec, &path, errors);
}

fn stateful_strategy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let strategy = spec.part("updateStrategy");
    let rolling = strategy.and_then(|strategy| strategy.part("rollingUpdate"));
    let at = path.field("rollingUpdate");
    match strategy.map_or("", |strategy| strategy.text("type")) {
        "" => errors.required(path, ""),
        "OnDelete" => {
            if rolling.is_some() {
                let shown = go::text("apps.RollingUpdateStatefulSetStrategy", rolling);
                errors.invalid_shown(&at, shown, "only allowed for updateStrategy 'RollingUpdate'");
            }
        }
        "RollingUpdate" => {
            let Some(rolling) = rolling else { return };
            errors.not_negative(&at.field("partition"), rolling.int("partition"));
            let unavailable = rolling.part("maxUnavailable");
            if unavailable.is_some() {
                let at = at.field("maxUnavailable");
                int_or_percent(unavailable, &at, errors);
                if number(unavailable) == 0 {
                    errors.invalid(&at, shown(unavailable), "cannot be 0");
                }
                at_most_all(unavailable, &at, errors);
            }
        }
        _ => errors.invalid_shown(
            path,
            go::text("apps.StatefulSetUpdateStrategy", strategy),
            "must be 'RollingUpdate' or 'OnDelete'",
        ),
    }
}

const STATEFUL_SET: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
    'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
const STATEFUL_MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// A changed StatefulSet.
pub(super) fn stateful_set_update(new: &Value, old: &Value, errors: &mut Errors) {
    stateful_spec(new, Some(old), errors);
    let (new, old) = (
        new.part("spec").unwrap_or(&NOTHING),
        old.part("spec").unwrap_or(&NOTHING),
    );
    let fields = |spec: &Value| -> Vec<String> {
        spec.as_object()
            .map(|spec| spec.keys().map(ToString::to_string).collect())
            .unwrap_or_default()
    };
    let changed = fields(new)
        .into_iter()
        .chain(fields(old))
        .filter(|field| !STATEFUL_MUTABLE.contains(&field.as_str()))
        .any(|field| !same(new.part(&field), old.part(&field)));
    if changed {
        errors.forbidden(&Path::new("spec"), STATEFUL_SET);
    }
}

/// A ReplicationController.
pub(super) fn replication_controller(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    errors.not_negative(&path.field("minReadySeconds"), spec.int("minReadySeconds"));
    let selector = spec.map("selector");
    if selector.is_empty() {
        errors.required(&path.field("selector"), "");
    }
    match spec.int("replicas") {
        None => errors.required(&path.field("replicas"), ""),
        replicas => errors.not_negative(&path.field("replicas"), replicas),
    }
    let at = path.field("template");
    let Some(template) = spec.part("template") else {
        return errors.required(&at, "");
    };
    let labels = template.part("metadata").unwrap_or(&NOTHING).map("labels");
    if !selector.iter().all(|(key, value)| labels.get(key) == Some(value)) {
        let value = template
            .part("metadata")
            .and_then(|meta| meta.part("labels"))
            .cloned();
        errors.invalid(
            &at.field("metadata.labels"),
            value.unwrap_or_default(),
            "`selector` does not match template `labels`",
        );
    }
    pod::template(&Scope::TEMPLATE, template, &at, errors);
    let rules = Template {
        kind: "ReplicationController",
        scope: Scope::TEMPLATE,
        empty_selects: false,
    };
    rules.restarts(spec, &path, errors);
}

/// A ControllerRevision.
pub(super) fn revision(object: &Value, errors: &mut Errors) {
    errors.not_negative(&Path::new("revision"), object.int("revision"));
    match object.part("data") {
        None => errors.required(&Path::new("data"), "data is mandatory"),
        Some(Value::Object(_)) => {}
        Some(_) => errors.required(&Path::new("data"), "data must be a valid JSON object"),
    }
}

/// A changed ControllerRevision.
pub(super) fn revision_update(new: &Value, old: &Value, errors: &mut Errors) {
    errors.not_negative(&Path::new("revision"), new.int("revision"));
    immutable(new, old, "/data", &Path::new("data"), errors);
}

/// Counts in a status: none negative, and none more than all.
pub(super) fn status(kind: &str, object: &Value, old: &Value, errors: &mut Errors) {
    let status = object.part("status").unwrap_or(&NOTHING);
    let before = old.part("status").unwrap_or(&NOTHING);
    let path = Path::new("status");
    let (counts, of_all): (&[&str], &[&str]) = match kind {
        "Deployment" => (
            &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "terminatingReplicas",
                "collisionCount",
            ],
            &["updatedReplicas", "readyReplicas", "availableReplicas"],
        ),
        "StatefulSet" => (
            &[
                "replicas",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
                "observedGeneration",
                "collisionCount",
            ],
            &[
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
            ],
        ),
        "DaemonSet" => (
            &[
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
            ],
            &[],
        ),
        _ => (
            &[
                "replicas",
                "fullyLabeledReplicas",
                "readyReplicas",
                "availableReplicas",
                "observedGeneration",
                "terminatingReplicas",
            ],
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        ),
    };
    for field in counts {
        errors.not_negative(&path.field(field), status.int(field));
    }
    let count = |field: &str| status.int(field).unwrap_or_default();
    for field in of_all {
        if count(field) > count("replicas") {
            let detail = "cannot be greater than status.replicas";
            errors.invalid(&path.field(field), count(field), detail);
        }
    }
    if !of_all.is_empty() && count("availableReplicas") > count("readyReplicas") {
        let detail = if kind == "StatefulSet" {
            "cannot be greater than status.readyReplicas"
        } else {
            "cannot be greater than readyReplicas"
        };
        errors.invalid(
            &path.field("availableReplicas"),
            count("availableReplicas"),
            detail,
        );
    }
    let decremented = match (status.int("collisionCount"), before.int("collisionCount")) {
        (None, Some(_)) => true,
        (Some(new), Some(old)) => new < old,
        _ => false,
    };
    if decremented && counts.contains(&"collisionCount") {
        errors.invalid(
            &path.field("collisionCount"),
            count("collisionCount"),
            "cannot be decremented",
        );
    }
}
