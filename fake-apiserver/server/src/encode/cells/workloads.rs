//! The cells of the kinds that run pods.

use shared_json::Value;

use super::age::{between, human_duration};
use super::fields::{Fields, first};
use super::selector::{label_selector_text, labels, selector};
use super::{NONE, UNKNOWN, UNSET};

/// How many metrics of an autoscaler are listed.
const METRICS_MAX: usize = 2;

pub(super) fn cell(kind: &str, column: &str, object: Fields<'_>) -> Value {
    let number = |path: &str| Value::from(object.number(path));
    let of_desired = |path: &str| {
        Value::from(format!(
            "{}/{}",
            object.number(path),
            object.number("spec.replicas")
        ))
    };
    let template = if kind == "CronJob" {
        "spec.jobTemplate.spec.template"
    } else {
        "spec.template"
    };
    match (kind, column) {
        (_, "Containers") => Value::from(containers(object, template, "name")),
        (_, "Images") => Value::from(containers(object, template, "image")),
        ("ReplicationController", "Selector") => Value::from(labels(object, "spec.selector")),
        ("CronJob", "Selector") => Value::from(selector(object, "spec.jobTemplate.spec.selector")),
        ("Deployment", "Selector") => Value::from(label_selector_text(
            object.get("spec.selector").unwrap_or(&Value::Null),
        )),
        (_, "Selector") => Value::from(selector(object, "spec.selector")),
        ("DaemonSet", _) => daemon_set(column, object),
        ("Deployment" | "StatefulSet", "Ready") => of_desired("status.readyReplicas"),
        ("Deployment", "Up-to-date") => number("status.updatedReplicas"),
        ("Deployment", "Available") => number("status.availableReplicas"),
        (_, "Desired") => number("spec.replicas"),
        (_, "Current") => number("status.replicas"),
        (_, "Ready") => number("status.readyReplicas"),
        ("Job", _) => job(column, object),
        ("CronJob", _) => cron_job(column, object),
        ("ControllerRevision", "Controller") => Value::from(controller(object)),
        ("ControllerRevision", "Revision") => number("revision"),
        ("PodDisruptionBudget", "Allowed Disruptions") => number("status.disruptionsAllowed"),
        ("PodDisruptionBudget", column) => {
            let path = if column == "Min Available" {
                "spec.minAvailable"
            } else {
                "spec.maxUnavailable"
            };
            Value::from(object.plain(path).unwrap_or_else(|| "N/A".to_owned()))
        }
        ("HorizontalPodAutoscaler", _) => autoscaler(column, object),
        _ => Value::from(""),
    }
}

/// The names or images of a pod template's containers.
pub(super) fn containers(object: Fields<'_>, template: &str, field: &str) -> String {
    let path = format!("{template}.spec.containers");
    object
        .parts(&path)
        .map(|container| container.text(field))
        .collect::<Vec<_>>()
        .join(",")
}

fn daemon_set(column: &str, object: Fields<'_>) -> Value {
    let field = match column {
        "Desired" => "desiredNumberScheduled",
        "Current" => "currentNumberScheduled",
        "Ready" => "numberReady",
        "Up-to-date" => "updatedNumberScheduled",
        "Available" => "numberAvailable",
        _ => return Value::from(labels(object, "spec.template.spec.nodeSelector")),
    };
    Value::from(object.number(&format!("status.{field}")))
}

fn job(column: &str, job: Fields<'_>) -> Value {
    let succeeded = job.number("status.succeeded");
    match column {
        "Status" => {
            let is = |kind: &str| job.condition(kind, "True");
            let terminating = job.has("metadata.deletionTimestamp");
            let table = [
                (is("Complete"), "Complete"),
                (is("Failed"), "Failed"),
                (terminating, "Terminating"),
                (is("Suspended"), "Suspended"),
                (is("FailureTarget"), "FailureTarget"),
                (is("SuccessCriteriaMet"), "SuccessCriteriaMet"),
            ];
            Value::from(
                table
                    .iter()
                    .find(|(holds, _)| *holds)
                    .map_or("Running", |(_, word)| word),
            )
        }
        "Completions" => Value::from(
            match (job.get("spec.completions"), job.number("spec.parallelism")) {
                (Some(Value::Number(completions)), _) => format!("{succeeded}/{completions}"),
                (_, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
                _ => format!("{succeeded}/1"),
            },
        ),
        "Duration" => {
            let end = job.text("status.completionTime").parse().unwrap_or(job.now);
            let seconds = between(job.text("status.startTime"), end);
            Value::from(seconds.map(human_duration).unwrap_or_default())
        }
        _ => Value::from(""),
    }
}

fn cron_job(column: &str, object: Fields<'_>) -> Value {
    match column {
        "Schedule" => Value::from(object.text("spec.schedule")),
        "Timezone" => object.or_none("spec.timeZone"),
        "Suspend" => Value::from(match object.get("spec.suspend").and_then(Value::as_bool) {
            Some(true) => "True",
            Some(false) => "False",
            None => UNSET,
        }),
        "Active" => Value::from(object.list("status.active").len()),
        "Last Schedule" if object.has("status.lastScheduleTime") => {
            Value::from(object.age("status.lastScheduleTime"))
        }
        "Last Schedule" => Value::from(NONE),
        _ => Value::from(""),
    }
}

/// `deployment.apps/web`: the owner that controls an object.
fn controller(object: Fields<'_>) -> String {
    let Some(owner) = object
        .parts("metadata.ownerReferences")
        .find(|owner| owner.flag("controller"))
    else {
        return NONE.to_owned();
    };
    let (kind, name) = (owner.text("kind").to_lowercase(), owner.text("name"));
    match owner.text("apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

fn autoscaler(column: &str, object: Fields<'_>) -> Value {
    match column {
        "Reference" => {
            let target = |field: &str| object.text(&format!("spec.scaleTargetRef.{field}"));
            Value::from(format!("{}/{}", target("kind"), target("name")))
        }
        "Targets" => Value::from(metrics(object)),
        "MinPods" => Value::from(
            object
                .plain("spec.minReplicas")
                .unwrap_or_else(|| UNSET.to_owned()),
        ),
        "MaxPods" => Value::from(object.number("spec.maxReplicas")),
        "Replicas" => Value::from(object.number("status.currentReplicas")),
        _ => Value::from(""),
    }
}

fn metrics(object: Fields<'_>) -> String {
    let current: Vec<Fields<'_>> = object.parts("status.currentMetrics").collect();
    let all: Vec<String> = object
        .parts("spec.metrics")
        .enumerate()
        .map(|(index, spec)| metric(spec, current.get(index).copied()))
        .collect();
    if all.is_empty() {
        return NONE.to_owned();
    }
    first(&all, METRICS_MAX, ", ")
}

/// One metric: its current value and its target.
fn metric(spec: Fields<'_>, current: Option<Fields<'_>>) -> String {
    let source = match spec.text("type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = |field: &str| spec.plain(&format!("{source}.target.{field}"));
    let now = |field: &str| {
        current
            .and_then(|current| current.plain(&format!("{source}.current.{field}")))
            .unwrap_or_else(|| UNKNOWN.to_owned())
    };
    let of_resource = matches!(source, "resource" | "containerResource");
    match wanted("averageValue") {
        Some(average) if of_resource || source == "pods" => {
            named(spec, source, &format!("{}/{average}", now("averageValue")))
        }
        Some(average) => format!("{}/{average} (avg)", now("averageValue")),
        None if of_resource => {
            let percent = |text: String| if text == UNKNOWN { text } else { format!("{text}%") };
            let target = wanted("averageUtilization")
                .map_or_else(|| "<auto>".to_owned(), |target| format!("{target}%"));
            named(
                spec,
                source,
                &format!("{}/{target}", percent(now("averageUtilization"))),
            )
        }
        None => format!(
            "{}/{}",
            now("value"),
            wanted("value").unwrap_or_else(|| "0".to_owned())
        ),
    }
}

/// A resource's metric names the resource.
fn named(spec: Fields<'_>, source: &str, text: &str) -> String {
    match spec.text(&format!("{source}.name")) {
        "" => text.to_owned(),
        name => format!("{name}: {text}"),
    }
}
