//! The hash of a set's claim templates, which its revisions carry since OpenKruise 1.7.

use serde_json::{Map, Value, json};

use crate::template::{claim_template, to_go_json};

/// The order of the fields of a claim in Go's JSON, where that is not the alphabet's.
const FIELDS: [&str; 9] = [
    "accessModes",
    "selector",
    "resources",
    "volumeName",
    "storageClassName",
    "volumeMode",
    "dataSource",
    "dataSourceRef",
    "volumeAttributesClassName",
];

/// The annotation `kruise.io/cloneset-volumeclaimtemplate-hash` of these templates: empty where there are none.
///
/// The hash is that of the templates' names and specs, ordered by name, as Go writes the claims.
///
/// # Errors
/// The decoder's text when one of them is no claim.
pub fn of(templates: &[Value]) -> Result<String, String> {
    if templates.is_empty() {
        return Ok(String::new());
    }
    let mut claims = Vec::new();
    for template in templates {
        let claim = claim_template(template)?;
        let name = claim.pointer("/metadata/name").and_then(Value::as_str);
        let spec = claim.get("spec").and_then(Value::as_object);
        claims.push((
            name.unwrap_or_default().to_owned(),
            spec.cloned().unwrap_or_default(),
        ));
    }
    claims.sort_by(|(one, _), (other, _)| one.cmp(other));
    let written: Vec<String> = claims.iter().map(|(name, spec)| claim(name, spec)).collect();
    let hash = go_dump::bytes_hash(format!("[{}]", written.join(",")).as_bytes());
    Ok(hash.to_string())
}

fn claim(name: &str, spec: &Map<String, Value>) -> String {
    let known = FIELDS.iter().filter_map(|field| {
        let value = match *field {
            // Go always writes this struct.
            "resources" => spec.get(*field).cloned().unwrap_or_else(|| json!({})),
            _ => spec.get(*field)?.clone(),
        };
        let text = match *field {
            "dataSource" | "dataSourceRef" => source(&value),
            "selector" => in_order(&value, &["matchLabels", "matchExpressions"]),
            _ => to_go_json(&value),
        };
        Some(format!("\"{field}\":{text}"))
    });
    let spec: Vec<String> = known.collect();
    format!(
        "{{\"metadata\":{{\"name\":{},\"creationTimestamp\":null}},\"spec\":{{{}}},\"status\":{{}}}}",
        to_go_json(&json!(name)),
        spec.join(",")
    )
}

/// A reference to the source of a claim's data; Go writes its group even if there is none.
fn source(value: &Value) -> String {
    let mut value = value.clone();
    if let Some(map) = value.as_object_mut() {
        map.entry("apiGroup").or_insert(Value::Null);
    }
    in_order(&value, &["apiGroup", "kind", "name", "namespace"])
}

fn in_order(value: &Value, fields: &[&str]) -> String {
    let parts = fields.iter().filter_map(|field| {
        let text = to_go_json(value.get(*field)?);
        Some(format!("\"{field}\":{text}"))
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The figures are Go's, of `hashVolumeClaimTemplate` with Kubernetes' own types (1.32, as OpenKruise 1.9 has them).
    #[rstest]
    #[case(json!([]), "")]
    #[case(
        json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]),
        "3636919212"
    )]
    #[case(
        json!([
            {"metadata": {"name": "logs", "labels": {"a": "b"}}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                "volumeMode": "Filesystem", "resources": {"requests": {"storage": "2Gi"}, "limits": {"storage": "4Gi"}}}},
            {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}},
        ]),
        "3850109986"
    )]
    #[case(
        json!([{"metadata": {"name": "data"}, "spec": {
            "selector": {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [{"key": "x", "operator": "In", "values": ["y<z"]}]},
            "dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"},
            "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "p", "namespace": "n"},
            "volumeAttributesClassName": "gold", "volumeName": "pv",
        }}]),
        "2153027199"
    )]
    fn hashes(#[case] templates: Value, #[case] expected: &str) {
        let templates = templates.as_array().cloned().unwrap_or_default();
        assert_eq!(of(&templates).as_deref(), Ok(expected));
    }
}
