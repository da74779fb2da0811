//! Type checks of a policy's expressions against the kinds that it matches: the warnings in the status of a policy.
//!
//! As `validating/typechecking.go` of the real server has it: `object`, `oldObject` and `params` have the types that their
//! schemas describe. A variable whose expression is wrong may be anything, and so may one of a type that a schema describes.

use std::collections::BTreeMap;

use super::depth::deep;
use super::policies::{Wanted, environment, lasting};
use super::ty::{Shape, Ty};
use super::{Expression, complaints, types};
use crate::types::Schema;

/// The types of one kind that a policy is for.
pub struct Typed<'a> {
    /// The schema of the objects.
    pub object: &'a Schema,
    /// The schema of the parameters, if the policy has any; the inner one is none if it is unknown.
    pub params: Option<Option<&'a Schema>>,
}

/// The errors of each expression; `variables` are names and expressions, in the order of their declaration.
pub fn problems(typed: &Typed<'_>, variables: &[(&str, &str)], expressions: &[&str]) -> Vec<Option<String>> {
    let mut known: BTreeMap<String, Ty<'static>> = BTreeMap::new();
    for (name, expression) in variables {
        let ty = match Expression::read(expression.trim()) {
            Ok(read) => Some(check(typed, &known, &read)).filter(|checked| checked.wrong.is_empty()),
            Err(_) => None,
        };
        let ty = ty.map_or(Ty::Dyn, |checked| lasting(&checked.result));
        known.insert((*name).to_owned(), ty);
    }
    let problem = |text: &&str| match Expression::read(text) {
        Err(error) => Some(error),
        Ok(read) => {
            let checked = check(typed, &known, &read);
            (!checked.wrong.is_empty()).then(|| complaints(text, &checked.wrong))
        }
    };
    expressions.iter().map(problem).collect()
}

fn check<'a>(
    typed: &Typed<'a>,
    variables: &'a BTreeMap<String, Ty<'static>>,
    read: &Expression,
) -> types::Checked<'a> {
    let params = typed.params.map(|params| params.map_or(Ty::Dyn, described));
    let mut names = environment(described(typed.object), params, Some(variables), Wanted::Anything);
    // The real check forgets this one.
    names.retain(|(name, _)| name != "authorizer.requestResource");
    deep(|| types::check(&read.tree, names))
}

/// The type of a whole resource: its metadata is as its schema says.
fn described(schema: &Schema) -> Ty<'_> {
    Ty::Object(Shape::Described {
        schema,
        is_resource: false,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::types::builtin;

    #[rstest]
    #[case("object.spec.replicas > 1", None)]
    #[case("object.spec.none > 1", Some("1:12: undefined field 'none'"))]
    #[case("oldObject.spec.none > 1", Some("1:15: undefined field 'none'"))]
    #[case(
        "object.spec.replicas == 'x'",
        Some("1:22: found no matching overload for '_==_' applied to '(int, string)'")
    )]
    #[case(
        "object.kind == 1",
        Some("1:13: found no matching overload for '_==_' applied to '(string, int)'")
    )]
    #[case("object.metadata.name == 'x' && object.metadata.labels['a'] == 'b'", None)]
    #[case("object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')", None)]
    #[case("object.spec.template.spec.containers.all(c, c.image == 'x')", None)]
    #[case(
        "object.spec.template.spec.containers[0].resources.limits.cpu == '1'",
        Some("1:50: undefined field 'limits'")
    )]
    #[case("object.spec.strategy.rollingUpdate.maxSurge == 1", None)]
    #[case(
        "object.metadata.managedFields[0].fieldsV1.x == 1",
        Some("1:42: undefined field 'x'")
    )]
    #[case("params.data.max == '1'", None)]
    #[case("params.nope == 1", Some("1:7: undefined field 'nope'"))]
    #[case("variables.n > 1", None)]
    #[case(
        "variables.n == 'x'",
        Some("1:13: found no matching overload for '_==_' applied to '(int, string)'")
    )]
    #[case(
        "variables.twice == 'x'",
        Some("1:17: found no matching overload for '_==_' applied to '(int, string)'")
    )]
    #[case(
        "authorizer.requestResource.check('get').allowed()",
        Some("1:11: unexpected failed resolution of 'kubernetes.authorization.Authorizer'")
    )]
    #[case("variables.all.exists(c, c.none == 1)", None)]
    #[case("variables.wrong == 'x' || variables.wrong == 1", None)]
    fn of_deployments(#[case] expression: &str, #[case] expected: Option<&str>) {
        let object = builtin(("apps", "v1", "Deployment")).unwrap();
        let params = builtin(("", "v1", "ConfigMap")).unwrap();
        let typed = Typed {
            object: &object,
            params: Some(Some(&params)),
        };
        let variables = [
            ("n", "object.spec.replicas"),
            ("twice", "variables.n * 2"),
            ("wrong", "object.spec.nope"),
            ("all", "object.spec.template.spec.containers"),
        ];
        let found = problems(&typed, &variables, &[expression]).remove(0);
        let line = found
            .as_deref()
            .and_then(|text| text.lines().next())
            .map(str::to_owned);
        assert_eq!(line, expected.map(|text| format!("ERROR: <input>:{text}")));
    }
}
