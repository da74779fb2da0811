//! Pods, and the defaults that pods and pod templates share.

use super::builtin::{object, set, text, unset};
use crate::types::Quantity;
use shared_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(super) fn fill(kind: &str, map: &mut Map) {
    match kind {
        "v1.Pod" => pod(map),
        "v1.PodSpec" => service_account(map),
        "v1.Container" | "v1.EphemeralContainer" => pull_policy(map),
        "v1.Volume"
            // A volume that says nothing but its name is an empty directory.
            if map.keys().all(|field| field == "name") => {
                map.insert("emptyDir".to_owned(), json!({}));
            }
        "v1.Volume" => {
            if let Some(image) = object(map, "image")
                && text(image, "pullPolicy").is_empty()
            {
                let policy = pull_policy_of(text(image, "reference"));
                image.insert("pullPolicy".to_owned(), policy.into());
            }
        }
        _ => {}
    }
}

/// The defaults of pods but not of templates.
fn pod(map: &mut Map) {
    let Some(spec) = object(map, "spec") else { return };
    if spec
        .get("terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .is_some_and(|seconds| seconds < 0)
    {
        spec.insert("terminationGracePeriodSeconds".to_owned(), json!(1));
    }
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or(false);
    for list in ["containers", "initContainers"] {
        let containers = spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            if let Some(resources) = object(container, "resources") {
                requests_from_limits(resources);
            }
            if host_network {
                host_ports(container);
            }
        }
    }
    pod_level_requests(spec);
}

/// The pod-level resources besides huge pages.
const POD_LEVEL: [&str; 2] = ["cpu", "memory"];

/// A pod with limits of its own requests the sum of its containers' requests, or as much as its limits.
fn pod_level_requests(spec: &mut Map) {
    let limits = spec
        .get("resources")
        .and_then(|resources| resources.get("limits"));
    let Some(limits) = limits
        .and_then(Value::as_object)
        .filter(|limits| !limits.is_empty())
        .cloned()
    else {
        return;
    };
    let containers = containers_requests(spec);
    let Some(resources) = object(spec, "resources") else {
        return;
    };
    for name in POD_LEVEL {
        if let Some(amount) = containers.get(name) {
            set(resources, &["requests", name], &Value::from(amount.canonical()));
        }
    }
    for (name, amount) in limits {
        if POD_LEVEL.contains(&name.as_str()) || name.starts_with("hugepages-") {
            set(resources, &["requests", &name], &amount);
        }
    }
}

/// The sum of a pod's container requests: init containers run one after the other, sidecars stay.
fn containers_requests(spec: &Map) -> BTreeMap<String, Quantity> {
    let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
    let mut all: BTreeMap<String, Quantity> = BTreeMap::new();
    for name in POD_LEVEL {
        let of = |container: &Value| {
            let amount = container.pointer(&format!("/resources/requests/{name}"));
            amount.map_or(Quantity::count(0), Quantity::of)
        };
        let (mut sum, mut sidecars, mut peak) = (Quantity::count(0), Quantity::count(0), Quantity::count(0));
        for container in list("containers") {
            sum = sum.plus(of(container));
        }
        for container in list("initContainers") {
            let mut now = of(container).plus(sidecars);
            if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
                sum = sum.plus(of(container));
                sidecars = now;
            }
            if peak.nanos() > now.nanos() {
                now = peak;
            }
            peak = now;
        }
        let most = if peak.nanos() > sum.nanos() { peak } else { sum };
        let pointer = format!("/resources/requests/{name}");
        let asked = list("containers").chain(list("initContainers"));
        if asked
            .into_iter()
            .any(|container| container.pointer(&pointer).is_some())
        {
            all.insert(name.to_owned(), most);
        }
    }
    all
}

/// Sets missing requests to the limits.
fn requests_from_limits(resources: &mut Map) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
        return;
    };
    for (name, amount) in limits {
        set(resources, &["requests", &name], &amount);
    }
}

/// On the host's network, a container's port is the host's.
fn host_ports(container: &mut Map) {
    let ports = container
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    for port in ports.filter_map(Value::as_object_mut) {
        if let Some(number) = port.get("containerPort").cloned() {
            set(port, &["hostPort"], &number);
        }
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are always written.
fn service_account(spec: &mut Map) {
    let (new, old) = (
        text(spec, "serviceAccountName").to_owned(),
        text(spec, "serviceAccount").to_owned(),
    );
    let name = if new.is_empty() { old } else { new };
    if !name.is_empty() {
        spec.insert("serviceAccount".to_owned(), name.as_str().into());
        spec.insert("serviceAccountName".to_owned(), name.into());
    }
}

/// Images without a tag, or with the tag `latest`, are always pulled.
fn pull_policy(container: &mut Map) {
    if unset(container, "imagePullPolicy") {
        let policy = pull_policy_of(text(container, "image"));
        container.insert("imagePullPolicy".to_owned(), policy.into());
    }
}

fn pull_policy_of(image: &str) -> &'static str {
    if is_latest(image) {
        "Always"
    } else {
        "IfNotPresent"
    }
}

/// `img`, `img:latest`, `registry:5000/img`; not `img:1`, `img@sha256:…`, nor an invalid image reference.
fn is_latest(image: &str) -> bool {
    let (name, digest) = image
        .split_once('@')
        .map_or((image, None), |(name, digest)| (name, Some(digest)));
    let start = name.rfind('/').map_or(0, |at| at + 1);
    let tag = name.get(start..).and_then(|last| last.split_once(':'));
    let path = tag.map_or(name, |(last, _)| {
        name.get(..start + last.len()).unwrap_or_default()
    });
    let is_newest = match tag {
        Some((_, tag)) => tag == "latest",
        None => digest.is_none(),
    };
    is_newest && is_repository(path) && name_bytes(path) <= NAME_BYTES_MAX && !is_hash(image)
}

/// How long the name of a repository may be, without its registry.
const NAME_BYTES_MAX: usize = 255;

/// How long it is, with the folder that images of the default registry have if they say none.
fn name_bytes(path: &str) -> usize {
    let is_registry = |first: &str| {
        first == "localhost" || first.contains(['.', ':']) || first.bytes().any(|b| b.is_ascii_uppercase())
    };
    match path.split_once('/') {
        Some((first, rest)) if is_registry(first) => rest.len(),
        Some(_) => path.len(),
        None => "library/".len() + path.len(),
    }
}

/// Whether a text is the hash of an image, which names none.
fn is_hash(image: &str) -> bool {
    image.len() == 64 && image.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text may name images: small letters, digits and separators, below a registry if it has one.
fn is_repository(path: &str) -> bool {
    let is_word =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let is_part = |part: &str| {
        let separators = |c: char| matches!(c, '.' | '_' | '-');
        let edges = [part.chars().next(), part.chars().last()];
        let in_a_row = ["..", "._", "_.", ".-", "-.", "-_", "_-", "___"];
        edges.iter().all(|edge| edge.is_some_and(|c| !separators(c)))
            && part
                .split(separators)
                .all(|word| word.is_empty() || is_word(word))
            && !in_a_row.iter().any(|odd| part.contains(odd))
    };
    let is_registry = |host: &str| {
        let bracketed = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        if let Some((address, port)) = bracketed {
            let digits = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
            return !address.is_empty()
                && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':')
                && (port.is_empty() || port.strip_prefix(':').is_some_and(digits));
        }
        let (name, port) = host.split_once(':').unwrap_or((host, "0"));
        let label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        name.split('.').all(label) && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
    };
    match path.split_once('/') {
        Some((first, rest)) => (is_part(first) || is_registry(first)) && rest.split('/').all(is_part),
        None => is_part(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("img", true)]
    #[case("img:latest", true)]
    #[case("img:v1", false)]
    #[case("img@sha256:aaaa", false)]
    #[case("reg:5000/img", true)]
    #[case(&"x".repeat(247), true)]
    #[case(&"x".repeat(248), false)]
    #[case(&format!("reg:5000/{}", "x".repeat(255)), true)]
    #[case("reg:5000/img:1", false)]
    #[case("", false)]
    fn always_pulled(#[case] image: &str, #[case] latest: bool) {
        assert_eq!(is_latest(image), latest);
    }
}
