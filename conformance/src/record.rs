//! `cargo xtask record`: does the steps of a recording on a cluster, and writes the changes there as a recording.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use shared_json::{Map, Value, json};

use crate::backend::Backend;
use crate::error::Error;
use crate::history::{Change, ChangeKind, Id, text};
use crate::recording::Recording;
use crate::recording::environment::Environment;
use crate::recording::roles::Roles;
use crate::run::play::{act, ensure_namespace};
use crate::suite::{self, Simulate, SuiteOptions};

/// A cluster in which nothing has happened for so long has settled.
const QUIET: Duration = Duration::from_secs(5);
/// After so long a step ends although the cluster has not settled.
const STEP_MAX: Duration = Duration::from_secs(180);
/// How often the cluster is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The outcome of a step.
struct Recorded {
    began_ms: i64,
    settled_ms: Option<i64>,
}

/// Does the steps in `from` (its `steps.json` and manifests) on the cluster of `options`, and writes `steps.json`, the
/// manifests and `trace.jsonl` into `out`.
///
/// A step ends when the cluster has been quiet for five seconds, at the latest after three minutes. A refusal by the server
/// is part of the recording.
///
/// # Errors
/// If the steps cannot be read, the cluster cannot be reached, or `out` cannot be written or holds a recording already.
pub fn run(options: &SuiteOptions, from: &Path, out: &Path, simulate: Simulate<'_>) -> Result<usize, Error> {
    if out.join("trace.jsonl").exists() {
        return Err(Error::Write {
            path: out.join("trace.jsonl"),
            source: std::io::Error::from(std::io::ErrorKind::AlreadyExists),
        });
    }
    let recording = Recording::read_steps(from)?;
    let mut environment = Environment::of(&recording);
    environment.paces.clear();
    let (recorded, history, zero) = suite::block_on(options, options.seed, simulate, async || {
        let backend = suite::start(options, options.seed, environment).await?;
        let result = play(&recording, &backend).await;
        let (history, zero) = (backend.history(), backend.began());
        backend.clean_up().await;
        result.map(|recorded| (recorded, history, zero))
    })?;
    write(&recording, &recorded, &history, zero, out)?;
    Ok(history.len())
}

async fn play(recording: &Recording, backend: &Backend) -> Result<Vec<Recorded>, Error> {
    let kubectl = crate::action::Kubectl::new(backend.client(), &recording.namespace);
    ensure_namespace(&kubectl).await;
    let (clock, zero) = (backend.clock(), backend.began());
    let now_ms = || clock.now().as_millisecond() - zero.as_millisecond();
    let mut roles = Roles::default();
    let mut recorded = Vec::new();
    for (index, step) in recording.steps.iter().enumerate() {
        let began_ms = now_ms();
        for action in &step.actions {
            let mut translate = |value: &Value| {
                roles.translate(recording, recording.start_ms(index), &backend.history(), value)
            };
            // A refusal is what happened.
            let (_command, _refused) = act(&kubectl, recording, action, &mut translate).await?;
        }
        let settled = quiet(backend).await;
        recorded.push(Recorded {
            began_ms,
            settled_ms: settled.then(now_ms),
        });
    }
    Ok(recorded)
}

/// Waits until nothing has happened for a while; false if that does not come.
async fn quiet(backend: &Backend) -> bool {
    let deadline = tokio::time::Instant::now() + STEP_MAX;
    let (mut seen, mut since) = (backend.history_len(), tokio::time::Instant::now());
    while since.elapsed() < QUIET {
        if tokio::time::Instant::now() > deadline {
            return false;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
        let length = backend.history_len();
        if length != seen {
            (seen, since) = (length, tokio::time::Instant::now());
        }
    }
    true
}

fn write(
    recording: &Recording,
    recorded: &[Recorded],
    history: &[Change],
    zero: Timestamp,
    out: &Path,
) -> Result<(), Error> {
    let save = |path: PathBuf, text: &[u8]| {
        std::fs::create_dir_all(out)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|source| Error::Write { path, source })
    };
    let seconds = |ms: i64| json!(ms as f64 / 1000.0);
    let mut steps = Vec::new();
    for (step, times) in recording.steps.iter().zip(recorded) {
        let mut written = step.written.clone();
        written["t"] = seconds(times.began_ms);
        written["settled_t"] = times.settled_ms.map_or(Value::Null, seconds);
        steps.push(written);
        for file in step.actions.iter().filter_map(|action| action.file.as_ref()) {
            let path = recording.folder.join(file);
            let bytes = std::fs::read(&path).map_err(|source| Error::Read { path, source })?;
            save(out.join(file), &bytes)?;
        }
    }
    save(
        out.join("steps.json"),
        format!("{:#}\n", Value::from(steps)).as_bytes(),
    )?;
    if !recording.gates.is_empty() {
        save(out.join("gates.txt"), recording.gates.as_bytes())?;
    }
    save(
        out.join("trace.jsonl"),
        trace(recording, history, zero).as_bytes(),
    )
}

/// The changes of the recording's namespace and of objects without one, in order: an object whole when it appears, and
/// a patch when it changes.
fn trace(recording: &Recording, history: &[Change], zero: Timestamp) -> String {
    let mut known: BTreeMap<Id, Value> = BTreeMap::new();
    let mut out = String::new();
    for change in history {
        let namespace = text(&change.object, "/metadata/namespace");
        if !namespace.is_empty() && namespace != recording.namespace {
            continue;
        }
        let object = plain(&change.object);
        let before = known.get(&change.id());
        let mut line =
            json!({"name": change.name(), "res": change.resource, "t": change.at_ms as f64 / 1000.0});
        line["type"] = json!(match change.kind {
            ChangeKind::Added => "ADDED",
            ChangeKind::Modified => "MODIFIED",
            ChangeKind::Deleted => "DELETED",
        });
        if let Ok(wall) = zero.checked_add(SignedDuration::from_millis(change.at_ms)) {
            line["wall"] = json!(wall.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
        }
        match before {
            Some(before) => line["patch"] = difference(before, &object),
            None => line["object"] = object.clone(),
        }
        let _infallible = writeln!(out, "{line}");
        if change.kind == ChangeKind::Deleted {
            known.remove(&change.id());
        } else {
            known.insert(change.id(), object);
        }
    }
    out
}

/// The object without `managedFields`.
fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    object
}

/// The JSON merge patch that makes `after` of `before`.
fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return after.clone();
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) => drop(patch.insert(key.clone(), difference(before, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"a": 1}), json!({"a": 1}), json!({}))]
    #[case(json!({"a": 1, "b": {"c": 1, "d": 2}}), json!({"b": {"c": 1, "d": 3}}), json!({"a": null, "b": {"d": 3}}))]
    #[case(json!({"a": [1, 2]}), json!({"a": [2]}), json!({"a": [2]}))]
    fn a_patch_says_what_is_different(#[case] before: Value, #[case] after: Value, #[case] expected: Value) {
        let patch = difference(&before, &after);
        assert_eq!(patch, expected);
        let mut patched = before;
        patched.merge(&patch);
        assert_eq!(patched, after);
    }
}
