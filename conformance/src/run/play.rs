//! Plays a recording: does its actions at the same times, and compares the results.

use std::time::Duration;

use shared_json::Value;

use super::compare;
use super::outcome::{ScenarioOutcome, Status, StepOutcome};
use crate::action::{ActionError, Kubectl, Scaling};
use crate::backend::Backend;
use crate::error::Error;
use crate::history::{Slice, cut};
use crate::manifest;
use crate::recording::divergences::{Divergence, forgives};
use crate::recording::load::Action;
use crate::recording::roles::Roles;
use crate::recording::{Recording, Step, effect, pairing};
use crate::render::{self, Time};

/// A step that was cut may end after this part of its recorded time …
const EARLIEST: f64 = 0.3;
/// … and as much later than then as it had taken, within these limits.
const LATER_MIN: Duration = Duration::from_secs(2);
const LATER_MAX: Duration = Duration::from_secs(4);
/// For so long a run that has got as far may take to look the same.
const REACHED_MAX: Duration = Duration::from_millis(300);
/// How often the run is looked at meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A step of a recording.
#[must_use]
pub(super) fn recorded(recording: &Recording, index: usize) -> Slice<'_> {
    between(recording, recording.start_ms(index), recording.end_ms(index))
}

/// How time goes on a backend.
pub(super) fn time_of(backend: &Backend) -> Time {
    match backend.is_virtual() {
        true => Time::Virtual,
        false => Time::Real,
    }
}

/// The changes of a recording in a span of its time.
fn between(recording: &Recording, start_ms: i64, end_ms: i64) -> Slice<'_> {
    let start = cut(&recording.history, start_ms);
    let end = cut(&recording.history, end_ms).max(start);
    Slice {
        before: &recording.history[..start],
        during: &recording.history[start..end],
    }
}

/// Plays a recording on a backend.
///
/// # Errors
/// If a manifest cannot be read. A refusal by the server is part of the outcome: the recorded server may have refused it, too.
pub async fn play(
    recording: &Recording,
    backend: &Backend,
    known: &[Divergence],
) -> Result<ScenarioOutcome, Error> {
    let kubectl = Kubectl::new(backend.client(), &recording.namespace);
    ensure_namespace(&kubectl).await;
    for namespace in recording.namespaces().filter(|name| *name != recording.namespace) {
        ensure_namespace(&Kubectl::new(backend.client(), &namespace)).await;
    }
    let clock = backend.clock();
    if let Some(due) = recording.began.filter(|_| backend.is_virtual()) {
        // Times in objects are whole seconds: the first step comes at the recorded part of a second.
        let early = Duration::try_from(due.duration_since(clock.now())).unwrap_or_default();
        tokio::time::sleep(early).await;
    }
    let began = clock.now();
    let mut played = Vec::new();
    let mut roles = Roles::default();
    for (index, step) in recording.steps.iter().enumerate() {
        let from = backend.history_len();
        let mut commands = Vec::new();
        let began_ms = recording.start_ms(index);
        backend.begin_step(began_ms);
        let mut acted_ms = began_ms;
        if backend.is_virtual() && index > 0 && recording.steps[index - 1].settled_t.is_none() {
            acted_ms = effect::at_ms(recording, index);
            let moment = Moment {
                recording,
                span_ms: (began_ms, acted_ms),
                from,
                roles: &roles,
            };
            moment.wait(backend).await;
        }
        for action in &step.actions {
            let mut translate = |value: &Value| {
                let run = backend.history();
                roles.translate(recording, began_ms, &run, value)
            };
            let (command, result) = act(&kubectl, recording, action, &mut translate).await?;
            commands.push(command);
            if let Err(error) = result {
                // What was refused then is refused now: the rendering tells whether the outcome is the same.
                commands.push(format!("# {error}"));
            }
        }
        let end_ms = recording.end_ms(index);
        if step.settled_t.is_none() && backend.is_virtual() {
            let moment = Moment {
                recording,
                span_ms: (began_ms, end_ms),
                from,
                roles: &roles,
            };
            moment.wait(backend).await;
        } else {
            let left_ms = u64::try_from(end_ms - acted_ms).unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(left_ms)).await;
            backend.settle().await;
        }
        played.push((step, commands, from..backend.history_len()));
    }
    let history = backend.history();
    let history = pairing::rename(&history, &pairing::pair(recording, &history, &roles));
    let steps: Vec<StepOutcome> = played
        .into_iter()
        .enumerate()
        .map(|(index, (step, commands, range))| {
            let slice = Slice {
                before: &history[..range.start],
                during: &history[range],
            };
            judge(recording, step, index, commands, slice, known, time_of(backend))
        })
        .collect();
    let failed = steps.iter().any(|step| step.status == Status::Failed);
    let elapsed = clock.now().duration_since(began);
    Ok(ScenarioOutcome {
        name: recording.name.clone(),
        status: if failed { Status::Failed } else { Status::Passed },
        reason: String::new(),
        steps,
        wall: Duration::ZERO,
        virtual_time: Duration::try_from(elapsed).ok(),
    })
}

/// A moment at which the recorder did something while the cluster was still busy.
///
/// How far a cluster gets in a second depends on its machine. The recorder acted when the cluster had got so far, so the
/// run goes on when it has, too, or when it should have long since.
struct Moment<'a> {
    recording: &'a Recording,
    /// From when on the recording counts, and the moment, in its time.
    span_ms: (i64, i64),
    /// From where on the run counts.
    from: usize,
    roles: &'a Roles,
}

impl Moment<'_> {
    async fn wait(&self, backend: &Backend) {
        let (start_ms, end_ms) = self.span_ms;
        let length = Duration::from_millis(u64::try_from(end_ms - start_ms).unwrap_or_default());
        let recorded = between(self.recording, start_ms, end_ms);
        let earliest = length.mul_f64(EARLIEST);
        let mut latest = tokio::time::Instant::now() + length + length.clamp(LATER_MIN, LATER_MAX);
        tokio::time::sleep(earliest).await;
        let mut seen = usize::MAX;
        let mut reached = false;
        while tokio::time::Instant::now() < latest {
            backend.settle().await;
            let history = backend.history();
            if history.len() != seen {
                seen = history.len();
                let pairs = pairing::pair(self.recording, &history, self.roles);
                let history = pairing::rename(&history, &pairs);
                let run = Slice {
                    before: &history[..self.from],
                    during: &history[self.from..],
                };
                let (expected, text) = render::both(recorded, run, time_of(backend));
                if text == expected {
                    return;
                }
                if !reached && render::has_all_events(&text, &expected) {
                    // It may still look alike in a moment, but it has got that far.
                    reached = true;
                    latest = latest.min(tokio::time::Instant::now() + REACHED_MAX);
                }
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

fn judge(
    recording: &Recording,
    step: &Step,
    index: usize,
    commands: Vec<String>,
    slice: Slice<'_>,
    known: &[Divergence],
    time: Time,
) -> StepOutcome {
    let (expected, text) = render::both(recorded(recording, index), slice, time);
    let source = format!("recording {}", recording.name);
    let lines = compare::lines(&expected, &text);
    let mut forgiven = Vec::new();
    let mut status = if lines.is_empty() {
        Status::Passed
    } else {
        Status::Failed
    };
    if status == Status::Failed
        && let Some(divergence) = forgives(known, &recording.name, &step.name, &lines)
    {
        status = Status::Passed;
        forgiven.push(divergence.why.clone());
    }
    let diff = if status == Status::Failed {
        compare::unified(&expected, &text, &source)
    } else {
        String::new()
    };
    StepOutcome {
        name: step.name.clone(),
        commands,
        text,
        status,
        diff,
        judged_by: vec![source],
        forgiven,
    }
}

pub(crate) async fn ensure_namespace(kubectl: &Kubectl) {
    if kubectl.namespace() == "default" {
        return;
    }
    let namespace = shared_json::json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kubectl.namespace()},
    });
    // It may be there already; if it cannot be made, the first action says so.
    let _created = kubectl.create(&namespace).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// Does one action with the run's names; returns it as a command line, and the server's answer.
pub(crate) async fn act(
    kubectl: &Kubectl,
    recording: &Recording,
    action: &Action,
    translate: &mut dyn FnMut(&Value) -> Value,
) -> Result<(String, Result<(), ActionError>), Error> {
    let named: Vec<String> = match translate(&Value::from(action.names.clone())) {
        Value::Array(names) => names
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        _ => action.names.clone(),
    };
    let body = action.body.as_ref().map(&mut *translate);
    let path = action
        .path
        .as_deref()
        .map(|path| text_of(&translate(&Value::from(path))));
    let flag = |name: &str| action.flags.get(name).map(String::as_str);
    let flags: String = action
        .flags
        .iter()
        .map(|(key, value)| format!(" --{key}={value}"))
        .collect();
    let resource = action.resource.as_deref().unwrap_or_default();
    let names = named.join(" ");
    let kubectl = match action.namespace.as_deref() {
        Some(namespace) => &Kubectl::new(kubectl.client().clone(), namespace),
        None => kubectl,
    };
    if let Some(file) = &action.file {
        let path = recording.folder.join(file);
        let documents = manifest::read(&path)?;
        let mut result = Ok(());
        for document in documents {
            result = if action.verb == "create" {
                kubectl.create(&translate(&document.object)).await
            } else {
                kubectl.apply(&translate(&document.object)).await.map(|_| ())
            };
            if result.is_err() {
                break;
            }
        }
        return Ok((format!("kubectl {} -f {file}", action.verb), result));
    }
    let line = match action.verb.as_str() {
        "request" => format!(
            "kubectl create --raw {} # {}",
            path.as_deref().unwrap_or_default(),
            action.method.as_deref().unwrap_or_default()
        ),
        "patch" => format!(
            "kubectl patch {resource} {names}{flags} -p '{}'",
            body.as_ref().map(Value::to_string).unwrap_or_default()
        ),
        verb => format!(
            "kubectl {verb} {resource} {names} {}{flags}",
            action.changes.join(" ")
        )
        .replace("  ", " "),
    };
    let act = async {
        if action.verb == "request" {
            let (method, path) = (
                action.method.as_deref().unwrap_or("GET"),
                path.as_deref().unwrap_or("/"),
            );
            return kubectl.request(method, path, body.as_ref()).await.map(|_| ());
        }
        if action.verb == "create" {
            for object in created(resource, &named, flag)? {
                kubectl.create(&object).await?;
            }
            return Ok(());
        }
        let api = kubectl.api_named(resource, action.namespace.as_deref()).await?;
        let all = if named.is_empty() && (flag("all") == Some("true") || flag("l").is_some()) {
            kubectl.names(&api, flag("l").unwrap_or_default()).await?
        } else {
            named.clone()
        };
        for name in &all {
            match action.verb.as_str() {
                "patch" => {
                    let body = body.clone().unwrap_or_default();
                    let kind = flag("type").unwrap_or("strategic");
                    kubectl
                        .patch(&api, name, kind, flag("subresource"), &body)
                        .await?;
                }
                "label" => kubectl.mark(&api, name, "labels", &action.changes).await?,
                "annotate" => kubectl.mark(&api, name, "annotations", &action.changes).await?,
                "delete" => {
                    let grace = flag("grace-period").and_then(|text| text.parse().ok());
                    kubectl.delete(&api, name, flag("cascade"), grace).await?;
                }
                "scale" => {
                    let scaling = Scaling::of_flags(&action.flags)?;
                    kubectl.scale(&api, name, &scaling).await?;
                }
                other => {
                    return Err(ActionError::Object(format!(
                        "the verb \"{other}\" is not played yet"
                    )));
                }
            }
        }
        Ok(())
    };
    Ok((line, act.await))
}

/// The text of a value; empty for another value.
fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The objects of `kubectl create RESOURCE NAME …`.
fn created<'a>(
    resource: &str,
    names: &[String],
    flag: impl Fn(&str) -> Option<&'a str>,
) -> Result<Vec<Value>, ActionError> {
    match (resource, names) {
        ("service", [kind, name]) if kind == "clusterip" => Ok(vec![service(name, flag("tcp"))?]),
        _ => {
            let of_name = |name: &String| config_map(resource, name, flag("from-literal"));
            names.iter().map(of_name).collect()
        }
    }
}

/// The object of `kubectl create service clusterip NAME --tcp=PORT`.
fn service(name: &str, port: Option<&str>) -> Result<Value, ActionError> {
    let Some(number) = port.and_then(|port| port.parse::<u16>().ok()) else {
        let told = format!("\"kubectl create service clusterip {name}\" is played with one port only");
        return Err(ActionError::Object(told));
    };
    let port = shared_json::json!({"name": number.to_string(), "port": number, "targetPort": number, "protocol": "TCP"});
    let labels = shared_json::json!({"app": name});
    Ok(shared_json::json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": labels},
        "spec": {"type": "ClusterIP", "ports": [port], "selector": labels},
    }))
}

/// The object of `kubectl create configmap NAME --from-literal=KEY=VALUE`.
fn config_map(resource: &str, name: &str, literal: Option<&str>) -> Result<Value, ActionError> {
    let data = literal.and_then(|literal| literal.split_once('='));
    match (resource, data) {
        ("configmap", Some((key, value))) => Ok(shared_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: value},
        })),
        _ => Err(ActionError::Object(format!(
            "\"kubectl create {resource} {name}\" is not played yet"
        ))),
    }
}
