//! Whether an update in place has arrived in the pod's containers.

use std::collections::BTreeMap;

use super::hash::{RuntimeContainers, env_hash, plain_hash, runtime_containers};
use super::resize;
use super::state::UpdateState;
use crate::pod::{self, Container, ContainerStatus, Pod};

/// Says why the last batch has not arrived yet, or `Ok`.
///
/// The evidence, in this order: hashes that the node's daemon writes; otherwise another image id in the pod's status, or
/// the image that the spec asks for.
pub fn check(pod: &Pod, state: &UpdateState) -> Result<(), String> {
    let runtime = runtime_containers(pod);
    if state.update_env_from_metadata {
        let Some(runtime) = &runtime else {
            return Err(
                "waiting for all containers hash consistent, but runtime-container-meta not found".to_owned(),
            );
        };
        let env = |container: &Container| env_hash(container, pod);
        if !consistent(
            pod,
            runtime,
            |hashes| hashes.extracted_env_from_metadata_hash,
            env,
        ) {
            return Err("waiting for all containers hash consistent".to_owned());
        }
    }
    if state.update_resources {
        resize::arrived(pod)?;
    }
    // The daemon may be broken and its word old, so its silence or disagreement proves nothing.
    if let Some(runtime) = &runtime
        && consistent(pod, runtime, |hashes| hashes.plain_hash, plain_hash)
    {
        return Ok(());
    }
    images_arrived(pod, state)
}

/// Whether the containers that must be ready before the next batch are.
pub fn pre_check(pod: &Pod, state: &UpdateState) -> Result<(), String> {
    let Some(required) = &state.pre_check_before_next else {
        return Ok(());
    };
    let statuses = pod::container_statuses(pod);
    for name in &required.containers_required_ready {
        if !statuses.iter().any(|status| status.name == *name && status.ready) {
            return Err(format!("waiting container {name} to be ready"));
        }
    }
    Ok(())
}

fn consistent(
    pod: &Pod,
    runtime: &RuntimeContainers,
    reported: impl Fn(&super::hash::Hashes) -> u64,
    wanted: impl Fn(&Container) -> u64,
) -> bool {
    pod::containers(pod).iter().all(|container| {
        let Some(found) = runtime
            .containers
            .iter()
            .find(|found| found.name == container.name)
        else {
            return false;
        };
        let status = pod::container_statuses(pod)
            .iter()
            .find(|status| status.name == container.name);
        // Hashes of a container that does not run any more say nothing.
        let same =
            status.is_some_and(|status| status.container_id.as_deref() == Some(found.container_id.as_str()));
        same && reported(&found.hashes) == wanted(container)
    })
}

fn images_arrived(pod: &Pod, state: &UpdateState) -> Result<(), String> {
    let Some(last) = &state.last_container_statuses else {
        return Ok(());
    };
    let wanted: BTreeMap<&str, &str> = pod::containers(pod)
        .iter()
        .map(|container| {
            (
                container.name.as_str(),
                container.image.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    for (name, before) in last {
        let Some(status) = pod::container_statuses(pod)
            .iter()
            .find(|status| status.name == *name)
        else {
            return Err(format!("not found statuses of containers {name}"));
        };
        let wanted = wanted.get(name.as_str()).copied().unwrap_or_default();
        if status.image_id == before.image_id && !runs(status, wanted) {
            return Err(format!("container {name} imageID not changed"));
        }
    }
    Ok(())
}

/// Whether the container is reported with the image that is wanted.
///
/// OpenKruise compares the texts. Runtimes report the full name (`docker.io/library/nginx:1.7.9`), so that a pod whose
/// image was reverted before it could be pulled keeps its image id and never gets ready again; hence the full name of
/// a container that runs counts here, too.
pub(super) fn runs(status: &ContainerStatus, wanted: &str) -> bool {
    let tagged = if wanted.contains(':') {
        wanted.to_owned()
    } else {
        format!("{wanted}:latest")
    };
    let running = status.state.running;
    status.image == tagged || (running && full_name(&status.image) == full_name(wanted))
}

/// An image's name with registry, path and tag, as runtimes complete it.
pub(super) fn full_name(image: &str) -> String {
    let (registry, path) = match image.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (first, rest),
        _ => ("docker.io", image),
    };
    let library = if registry == "docker.io" && !path.contains('/') {
        "library/"
    } else {
        ""
    };
    let tag = if path.contains([':', '@']) { "" } else { ":latest" };
    format!("{registry}/{library}{path}{tag}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn pod(image: &str, image_id: &str, runtime: Option<Value>) -> Pod {
        let annotations =
            runtime.map(|value| json!({ "apps.kruise.io/runtime-containers-meta": value.to_string() }));
        serde_json::from_value(json!({
            "metadata": { "annotations": annotations },
            "spec": { "containers": [{ "name": "nginx", "image": "nginx:alpine" }] },
            "status": { "containerStatuses": [{ "name": "nginx", "image": image, "imageID": image_id, "ready": true,
                "restartCount": 0, "containerID": "containerd://1" }] },
        }))
        .unwrap()
    }

    fn runtime(id: &str, plain: u64) -> Option<Value> {
        Some(
            json!({ "containers": [{ "name": "nginx", "containerID": id, "hashes": { "plainHash": plain } }] }),
        )
    }

    #[rstest]
    #[case::another_image_id("docker.io/nginx:alpine", "new", None, Ok(()))]
    #[case::the_same_image_id(
        "docker.io/nginx:alpine",
        "old",
        None,
        Err("container nginx imageID not changed")
    )]
    #[case::the_image_asked_for("nginx:alpine", "old", None, Ok(()))]
    #[case::the_daemon_says_so("docker.io/nginx:alpine", "old", runtime("containerd://1", 1_281_589_684), Ok(()))]
    #[case::of_an_older_container(
        "docker.io/nginx:alpine",
        "old",
        runtime("containerd://0", 1_281_589_684),
        Err("container nginx imageID not changed")
    )]
    #[case::another_hash("docker.io/nginx:alpine", "new", runtime("containerd://1", 7), Ok(()))]
    fn evidence(
        #[case] image: &str,
        #[case] id: &str,
        #[case] runtime: Option<Value>,
        #[case] want: Result<(), &str>,
    ) {
        let state =
            serde_json::from_value(json!({ "lastContainerStatuses": { "nginx": { "imageID": "old" } } }))
                .unwrap();
        assert_eq!(
            check(&pod(image, id, runtime), &state),
            want.map_err(str::to_owned)
        );
    }

    #[rstest]
    #[case("nginx", "docker.io/library/nginx:latest")]
    #[case("nginx:1", "docker.io/library/nginx:1")]
    #[case("openkruise/guestbook:v1", "docker.io/openkruise/guestbook:v1")]
    #[case("localhost/x@sha256:1", "localhost/x@sha256:1")]
    #[case("a.b:5000/x", "a.b:5000/x:latest")]
    fn full_names(#[case] image: &str, #[case] want: &str) {
        assert_eq!(full_name(image), want);
    }

    #[test]
    fn a_reverted_image_has_arrived_once_its_container_runs() {
        let state =
            serde_json::from_value(json!({ "lastContainerStatuses": { "nginx": { "imageID": "old" } } }))
                .unwrap();
        let mut pod = pod("docker.io/library/nginx:alpine", "old", None);
        assert!(check(&pod, &state).is_err());
        pod.status.container_statuses[0].state.running = true;
        assert_eq!(check(&pod, &state), Ok(()));
    }

    #[test]
    fn environments_need_the_daemon() {
        let state = UpdateState {
            update_env_from_metadata: true,
            ..UpdateState::default()
        };
        assert!(
            check(&pod("a", "b", None), &state)
                .unwrap_err()
                .contains("not found")
        );
        let mut silent = runtime("containerd://1", 1).unwrap();
        assert!(check(&pod("a", "b", Some(silent.clone())), &state).is_err());
        silent["containers"][0]["hashes"]["extractedEnvFromMetadataHash"] = json!(86_995_377);
        assert_eq!(check(&pod("a", "b", Some(silent)), &state), Ok(()));
    }
}
