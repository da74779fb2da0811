//! The revisions of a run's DaemonSets under the names that a recording of an older OpenKruise gives them.
//!
//! The hash of such a revision is taken over Go's struct of the pod template, and so depends on the Kubernetes library of the
//! manager. Revisions of the same template are the same; of the version that our manager follows, names are compared as they are.

use std::collections::BTreeMap;

use shared_json::Value;

use crate::history::{Change, text};

/// The version whose hashes are ours.
const OURS: &str = "1.9.0";
/// The label of a revision whose hash is that of a struct.
const HASH: &str = "/metadata/labels/controller-revision-hash";

/// The recording's hashes by ours, where they differ.
pub(super) fn pair(recording: &str, recorded: &[Change], run: &[Change]) -> BTreeMap<String, String> {
    if recording.split('/').next() == Some(OURS) {
        return BTreeMap::new();
    }
    let theirs = hashes(recorded);
    hashes(run)
        .into_iter()
        .filter_map(|(data, ours)| {
            let (_, theirs) = theirs.iter().find(|(other, _)| *other == data)?;
            (ours != *theirs).then(|| (ours, theirs.clone()))
        })
        .collect()
}

/// The hashes of revisions, with their data.
fn hashes(history: &[Change]) -> Vec<(Value, String)> {
    let revisions = history
        .iter()
        .filter(|change| change.resource == "controllerrevisions");
    revisions
        .filter_map(|change| {
            let hash = text(&change.object, HASH);
            let data = change.object.get("data")?.clone();
            (!hash.is_empty()).then_some((data, hash))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use shared_json::json;

    use super::*;
    use crate::history::ChangeKind;

    fn revision(hash: &str, data: &str) -> Change {
        let object =
            json!({"metadata": {"name": hash, "labels": {"controller-revision-hash": hash}}, "data": data});
        Change {
            at_ms: 0,
            resource: "controllerrevisions".to_owned(),
            kind: ChangeKind::Added,
            object: Arc::new(object),
        }
    }

    #[rstest]
    #[case::of_the_same_template("1.5.0/ads", "a", "x", Some("b"))]
    #[case::of_another_template("1.5.0/ads", "a", "y", None)]
    #[case::alike("1.5.0/ads", "b", "x", None)]
    #[case::of_our_version("1.9.0/ads", "a", "x", None)]
    fn hashes_of_older_versions(
        #[case] recording: &str,
        #[case] ours: &str,
        #[case] data: &str,
        #[case] expected: Option<&str>,
    ) {
        let pairs = pair(recording, &[revision("b", "x")], &[revision(ours, data)]);
        assert_eq!(pairs.get(ours).map(String::as_str), expected);
    }
}
