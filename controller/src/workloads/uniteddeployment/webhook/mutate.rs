//! The defaults of a UnitedDeployment.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::api::v1alpha1::{UnitedDeploymentTopology, UnitedDeploymentUpdateStrategy};
use crate::gates::FeatureGates;
use crate::kit::json::omit_empty;
use crate::pods::template::spec::default_templates;
use crate::workloads::uniteddeployment::canonical;
use crate::workloads::uniteddeployment::settings::DEFAULT_HISTORY_LIMIT;

/// Fields of the spec that Go decodes into numbers.
const NUMBERS: [&str; 2] = ["replicas", "revisionHistoryLimit"];

/// Fills the defaults into `set`, for a creation (no `old`) or an update. The defaults of a pod template are filled in when the template is
/// new or has changed, and only for a StatefulSet of Kubernetes. When nothing is missing and there is no status the object is left as it
/// came, otherwise its spec is written as Go writes it.
///
/// # Errors
/// The decoder's text when the spec is none of a UnitedDeployment (status 400).
pub(super) fn mutate_set(set: &mut Value, old: Option<&Value>, gates: &FeatureGates) -> Result<(), String> {
    let Some(spec) = set.get("spec") else {
        return Ok(());
    };
    let canonical = canonical_spec(spec)?;
    let old = old.and_then(|old| canonical_spec(old.get("spec")?).ok());
    let is_new = old.is_none_or(|old| old.get("template") != canonical.get("template"));
    let mut defaulted = canonical.clone();
    default_spec(&mut defaulted);
    let stateful = defaulted
        .get_mut("template")
        .and_then(|template| template.pointer_mut("/statefulSetTemplate/spec")?.as_object_mut());
    if let Some(spec) = stateful.filter(|_| is_new && !gates.is_on("TemplateNoDefaults")) {
        default_templates(spec);
    }
    // OpenKruise empties the status, which the server ignores; but then it has changed the object, and writes all of it.
    let has_status = set
        .get("status")
        .and_then(Value::as_object)
        .is_some_and(|status| !status.is_empty());
    if (defaulted != canonical || has_status)
        && let Some(set) = set.as_object_mut()
    {
        set.insert("spec".to_owned(), Value::Object(defaulted));
    }
    Ok(())
}

fn default_spec(spec: &mut Map<String, Value>) {
    spec.entry("revisionHistoryLimit")
        .or_insert(json!(DEFAULT_HISTORY_LIMIT));
    if let Some(update) = spec.get_mut("updateStrategy").and_then(Value::as_object_mut) {
        let kind = update.entry("type").or_insert_with(|| json!("Manual"));
        if kind.as_str() == Some("Manual") {
            update.entry("manualUpdate").or_insert_with(|| json!({}));
        }
    }
    let subsets = spec
        .get_mut("topology")
        .and_then(|topology| topology.get_mut("subsets")?.as_array_mut());
    let Some(subsets) = subsets else { return };
    let any = |fields: &[&str], subsets: &[Value]| {
        let has = |subset: &Value| fields.iter().any(|field| subset.get(*field).is_some());
        subsets.iter().any(has)
    };
    if any(&["minReplicas", "maxReplicas"], subsets) && !any(&["replicas"], subsets) {
        for subset in subsets.iter_mut().filter_map(Value::as_object_mut) {
            subset.entry("minReplicas").or_insert(json!(0));
        }
    }
}

/// The spec as Go writes it after reading it.
///
/// # Errors
/// The decoder's text when it is none.
pub(super) fn canonical_spec(spec: &Value) -> Result<Map<String, Value>, String> {
    let Value::Object(given) = spec else {
        return Err("spec is not an object".to_owned());
    };
    let nothing = json!({});
    let part = |name: &str| given.get(name).filter(|part| !part.is_null());
    let mut fields = Map::new();
    for name in NUMBERS {
        match part(name) {
            Some(Value::String(_)) => {
                return Err(format!(
                    "json: cannot unmarshal string into Go struct field UnitedDeploymentSpec.spec.{name} of type int32"
                ));
            }
            Some(number) => drop(fields.insert(name.to_owned(), number.clone())),
            None => {}
        }
    }
    let mut selector = part("selector").cloned().unwrap_or_default();
    omit_empty(&mut selector);
    fields.insert("selector".to_owned(), selector);
    let template = canonical::template(part("template").unwrap_or(&nothing))?;
    fields.insert("template".to_owned(), template);
    let mut topology = without_nulls(part("topology").unwrap_or(&nothing));
    topology = through::<UnitedDeploymentTopology>(topology)?;
    if let Some(topology) = topology.as_object_mut() {
        topology.entry("scheduleStrategy").or_insert_with(|| json!({}));
    }
    let subsets = topology.get_mut("subsets").and_then(Value::as_array_mut);
    for subset in subsets.into_iter().flatten().filter_map(Value::as_object_mut) {
        let term = subset.entry("nodeSelectorTerm").or_insert_with(|| json!({}));
        omit_empty(term);
        subset.retain(|field, value| field != "tolerations" || *value != json!([]));
    }
    fields.insert("topology".to_owned(), topology);
    let strategy = without_nulls(part("updateStrategy").unwrap_or(&nothing));
    let strategy = through::<UnitedDeploymentUpdateStrategy>(strategy)?;
    fields.insert("updateStrategy".to_owned(), strategy);
    Ok(fields)
}

/// A part of the spec without fields that are null, as Go reads it. Patches of subsets keep theirs.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.iter().filter(|(_, field)| !field.is_null());
            let kept = fields.map(|(name, field)| {
                let kept = if name == "patch" {
                    field.clone()
                } else {
                    without_nulls(field)
                };
                (name.clone(), kept)
            });
            Value::Object(kept.collect())
        }
        Value::Array(list) => list.iter().map(without_nulls).collect(),
        value => value.clone(),
    }
}

/// Decodes into `T`, and encodes again.
fn through<T: DeserializeOwned + Serialize>(value: Value) -> Result<Value, String> {
    let typed: T = serde_json::from_value(value).map_err(|error| error.to_string())?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The strategy and the subsets as they are sent, and as they are stored.
    #[rstest]
    #[case::nothing(json!({}), json!([]), json!({ "type": "Manual", "manualUpdate": {} }), json!(null))]
    #[case::another_type(json!({ "type": "Bogus" }), json!([]), json!({ "type": "Bogus" }), json!(null))]
    #[case::partitions(
        json!({ "manualUpdate": { "partitions": { "a": 1 } } }), json!([]),
        json!({ "type": "Manual", "manualUpdate": { "partitions": { "a": 1 } } }), json!(null)
    )]
    #[case::nulls(
        json!({ "type": null, "manualUpdate": { "partitions": { "a": null } } }),
        json!([{ "name": "a", "replicas": null, "patch": { "spec": { "x": null } } }]), json!({ "type": "Manual", "manualUpdate": {} }),
        json!([{ "name": "a", "nodeSelectorTerm": {}, "patch": { "spec": { "x": null } } }])
    )]
    #[case::minima(
        json!({}), json!([{ "name": "a", "maxReplicas": 2 }, { "name": "b" }]), json!({ "type": "Manual", "manualUpdate": {} }),
        json!([{ "name": "a", "nodeSelectorTerm": {}, "maxReplicas": 2, "minReplicas": 0 },
            { "name": "b", "nodeSelectorTerm": {}, "minReplicas": 0 }])
    )]
    #[case::no_minima_beside_replicas(
        json!({}), json!([{ "name": "a", "maxReplicas": 2 }, { "name": "b", "replicas": 1, "tolerations": [] }]),
        json!({ "type": "Manual", "manualUpdate": {} }),
        json!([{ "name": "a", "nodeSelectorTerm": {}, "maxReplicas": 2 }, { "name": "b", "nodeSelectorTerm": {}, "replicas": 1 }])
    )]
    fn defaults(
        #[case] strategy: Value,
        #[case] subsets: Value,
        #[case] want_strategy: Value,
        #[case] want_subsets: Value,
    ) {
        let spec = json!({ "selector": {}, "updateStrategy": strategy, "topology": { "subsets": subsets } });
        let mut set = json!({ "spec": spec });
        mutate_set(&mut set, None, &FeatureGates::default()).unwrap();
        let spec = &set["spec"];
        assert_eq!(spec["updateStrategy"], want_strategy);
        assert_eq!(
            spec["topology"].get("subsets").unwrap_or(&Value::Null),
            &want_subsets
        );
        assert_eq!(spec["revisionHistoryLimit"], 10);
        let again = set.clone();
        mutate_set(&mut set, Some(&again), &FeatureGates::default()).unwrap();
        assert_eq!(set, again, "idempotent");
    }

    /// The gates, whether the template is that of the object before, and whether its defaults are filled in.
    #[rstest]
    #[case("", false, true)]
    #[case("", true, false)]
    #[case("TemplateNoDefaults=true", false, false)]
    fn pod_templates(#[case] gates: &str, #[case] is_old: bool, #[case] expect: bool) {
        let spec = json!({ "selector": {}, "template": { "statefulSetTemplate": { "spec": { "template": {
            "spec": { "containers": [{ "name": "main" }] } } } } } });
        let mut set = json!({ "spec": spec });
        let old = is_old.then(|| set.clone());
        mutate_set(&mut set, old.as_ref(), &FeatureGates::parse(gates).unwrap()).unwrap();
        let pod = &set["spec"]["template"]["statefulSetTemplate"]["spec"]["template"]["spec"];
        assert_eq!(pod["restartPolicy"].is_string(), expect);
    }

    #[test]
    fn a_text_is_no_number() {
        let mut set = json!({ "spec": { "replicas": "3" } });
        let error = mutate_set(&mut set, None, &FeatureGates::default()).unwrap_err();
        assert!(
            error.ends_with("UnitedDeploymentSpec.spec.replicas of type int32"),
            "{error}"
        );
    }
}
