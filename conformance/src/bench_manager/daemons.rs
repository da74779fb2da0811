//! The daemons of all nodes, as far as a manager of images sees them: each tag that a NodeImage lists is pulled at once.
//!
//! One client stands for all of them, so that a measurement of the manager is not one of thousands of programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::TryStreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use shared_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::beside::{LOOK, STEP_LIMIT};
use super::defect;
use crate::error::Error;

/// The daemons; they end when this is dropped.
pub(super) struct Daemons {
    lists: Api<DynamicObject>,
    changes: Arc<AtomicU64>,
    reports: Arc<AtomicU64>,
    running: JoinHandle<()>,
}

impl Daemons {
    /// Waits until each of the nodes has its NodeImage, and starts the daemons.
    pub(super) async fn start(client: &Client, nodes: u32) -> Result<Self, Error> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps.kruise.io", "v1beta1", "NodeImage"));
        let lists: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        let deadline = Instant::now() + STEP_LIMIT;
        let version = loop {
            let listed = lists.list_metadata(&ListParams::default()).await;
            let found = listed.as_ref().map_or(0, |listed| listed.items.len());
            match listed {
                Ok(listed) if found as u64 >= u64::from(nodes) => {
                    break listed.metadata.resource_version.unwrap_or_default();
                }
                _ if Instant::now() > deadline => {
                    return Err(defect(
                        "wait for the NodeImages",
                        format!("there are {found} of {nodes}"),
                    ));
                }
                _ => sleep(LOOK).await,
            }
        };
        let (changes, reports) = (Arc::default(), Arc::default());
        let running = tokio::spawn(run(
            lists.clone(),
            version,
            Arc::clone(&changes),
            Arc::clone(&reports),
        ));
        Ok(Self {
            lists,
            changes,
            reports,
            running,
        })
    }

    /// How many writes of NodeImages were not the daemons' own since they started, for each NodeImage.
    pub(super) async fn writes_of_others(&self) -> Result<f64, Error> {
        let listed = self.lists.list_metadata(&ListParams::default()).await;
        let listed = listed.map_err(|error| defect("list NodeImages", error))?;
        let own = self.reports.load(Ordering::Relaxed);
        let others = self.changes.load(Ordering::Relaxed).saturating_sub(own);
        Ok(others as f64 / listed.items.len().max(1) as f64)
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn run(
    lists: Api<DynamicObject>,
    mut version: String,
    changes: Arc<AtomicU64>,
    reports: Arc<AtomicU64>,
) {
    loop {
        let Ok(events) = lists.watch(&WatchParams::default(), &version).await else {
            sleep(LOOK).await;
            continue;
        };
        let mut events = std::pin::pin!(events);
        // A watch that ends or fails goes on where it was.
        while let Ok(Some(event)) = events.try_next().await {
            let (WatchEvent::Added(list) | WatchEvent::Modified(list)) = event else {
                continue;
            };
            changes.fetch_add(1, Ordering::Relaxed);
            version = list.metadata.resource_version.clone().unwrap_or(version);
            let name = list.metadata.name.clone().unwrap_or_default();
            let Some(status) = pulled(&list.data.into()) else {
                continue;
            };
            let patch = Patch::Merge(json!({"status": status}));
            let written = lists.patch_status(&name, &PatchParams::default(), &patch).await;
            reports.fetch_add(u64::from(written.is_ok()), Ordering::Relaxed);
        }
    }
}

/// The status of a NodeImage whose tags are all pulled; none if that is its status already.
fn pulled(list: &Value) -> Option<Value> {
    let mut images = json!({});
    let mut desired = 0;
    let mut is_known = true;
    for (name, image) in list["spec"]["images"].as_object()? {
        let mut tags = Vec::new();
        for tag in image["tags"].as_array().into_iter().flatten() {
            desired += 1;
            let known = list["status"]["imageStatuses"][name.as_str()]["tags"].as_array();
            let mut known = known.into_iter().flatten();
            is_known &= known.any(|known| known["tag"] == tag["tag"] && known["version"] == tag["version"]);
            tags.push(json!({
                "tag": tag["tag"].clone(), "version": tag["version"].clone(), "phase": "Succeeded", "progress": 100,
                "startTime": tag["createdAt"].clone(), "completionTime": tag["createdAt"].clone(),
            }));
        }
        images[name.as_str()] = json!({"tags": tags});
    }
    (!is_known).then(|| {
        json!({
            "desired": desired, "succeeded": desired, "failed": 0, "pulling": 0, "waiting": 0, "imageStatuses": images,
        })
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A tag of version 1 in the list, the tags in its status, and how many are reported.
    #[rstest]
    #[case::nothing_known(json!([]), Some(1))]
    #[case::an_older_version(json!([{"tag": "1", "version": 0}]), Some(1))]
    #[case::known(json!([{"tag": "1", "version": 1}]), None)]
    fn tags_are_reported_once(#[case] known: Value, #[case] reported: Option<u32>) {
        let tag = json!({"tag": "1", "version": 1, "createdAt": "2026-01-01T00:00:00Z"});
        let list = json!({
            "spec": {"images": {"nginx": {"tags": [tag]}}},
            "status": {"imageStatuses": {"nginx": {"tags": known}}},
        });
        let status = pulled(&list);
        assert_eq!(
            status.as_ref().map(|status| &status["succeeded"]),
            reported.map(|count| json!(count)).as_ref()
        );
        if let Some(status) = status {
            assert_eq!(status["imageStatuses"]["nginx"]["tags"][0]["phase"], "Succeeded");
        }
    }

    #[test]
    fn a_list_without_images_is_left_alone() {
        assert_eq!(pulled(&json!({"spec": {}})), None);
        assert_eq!(pulled(&json!({"spec": {"images": {}}})), None);
    }
}
