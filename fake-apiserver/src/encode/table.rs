//! Tables: `meta.k8s.io/v1` `Table`, what `kubectl get` prints.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells;
use crate::meta::ObjectMeta;
use crate::resources::{ColumnSource, Resource};

/// The table of some objects. `list_metadata` is that of the list; `None` for a single object's table.
pub(super) fn table(
    resource: &Resource,
    objects: &[Value],
    list_metadata: Option<Value>,
    now: Timestamp,
) -> Value {
    let columns: Vec<Value> = resource
        .columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name, "type": column.kind, "format": column.format,
                "description": column.description, "priority": column.priority,
            })
        })
        .collect();
    let rows: Vec<Value> = objects.iter().map(|object| row(resource, object, now)).collect();
    let metadata = list_metadata.unwrap_or_else(|| {
        let version = objects
            .first()
            .map(ObjectMeta::resource_version)
            .unwrap_or_default();
        json!({"resourceVersion": version})
    });
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

fn row(resource: &Resource, object: &Value, now: Timestamp) -> Value {
    let cells: Vec<Value> = resource
        .columns
        .iter()
        .map(|column| match &column.source {
            ColumnSource::Builtin => cells::builtin(resource, &column.name, object, now),
            ColumnSource::JsonPath(path) => cells::json_path(object, path, &column.kind, now),
        })
        .collect();
    let mut row = json!({"cells": cells, "object": super::metadata_only(object)});
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
