//! Rows of images: the images of a pod's containers, so many seconds, its status then, and an event of its kubelet by then.

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::nodes::{Image, ImageRegistry};
use shared_json::{Value, json};

use crate::lives::{Life, PRIVATE, live, tells};
use crate::support::{request, simulate};

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

/// A registry that has nothing to send answers many at once. On quick nodes nothing else takes time either.
#[test]
fn many_ask_for_what_is_there() {
    for (quick, ms) in [(false, 3000), (true, 500)] {
        simulate(move || async move {
            let builder = Cluster::builder().nodes(1).quick(quick);
            let cluster = builder.start().await.expect("a cluster");
            for number in 0..50 {
                let pod = json!({
                    "metadata": {"name": format!("p{number}")},
                    "spec": {"containers": [of("a", "nginx:1", "Always")]},
                });
                let (code, answer) = request(&cluster, "POST", "/api/v1/namespaces/default/pods", &pod).await;
                assert_eq!(code, 201, "{answer}");
            }
            cluster.run_for(Duration::from_millis(ms)).await;
            let path = "/api/v1/namespaces/default/pods?fieldSelector=status.phase%3DRunning";
            let (_, list) = request(&cluster, "GET", path, &Value::Null).await;
            assert_eq!(
                list["items"].as_array().map(|items| items.len()),
                Some(50),
                "quick: {quick}"
            );
        });
    }
}

/// A node pulls one image after the other, for all of its pods.
#[test]
fn images_come_in_turn() {
    simulate(|| async {
        let images = ImageRegistry::default();
        for reference in ["one:1", "two:1"] {
            images.set(reference, Image::remote(reference, Duration::from_secs(10)));
        }
        let cluster = Cluster::builder()
            .nodes(1)
            .images(images)
            .start()
            .await
            .expect("a cluster");
        for (name, image) in [("a", "one:1"), ("b", "two:1"), ("c", "one:1"), ("d", "busybox:1")] {
            let pod = json!({"metadata": {"name": name}, "spec": {"containers": [of("a", image, "")]}});
            let (code, answer) = request(&cluster, "POST", "/api/v1/namespaces/default/pods", &pod).await;
            assert_eq!(code, 201, "{answer}");
        }
        let mut ready = Vec::new();
        for second in 1..40 {
            cluster.run_for(Duration::from_secs(1)).await;
            for name in ["a", "b", "c", "d"] {
                let path = format!("/api/v1/namespaces/default/pods/{name}");
                let (_, pod) = request(&cluster, "GET", &path, &Value::Null).await;
                if pod["status"]["phase"] == "Running" && !ready.iter().any(|(known, _)| *known == name) {
                    ready.push((name, second));
                }
            }
        }
        let [("d", _), (_, first), _, (_, last)] = ready[..] else {
            panic!("what is there does not wait: {ready:?}");
        };
        assert!(
            (8..=14).contains(&(last - first)) && last <= 26,
            "one after the other, and what is there by then is not fetched again: {ready:?}"
        );
    });
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

/// Names below `invalid.` are nobody's. Each failure is one attempt: after 10 seconds the next, then after 20.
#[test]
fn registries_that_fail() {
    let image = "invalid.registry.k8s.io/invalid/alpine:3.1";
    let begin =
        format!("failed to pull and unpack image \"{image}\": failed to resolve reference \"{image}\": ");
    let why = "failed to do request: Head \"https://invalid.registry.k8s.io/v2/invalid/alpine/manifests/3.1\": dial tcp: \
               lookup invalid.registry.k8s.io on 127.0.0.53:53: no such host";
    tells(
        one(image, ""),
        4,
        "Pending ContainersNotReady a:waiting(ErrImagePull)",
        &format!("a Failed: Failed to pull image \"{image}\": {begin}{why}"),
    );
    for (seconds, attempts, status) in [
        (4, "", "Pending ContainersNotReady a:waiting(ErrImagePull)"),
        (
            75,
            " x3",
            "Pending ContainersNotReady a:waiting(ImagePullBackOff)",
        ),
    ] {
        let (found, events) = live(Life {
            spec: one(image, ""),
            seconds,
            ..Life::default()
        });
        let pulling = format!("a Pulling: Pulling image \"{image}\"{attempts}");
        assert_eq!(
            (found.as_str(), events.contains(&pulling)),
            (status, true),
            "{events:#?}"
        );
    }
    // The third attempt succeeds.
    tells(
        one("busy:1", ""),
        4,
        "Pending ContainersNotReady a:waiting(ErrImagePull)",
        "manifests/1: 503 Service Unavailable",
    );
    tells(
        one("busy:1", ""),
        75,
        RUNS,
        "a Pulled: Successfully pulled image \"busy:1\" in ",
    );
}

#[test]
fn images_that_need_a_secret() {
    let failed = "Pending ContainersNotReady a:waiting(ErrImagePull)";
    tells(
        one(PRIVATE, ""),
        4,
        failed,
        "authorization failed: no basic auth credentials",
    );
    let with_secret = |username: &str, host: &str| {
        let config = json!({"auths": {host: {"username": username, "password": "p"}}}).to_string();
        let secret = json!({
            "metadata": {"name": "s"}, "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": config},
        });
        let mut spec = one(PRIVATE, "");
        spec["imagePullSecrets"] = json!([{"name": "s"}]);
        live(Life {
            spec,
            seconds: 5,
            before: vec![("/api/v1/namespaces/default/secrets", secret)],
            ..Life::default()
        })
    };
    for (username, host, status, said) in [
        ("u", "private.example.com", RUNS, "a Pulled: Successfully pulled"),
        ("v", "private.example.com", failed, "401 Unauthorized"),
        ("u", "other.example.com", failed, "no basic auth credentials"),
    ] {
        let (found, events) = with_secret(username, host);
        assert_eq!(found, status, "{username} {host}: {events:#?}");
        assert!(
            events.iter().any(|event| event.contains(said)),
            "{username} {host}: {events:#?}"
        );
    }
}

/// A pod whose container `a` mounts a volume that is an image, beside `more`.
fn mounting(image: &str, policy: &str, more: &[Value]) -> Value {
    let mut container = of("a", "busybox:1", "");
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let mut volume = json!({"name": "v", "image": {"reference": image}});
    if !policy.is_empty() {
        volume["image"]["pullPolicy"] = json!(policy);
    }
    let mut containers = vec![container];
    containers.extend_from_slice(more);
    json!({"containers": containers, "volumes": [volume]})
}

#[test]
fn images_as_volumes() {
    let there =
        "- Pulled: Container image \"files:1\" already present on machine and can be accessed by the pod";
    tells(mounting("files:1", "", &[]), 4, RUNS, there);
    tells(mounting("files:1", "Never", &[]), 4, RUNS, there);
    tells(mounting("files:1", "IfNotPresent", &[]), 4, RUNS, "a Started");
    tells(
        mounting("files:1", "Always", &[]),
        6,
        RUNS,
        "- Pulling: Pulling image \"files:1\"",
    );
    // As with containers, the newest is asked for.
    tells(
        mounting("files", "", &[]),
        6,
        RUNS,
        "- Pulled: Successfully pulled image \"files\" in ",
    );
    tells(
        mounting("files:latest", "", &[]),
        6,
        RUNS,
        "- Pulling: Pulling image \"files:latest\"",
    );
    tells(
        mounting("slow:1", "", &[]),
        2,
        "Pending ContainersNotReady a:waiting(ContainerCreating)",
        "- Pulling: Pulling image \"slow:1\"",
    );
    tells(
        mounting("slow:1", "", &[]),
        7,
        RUNS,
        "- Pulled: Successfully pulled image \"slow:1\" in ",
    );
    // Before any container's own, and once for all of them.
    let other = of("b", "slow:1", "");
    tells(
        mounting("slow:1", "", &[other]),
        8,
        "Running ready a:running b:running",
        "b Pulled: Container image \"slow:1\" already present on machine",
    );
    // A container that is started again looks for it again.
    let mut again = mounting("files:1", "", &[]);
    again["containers"][0]["command"][2] = json!("exit 1");
    tells(
        again,
        5,
        "Running ContainersNotReady a:terminated(Error 1)x1",
        "- Pulled: Container image \"files:1\" already present on machine and can be accessed by the pod x",
    );
    let mut part = mounting("files:1", "", &[]);
    part["containers"][0]["volumeMounts"][0]["subPath"] = json!("x");
    tells(part, 4, RUNS, "a Started");
}

#[test]
fn volumes_that_do_not_come() {
    let failed = "Pending ContainersNotReady a:waiting(ErrImagePull)";
    tells(
        mounting("missing:1", "", &[]),
        4,
        failed,
        "- Failed: Failed to pull image \"missing:1\": rpc error: code = NotFound desc = failed to pull and unpack image \
         \"docker.io/library/missing:1\"",
    );
    tells(
        mounting("missing:1", "", &[]),
        4,
        failed,
        "a Failed: Error: ErrImagePull",
    );
    let later = "Pending ContainersNotReady a:waiting(ImagePullBackOff)";
    tells(
        mounting("missing:1", "", &[]),
        70,
        later,
        "- BackOff: Back-off pulling image \"missing:1\"",
    );
    tells(
        mounting("missing:1", "", &[]),
        70,
        later,
        "a Failed: Error: ImagePullBackOff",
    );
    let never = "Pending ContainersNotReady a:waiting(ErrImageNeverPull)";
    tells(
        mounting("slow:1", "Never", &[]),
        4,
        never,
        "- ErrImageNeverPull: Container image \"slow:1\" is not present with pull policy of Never",
    );
    tells(
        mounting("missing:1", "Never", &[]),
        4,
        never,
        "a Failed: Error: ErrImageNeverPull",
    );
    tells(
        mounting("Upper:1", "", &[]),
        4,
        "Pending ContainersNotReady a:waiting(InvalidImageName)",
        "- InspectFailed: Failed to apply default image tag \"Upper:1\"",
    );
    // Who does not mount it runs.
    tells(
        mounting("missing:1", "", &[of("b", "busybox:1", "")]),
        4,
        "Pending ContainersNotReady a:waiting(ImagePullBackOff) b:running",
        "b Started",
    );
    // Nor are images of containers fetched that wait for a volume.
    let mut spec = mounting("missing:1", "", &[]);
    spec["containers"][0]["image"] = json!("missing:2");
    tells(spec, 4, failed, "- Pulling: Pulling image \"missing:1\"");
    // Of several the last counts, and each is told of.
    let mut two = mounting("missing:1", "", &[]);
    two["volumes"] = json!([
        {"name": "v", "image": {"reference": "missing:1"}}, {"name": "w", "image": {"reference": "slow:1", "pullPolicy": "Never"}},
    ]);
    two["containers"][0]["volumeMounts"] =
        json!([{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}]);
    tells(two.clone(), 4, never, "a Failed: Error: ErrImagePull");
    two["containers"][0]["volumeMounts"] =
        json!([{"name": "w", "mountPath": "/w"}, {"name": "v", "mountPath": "/v"}]);
    tells(two, 4, failed, "a Failed: Error: ErrImageNeverPull");
    // What must end first needs it first.
    let mut first = mounting("missing:1", "", &[]);
    let mut init = first["containers"][0].clone();
    init["name"] = json!("i");
    first["initContainers"] = json!([init]);
    tells(
        first,
        4,
        "Pending ContainersNotReady i:waiting(ErrImagePull) a:waiting(PodInitializing)",
        "i Failed: Error: ErrImagePull",
    );
}
