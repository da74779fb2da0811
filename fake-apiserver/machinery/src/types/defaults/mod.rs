//! Defaulting: filling in fields that a client left out.
//!
//! - `structural`: custom resources, from the defaults in their schema.
//! - `builtin`: built-in types, from a readable table (`table`, `defaults.txt`) keyed by definition, and where a default depends on
//!   other fields from the small functions of each group: `pod`, `core`, `apps`, `batch`, `autoscaling`, `others`.

mod apps;
mod autoscaling;
mod batch;
mod builtin;
mod core;
mod named_groups;
mod pod;
mod structural;
mod table;

use super::schema::Schema;
use shared_json::Value;
pub(in crate::types) use table::Row;

impl Schema {
    /// Fills in the defaults. Doing it twice changes nothing.
    ///
    /// A custom resource gets those of its schema; nulls in fields that are not nullable give way to the default, or go. A built-in
    /// object, which must be canonical (see [`Schema::canonicalize`]), gets those that OpenAPI declares and those that the
    /// real server has in code; defaults that depend on other objects (a service account, a cluster IP) are left to its strategy.
    ///
    /// ```
    /// use shared_json::json;
    /// let service = machinery::types::builtin(("", "v1", "Service")).unwrap();
    /// let mut object = json!({"spec": {"ports": [{"port": 80}]}});
    /// service.default(&mut object);
    /// assert_eq!(object["spec"]["ports"], json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]));
    /// ```
    pub fn default(&self, value: &mut Value) {
        self.default_changed(value, None);
    }

    /// The same. Parts of a built-in object that are the same memory as in `old`, which has its defaults, are passed over.
    pub fn default_changed(&self, value: &mut Value, old: Option<&Value>) {
        match self.name {
            Some(_) if builtin::needs(self, value, old) => builtin::apply(self, value, old),
            Some(_) => {}
            None => structural::apply(self, value, true),
        }
    }

    /// The same, but nulls in fields that are not nullable stay if they have no default.
    pub fn default_only(&self, value: &mut Value) {
        match self.name {
            Some(_) => builtin::apply(self, value, None),
            None => structural::apply(self, value, false),
        }
    }
}
