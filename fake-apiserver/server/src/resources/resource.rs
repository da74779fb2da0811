//! One served resource in one version.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use machinery::cel::rules::RuleSet;
use machinery::types::{self, Schema};
use rules::strategy::Strategy;
use rules::validation::metadata;
use shared_json::{Value, json};
use store::{GroupResource, Revision};

use super::conversion_hook::ConversionHook;

/// A column of the resource's table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: Description,
    /// 0 is shown always, more only in wide output.
    pub priority: i64,
    pub source: ColumnSource,
}

/// Where a column's description comes from.
#[derive(Debug, Clone)]
pub(crate) enum Description {
    Text(String),
    /// That of a field of every object's metadata.
    OfMeta(&'static str),
    /// That of a field of a built-in resource: `apps/v1/deployments` and the field's path.
    OfField(String, String),
}

/// Where a cell's value comes from.
#[derive(Debug, Clone)]
pub(crate) enum ColumnSource {
    /// A function of the built-in type, by the column's name.
    Builtin,
    /// A custom resource's JSON path, such as `.spec.replicas`.
    JsonPath(String),
}

/// A subresource as discovery lists it.
#[derive(Debug, Clone)]
pub(crate) struct Subresource {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub verbs: Vec<String>,
}

/// The paths in a custom resource of the values of its `scale` subresource.
#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

/// One version of a CustomResourceDefinition.
#[derive(Debug)]
pub(crate) struct CustomVersion {
    pub schema: Arc<Schema>,
    /// The schema of the version that is stored, where it is another.
    pub stored: Option<Arc<Schema>>,
    /// The revision of the last change of the schema: objects that were written before are pruned and defaulted
    /// by it when they are read.
    pub since: Revision,
    /// The webhook that converts between the versions, if there is one.
    pub hook: Option<ConversionHook>,
    /// The types of all versions, by API version, served or not.
    pub family: Arc<BTreeMap<String, Arc<Schema>>>,
    /// Whether its objects have resources of their own in them.
    pub embeds: bool,
    /// Whether a limit in the schema has a fraction.
    pub has_fractional_limits: bool,
    /// The rules in the schema.
    pub rules: RuleSet,
    /// The schema as the definition gives it, for OpenAPI.
    pub published: Value,
    pub status: bool,
    pub scale: Option<ScalePaths>,
    /// Field paths that field selectors may name, besides name and namespace.
    pub selectable: Vec<String>,
}

/// One served resource in one version.
pub(crate) struct Resource {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub verbs: Vec<String>,
    pub list_kind: String,
    pub storage_version_hash: Option<String>,
    /// The warning that every answer in this version carries, if it is deprecated.
    pub deprecation: Option<String>,
    pub subresources: BTreeMap<String, Subresource>,
    pub columns: Vec<Column>,
    /// Field selectors the resource accepts.
    pub selectable: Vec<String>,
    /// The table its objects are kept in, which several groups and versions may share.
    pub table: GroupResource,
    /// The `apiVersion` its objects are stored in.
    pub storage_api_version: String,
    pub strategy: &'static dyn Strategy,
    pub custom: Option<CustomVersion>,
    pub(super) builtin_schema: OnceLock<Option<Arc<Schema>>>,
    /// The columns as tables define them, made when the first table is asked for.
    pub(super) column_definitions: OnceLock<Value>,
}

impl Resource {
    /// The group that complaints about objects name: events are checked as those of the core group.
    pub(crate) fn validated_group(&self) -> &str {
        if self.table.group.is_empty() {
            ""
        } else {
            &self.group
        }
    }

    /// `apps/v1`, `v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether its objects are stored in this version.
    pub(crate) fn is_storage_version(&self) -> bool {
        let storage = self.storage_api_version.as_str();
        match storage.split_once('/') {
            Some((group, version)) => self.group == group && self.version == version,
            None => self.group.is_empty() && self.version == storage,
        }
    }

    /// The name used in error messages.
    pub(crate) fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.plural)
    }

    /// The properties that the rules about metadata need.
    pub(crate) fn of_metadata(&self) -> metadata::Of<'_> {
        metadata::Of {
            group: &self.group,
            plural: &self.plural,
            is_custom: self.is_custom(),
        }
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    /// Whether a built-in resource has a path of this form, by whatever method.
    pub(crate) fn has_path(&self, namespace: &str, name: &str, subresource: &str) -> bool {
        let served = |verbs: &[&str]| {
            verbs
                .iter()
                .any(|verb| self.verbs.iter().any(|served| served == verb))
        };
        let of_all = self.namespaced && namespace.is_empty();
        if !self.namespaced && !namespace.is_empty() {
            return false;
        }
        if name.is_empty() {
            return served(if of_all {
                &["list"]
            } else {
                &["list", "watch", "create", "deletecollection"]
            });
        }
        let of_object = match subresource
            .split_once('/')
            .map_or(subresource, |(first, _)| first)
        {
            "" => served(&["get", "update", "patch", "delete"]),
            "proxy" => self.subresources.contains_key("proxy"),
            _ => self.subresources.contains_key(subresource),
        };
        of_object && !of_all
    }

    pub(crate) fn has_status(&self) -> bool {
        self.subresources.contains_key("status")
    }

    /// The `columnDefinitions` of the resource's table.
    pub(crate) fn column_definitions(&self) -> &Value {
        self.column_definitions.get_or_init(|| {
            let definition = |column: &Column| {
                let description = match &column.description {
                    Description::Text(text) => text.clone(),
                    Description::OfMeta(field) => types::field_description(("", "v1", "ObjectMeta"), field),
                    Description::OfField(id, path) => super::builtin::kind_of(id)
                        .map(|gvk| types::field_description(gvk, path))
                        .unwrap_or_default(),
                };
                json!({
                    "name": column.name, "type": column.kind, "format": column.format,
                    "description": description, "priority": column.priority,
                })
            };
            self.columns.iter().map(definition).collect()
        })
    }

    /// The description of the type; `None` for the few kinds that are served and never stored.
    pub(crate) fn schema(&self) -> Option<Arc<Schema>> {
        if let Some(custom) = &self.custom {
            return Some(Arc::clone(&custom.schema));
        }
        self.builtin_schema
            .get_or_init(|| types::builtin((&self.group, &self.version, &self.kind)))
            .clone()
    }
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Resource({}/{})", self.api_version(), self.plural)
    }
}
