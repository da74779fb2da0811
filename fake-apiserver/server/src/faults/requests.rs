//! The selection of requests that a fault concerns.

use serde::Deserialize;
use store::ObjectKey;

use super::Asked;
use super::glob::fits;
use crate::message::request::Verb;

/// Which requests a fault concerns: those that fit every list that is not empty. `*` in a word stands for anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Requests {
    /// As in roles: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verbs: Vec<String>,
    /// API groups; the empty one is the core.
    pub groups: Vec<String>,
    /// As in roles: `pods`, `pods/status`, `*/scale`. `pods` alone is without its subresources.
    pub resources: Vec<String>,
    /// Namespaces of the objects.
    pub namespaces: Vec<String>,
    /// Names of the objects. A creation has the name only if that is in the path, which is so for subresources.
    pub names: Vec<String>,
    /// The client's user agent: `kubelet`, `kube-controller-manager*`.
    pub user_agents: Vec<String>,
    /// For faults of watches: `ADDED`, `MODIFIED`, `DELETED`.
    pub events: Vec<String>,
}

fn any(patterns: &[String], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, text))
}

fn owned<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Vec<String> {
    words.into_iter().map(Into::into).collect()
}

impl Requests {
    /// All requests for resources.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Those with one of these verbs.
    #[must_use]
    pub fn verbs<T: Into<String>>(mut self, verbs: impl IntoIterator<Item = T>) -> Self {
        self.verbs = owned(verbs);
        self
    }

    /// Those for one of these resources: `pods`, `pods/status`.
    #[must_use]
    pub fn resources<T: Into<String>>(mut self, resources: impl IntoIterator<Item = T>) -> Self {
        self.resources = owned(resources);
        self
    }

    /// Those for objects of these names.
    #[must_use]
    pub fn names<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.names = owned(names);
        self
    }

    /// Those for objects in these namespaces.
    #[must_use]
    pub fn namespaces<T: Into<String>>(mut self, namespaces: impl IntoIterator<Item = T>) -> Self {
        self.namespaces = owned(namespaces);
        self
    }

    /// Those of clients that say that they are one of these.
    #[must_use]
    pub fn user_agents<T: Into<String>>(mut self, agents: impl IntoIterator<Item = T>) -> Self {
        self.user_agents = owned(agents);
        self
    }

    /// For faults of watches: events of these types.
    #[must_use]
    pub fn events<T: Into<String>>(mut self, events: impl IntoIterator<Item = T>) -> Self {
        self.events = owned(events);
        self
    }

    /// An error in it: a pattern that can never match.
    pub(super) fn mistake(&self) -> Option<String> {
        const EVENTS: [&str; 3] = ["ADDED", "MODIFIED", "DELETED"];
        let verbs = Verb::ALL.map(Verb::as_str);
        let unknown = |field: &str, words: &[String], known: &[&str]| {
            let word = words
                .iter()
                .find(|word| !known.iter().any(|known| fits(word, known)))?;
            Some(format!("{field}: \"{word}\" is none of {}", known.join(", ")))
        };
        unknown("on.verbs", &self.verbs, &verbs).or_else(|| unknown("on.events", &self.events, &EVENTS))
    }

    fn concerns_collection(&self, asked: &Asked<'_>) -> bool {
        let request = asked.request;
        let resource = if request.subresource.is_empty() {
            request.resource.clone()
        } else {
            format!("{}/{}", request.resource, request.subresource)
        };
        any(&self.groups, &request.group)
            && (self.resources.is_empty() || self.resources.iter().any(|pattern| is_of(pattern, &resource)))
            && any(&self.user_agents, asked.user_agent)
    }

    pub(super) fn concerns(&self, asked: &Asked<'_>) -> bool {
        any(&self.verbs, asked.request.verb.as_str())
            && any(&self.namespaces, &asked.request.namespace)
            && any(&self.names, &asked.request.name)
            && self.concerns_collection(asked)
    }

    pub(super) fn concerns_event(&self, watch: &Asked<'_>, kind: &str, key: &ObjectKey) -> bool {
        any(&self.events, kind)
            && any(&self.namespaces, &key.namespace)
            && any(&self.names, &key.name)
            && self.concerns_collection(watch)
    }
}

/// Whether a resource is of the form `pattern`; a pattern without a subresource means none, but `*` means all.
fn is_of(pattern: &str, resource: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    match (pattern.split_once('/'), resource.split_once('/')) {
        (None, None) => fits(pattern, resource),
        (Some((of, sub)), Some((resource, subresource))) => fits(of, resource) && fits(sub, subresource),
        _ => false,
    }
}
