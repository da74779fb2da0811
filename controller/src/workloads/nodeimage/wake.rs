//! Which nodes a change of another object concerns, and how soon.

use std::time::Duration;

use jiff::Timestamp;
use kube::{Resource as _, ResourceExt as _};

use crate::api::v1beta1::{ImagePullJob, NodeImage};
use crate::kit::{Change, Informer, ObjectKey, WorkQueue};
use crate::pods::CachedNode;

/// A node changed: it has no list yet, has other labels than its list, or is gone.
pub(super) fn node_changed(
    images: &Informer<NodeImage>,
    (delay, now): (Duration, Timestamp),
    change: &Change<'_, CachedNode>,
    queue: &WorkQueue<ObjectKey>,
) {
    let (Change::Added(node) | Change::Updated(_, node) | Change::Deleted(node)) = change;
    if node.is_virtual() {
        return;
    }
    let key = ObjectKey::new("", node.name());
    let image = images.get(&key);
    let is_here = !matches!(change, Change::Deleted(_)) && node.meta().deletion_timestamp.is_none();
    match (is_here, image) {
        (true, None) => {
            if let Some(wait) = creation(node, delay, now) {
                queue.add_surely_after(key, wait);
            }
        }
        (true, Some(image)) if node.meta().labels != image.metadata.labels => queue.add(key),
        (false, Some(_)) => queue.add(key),
        _ => {}
    }
}

/// How long a node waits for its list; nothing where it is not ready.
fn creation(node: &CachedNode, delay: Duration, now: Timestamp) -> Option<Duration> {
    let since = node.ready_since().filter(|_| node.is_ready());
    let ready_for = Duration::try_from(now.duration_since(since?)).unwrap_or_default();
    Some(delay.saturating_sub(ready_for))
}

/// A job is gone: the lists that name it lose its tags.
pub(super) fn job_changed(
    images: &Informer<NodeImage>,
    change: &Change<'_, ImagePullJob>,
    queue: &WorkQueue<ObjectKey>,
) {
    let Change::Deleted(job) = change else { return };
    let uid = job.uid();
    let names_it = |image: &NodeImage| {
        let mut tags = image.spec.images.values().flat_map(|spec| &spec.tags);
        tags.any(|tag| tag.owner_references.iter().any(|owner| owner.uid == uid))
    };
    for image in images.all().iter().filter(|image| names_it(image)) {
        queue.add(ObjectKey::new("", &image.name_any()));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    /// Whether the node is ready, since when, and after how many seconds it gets its list.
    #[rstest]
    #[case::for_long("True", "1970-01-01T00:00:00Z", Some(0))]
    #[case::lately("True", "1970-01-01T00:01:30Z", Some(20))]
    #[case::by_another_clock("True", "1970-01-01T00:02:00Z", Some(30))]
    #[case::not_ready("False", "1970-01-01T00:00:00Z", None)]
    fn new_nodes_wait_for_their_list(#[case] ready: &str, #[case] since: &str, #[case] expect: Option<u64>) {
        let node = CachedNode::from(json!({ "metadata": { "name": "n" }, "status": { "conditions": [
            { "type": "Ready", "status": ready, "lastTransitionTime": since }] } }));
        let now = Timestamp::from_second(100).unwrap();
        let wait = creation(&node, Duration::from_secs(30), now);
        assert_eq!(wait.map(|wait| wait.as_secs()), expect);
    }
}
