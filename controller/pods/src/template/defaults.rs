//! The defaults that OpenKruise fills into a pod template: Kubernetes' own, except that the images of containers (of init
//! containers not) are always pulled.

use serde_json::{Map, Value, json};

/// The probes of a container.
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Fills in the missing fields of a PodTemplateSpec.
pub fn pod_template(template: &mut Value) {
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "securityContext", json!({}));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    set(spec, "schedulerName", json!("default-scheduler"));
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or(false);
    for init in objects(spec.get_mut("initContainers")) {
        let policy = pull_policy(init.get("image").and_then(Value::as_str).unwrap_or_default());
        set(init, "imagePullPolicy", json!(policy));
        self::container(init, host_network, &PROBES);
    }
    for container in objects(spec.get_mut("containers")) {
        set(container, "imagePullPolicy", json!("Always"));
        self::container(container, host_network, &PROBES);
    }
    for volume in objects(spec.get_mut("volumes")) {
        self::volume(volume);
    }
}

/// Fills the defaults into a container that is part of no pod. Startup probes are left as they are.
pub fn lone_container(container: &mut Map<String, Value>) {
    let policy = pull_policy(container.get("image").and_then(Value::as_str).unwrap_or_default());
    set(container, "imagePullPolicy", json!(policy));
    self::container(container, false, &PROBES[..2]);
}

/// Fills the defaults into volumes that are part of no pod.
pub fn volumes(volumes: &mut Value) {
    objects(Some(volumes)).for_each(volume);
}

/// Fills in the missing fields of a PersistentVolumeClaim of `volumeClaimTemplates`.
pub fn claim_template(claim: &mut Value) {
    if let Some(status) = claim.get_mut("status").and_then(Value::as_object_mut) {
        set(status, "phase", json!("Pending"));
    }
}

fn set(map: &mut Map<String, Value>, field: &str, default: Value) {
    map.entry(field).or_insert(default);
}

fn objects(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    list.and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}

fn object<'a>(map: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Map<String, Value>> {
    map.get_mut(field).and_then(Value::as_object_mut)
}

/// Kubernetes' default: `Always` for the tag `latest`, which is also that of a reference without tag and digest. An empty
/// reference cannot be parsed and has none.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image
        .split_once('@')
        .map_or((image, false), |(name, _)| (name, true));
    let last = name.rsplit('/').next().unwrap_or(name);
    match last.split_once(':') {
        Some((_, "latest")) => "Always",
        None if !digest && !image.is_empty() => "Always",
        _ => "IfNotPresent",
    }
}

fn container(container: &mut Map<String, Value>, host_network: bool, probes: &[&str]) {
    set(container, "terminationMessagePath", json!("/dev/termination-log"));
    set(container, "terminationMessagePolicy", json!("File"));
    for port in objects(container.get_mut("ports")) {
        set(port, "protocol", json!("TCP"));
        if let (true, Some(number)) = (host_network, port.get("containerPort").cloned()) {
            set(port, "hostPort", number);
        }
    }
    for env in objects(container.get_mut("env")) {
        if let Some(reference) = object(env, "valueFrom").and_then(|from| object(from, "fieldRef")) {
            set(reference, "apiVersion", json!("v1"));
        }
    }
    for probe in probes {
        if let Some(probe) = object(container, probe) {
            set(probe, "timeoutSeconds", json!(1));
            set(probe, "periodSeconds", json!(10));
            set(probe, "successThreshold", json!(1));
            set(probe, "failureThreshold", json!(3));
            handler(probe);
        }
    }
    if let Some(lifecycle) = object(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(hook) = object(lifecycle, hook) {
                handler(hook);
            }
        }
    }
}

fn handler(handler: &mut Map<String, Value>) {
    if let Some(get) = object(handler, "httpGet") {
        set(get, "path", json!("/"));
        set(get, "scheme", json!("HTTP"));
    }
    if let Some(grpc) = object(handler, "grpc") {
        set(grpc, "service", json!(""));
    }
}

fn volume(volume: &mut Map<String, Value>) {
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = object(volume, source) {
            set(source, "defaultMode", json!(420));
            items(source);
            for projection in objects(source.get_mut("sources")) {
                if let Some(token) = object(projection, "serviceAccountToken") {
                    set(token, "expirationSeconds", json!(3600));
                }
                if let Some(downward) = object(projection, "downwardAPI") {
                    items(downward);
                }
            }
        }
    }
    if let Some(path) = object(volume, "hostPath") {
        set(path, "type", json!(""));
    }
    if let Some(claim) = object(volume, "ephemeral")
        .and_then(|ephemeral| object(ephemeral, "volumeClaimTemplate"))
        .and_then(|claim| object(claim, "spec"))
    {
        set(claim, "volumeMode", json!("Filesystem"));
    }
}

fn items(source: &mut Map<String, Value>) {
    for item in objects(source.get_mut("items")) {
        if let Some(reference) = object(item, "fieldRef") {
            set(reference, "apiVersion", json!("v1"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Recorded with OpenKruise 1.5.0 (`654b77b5b5`): the policy of init containers follows from the tag.
    #[rstest::rstest]
    #[case("nginx", "Always")]
    #[case("nginx:latest", "Always")]
    #[case("nginx:1.7.9", "IfNotPresent")]
    #[case("registry.example:5000/nginx", "Always")]
    #[case("registry.example:5000/nginx:1", "IfNotPresent")]
    #[case("nginx@sha256:0123", "IfNotPresent")]
    #[case("", "IfNotPresent")]
    fn images_of_init_containers_are_pulled_as_kubernetes_does(#[case] image: &str, #[case] expected: &str) {
        let mut template = json!({ "spec": {
            "initContainers": [{ "name": "init", "image": image }],
            "containers": [{ "name": "main", "image": image }],
        } });
        pod_template(&mut template);
        let policies =
            ["initContainers", "containers"].map(|list| template["spec"][list][0]["imagePullPolicy"].clone());
        assert_eq!(policies, [json!(expected), json!("Always")]);
    }
}
