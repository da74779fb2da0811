//! Revisions: the templates a set of pods has had, each under a name that is a hash of it.

use client_kit::safe_encode;
use go_dump::Program;
use kruise_api::labels;
use serde_json::{Value, json};

use crate::template::{pod_template, to_go_json};

/// A revision of the template.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    /// `<set>-<hash>`.
    pub name: String,
    /// The pod template.
    pub template: Value,
    /// The hash of the claim templates that came with it, if the revision says one.
    pub claims: Option<String>,
}

impl Revision {
    /// Whether its claim templates are those of another revision. One that does not say, as those before OpenKruise 1.7, has the same.
    pub fn has_claims_of(&self, other: &Self) -> bool {
        match (&self.claims, &other.claims) {
            (Some(own), Some(others)) => own == others,
            _ => true,
        }
    }
}

/// The revisions a pass works with.
#[derive(Debug, Clone, PartialEq)]
pub struct Revisions {
    /// The one of the spec.
    pub update: Revision,
    /// The one before it; the same while nothing is rolled out.
    pub current: Revision,
    /// All of them, oldest first.
    pub all: Vec<Revision>,
    /// How often a name was taken.
    pub collision_count: i32,
}

impl Revisions {
    /// The names of the revisions beyond the limit that are neither current nor in use, oldest first.
    pub fn beyond(&self, limit: usize, history: History, in_use: impl Fn(&str) -> bool) -> Vec<String> {
        let live = [&self.update.name, &self.current.name];
        let names = self.all.iter().map(|revision| &revision.name);
        let old: Vec<&String> = names.filter(|name| !live.contains(name)).collect();
        let unused: Vec<&String> = old.iter().copied().filter(|name| !in_use(name)).collect();
        let counted = match history {
            History::Unused => unused.len(),
            History::All => old.len(),
        };
        let excess = counted.saturating_sub(limit);
        unused.into_iter().take(excess).cloned().collect()
    }
}

/// Which old revisions count towards the limit of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// Those that no pod runs.
    Unused,
    /// All of them. Those that pods run are kept all the same.
    All,
}

/// The data that the hash of a revision is taken over, and the label that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashOf {
    /// The data as Go writes it; the label is `controller.kubernetes.io/hash`.
    Data,
    /// The template as Go's struct; the label is `controller-revision-hash`.
    Template,
}

impl HashOf {
    /// The label of a revision that has its hash.
    pub fn label(self) -> &'static str {
        match self {
            Self::Data => labels::REVISION_LABEL,
            Self::Template => labels::REVISION_HASH,
        }
    }

    /// The hash of the revision with this template and data.
    pub fn hash(self, template: &Value, data: &Value, collision_count: i32) -> String {
        match self {
            Self::Data => hash(data, collision_count),
            Self::Template => {
                let template = shared_json::to_value(template).unwrap_or_default();
                let collisions = (collision_count > 0).then_some(i64::from(collision_count));
                go_dump::template_hash(&Program::OPENKRUISE, &template, collisions)
            }
        }
    }
}

/// How much of a set's name goes into the names of its revisions.
const NAME_LENGTH_MAX: usize = 223;

/// The data of a ControllerRevision for a pod template: a patch that replaces it.
///
/// # Errors
/// The decoder's text when `template` is no pod template.
pub fn data_of(template: &Value) -> Result<Value, String> {
    let mut template = pod_template(template)?;
    if let Some(map) = template.as_object_mut() {
        map.insert("$patch".to_owned(), json!("replace"));
    }
    Ok(json!({ "spec": { "template": template } }))
}

/// The template that a ControllerRevision's data stores.
pub fn template_of(data: &Value) -> Option<Value> {
    let mut template = data.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    Some(template)
}

/// The hash of a revision: FNV-1 (32 bits) over the data as Go writes it and the collision count, in the alphabet of
/// Kubernetes' names.
pub fn hash(data: &Value, collision_count: i32) -> String {
    let bytes = to_go_json(data)
        .into_bytes()
        .into_iter()
        .chain(collision_count.to_string().into_bytes());
    let sum = bytes.fold(0x811c_9dc5_u32, |hash, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(byte)
    });
    safe_encode(&sum.to_string())
}

/// The name of the revision with `hash` of the set `name`.
pub fn name(set: &str, hash: &str) -> String {
    let cut = set
        .char_indices()
        .nth(NAME_LENGTH_MAX)
        .map_or(set.len(), |(at, _)| at);
    format!("{}-{hash}", &set[..cut])
}

/// The hash within a revision's name, or the hash itself where labels carry only that.
pub fn short(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(_, hash)| hash)
}

/// Whether two revision names, either of which may be the short form, mean the same revision.
pub fn same(one: &str, other: &str) -> bool {
    !one.is_empty() && short(one) == short(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// The tutorial's set after the webhook's defaulting.
    fn tutorial(image: &str) -> Value {
        json!({ "metadata": { "labels": { "app": "cs" } }, "spec": {
            "containers": [{ "image": image, "imagePullPolicy": "IfNotPresent", "name": "nginx",
                "ports": [{ "containerPort": 80, "protocol": "TCP" }],
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File" }],
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30 } })
    }

    #[rstest]
    #[case("nginx:1.7.9", "cs-demo-7cb9c88699")]
    #[case("nginx:latest", "cs-demo-7c4d79f5bc")]
    #[case("nginx:alpine", "cs-demo-5c5f449787")]
    fn the_tutorials_names(#[case] image: &str, #[case] want: &str) {
        let data = data_of(&tutorial(image)).unwrap();
        assert_eq!(name("cs-demo", &hash(&data, 0)), want);
        assert_eq!(data_of(&template_of(&data).unwrap()).unwrap(), data);
    }

    #[test]
    fn every_recorded_name() {
        let mut rows = 0;
        for line in include_str!("../../tests/data/revisions.tsv").lines() {
            let (want, data) = line.split_once('\t').unwrap();
            let data: Value = serde_json::from_str(data).unwrap();
            let set = want.rsplit_once('-').unwrap().0;
            assert_eq!(name(set, &hash(&data, 0)), want, "the hash of the recorded bytes");
            assert_eq!(
                data_of(&template_of(&data).unwrap()).unwrap(),
                data,
                "our form is the recorded one"
            );
            rows += 1;
        }
        assert!(rows >= 30, "{rows}");
    }

    #[rstest]
    #[case("cs-demo-7cb9c88699", "7cb9c88699", true)]
    #[case("cs-demo-7cb9c88699", "cs-demo-7c4d79f5bc", false)]
    #[case("", "", false)]
    fn long_and_short_names(#[case] one: &str, #[case] other: &str, #[case] want: bool) {
        assert_eq!(same(one, other), want);
    }
}
