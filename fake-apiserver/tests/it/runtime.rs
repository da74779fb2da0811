//! kube-rs' own machinery against the in-process cluster: watchers, reflectors, controllers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::Cluster;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Client, Resource as _, ResourceExt as _};
use shared_json::json;

use super::support::simulate;

fn config_map(name: &str, copied: bool) -> ConfigMap {
    let labels = if copied { json!({"copy": "yes"}) } else { json!({}) };
    let object = json!({"metadata": {"name": name, "labels": labels}, "data": {"k": name}});
    shared_json::from_value(object).expect("a config map")
}

/// However a watcher begins (with pages of a list, or a stream of initial events), a reflector ends with the server's objects.
#[test]
fn a_reflector_has_what_the_server_has() {
    let forms = ["pages", "one list", "stream"];
    for form in forms {
        simulate(move || async move {
            let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
            let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
            for index in 0..10 {
                let map = config_map(&format!("m{index}"), false);
                maps.create(&PostParams::default(), &map)
                    .await
                    .expect("to create");
            }
            let config = watcher::Config::default();
            let config = match form {
                "pages" => config.page_size(3),
                "stream" => config.streaming_lists(),
                _ => watcher::Config {
                    page_size: None,
                    ..config
                },
            };
            let (store, writer) = reflector::store();
            let stream = watcher(maps.clone(), config).reflect(writer).applied_objects();
            let reading = tokio::spawn(stream.try_for_each(|_| async { Ok(()) }));
            store.wait_until_ready().await.expect("a store");
            for index in [1, 4] {
                let name = format!("m{index}");
                maps.delete(&name, &DeleteParams::default())
                    .await
                    .expect("to delete");
            }
            let patch = Patch::Merge(json!({"data": {"k": "new"}}));
            maps.patch("m2", &PatchParams::default(), &patch)
                .await
                .expect("to patch");
            cluster.settle().await;
            let versions = |objects: Vec<Arc<ConfigMap>>| -> BTreeSet<(String, Option<String>)> {
                objects
                    .iter()
                    .map(|map| (map.name_any(), map.resource_version()))
                    .collect()
            };
            let listed = maps.list(&Default::default()).await.expect("a list").items;
            let listed = listed.into_iter().map(Arc::new).collect();
            assert_eq!(versions(store.state()), versions(listed), "{form}");
            reading.abort();
        });
    }
}

/// Keeps a secret with the content of each labelled config map, and owns it.
async fn copy(from: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let secrets: Api<Secret> = Api::default_namespaced(Client::clone(&client));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": from.data,
        "metadata": {"name": from.name_any(), "ownerReferences": [from.controller_owner_ref(&())]},
    });
    let apply = PatchParams::apply("copier").force();
    secrets
        .patch(&from.name_any(), &apply, &Patch::Apply(&secret))
        .await?;
    Ok(Action::await_change())
}

#[test]
fn a_controller_keeps_what_it_owns() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let client = cluster.client();
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let secrets: Api<Secret> = Api::default_namespaced(client.clone());
        let labelled = watcher::Config::default().labels("copy=yes");
        let controller = Controller::new(maps.clone(), labelled)
            .owns(secrets.clone(), watcher::Config::default())
            .run(
                copy,
                |_, _, _| Action::requeue(Duration::from_secs(5)),
                Arc::new(client.clone()),
            );
        let running = tokio::spawn(controller.for_each(|_| async {}));
        for (name, copied) in [("one", true), ("other", false)] {
            maps.create(&PostParams::default(), &config_map(name, copied))
                .await
                .expect("to create");
        }
        cluster.run_for(Duration::from_secs(2)).await;
        let secret = secrets.get("one").await.expect("the copy");
        let content = secret
            .data
            .as_ref()
            .and_then(|data| data.get("k"))
            .map(|text| text.0.clone());
        assert_eq!(content.as_deref(), Some(b"one".as_slice()));
        assert!(secrets.get_opt("other").await.expect("an answer").is_none());
        // What is removed comes back; what is owned goes with its owner.
        secrets
            .delete("one", &DeleteParams::default())
            .await
            .expect("to delete");
        cluster.run_for(Duration::from_secs(2)).await;
        assert_ne!(secrets.get("one").await.expect("the copy").uid(), secret.uid());
        maps.delete("one", &DeleteParams::default())
            .await
            .expect("to delete");
        cluster.run_for(Duration::from_secs(2)).await;
        assert!(secrets.get_opt("one").await.expect("an answer").is_none());
        running.abort();
    });
}
