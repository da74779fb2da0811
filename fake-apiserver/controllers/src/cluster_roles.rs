//! Aggregated cluster roles: their rules are those of the roles that their selectors match.

use std::sync::Arc;

use async_trait::async_trait;
use machinery::meta::{ObjectMeta as _, string_map};
use machinery::selector::matches_selector;
use shared_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list};

/// The controller.
pub(super) struct ClusterRoleAggregation;

fn selectors(role: &Value) -> &[Value] {
    list(role, "aggregationRule.clusterRoleSelectors")
}

/// The rules of a role that aggregates others: theirs, by name, each once.
fn rules(role: &Value, roles: &[Arc<Value>]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for selector in selectors(role) {
        for other in roles {
            if other.name() == role.name() || !matches_selector(Some(selector), string_map(other, "labels")) {
                continue;
            }
            for rule in list(other, "rules") {
                if !out.contains(rule) {
                    out.push(rule.clone());
                }
            }
        }
    }
    out
}

#[async_trait]
impl Controller for ClusterRoleAggregation {
    fn name(&self) -> &'static str {
        "clusterrole-aggregation-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::ClusterRoles]
    }

    fn affected(&self, cache: &Cache, _: Res, _: &Value, _: Option<&Value>) -> Vec<Key> {
        cache
            .all(Res::ClusterRoles)
            .filter(|role| !selectors(role).is_empty())
            .map(|role| Key::of(role))
            .collect()
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(role) = cx.cache.get(Res::ClusterRoles, "", &key.name).cloned() else {
            return Ok(Next::Change);
        };
        let roles: Vec<Arc<Value>> = cx.cache.all(Res::ClusterRoles).cloned().collect();
        let wanted = rules(&role, &roles);
        if !selectors(&role).is_empty() && list(&role, "rules") != wanted.as_slice() {
            // What it no longer has anything to say of is left to whoever wrote it.
            let applied = if wanted.is_empty() {
                json!({})
            } else {
                json!({"rules": wanted})
            };
            cx.apply(Res::ClusterRoles, &role, "", applied, self.name())
                .await?;
        }
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A role by its name, the labels that it has, and its rules, each a verb.
    fn role(name: &str, labels: &[&str], verbs: &[&str]) -> Arc<Value> {
        let labels: shared_json::Map = labels
            .iter()
            .map(|label| ((*label).to_owned(), json!("yes")))
            .collect();
        let rules: Vec<Value> = verbs.iter().map(|verb| json!({"verbs": [verb]})).collect();
        Arc::new(json!({"metadata": {"name": name, "labels": labels}, "rules": rules}))
    }

    /// The verbs that a role with these selectors gets from the roles below.
    #[track_caller]
    fn check(selectors: Value, expected: &str) {
        let roles = [
            role("all", &["x", "y"], &["self"]),
            role("b", &["x"], &["get", "list"]),
            role("c", &["y"], &["list", "watch"]),
            role("d", &["x", "y"], &["delete"]),
            role("e", &[], &["patch"]),
            role("f", &["x"], &[]),
        ];
        let all =
            json!({"metadata": {"name": "all"}, "aggregationRule": {"clusterRoleSelectors": selectors}});
        let found: Vec<String> = rules(&all, &roles)
            .iter()
            .map(|rule| rule["verbs"][0].as_str().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(found.join(" "), expected, "{selectors}");
    }

    #[test]
    fn rules_come_from_the_roles_that_match() {
        let labels = |labels: &[&str]| {
            let labels: shared_json::Map = labels
                .iter()
                .map(|label| ((*label).to_owned(), json!("yes")))
                .collect();
            json!({"matchLabels": labels})
        };
        let says =
            |key: &str, operator: &str| json!({"matchExpressions": [{"key": key, "operator": operator}]});
        check(json!([]), "");
        check(json!([labels(&["x"])]), "get list delete");
        check(json!([{}, labels(&["x"])]), "get list watch delete patch");
        check(json!([says("z", "Exists")]), "");
        check(
            json!([says("x", "Exists"), says("x", "DoesNotExist")]),
            "get list delete watch patch",
        );
        check(json!([labels(&["y"])]), "list watch delete");
        check(json!([labels(&["x", "y"])]), "delete");
        check(json!([labels(&["z"])]), "");
        check(json!([{"matchLabels": {"x": "no"}}]), "");
        // Selector by selector; what is there already does not come again.
        check(json!([labels(&["x"]), labels(&["y"])]), "get list delete watch");
        check(json!([labels(&["y"]), labels(&["x"])]), "list watch delete get");
        check(json!([labels(&["x"]), labels(&["x"])]), "get list delete");
        check(json!([labels(&["z"]), labels(&["y"])]), "list watch delete");
        // An empty selector matches all, but not the role itself.
        check(json!([{}]), "get list watch delete patch");
        check(json!([says("x", "Exists")]), "get list delete");
        check(json!([says("x", "DoesNotExist")]), "list watch patch");
        check(
            json!([{"matchExpressions": [{"key": "y", "operator": "In", "values": ["yes", "no"]}]}]),
            "list watch delete",
        );
        check(
            json!([{"matchExpressions": [{"key": "y", "operator": "NotIn", "values": ["yes"]}]}]),
            "get list patch",
        );
        check(
            json!([{"matchLabels": {"x": "yes"}, "matchExpressions": [{"key": "y", "operator": "DoesNotExist"}]}]),
            "get list",
        );
    }

    #[test]
    fn which_roles_a_change_concerns() {
        let mut cache = Cache::default();
        let aggregating = |name: &str, selectors: Value| {
            json!({
                "metadata": {"name": name, "uid": name}, "aggregationRule": {"clusterRoleSelectors": selectors},
            })
        };
        let plain = json!({"metadata": {"name": "plain", "uid": "p"}});
        for (role, expected) in [
            (plain.clone(), vec![]),
            (aggregating("none", json!([])), vec![]),
            (aggregating("a", json!([{}])), vec!["a"]),
            (aggregating("b", json!([{}])), vec!["a", "b"]),
        ] {
            cache.put(Res::ClusterRoles, role);
            let keys = ClusterRoleAggregation.affected(&cache, Res::ClusterRoles, &plain, None);
            let names: Vec<String> = keys.into_iter().map(|key| key.name.into()).collect();
            assert_eq!(names, expected);
        }
    }
}
