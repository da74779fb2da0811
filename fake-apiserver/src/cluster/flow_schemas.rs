//! The statuses of FlowSchemas: whether the PriorityLevelConfiguration that each names is there, as the real server's consumer of
//! these objects reports it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use client_kit::{JsonChange, SharedClock, watch_json};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::select;
use kube::Client;
use machinery::meta::{ObjectMeta as _, list, text};
use machinery::types::rfc3339;
use shared_json::{Value, json};

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
/// The field manager of the real server's writes.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const DANGLING: &str = "Dangling";

/// Follows FlowSchemas and levels, and writes conditions, until dropped.
pub(super) fn report(client: Client, clock: SharedClock) -> BoxFuture<'static, ()> {
    Box::pin(follow(client, clock))
}

async fn follow(client: Client, clock: SharedClock) {
    let of =
        |path: &'static str| watch_json(client.clone(), path, "", true).map(move |change| (path, change));
    let mut changes = select(of(SCHEMAS), of(LEVELS));
    let mut schemas: BTreeMap<String, Arc<Value>> = BTreeMap::new();
    let (mut levels, mut unseen) = (BTreeSet::new(), 2_u32);
    while let Some((path, change)) = changes.next().await {
        match change {
            JsonChange::Present(object) if path == SCHEMAS => {
                schemas.insert(object.name().to_owned(), object);
            }
            JsonChange::Gone(object) if path == SCHEMAS => _ = schemas.remove(object.name()),
            JsonChange::Present(object) => _ = levels.insert(object.name().to_owned()),
            JsonChange::Gone(object) => _ = levels.remove(object.name()),
            JsonChange::Synced => unseen = unseen.saturating_sub(1),
        }
        if unseen > 0 {
            continue;
        }
        for schema in schemas.values() {
            let Some(condition) = due(schema, &levels) else {
                continue;
            };
            if let Err(error) = write(&client, schema.name(), condition, &clock).await {
                tracing::debug!(%error, name = schema.name(), "report on a FlowSchema");
            }
        }
    }
}

/// The condition that a schema lacks, without its time; none if it has it.
fn due(schema: &Value, levels: &BTreeSet<String>) -> Option<Value> {
    let level = text(schema, "spec.priorityLevelConfiguration.name");
    let begin = format!("This FlowSchema references the PriorityLevelConfiguration object named \"{level}\"");
    let wanted = if levels.contains(level) {
        json!({"type": DANGLING, "status": "False", "reason": "Found", "message": format!("{begin} and it exists")})
    } else {
        let message = format!("{begin} but there is no such object");
        json!({"type": DANGLING, "status": "True", "reason": "NotFound", "message": message})
    };
    let present = list(schema, "status.conditions")
        .iter()
        .find(|condition| text(condition, "type") == DANGLING);
    let is_there = present.is_some_and(|present| {
        ["status", "reason", "message"]
            .iter()
            .all(|field| present.get(*field) == wanted.get(*field))
    });
    (!is_there).then_some(wanted)
}

async fn write(
    client: &Client,
    name: &str,
    mut condition: Value,
    clock: &SharedClock,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    condition["lastTransitionTime"] = Value::from(rfc3339(clock.now_seconds()));
    let applied = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": name},
        "status": {"conditions": [condition]},
    });
    let request = http::Request::patch(format!(
        "{SCHEMAS}/{name}/status?fieldManager={MANAGER}&force=true"
    ))
    .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
    .body(applied.to_string().into_bytes())?;
    client.request::<Value>(request).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::new("a", json!({}), Some("False"))]
    #[case::known("a", json!({"conditions": [{
        "type": "Dangling", "status": "False", "reason": "Found",
        "message": "This FlowSchema references the PriorityLevelConfiguration object named \"a\" and it exists",
    }]}), None)]
    #[case::level_is_gone("b", json!({"conditions": [{
        "type": "Dangling", "status": "False", "reason": "Found",
        "message": "This FlowSchema references the PriorityLevelConfiguration object named \"b\" and it exists",
    }]}), Some("True"))]
    #[case::another_condition("a", json!({"conditions": [{"type": "Other", "status": "True"}]}), Some("False"))]
    fn conditions(#[case] level: &str, #[case] status: Value, #[case] expected: Option<&str>) {
        let schema = json!({"metadata": {"name": "s"}, "spec": {"priorityLevelConfiguration": {"name": level}}, "status": status});
        let levels = BTreeSet::from(["a".to_owned()]);
        let due = due(&schema, &levels);
        assert_eq!(due.as_ref().map(|condition| text(condition, "status")), expected);
    }
}
