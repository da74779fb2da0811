//! The number of replicas that an autoscaler's metrics ask for. Pure.
//!
//! Where the figures come from, as there is no metrics server: annotations `metrics.fake-apiserver/<metric>`, on the pods for
//! their usage (`Resource`, `Pods`; with `<container>.<metric>` for `ContainerResource`), on the autoscaler itself for values
//! measured elsewhere (`Object`, `External`).

use std::sync::Arc;

use jiff::Timestamp;
use machinery::meta::at;
use machinery::types::Quantity;
use shared_json::{Map, Value, json};

use super::usage::{
    ANNOTATION, NONE_RECEIVED, Proposal, Target, Tolerances, ceil, is_measured, propose, thousandths,
};
use crate::disruption::printed;
use crate::runtime::is_ready;
use crate::runtime::{list, number, text};

/// The result of all metrics together.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub replicas: i64,
    /// The metric that asks for the most.
    pub metric: String,
    /// For `status.currentMetrics`.
    pub statuses: Vec<Value>,
}

/// A metric of which nothing is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    /// The reason of its event and of the condition `ScalingActive`.
    pub reason: &'static str,
    /// The event's message.
    pub message: String,
}

/// Why no size was found; and the metrics that failed, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown {
    pub why: Option<String>,
    pub failed: Vec<Failed>,
}

struct One {
    replicas: i64,
    name: String,
    status: Value,
}

/// A target with a value for a pod on average, in thousandths.
fn average_value(target: &Value) -> Option<i64> {
    at(target, "averageValue").map(|value| thousandths(Quantity::of(value)))
}

fn written(thousandths: i64) -> String {
    let quantity = Quantity::parse(&format!("{thousandths}m"));
    quantity.map(Quantity::canonical).unwrap_or_default()
}

/// Memory is written in powers of two, like where it is measured.
fn written_as(metric: &str, thousandths: i64) -> String {
    let mut whole = (thousandths + 999).div_euclid(1000);
    if metric != "memory" || thousandths < 1024 * 1000 {
        return written(thousandths);
    }
    let mut unit = "";
    for larger in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
        if whole % 1024 != 0 {
            break;
        }
        whole /= 1024;
        unit = larger;
    }
    format!("{whole}{unit}")
}

/// The context in which all metrics of an autoscaler are evaluated.
#[derive(Clone, Copy)]
struct Scene<'a> {
    autoscaler: &'a Value,
    pods: &'a [Arc<Value>],
    /// How many replicas there are to be.
    wanted: i64,
    /// How many there are.
    current: i64,
    within: Tolerances,
    now: Timestamp,
}

impl Scene<'_> {
    fn propose(
        self,
        pods: &[Arc<Value>],
        metric: &str,
        key: &str,
        target: Target,
    ) -> Result<Proposal, String> {
        propose(self.wanted, pods, metric, key, target, self.within, self.now)
    }
}

fn of_pods(
    scene: Scene<'_>,
    pods: &[Arc<Value>],
    metric: &str,
    key: &str,
    source: &Value,
) -> Result<(Proposal, bool), String> {
    let target = at(source, "target").unwrap_or(&Value::Null);
    let (target, of_requests) = match average_value(target) {
        Some(wanted) => (Target::Average(wanted), false),
        None => (Target::Utilization(number(target, "averageUtilization", 0)), true),
    };
    let annotation = format!("{ANNOTATION}{key}");
    let is_said =
        |pod: &Arc<Value>| at(pod, "metadata.annotations").is_some_and(|all| all.get(&annotation).is_some());
    let found = if is_measured(pods) && !pods.iter().any(is_said) {
        Err(NONE_RECEIVED.to_owned())
    } else {
        scene.propose(pods, metric, key, target)
    };
    let measure = if of_requests { "utilization" } else { "usage" };
    found
        .map(|found| (found, of_requests))
        .map_err(|why| format!("failed to get {metric} {measure}: {why}"))
}

fn averages(metric: &str, proposal: Proposal) -> Value {
    let mut current = Map::new();
    if let Some(percent) = proposal.utilization {
        current.insert("averageUtilization".to_owned(), Value::from(percent));
    }
    current.insert(
        "averageValue".to_owned(),
        Value::from(written_as(metric, proposal.average)),
    );
    Value::Object(current)
}

fn resource(scene: Scene<'_>, spec: &Value) -> Result<One, String> {
    let source = at(spec, "resource").unwrap_or(&Value::Null);
    let name = text(source, "name");
    let (found, utilization) = of_pods(scene, scene.pods, name, name, source)?;
    Ok(One {
        replicas: found.replicas,
        name: match utilization {
            true => format!("{name} resource utilization (percentage of request)"),
            false => format!("{name} resource"),
        },
        status: json!({"type": "Resource", "resource": {"name": name, "current": averages(name, found)}}),
    })
}

fn container_resource(scene: Scene<'_>, spec: &Value) -> Result<One, String> {
    let source = at(spec, "containerResource").unwrap_or(&Value::Null);
    let (name, container) = (text(source, "name"), text(source, "container"));
    // Only that container's requests count.
    let pods: Vec<Arc<Value>> = scene
        .pods
        .iter()
        .map(|pod| {
            let mut pod = Value::clone(pod);
            for list in ["/spec/containers", "/spec/initContainers"] {
                if let Some(Value::Array(containers)) = pod.pointer_mut(list) {
                    containers.retain(|known| text(known, "name") == container);
                }
            }
            Arc::new(pod)
        })
        .collect();
    let (found, utilization) = of_pods(scene, &pods, name, &format!("{container}.{name}"), source)?;
    Ok(One {
        replicas: found.replicas,
        name: match utilization {
            true => format!("{name} container resource utilization (percentage of request)"),
            false => format!("{name} resource"),
        },
        status: json!({"type": "ContainerResource",
            "containerResource": {"name": name, "container": container, "current": averages(name, found)}}),
    })
}

fn pods_metric(scene: Scene<'_>, spec: &Value) -> Result<One, String> {
    let source = at(spec, "pods").unwrap_or(&Value::Null);
    let name = text(source, "metric.name");
    let wanted = at(source, "target").and_then(average_value).unwrap_or(0);
    let found = scene.propose(scene.pods, name, name, Target::Average(wanted)).map_err(|why| {
        let why = why.replace(
            "from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)",
            "from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered",
        );
        why.replace("metrics for resource", "metric")
    })?;
    let found = Proposal {
        utilization: None,
        ..found
    };
    Ok(One {
        replicas: found.replicas,
        name: format!("pods metric {name}"),
        status: json!({"type": "Pods", "pods": {"metric": at(source, "metric"), "current": averages(name, found)}}),
    })
}

/// A metric that is not of the pods: one figure, which is held against a value or shared by all pods.
fn elsewhere(scene: Scene<'_>, spec: &Value, field: &str) -> Result<One, String> {
    let Scene {
        autoscaler,
        wanted: size,
        current,
        ..
    } = scene;
    let source = at(spec, field).unwrap_or(&Value::Null);
    let name = text(source, "metric.name");
    let selector = at(source, "metric.selector").filter(|selector| !selector.is_null());
    let selector = selector.map_or_else(|| "nil".to_owned(), |selector| printed(Some(selector)));
    let said = at(autoscaler, "metadata.annotations").and_then(|all| all.get(format!("{ANNOTATION}{name}")));
    let Some(used) = said
        .and_then(Value::as_str)
        .and_then(Quantity::parse)
        .map(thousandths)
    else {
        return Err(match field {
            "external" => format!(
                "unable to get external metric {}/{name}/{selector}: unable to fetch metrics from external metrics API: the server \
                 could not find the requested resource (get {name}.external.metrics.k8s.io)",
                text(autoscaler, "metadata.namespace")
            ),
            _ => format!(
                "unable to get metric {name}: {} on {} {}/unable to fetch metrics from custom metrics API: no custom \
                 metrics API (custom.metrics.k8s.io) registered",
                text(source, "describedObject.kind"),
                text(autoscaler, "metadata.namespace"),
                text(source, "describedObject.name")
            ),
        });
    };
    let target = at(source, "target").unwrap_or(&Value::Null);
    let (replicas, shown) = match average_value(target) {
        Some(wanted) => {
            let ratio = used as f64 / (wanted.max(1) as f64 * current.max(1) as f64);
            let replicas = if scene.within.allow(ratio) {
                current
            } else {
                ceil(used as f64 / wanted.max(1) as f64)
            };
            let each = ceil(used as f64 / current.max(1) as f64);
            (replicas, json!({"averageValue": written(each)}))
        }
        None => {
            let wanted = at(target, "value").map_or(0, |value| thousandths(Quantity::of(value)));
            let ratio = used as f64 / wanted.max(1) as f64;
            let is_running = |pod: &&Arc<Value>| text(pod, "status.phase") == "Running" && is_ready(pod);
            let ready = scene.pods.iter().filter(is_running).count();
            let replicas = if scene.within.allow(ratio) {
                size
            } else if scene.pods.is_empty() {
                let why = "no pods returned by selector while calculating replica count";
                return Err(format!("unable to calculate ready pods: {why}"));
            } else {
                ceil(ratio * ready as f64)
            };
            (replicas, json!({"value": written(used)}))
        }
    };
    let shared = average_value(target).is_some();
    let (kind, name, mut status) = match field {
        "external" => (
            "External",
            format!("external metric {name}({selector})"),
            json!({}),
        ),
        _ => (
            "Object",
            if shared {
                // The real one calls it so, too.
                format!("external metric {name}({selector})")
            } else {
                format!("{} metric {name}", text(source, "describedObject.kind"))
            },
            json!({"describedObject": at(source, "describedObject")}),
        ),
    };
    status["metric"] = at(source, "metric").cloned().unwrap_or_default();
    status["current"] = shown;
    Ok(One {
        replicas,
        name,
        status: json!({"type": kind, field: status}),
    })
}

/// The result of the autoscaler's metrics, over the pods of its target, of which there are to be `wanted` and are `current`.
///
/// # Errors
/// If all metrics fail, or some and the others ask for fewer pods than there are.
pub(super) fn evaluate(
    autoscaler: &Value,
    pods: &[Arc<Value>],
    wanted: i64,
    current: i64,
    now: Timestamp,
) -> (Outcome, Unknown) {
    let specs = list(autoscaler, "spec.metrics");
    let mut outcome = Outcome::default();
    let mut failed = Vec::new();
    let mut first = None;
    let scene = Scene {
        autoscaler,
        pods,
        wanted,
        current,
        within: Tolerances::of(autoscaler),
        now,
    };
    for spec in specs {
        let (kind, found) = match text(spec, "type") {
            "Resource" => ("Resource", resource(scene, spec)),
            "ContainerResource" => ("ContainerResource", container_resource(scene, spec)),
            "Pods" => ("Pods", pods_metric(scene, spec)),
            "External" => ("External", elsewhere(scene, spec, "external")),
            _ => ("Object", elsewhere(scene, spec, "object")),
        };
        match found {
            Ok(one) => {
                if outcome.replicas == 0 || one.replicas > outcome.replicas {
                    outcome.replicas = one.replicas;
                    outcome.metric = one.name;
                }
                outcome.statuses.push(one.status);
            }
            Err(message) => {
                // Its place in the status stays empty.
                outcome.statuses.push(json!({"type": ""}));
                let (reason, what) = texts(kind, spec);
                first.get_or_insert_with(|| format!("failed to get {what}: {message}"));
                failed.push(Failed { reason, message });
            }
        }
    }
    let none = failed.len() == outcome.statuses.len();
    let why = first.filter(|_| none || outcome.replicas < wanted).map(|first| {
        format!(
            "invalid metrics ({} invalid out of {}), first error is: {first}",
            failed.len(),
            specs.len()
        )
    });
    (outcome, Unknown { why, failed })
}

/// The reason of a failed metric, and its name in the summary.
fn texts(kind: &str, spec: &Value) -> (&'static str, String) {
    match kind {
        "Resource" => (
            "FailedGetResourceMetric",
            format!("{} resource metric value", text(spec, "resource.name")),
        ),
        "ContainerResource" => (
            "FailedGetContainerResourceMetric",
            format!(
                "{} container metric value",
                text(spec, "containerResource.container")
            ),
        ),
        "Pods" => ("FailedGetPodsMetric", "pods metric value".to_owned()),
        "External" => {
            let name = text(spec, "external.metric.name");
            let shared = at(spec, "external.target.averageValue").is_some();
            let how = if shared {
                format!("{name} external metric")
            } else {
                format!("external metric {name}")
            };
            (
                "FailedGetExternalMetric",
                format!("{name} external metric value: failed to get {how}"),
            )
        }
        _ => {
            let shared = at(spec, "object.target.averageValue").is_some();
            let name = text(spec, "object.metric.name");
            let how = if shared {
                format!(": failed to get {name} object metric")
            } else {
                String::new()
            };
            ("FailedGetObjectMetric", format!("object metric value{how}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn pod(name: &str, annotations: Value) -> Arc<Value> {
        Arc::new(json!({
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"containers": [
                {"name": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
                {"name": "proxy", "resources": {"requests": {"cpu": "100m"}}},
            ]},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}]},
        }))
    }

    fn resource(target: Value) -> Value {
        json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    }

    fn external(target: Value) -> Value {
        json!({"type": "External", "external": {"metric": {"name": "queue"}, "target": target}})
    }

    fn object(target: Value) -> Value {
        json!({"type": "Object", "object": {"metric": {"name": "queue"},
            "describedObject": {"kind": "Service", "name": "s"}, "target": target}})
    }

    /// Two pods that use `cpu` of 1100m each; a queue of 30.
    #[rstest]
    #[case::percent(vec![resource(json!({"averageUtilization": 50}))], Ok((4, "cpu resource utilization (percentage of request)")))]
    #[case::value(vec![resource(json!({"averageValue": "550m"}))], Ok((4, "cpu resource")))]
    #[case::pods(vec![json!({"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": {"averageValue": "5"}}})],
        Ok((4, "pods metric hits")))]
    #[case::container(vec![json!({"type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "proxy", "target": {"averageUtilization": 50}}})],
        Ok((3, "cpu container resource utilization (percentage of request)")))]
    #[case::shared(vec![external(json!({"averageValue": "10"}))], Ok((3, "external metric queue(nil)")))]
    #[case::whole(vec![external(json!({"value": "15"}))], Ok((4, "external metric queue(nil)")))]
    #[case::the_most(vec![external(json!({"averageValue": "10"})), resource(json!({"averageUtilization": 50}))],
        Ok((4, "cpu resource utilization (percentage of request)")))]
    #[case::one_fails_and_the_other_grows(vec![
        json!({"type": "Pods", "pods": {"metric": {"name": "x"}, "target": {"averageValue": "5"}}}),
        external(json!({"averageValue": "10"}))], Ok((3, "external metric queue(nil)")))]
    #[case::one_fails_and_the_other_shrinks(vec![
        json!({"type": "Pods", "pods": {"metric": {"name": "x"}, "target": {"averageValue": "5"}}}),
        external(json!({"averageValue": "100"}))],
        Err("invalid metrics (1 invalid out of 2), first error is: failed to get pods metric value: unable to get metric x: unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"))]
    #[case::unknown(vec![json!({"type": "Resource", "resource": {"name": "memory", "target": {"averageUtilization": 5}}})],
        Err("invalid metrics (1 invalid out of 1), first error is: failed to get memory resource metric value: failed to get memory utilization: did not receive metrics for targeted pods (pods might be unready)"))]
    #[case::unknown_of_container(vec![json!({"type": "ContainerResource",
        "containerResource": {"name": "memory", "container": "app", "target": {"averageValue": "5Mi"}}})],
        Err("invalid metrics (1 invalid out of 1), first error is: failed to get app container metric value: failed to get memory usage: did not receive metrics for targeted pods (pods might be unready)"))]
    #[case::object_whole(vec![object(json!({"value": "15"}))], Ok((4, "Service metric queue")))]
    #[case::object_shared(vec![object(json!({"averageValue": "10"}))], Ok((3, "external metric queue(nil)")))]
    #[case::nearly_whole(vec![external(json!({"value": "28"}))], Ok((2, "external metric queue(nil)")))]
    #[case::nearly_shared(vec![external(json!({"averageValue": "14"}))], Ok((2, "external metric queue(nil)")))]
    #[case::selected(vec![json!({"type": "External", "external": {"metric": {"name": "queue", "selector": {
        "matchLabels": {"b": "1", "a": "2"},
        "matchExpressions": [{"key": "c", "operator": "In", "values": ["x", "y"]}]}}, "target": {"value": "15"}}})],
        Ok((4, "external metric queue(&LabelSelector{MatchLabels:map[string]string{a: 2,b: 1,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:c,Operator:In,Values:[x y],},},})")))]
    #[case::unknown_of_object(vec![json!({"type": "Object", "object": {"metric": {"name": "q"},
        "describedObject": {"kind": "Service", "name": "s"}, "target": {"averageValue": "5"}}})],
        Err("invalid metrics (1 invalid out of 1), first error is: failed to get object metric value: failed to get q object metric: unable to get metric q: Service on default s/unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"))]
    #[case::nothing_and_more(vec![external(json!({"averageValue": "100k"})), resource(json!({"averageUtilization": 50}))],
        Ok((4, "cpu resource utilization (percentage of request)")))]
    #[case::unknown_elsewhere(vec![json!({"type": "External", "external": {"metric": {"name": "q"}, "target": {"value": "5"}}})],
        Err("invalid metrics (1 invalid out of 1), first error is: failed to get q external metric value: failed to get external metric q: unable to get external metric default/q/nil: unable to fetch metrics from external metrics API: the server could not find the requested resource (get q.external.metrics.k8s.io)"))]
    #[case::container_value(vec![json!({"type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "proxy", "target": {"averageValue": "35m"}}})],
        Ok((4, "cpu resource")))]
    fn what_metrics_ask_for(#[case] metrics: Vec<Value>, #[case] expected: Result<(i64, &str), &str>) {
        let annotations = json!({
            "metrics.fake-apiserver/cpu": "1100m", "metrics.fake-apiserver/hits": "10",
            "metrics.fake-apiserver/proxy.cpu": "70m",
        });
        let pods = [pod("a", annotations.clone()), pod("b", annotations)];
        let autoscaler = json!({
            "metadata": {"namespace": "default", "annotations": {"metrics.fake-apiserver/queue": "30"}},
            "spec": {"metrics": metrics},
        });
        let now = "2026-01-01T01:00:00Z".parse().expect("a time");
        let (outcome, unknown) = evaluate(&autoscaler, &pods, 2, 2, now);
        let got = match unknown.why {
            Some(why) => Err(why),
            None => Ok((outcome.replicas, outcome.metric.as_str())),
        };
        assert_eq!(got, expected.map_err(str::to_owned));
    }

    #[rstest]
    #[case("cpu", 250, "250m")]
    #[case("cpu", 2000, "2")]
    #[case("memory", 209_715_200_000, "200Mi")]
    #[case("memory", 1_073_741_824_000, "1Gi")]
    #[case("memory", 1_000_000_000, "1000000")]
    #[case("memory", 1_500_000, "1500")]
    #[case("memory", 1_024_000, "1Ki")]
    #[case("memory", 1_023_500, "1023500m")]
    #[case("memory", 500_000, "500")]
    #[case("memory", 1_048_577_000, "1048577")]
    fn how_averages_are_written(#[case] metric: &str, #[case] thousandths: i64, #[case] expected: &str) {
        assert_eq!(written_as(metric, thousandths), expected);
    }

    #[test]
    fn what_is_shown() {
        let pods = [pod("a", json!({"metrics.fake-apiserver/cpu": "250m"}))];
        let autoscaler = json!({"spec": {"metrics": [resource(json!({"averageUtilization": 50}))]}});
        let now = "2026-01-01T01:00:00Z".parse().expect("a time");
        let (outcome, _) = evaluate(&autoscaler, &pods, 1, 1, now);
        assert_eq!(
            outcome.statuses,
            [json!({"type": "Resource",
                "resource": {"name": "cpu", "current": {"averageUtilization": 22, "averageValue": "250m"}}})]
        );
    }
}
