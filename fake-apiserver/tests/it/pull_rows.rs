//! Rows of images: what a pod's containers run, so many seconds, its status then, and something that its kubelet has said by then.

use shared_json::{Value, json};

use crate::lives::tells;

const DIGEST: &str = "nginx@sha256:0000000000000000000000000000000000000000000000000000000000000000";

fn of(name: &str, image: &str, policy: &str) -> Value {
    let mut container = json!({"name": name, "image": image});
    if !policy.is_empty() {
        container["imagePullPolicy"] = json!(policy);
    }
    if !image.contains("nginx") {
        container["command"] = json!(["sh", "-c", "sleep 600"]);
    }
    container
}

fn one(image: &str, policy: &str) -> Value {
    json!({"containers": [of("a", image, policy)]})
}

const RUNS: &str = "Running ready a:running";

#[test]
fn images_that_are_there() {
    let there = |image: &str| {
        format!(
            "a Pulled: Container image \"{image}\" already present on machine and can be accessed by the pod"
        )
    };
    tells(one("busybox:1", "IfNotPresent"), 4, RUNS, &there("busybox:1"));
    tells(one("busybox:1", "Never"), 4, RUNS, &there("busybox:1"));
    // Without a word about it, only what has another tag than the newest is looked for on the node first.
    tells(one("nginx:1", ""), 4, RUNS, &there("nginx:1"));
    tells(one(DIGEST, ""), 4, RUNS, &there(DIGEST));
    tells(one("nginx", ""), 6, RUNS, "a Pulling: Pulling image \"nginx\"");
    tells(
        one("nginx:latest", ""),
        6,
        RUNS,
        "a Pulled: Successfully pulled image \"nginx:latest\" in ",
    );
    tells(one("nginx", "IfNotPresent"), 4, RUNS, &there("nginx"));
    tells(
        one("busybox:1", "Always"),
        6,
        RUNS,
        "a Pulled: Successfully pulled image \"busybox:1\" in ",
    );
    let mut again = one("busybox:1", "Always");
    again["containers"][0]["command"][2] = json!("exit 1");
    tells(
        again,
        6,
        "Running ContainersNotReady a:terminated(Error 1)x1",
        "a Pulling: Pulling image \"busybox:1\" x2",
    );
}

#[test]
fn images_that_have_to_come() {
    let waits = "Pending ContainersNotReady a:waiting(ContainerCreating)";
    tells(one("slow:1", ""), 2, waits, "a Pulling: Pulling image \"slow:1\"");
    tells(one("slow:1", ""), 6, RUNS, "Image size: 20000000 bytes.");
    tells(
        json!({"initContainers": [of("i", "slow:1", "")], "containers": [of("a", "busybox:1", "")]}),
        2,
        "Pending ContainersNotReady i:waiting(PodInitializing) a:waiting(PodInitializing)",
        "i Pulling: Pulling image \"slow:1\"",
    );
    // One comes after the other; what has come once is there for all.
    tells(
        json!({"containers": [of("a", "slow:1", ""), of("b", "slow:1", "")]}),
        8,
        "Running ready a:running b:running",
        "b Pulled: Container image \"slow:1\" already present on machine",
    );
    tells(
        json!({"containers": [of("a", "slow:1", ""), of("b", "slow:1", "Always")]}),
        10,
        "Running ready a:running b:running",
        "b Pulled: Successfully pulled image \"slow:1\"",
    );
    tells(
        json!({"containers": [of("a", "slow:1", ""), of("b", "slow:1", "Never")]}),
        8,
        "Running ready a:running b:running",
        "b Pulled: Container image \"slow:1\" already present on machine",
    );
}

#[test]
fn images_that_do_not_come() {
    let failed = "Pending ContainersNotReady a:waiting(ErrImagePull)";
    tells(
        one("missing:1", ""),
        4,
        failed,
        "a Failed: Failed to pull image \"missing:1\": rpc error: code = NotFound desc = failed to pull and unpack image \
         \"docker.io/library/missing:1\"",
    );
    tells(
        one("missing:1", "Always"),
        4,
        failed,
        "a Failed: Error: ErrImagePull",
    );
    tells(
        one("missing:1", ""),
        70,
        "Pending ContainersNotReady a:waiting(ImagePullBackOff)",
        "a Failed: Error: ImagePullBackOff",
    );
    let never = "Pending ContainersNotReady a:waiting(ErrImageNeverPull)";
    tells(
        one("slow:1", "Never"),
        4,
        never,
        "a ErrImageNeverPull: Container image \"slow:1\" is not present with pull policy of Never",
    );
    tells(
        one("missing:1", "Never"),
        4,
        never,
        "a Failed: Error: ErrImageNeverPull",
    );
    let invalid = "Pending ContainersNotReady a:waiting(InvalidImageName)";
    tells(
        one("Upper:1", ""),
        4,
        invalid,
        "a InspectFailed: Failed to apply default image tag \"Upper:1\": couldn't parse image name \"Upper:1\": \
         invalid reference format: repository name (library/Upper) must be lowercase",
    );
    tells(
        one("Upper:1", "Never"),
        4,
        invalid,
        "a Failed: Error: InvalidImageName",
    );
    // What is wrong with one does not keep the others from running, unless it comes before them.
    tells(
        json!({"containers": [of("a", "Upper:1", ""), of("b", "busybox:1", "")]}),
        4,
        "Pending ContainersNotReady a:waiting(InvalidImageName) b:running",
        "b Started",
    );
    let before = |policy: Value| {
        let mut first = of("i", "missing:1", "");
        first["restartPolicy"] = policy;
        json!({"initContainers": [first], "containers": [of("a", "busybox:1", "")]})
    };
    tells(
        before(json!("Always")),
        4,
        "Pending ContainersNotReady i:waiting(ErrImagePull) a:waiting(PodInitializing)",
        "i Failed: Error: ErrImagePull",
    );
    let mut once = before(Value::Null);
    once["restartPolicy"] = json!("Never");
    tells(
        once,
        70,
        "Pending ContainersNotReady i:waiting(ImagePullBackOff) a:waiting(PodInitializing)",
        "i BackOff: Back-off pulling image \"missing:1\"",
    );
}
