//! OpenAPI: `/openapi/v2` and `/openapi/v3`, made when they are asked for.
//!
//! `types::published` has the built-in types; [`custom`] makes those of custom resources, [`operations`] the paths. [`v3`] is a
//! document per group version and their index, [`v2`] one document of all, in JSON or (as kubectl wants it) in the protobuf
//! form of gnostic ([`gnostic`]). [`merged`] adds the documents of other API servers about their groups.

mod custom;
mod gnostic;
mod merged;
mod operations;
mod v2;
mod v3;

use std::sync::Arc;

use bytes::Bytes;
use shared_json::Value;

pub(crate) use merged::part;

use crate::resources::Registry;

/// A document and its hash for caches.
pub(crate) struct Document {
    pub bytes: Bytes,
    pub content_type: &'static str,
    /// A text that changes when the document does.
    pub hash: String,
}

impl Document {
    /// The same with a change; `change` says whether it has made one.
    pub(crate) fn changed(self, change: impl FnOnce(&mut Value) -> bool) -> Self {
        let mut value: Value = shared_json::from_slice(&self.bytes).unwrap_or_default();
        if !change(&mut value) {
            return self;
        }
        let text = value.to_string();
        Self {
            hash: hash([text.as_str()]),
            bytes: Bytes::from(text),
            content_type: self.content_type,
        }
    }
}

/// The answer of `/openapi/v3` and the paths below it: the index, or a document by its path (`apis/apps/v1`).
pub(crate) fn v3(registry: &Registry, path: &str) -> Option<Document> {
    if path.is_empty() {
        return Some(v3::index(registry));
    }
    v3::document(registry, path)
}

/// Whether a client that accepts these media types takes a document of `/openapi/v3`.
pub(crate) fn takes_v3(accept: &str) -> bool {
    const OFFERED: [&str; 3] = [
        "application/json",
        "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
    ];
    let accepts = |part: &str| {
        let kind = part.split(';').next().unwrap_or_default().trim();
        matches!(kind, "*/*" | "application/*") || OFFERED.contains(&kind)
    };
    accept.trim().is_empty() || accept.split(',').any(accepts)
}

/// The answer of `/openapi/v2` for a client's media types, with the [parts](part) that other API servers answer; `None` if no accepted
/// type is offered.
pub(crate) fn v2(registry: &Registry, others: &[Arc<Value>], accept: &str) -> Option<Document> {
    v2::document(registry, others, accept)
}

/// A text that follows from others, for caches: 128 bits of FNV-1a in hexadecimal.
fn hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut hash = OFFSET;
    for part in parts {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }
    format!("{hash:032X}")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    fn read(path: &str) -> Value {
        let document = v3(&Registry::default(), path).expect("a document");
        shared_json::from_slice(&document.bytes).expect("JSON")
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let index = read("");
        for path in index["paths"].as_object().expect("paths").keys() {
            let document = read(path);
            let text = document.to_string();
            let references = text.split("\"$ref\":\"#/components/schemas/").skip(1);
            for name in references.map(|rest| rest.split('"').next().unwrap_or_default()) {
                assert!(
                    document["components"]["schemas"].get(name).is_some(),
                    "{path} lacks {name}"
                );
            }
        }
    }

    #[rstest]
    #[case("Pod", "metadata", json!({"default": {}}))]
    #[case("Container", "name", json!({"default": "", "type": "string"}))]
    #[case("Container", "env", json!({
        "x-kubernetes-list-map-keys": ["name"], "x-kubernetes-list-type": "map", "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge", "type": "array", "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.EnvVar"},
    }))]
    #[case("ContainerPort", "protocol", json!({"default": "TCP", "enum": ["SCTP", "TCP", "UDP"], "type": "string"}))]
    #[case("ServicePort", "targetPort", json!({}))]
    fn fields_are_published_with_what_is_known_of_them(
        #[case] kind: &str,
        #[case] field: &str,
        #[case] expected: Value,
    ) {
        let document = read("api/v1");
        let schema = &document["components"]["schemas"][format!("io.k8s.api.core.v1.{kind}")];
        let mut got = schema["properties"][field].clone();
        if let Some(map) = got.as_object_mut() {
            map.remove("description");
            map.remove("allOf");
        }
        assert_eq!(got, expected);
    }

    // What stands for several of JSON's types has none, and what is filled in need not be there.
    #[rstest]
    #[case("apiextensions.v1.JSON", "type", None)]
    #[case("apiextensions.v1.JSONSchemaPropsOrBool", "type", None)]
    #[case("apiextensions.v1.JSONSchemaProps", "type", Some(json!("object")))]
    #[case("core.v1.LocalObjectReference", "required", None)]
    #[case("core.v1.SecretKeySelector", "required", Some(json!(["key"])))]
    #[case("core.v1.BindingList", "type", None)]
    #[case("core.v1.Binding", "required", Some(json!(["target"])))]
    fn types_are_published_as_clients_validate_them(
        #[case] ending: &str,
        #[case] keyword: &str,
        #[case] expected: Option<Value>,
    ) {
        let document = v2(&Registry::default(), &[], "").expect("a document");
        let document: Value = shared_json::from_slice(&document.bytes).expect("JSON");
        let definitions = document["definitions"].as_object().expect("definitions");
        let schema = definitions
            .iter()
            .find(|(name, _)| name.ends_with(&format!(".{ending}")));
        assert_eq!(
            schema.and_then(|(_, schema)| schema.get(keyword).cloned()),
            expected
        );
    }

    #[test]
    fn a_document_is_made_of_what_its_group_version_needs() {
        let document = read("apis/apps/v1");
        let path =
            &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["patch"];
        assert_eq!(path["operationId"], "patchAppsV1NamespacedDeploymentScale");
        assert_eq!(path["tags"], json!(["apps_v1"]));
        assert!(
            document["components"]["schemas"]
                .get("io.k8s.api.batch.v1.Job")
                .is_none()
        );
    }

    #[rstest]
    #[case("/api/", "getCoreAPIVersions")]
    #[case("/api/v1/", "getCoreV1APIResources")]
    #[case("/apis/", "getAPIVersions")]
    #[case("/apis/apps/", "getAppsAPIGroup")]
    #[case("/apis/apps/v1/", "getAppsV1APIResources")]
    #[case("/version/", "getCodeVersion")]
    fn the_second_version_has_the_paths_of_discovery(#[case] path: &str, #[case] expected: &str) {
        let document = v2(&Registry::default(), &[], "").expect("a document");
        let document: Value = shared_json::from_slice(&document.bytes).expect("JSON");
        assert_eq!(document["paths"][path]["get"]["operationId"], expected);
    }

    #[rstest]
    #[case("", Some("application/json"))]
    #[case(
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        Some("application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
    )]
    #[case("text/html", None)]
    fn the_second_version_comes_in_two_forms(#[case] accept: &str, #[case] expected: Option<&str>) {
        let document = v2(&Registry::default(), &[], accept);
        assert_eq!(document.as_ref().map(|document| document.content_type), expected);
        assert!(document.is_none_or(|document| document.bytes.len() > 100_000));
    }
}
