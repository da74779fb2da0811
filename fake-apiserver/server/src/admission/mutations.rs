//! MutatingAdmissionPolicies: changes of a request's object, in CEL.
//!
//! A mutation is an apply configuration (`Object{…}`), merged by the type's rules, or a list of operations
//! (`JSONPatch{…}`). Policies go by name; those that ask for it go once more after all have been there.

use std::sync::LazyLock;

use http::StatusCode;
use machinery::cel::spending::Budget;
use machinery::cel::{Expression, Scope, values};
use machinery::meta::at;
use machinery::patch::{self, apply};
use machinery::status::ApiError;
use shared_json::{Value, json};
use store::GroupResource;

use super::policies::{GROUP, Judge, Policy, all_of, list, text};
use super::{Attributes, authorizer, matching};
use crate::incoming::{self, Patched};
use crate::resources::Resource;
use crate::server::{Server, ServerState};

/// The resource of the bindings that put policies into force.
static BINDINGS: LazyLock<GroupResource> =
    LazyLock::new(|| GroupResource::new(GROUP, "mutatingadmissionpolicybindings"));

/// Whether any policy is in force that could change this request's object.
pub(super) fn is_concerned(server: &ServerState, attributes: &Attributes) -> bool {
    server.store.count(&BINDINGS) > 0 && super::policies::may_judge(attributes)
}

/// Lets every policy that is bound change the object.
pub(super) fn mutate(whole: &Server, attributes: &mut Attributes) -> Result<(), ApiError> {
    let server = &whole.state;
    if attributes.object.is_none() || !is_concerned(server, attributes) {
        return Ok(());
    }
    let bindings = all_of(server, &BINDINGS)?;
    let namespace = matching::namespace_of(server, attributes);
    let scope = authorizer::scope(whole, &attributes.user);
    let policies = all_of(server, &GroupResource::new(GROUP, "mutatingadmissionpolicies"))?;
    let (mut again, mut ran) = (Vec::new(), false);
    for policy in &policies {
        for binding in &bindings {
            let one = Policy {
                spec: at(&policy.value, "spec").unwrap_or(&Value::Null),
                binding: at(&binding.value, "spec").unwrap_or(&Value::Null),
                name: &policy.key.name,
                binding_name: &binding.key.name,
            };
            if text(one.binding, "policyName") != policy.key.name {
                continue;
            }
            let own = run(server, attributes, namespace.as_ref(), &scope, &one)?;
            ran |= own;
            if own && text(one.spec, "reinvocationPolicy") == "IfNeeded" {
                again.push((policy, binding));
            }
        }
    }
    if ran {
        for (policy, binding) in again {
            let one = Policy {
                spec: at(&policy.value, "spec").unwrap_or(&Value::Null),
                binding: at(&binding.value, "spec").unwrap_or(&Value::Null),
                name: &policy.key.name,
                binding_name: &binding.key.name,
            };
            run(server, attributes, namespace.as_ref(), &scope, &one)?;
        }
    }
    Ok(())
}

/// Lets one policy change the object; whether any of its mutations was made.
fn run(
    server: &ServerState,
    attributes: &mut Attributes,
    namespace: Option<&Value>,
    scope: &Scope,
    policy: &Policy<'_>,
) -> Result<bool, ApiError> {
    let is_about =
        |rules: Option<&Value>| rules.is_none_or(|rules| matching::matches(rules, attributes, namespace));
    let constraints = at(policy.spec, "matchConstraints");
    if constraints.is_none() || !is_about(constraints) || !is_about(at(policy.binding, "matchResources")) {
        return Ok(false);
    }
    let fails = text(policy.spec, "failurePolicy") != "Ignore";
    let (mut ran, mut problems) = (false, Vec::new());
    fn judge<'a>(
        attributes: &'a Attributes,
        (namespace, scope, spec): (Option<&'a Value>, &'a Scope, &'a Value),
    ) -> Judge<'a> {
        Judge {
            attributes,
            namespace,
            scope,
            spec,
        }
    }
    let rest = (namespace, scope, policy.spec);
    let all_params = judge(attributes, rest).all_params(server, policy.binding);
    let all_params = all_params.unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    for params in all_params {
        match judge(attributes, rest).is_met(params.as_ref()) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        }
        for mutation in list(policy.spec, "mutations") {
            // What a mutation before this one did is seen; one that fails does not keep the others from being made.
            let names = judge(attributes, rest).with_variables(params.as_ref());
            match mutated(attributes, mutation, scope, &names) {
                Ok(mut object) => {
                    if text(mutation, "patchType") == "JSONPatch" && attributes.subresource.is_empty() {
                        read_again(&attributes.resource, &mut object)?;
                    }
                    attributes.object = Some(object);
                    ran = true;
                }
                Err(problem) => problems.push(problem),
            }
        }
    }
    match problems.first() {
        Some(problem) if fails => Err(denied(attributes, policy, problem)),
        _ => Ok(ran),
    }
}

/// Reads the result of a JSON patch again, as text.
///
/// # Errors
/// 500 if the result is no object of the resource.
fn read_again(resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
    let Some(schema) = resource.schema().filter(|_| !resource.is_custom()) else {
        return Ok(());
    };
    match incoming::check_patched(resource, object) {
        Ok(()) => {}
        Err(Patched::Undecodable(why)) if why.starts_with("converting ") => {
            return Err(ApiError::internal(format!("failed to convert object: {why}")));
        }
        Err(Patched::Undecodable(why)) => return Err(ApiError::internal(why)),
        Err(Patched::Refused(error)) => return Err(error),
    }
    if let Err(error) = schema.check_types(object) {
        return Err(ApiError::internal(error.to_string()));
    }
    let unknown = schema.prune(&mut object.clone());
    if unknown.is_empty() {
        return Ok(());
    }
    let complaints: Vec<String> = unknown
        .iter()
        .map(|path| format!("unknown field \"{path}\""))
        .collect();
    Err(ApiError::internal(format!(
        "strict decoding error: {}",
        complaints.join(", ")
    )))
}

fn denied(attributes: &Attributes, policy: &Policy<'_>, problem: &str) -> ApiError {
    let why = format!(
        "policy '{}' with binding '{}' denied request: {problem}",
        policy.name, policy.binding_name
    );
    let mut error = ApiError::forbidden(
        &attributes.resource.group_resource(),
        attributes.shown_name(),
        &why,
    );
    (error.code, error.reason) = (StatusCode::FORBIDDEN, "Invalid");
    if let Some(details) = error.details.as_mut() {
        details["causes"] = json!([{"message": why}]);
    }
    // What was refused stands in the details alone.
    error.message = why;
    error
}

/// The object after one mutation.
fn mutated(
    attributes: &Attributes,
    mutation: &Value,
    scope: &Scope,
    names: &[(&str, kube_cel::cel::Value)],
) -> Result<Value, String> {
    let object = attributes.object.clone().unwrap_or_default();
    let is_patch = text(mutation, "patchType") == "JSONPatch";
    let part = if is_patch {
        "jsonPatch"
    } else {
        "applyConfiguration"
    };
    let expression = at(mutation, part)
        .map_or("", |part| text(part, "expression"))
        .trim();
    let value = Expression::read_with_objects(expression)?
        .value_within(scope, names, &mut Budget::assuming())
        .map_err(|failure| format!("expression '{expression}' resulted in error: {}", failure.text))?;
    let mut value = values::to_json(&value);
    if is_patch {
        return match patch::json::apply(&object, &value) {
            Ok(object) => Ok(object),
            // A test that fails only says that there is nothing to do.
            Err(error) if error.to_string().ends_with("test failed") => Ok(object),
            Err(error) => Err(format!("JSON Patch: {error}")),
        };
    }
    let Some(schema) = attributes.resource.schema() else {
        return Ok(object);
    };
    // What it is changed for cannot be changed.
    for field in ["apiVersion", "kind"] {
        if let (Some(given), Some(own)) = (value.get_mut(field), object.get(field)) {
            *given = own.clone();
        }
    }
    apply::merged(&schema, &object, &value).map_err(|problem| format!("error applying patch: {problem}"))
}
