//! Objects in the form that the client asked for.

pub(crate) mod cells;
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use client_kit::SharedClock;
use machinery::protobuf;
use shared_json::{Value, go_escape, json, to_go_string};
use store::{Stored, watch_frame};

use crate::context::{Context, Page, Shown};
use crate::conversion;
use crate::message::negotiate::{Accepted, Encoding, MetaVersion, View};
use crate::resources::Resource;

/// The form of objects for a watcher of this process, which gets no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalForm {
    Whole,
    /// In this version of `meta.k8s.io`.
    Metadata(&'static str),
}

/// Encodes the objects of one request.
pub(crate) struct Encoder {
    resource: Arc<Resource>,
    accepted: Accepted,
    clock: SharedClock,
    include_object: table::IncludeObject,
    /// The watch's first table has defined the columns; those that follow do not.
    columns_told: AtomicBool,
}

impl Encoder {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            resource: context.resource.clone(),
            accepted: context.accepted,
            clock: context.state().clock.clone(),
            include_object: table::IncludeObject::parse(&context.params.include_object),
            columns_told: AtomicBool::new(false),
        }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    fn table(&self, objects: &[Value], list_metadata: Option<Value>) -> Value {
        let form = table::Form {
            meta: self.accepted.meta,
            include: self.include_object,
            now: self.clock.now(),
        };
        if let ([one], None) = (objects, &list_metadata)
            && one.get("kind").and_then(Value::as_str) == Some("Scale")
        {
            return table::scale(one, &form, self.resource.is_custom());
        }
        table::table(&self.resource, objects, list_metadata, &form)
    }

    /// Whether stored objects go out as they are.
    pub(crate) fn is_plain(&self) -> bool {
        self.accepted.view == View::Whole && self.is_storage_version()
    }

    /// Whether the events of a watch go out as the store keeps them.
    pub(crate) fn is_plain_json(&self) -> bool {
        self.is_plain() && self.accepted.encoding != Encoding::Protobuf
    }

    /// Whether only lists are shown as was asked: a watch can be asked for so, and ends where it would send an object.
    pub(crate) fn is_for_lists(&self) -> bool {
        self.accepted.view == View::MetadataOnlyList
    }

    /// The form for a watcher of this process, where the store has that form.
    pub(crate) fn local_form(&self) -> Option<LocalForm> {
        match self.accepted.view {
            _ if self.accepted.encoding == Encoding::Protobuf => None,
            View::Whole => self.is_storage_version().then_some(LocalForm::Whole),
            View::MetadataOnly if self.resource.kind == "DaemonSet" => None,
            View::MetadataOnly => Some(LocalForm::Metadata(self.accepted.meta.api_version())),
            View::MetadataOnlyList | View::Table => None,
        }
    }

    /// Whether a client of this process gets such an object as it is in the store.
    pub(crate) fn is_local(&self, stored: &Stored) -> bool {
        self.local_form() == Some(LocalForm::Whole) && conversion::is_plain(&self.resource, stored.revision)
    }

    /// An event of a watch, by its object's JSON.
    pub(crate) fn frame(&self, kind: &str, object: &[u8]) -> Bytes {
        let binary = || protobuf::watch_frame(kind, &shared_json::from_slice(object).ok()?);
        let binary = (self.accepted.encoding == Encoding::Protobuf)
            .then(binary)
            .flatten();
        binary.unwrap_or_else(|| watch_frame(kind, object))
    }

    fn is_storage_version(&self) -> bool {
        self.resource.is_storage_version()
    }

    /// The object in the request's version.
    fn value(&self, shown: &Shown) -> Value {
        match shown {
            Shown::Stored(stored) => conversion::from_storage(&self.resource, stored.value.clone()),
            Shown::Made(value) => value.clone(),
        }
    }

    /// One object.
    pub(crate) fn object(&self, shown: &Shown) -> Bytes {
        if let Shown::Stored(stored) = shown
            && self.accepted.view == View::Whole
            && conversion::is_plain(&self.resource, stored.revision)
        {
            return stored.bytes();
        }
        if let Shown::Stored(stored) = shown
            && self.accepted.view == View::MetadataOnly
            && self.resource.kind != "DaemonSet"
        {
            return metadata_bytes(&stored.value, self.accepted.meta);
        }
        let value = self.value(shown);
        let is_status = value.get("kind").and_then(Value::as_str) == Some("Status");
        let out = match self.accepted.view {
            View::Table if !is_status => self.table(&[value], None),
            View::MetadataOnly | View::MetadataOnlyList if !is_status => {
                metadata_only(&value, self.accepted.meta)
            }
            _ => value,
        };
        Bytes::from(to_go_string(&out))
    }

    /// One object of a watch.
    pub(crate) fn watched(&self, shown: &Shown) -> Bytes {
        if self.accepted.view != View::Table {
            return self.object(shown);
        }
        let mut table = self.table(&[self.value(shown)], None);
        if self.columns_told.swap(true, Ordering::Relaxed) {
            table["columnDefinitions"] = Value::Null;
        }
        Bytes::from(to_go_string(&table))
    }

    /// A list, in parts: where its objects are shown as they are, these are in memory already.
    pub(crate) fn list(&self, page: &Page) -> Vec<Bytes> {
        let mut metadata = match page.revision {
            None => json!({}),
            Some(revision) => json!({"resourceVersion": revision.to_string()}),
        };
        // The list of a custom resource is no Go struct, and says where it continues even if it does not.
        let always = self.resource.is_custom() && self.accepted.view == View::Whole;
        if always || !page.continue_token.is_empty() {
            metadata["continue"] = Value::from(page.continue_token.clone());
        }
        if let Some(remaining) = page.remaining {
            metadata["remainingItemCount"] = Value::from(remaining);
        }
        match self.accepted.view {
            View::Whole => self.whole_list(page, &metadata),
            View::Table => {
                let values: Vec<Value> = page
                    .items
                    .iter()
                    .map(|stored| conversion::from_storage(&self.resource, stored.value.clone()))
                    .collect();
                vec![to_go_string(&self.table(&values, Some(metadata))).into()]
            }
            View::MetadataOnly | View::MetadataOnlyList => {
                let items: Vec<Value> = page
                    .items
                    .iter()
                    .map(|stored| metadata_only(&stored.value, self.accepted.meta))
                    .collect();
                // The real server makes this list of those that are there.
                let items = if items.is_empty() {
                    Value::Null
                } else {
                    Value::from(items)
                };
                let list = json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": self.accepted.meta.api_version(),
                    "metadata": metadata, "items": items,
                });
                vec![to_go_string(&list).into()]
            }
        }
    }

    fn whole_list(&self, page: &Page, metadata: &Value) -> Vec<Bytes> {
        let resource = &self.resource;
        let head = format!(
            "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[",
            Value::from(resource.list_kind.clone()),
            Value::from(resource.api_version()),
        );
        let mut parts = Vec::with_capacity(2 * page.items.len() + 2);
        parts.push(Bytes::from(head));
        for (index, stored) in page.items.iter().enumerate() {
            match (
                conversion::is_plain(resource, stored.revision),
                resource.is_custom(),
            ) {
                (true, true) => {
                    parts.push(Bytes::from_static(if index > 0 { b"," } else { b"" }));
                    parts.push(stored.bytes());
                }
                // The items of a typed list do not repeat their kind.
                (true, false) => {
                    parts.push(Bytes::from_static(if index > 0 { b",{" } else { b"{" }));
                    parts.push(stored.bytes_after_kind());
                }
                (false, custom) => {
                    let mut value = conversion::from_storage(resource, stored.value.clone());
                    if let Some(map) = value.as_object_mut().filter(|_| !custom) {
                        map.remove("kind");
                        map.remove("apiVersion");
                    }
                    parts.push(Bytes::from_static(if index > 0 { b"," } else { b"" }));
                    parts.push(Bytes::from(to_go_string(&value)));
                }
            }
        }
        parts.push(Bytes::from_static(b"]}"));
        parts
    }
}

/// A field in the real server's store, which it writes as an annotation only where it shows the whole object.
const GENERATION_OF_TEMPLATE: &str = "deprecated.daemonset.template.generation";

/// The object's metadata as `PartialObjectMetadata`.
fn metadata_only(object: &Value, meta: MetaVersion) -> Value {
    let mut metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        && annotations.remove(GENERATION_OF_TEMPLATE).is_some()
        && annotations.is_empty()
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.remove("annotations");
    }
    json!({"kind": "PartialObjectMetadata", "apiVersion": meta.api_version(), "metadata": metadata})
}

/// The same, encoded without a copy.
fn metadata_bytes(object: &Value, meta: MetaVersion) -> Bytes {
    let none = json!({});
    let metadata = object.get("metadata").unwrap_or(&none);
    Bytes::from(go_escape(format!(
        "{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"{}\",\"metadata\":{metadata}}}",
        meta.api_version()
    )))
}

/// The object of a bookmark: of its Go type, with nothing set.
pub(crate) fn bookmark(resource: &Resource, metadata: Value) -> Value {
    let schema = resource.schema().filter(|_| !resource.is_custom());
    let mut object = schema.map_or_else(|| json!({}), |schema| schema.empty_object());
    object["kind"] = Value::from(resource.kind.as_str());
    object["apiVersion"] = Value::from(resource.api_version());
    object["metadata"] = metadata;
    if resource.group == "apps" {
        // What the server's own type always has.
        match resource.plural.as_str() {
            "deployments" | "replicasets" | "statefulsets" => object["spec"]["replicas"] = Value::from(0),
            "daemonsets" => object["metadata"]["annotations"][GENERATION_OF_TEMPLATE] = Value::from("0"),
            _ => {}
        }
    }
    object
}
