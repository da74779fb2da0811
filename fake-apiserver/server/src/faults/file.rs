//! Files of faults: of requests, and of connections between pods.

use std::fmt;

use network::faults as connections;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use super::{Fault, FaultFileError};

/// The faults of a file. A list has faults of requests; a map has them in `requests`, and those of connections in `connections`.
///
/// ```
/// use network::faults::{Effect, Peer};
/// use server::faults::FaultFile;
///
/// let file = FaultFile::from_yaml("
/// requests:
/// - {on: {verbs: [update]}, do: loseAnswer}
/// connections:
/// - {from: {node: node1}, to: {pod: default/db-0}, port: 5432, chance: 0.1, do: refuse}
/// ")?;
/// let refused = network::faults::Fault::new(Effect::Refuse);
/// let refused = refused.from(Peer::node("node1")).to(Peer::pod("default", "db-0")).port(5432);
/// assert_eq!(file.connections, [refused.chance(0.1)]);
/// # Ok::<(), server::faults::FaultFileError>(())
/// ```
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FaultFile {
    /// Those of requests and watches.
    pub requests: Vec<Fault>,
    /// Those of connections.
    pub connections: Vec<connections::Fault>,
}

impl FaultFile {
    /// Reads a file in YAML.
    ///
    /// # Errors
    /// If it is no such file, or a fault in it could never strike: the place and the problem.
    pub fn from_yaml(text: &str) -> Result<Self, FaultFileError> {
        serde_saphyr::from_str(text).map_err(|error| FaultFileError(error.to_string()))
    }
}

/// The form with both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    requests: Vec<Fault>,
    #[serde(default)]
    connections: Vec<connections::Fault>,
}

impl<'de> Deserialize<'de> for FaultFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either)
    }
}

struct Either;

impl<'de> Visitor<'de> for Either {
    type Value = FaultFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of faults, or a map with `requests` and `connections`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<FaultFile, A::Error> {
        Ok(FaultFile {
            requests: Vec::deserialize(SeqAccessDeserializer::new(items))?,
            connections: Vec::new(),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<FaultFile, A::Error> {
        let written = Written::deserialize(MapAccessDeserializer::new(fields))?;
        Ok(FaultFile {
            requests: written.requests,
            connections: written.connections,
        })
    }

    fn visit_unit<E>(self) -> Result<FaultFile, E> {
        Ok(FaultFile::default())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", Ok((0, 0)))]
    #[case("- do: endWatch", Ok((1, 0)))]
    #[case("connections: [{do: drop}, {do: {delay: 2s}, bothWays: true}]", Ok((0, 2)))]
    #[case("{requests: [{do: endWatch}], connections: [{to: {label: app=web}, do: refuse}]}", Ok((1, 1)))]
    #[case("connections:\n- do: explode", Err("unknown variant `explode`"))]
    #[case(
        "connections:\n- do: drop\n  to: {pod: web}",
        Err("a pod is NAMESPACE/NAME, not \"web\"")
    )]
    #[case(
        "connections:\n- do: drop\n  to: {label: web}",
        Err("a label is KEY=VALUE, not \"web\"")
    )]
    #[case("connections:\n- do: drop\n  to: {address: web}", Err("invalid IP address"))]
    #[case("connections:\n- do: {delay: -2s}", Err("do.delay: must not be negative"))]
    #[case(
        "connections:\n- {do: drop, chance: 2}",
        Err("chance: must be between 0 and 1")
    )]
    #[case("connections:\n- {do: drop, on: {}}", Err("unknown field `on`"))]
    #[case("do: drop", Err("unknown field `do`"))]
    #[case("text", Err("a list of faults, or a map with `requests` and `connections`"))]
    fn files(#[case] text: &str, #[case] expected: Result<(usize, usize), &str>) {
        let read = FaultFile::from_yaml(text);
        let read = read.map(|file| (file.requests.len(), file.connections.len()));
        match (read, expected) {
            (Ok(counts), Ok(expected)) => assert_eq!(counts, expected),
            (Err(error), Err(expected)) => {
                let error = error.to_string();
                assert!(
                    error.contains(expected) && (text == "text" || error.contains("line ")),
                    "{error}"
                );
            }
            (read, _) => panic!("{read:?}"),
        }
    }
}
