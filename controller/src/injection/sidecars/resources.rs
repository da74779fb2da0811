//! The resources of a container that follow from those of the pod's own containers.

use pod_rules::quantity::Quantity;
use regex::Regex;
use serde_json::{Map, Value, json};

use super::calculator::{self, evaluate};
use crate::api::v1beta1::{ResourceExprs, ResourcesPolicy};

/// The limits or requests of the containers that count.
struct Amounts<'a> {
    /// `limits` or `requests`.
    kind: &'static str,
    /// The containers.
    targets: &'a [&'a Value],
    /// Whether the largest counts, instead of the sum.
    largest: bool,
}

impl Amounts<'_> {
    /// The amount of a resource over all containers. A container without a limit makes it unlimited; one without a request
    /// asks for nothing.
    fn of(&self, resource: &str) -> Option<Quantity> {
        let mut total = Quantity::count(0);
        for target in self.targets {
            let value = target.pointer(&format!("/resources/{}/{resource}", self.kind));
            let own = match value {
                Some(value) => Quantity::of(&shared_json::to_value(value).unwrap_or_default()),
                None if self.kind == "limits" => return None,
                None => Quantity::count(0),
            };
            if !self.largest {
                total = total.plus(own);
            } else if own.nanos() > total.nanos() {
                total = own;
            }
        }
        Some(total)
    }

    /// The amounts that the expressions give.
    fn evaluated(&self, expressions: Option<&ResourceExprs>) -> Result<Map<String, Value>, String> {
        let mut out = Map::new();
        let Some(expressions) = expressions else {
            return Ok(out);
        };
        let rows = [
            ("cpu", "CPU", &expressions.cpu),
            ("memory", "memory", &expressions.memory),
        ];
        for (resource, title, expression) in rows {
            let Some(expression) = expression.as_ref().filter(|text| !text.is_empty()) else {
                continue;
            };
            let Some(amount) = self.of(resource) else { continue };
            // OpenKruise tells the variable by a search in the text.
            let variable = if expression.contains("memory") {
                "memory"
            } else {
                "cpu"
            };
            let value = evaluate(expression, (variable, calculator::Value::Amount(amount))).map_err(|error| {
                let kind = self.kind;
                format!(
                    "failed to evaluate {title} {kind} expression: failed to parse expression {expression:?}: {error}"
                )
            })?;
            out.insert(resource.to_owned(), json!(calculator::amount(value).canonical()));
        }
        Ok(out)
    }
}

/// The resources by a policy, given the pod's containers that may count (init containers first).
///
/// # Errors
/// If no container's name matches, or an expression has no value.
pub(super) fn by(policy: &ResourcesPolicy, candidates: &[&Value]) -> Result<Value, String> {
    let pattern = policy.target_containers_name_regex.as_deref().unwrap_or(".*");
    let regex = Regex::new(pattern).map_err(|_| format!("invalid regex pattern {pattern:?}"))?;
    let name = |container: &Value| {
        container
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let targets: Vec<&Value> = candidates
        .iter()
        .copied()
        .filter(|container| regex.is_match(&name(container)))
        .collect();
    if targets.is_empty() {
        return Err(format!("no containers match the regex pattern {pattern:?}"));
    }
    let mut resources = Map::new();
    let expressions = &policy.resources_expr;
    for (kind, expressions) in [
        ("limits", expressions.limits.as_ref()),
        ("requests", expressions.requests.as_ref()),
    ] {
        let amounts = Amounts {
            kind,
            targets: &targets,
            largest: policy.target_containers_mode == "max",
        };
        let amounts = amounts.evaluated(expressions)?;
        if !amounts.is_empty() {
            resources.insert(kind.to_owned(), Value::Object(amounts));
        }
    }
    Ok(Value::Object(resources))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn container(name: &str, limits: &Value, requests: &Value) -> Value {
        json!({ "name": name, "resources": { "limits": limits, "requests": requests } })
    }

    fn check(mode: &str, regex: &str, expressions: Value, containers: &[Value]) -> Result<Value, String> {
        let policy = json!({ "targetContainersMode": mode, "targetContainersNameRegex": regex, "resourcesExpr": expressions });
        let containers: Vec<&Value> = containers.iter().collect();
        by(&serde_json::from_value(policy).unwrap(), &containers)
    }

    #[rstest]
    #[case::sum("sum", ".*", json!({ "limits": { "cpu": "cpu*50%" } }), Ok(json!({ "limits": { "cpu": "75m" } })))]
    #[case::max("max", ".*", json!({ "limits": { "cpu": "cpu*50%" } }), Ok(json!({ "limits": { "cpu": "50m" } })))]
    #[case::one_by_name("sum", "^b", json!({ "limits": { "cpu": "cpu" } }), Ok(json!({ "limits": { "cpu": "50m" } })))]
    #[case::not_anchored("sum", "b", json!({ "limits": { "cpu": "cpu" } }), Ok(json!({ "limits": { "cpu": "150m" } })))]
    #[case::unlimited("sum", ".*", json!({ "limits": { "memory": "10Mi" } }), Ok(json!({})))]
    #[case::requests("sum", ".*", json!({ "requests": { "memory": "memory*2", "cpu": "cpu" } }),
        Ok(json!({ "requests": { "memory": "128Mi", "cpu": "0" } })))]
    #[case::of_both("max", ".*", json!({ "limits": { "cpu": "max(cpu, 20m)" }, "requests": { "memory": "min(memory, 32Mi)" } }),
        Ok(json!({ "limits": { "cpu": "100m" }, "requests": { "memory": "32Mi" } })))]
    #[case::plain_number("sum", ".*", json!({ "limits": { "cpu": "0.2" } }), Ok(json!({ "limits": { "cpu": "200m" } })))]
    #[case::empty_expression("sum", ".*", json!({ "limits": { "cpu": "" } }), Ok(json!({})))]
    #[case::no_name_matches("sum", "^none$", json!({ "limits": { "cpu": "cpu" } }),
        Err("no containers match the regex pattern \"^none$\""))]
    #[case::negative("sum", "^a$", json!({ "limits": { "cpu": "cpu-200m" } }),
        Err("no containers match the regex pattern \"^a$\""))]
    #[case::less_than_nothing("sum", "^ab$", json!({ "limits": { "cpu": "cpu-200m" } }),
        Err("failed to evaluate CPU limits expression: failed to parse expression \"cpu-200m\": calculation result is negative: -100m"))]
    #[case::wrong_case("sum", ".*", json!({ "requests": { "memory": "MEMORY*2" } }),
        Err("failed to evaluate memory requests expression: failed to parse expression \"MEMORY*2\": undefined variable: MEMORY"))]
    fn policies(
        #[case] mode: &str,
        #[case] regex: &str,
        #[case] expressions: Value,
        #[case] want: Result<Value, &str>,
    ) {
        let containers = [
            container(
                "ab",
                &json!({ "cpu": "100m", "memory": "64Mi" }),
                &json!({ "memory": "64Mi" }),
            ),
            container("b", &json!({ "cpu": "50m" }), &json!({})),
        ];
        assert_eq!(
            check(mode, regex, expressions, &containers),
            want.map_err(str::to_owned)
        );
    }
}
