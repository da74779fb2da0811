//! Changes of the templates of claims, where claims follow them while their pods are updated.

use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use pod_rules::FieldError;
use pod_rules::quantity::Quantity;
use serde_json::Value;

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

/// The storage that claims of a template ask for, or may have (`requests`, `limits`). Without a figure it is none.
fn storage(template: &Value, of: &str) -> i128 {
    let storage = template.pointer(&format!("/spec/resources/{of}/storage"));
    // A quantity may be written as a number.
    let storage = storage.and_then(|storage| match storage {
        Value::String(text) => Quantity::parse(text),
        Value::Number(number) => Quantity::parse(&number.to_string()),
        _ => None,
    });
    storage.map_or(0, Quantity::nanos)
}

fn class_name(template: &Value) -> Option<&str> {
    template.pointer("/spec/storageClassName").and_then(Value::as_str)
}

fn modes(template: &Value) -> &[Value] {
    let modes = template.pointer("/spec/accessModes").and_then(Value::as_array);
    modes.map_or(&[], Vec::as_slice)
}

/// Whether claims of one template can become claims of the other by another size. Nothing but the class, where both name one, and the
/// modes counts.
fn fit(new: &Value, old: &Value) -> bool {
    let classes = class_name(new).zip(class_name(old));
    classes.is_none_or(|(new, old)| new == old) && modes(new) == modes(old)
}

/// The class of storage of a template's claims: the one that it names, or the newest of those for claims that name none.
async fn class_of(client: &Client, template: &Value) -> Result<Option<StorageClass>, FieldError> {
    let classes: Api<StorageClass> = Api::all(client.clone());
    let error = |value: &str, detail| {
        let path = format!("{PATH}[{}].spec.storageClassName", name(template));
        FieldError::invalid(path, value, detail)
    };
    if let Some(name) = class_name(template) {
        // The API answers a request without a name with the list.
        if name.is_empty() {
            return Err(error(name, "can not get sc"));
        }
        let class = classes.get(name).await;
        return class.map(Some).map_err(|_| error(name, "can not get sc"));
    }
    let all = classes.list(&ListParams::default()).await;
    let all = all.map_err(|_| error("nil", "can not list storage class"))?;
    let defaults = all.items.into_iter().filter(|class| {
        let annotation = class.annotations().get(IS_DEFAULT);
        annotation.is_some_and(|value| value == "true")
    });
    Ok(defaults.max_by_key(|class| class.metadata.creation_timestamp.as_ref().map(|time| time.0)))
}

/// The error of a template that claims of the old one cannot follow.
async fn follow(new: &Value, old: &[Value], client: Option<&Client>) -> Result<(), FieldError> {
    let path = format!("{PATH}[{}]", name(new));
    let Some(old) = old.iter().find(|old| name(old) == name(new)) else {
        let detail = "volumeClaimTemplate name can not be modified";
        return Err(FieldError::forbidden(format!("{path}.name"), detail));
    };
    if !fit(new, old) {
        let detail = "volumeClaimTemplate can not be modified when OnRollingUpdate";
        return Err(FieldError::invalid_shown(path, new.to_string(), detail));
    }
    let same_size = ["requests", "limits"]
        .iter()
        .all(|of| storage(new, of) == storage(old, of));
    let Some(client) = client.filter(|_| !same_size) else {
        return Ok(());
    };
    let class = class_of(client, new).await?;
    match class.filter(|class| class.allow_volume_expansion == Some(false)) {
        Some(class) => {
            let path = format!("{path}.spec.resources.requests.storage");
            let detail = format!(
                "storage class {} does not support volume expansion",
                class.name_any()
            );
            Err(FieldError::forbidden(path, detail))
        }
        None => Ok(()),
    }
}

/// The error of an update whose claims cannot follow their templates, if the old set asks them to do so: the first one, in the order of
/// the new templates.
pub(super) async fn update(new: &Value, old: &Value, client: Option<&Client>) -> Option<FieldError> {
    let kind = old.pointer("/spec/volumeClaimUpdateStrategy/type");
    if matches!(kind.and_then(Value::as_str), None | Some("" | "OnDelete")) {
        return None;
    }
    let (new, old) = (templates(new), templates(old));
    if new.len() != old.len() {
        let detail = "volumeClaimTemplate can not be added or deleted when OnRollingUpdate";
        let shown = Value::from(new.to_vec()).to_string();
        return Some(FieldError::invalid_shown(PATH, shown, detail));
    }
    for template in new {
        if let Err(error) = follow(template, old, client).await {
            return Some(error);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use kube::client::Body;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// A client of a server with the classes `grows`, `stays` and `silent`. `stays` is for claims that name none, if
    /// `default` says so.
    fn client(default: bool) -> Client {
        let class = move |name: &str, expansion: Value| {
            json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p", "allowVolumeExpansion": expansion,
                "metadata": { "name": name, "annotations": { IS_DEFAULT: (default && name == "stays").to_string() } } })
        };
        let classes = [
            class("grows", true.into()),
            class("stays", false.into()),
            class("silent", Value::Null),
        ];
        let service = tower::service_fn(move |request: hyper::Request<Body>| {
            let asked = request
                .uri()
                .path()
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned();
            let one = classes.iter().find(|class| class["metadata"]["name"] == *asked);
            let (code, answer) = match one {
                Some(class) => (200, class.clone()),
                None if asked == "storageclasses" => {
                    let items = Value::from(classes.to_vec());
                    (
                        200,
                        json!({ "kind": "StorageClassList", "apiVersion": "storage.k8s.io/v1", "metadata": {}, "items": items }),
                    )
                }
                None => (
                    404,
                    json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404 }),
                ),
            };
            let response = hyper::Response::builder().status(code);
            std::future::ready(response.body(Body::from(answer.to_string().into_bytes())))
        });
        Client::new(service, "default")
    }

    /// A set with templates of these names, sizes and classes. A class of `-` is not named.
    fn set(templates: &[(&str, &str, &str)]) -> Value {
        let template = |(name, storage, class): &(&str, &str, &str)| {
            let mut template = json!({ "metadata": { "name": name }, "spec": { "accessModes": ["ReadWriteOnce"],
                "storageClassName": class, "resources": { "requests": { "storage": storage } } } });
            if *class == "-" {
                template["spec"]
                    .as_object_mut()
                    .unwrap()
                    .remove("storageClassName");
            }
            template
        };
        let templates: Vec<Value> = templates.iter().map(template).collect();
        json!({ "spec": { "volumeClaimUpdateStrategy": { "type": "OnPodRollingUpdate" }, "volumeClaimTemplates": templates } })
    }

    const GET: &str =
        r#"spec.volumeClaimTemplates[a].spec.storageClassName: Invalid value: "CLASS": can not get sc"#;
    const STAYS: &str = "spec.volumeClaimTemplates[a].spec.resources.requests.storage: Forbidden: storage class stays does not support volume expansion";
    const NUMBER: &str = "volumeClaimTemplate can not be added or deleted when OnRollingUpdate";

    #[rstest]
    #[case::the_same(&[("a", "1Gi", "grows")], "1Gi", "grows", "")]
    #[case::larger(&[("a", "1Gi", "grows")], "2Gi", "grows", "")]
    #[case::the_same_in_other_words(&[("a", "1Gi", "stays")], "1024Mi", "stays", "")]
    #[case::a_class_that_does_not_grow(&[("a", "1Gi", "stays")], "2Gi", "stays", STAYS)]
    #[case::smaller(&[("a", "1Gi", "grows")], "1Mi", "grows", "")]
    #[case::smaller_in_a_class_that_does_not_grow(&[("a", "1Gi", "stays")], "1Mi", "stays", STAYS)]
    #[case::a_class_that_does_not_say(&[("a", "1Gi", "silent")], "2Gi", "silent", "")]
    #[case::a_class_that_is_not_there(&[("a", "1Gi", "gone")], "2Gi", "gone", &GET.replace("CLASS", "gone"))]
    #[case::an_empty_class(&[("a", "1Gi", "")], "2Gi", "", &GET.replace("CLASS", ""))]
    #[case::the_class_of_claims_that_name_none(&[("a", "1Gi", "-")], "2Gi", "-", STAYS)]
    #[case::a_class_that_is_named_now(&[("a", "1Gi", "-")], "2Gi", "grows", "")]
    #[case::another_class(&[("a", "1Gi", "grows")], "1Gi", "stays",
        r#"spec.volumeClaimTemplates[a]: Invalid value: {"metadata":{"name":"a"}"#)]
    #[case::renamed(&[("b", "1Gi", "grows")], "1Gi", "grows",
        "spec.volumeClaimTemplates[a].name: Forbidden: volumeClaimTemplate name can not be modified")]
    #[case::added(&[], "1Gi", "grows", NUMBER)]
    #[case::taken_away(&[("a", "1Gi", "grows"), ("b", "1Gi", "grows")], "1Gi", "grows", NUMBER)]
    #[tokio::test]
    async fn changes_of_templates(
        #[case] old: &[(&str, &str, &str)],
        #[case] storage: &str,
        #[case] class: &str,
        #[case] expect: &str,
    ) {
        let error = update(&set(&[("a", storage, class)]), &set(old), Some(&client(true))).await;
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(
            error.contains(expect) && error.is_empty() == expect.is_empty(),
            "{error}"
        );
    }

    /// The old set, a change of the new one at a pointer, and the error.
    #[rstest]
    #[case::limits(("/spec/resources/limits", json!({ "storage": "1" })), STAYS)]
    #[case::a_number(("/spec/resources/requests/storage", json!(1)), STAYS)]
    #[case::the_same_as_a_number(("/spec/resources/requests/storage", json!(1_073_741_824)), "")]
    #[case::modes(("/spec/accessModes", json!(["ReadWriteMany"])), "volumeClaimTemplate can not be modified when OnRollingUpdate")]
    #[case::labels(("/metadata/labels", json!({ "a": "b" })), "")]
    #[case::the_mode_of_volumes(("/spec/volumeMode", json!("Block")), "")]
    #[case::what_the_server_fills_in(("/status", json!({ "phase": "Pending" })), "")]
    #[tokio::test]
    async fn changes_of_fields(#[case] (field, value): (&str, Value), #[case] expect: &str) {
        let old = set(&[("a", "1Gi", "stays")]);
        let mut new = old.clone();
        let (parent, field) = field.rsplit_once('/').unwrap();
        new.pointer_mut(&format!("/spec/volumeClaimTemplates/0{parent}"))
            .unwrap()[field] = value;
        let error = update(&new, &old, Some(&client(true))).await;
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(
            error.contains(expect) && error.is_empty() == expect.is_empty(),
            "{error}"
        );
    }

    #[rstest]
    #[case::none_for_claims_without_a_class(false, "OnPodRollingUpdate")]
    #[case::claims_stay(true, "OnDelete")]
    #[case::no_strategy(true, "")]
    #[tokio::test]
    async fn nothing_is_asked(#[case] default: bool, #[case] kind: &str) {
        let mut old = set(&[("a", "1Gi", "-")]);
        old["spec"]["volumeClaimUpdateStrategy"]["type"] = kind.into();
        let error = update(&set(&[("a", "2Gi", "-")]), &old, Some(&client(default))).await;
        assert_eq!(error.map(|error| error.to_string()), None);
    }
}
