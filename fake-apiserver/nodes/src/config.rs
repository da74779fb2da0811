//! Nodes described in YAML.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::node::{NodeSpec, Taint};

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
    nodes: Vec<Kind>,
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

impl NodeSpec {
    /// Reads a file of nodes.
    ///
    /// ```
    /// let nodes = nodes::NodeSpec::from_yaml(
    ///     "nodes:\n- {name: worker, count: 2, zone: a, capacity: {cpu: '4', memory: 8Gi}}\n- {name: gpu, capacity: {example.com/gpu: '2'}}\n",
    /// )?;
    /// let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    /// assert_eq!(names, ["worker-1", "worker-2", "gpu"]);
    /// # Ok::<(), nodes::NodeConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If it is not such a file, or describes too many nodes, or one twice.
    pub fn from_yaml(text: &str) -> Result<Vec<Self>, NodeConfigError> {
        let file: File =
            serde_saphyr::from_str(text).map_err(|error| NodeConfigError::Yaml(error.to_string()))?;
        let total: u64 = file.nodes.iter().map(|kind| u64::from(kind.count)).sum();
        if total > u64::from(NODES_MAX) {
            return Err(NodeConfigError::TooMany(total));
        }
        let mut out: Vec<Self> = Vec::new();
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
                out.push(Self {
                    name,
                    labels,
                    taints: kind.taints.clone(),
                    unschedulable: kind.unschedulable,
                    capacity: kind.capacity.clone(),
                    ..Self::numbered(nth)
                });
            }
        }
        Ok(out)
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
            NodeSpec::from_yaml(text)
                .map(|_| ())
                .map_err(|error| error.to_string()),
            Err(expected.to_owned())
        );
    }

    #[rstest]
    #[case("nodes: 3")]
    #[case("nodes: [{name: a, colour: red}]")]
    #[case("{")]
    fn what_is_no_file(#[case] text: &str) {
        assert!(matches!(NodeSpec::from_yaml(text), Err(NodeConfigError::Yaml(_))));
    }

    #[test]
    fn nodes_are_what_their_kind_says() {
        let text = "nodes: [{name: a, zone: z, taints: [{key: k, effect: NoSchedule}], capacity: {cpu: '2', example.com/gpu: '1'}}]";
        let nodes = NodeSpec::from_yaml(text).expect("nodes");
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
