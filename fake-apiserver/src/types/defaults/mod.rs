//! Filling in what a client left out.
//!
//! - `structural`: custom resources, from the defaults in their schema.
//! - `table`: built-in types, from a readable table (`defaults.txt`) keyed by definition.

mod structural;

use super::schema::Schema;
use serde_json::Value;

impl Schema {
    /// Fills in the defaults. Doing it twice changes nothing.
    ///
    /// A custom resource gets those of its schema; nulls in fields that are not nullable give way to the default, or go. A built-in
    /// object, which must be canonical (see [`Schema::canonicalize`]), gets those that OpenAPI declares and those that the
    /// real server has in code; what depends on other objects (a service account, a cluster IP) is left to its strategy.
    pub fn default(&self, value: &mut Value) {
        if self.name.is_none() {
            structural::apply(self, value);
        }
    }
}
