//! The hashes of a SidecarSet: over its containers as Go writes them.

use client_kit::hex;
use pod_rules::go;
use serde_json::{Map, Value};

use crate::api::labels;
use crate::api::v1beta1::{SidecarContainer, SidecarSet, SidecarSetSpec};
use crate::pods::template::go_escape;

/// The letters and digits of which Kubernetes makes names.
const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The annotations of a set that have its hashes, and whether images are part of each.
pub(crate) const KEYS: [(&str, bool); 2] = [
    (labels::SIDECARS_HASH, true),
    (labels::SIDECARS_HASH_WITHOUT_IMAGE, false),
];

/// The hash of a spec in Go's form; without images, if wanted.
pub(crate) fn of_spec(spec: &SidecarSetSpec, with_images: bool) -> String {
    let text = |list: &Option<Vec<SidecarContainer>>| match list {
        None => "null".to_owned(),
        Some(list) => {
            let items: Vec<String> = list.iter().map(|item| written(item, with_images)).collect();
            format!("[{}]", items.join(","))
        }
    };
    let containers = text(&spec.containers);
    // Init containers count as soon as one of them keeps running.
    let bytes = if spec.inits().iter().any(SidecarContainer::is_native) {
        let inits = text(&spec.init_containers);
        format!("{{\"containers\":{containers},\"initContainers\":{inits}}}")
    } else {
        format!("{{\"containers\":{containers}}}")
    };
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes.as_bytes());
    let safe = |byte: u8| char::from(SAFE[usize::from(byte) % SAFE.len()]);
    hex(digest.as_ref()).bytes().map(safe).collect()
}

/// A container as Go's encoder writes its struct.
fn written(container: &SidecarContainer, with_image: bool) -> String {
    let mut fields = container.container.clone();
    if !with_image {
        fields.remove("image");
    }
    let fields = shared_json::to_value(Value::Object(fields)).unwrap_or_default();
    let mut text = go::ordered("core.Container", &fields);
    let own = SidecarContainer {
        container: Map::new(),
        ..container.clone()
    };
    let own = go_escape(serde_json::to_string(&own).unwrap_or_default());
    let own = own.trim_start_matches('{');
    if own != "}" {
        let separator = if text == "{}" { "" } else { "," };
        text.truncate(text.len() - 1);
        text = format!("{text}{separator}{own}");
    }
    text
}

/// A hash that the webhook has written on the set.
pub(crate) fn of_set<'a>(set: &'a SidecarSet, annotation: &str) -> &'a str {
    let annotations = set.metadata.annotations.as_ref();
    let value = annotations.and_then(|annotations| annotations.get(annotation));
    value.map(String::as_str).unwrap_or_default()
}

/// The set's hash.
pub(crate) fn full(set: &SidecarSet) -> &str {
    of_set(set, labels::SIDECARS_HASH)
}

/// The set's hash without images.
pub(crate) fn without_image(set: &SidecarSet) -> &str {
    of_set(set, labels::SIDECARS_HASH_WITHOUT_IMAGE)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn side() -> Value {
        json!({ "image": "busybox:1.36", "imagePullPolicy": "IfNotPresent", "name": "side",
            "podInjectPolicy": "BeforeAppContainer", "resources": {}, "shareVolumePolicy": { "type": "disabled" },
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "upgradeStrategy": { "upgradeType": "ColdUpgrade" } })
    }

    fn hash(spec: Value, with_images: bool) -> String {
        of_spec(&serde_json::from_value(spec).unwrap(), with_images)
    }

    // Recorded with OpenKruise 1.9.0.
    #[rstest]
    #[case(true, "c9v552d9ffd5xdx856f86bzfz4fw2w776522vz5bdb49bcbzw45c229wfxv9wfcw")]
    #[case(false, "487f8z7d9f29bxbbvcwcz4z54x2db6wdcwf4x6bd2ddf6fw485594c96f867x7w2")]
    fn the_recorded_hashes(#[case] with_images: bool, #[case] want: &str) {
        assert_eq!(hash(json!({ "containers": [side()] }), with_images), want);
    }

    #[rstest]
    #[case::no_containers(json!({}), r#"{"containers":null}"#)]
    #[case::plain_init(json!({ "containers": [], "initContainers": [{ "name": "i" }] }), r#"{"containers":[]}"#)]
    #[case::native(
        json!({ "initContainers": [{ "name": "i", "image": "a<b" }, { "name": "n", "restartPolicy": "Always" }] }),
        r#"{"containers":null,"initContainers":[{"name":"i","image":"a\u003cb"},{"name":"n","restartPolicy":"Always"}]}"#
    )]
    #[case::order(
        json!({ "containers": [{ "name": "s", "tty": true, "image": "i", "transferEnv": [{ "envName": "a", "sourceContainerName": "m" }],
            "env": [{ "valueFrom": { "fieldRef": { "fieldPath": "metadata.name", "apiVersion": "v1" } }, "name": "E" }],
            "resources": { "limits": { "memory": "1Gi", "cpu": "1" } }, "podInjectPolicy": "x" }] }),
        r#"{"containers":[{"name":"s","image":"i","env":[{"name":"E","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],"resources":{"limits":{"cpu":"1","memory":"1Gi"}},"tty":true,"podInjectPolicy":"x","transferEnv":[{"sourceContainerName":"m","envName":"a"}]}]}"#
    )]
    fn the_bytes_are_those_of_go(#[case] spec: Value, #[case] bytes: &str) {
        let digest = ring::digest::digest(&ring::digest::SHA256, bytes.as_bytes());
        let want: String = hex(digest.as_ref())
            .bytes()
            .map(|byte| char::from(SAFE[usize::from(byte) % SAFE.len()]))
            .collect();
        assert_eq!(hash(spec, true), want);
    }
}
