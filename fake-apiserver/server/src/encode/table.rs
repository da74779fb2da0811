//! Tables: `meta.k8s.io` `Table`, the output of `kubectl get`.

use std::borrow::Cow;

use jiff::Timestamp;
use machinery::meta::ObjectMeta;
use machinery::types;
use shared_json::{Value, json};

use super::cells;
use crate::conversion;
use crate::message::negotiate::MetaVersion;
use crate::resources::{Column, Resource, columns};

/// The part of its object that a row carries besides the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IncludeObject {
    None,
    Metadata,
    Object,
}

impl IncludeObject {
    /// The parameter's text, which has been checked.
    pub(super) fn parse(text: &str) -> Self {
        match text {
            "None" => Self::None,
            "Object" => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// In which form a table is wanted, and when.
pub(super) struct Form {
    pub meta: MetaVersion,
    pub include: IncludeObject,
    pub now: Timestamp,
}

/// The table of some objects. `list_metadata` is that of the list; `None` for a single object's table.
pub(super) fn table(
    resource: &Resource,
    objects: &[Value],
    list_metadata: Option<Value>,
    form: &Form,
) -> Value {
    let rows: Vec<Value> = objects.iter().map(|object| row(resource, object, form)).collect();
    let metadata = list_metadata.unwrap_or_else(|| match objects.first().map(ObjectMeta::resource_version) {
        None | Some("") => json!({}),
        Some(version) => json!({"resourceVersion": version}),
    });
    // Kinds without a printer of their own have one that makes its rows of what is there.
    let is_printed =
        resource.is_custom() || resource.columns.iter().all(|column| column.name != "Created At");
    let rows = if rows.is_empty() && !is_printed {
        Value::Null
    } else {
        Value::from(rows)
    };
    json!({
        "kind": "Table",
        "apiVersion": form.meta.api_version(),
        "metadata": metadata,
        "columnDefinitions": resource.column_definitions(),
        "rows": rows,
    })
}

/// The table of a `Scale`, which is shown in place of the object that it scales.
pub(super) fn scale(scale: &Value, form: &Form, is_custom: bool) -> Value {
    let described = |of, path| types::field_description(of, path);
    let metadata = |field| described(("", "v1", "ObjectMeta"), field);
    // Custom resources have a printer of their own, with words of its own.
    let (desired, available) = if is_custom {
        (
            "Number of desired replicas".to_owned(),
            "Number of actual replicas".to_owned(),
        )
    } else {
        let scale = ("autoscaling", "v1", "Scale");
        (
            described(scale, "spec.replicas"),
            described(scale, "status.replicas"),
        )
    };
    let (name_format, age_type) = if is_custom {
        ("name", "date")
    } else {
        ("", "string")
    };
    let columns = [
        ("Name", "string", name_format, metadata("name")),
        ("Desired", "integer", "", desired),
        ("Available", "integer", "", available),
        ("Age", age_type, "", metadata("creationTimestamp")),
    ];
    let definitions = columns.map(|(name, kind, format, description)| {
        json!({"name": name, "type": kind, "format": format, "priority": 0, "description": description})
    });
    let shown = match form.include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => super::metadata_only(scale, form.meta),
        IncludeObject::Object => scale.clone(),
    };
    json!({
        "kind": "Table",
        "apiVersion": form.meta.api_version(),
        "metadata": {"resourceVersion": scale.resource_version()},
        "columnDefinitions": definitions,
        "rows": [{"cells": cells::of_scale(scale, form.now, is_custom), "object": shown}],
    })
}

fn row(resource: &Resource, object: &Value, form: &Form) -> Value {
    // The printers of built-in kinds know one version of each, whatever version is asked for.
    let printed = if resource.is_custom() || resource.is_storage_version() {
        Cow::Borrowed(object)
    } else {
        Cow::Owned(conversion::to_storage(resource, object.clone()))
    };
    let cell = |column: &Column| cells::cell(resource, column, &printed, form.now);
    let mut cells: Vec<Value> = resource.columns.iter().map(cell).collect();
    if resource.group == "networking.k8s.io" && resource.plural == "ipaddresses" {
        // The real server's printer gives these an age and declares no column for it.
        cells.push(cell(&columns::standard("Age")));
    }
    let shown = match form.include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => super::metadata_only(object, form.meta),
        IncludeObject::Object => object.clone(),
    };
    let mut row = json!({"cells": cells, "object": shown});
    if resource.group.is_empty() && resource.plural == "pods" {
        let phase = object
            .pointer("/status/phase")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed") {
            let (reason, message) = if phase == "Succeeded" {
                (phase, "The pod has completed successfully.")
            } else {
                (phase, "The pod failed.")
            };
            row["conditions"] =
                json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]);
        }
    }
    row
}
