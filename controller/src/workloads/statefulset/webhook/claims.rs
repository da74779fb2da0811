//! Changes of the templates of claims, where claims follow them while their pods are updated.

use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use pod_rules::FieldError;
use pod_rules::quantity::Quantity;
use serde_json::Value;

use crate::pods::template::claim_template;

/// Where the templates are.
const PATH: &str = "spec.volumeClaimTemplates";
/// The annotation of the class that claims without a class get.
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

fn templates(set: &Value) -> &[Value] {
    let list = set
        .pointer("/spec/volumeClaimTemplates")
        .and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn name(template: &Value) -> &str {
    let name = template.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default()
}

fn storage(template: &Value) -> Option<i128> {
    let storage = template.pointer("/spec/resources/requests/storage")?.as_str()?;
    Quantity::parse(storage).map(Quantity::nanos)
}

/// A template without its size, and without the status that is filled into new sets alone.
fn rest(template: &Value) -> Value {
    let mut rest = claim_template(template).unwrap_or_else(|_| template.clone());
    if let Some(rest) = rest.as_object_mut() {
        rest.remove("status");
    }
    let requests = rest.pointer_mut("/spec/resources/requests");
    if let Some(requests) = requests.and_then(Value::as_object_mut) {
        requests.remove("storage");
    }
    rest
}

/// The templates that become larger, or the error of a change that claims cannot follow.
fn larger<'v>(new: &'v Value, old: &Value) -> Result<Vec<&'v Value>, FieldError> {
    let (new, old) = (templates(new), templates(old));
    let shown = || Value::from(new.to_vec()).to_string();
    if new.len() != old.len() {
        let detail = "volumeClaimTemplate can not be added or deleted when OnRollingUpdate";
        return Err(FieldError::invalid_shown(PATH, shown(), detail));
    }
    let mut larger = Vec::new();
    for template in new {
        let Some(before) = old.iter().find(|before| name(before) == name(template)) else {
            let path = format!("{PATH}[{}].name", name(template));
            let detail = "volumeClaimTemplate name can not be modified";
            return Err(FieldError::forbidden(path, detail));
        };
        if rest(template) != rest(before) {
            let detail = "volumeClaimTemplate can not be modified when OnRollingUpdate";
            return Err(FieldError::invalid_shown(PATH, shown(), detail));
        }
        if storage(template) > storage(before) {
            larger.push(template);
        }
    }
    Ok(larger)
}

/// The class of storage of a template's claims: the one that it names, or the newest of those for claims that name none.
async fn class_of(client: &Client, template: &Value) -> Result<Option<StorageClass>, String> {
    let classes: Api<StorageClass> = Api::all(client.clone());
    let named = template.pointer("/spec/storageClassName").and_then(Value::as_str);
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        let class = classes.get(name).await;
        return class.map(Some).map_err(|_| "can not get sc".to_owned());
    }
    let all = classes.list(&ListParams::default()).await;
    let all = all.map_err(|_| "can not list storage class".to_owned())?;
    let defaults = all.items.into_iter().filter(|class| {
        let annotation = class.annotations().get(IS_DEFAULT);
        annotation.is_some_and(|value| value == "true")
    });
    Ok(defaults.max_by_key(|class| class.metadata.creation_timestamp.as_ref().map(|time| time.0)))
}

/// The error of an update whose claims cannot follow their templates, if the old set asks them to do so.
pub(super) async fn update(new: &Value, old: &Value, client: Option<&Client>) -> Option<FieldError> {
    let kind = old.pointer("/spec/volumeClaimUpdateStrategy/type");
    if kind.and_then(Value::as_str) != Some("OnPodRollingUpdate") {
        return None;
    }
    let larger = match larger(new, old) {
        Ok(larger) => larger,
        Err(error) => return Some(error),
    };
    for template in larger {
        let path = format!("{PATH}[{}].spec.resources.requests.storage", name(template));
        let class = match class_of(client?, template).await {
            Ok(class) => class,
            Err(detail) => return Some(FieldError::forbidden(path, detail)),
        };
        if let Some(class) = class.filter(|class| class.allow_volume_expansion == Some(false)) {
            let class = class.name_any();
            let detail = format!("storage class {class} does not support volume expansion");
            return Some(FieldError::forbidden(path, detail));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn set(templates: &[(&str, &str, &str)]) -> Value {
        let template = |(name, storage, class): &(&str, &str, &str)| {
            let mut template = json!({ "metadata": { "name": name }, "spec": {
                "storageClassName": class.trim_end_matches(", filled in"),
                "resources": { "requests": { "storage": storage } } } });
            if class.ends_with("filled in") {
                template["status"] = json!({ "phase": "Pending" });
                template["metadata"]["creationTimestamp"] = Value::Null;
            }
            template
        };
        let templates: Vec<Value> = templates.iter().map(template).collect();
        json!({ "spec": { "volumeClaimTemplates": templates } })
    }

    #[rstest]
    #[case::the_same(&[("a", "1Gi", "c")], Ok(0))]
    #[case::larger(&[("a", "2Gi", "c")], Ok(1))]
    #[case::filled_in(&[("a", "2Gi", "c, filled in")], Ok(1))]
    #[case::the_same_in_other_words(&[("a", "1024Mi", "c")], Ok(0))]
    #[case::smaller(&[("a", "1Mi", "c")], Ok(0))]
    #[case::added(&[("a", "1Gi", "c"), ("b", "1Gi", "c")],
        Err("volumeClaimTemplate can not be added or deleted when OnRollingUpdate"))]
    #[case::taken_away(&[], Err("volumeClaimTemplate can not be added or deleted when OnRollingUpdate"))]
    #[case::renamed(&[("b", "1Gi", "c")],
        Err("spec.volumeClaimTemplates[b].name: Forbidden: volumeClaimTemplate name can not be modified"))]
    #[case::of_another_class(&[("a", "1Gi", "d")], Err("volumeClaimTemplate can not be modified when OnRollingUpdate"))]
    fn changes_of_templates(#[case] new: &[(&str, &str, &str)], #[case] expect: Result<usize, &str>) {
        let (new, old) = (set(new), set(&[("a", "1Gi", "c")]));
        match (larger(&new, &old), expect) {
            (Ok(larger), Ok(count)) => assert_eq!(larger.len(), count),
            (Err(error), Err(expect)) => {
                let error = error.to_string();
                assert!(error.contains(expect), "{error}");
            }
            (got, expect) => panic!("{got:?}, not {expect:?}"),
        }
    }
}
