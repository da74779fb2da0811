//! ValidatingAdmissionPolicies: rules in CEL over any request.

pub(super) use machinery::meta::{list, text};
use std::sync::{Arc, LazyLock};

use http::StatusCode;
use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::Key;
use machinery::cel::spending::Budget;
use machinery::cel::{BUDGET_OVERRUN, Expression, Scope, values};
use machinery::meta::at;
use machinery::status::ApiError;
use shared_json::{Map, Value, json};
use store::{GroupResource, ObjectKey, Stored};

use super::{Attributes, authorizer, matching};
use crate::resources::Resource;
use crate::server::{Server, ServerState};

pub(super) const GROUP: &str = "admissionregistration.k8s.io";

/// The resource of the bindings that put policies into force.
static BINDINGS: LazyLock<GroupResource> =
    LazyLock::new(|| GroupResource::new(GROUP, "validatingadmissionpolicybindings"));

pub(super) fn all_of(server: &ServerState, table: &GroupResource) -> Result<Vec<Arc<Stored>>, ApiError> {
    let all = server.store.list(table, None, None, None);
    Ok(all.map_err(ApiError::expired)?.items)
}

/// A policy and its bindings.
pub(super) struct Policy<'a> {
    pub spec: &'a Value,
    pub binding: &'a Value,
    pub name: &'a str,
    pub binding_name: &'a str,
}

/// Whether policies look at such requests at all: not at those for policies, nor at reviews, which are no objects.
pub(super) fn may_judge(attributes: &Attributes) -> bool {
    !matches!(
        (
            attributes.resource.group.as_str(),
            attributes.resource.plural.as_str()
        ),
        (
            GROUP,
            "validatingadmissionpolicies"
                | "validatingadmissionpolicybindings"
                | "mutatingadmissionpolicies"
                | "mutatingadmissionpolicybindings"
        ) | ("authentication.k8s.io", "selfsubjectreviews" | "tokenreviews")
            | (
                "authorization.k8s.io",
                "localsubjectaccessreviews"
                    | "selfsubjectaccessreviews"
                    | "selfsubjectrulesreviews"
                    | "subjectaccessreviews"
            )
    )
}

/// Whether any policy is in force that could look at this request.
pub(super) fn is_concerned(server: &ServerState, attributes: &Attributes) -> bool {
    server.store.count(&BINDINGS) > 0 && may_judge(attributes)
}

/// The failure of one rule.
struct Refusal {
    message: String,
    reason: String,
}

/// Lets every policy that is bound judge the request.
pub(super) fn validate(whole: &Server, attributes: &Attributes) -> Result<(), ApiError> {
    let server = &whole.state;
    if !is_concerned(server, attributes) {
        return Ok(());
    }
    let bindings = all_of(server, &BINDINGS)?;
    let namespace = matching::namespace_of(server, attributes);
    let scope = authorizer::scope(whole, &attributes.user);
    let mut refused = None;
    for policy in all_of(server, &GroupResource::new(GROUP, "validatingadmissionpolicies"))? {
        let spec = at(&policy.value, "spec").unwrap_or(&Value::Null);
        let constraints = at(spec, "matchConstraints");
        if !constraints.is_some_and(|rules| matching::matches(rules, attributes, namespace.as_ref())) {
            continue;
        }
        let is_bound = |binding: &Arc<Stored>| -> bool {
            at(&binding.value, "spec.policyName").and_then(Value::as_str) == Some(policy.key.name.as_str())
        };
        // Whose parameters are of no kind is for nobody, whatever its bindings are about.
        if at(spec, "paramKind").is_some()
            && bindings.iter().any(is_bound)
            && param_resource(server, spec).is_none()
        {
            if text(spec, "failurePolicy") != "Ignore" && refused.is_none() {
                let message = format!(
                    "ValidatingAdmissionPolicy '{}' denied request: failed to configure policy: {}",
                    policy.key.name,
                    unknown_params(spec)
                );
                refused = Some((message, "Invalid".to_owned()));
            }
            continue;
        }
        for binding in &bindings {
            let bound = at(&binding.value, "spec").unwrap_or(&Value::Null);
            if text(bound, "policyName") != policy.key.name {
                continue;
            }
            let resources = at(bound, "matchResources");
            if !resources.is_none_or(|rules| matching::matches(rules, attributes, namespace.as_ref())) {
                continue;
            }
            let judge = Judge {
                attributes,
                namespace: namespace.as_ref(),
                scope: &scope,
                spec,
            };
            for refusal in judge.all(server, bound) {
                let actions = list(bound, "validationActions");
                let (policy, binding) = (&policy.key.name, &binding.key.name);
                if actions.iter().any(|action| action == "Warn") {
                    attributes.warnings.tell([format!(
                        "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {}",
                        refusal.message
                    )]);
                }
                if actions.iter().any(|action| action == "Deny") && refused.is_none() {
                    let message = format!(
                        "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {}",
                        refusal.message
                    );
                    refused = Some((message, refusal.reason));
                }
            }
        }
    }
    match refused {
        Some((message, reason)) => Err(denied(attributes, &message, &reason)),
        None => Ok(()),
    }
}

/// The resource of a policy's parameters.
fn param_resource(server: &ServerState, spec: &Value) -> Option<Arc<Resource>> {
    let (version, kind) = (text(spec, "paramKind.apiVersion"), text(spec, "paramKind.kind"));
    let served = server.registry.all();
    let found = served
        .iter()
        .find(|resource| resource.kind == kind && resource.api_version() == version);
    found.cloned()
}

fn unknown_params(spec: &Value) -> String {
    let (version, kind) = (text(spec, "paramKind.apiVersion"), text(spec, "paramKind.kind"));
    format!("failed to find resource referenced by paramKind: '{version}, Kind={kind}'")
}

fn denied(attributes: &Attributes, message: &str, reason: &str) -> ApiError {
    let mut error = ApiError::forbidden(
        &attributes.resource.group_resource(),
        attributes.shown_name(),
        message,
    );
    (error.code, error.reason) = match reason {
        "Forbidden" => (StatusCode::FORBIDDEN, "Forbidden"),
        "Unauthorized" => (StatusCode::UNAUTHORIZED, "Unauthorized"),
        "RequestEntityTooLarge" => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
        _ => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
    };
    if let Some(details) = error.details.as_mut() {
        details["causes"] = json!([{"message": message}]);
    }
    error
}

/// One policy before one request.
pub(super) struct Judge<'a> {
    pub attributes: &'a Attributes,
    pub namespace: Option<&'a Value>,
    pub scope: &'a Scope,
    pub spec: &'a Value,
}

impl Judge<'_> {
    /// All failures, once for every object of parameters.
    fn all(&self, server: &ServerState, binding: &Value) -> Vec<Refusal> {
        let fails = text(self.spec, "failurePolicy") != "Ignore";
        let broken = |message: String| {
            let refusal = Refusal {
                message,
                reason: "Invalid".to_owned(),
            };
            if fails { vec![refusal] } else { Vec::new() }
        };
        match self.all_params(server, binding) {
            Ok(params) => params
                .iter()
                .flat_map(|params| self.judge(params.as_ref()))
                .collect(),
            Err(problem) => broken(problem),
        }
    }

    /// The objects of parameters to judge with, each once; `None` for a policy without.
    pub(super) fn all_params(
        &self,
        server: &ServerState,
        binding: &Value,
    ) -> Result<Vec<Option<Value>>, String> {
        let reference = at(self.spec, "paramKind").and_then(|_| at(binding, "paramRef"));
        let Some(reference) = reference else {
            return Ok(vec![None]);
        };
        let failed = |problem: String| format!("failed to configure binding: {problem}");
        let params = self.params(server, reference).map_err(failed)?;
        if params.is_empty() && text(reference, "parameterNotFoundAction") == "Deny" {
            let problem = "no params found for policy binding with `Deny` parameterNotFoundAction";
            return Err(failed(problem.to_owned()));
        }
        Ok(params.into_iter().map(Some).collect())
    }

    fn params(&self, server: &ServerState, reference: &Value) -> Result<Vec<Value>, String> {
        let Some(resource) = param_resource(server, self.spec) else {
            return Err(unknown_params(self.spec));
        };
        let mut namespace = "";
        if resource.namespaced {
            namespace = match text(reference, "namespace") {
                "" => self.attributes.namespace.as_str(),
                given => given,
            };
            if namespace.is_empty() {
                let problem =
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
                return Err(problem.to_owned());
            }
        } else if !text(reference, "namespace").is_empty() {
            let problem = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
            return Err(problem.to_owned());
        }
        let name = text(reference, "name");
        if !name.is_empty() {
            let stored = server
                .store
                .get(&resource.table, &ObjectKey::new(namespace, name));
            return Ok(stored.map(|stored| stored.value.clone()).into_iter().collect());
        }
        let within = Some(namespace).filter(|namespace| !namespace.is_empty());
        let all = server
            .store
            .list(&resource.table, within, None, None)
            .map_err(|_| "parameters are gone".to_owned())?;
        let selector = at(reference, "selector");
        let chosen = all.items.iter().filter(|stored| {
            machinery::selector::matches_selector(
                selector,
                machinery::meta::string_map(&stored.value, "labels"),
            )
        });
        Ok(chosen.map(|stored| stored.value.clone()).collect())
    }

    fn judge(&self, params: Option<&Value>) -> Vec<Refusal> {
        let fails = text(self.spec, "failurePolicy") != "Ignore";
        let names = match self.prepared(params) {
            Ok(Some(names)) => names,
            Ok(None) => return Vec::new(),
            Err(message) if fails => {
                return vec![Refusal {
                    message,
                    reason: "Invalid".to_owned(),
                }];
            }
            Err(_) => return Vec::new(),
        };
        let mut budget = Budget::assuming();
        let mut judged = self.judge_within(&names, fails, &mut budget);
        if budget.is_doubtful() {
            judged = self.judge_within(&names, fails, &mut Budget::counting());
        }
        // Where they cost too much together, none of them says anything.
        judged.unwrap_or_else(|| {
            let refusal = Refusal {
                message: BUDGET_OVERRUN.to_owned(),
                reason: "Invalid".to_owned(),
            };
            if fails { vec![refusal] } else { Vec::new() }
        })
    }

    /// The failures of the validations; none if they cost more together than they may.
    fn judge_within(&self, names: &[(&str, Cel)], fails: bool, budget: &mut Budget) -> Option<Vec<Refusal>> {
        let mut refused = Vec::new();
        for validation in list(self.spec, "validations") {
            let expression = text(validation, "expression").trim();
            match self.value_within(expression, names, budget) {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => refused.push(Refusal {
                    message: self.message(validation, names),
                    reason: text(validation, "reason").to_owned(),
                }),
                Err(failure) if failure == BUDGET_OVERRUN => return None,
                Err(failure) if fails => refused.push(Refusal {
                    message: format!("expression '{expression}' resulted in error: {failure}"),
                    reason: "Invalid".to_owned(),
                }),
                Err(_) => {}
            }
        }
        Some(refused)
    }

    /// The names that expressions may use, variables included; `None` if the policy's conditions are not met.
    fn prepared(&self, params: Option<&Value>) -> Result<Option<Vec<(&'static str, Cel)>>, String> {
        let is_met = self.is_met(params)?;
        Ok(is_met.then(|| self.with_variables(params)))
    }

    /// Whether the policy's conditions are met.
    ///
    /// # Errors
    /// A condition without a value, where no other one says that the policy is not concerned.
    pub(super) fn is_met(&self, params: Option<&Value>) -> Result<bool, String> {
        if list(self.spec, "matchConditions").is_empty() {
            return Ok(true);
        }
        let names = self.names(params);
        let mut unmet = None;
        for condition in list(self.spec, "matchConditions") {
            let expression = text(condition, "expression").trim();
            match self.value(expression, &names) {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(failure) => {
                    let text = format!("expression '{expression}' resulted in error: {failure}");
                    unmet = unmet.or(Some(text));
                }
            }
        }
        unmet.map_or(Ok(true), Err)
    }

    /// The names that expressions may use, variables included.
    pub(super) fn with_variables(&self, params: Option<&Value>) -> Vec<(&'static str, Cel)> {
        let mut names = self.names(params);
        let (mut variables, mut failed) = (Vec::new(), Vec::new());
        for variable in list(self.spec, "variables") {
            let written = text(variable, "expression").trim();
            let Ok(expression) = Expression::read_with_objects(written) else {
                continue;
            };
            let name = text(variable, "name").to_owned();
            // One that fails is missed where it is used.
            let (known, all) = match expression.value_within(self.scope, &names, &mut Budget::assuming()) {
                Ok(value) => {
                    variables.push((name, value));
                    ("variables", &variables)
                }
                Err(failure) => {
                    let why = told(failure.text, written, &names);
                    failed.push((name, Cel::String(why.into())));
                    (FAILED, &failed)
                }
            };
            names.retain(|(name, _)| *name != known);
            names.push((known, values::map(all.clone())));
        }
        names
    }

    fn value(&self, expression: &str, names: &[(&str, Cel)]) -> Result<Cel, String> {
        self.value_within(expression, names, &mut Budget::assuming())
    }

    fn value_within(
        &self,
        expression: &str,
        names: &[(&str, Cel)],
        budget: &mut Budget,
    ) -> Result<Cel, String> {
        Expression::read(expression)?
            .value_within(self.scope, names, budget)
            .map_err(|failure| told(failure.text, expression, names))
    }

    fn message(&self, validation: &Value, names: &[(&str, Cel)]) -> String {
        let made = text(validation, "messageExpression").trim();
        if !made.is_empty()
            && let Ok(Cel::String(message)) = self.value(made, names)
        {
            let message = message.trim();
            if !message.is_empty() && !message.contains('\n') {
                return message.to_owned();
            }
        }
        match text(validation, "message").trim() {
            "" => format!("failed expression: {}", text(validation, "expression").trim()),
            message => message.to_owned(),
        }
    }

    fn names(&self, params: Option<&Value>) -> Vec<(&'static str, Cel)> {
        let plain = |value: Option<&Value>| value.map_or(Cel::Null, values::plain);
        vec![
            ("object", plain(self.attributes.object.as_ref())),
            ("oldObject", plain(self.attributes.old.as_ref())),
            ("request", values::plain(&request(self.attributes))),
            ("namespaceObject", plain(self.namespace)),
            ("params", plain(params)),
            ("authorizer", authorizer::value(&self.attributes.act())),
            ("variables", values::plain(&Value::Object(Map::new()))),
        ]
    }
}

/// Where it is kept why variables have no value; no expression can name it.
const FAILED: &str = "";

/// Why an expression has no value; the cause may be a variable that has none itself.
fn told(failure: String, expression: &str, names: &[(&str, Cel)]) -> String {
    let failed = names.iter().find(|(name, _)| *name == FAILED);
    let Some((missed, (_, Cel::Map(failed)))) = failure.strip_prefix("no such key: ").zip(failed) else {
        return failure;
    };
    let is_used = || expression.contains(&format!("variables.{missed}"));
    match failed.get(&Key::from(missed)) {
        Some(Cel::String(why)) if is_used() => {
            format!("composited variable {missed:?} fails to evaluate: {why}")
        }
        _ => failure,
    }
}

/// The request as expressions see it.
fn request(attributes: &Attributes) -> Value {
    let resource = &attributes.resource;
    let (group, version, kind) = attributes.kind_of(resource);
    let kind = json!({"group": group, "version": version, "kind": kind});
    let table = json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
    let mut request = json!({
        "kind": kind,
        "resource": table,
        "requestKind": kind,
        "requestResource": table,
        "operation": attributes.operation.as_str(),
        "userInfo": attributes.user.info(),
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    });
    // What is empty is not there.
    for (field, value) in [
        ("subResource", attributes.subresource.as_str()),
        ("requestSubResource", attributes.subresource.as_str()),
        ("name", attributes.known_name()),
        ("namespace", attributes.namespace.as_str()),
    ] {
        if !value.is_empty() {
            request[field] = Value::from(value);
        }
    }
    request
}
