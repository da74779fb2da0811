//! The index of the served resources.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use pod_rules::field_error::FieldError;
use shared_json::Value;
use store::{GroupResource, Revision};

use super::resource::Resource;
use super::{builtin, custom};

/// Group, version and plural name.
type ResourceId = (String, String, String);

/// All served resources: the built-in ones, and those of the CustomResourceDefinitions.
#[derive(Default)]
pub(crate) struct Registry {
    custom: RwLock<BTreeMap<ResourceId, Arc<Resource>>>,
}

impl Registry {
    /// The resource at a path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        let custom = if custom.is_empty() {
            None
        } else {
            let id = (group.to_owned(), version.to_owned(), plural.to_owned());
            custom.get(&id).cloned()
        };
        custom.or_else(|| builtin::find(group, version, plural).cloned())
    }

    /// Whether built-in resources are served in this group, in whatever version.
    pub(crate) fn is_builtin_group(&self, group: &str) -> bool {
        builtin::all().iter().any(|resource| resource.group == group)
    }

    /// Everything served, built-in resources first, in the order of their paths.
    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        builtin::all().iter().chain(custom.values()).cloned().collect()
    }

    /// Serves the resource of a CustomResourceDefinition, in place of its former version. `now` is the store's revision.
    ///
    /// # Errors
    /// All errors in its schemas; the former version stays served.
    pub(crate) fn define(&self, definition: &Value, now: Revision) -> Result<(), Vec<FieldError>> {
        let text = |pointer: &str| {
            definition
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let table = GroupResource::new(text("/spec/group"), text("/spec/names/plural"));
        let mut custom = self.custom.write().unwrap_or_else(PoisonError::into_inner);
        let before: Vec<Arc<Resource>> = custom
            .values()
            .filter(|resource| resource.table == table)
            .cloned()
            .collect();
        let resources = custom::resources(definition, &before, now)?;
        custom.retain(|_, resource| resource.table != table);
        // What has not got its names is not served.
        let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
        let is_refused = conditions.into_iter().flatten().any(|condition| {
            condition.get("type").is_some_and(|kind| kind == "Established")
                && condition.get("status").is_some_and(|status| status == "False")
        });
        for resource in resources.into_iter().filter(|_| !is_refused) {
            let id = (
                resource.group.clone(),
                resource.version.clone(),
                resource.plural.clone(),
            );
            custom.insert(id, resource);
        }
        Ok(())
    }

    /// Stops serving a custom resource.
    pub(crate) fn undefine(&self, table: &GroupResource) {
        self.custom
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|_, resource| resource.table != *table);
    }
}
