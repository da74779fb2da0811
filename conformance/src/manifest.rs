//! Manifests: YAML files of one or more objects.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::Error;

/// One object of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The object.
    pub object: Value,
    /// The file it is from.
    pub path: PathBuf,
    /// Its place in the file, from 1.
    pub number: usize,
}

/// Reads the objects of a file.
///
/// # Errors
/// If the file cannot be read, is not YAML, or holds something that is not an object of Kubernetes.
pub fn read(path: &Path) -> Result<Vec<Document>, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(path, &text)
}

/// Reads the objects of a text; `path` is where it is from.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &str) -> Result<Vec<Document>, Error> {
    let values: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| Error::yaml(path, &error))?;
    let mut out = Vec::new();
    for (index, object) in values.into_iter().filter(|value| !value.is_null()).enumerate() {
        let missing = ["/apiVersion", "/kind"].into_iter().find(|pointer| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
        });
        if let Some(missing) = missing {
            return Err(Error::Parse {
                path: path.to_owned(),
                line: 0,
                column: 0,
                why: format!(
                    "document {}: {} is missing",
                    index + 1,
                    missing.trim_start_matches('/')
                ),
                help: "every object of a manifest says its apiVersion and kind".to_owned(),
            });
        }
        out.push(Document {
            object,
            path: path.to_owned(),
            number: index + 1,
        });
    }
    Ok(out)
}
