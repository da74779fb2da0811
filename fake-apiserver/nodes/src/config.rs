//! Nodes and images described in YAML.

use std::collections::BTreeMap;
use std::time::Duration;

use client_kit::Credential;
use serde::Deserialize;

use super::images::{Image, ImageRegistry};
use super::node::{NodeSpec, Taint};
use super::programs::Program;

/// How many nodes a file may describe.
const NODES_MAX: u32 = 10_000;

/// A file of nodes that is not one.
#[derive(Debug, thiserror::Error)]
pub enum NodeConfigError {
    /// It is not YAML of this form.
    #[error("read the nodes: {0}")]
    Yaml(String),
    /// It describes more nodes than there can be.
    #[error("{0} nodes are more than {NODES_MAX}")]
    TooMany(u64),
    /// Two nodes have one name.
    #[error("two nodes are called \"{0}\"")]
    Twice(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(default)]
    nodes: Vec<Kind>,
    #[serde(default)]
    images: Vec<ImageEntry>,
}

/// An image, or all images whose references begin alike.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ImageEntry {
    /// The reference; with `*` at its end, all that begin so.
    name: String,
    /// Whether the registry does not know it.
    #[serde(default)]
    missing: bool,
    /// Whether its registry's name is unknown.
    #[serde(default)]
    unreachable: bool,
    #[serde(default)]
    digest: Option<String>,
    /// How long a node pulls it; without this every node has it, unless pulls fail or need a credential.
    #[serde(default)]
    pull_ms: Option<u64>,
    /// How many pulls of each node fail before one succeeds.
    #[serde(default)]
    failures: u32,
    /// The name and the password that its registry asks for.
    #[serde(default)]
    credential: Option<CredentialEntry>,
    #[serde(default)]
    program: Option<Program>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialEntry {
    username: String,
    password: String,
}

impl ImageEntry {
    fn image(&self) -> Image {
        let mut image = match self.pull_ms {
            _ if self.missing => Image::missing(&self.name),
            _ if self.unreachable => Image::unreachable(&self.name),
            Some(ms) => Image::remote(&self.name, Duration::from_millis(ms)),
            None => Image::preloaded(&self.name),
        };
        image = image.with_failures(self.failures);
        if let Some(CredentialEntry { username, password }) = &self.credential {
            image = image.with_credential(Credential {
                username: username.clone(),
                password: password.clone(),
            });
        }
        if let Some(digest) = &self.digest {
            image = image.with_digest(digest);
        }
        image.program.clone_from(&self.program);
        image
    }
}

/// A file of nodes and images.
#[derive(Debug)]
pub struct NodeFile {
    /// The nodes, in the order of the file.
    pub nodes: Vec<NodeSpec>,
    images: Vec<(String, Image)>,
}

/// Nodes of one kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Kind {
    /// The name; of several nodes, the prefix of their numbers.
    name: String,
    #[serde(default = "one")]
    count: u32,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    zone: Option<String>,
    #[serde(default)]
    taints: Vec<Taint>,
    #[serde(default)]
    unschedulable: bool,
    /// Amounts by resource: `cpu`, `memory`, `pods`, `ephemeral-storage` and any other.
    #[serde(default)]
    capacity: BTreeMap<String, String>,
}

fn one() -> u32 {
    1
}

impl NodeFile {
    /// Reads a file of nodes and images.
    ///
    /// ```
    /// let file = nodes::NodeFile::from_yaml(
    ///     "nodes:\n- {name: worker, count: 2, zone: a, capacity: {cpu: '4', memory: 8Gi}}\n- {name: gpu, capacity: {example.com/gpu: '2'}}\n\
    ///      images:\n- {name: registry.example.com/none/*, missing: true}\n- {name: 'slow:1', pullMs: 9000}\n",
    /// )?;
    /// let names: Vec<&str> = file.nodes.iter().map(|node| node.name.as_str()).collect();
    /// assert_eq!(names, ["worker-1", "worker-2", "gpu"]);
    /// let images = nodes::ImageRegistry::default();
    /// file.register(&images);
    /// assert!(images.get("registry.example.com/none/a:1").failure.is_some());
    /// # Ok::<(), nodes::NodeConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If it is not such a file, or describes too many nodes, or one twice.
    pub fn from_yaml(text: &str) -> Result<Self, NodeConfigError> {
        let file: File =
            serde_saphyr::from_str(text).map_err(|error| NodeConfigError::Yaml(error.to_string()))?;
        let total: u64 = file.nodes.iter().map(|kind| u64::from(kind.count)).sum();
        if total > u64::from(NODES_MAX) {
            return Err(NodeConfigError::TooMany(total));
        }
        let mut out: Vec<NodeSpec> = Vec::new();
        for kind in file.nodes {
            for number in 1..=kind.count {
                let nth = u32::try_from(out.len()).unwrap_or(u32::MAX).saturating_add(1);
                let name = if kind.count == 1 {
                    kind.name.clone()
                } else {
                    format!("{}-{number}", kind.name)
                };
                if out.iter().any(|node| node.name == name) {
                    return Err(NodeConfigError::Twice(name));
                }
                let mut labels = kind.labels.clone();
                if let Some(zone) = &kind.zone {
                    labels.insert("topology.kubernetes.io/zone".to_owned(), zone.clone());
                }
                out.push(NodeSpec {
                    name,
                    labels,
                    taints: kind.taints.clone(),
                    unschedulable: kind.unschedulable,
                    capacity: kind.capacity.clone(),
                    ..NodeSpec::numbered(nth)
                });
            }
        }
        let images = file
            .images
            .iter()
            .map(|entry| (entry.name.clone(), entry.image()));
        Ok(Self {
            nodes: out,
            images: images.collect(),
        })
    }

    /// Registers the file's images.
    pub fn register(&self, images: &ImageRegistry) {
        for (name, image) in &self.images {
            match name.strip_suffix('*') {
                Some(beginning) => images.set_beginning(beginning, image.clone()),
                None => images.set(name, image.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("nodes: [{name: a, count: 20000}]", "20000 nodes are more than 10000")]
    #[case("nodes: [{name: a}, {name: a}]", "two nodes are called \"a\"")]
    fn what_is_refused(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(
            NodeFile::from_yaml(text)
                .map(|_| ())
                .map_err(|error| error.to_string()),
            Err(expected.to_owned())
        );
    }

    #[rstest]
    #[case("nodes: 3")]
    #[case("nodes: [{name: a, colour: red}]")]
    #[case("images: [{missing: true}]")]
    #[case("images: [{name: a, pullMs: -1}]")]
    #[case("images: [{name: a, failures: -1}]")]
    #[case("images: [{name: a, credential: {username: u}}]")]
    #[case("{")]
    fn what_is_no_file(#[case] text: &str) {
        assert!(matches!(NodeFile::from_yaml(text), Err(NodeConfigError::Yaml(_))));
    }

    #[rstest]
    #[case("{name: a/b, missing: true}", "a/b:latest", "a/b:1", "missing")]
    #[case("{name: a/*, missing: true}", "a/c:2", "b/a", "missing")]
    #[case("{name: a/b, unreachable: true}", "a/b", "a/c", "missing")]
    #[case("{name: a, pullMs: 7}", "docker.io/library/a:latest", "a:2", "7ms")]
    #[case("{name: a, failures: 2}", "a", "b", "1s, 2 failures")]
    #[case("{name: a, failures: 1, pullMs: 7}", "a", "b", "7ms, 1 failures")]
    #[case(
        "{name: r.example.com/*, pullMs: 7, credential: {username: u, password: p}}",
        "r.example.com/a",
        "a",
        "7ms for u"
    )]
    #[case("{name: a, digest: 'sha256:00'}", "a:latest", "b", "sha256:00")]
    #[case(
        "{name: 'a:*', program: {exits: [{afterMs: 1, code: 3}]}}",
        "a:5",
        "a",
        "exits 3"
    )]
    fn images_are_what_their_entry_says(
        #[case] entry: &str,
        #[case] named: &str,
        #[case] other: &str,
        #[case] expected: &str,
    ) {
        let registry = ImageRegistry::default();
        let file = NodeFile::from_yaml(&format!("images: [{entry}]")).expect("a file");
        file.register(&registry);
        let said = registry.registered(named).map(|image| {
            let code = image
                .program
                .and_then(|program| program.exits.first().map(|exit| exit.code));
            match (image.failure, code) {
                (Some(_), _) => "missing".to_owned(),
                (None, Some(code)) => format!("exits {code}"),
                (None, None) if image.failures > 0 => {
                    format!("{:?}, {} failures", image.pull, image.failures)
                }
                (None, None) if !image.preloaded => match image.credential {
                    Some(credential) => format!("{:?} for {}", image.pull, credential.username),
                    None => format!("{:?}", image.pull),
                },
                (None, None) => image.digest,
            }
        });
        assert_eq!(said.as_deref(), Some(expected));
        assert_eq!(registry.registered(other), None);
    }

    #[test]
    fn nodes_are_what_their_kind_says() {
        let text = "nodes: [{name: a, zone: z, taints: [{key: k, effect: NoSchedule}], capacity: {cpu: '2', example.com/gpu: '1'}}]";
        let nodes = NodeFile::from_yaml(text).expect("nodes").nodes;
        let object = nodes[0].object("2026-01-01T00:00:00Z");
        assert_eq!(object["metadata"]["labels"]["topology.kubernetes.io/zone"], "z");
        assert_eq!(
            object["spec"]["taints"][0],
            shared_json::json!({"key": "k", "effect": "NoSchedule"})
        );
        assert_eq!(object["status"]["allocatable"]["cpu"], "2");
        assert_eq!(object["status"]["allocatable"]["memory"], "32Gi");
        assert_eq!(object["status"]["capacity"]["example.com/gpu"], "1");
    }
}
