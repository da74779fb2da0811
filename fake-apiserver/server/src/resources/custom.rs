//! Resources from CustomResourceDefinitions.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use machinery::cel::{self, rules::RuleSet};
use machinery::meta::at;
use machinery::types::Schema;
use pod_rules::field_error::FieldError;
use ring::digest::{SHA256, digest};
use rules::strategy;
use rules::validation::embedded;
use shared_json::{Array, Value};
use store::{GroupResource, Revision};

use super::columns;
use super::conversion_hook::ConversionHook;
use super::resource::{Column, ColumnSource, CustomVersion, Description, Resource, ScalePaths, Subresource};
use super::version_rank::version_rank;

fn text(value: &Value, path: &str) -> String {
    at(value, path)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn texts(value: &Value, path: &str) -> Vec<String> {
    let list = at(value, path).and_then(Value::as_array);
    list.map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default()
}

/// The resources that a CustomResourceDefinition serves, one per served version; `before` are those that it served until
/// `now`.
///
/// # Errors
/// Whatever is wrong with its schemas.
pub(super) fn resources(
    definition: &Value,
    before: &[Arc<Resource>],
    now: Revision,
) -> Result<Vec<Arc<Resource>>, Vec<FieldError>> {
    let group = text(definition, "spec.group");
    let plural = text(definition, "spec.names.plural");
    let kind = text(definition, "spec.names.kind");
    let versions = at(definition, "spec.versions")
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default();
    let stored_at = versions
        .iter()
        .position(|version| version.get("storage").and_then(Value::as_bool) == Some(true));
    let storage = stored_at
        .and_then(|at| versions.get(at))
        .map(|version| text(version, "name"))
        .unwrap_or_default();
    let mut out = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        if version.get("served").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let name = text(version, "name");
        let mut custom = custom_version(version, &schema_path(versions, index))?;
        if let Some(at) = stored_at.filter(|at| *at != index)
            && let Some(stored) = versions.get(at)
        {
            custom.stored = Some(custom_version(stored, &schema_path(versions, at))?.schema);
        }
        let unchanged = before.iter().find_map(|resource| {
            let custom = resource.custom.as_ref().filter(|_| resource.version == name)?;
            let same = Some(&custom.published) == at(version, "schema.openAPIV3Schema")
                && resource.storage_api_version == format!("{group}/{storage}");
            same.then_some(custom.since)
        });
        custom.hook = ConversionHook::of(definition);
        custom.since = unchanged.unwrap_or(if before.is_empty() { Revision(0) } else { now });
        let mut list_kind = text(definition, "spec.names.listKind");
        if list_kind.is_empty() {
            list_kind = format!("{kind}List");
        }
        let mut singular = text(definition, "spec.names.singular");
        if singular.is_empty() {
            singular = kind.to_lowercase();
        }
        let deprecated = version.get("deprecated").and_then(Value::as_bool) == Some(true);
        let deprecation =
            deprecated.then(
                || match version.get("deprecationWarning").and_then(Value::as_str) {
                    Some(warning) => warning.to_owned(),
                    None => deprecation(&group, &name, &kind, versions),
                },
            );
        out.push(Resource {
            deprecation,
            subresources: subresources(&custom, &group, &name, &kind),
            columns: printer_columns(version),
            selectable: custom.selectable.clone(),
            version: name,
            kind: kind.clone(),
            plural: plural.clone(),
            singular,
            short_names: texts(definition, "spec.names.shortNames"),
            categories: texts(definition, "spec.names.categories"),
            namespaced: text(definition, "spec.scope") == "Namespaced",
            verbs: [
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "create",
                "update",
                "watch",
            ]
            .map(str::to_owned)
            .to_vec(),
            list_kind,
            storage_version_hash: Some(version_hash(&format!("{group}/{storage}/{kind}"))),
            table: GroupResource::new(&group, &plural),
            storage_api_version: format!("{group}/{storage}"),
            strategy: strategy::of_custom(),
            group: group.clone(),
            custom: Some(custom),
            builtin_schema: OnceLock::new(),
            column_definitions: OnceLock::new(),
        });
    }
    let family = Arc::new(family(&group, versions, &out));
    for custom in out.iter_mut().filter_map(|resource| resource.custom.as_mut()) {
        custom.family = Arc::clone(&family);
    }
    Ok(out.into_iter().map(Arc::new).collect())
}

/// The types of all versions, also of those that are not served.
fn family(group: &str, versions: &[Value], served: &[Resource]) -> BTreeMap<String, Arc<Schema>> {
    let schema = |version: &Value| {
        let name = text(version, "name");
        let known = served.iter().find(|resource| resource.version == name);
        let known = known.and_then(|resource| resource.custom.as_ref());
        let schema = match known {
            Some(custom) => Arc::clone(&custom.schema),
            None => Arc::new(Schema::from_openapi_v3(at(version, "schema.openAPIV3Schema")?).ok()?),
        };
        Some((format!("{group}/{name}"), schema))
    };
    versions.iter().filter_map(schema).collect()
}

/// The real server's warning for a deprecated version without its own text: it names the newer version.
fn deprecation(group: &str, version: &str, kind: &str, versions: &[Value]) -> String {
    let old = format!("{group}/{version} {kind} is deprecated");
    // Newer is what discovery lists before it.
    let usable = |candidate: &&Value| {
        version_rank(&text(candidate, "name")) < version_rank(version)
            && candidate.get("served").and_then(Value::as_bool) == Some(true)
            && candidate.get("deprecated").and_then(Value::as_bool) != Some(true)
    };
    let newest = versions
        .iter()
        .filter(usable)
        .map(|newer| text(newer, "name"))
        .min_by_key(|name| version_rank(name));
    match newest {
        Some(newer) => format!("{old}; use {group}/{newer} {kind}"),
        None => old,
    }
}

/// A short text that changes with the stored version: the first eight bytes of the SHA-256 of `group/version/Kind`.
fn version_hash(stored: &str) -> String {
    let hash = digest(&SHA256, stored.as_bytes());
    let start = hash.as_ref().get(..8).unwrap_or_default();
    base64::engine::general_purpose::STANDARD.encode(start)
}

/// Where errors of a version's schema are said to be: the real server keeps one that all versions share at the top.
fn schema_path(versions: &[Value], index: usize) -> String {
    let first = versions.first().and_then(|version| version.get("schema"));
    if versions.iter().all(|version| version.get("schema") == first) {
        "spec.validation.openAPIV3Schema".to_owned()
    } else {
        format!("spec.versions[{index}].schema.openAPIV3Schema")
    }
}

fn custom_version(version: &Value, schema_path: &str) -> Result<CustomVersion, Vec<FieldError>> {
    let empty = Value::Object(shared_json::Map::new());
    let schema = Schema::from_openapi_v3(at(version, "schema.openAPIV3Schema").unwrap_or(&empty)).map_err(
        |errors| {
            errors
                .into_iter()
                .map(|error| error.under(schema_path))
                .collect::<Vec<_>>()
        },
    )?;
    let errors = cel::check::check(&schema, false, &[]);
    if !errors.is_empty() {
        return Err(errors.into_iter().map(|error| error.under(schema_path)).collect());
    }
    let scale = at(version, "subresources.scale").map(|scale| ScalePaths {
        spec_replicas: text(scale, "specReplicasPath"),
        status_replicas: text(scale, "statusReplicasPath"),
        label_selector: Some(text(scale, "labelSelectorPath")).filter(|path| !path.is_empty()),
    });
    let selectable = version.get("selectableFields").and_then(Value::as_array);
    Ok(CustomVersion {
        stored: None,
        since: Revision(0),
        hook: None,
        family: Arc::default(),
        embeds: embedded::has(&schema),
        has_fractional_limits: schema.has_fractional_limits(),
        rules: RuleSet::of(&schema),
        schema: Arc::new(schema),
        published: at(version, "schema.openAPIV3Schema").cloned().unwrap_or_default(),
        status: at(version, "subresources.status").is_some(),
        scale,
        selectable: selectable
            .map(|fields| {
                fields
                    .iter()
                    .map(|field| text(field, "jsonPath").trim_start_matches('.').to_owned())
                    .collect()
            })
            .unwrap_or_default(),
    })
}

fn subresources(
    custom: &CustomVersion,
    group: &str,
    version: &str,
    kind: &str,
) -> BTreeMap<String, Subresource> {
    let verbs = || ["get", "patch", "update"].map(str::to_owned).to_vec();
    let mut out = BTreeMap::new();
    if custom.status {
        let status = Subresource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            verbs: verbs(),
        };
        out.insert("status".to_owned(), status);
    }
    if custom.scale.is_some() {
        let scale = Subresource {
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            verbs: verbs(),
        };
        out.insert("scale".to_owned(), scale);
    }
    out
}

/// The table's columns: the name, then the definition's columns, or the age where it has none.
fn printer_columns(version: &Value) -> Vec<Column> {
    let standard = |name: &str, kind: &str, path: &str| Column {
        kind: kind.to_owned(),
        source: ColumnSource::JsonPath(path.to_owned()),
        ..columns::standard(name)
    };
    let mut out = vec![standard("Name", "string", ".metadata.name")];
    match version.get("additionalPrinterColumns").and_then(Value::as_array) {
        Some(list) if !list.is_empty() => out.extend(list.iter().map(|entry| Column {
            name: text(entry, "name"),
            kind: text(entry, "type"),
            format: text(entry, "format"),
            description: Description::Text(match text(entry, "description") {
                given if given.is_empty() => {
                    let path = text(entry, "jsonPath");
                    format!("Custom resource definition column (in JSONPath format): {path}")
                }
                given => given,
            }),
            priority: entry.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            source: ColumnSource::JsonPath(text(entry, "jsonPath")),
        })),
        _ => out.push(standard("Age", "date", ".metadata.creationTimestamp")),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_real_server() {
        let stored = "discovery.example.com/v1/e2e-test-discovery-844-9017-crd";
        assert_eq!(version_hash(stored), "FeTSs8vZPv0=");
    }
}
