//! The status of validating admission policies: type errors in their expressions, given the kinds that they match.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use machinery::cel::type_check::{Typed, problems};
use machinery::meta::{ObjectMeta as _, at};
use machinery::types::{Schema, builtin};
use shared_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, is_not_found, list, number, text};

/// Of so many kinds a rule is checked (the real limit).
const KINDS_MAX: usize = 10;

/// The controller.
pub(super) struct AdmissionPolicies;

/// Group, version and kind.
type Gvk = (String, String, String);

#[async_trait]
impl Controller for AdmissionPolicies {
    fn name(&self) -> &'static str {
        "validatingadmissionpolicy-status"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::AdmissionPolicies]
    }

    fn affected(&self, _: &Cache, _: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        vec![Key::of(object)]
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(policy) = cx.cache.get(Res::AdmissionPolicies, "", &key.name).cloned() else {
            return Ok(Next::Change);
        };
        if number(&policy, "status.observedGeneration", 0) == policy.generation() {
            return Ok(Next::Change);
        }
        let warnings = warnings(cx, &policy).await?;
        let mut checking = json!({});
        if !warnings.is_empty() {
            checking["expressionWarnings"] = Value::from(warnings);
        }
        let status = json!({"observedGeneration": policy.generation(), "typeChecking": checking});
        cx.set_status(Res::AdmissionPolicies, &policy, &status).await?;
        Ok(Next::Change)
    }
}

/// The warnings of the status: expressions of the validations with an error for a kind.
async fn warnings(cx: &Cx<'_>, policy: &Value) -> Result<Vec<Value>, kube::Error> {
    let mut kinds = Vec::new();
    for gvk in matched(cx, policy).await? {
        if let Some(schema) = schema_of(cx, &gvk).await? {
            kinds.push((gvk, schema));
        }
    }
    let params = match at(policy, "spec.paramKind") {
        None => None,
        Some(kind) => {
            let (group, version) = split(text(kind, "apiVersion"));
            Some(schema_of(cx, &(group, version, text(kind, "kind").to_owned())).await?)
        }
    };
    let expressions = expressions(policy);
    let texts: Vec<&str> = expressions.iter().map(|(_, expression)| *expression).collect();
    let variables: Vec<(&str, &str)> = list(policy, "spec.variables")
        .iter()
        .map(|variable| (text(variable, "name"), text(variable, "expression")))
        .collect();
    let mut found: Vec<Vec<String>> = vec![Vec::new(); expressions.len()];
    for ((group, version, kind), schema) in &kinds {
        let typed = Typed {
            object: schema,
            params: params.as_ref().map(Option::as_deref),
        };
        for (all, problem) in found.iter_mut().zip(problems(&typed, &variables, &texts)) {
            all.extend(problem.map(|problem| format!("{group}/{version}, Kind={kind}: {problem}\n")));
        }
    }
    let warned = expressions
        .iter()
        .zip(found)
        .filter(|(_, found)| !found.is_empty());
    Ok(warned
        .map(|((field, _), found)| json!({"fieldRef": field, "warning": found.join("\n")}))
        .collect())
}

/// The expressions of a policy's validations, with the fields that they stand in.
fn expressions(policy: &Value) -> Vec<(String, &str)> {
    let mut out = Vec::new();
    for (index, validation) in list(policy, "spec.validations").iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let expression = text(validation, field);
            if field == "expression" || !expression.is_empty() {
                out.push((format!("spec.validations[{index}].{field}"), expression));
            }
        }
    }
    out
}

/// The groups, versions and resources that a rule of a policy names, in order; none of a rule with wildcards.
fn named(rule: &Value) -> Option<[Vec<&str>; 3]> {
    let texts = |field: &str| {
        let mut texts: Vec<&str> = list(rule, field).iter().filter_map(Value::as_str).collect();
        texts.sort_unstable();
        texts
    };
    let (groups, versions, mut resources) = (texts("apiGroups"), texts("apiVersions"), texts("resources"));
    resources.retain(|resource| !resource.contains(['*', '/']));
    let whole = |names: &[&str]| !names.is_empty() && !names.iter().any(|name| name.contains('*'));
    (whole(&groups) && whole(&versions) && !resources.is_empty()).then_some([groups, versions, resources])
}

/// The kinds that the rules of a policy name, in order.
async fn matched(cx: &Cx<'_>, policy: &Value) -> Result<BTreeSet<Gvk>, kube::Error> {
    let mut out = BTreeSet::new();
    for rule in list(policy, "spec.matchConstraints.resourceRules") {
        let Some([groups, versions, resources]) = named(rule) else {
            continue;
        };
        let mut count = 0;
        for group in &groups {
            for version in &versions {
                let served = served(cx, group, version).await?;
                for resource in &resources {
                    for gvk in served.iter().filter(|one| one.0 == *resource).map(|one| &one.1) {
                        out.insert(gvk.clone());
                        count += 1;
                        if count == KINDS_MAX {
                            return Ok(out);
                        }
                    }
                }
            }
        }
    }
    Ok(out)
}

/// The resources of a version of a group, by their names in the plural and in the singular, with their kinds. Without a group
/// it may be one of any: so the real mapper takes an empty one.
async fn served(cx: &Cx<'_>, group: &str, version: &str) -> Result<Vec<(String, Gvk)>, kube::Error> {
    let mut paths = Vec::new();
    if group.is_empty() {
        paths.push((String::new(), format!("/api/{version}")));
        for other in list(&cx.read("/apis").await?, "groups") {
            let versions = list(other, "versions");
            if versions.iter().any(|one| text(one, "version") == version) {
                let name = text(other, "name");
                paths.push((name.to_owned(), format!("/apis/{name}/{version}")));
            }
        }
    } else {
        paths.push((group.to_owned(), format!("/apis/{group}/{version}")));
    }
    let mut out = Vec::new();
    for (group, path) in paths {
        let Some(found) = read(cx, &path).await? else {
            continue;
        };
        for resource in list(&found, "resources") {
            let gvk = (
                group.clone(),
                version.to_owned(),
                text(resource, "kind").to_owned(),
            );
            let plural = text(resource, "name");
            if plural.contains('/') {
                continue;
            }
            let singular = text(resource, "singularName");
            out.push((plural.to_owned(), gvk.clone()));
            if !singular.is_empty() && singular != plural {
                out.push((singular.to_owned(), gvk));
            }
        }
    }
    Ok(out)
}

/// The schema of a kind; none of an unknown one.
async fn schema_of(cx: &Cx<'_>, gvk: &Gvk) -> Result<Option<Arc<Schema>>, kube::Error> {
    let (group, version, kind) = gvk;
    if let Some(schema) = builtin((group, version, kind)) {
        return Ok(Some(schema));
    }
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let Some(definitions) = read(cx, path).await? else {
        return Ok(None);
    };
    let definition = list(&definitions, "items").iter().find(|definition| {
        text(definition, "spec.group") == group && text(definition, "spec.names.kind") == kind
    });
    let found = definition
        .into_iter()
        .flat_map(|definition| list(definition, "spec.versions"))
        .find(|one| text(one, "name") == version)
        .and_then(|one| at(one, "schema.openAPIV3Schema"));
    Ok(found
        .and_then(|schema| Schema::from_openapi_v3(schema).ok())
        .map(Arc::new))
}

async fn read(cx: &Cx<'_>, path: &str) -> Result<Option<Value>, kube::Error> {
    match cx.read(path).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn split(api_version: &str) -> (String, String) {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    (group.to_owned(), version.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&["apps"], &["v1"], &["statefulsets", "deployments"], Some("apps v1 deployments,statefulsets"))]
    #[case(&[""], &["v1"], &["pods"], Some(" v1 pods"))]
    #[case(&["*"], &["v1"], &["pods"], None)]
    #[case(&["apps"], &["v1", "*"], &["deployments"], None)]
    #[case(&["apps"], &["v1"], &["deployments/scale"], None)]
    #[case(&["apps"], &["v1"], &["*/scale", "deployments"], Some("apps v1 deployments"))]
    #[case(&["apps"], &["v1"], &["*"], None)]
    #[case(&[], &["v1"], &["pods"], None)]
    fn what_rules_name(
        #[case] groups: &[&str],
        #[case] versions: &[&str],
        #[case] resources: &[&str],
        #[case] expected: Option<&str>,
    ) {
        let rule = json!({"apiGroups": groups, "apiVersions": versions, "resources": resources});
        let found = named(&rule).map(|parts| parts.map(|part| part.join(",")).join(" "));
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn expressions_by_field() {
        let policy = json!({"spec": {"validations": [
            {"expression": "a"}, {"expression": "b", "messageExpression": "c"},
        ]}});
        let expected = [
            ("spec.validations[0].expression".to_owned(), "a"),
            ("spec.validations[1].expression".to_owned(), "b"),
            ("spec.validations[1].messageExpression".to_owned(), "c"),
        ];
        assert_eq!(expressions(&policy), expected);
    }
}
