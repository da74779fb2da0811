//! Rights on device claims beyond the right to write them: admin access, and parts of the status.

use machinery::meta::at;
use machinery::user::SERVICE_ACCOUNT_PREFIX;
use pod_rules::field_error::FieldError;
use shared_json::Value;
use store::{GroupResource, ObjectKey};

use super::{Act, check};
use crate::context::Context;

const ADMIN_ACCESS: &str = "resource.kubernetes.io/admin-access";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// A field of a claim, or of a template of claims, that its writer may not set.
pub(crate) fn claimed(context: &Context, object: &Value) -> Option<FieldError> {
    let resource = &context.resource;
    if resource.group != "resource.k8s.io" || resource.is_custom() {
        return None;
    }
    let path = match resource.plural.as_str() {
        "resourceclaims" => "spec.devices.requests",
        "resourceclaimtemplates" => "spec.spec.devices.requests",
        _ => return None,
    };
    let asks = |request: &Value| at(request, "exactly.adminAccess") == Some(&Value::Bool(true));
    let index = list(Some(object), path).iter().position(asks)?;
    // Templates are complained about as if they were claims.
    admin_access(context, format!("spec.devices.requests[{index}].adminAccess"))
}

fn list<'a>(object: Option<&'a Value>, path: &str) -> &'a [Value] {
    object
        .and_then(|object| at(object, path))
        .and_then(Value::as_array)
        .map_or(&[][..], |list| list.as_slice())
}

/// Only a namespace that says so gives administrators access to devices that others use.
fn admin_access(context: &Context, path: String) -> Option<FieldError> {
    let table = GroupResource::new("", "namespaces");
    let namespace = context
        .state()
        .store
        .get(&table, &ObjectKey::new("", &context.request.namespace));
    let label = namespace.as_ref().and_then(|namespace| {
        let labels = at(&namespace.value, "metadata.labels")?;
        labels.get(ADMIN_ACCESS)?.as_str()
    });
    (label != Some("true")).then(|| {
        let detail = format!(
            "admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace"
        );
        FieldError::forbidden(path, detail)
    })
}

/// Fields of a claim's status that its writer may not change.
pub(crate) fn status(context: &Context, object: &Value, old: &Value) -> Vec<FieldError> {
    const RESULTS: &str = "status.allocation.devices.results";
    let resource = &context.resource;
    let is_status = resource.plural == "resourceclaims" && context.request.subresource == "status";
    if resource.group != "resource.k8s.io" || !is_status {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let is_admin = |result: &Value| result.get("adminAccess") == Some(&Value::Bool(true));
    if !list(Some(old), RESULTS).iter().any(is_admin)
        && let Some(index) = list(Some(object), RESULTS).iter().position(is_admin)
    {
        errors.extend(admin_access(context, format!("{RESULTS}[{index}].adminAccess")));
    }
    let verb = context.request.verb.as_str();
    let differs = |path: &str| at(object, path) != at(old, path);
    if differs("status.allocation") || differs("status.reservedFor") {
        let act = Act {
            verb: verb.to_owned(),
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            subresource: "binding".to_owned(),
            ..Act::default()
        };
        if let Err(error) = check(context.state(), &context.user, &act) {
            let detail = format!(
                "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
                 verb=\"{verb}\" permission: {}",
                error.message
            );
            errors.push(FieldError::forbidden("status.allocation", detail));
        }
    }
    if at(object, "status.allocation").is_some_and(|allocation| !allocation.is_null()) {
        errors.extend(drivers(context, object, old));
    }
    errors
}

/// A writer of device statuses needs the right for each of their drivers.
fn drivers(context: &Context, object: &Value, old: &Value) -> Vec<FieldError> {
    const DEVICES: &str = "status.devices";
    let (new, old) = (list(Some(object), DEVICES), list(Some(old), DEVICES));
    let fresh = new.iter().filter(|device| !old.contains(device));
    let gone = old.iter().filter(|device| !new.contains(device));
    let mut names: Vec<&str> = fresh
        .chain(gone)
        .filter_map(|device| device.get("driver")?.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let verb = context.request.verb.as_str();
    let mut verbs = vec![format!("arbitrary-node:{verb}")];
    if is_on_the_node(context, object) {
        verbs.insert(0, format!("associated-node:{verb}"));
    }
    let refused = |name: &&str| {
        let acts = verbs.iter().map(|verb| Act {
            verb: verb.clone(),
            group: context.resource.group.clone(),
            resource: context.resource.plural.clone(),
            subresource: "driver".to_owned(),
            namespace: context.request.namespace.clone(),
            name: (*name).to_owned(),
            ..Act::default()
        });
        let mut first = None;
        for act in acts {
            match check(context.state(), &context.user, &act) {
                Ok(()) => return None,
                Err(error) => first = first.or(Some(error)),
            }
        }
        let detail = format!(
            "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: {}",
            verbs.join(" "),
            first?.message
        );
        Some(FieldError::forbidden(DEVICES, detail))
    };
    names.iter().filter_map(refused).collect()
}

/// Whether the writer is a service account of a pod on the node that the claim was allocated for.
fn is_on_the_node(context: &Context, object: &Value) -> bool {
    let terms = list(Some(object), "status.allocation.nodeSelector.nodeSelectorTerms");
    let ([term], Some([name])) = (terms, context.user.extra.get(NODE_NAME).map(Vec::as_slice)) else {
        return false;
    };
    let [field] = list(Some(term), "matchFields") else {
        return false;
    };
    let is = |path: &str, wanted: &str| field.get(path).and_then(Value::as_str) == Some(wanted);
    context.user.name.starts_with(SERVICE_ACCOUNT_PREFIX)
        && list(Some(term), "matchExpressions").is_empty()
        && is("key", "metadata.name")
        && is("operator", "In")
        && matches!(list(Some(field), "values"), [value] if value == name.as_str())
}
