//! HorizontalPodAutoscalers between `autoscaling/v1` and `autoscaling/v2`, in which they are stored.
//!
//! `v1` knows one metric, the processor's use. Whatever else there is travels in annotations, as JSON of Go structs.

use machinery::meta::at;
use shared_json::{Array, Map, Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The default target of an autoscaler without metrics.
const DEFAULT_UTILIZATION: i64 = 80;

/// The names of a field in one version and in the other.
type Names = &'static [(&'static str, &'static str)];

/// How a source of metrics is called, and its fields in `v1`, in the order of the Go struct, with their places in `v2`.
/// `current` stands for `target` in the status.
const SOURCES: [(&str, &str, Names); 5] = [
    (
        "Object",
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("*Value", "*.value"),
            ("selector", "metric.selector"),
            ("averageValue", "*.averageValue"),
        ],
    ),
    (
        "Pods",
        "pods",
        &[
            ("metricName", "metric.name"),
            ("*AverageValue", "*.averageValue"),
            ("selector", "metric.selector"),
        ],
    ),
    (
        "Resource",
        "resource",
        &[
            ("name", "name"),
            ("*AverageUtilization", "*.averageUtilization"),
            ("*AverageValue", "*.averageValue"),
        ],
    ),
    (
        "ContainerResource",
        "containerResource",
        &[
            ("name", "name"),
            ("*AverageUtilization", "*.averageUtilization"),
            ("*AverageValue", "*.averageValue"),
            ("container", "container"),
        ],
    ),
    (
        "External",
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("*Value", "*.value"),
            ("*AverageValue", "*.averageValue"),
        ],
    ),
];

/// The internal names of the parts of a behavior, which has no JSON names of its own in the real server, in their order.
const RULES: [(&str, &str); 4] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];
const POLICY: [(&str, &str); 3] = [
    ("Type", "type"),
    ("Value", "value"),
    ("PeriodSeconds", "periodSeconds"),
];

/// A stored autoscaler as `autoscaling/v1` shows it.
pub(super) fn to_v1(object: &mut Value) {
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    let (mut others, mut utilization, mut behavior) = (Vec::new(), None, None);
    if let Some(spec) = spec {
        for metric in taken(spec, "metrics") {
            match processor(&metric, "target") {
                Some(target) => utilization = utilization.or(Some(target)),
                None => others.push(source(&metric, "target")),
            }
        }
        if let Some(target) = utilization {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), target);
        }
        behavior = spec.remove("behavior");
    }
    let (mut current, mut conditions) = (Vec::new(), Vec::new());
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        for metric in taken(status, "currentMetrics") {
            if let Some(is) = processor(&metric, "current") {
                status.insert("currentCPUUtilizationPercentage".to_owned(), is);
            }
            current.push(source(&metric, "current"));
        }
        conditions = taken(status, "conditions").iter().map(condition).collect();
        status.entry("currentReplicas").or_insert(json!(0));
        status.entry("desiredReplicas").or_insert(json!(0));
    }
    let mut note = |name: &str, text: Option<String>| {
        if let Some(text) = text {
            object["metadata"]["annotations"][name] = Value::from(text);
        }
    };
    let list = |items: Vec<String>| (!items.is_empty()).then(|| format!("[{}]", items.join(",")));
    note(METRICS, list(others));
    note(CURRENT_METRICS, list(current));
    note(CONDITIONS, list(conditions));
    note(BEHAVIOR, behavior.map(|behavior| go_behavior(&behavior)));
}

/// Gives an autoscaler of the old version the target that it has if it names none.
pub(super) fn imply_target(object: &mut Value) {
    let metrics = object
        .pointer("/metadata/annotations")
        .and_then(|all| all.get(METRICS));
    if metrics.is_none()
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.entry("targetCPUUtilizationPercentage")
            .or_insert(json!(DEFAULT_UTILIZATION));
    }
}

/// The stored form of an object that a client sent in `autoscaling/v1`.
pub(super) fn from_v1(object: &mut Value) {
    let mut notes: Map = Map::new();
    if let Some(annotations) = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        for name in [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR] {
            // What cannot be read is dropped, too.
            if let Some(text) = annotations.remove(name) {
                let value = text.as_str().and_then(|text| shared_json::from_str(text).ok());
                notes.insert(name.to_owned(), value.unwrap_or_default());
            }
        }
        if annotations.is_empty()
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("annotations");
        }
    }
    let listed = |name: &str| {
        notes
            .get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let mut metrics: Vec<Value> = listed(METRICS)
            .iter()
            .filter_map(|metric| metric_of(metric, "target"))
            .collect();
        let target = spec.remove("targetCPUUtilizationPercentage");
        let implied = metrics.is_empty().then(|| json!(DEFAULT_UTILIZATION));
        if let Some(utilization) = target.or(implied) {
            metrics.push(json!({"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": utilization},
            }}));
        }
        spec.insert("metrics".to_owned(), Value::from(metrics));
        let behavior = notes.get(BEHAVIOR).map(json_behavior).unwrap_or_default();
        if behavior.as_object().is_some_and(|rules| !rules.is_empty()) {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        let mut metrics: Vec<Value> = listed(CURRENT_METRICS)
            .iter()
            .filter_map(|metric| metric_of(metric, "current"))
            .collect();
        if let Some(utilization) = status.remove("currentCPUUtilizationPercentage")
            && metrics.is_empty()
        {
            metrics.push(json!({"type": "Resource", "resource": {
                "name": "cpu", "current": {"averageUtilization": utilization},
            }}));
        }
        let metrics = if metrics.is_empty() {
            Value::Null
        } else {
            Value::from(metrics)
        };
        status.insert("currentMetrics".to_owned(), metrics);
        let conditions = listed(CONDITIONS);
        if !conditions.is_empty() {
            status.insert("conditions".to_owned(), Value::Array(conditions));
        }
        if status.get("currentReplicas") == Some(&json!(0)) {
            status.remove("currentReplicas");
        }
    }
}

fn taken(map: &mut Map, field: &str) -> Array {
    match map.remove(field) {
        Some(Value::Array(items)) => items,
        _ => Array::new(),
    }
}

/// The target or current use of the processor in a metric, if it is about that.
fn processor(metric: &Value, side: &str) -> Option<Value> {
    let is_cpu = at(metric, "type").and_then(Value::as_str) == Some("Resource")
        && at(metric, "resource.name").and_then(Value::as_str) == Some("cpu");
    let utilization = at(metric, &format!("resource.{side}.averageUtilization"));
    utilization.filter(|_| is_cpu).cloned()
}

/// `targetAverageValue`, `currentAverageValue` of `*AverageValue`; `target.value`, `current.value` of `*.value`.
fn sided(name: &str, side: &str) -> String {
    // Only the averages of objects have one name on both sides.
    name.replace('*', side)
}

/// A metric of `v2` as JSON of `v1`'s Go struct. `side` is `target` or `current`.
fn source(metric: &Value, side: &str) -> String {
    let kind = at(metric, "type").cloned().unwrap_or_default();
    let mut parts = vec![format!("\"type\":{kind}")];
    if let Some((_, field, names)) = SOURCES.iter().find(|(name, _, _)| kind.as_str() == Some(name)) {
        let inner: Vec<String> = names
            .iter()
            .filter_map(|(old, new)| {
                let value = at(metric, &format!("{field}.{}", sided(new, side)));
                let value = match (*old, value) {
                    // A reference's fields are in the order of their struct.
                    ("target", Some(value)) => ordered(value, &["kind", "name", "apiVersion"]),
                    // The struct writes these whether they are known or not.
                    ("*Value", None) if *field == "object" => "\"0\"".to_owned(),
                    ("*AverageValue", None)
                        if *field == "pods" || (side == "current" && *field != "external") =>
                    {
                        "\"0\"".to_owned()
                    }
                    (_, value) => value?.to_string(),
                };
                Some(format!("\"{}\":{value}", sided(old, side)))
            })
            .collect();
        parts.push(format!("\"{field}\":{{{}}}", inner.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

/// A metric of `v1` in `v2`.
fn metric_of(metric: &Value, side: &str) -> Option<Value> {
    let kind = metric.get("type")?.as_str()?;
    let (_, field, names) = SOURCES.iter().find(|(name, _, _)| *name == kind)?;
    let mut out = json!({});
    for (old, new) in *names {
        let Some(value) = metric.get(field)?.get(sided(old, side)) else {
            continue;
        };
        let mut place = &mut out;
        let path = sided(new, side);
        for part in path.split('.') {
            place = &mut place[part];
        }
        *place = value.clone();
    }
    if side == "target" {
        let has = |name: &str| out.get(side).is_some_and(|target| target.get(name).is_some());
        let how = if has("averageUtilization") {
            "Utilization"
        } else if has("averageValue") {
            "AverageValue"
        } else {
            "Value"
        };
        out[side]["type"] = Value::from(how);
        if how == "AverageValue"
            && let Some(target) = out.get_mut(side).and_then(Value::as_object_mut)
        {
            target.remove("value");
        }
    }
    Some(json!({"type": kind, *field: out}))
}

/// A condition as JSON of its Go struct.
fn condition(condition: &Value) -> String {
    ordered(
        condition,
        &["type", "status", "lastTransitionTime", "reason", "message"],
    )
}

fn ordered(value: &Value, order: &[&str]) -> String {
    let fields = order
        .iter()
        .filter_map(|field| Some(format!("\"{field}\":{}", value.get(field)?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn go_behavior(behavior: &Value) -> String {
    let rules = |field: &str| match behavior.get(field) {
        None => "null".to_owned(),
        Some(rules) => {
            let part = |(go, json): &(&str, &str)| {
                let value = match rules.get(json) {
                    Some(Value::Array(policies)) => {
                        let policies: Vec<String> =
                            policies.iter().map(|policy| renamed(policy, &POLICY)).collect();
                        format!("[{}]", policies.join(","))
                    }
                    other => other.cloned().unwrap_or_default().to_string(),
                };
                format!("\"{go}\":{value}")
            };
            format!("{{{}}}", RULES.iter().map(part).collect::<Vec<_>>().join(","))
        }
    };
    format!(
        "{{\"ScaleUp\":{},\"ScaleDown\":{}}}",
        rules("scaleUp"),
        rules("scaleDown")
    )
}

fn renamed(value: &Value, names: &[(&str, &str)]) -> String {
    let part =
        |(go, json): &(&str, &str)| format!("\"{go}\":{}", value.get(json).cloned().unwrap_or_default());
    format!("{{{}}}", names.iter().map(part).collect::<Vec<_>>().join(","))
}

fn json_behavior(behavior: &Value) -> Value {
    let mut out = Map::new();
    for (go, json) in [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")] {
        let Some(rules) = behavior.get(go).filter(|rules| rules.is_object()) else {
            continue;
        };
        let mut inner = Map::new();
        for (go, json) in RULES {
            let value = match rules.get(go) {
                None | Some(Value::Null) => continue,
                Some(Value::Array(policies)) => policies
                    .iter()
                    .map(|policy| {
                        let field = |(go, json): &(&str, &str)| {
                            ((*json).to_owned(), policy.get(go).cloned().unwrap_or_default())
                        };
                        Value::Object(POLICY.iter().map(field).collect())
                    })
                    .collect(),
                Some(value) => value.clone(),
            };
            inner.insert(json.to_owned(), value);
        }
        out.insert(json.to_owned(), Value::Object(inner));
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn v2(metrics: Value, behavior: Value) -> Value {
        let mut object = json!({
            "metadata": {"name": "x"}, "spec": {"maxReplicas": 3, "metrics": metrics},
            "status": {"currentMetrics": null, "desiredReplicas": 0},
        });
        if !behavior.is_null() {
            object["spec"]["behavior"] = behavior;
        }
        object
    }

    /// The annotations of the old version, by fields of the new one.
    #[rstest]
    #[case(json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 55}}}]),
        Value::Null, "")]
    #[case(json!([{"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"}}}]),
        Value::Null, r#"metrics=[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"5"}}]"#)]
    #[case(json!([{"type": "Object", "object": {"describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
            "metric": {"name": "m"}, "target": {"type": "Value", "value": "7"}}}]),
        Value::Null,
        r#"metrics=[{"type":"Object","object":{"target":{"kind":"Service","name":"s","apiVersion":"v1"},"metricName":"m","targetValue":"7"}}]"#)]
    #[case(json!([{"type": "External", "external": {"metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "30"}}}]),
        Value::Null,
        r#"metrics=[{"type":"External","external":{"metricName":"q","metricSelector":{"matchLabels":{"a":"b"}},"targetAverageValue":"30"}}]"#)]
    #[case(json!([{"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}}}]),
        json!({"scaleUp": {"selectPolicy": "Max", "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}}),
        r#"behavior={"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":null} metrics=[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":60}}]"#)]
    fn there_and_back(#[case] metrics: Value, #[case] behavior: Value, #[case] annotations: &str) {
        let stored = v2(metrics, behavior);
        let mut shown = stored.clone();
        to_v1(&mut shown);
        let found: Vec<String> = shown
            .pointer("/metadata/annotations")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, text)| {
                format!(
                    "{}={}",
                    name.rsplit('/').next().unwrap_or(name),
                    text.as_str().unwrap_or_default()
                )
            })
            .collect();
        assert_eq!(found.join(" "), annotations);
        from_v1(&mut shown);
        assert_eq!(shown, stored);
    }

    #[test]
    fn who_says_nothing_aims_at_the_default() {
        let mut object =
            json!({"spec": {"maxReplicas": 3}, "status": {"currentReplicas": 0, "desiredReplicas": 0}});
        from_v1(&mut object);
        assert_eq!(
            at(&object, "spec.metrics")
                .map(|metrics| metrics[0]["resource"]["target"]["averageUtilization"].clone()),
            Some(json!(80))
        );
        to_v1(&mut object);
        assert_eq!(
            at(&object, "spec.targetCPUUtilizationPercentage"),
            Some(&json!(80))
        );
    }
}
