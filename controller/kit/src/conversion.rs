//! Objects between the versions of their kind.

use serde_json::Value;

/// The versions of a kind and the conversion between them.
pub struct Conversion {
    /// The API group.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The versions.
    pub versions: &'static [&'static str],
    /// Brings an object into the version of that name, all but its `apiVersion`; a text says why it has no such form.
    pub convert: fn(&mut Value, &str) -> Result<(), String>,
}

impl Conversion {
    /// The object in another API version, such as `apps.kruise.io/v1beta1`.
    ///
    /// # Errors
    /// A text if the kind does not have one of the versions, or the object no form in it.
    pub fn to(&self, mut object: Value, wanted: &str) -> Result<Value, String> {
        let from = object
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        for version in [from, wanted] {
            let known = version
                .split_once('/')
                .is_some_and(|(group, version)| group == self.group && self.versions.contains(&version));
            if !known {
                return Err(format!("{} has no version {version}", self.kind));
            }
        }
        if from != wanted {
            let version = wanted.rsplit('/').next().unwrap_or_default();
            (self.convert)(&mut object, version)?;
            if let Some(object) = object.as_object_mut() {
                object.insert("apiVersion".to_owned(), Value::from(wanted));
            }
        }
        Ok(object)
    }
}
