//! Whether containers run the images of the spec, as far as the pod's status shows it.

use super::complete::{full_name, runs};
use super::state::UpdateState;
use crate::pod::{self, Pod};

/// How the images that are named by digest stand to those that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digests {
    /// A container runs another image.
    Differ,
    /// Every container runs the image of its digest.
    All,
    /// Those before the first container whose image is named by a tag do.
    SomeTags,
}

/// Compares the images of the containers of these names that are named by digest.
pub fn digests<'a>(pod: &Pod, names: impl IntoIterator<Item = &'a str>) -> Digests {
    let names: Vec<&str> = names.into_iter().collect();
    let statuses = pod::container_statuses(pod);
    for container in pod::containers(pod)
        .iter()
        .filter(|container| names.contains(&container.name.as_str()))
    {
        let Some((repository, digest)) = container.image.as_deref().unwrap_or_default().split_once('@')
        else {
            return Digests::SomeTags;
        };
        let status = statuses.iter().find(|status| status.name == container.name);
        let image_id = status.map_or("", |status| &status.image_id);
        let image_id = image_id.split_once("://").map_or(image_id, |(_, rest)| rest);
        let same = image_id.split_once('@').is_some_and(|(running, running_digest)| {
            running_digest == digest && repository_of(running) == repository_of(repository)
        });
        if !same {
            return Digests::Differ;
        }
    }
    Digests::All
}

/// Whether the containers of these names run their images. `last` is the record of their last update in place, if there is one and it
/// can be read: an error stands for a text that cannot.
pub fn is_consistent<'a>(
    pod: &Pod,
    names: impl IntoIterator<Item = &'a str>,
    last: Result<Option<&UpdateState>, ()>,
) -> bool {
    let (containers, statuses) = (pod::containers(pod), pod::container_statuses(pod));
    if containers.len() != statuses.len() {
        return false;
    }
    let names: Vec<&str> = names.into_iter().collect();
    let status = |name: &str| statuses.iter().find(|status| status.name == name);
    match digests(pod, names.iter().copied()) {
        Digests::Differ => return false,
        Digests::All => return true,
        Digests::SomeTags => {}
    }
    let state = match last {
        Ok(None) => return true,
        Ok(Some(state)) => state,
        Err(()) => return false,
    };
    state
        .last_container_statuses
        .iter()
        .flatten()
        .all(|(name, before)| {
            if !names.contains(&name.as_str()) {
                return true;
            }
            let wanted = containers.iter().find(|container| container.name == *name);
            let wanted = wanted
                .and_then(|container| container.image.as_deref())
                .unwrap_or_default();
            status(name).is_none_or(|status| status.image_id != before.image_id || runs(status, wanted))
        })
}

/// The full name of a repository, without a tag.
fn repository_of(image: &str) -> String {
    let name = full_name(image);
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository.to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn pod(spec: &str, status: &str, id: &str, running: bool) -> Pod {
        let state = if running {
            json!({ "running": {} })
        } else {
            json!({ "waiting": {} })
        };
        serde_json::from_value(json!({
            "metadata": {},
            "spec": { "containers": [{ "name": "side", "image": spec }, { "name": "main", "image": "a:1" }] },
            "status": { "containerStatuses": [
                { "name": "side", "image": status, "imageID": id, "state": state },
                { "name": "main", "image": "other", "imageID": "other" } ] },
        }))
        .unwrap()
    }

    const FULL: &str = "docker.io/library/busybox";

    #[rstest]
    #[case::never_updated(None, "busybox:1.36", "anything", "Z", true)]
    #[case::the_old_image_runs(Some("X"), "busybox:1.35", "docker.io/library/busybox:1.36", "X", false)]
    #[case::another_image_runs(Some("X"), "busybox:1.35", "docker.io/library/busybox:1.35", "Y", true)]
    #[case::the_name_is_the_wanted_one(Some("X"), "busybox:1.35", "busybox:1.35", "X", true)]
    #[case::two_tags_of_one_digest(Some("X"), "busybox:1.35", "docker.io/library/busybox:1.35", "X", true)]
    #[case::of_a_digest(None, "busybox@sha256:1", "x", "docker.io/library/busybox@sha256:1", true)]
    #[case::of_another_digest(None, "busybox@sha256:1", "x", "docker.io/library/busybox@sha256:2", false)]
    #[case::of_another_repository(None, "busybox@sha256:1", "x", "docker.io/other@sha256:1", false)]
    #[case::with_a_scheme(None, "busybox:1@sha256:1", "x", "docker-pullable://busybox@sha256:1", true)]
    fn containers_of_tags_and_digests(
        #[case] last: Option<&str>,
        #[case] spec: &str,
        #[case] status: &str,
        #[case] id: &str,
        #[case] want: bool,
    ) {
        let state = last.map(|id| {
            serde_json::from_value::<UpdateState>(
                json!({ "lastContainerStatuses": { "side": { "imageID": id } } }),
            )
            .unwrap()
        });
        assert_eq!(
            is_consistent(&pod(spec, status, id, true), ["side"], Ok(state.as_ref())),
            want
        );
    }

    #[test]
    fn a_container_that_does_not_run_yet_has_another_name() {
        let state: UpdateState =
            serde_json::from_value(json!({ "lastContainerStatuses": { "side": { "imageID": "X" } } }))
                .unwrap();
        let pod = pod("busybox:1.35", &format!("{FULL}:1.35"), "X", false);
        assert!(!is_consistent(&pod, ["side"], Ok(Some(&state))));
        assert!(
            is_consistent(&pod, ["main"], Ok(Some(&state))),
            "of another container"
        );
    }

    #[test]
    fn every_container_has_a_status() {
        let mut pod = pod("busybox:1.35", "x", "X", true);
        assert!(!is_consistent(&pod, ["side"], Err(())));
        assert!(is_consistent(&pod, ["side"], Ok(None)));
        pod.status.container_statuses = pod.status.container_statuses[..1].into();
        assert!(!is_consistent(&pod, ["side"], Ok(None)));
    }
}
