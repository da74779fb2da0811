//! Which request of a pod is carried out next.

use std::sync::Arc;

use kube::ResourceExt as _;

use crate::api::v1alpha1::ContainerRecreateRequest;

/// The requests of a pod in their order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The one that is carried out.
    pub(super) first: Option<Arc<ContainerRecreateRequest>>,
    /// Those that are not marked as waiting yet.
    pub(super) waiting: Vec<Arc<ContainerRecreateRequest>>,
}

/// The place of a phase: a request that has begun goes on.
fn rank(request: &ContainerRecreateRequest) -> u8 {
    match request.phase() {
        "Recreating" => 0,
        "Pending" => 1,
        _ => 2,
    }
}

/// Orders the requests of a pod. Those that have ended do not count.
pub(super) fn queue(mut requests: Vec<Arc<ContainerRecreateRequest>>) -> Queue {
    requests.retain(|request| !request.is_over() && request.metadata.deletion_timestamp.is_none());
    requests.sort_by_cached_key(|request| {
        let made = request.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (rank(request), made, request.name_any())
    });
    let mut rest = requests.into_iter();
    let first = rest.next();
    Queue {
        first,
        waiting: rest.filter(|request| request.phase().is_empty()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// Requests of a word each: name, second of creation, and phase; `!` is one that is being deleted.
    fn check(words: &[&str], first: &str, waiting: &[&str]) {
        let request = |word: &&str| {
            let parts: Vec<&str> = word.split(':').collect();
            let second = jiff::Timestamp::from_second(parts[1].parse().unwrap()).unwrap();
            let mut request = json!({
                "metadata": { "name": parts[0], "creationTimestamp": second.to_string() },
                "spec": { "podName": "p", "containers": [] }, "status": { "phase": parts[2] },
            });
            if parts[2] == "!" {
                request["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
            }
            Arc::new(serde_json::from_value(request).unwrap())
        };
        let queue = queue(words.iter().map(request).collect());
        assert_eq!(
            queue.first.map(|request| request.name_any()).unwrap_or_default(),
            first
        );
        let names: Vec<String> = queue.waiting.iter().map(|request| request.name_any()).collect();
        assert_eq!(names, waiting);
    }

    #[rstest]
    #[case::none(&[], "", &[])]
    #[case::one(&["a:0:"], "a", &[])]
    #[case::begun_goes_on(&["b:1:", "c:2:", "a:3:Recreating"], "a", &["b", "c"])]
    #[case::older_first(&["b:2:Pending", "c:1:Pending"], "c", &[])]
    #[case::those_that_wait_before_new_ones(&["b:1:", "c:2:Pending"], "c", &["b"])]
    #[case::by_name_in_one_second(&["b:1:", "a:1:"], "a", &["b"])]
    #[case::ended(&["a:1:Completed", "b:2:Pending"], "b", &[])]
    #[case::deleted(&["a:1:!", "b:2:"], "b", &[])]
    fn order(#[case] words: &[&str], #[case] first: &str, #[case] waiting: &[&str]) {
        check(words, first, waiting);
    }
}
