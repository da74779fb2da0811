//! An APIService for each served version of a CustomResourceDefinition, as kube-apiserver registers them.

use std::collections::BTreeMap;

use http::Request;
use machinery::meta::{ObjectMeta as _, at};
use server::Server;
use shared_json::{Value, json};
use store::{GroupResource, Scope, Watcher};

/// Marks an APIService that the server makes and deletes by itself.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const PATH: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// The places of custom resources among groups and versions.
const GROUP_PRIORITY: i64 = 1000;
const VERSION_PRIORITY: i64 = 100;

fn definitions() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

fn registered() -> GroupResource {
    GroupResource::new("apiregistration.k8s.io", "apiservices")
}

/// A write that is due.
#[derive(Debug, PartialEq)]
enum Step {
    Create(Value),
    Delete(String),
}

/// The APIServices of a definition that is served, by name.
fn wanted(definition: &Value) -> Vec<(String, Value)> {
    let text = |value: &Value, path: &str| {
        at(value, path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let conditions = at(definition, "status.conditions").and_then(Value::as_array);
    let is_served = conditions
        .into_iter()
        .flatten()
        .any(|condition| text(condition, "type") == "Established" && text(condition, "status") == "True");
    let group = text(definition, "spec.group");
    let versions = at(definition, "spec.versions").and_then(Value::as_array);
    let served = versions
        .into_iter()
        .flatten()
        .filter(|version| is_served && version.get("served").and_then(Value::as_bool) == Some(true));
    served
        .map(|version| {
            let version = text(version, "name");
            let name = format!("{version}.{group}");
            let object = json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": name, "labels": {MANAGED: "true"}},
                "spec": {
                    "group": group, "version": version,
                    "groupPriorityMinimum": GROUP_PRIORITY, "versionPriority": VERSION_PRIORITY,
                },
            });
            (name, object)
        })
        .collect()
}

/// One that somebody else has registered stays as it is.
fn plan<'a>(
    definitions: impl IntoIterator<Item = &'a Value>,
    registered: impl IntoIterator<Item = &'a Value>,
) -> Vec<Step> {
    let mut wanted: BTreeMap<String, Value> = definitions.into_iter().flat_map(wanted).collect();
    let mut steps = Vec::new();
    for service in registered {
        let is_own = at(service, "metadata.labels")
            .and_then(|labels| labels.get(MANAGED)?.as_str())
            .is_some_and(|label| label == "true");
        if wanted.remove(service.name()).is_none() && is_own {
            steps.push(Step::Delete(service.name().to_owned()));
        }
    }
    steps.extend(wanted.into_values().map(Step::Create));
    steps
}

/// Registers the versions of definitions, until dropped.
pub(super) async fn maintain(server: Server) {
    let store = server.store();
    let client = server.objects_named("kube-apiserver");
    let list = |table: &GroupResource| {
        store
            .list(table, None, None, None)
            .map(|list| list.items)
            .unwrap_or_default()
    };
    let watch = |table: &GroupResource| store.watch(table, Scope::All, store.revision(), false);
    loop {
        let (Ok(mut of_definitions), Ok(mut of_services)) = (watch(&definitions()), watch(&registered()))
        else {
            return tracing::warn!("definitions are not registered any more: the history has no now");
        };
        let (defined, known) = (list(&definitions()), list(&registered()));
        let steps = plan(
            defined.iter().map(|stored| &*stored.value),
            known.iter().map(|stored| &*stored.value),
        );
        for step in steps {
            let request = match step {
                Step::Create(object) => Request::post(PATH).body(object),
                Step::Delete(name) => Request::delete(format!("{PATH}/{name}")).body(Value::Null),
            };
            let Ok(request) = request else { continue };
            // A change that came in between wakes the next look.
            if let Err(error) = client.send(request).await {
                tracing::debug!(%error, "register a definition");
            }
        }
        changed(&mut of_definitions, &mut of_services).await;
    }
}

async fn changed(one: &mut Watcher, other: &mut Watcher) {
    tokio::select! {
        biased;
        () = one.changed() => {}
        () = other.changed() => {}
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A definition as `group: version version-`, with a dash after a version that is not served.
    fn definition(text: &str, established: &str) -> Value {
        let (group, versions) = text.split_once(": ").expect("a definition");
        let versions: Vec<Value> = versions
            .split(' ')
            .map(|version| json!({"name": version.trim_end_matches('-'), "served": !version.ends_with('-')}))
            .collect();
        json!({
            "spec": {"group": group, "versions": versions},
            "status": {"conditions": [{"type": "Established", "status": established}]},
        })
    }

    fn registration(name: &str, label: Value) -> Value {
        json!({"metadata": {"name": name, "labels": {MANAGED: label}}})
    }

    #[rstest]
    #[case::new(&["g: v1 v2-"], "True", &[], &["+v1.g"])]
    #[case::not_served_yet(&["g: v1"], "False", &[], &[])]
    #[case::there(&["g: v1"], "True", &[("v1.g", json!("true"))], &[])]
    #[case::of_two(&["g: v1 v2", "g: v1"], "True", &[], &["+v1.g", "+v2.g"])]
    #[case::gone(&[], "True", &[("v1.g", json!("true"))], &["-v1.g"])]
    #[case::somebody_elses(&["g: v1"], "True", &[("v1.g", Value::Null)], &[])]
    #[case::somebody_elses_alone(&[], "True", &[("v1.g", Value::Null), ("v1.apps", json!("onstart"))], &[])]
    fn plans(
        #[case] defined: &[&str],
        #[case] established: &str,
        #[case] known: &[(&str, Value)],
        #[case] expected: &[&str],
    ) {
        let defined: Vec<Value> = defined.iter().map(|text| definition(text, established)).collect();
        let known: Vec<Value> = known
            .iter()
            .map(|(name, label)| registration(name, label.clone()))
            .collect();
        let steps: Vec<String> = plan(&defined, &known)
            .into_iter()
            .map(|step| match step {
                Step::Create(object) => format!("+{}", object.name()),
                Step::Delete(name) => format!("-{name}"),
            })
            .collect();
        assert_eq!(steps, expected);
    }
}
