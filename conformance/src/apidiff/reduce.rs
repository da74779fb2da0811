//! The parts that are left out of every comparison.

use shared_json::Value;

use super::pointer;

/// Objects that controllers put into every namespace.
const EVERYWHERE: [&str; 2] = ["kube-root-ca.crt", "openshift-service-ca.crt"];

/// The compared parts of an answer.
pub(super) struct Reduction<'a> {
    pub(super) namespace: &'a str,
    pub(super) managed_fields: bool,
    /// Pointers that are left out.
    pub(super) ignore: Vec<String>,
}

impl Reduction<'_> {
    pub(super) fn apply(&self, value: &Value) -> Value {
        let mut value = value.clone();
        if self.managed_fields {
            drop_managers(&mut value);
        } else {
            pointer::remove(&mut value, "/**/managedFields");
        }
        self.drop_items(&mut value);
        for ignored in &self.ignore {
            pointer::remove(&mut value, ignored);
        }
        value
    }

    fn drop_items(&self, value: &mut Value) {
        let namespaces = pointer::text(value, "/kind") == "NamespaceList";
        for field in ["items", "rows"] {
            if let Some(Value::Array(items)) = value.get_mut(field) {
                items.retain(|item| !self.is_automatic(item, namespaces));
            }
        }
    }

    fn is_automatic(&self, item: &Value, namespaces: bool) -> bool {
        let of = |field: &str| {
            let direct = pointer::get(item, &format!("/metadata/{field}"));
            let value = direct.or_else(|| pointer::get(item, &format!("/object/metadata/{field}")));
            value.and_then(Value::as_str).unwrap_or_default()
        };
        let (name, namespace) = (of("name"), of("namespace"));
        if name == "default" && namespaces {
            return false;
        }
        (!namespace.is_empty() && EVERYWHERE.contains(&name))
            || (name == "default" && namespace == self.namespace)
    }
}

/// Whether a watch event is about an object that is put into every namespace.
pub(super) fn is_automatic_event(event: &Value) -> bool {
    let name = pointer::text(event, "/object/metadata/name");
    EVERYWHERE.contains(&name)
        || (name == "default" && pointer::text(event, "/object/kind") == "ServiceAccount")
}

/// Leaves out the fields that controllers own, and puts the rest in one order.
fn drop_managers(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::Array(entries)) = map.get_mut("managedFields") {
                let text = |entry: &Value, field: &str| pointer::text(entry, field).to_owned();
                entries.retain(|entry| {
                    let manager = text(entry, "/manager");
                    !manager.starts_with("kube-controller") && !manager.starts_with("kube-scheduler")
                });
                entries.sort_by_cached_key(|entry| {
                    (
                        text(entry, "/manager"),
                        text(entry, "/operation"),
                        text(entry, "/subresource"),
                    )
                });
            }
            map.values_mut().for_each(drop_managers);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_managers),
        _ => {}
    }
}
