//! The conditions of a webhook: expressions in CEL that a write must fulfil before the webhook is asked about it.

use kube_cel::cel::Value as Cel;
use machinery::cel::spending::Budget;
use machinery::cel::{Scope, compile, values};
use shared_json::Value;

use super::configuration::Concern;
use super::review;
use crate::admission::Attributes;
use crate::admission::authorizer;

/// Whether all conditions hold. One that does not hold decides, even if others cannot be evaluated.
///
/// # Errors
/// The evaluation errors of conditions that cannot be evaluated.
pub(super) fn hold(
    conditions: &[Value],
    attributes: &Attributes,
    concern: &Concern,
    scope: &Scope,
) -> Result<bool, String> {
    let request = review::request(attributes, concern);
    let part = |field: &str| values::plain(request.get(field).unwrap_or(&Value::Null));
    let (object, old) = (part("object"), part("oldObject"));
    let mut rest = request.clone();
    for field in ["object", "oldObject"] {
        rest.as_object_mut().map(|request| request.remove(field));
    }
    let variables = [
        ("object", object),
        ("oldObject", old),
        ("request", values::plain(&rest)),
        ("authorizer", authorizer::value(&attributes.act())),
    ];
    let mut problems = Vec::new();
    for condition in conditions {
        let expression = condition
            .get("expression")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let value = compile(expression).and_then(|compiled| {
            let failed = |why: String| format!("expression '{expression}' resulted in error: {why}");
            compiled
                .value_within(scope, &variables, &mut Budget::assuming())
                .map_err(|failure| failed(failure.text))
        });
        match value {
            Ok(Cel::Bool(true)) => {}
            Ok(Cel::Bool(false)) => return Ok(false),
            Ok(_) => problems.push(format!(
                "expression '{expression}' resulted in error: no such overload"
            )),
            Err(problem) => problems.push(problem),
        }
    }
    match problems.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use shared_json::json;

    use super::*;
    use crate::admission::Operation;
    use crate::authn::User;
    use crate::context::Warnings;
    use crate::resources::Registry;

    fn attributes() -> Attributes {
        let resource = Registry::default()
            .find("", "v1", "configmaps")
            .expect("config maps");
        Attributes {
            user: User::master(),
            operation: Operation::Create,
            resource: Arc::clone(&resource),
            subresource: String::new(),
            namespace: "n".to_owned(),
            name: "a".to_owned(),
            object: Some(json!({"metadata": {"name": "a", "labels": {"x": "y"}}})),
            old: None,
            dry_run: false,
            options: json!({}),
            warnings: Warnings::default(),
        }
    }

    #[rstest]
    #[case(&[], Ok(true))]
    #[case(&["object.metadata.name == 'a'"], Ok(true))]
    #[case(&["object.metadata.name == 'a'", "request.namespace == 'm'"], Ok(false))]
    #[case(&["'system:masters' in request.userInfo.groups", "oldObject == null"], Ok(true))]
    #[case(&["object.data.k == 'v'", "false"], Ok(false))]
    #[case(&["object.data.k == 'v'"], Err("expression 'object.data.k == 'v'' resulted in error: no such key: data"))]
    fn conditions(#[case] expressions: &[&str], #[case] expected: Result<bool, &str>) {
        let attributes = attributes();
        let conditions: Vec<Value> = expressions
            .iter()
            .map(|text| json!({"name": "c", "expression": text}))
            .collect();
        let got = hold(
            &conditions,
            &attributes,
            &Concern::direct(&attributes),
            &Scope::new(),
        );
        assert_eq!(got, expected.map_err(str::to_owned));
    }
}
