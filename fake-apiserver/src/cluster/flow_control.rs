//! FlowSchemas and PriorityLevelConfigurations of the server itself: once a minute those that are gone are made again, and those
//! whose specification is the server's to say get it back.

use std::time::Duration;

use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use machinery::meta::ObjectMeta as _;
use shared_json::{Value, json};

use super::bootstrap::{ALL_SYSTEM_OBJECTS, create};

/// The time between two looks.
const PERIOD: Duration = Duration::from_secs(60);
/// The field manager of the real server's writes.
const MANAGER: &str = "api-priority-and-fairness-config-producer-v1";
/// Says whether the specification of an object that may be changed is the server's to say.
const AUTOMATIC: &str = "apf.kubernetes.io/autoupdate-spec";
/// The objects that nobody may change.
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// The objects, as a fresh server has them.
fn originals() -> Vec<Value> {
    let all = ALL_SYSTEM_OBJECTS.iter().cloned();
    let own = all.filter(|(table, _)| table.group == "flowcontrol.apiserver.k8s.io");
    own.map(|(_, mut object)| {
        object.as_object_mut().map(|fields| fields.remove("status"));
        object.metadata_mut().remove("generation");
        object
    })
    .collect()
}

/// What is to be done about an object.
#[derive(Debug, PartialEq)]
enum Step {
    Nothing,
    Create,
    Replace(Value),
}

fn plan(original: &Value, present: Option<&Value>) -> Step {
    let Some(present) = present else {
        return Step::Create;
    };
    let automatic = present
        .metadata()
        .and_then(|metadata| metadata.get("annotations"))
        .and_then(|annotations| annotations.get(AUTOMATIC))
        .and_then(Value::as_str);
    let is_mandatory = MANDATORY.contains(&original.name());
    // An object that says nothing is the server's as long as nobody has changed it.
    let is_own = is_mandatory || automatic.map_or(present.generation() == 1, |said| said == "true");
    let is_said = automatic == Some(if is_own { "true" } else { "false" });
    let wanted = wanted(original, present);
    let is_right = !is_own || present.get("spec") == Some(&wanted);
    if is_right && is_said {
        return Step::Nothing;
    }
    let mut next = present.clone();
    if is_own {
        next["spec"] = wanted;
    }
    let said = if is_own { "true" } else { "false" };
    let annotations = next.metadata_mut().entry("annotations".to_owned());
    annotations.or_insert(json!({}))[AUTOMATIC] = json!(said);
    Step::Replace(next)
}

/// The specification that an object is to have. How much the level `exempt` lends is for its users to say.
fn wanted(original: &Value, present: &Value) -> Value {
    let mut wanted = original.get("spec").cloned().unwrap_or_default();
    let present = present.pointer("/spec/exempt");
    if let (Some(wanted), Some(present)) = (wanted.get_mut("exempt"), present) {
        *wanted = present.clone();
    }
    wanted
}

/// Looks after the objects, until dropped.
pub(super) async fn maintain(client: Client) {
    let originals = originals();
    loop {
        tokio::time::sleep(PERIOD).await;
        for original in &originals {
            if let Err(error) = look(&client, original).await {
                tracing::debug!(%error, name = original.name(), "look after flow control");
            }
        }
    }
}

async fn look(client: &Client, original: &Value) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let text = |field: &str| original.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or_default();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let present = api.get_opt(original.name()).await?;
    let present = present.map(shared_json::to_value).transpose()?;
    match plan(original, present.as_ref()) {
        Step::Nothing => {}
        Step::Create => create(client, original, Some(MANAGER), false).await?,
        Step::Replace(next) => {
            let parameters = PostParams {
                field_manager: Some(MANAGER.to_owned()),
                ..PostParams::default()
            };
            let next = shared_json::from_value(next)?;
            api.replace(original.name(), &parameters, &next).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Of an object that asks for `a`: what there is, and the specification and the annotation that it gets.
    #[rstest]
    #[case::right("global-default", json!({"spec": "a", "metadata": {"annotations": {AUTOMATIC: "true"}}}), None)]
    #[case::changed("global-default", json!({"spec": "b", "metadata": {"annotations": {AUTOMATIC: "true"}}}), Some(("a", "true")))]
    #[case::kept("global-default", json!({"spec": "b", "metadata": {"annotations": {AUTOMATIC: "false"}}}), None)]
    #[case::kept_in_silence("global-default", json!({"spec": "b", "metadata": {"generation": 2}}), Some(("b", "false")))]
    #[case::never_changed("global-default", json!({"spec": "b", "metadata": {"generation": 1}}), Some(("a", "true")))]
    #[case::mandatory("catch-all", json!({"spec": "b", "metadata": {"annotations": {AUTOMATIC: "false"}}}), Some(("a", "true")))]
    fn plans(#[case] name: &str, #[case] present: Value, #[case] expected: Option<(&str, &str)>) {
        let original = json!({"metadata": {"name": name}, "spec": "a"});
        let expected = expected.map(|(spec, said)| (json!(spec), json!(said)));
        let planned = match plan(&original, Some(&present)) {
            Step::Replace(next) => Some((
                next["spec"].clone(),
                next["metadata"]["annotations"][AUTOMATIC].clone(),
            )),
            step => {
                assert_eq!(step, Step::Nothing);
                None
            }
        };
        assert_eq!(planned, expected);
        assert_eq!(plan(&original, None), Step::Create);
    }

    #[test]
    fn all_objects_of_a_fresh_server_are_looked_after() {
        assert_eq!(originals().len(), 19);
    }
}
