//! Reads a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use shared_json::Value;

use crate::error::Error;
use crate::files;
use crate::history::{Change, ChangeKind, Id, cut, text};
use crate::manifest;

/// One recording.
#[derive(Debug, Clone)]
pub struct Recording {
    /// `<version>/<scenario>`, such as `1.0.1/s1-cs-demo`.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The steps.
    pub steps: Vec<Step>,
    /// The recorded changes.
    pub history: Vec<Change>,
    /// When the first step began, by the clock on the wall.
    pub began: Option<Timestamp>,
    /// The namespace in which it happened.
    pub namespace: String,
    /// The feature gates of OpenKruise's manager, where they were not its defaults.
    pub gates: String,
}

/// The actions of one step.
#[derive(Debug, Clone, Deserialize)]
pub struct Step {
    /// Its name, such as `02-scale-out`.
    pub name: String,
    /// When it began, in seconds on the trace's clock.
    #[serde(default)]
    pub t: f64,
    /// When it had settled, if it did.
    pub settled_t: Option<f64>,
    /// The actions.
    #[serde(rename = "do")]
    pub actions: Vec<Action>,
    /// The step as it is written.
    #[serde(skip)]
    pub written: Value,
}

/// One action, as kubectl would take it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// `apply`, `create`, `patch`, `label`, `annotate`, `delete`, `scale`, `request`.
    pub verb: String,
    /// The file to apply, in the recording's folder.
    pub file: Option<String>,
    /// The namespace, where it is not the manifest's.
    pub namespace: Option<String>,
    /// The resource, in any of the forms that kubectl takes.
    pub resource: Option<String>,
    /// The objects' names.
    #[serde(default)]
    pub names: Vec<String>,
    /// A patch, or the body of a request.
    pub body: Option<Value>,
    /// `key=value` or `key-`, of labels and annotations.
    #[serde(default)]
    pub changes: Vec<String>,
    /// kubectl's options.
    #[serde(default)]
    pub flags: BTreeMap<String, String>,
    /// The method of a plain request.
    pub method: Option<String>,
    /// The path of a plain request.
    pub path: Option<String>,
}

#[derive(Deserialize)]
struct TraceLine {
    t: f64,
    wall: Option<String>,
    res: String,
    #[serde(rename = "type")]
    kind: String,
    name: String,
    /// The namespace of an object that changes, where several have objects of its kind and name.
    namespace: Option<String>,
    object: Option<Value>,
    patch: Option<Value>,
}

fn ms(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

impl Recording {
    /// Reads the recording in `folder`; its name is relative to `root`.
    ///
    /// # Errors
    /// If a file is missing or invalid.
    pub fn read(root: &Path, folder: &Path) -> Result<Self, Error> {
        Self::with_trace(root, folder, read_trace(&folder.join("trace.jsonl"))?)
    }

    fn with_trace(
        root: &Path,
        folder: &Path,
        (history, zero): (Vec<Change>, Option<Timestamp>),
    ) -> Result<Self, Error> {
        let steps = read_steps(&folder.join("steps.json"))?;
        let began = zero
            .zip(steps.first())
            .and_then(|(zero, first)| zero.checked_add(SignedDuration::from_millis(ms(first.t))).ok());
        let mut namespaces = history
            .iter()
            .map(|change| text(&change.object, "/metadata/namespace"))
            .filter(|namespace| !namespace.is_empty());
        let namespace = match namespaces.next() {
            Some(namespace) => namespace,
            None => namespace_of(&steps, folder)?,
        };
        let relative = folder.strip_prefix(root).unwrap_or(folder);
        let mut name = relative.to_string_lossy().replace('\\', "/");
        if name.is_empty() {
            name = folder
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
        }
        Ok(Self {
            name,
            folder: folder.to_owned(),
            steps,
            history,
            began,
            namespace,
            // Without the file the manager ran with its defaults.
            gates: std::fs::read_to_string(folder.join("gates.txt")).unwrap_or_default(),
        })
    }

    /// Reads a folder that may have no trace yet.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_steps(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("trace.jsonl");
        let trace = if path.exists() {
            read_trace(&path)?
        } else {
            (Vec::new(), None)
        };
        Self::with_trace(folder, folder, trace)
    }

    /// The namespaces that were there before the first step, or had objects then.
    pub fn namespaces(&self) -> impl Iterator<Item = String> + '_ {
        let before = &self.history[..cut(&self.history, self.start_ms(0))];
        let names = before.iter().map(|change| match change.resource.as_str() {
            "namespaces" => change.name(),
            _ => text(&change.object, "/metadata/namespace"),
        });
        let names: BTreeSet<String> = names.filter(|name| !name.is_empty()).collect();
        names.into_iter()
    }

    /// When step `index` ends: when the next begins; for the last, when the recorder began to clean up, or stopped.
    #[must_use]
    pub fn end_ms(&self, index: usize) -> i64 {
        if let Some(next) = self.steps.get(index + 1) {
            return ms(next.t);
        }
        let Some(step) = self.steps.get(index) else {
            return i64::MAX;
        };
        let deletes = step.actions.iter().any(|action| action.verb == "delete");
        let start = ms(step.t);
        let teardown = self.history[cut(&self.history, start)..].iter().find(|change| {
            !deletes
                && !matches!(
                    change.resource.as_str(),
                    "pods" | "events" | "controllerrevisions"
                )
                && (change.kind == ChangeKind::Deleted
                    || !text(&change.object, "/metadata/deletionTimestamp").is_empty())
        });
        let last = self.history.last().map_or(start, |change| change.at_ms) + 1;
        teardown.map_or(last.max(step.settled_t.map_or(0, ms)), |change| change.at_ms)
    }

    /// When step `index` begins.
    #[must_use]
    pub fn start_ms(&self, index: usize) -> i64 {
        self.steps.get(index).map_or(0, |step| ms(step.t))
    }
}

fn read_steps(path: &Path) -> Result<Vec<Step>, Error> {
    let text = read(path)?;
    let mut steps: Vec<Step> = shared_json::from_str(&text).map_err(|error| Error::json(path, &error))?;
    let written: Vec<Value> = shared_json::from_str(&text).map_err(|error| Error::json(path, &error))?;
    for (step, written) in steps.iter_mut().zip(written) {
        step.written = written;
    }
    Ok(steps)
}

/// The namespace that the steps are about.
fn namespace_of(steps: &[Step], folder: &Path) -> Result<String, Error> {
    for action in steps.iter().flat_map(|step| &step.actions) {
        if let Some(namespace) = &action.namespace {
            return Ok(namespace.clone());
        }
        let Some(file) = &action.file else { continue };
        for document in manifest::read(&folder.join(file))? {
            let namespace = text(&document.object, "/metadata/namespace");
            if !namespace.is_empty() {
                return Ok(namespace);
            }
        }
    }
    Ok("default".to_owned())
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })
}

/// The trace, and when its clock began.
fn read_trace(path: &Path) -> Result<(Vec<Change>, Option<Timestamp>), Error> {
    let mut objects: BTreeMap<Id, Arc<Value>> = BTreeMap::new();
    let mut by_name: BTreeMap<(String, String), Id> = BTreeMap::new();
    let mut out = Vec::new();
    let mut zero: Option<Timestamp> = None;
    for (index, line) in read(path)?.lines().enumerate() {
        let line: TraceLine =
            shared_json::from_str(line).map_err(|error| Error::json_line(path, index + 1, &error))?;
        if let (None, Some(wall)) = (zero, &line.wall) {
            let wall: Option<Timestamp> = wall.parse().ok();
            zero = wall.and_then(|wall| wall.checked_sub(SignedDuration::from_millis(ms(line.t))).ok());
        }
        let key = (line.res.clone(), line.name.clone());
        let named = line
            .namespace
            .map(|namespace| (line.res.clone(), namespace, line.name.clone()));
        let mut object = match line.object {
            Some(object) => object,
            None => named
                .as_ref()
                .or_else(|| by_name.get(&key))
                .and_then(|id| objects.get(id))
                .map(|object| Value::clone(object))
                .unwrap_or_default(),
        };
        if let Some(patch) = &line.patch {
            empty(&mut object, patch);
            object.merge(patch);
        }
        let kind = match line.kind.as_str() {
            "ADDED" => ChangeKind::Added,
            "DELETED" => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        };
        let change = Change {
            at_ms: ms(line.t),
            resource: line.res,
            kind,
            object: Arc::new(object),
        };
        let id = change.id();
        by_name.insert(key, id.clone());
        objects.insert(id, Arc::clone(&change.object));
        out.push(change);
    }
    Ok((out, zero))
}

/// The folders below `root` that hold a recording, by name.
///
/// # Errors
/// If a folder cannot be read.
pub fn find(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let steps = files::named(root, "steps.json")?;
    let folders = steps.iter().filter_map(|file| file.parent());
    Ok(folders
        .filter(|folder| folder.join("trace.jsonl").is_file())
        .map(Path::to_owned)
        .collect())
}

/// Empties the objects that a recorded patch has as empty: the recorder writes a difference, and one that has none is not written.
fn empty(object: &mut Value, patch: &Value) {
    let (Some(fields), Some(changes)) = (object.as_object_mut(), patch.as_object()) else {
        return;
    };
    for (name, change) in changes {
        let Some(field) = fields.get_mut(name.as_str()) else {
            continue;
        };
        match change.as_object() {
            Some(inner) if inner.is_empty() => *field = change.clone(),
            Some(_) => empty(field, change),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::becomes_empty(json!({"spec": {"a": [1]}, "status": {"b": 1}}), json!({"spec": {}}), json!({"spec": {}, "status": {"b": 1}}))]
    #[case::below(json!({"spec": {"a": {"b": 1}, "c": 2}}), json!({"spec": {"a": {}}}), json!({"spec": {"a": {}, "c": 2}}))]
    #[case::appears(json!({}), json!({"status": {}}), json!({"status": {}}))]
    #[case::changes(json!({"spec": {"a": 1, "b": 2}}), json!({"spec": {"a": 3}}), json!({"spec": {"a": 3, "b": 2}}))]
    fn recorded_patches(#[case] before: Value, #[case] patch: Value, #[case] after: Value) {
        let mut object = before;
        empty(&mut object, &patch);
        object.merge(&patch);
        assert_eq!(object, after);
    }
}
