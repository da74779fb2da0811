//! Aggregated cluster roles: their rules are those of the roles that their selectors match.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list};
use crate::meta::{ObjectMeta as _, string_map};
use crate::selector::matches_selector;

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
            cx.patch(Res::ClusterRoles, &role, "", json!({"rules": wanted}))
                .await?;
        }
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_from_the_roles_that_match() {
        let role = |name: &str, label: &str, verb: &str| {
            Arc::new(
                json!({"metadata": {"name": name, "labels": {"to": label}}, "rules": [{"verbs": [verb]}]}),
            )
        };
        let all = json!({"metadata": {"name": "all"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}});
        let roles = [
            role("a", "all", "get"),
            role("b", "other", "list"),
            role("c", "all", "get"),
            role("d", "all", "watch"),
        ];
        assert_eq!(
            rules(&all, &roles),
            [json!({"verbs": ["get"]}), json!({"verbs": ["watch"]})]
        );
    }
}
