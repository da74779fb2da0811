//! `application/vnd.kubernetes.protobuf`: built-in objects as client-go sends and reads them.
//!
//! There are no generated types: the types' descriptions have the fields, [`fields`] their numbers, and
//! [`encode`] and [`decode`] go from JSON to protobuf and back. An object on the wire is four bytes (`k8s` and zero), and then
//! `runtime.Unknown`: its apiVersion and kind, and its fields as a message of its own.

mod decode;
mod discovery;
mod encode;
mod fields;

use std::sync::Arc;

use bytes::Bytes;
use shared_json::{Map, Value};

use crate::types::{self, Schema};
use crate::wire::{Malformed, Reader, Writer};

const MAGIC: [u8; 4] = [b'k', b'8', b's', 0];

/// An object or a list of built-in objects on the wire; `None` for objects without such a form.
pub fn encode(object: &Value) -> Option<Bytes> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let mut raw = Writer::default();
    body(&mut raw, api_version, kind, object)?;
    let mut unknown = Writer::default();
    unknown.message(1, |out| {
        out.string(1, api_version);
        out.string(2, kind);
    });
    unknown.bytes(2, &raw.into_bytes());
    unknown.string(3, "");
    unknown.string(4, "");
    let mut out = MAGIC.to_vec();
    out.extend(unknown.into_bytes());
    Some(Bytes::from(out))
}

fn body(out: &mut Writer, api_version: &str, kind: &str, object: &Value) -> Option<()> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if let Some(schema) = types::builtin((group, version, kind)) {
        encode::message(out, &schema, object);
        return Some(());
    }
    if group == "meta.k8s.io" && kind == "PartialObjectMetadata" {
        partial(out, object);
        return Some(());
    }
    if discovery::body(out, kind, object).is_some() {
        return Some(());
    }
    let items = object.get("items").and_then(Value::as_array)?;
    let kind = kind.strip_suffix("List")?;
    let partials = group == "meta.k8s.io" && kind == "PartialObjectMetadata";
    let item_schema = types::builtin((group, version, kind)).filter(|_| !partials);
    if item_schema.is_none() && !partials {
        return None;
    }
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    out.message(1, |out| encode::message(out, &list_meta(), metadata));
    for item in items {
        out.message(2, |out| match &item_schema {
            Some(schema) => encode::message(out, schema, item),
            None => partial(out, item),
        });
    }
    Some(())
}

fn partial(out: &mut Writer, object: &Value) {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    out.message(1, |out| encode::message(out, &types::object_meta(), metadata));
}

/// A watch event as a frame of the stream: four bytes of length, then the event, whose object is in the form of [`encode`].
pub fn watch_frame(kind: &str, object: &Value) -> Option<Bytes> {
    let object = encode(object)?;
    let mut event = Writer::default();
    event.string(1, kind);
    event.message(2, |out| out.bytes(1, &object));
    let event = event.into_bytes();
    let mut out = u32::try_from(event.len()).ok()?.to_be_bytes().to_vec();
    out.extend(event);
    Some(Bytes::from(out))
}

/// Reads an object.
///
/// # Errors
/// The real server's error for invalid bytes.
pub fn decode(bytes: &[u8]) -> Result<Value, String> {
    let Some(rest) = bytes.strip_prefix(&MAGIC) else {
        return Err(if bytes.is_empty() {
            "empty data".to_owned()
        } else {
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
                .to_owned()
        });
    };
    if rest.is_empty() {
        return Err("empty body".to_owned());
    }
    read(rest).map_err(|Malformed| "unexpected EOF".to_owned())
}

fn read(bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    let mut reader = Reader::new(bytes);
    while let Some((number, token)) = reader.next_field()? {
        match number {
            1 => {
                let mut inner = Reader::new(token.bytes()?);
                while let Some((number, token)) = inner.next_field()? {
                    match number {
                        1 => api_version = token.text()?,
                        2 => kind = token.text()?,
                        _ => {}
                    }
                }
            }
            2 => raw = token.bytes()?,
            _ => {}
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    // Options of deletion and their like are kinds of every group.
    let schema = types::builtin((group, version, &kind)).or_else(|| types::builtin(("", "v1", &kind)));
    let mut object = match schema {
        Some(schema) => decode::message(&schema, raw, 0)?,
        None => Value::Object(Map::new()),
    };
    object["apiVersion"] = Value::from(api_version);
    object["kind"] = Value::from(kind);
    Ok(object)
}

fn list_meta() -> Arc<Schema> {
    types::builtin(("", "v1", "Status"))
        .and_then(|status| status.field("metadata").map(|field| field.schema.shared()))
        .unwrap_or_default()
}

/// The description of a custom resource's schema, which contains itself in ways that OpenAPI has no words for.
fn json_schema_props() -> Arc<Schema> {
    let definition = types::builtin(("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
    let path = ["spec", "versions", "schema"];
    definition
        .and_then(|definition| {
            let validation = definition.at(&path)?.field("openAPIV3Schema")?;
            Some(validation.schema.shared())
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[test]
    fn reads_what_client_go_sends() {
        let sent = STANDARD
            .decode("azhzAAoPCgJ2MRIJQ29uZmlnTWFwEgkKBwoFcHJvdG8aACIA")
            .expect("base64");
        let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "proto"}});
        assert_eq!(decode(&sent), Ok(expected));
    }

    #[test]
    fn writes_a_status_as_the_real_server_does() {
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": "no", "reason": "NotAcceptable",
            "code": 406,
        });
        let mut expected = b"k8s\0\n\x0c\n\x02v1\x12\x06Status\x12".to_vec();
        let raw = b"\n\x06\n\0\x12\0\x1a\0\x12\x07Failure\x1a\x02no\"\rNotAcceptable0\x96\x03";
        expected.push(u8::try_from(raw.len()).expect("short"));
        expected.extend(raw);
        expected.extend(b"\x1a\0\"\0");
        assert_eq!(encode(&status).expect("a form").to_vec(), expected);
    }

    #[rstest]
    #[case::pod(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b", "c": ""}, "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": {"f:x": {}}, "time": "2026-01-01T00:00:00Z"}],
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": true}]},
        "spec": {
            "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "100m"}, "requests": {"memory": "1Gi"}},
                "readinessProbe": {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 3},
                "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}],
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "cm", "defaultMode": 420}}],
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 300}],
            "terminationGracePeriodSeconds": 0,
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIPs": [{"ip": "10.0.0.1"}]},
    }))]
    #[case::deployment(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}},
    }))]
    #[case::secret(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "AQID"}, "type": "Opaque"}))]
    #[case::review(json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
        "spec": {"user": "u", "extra": {"k": ["a", "b"]}}, "status": {"allowed": false},
    }))]
    #[case::definition(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "w.x.y"},
        "spec": {"group": "x.y", "names": {"plural": "w", "kind": "W"}, "scope": "Namespaced", "versions": [{
            "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"spec": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1.5}},
                    "list": {"type": "array", "items": {"type": "string", "enum": ["a", 1], "default": "a"}}},
            }},
        }]},
    }))]
    fn there_and_back(#[case] object: Value) {
        let mut back = decode(&encode(&object).expect("a form")).expect("an object");
        remove_empty(&mut back);
        let mut expected = object;
        remove_empty(&mut expected);
        assert_eq!(back, expected);
    }

    /// Removes Go's zero values; the canonical form decides about those that are left.
    fn remove_empty(value: &mut Value) {
        const KEPT: [&str; 2] = ["emptyDir", "f:x"];
        let is_zero = |value: &Value| *value == json!({}) || *value == json!("") || *value == json!(false);
        match value {
            Value::Object(map) => {
                map.values_mut().for_each(remove_empty);
                map.retain(|key, inner| KEPT.contains(&key.as_str()) || !is_zero(inner));
            }
            Value::Array(list) => list.iter_mut().for_each(remove_empty),
            _ => {}
        }
    }

    #[rstest]
    #[case(
        b"not protobuf",
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    #[case(b"k8s\0", "empty body")]
    #[case(b"k8s\0\x0a\xff", "unexpected EOF")]
    #[case(b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "unexpected EOF")]
    fn refuses(#[case] sent: &[u8], #[case] expected: &str) {
        assert_eq!(decode(sent), Err(expected.to_owned()));
    }
}
