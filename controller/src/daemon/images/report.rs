//! The status of a list, by the pulls under way.

use std::collections::BTreeMap;

use crate::api::v1beta1::{ImageStatus, ImageTagSpec, ImageTagStatus, NodeImage, NodeImageStatus};

/// A tag of an image.
pub(super) type Key = (String, String);

/// Whether the list says that a tag of this version is over.
pub(super) fn is_over(image: &NodeImage, name: &str, tag: &ImageTagSpec) -> bool {
    let status = image.tag_status(name, &tag.tag);
    status.is_some_and(|status| status.version == tag.version && status.completion_time.is_some())
}

/// The status of a list. `running` has the tags that are being worked on; of the others the list's own status counts, if it is about
/// their version.
pub(super) fn report(image: &NodeImage, running: &BTreeMap<Key, ImageTagStatus>) -> NodeImageStatus {
    let mut status = NodeImageStatus {
        first_sync_status: image
            .status
            .as_ref()
            .and_then(|status| status.first_sync_status.clone()),
        ..NodeImageStatus::default()
    };
    for (name, spec) in &image.spec.images {
        let mut tags = Vec::new();
        for tag in &spec.tags {
            status.desired += 1;
            let known = || {
                image
                    .tag_status(name, &tag.tag)
                    .filter(|known| known.version == tag.version)
            };
            let of_tag = running.get(&(name.clone(), tag.tag.clone()));
            let of_tag = of_tag.filter(|running| running.version == tag.version);
            let Some(of_tag) = of_tag.or_else(known) else {
                continue;
            };
            match of_tag.phase.as_str() {
                "Succeeded" => status.succeeded += 1,
                "Failed" => status.failed += 1,
                "Pulling" => status.pulling += 1,
                _ => status.waiting += 1,
            }
            tags.push(of_tag.clone());
        }
        if !tags.is_empty() {
            status.image_statuses.insert(name.clone(), ImageStatus { tags });
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    /// The tag `1` in version 1, and perhaps `2`; the status of `1` in the list, and the pull under way.
    #[rstest]
    #[case::nothing_yet(json!([]), None, "2/0/0/0/0", "")]
    #[case::under_way(json!([]), Some(("Pulling", 1)), "2/0/0/1/0", "1 Pulling")]
    #[case::waits(json!([]), Some(("Waiting", 1)), "2/0/0/0/1", "1 Waiting")]
    #[case::news(json!([{ "tag": "1", "phase": "Pulling", "version": 1 }]), Some(("Succeeded", 1)), "2/1/0/0/0", "1 Succeeded")]
    #[case::over(json!([{ "tag": "1", "phase": "Failed", "version": 1 }]), None, "2/0/1/0/0", "1 Failed")]
    #[case::over_in_an_older_version(json!([{ "tag": "1", "phase": "Failed" }]), Some(("Succeeded", 0)), "2/0/0/0/0", "")]
    #[case::not_wanted_any_more(json!([{ "tag": "3", "phase": "Succeeded" }]), None, "2/0/0/0/0", "")]
    fn reports(
        #[case] known: Value,
        #[case] running: Option<(&str, i64)>,
        #[case] counts: &str,
        #[case] tags: &str,
    ) {
        let image: NodeImage = serde_json::from_value(json!({ "metadata": { "name": "n" },
            "spec": { "images": { "nginx": { "tags": [{ "tag": "1", "version": 1 }, { "tag": "2" }] } } },
            "status": { "desired": 0, "imageStatuses": { "nginx": { "tags": known } } } }))
        .unwrap();
        let running = running.map(|(phase, version)| {
            let status = ImageTagStatus {
                tag: "1".to_owned(),
                phase: phase.to_owned(),
                version,
                ..ImageTagStatus::default()
            };
            (("nginx".to_owned(), "1".to_owned()), status)
        });
        let status = report(&image, &running.into_iter().collect());
        let NodeImageStatus {
            desired,
            succeeded,
            failed,
            pulling,
            waiting,
            ..
        } = status;
        assert_eq!(
            format!("{desired}/{succeeded}/{failed}/{pulling}/{waiting}"),
            counts
        );
        let shown = status.image_statuses.values().flat_map(|image| &image.tags);
        let shown: Vec<String> = shown.map(|tag| format!("{} {}", tag.tag, tag.phase)).collect();
        assert_eq!(shown.join(", "), tags);
    }
}
