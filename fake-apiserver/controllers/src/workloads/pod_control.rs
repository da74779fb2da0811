//! Creating and deleting the pods of workloads, and the events about it.

use machinery::meta::ObjectMeta as _;
use shared_json::Value;

use crate::runtime::{Cx, Res};

/// The words of the API server when it refuses something.
pub(crate) fn refusal(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Whether something was refused because its namespace is about to go.
pub(crate) fn is_namespace_going(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .any(|cause| cause.reason == "NamespaceTerminating")
}

/// Makes a pod of an owner; false if its namespace takes no more, about which nothing is said.
pub(super) async fn make(cx: &mut Cx<'_>, res: Res, owner: &Value, pod: Value) -> Result<bool, kube::Error> {
    match cx.create(Res::Pods, owner.namespace(), pod).await {
        Ok(pod) => {
            cx.normal(
                res,
                owner,
                "SuccessfulCreate",
                format!("Created pod: {}", pod.name()),
            );
            Ok(true)
        }
        Err(error) if is_namespace_going(&error) => Ok(false),
        Err(error) => {
            let text = format!("Error creating: {}", refusal(&error));
            cx.warning(res, owner, "FailedCreate", text);
            Err(error)
        }
    }
}

/// Deletes a pod of an owner.
pub(super) async fn delete(cx: &mut Cx<'_>, res: Res, owner: &Value, pod: &Value) -> Result<(), kube::Error> {
    let done = cx.delete(Res::Pods, pod, None).await;
    match &done {
        Ok(()) => cx.normal(
            res,
            owner,
            "SuccessfulDelete",
            format!("Deleted pod: {}", pod.name()),
        ),
        Err(error) => {
            let text = format!("Error deleting: {}", refusal(error));
            cx.warning(res, owner, "FailedDelete", text);
        }
    }
    done
}

/// How many pods are tried at a time: one at first, then twice as many each time, and no more after one of them has failed.
#[derive(Debug)]
pub(super) struct SlowStart {
    batch: usize,
    left: usize,
    failed: bool,
}

impl SlowStart {
    pub(super) fn new() -> Self {
        Self {
            batch: 1,
            left: 1,
            failed: false,
        }
    }

    /// Whether another one is tried.
    pub(super) fn goes_on(&mut self) -> bool {
        if self.left == 0 {
            if self.failed {
                return false;
            }
            self.batch *= 2;
            self.left = self.batch;
        }
        self.left -= 1;
        true
    }

    pub(super) fn failed(&mut self) {
        self.failed = true;
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// How many of ten are tried if those from `room` on fail.
    #[rstest]
    #[case::none_fails(10, 10)]
    #[case::all_fail(0, 1)]
    #[case::second(1, 3)]
    #[case::third(2, 3)]
    #[case::fourth(3, 7)]
    #[case::seventh(6, 7)]
    #[case::eighth(7, 10)]
    fn how_many_are_tried(#[case] room: usize, #[case] expected: usize) {
        let mut pace = SlowStart::new();
        let mut tried = 0;
        while tried < 10 && pace.goes_on() {
            if tried >= room {
                pace.failed();
            }
            tried += 1;
        }
        assert_eq!(tried, expected);
    }
}
