//! The environment of the daemon.

use crate::error::DaemonError;

/// The variable with the name of the node.
const NODE_NAME: &str = "NODE_NAME";

/// The name of the node, by `get`, which gives a variable's value.
pub(crate) fn node_name(get: impl Fn(&str) -> Option<String>) -> Result<String, DaemonError> {
    get(NODE_NAME)
        .filter(|name| !name.is_empty())
        .ok_or(DaemonError::NodeName)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Some("node1"), Some("node1"))]
    #[case(Some(""), None)]
    #[case(None, None)]
    fn names(#[case] value: Option<&str>, #[case] expect: Option<&str>) {
        let name = node_name(|variable| value.filter(|_| variable == "NODE_NAME").map(str::to_owned));
        assert_eq!(name.ok().as_deref(), expect);
    }
}
