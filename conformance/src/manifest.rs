//! Manifests: YAML files of one or more objects.

use std::path::{Path, PathBuf};

use shared_json::Value;

use crate::error::Error;

/// One object of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The object.
    pub object: Value,
    /// The file it is from.
    pub path: PathBuf,
    /// The line on which it begins, from 1.
    pub line: usize,
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

/// Reads the trees of a file: the wanted forms of objects, or values that no object holds.
///
/// # Errors
/// If the file cannot be read, or is not YAML.
pub fn read_trees(path: &Path) -> Result<Vec<Document>, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    documents(path, &text)
}

/// Reads the objects of a text; `path` is where it is from. The objects of a list are objects of their own.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &str) -> Result<Vec<Document>, Error> {
    let mut out = Vec::new();
    for (index, document) in documents(path, text)?.into_iter().enumerate() {
        let missing = ["/apiVersion", "/kind"].into_iter().find(|pointer| {
            document
                .object
                .pointer(pointer)
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
        });
        if let Some(missing) = missing {
            return Err(Error::Parse {
                path: path.to_owned(),
                line: document.line,
                column: 0,
                why: format!(
                    "document {}: {} is missing",
                    index + 1,
                    missing.trim_start_matches('/')
                ),
                help: "every object of a manifest says its apiVersion and kind".to_owned(),
            });
        }
        match document.object.get("items").and_then(Value::as_array) {
            Some(items) if document.object["kind"] == "List" => {
                out.extend(items.iter().map(|object| Document {
                    object: object.clone(),
                    ..document.clone()
                }));
            }
            _ => out.push(document),
        }
    }
    Ok(out)
}

fn documents(path: &Path, text: &str) -> Result<Vec<Document>, Error> {
    let values: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| Error::yaml(path, &error))?;
    let lines = starts(text);
    let mut out = Vec::new();
    for (index, object) in values.into_iter().enumerate() {
        if object.is_null() {
            continue;
        }
        let line = lines.get(index).copied().unwrap_or_default();
        out.push(Document {
            object,
            path: path.to_owned(),
            line,
        });
    }
    Ok(out)
}

/// The lines on which the documents of a file begin.
fn starts(text: &str) -> Vec<usize> {
    let mut out = vec![1];
    out.extend(
        text.lines()
            .enumerate()
            .filter(|(at, line)| *at > 0 && line.starts_with("---"))
            .map(|(at, _)| at + 2),
    );
    out
}
