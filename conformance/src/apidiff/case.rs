//! The form of a case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use shared_json::{Map, Value};

use super::encoded::{Base64, Expression};
use super::ordered::Ordered;
use super::view::View;
use crate::error::Error;
use crate::files;

/// A sequence of requests and the compared parts of their answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// Its name, unique within the group.
    pub name: String,
    /// The subject.
    pub group: String,
    /// Features that the server must have (`kcm`, `webhook`, `authn`), or with `!` must not have.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Whether the case makes no namespace of its own.
    #[serde(default)]
    pub no_namespace: bool,
    /// Labels of its namespace.
    #[serde(default)]
    pub ns_labels: Option<Value>,
    /// Annotations of its namespace.
    #[serde(default)]
    pub ns_annotations: Option<Value>,
    /// Whether `managedFields` are compared.
    #[serde(default)]
    pub managed_fields: bool,
    /// Pointers that are left out of every comparison.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// Regular expressions and their replacements in every text.
    #[serde(default)]
    pub patterns: Vec<(Expression, String)>,
    /// The answers of the case's webhooks, by path.
    #[serde(default)]
    pub webhooks: BTreeMap<String, Value>,
    /// Steps of which only the status is compared.
    #[serde(default)]
    pub setup: Vec<Step>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Requests at the end; nothing of them is compared.
    #[serde(default)]
    pub cleanup: Vec<Step>,
    /// The answers of a real server, reduced, one for each step of the setup and each other step.
    #[serde(default)]
    pub answers: Option<Vec<Value>>,
    /// The file's text, without the answers and the bracket that closes it.
    #[serde(skip)]
    text: String,
}

/// The beginning of a case's answers in its file.
const ANSWERS: &str = ",\n\"answers\":[";

/// One step: a request, or another action, which exactly one field names (`sleep`, `watch`, `collect`, …).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Step {
    pub(super) method: Option<String>,
    pub(super) path: String,
    /// A text, or a map of parameters.
    pub(super) query: Option<Value>,
    /// Headers beyond the usual; null takes one of these away.
    pub(super) headers: Map,
    pub(super) body: Option<Ordered>,
    pub(super) raw: Option<String>,
    pub(super) raw_b64: Option<Base64>,
    /// A prefix, a unit, how often the unit comes, a suffix.
    pub(super) raw_repeat: Option<(String, String, usize, String)>,
    /// Values put into the body, by pointer.
    pub(super) set: Map,
    pub(super) unset: Vec<String>,
    /// Variables and the pointers that they are read from.
    pub(super) capture: BTreeMap<String, String>,
    pub(super) compare: Option<Vec<Part>>,
    /// More headers that are compared.
    pub(super) hdr: Vec<String>,
    pub(super) view: Option<Views>,
    pub(super) ignore: Vec<String>,
    pub(super) managed_fields: Option<bool>,
    /// The user: `none`, or a token. The target's own identity without it.
    #[serde(rename = "as")]
    pub(super) identity: Option<String>,
    /// The request is repeated until this holds.
    pub(super) until: Option<Until>,
    /// In seconds.
    pub(super) timeout: Option<f64>,
    /// In seconds.
    pub(super) every: Option<f64>,
    /// In seconds.
    pub(super) sleep: Option<f64>,
    /// Opens a watch under this name.
    pub(super) watch: Option<String>,
    /// Reads events of the watch of this name.
    pub(super) collect: Option<String>,
    pub(super) count: usize,
    pub(super) close: bool,
    /// Whether the result says that the watch was closed.
    pub(super) end: bool,
    /// How long after the last wanted event more may come, in seconds.
    pub(super) quiet: Option<f64>,
    pub(super) bookmarks: bool,
    pub(super) skip_types: Vec<String>,
    pub(super) dedupe: bool,
    pub(super) unordered: bool,
    /// Gives the requests that the webhook at this path got.
    pub(super) webhook_requests: Option<String>,
    /// Requests made at once; the statuses are compared, in order of size.
    pub(super) parallel: Option<Vec<Step>>,
}

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    Status,
    Headers,
    Body,
}

/// One view, or several in turn.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Views {
    Many(Vec<View>),
    One(View),
}

impl Views {
    pub(super) fn all(&self) -> &[View] {
        match self {
            Self::Many(views) => views,
            Self::One(view) => std::slice::from_ref(view),
        }
    }
}

/// The condition that a repeated request waits for; everything that is given must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Until {
    pub(super) status: Option<u16>,
    pub(super) not_status: Option<u16>,
    pub(super) ptr: Option<String>,
    pub(super) equals: Option<Value>,
    pub(super) matches: Option<Expression>,
    pub(super) absent: bool,
    pub(super) text: Option<Expression>,
}

impl Case {
    /// `group/name`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// Reads one case.
    ///
    /// # Errors
    /// If the file cannot be read or is no case.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut case: Self = shared_json::from_str(&text).map_err(|error| Error::Parse {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
            why: error.to_string(),
            help: "fixtures/apidiff/README.md has the form of a case".to_owned(),
        })?;
        let end = text.rfind(ANSWERS).or_else(|| text.rfind('}'));
        case.text = text[..end.unwrap_or(text.len())].trim_end().to_owned();
        Ok(case)
    }

    /// The text of this case's file with other answers.
    #[must_use]
    pub(super) fn with_answers(&self, answers: &[Value]) -> String {
        let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
        format!("{}{ANSWERS}\n{}\n]}}\n", self.text, lines.join(",\n"))
    }

    /// Where this case, or the answers to it, are below `root`.
    #[must_use]
    pub fn path(&self, root: &Path) -> PathBuf {
        root.join(&self.group).join(format!("{}.json", self.name))
    }

    /// The steps of which something is compared, with a title for people each.
    pub(super) fn titles(&self) -> Vec<String> {
        let titled = |place: &'static str, steps: &[Step]| {
            steps
                .iter()
                .enumerate()
                .filter(|(_, step)| step.sleep.is_none())
                .map(|(index, step)| format!("{place} {}: {}", index + 1, step.title()))
                .collect::<Vec<_>>()
        };
        let mut titles = titled("setup", &self.setup);
        titles.extend(titled("step", &self.steps));
        titles
    }
}

impl Step {
    pub(super) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or("GET")
    }

    fn title(&self) -> String {
        if let Some(name) = &self.collect {
            return format!("collect {name}");
        }
        if let Some(path) = &self.webhook_requests {
            return format!("webhook requests {path}");
        }
        if let Some(requests) = &self.parallel {
            return format!("{} requests at once", requests.len());
        }
        let verb = if self.watch.is_some() {
            "WATCH"
        } else {
            self.method()
        };
        let query = match &self.query {
            None => String::new(),
            Some(Value::String(text)) => format!("?{text}"),
            Some(other) => format!("?{other}"),
        };
        format!("{verb} {}{query}", self.path)
    }
}

/// All cases below `root`, by path.
///
/// # Errors
/// If a file cannot be read or is no case.
pub fn read_all(root: &Path) -> Result<Vec<Case>, Error> {
    files::with_extension(root, "json")?
        .iter()
        .map(|path| Case::read(path))
        .collect()
}
