//! How each container of a pod is ended, by the variables of its environment.

use crate::pods::pod::{self, Container, ContainerStatus, Pod};

/// Variable of a container: `true` has it ended with the others.
const ENDS: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
/// Variable of a container on a virtual node: the image that ends it.
const ENDS_BY_IMAGE: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";
/// Variable of a container: `true` lets the pod complete whatever the container's exit code is.
const IGNORES_EXIT_CODE: &str = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE";

/// How a container is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// Not at all: it is a main container.
    Main,
    /// Not on this kind of node, although it is a sidecar.
    Never,
    /// By this image.
    Image(String),
    /// By a request.
    Request,
    /// By a request, once the pod has its phase.
    RequestAtTheEnd,
}

/// How a container of a pod on such a node is ended.
pub(super) fn way(container: &Container, is_virtual: bool) -> Way {
    let value = |name: &str| {
        let mut variables = container.env.iter();
        variables
            .find(|variable| variable.name == name)
            .and_then(|variable| variable.value.as_deref())
            .unwrap_or_default()
    };
    let is_true = |name: &str| value(name).eq_ignore_ascii_case("true");
    let image = value(ENDS_BY_IMAGE);
    match (is_true(ENDS), is_virtual) {
        (false, _) if image.is_empty() => Way::Main,
        (_, true) if !image.is_empty() => Way::Image(image.to_owned()),
        (true, false) if is_true(IGNORES_EXIT_CODE) => Way::RequestAtTheEnd,
        (true, false) => Way::Request,
        _ => Way::Never,
    }
}

/// The containers of a pod with their statuses, if each has one: otherwise nothing counts as ended.
pub(super) fn with_statuses(pod: &Pod) -> Option<Vec<(&Container, &ContainerStatus)>> {
    let (containers, statuses) = (pod::containers(pod), pod::container_statuses(pod));
    if containers.len() != statuses.len() {
        return None;
    }
    let status = |container: &Container| statuses.iter().find(|status| status.name == container.name);
    containers
        .iter()
        .map(|container| Some((container, status(container)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::main(&[], false, Way::Main)]
    #[case::sidecar(&[(ENDS, "true")], false, Way::Request)]
    #[case::in_capitals(&[(ENDS, "True")], false, Way::Request)]
    #[case::another_word(&[(ENDS, "yes")], false, Way::Main)]
    #[case::ignores(&[(ENDS, "true"), (IGNORES_EXIT_CODE, "true")], false, Way::RequestAtTheEnd)]
    #[case::ignores_alone(&[(IGNORES_EXIT_CODE, "true")], false, Way::Main)]
    #[case::by_image_on_a_node(&[(ENDS_BY_IMAGE, "exit:1")], false, Way::Never)]
    #[case::both_on_a_node(&[(ENDS, "true"), (ENDS_BY_IMAGE, "exit:1")], false, Way::Request)]
    #[case::by_image(&[(ENDS_BY_IMAGE, "exit:1")], true, Way::Image("exit:1".to_owned()))]
    #[case::both(&[(ENDS, "true"), (ENDS_BY_IMAGE, "exit:1")], true, Way::Image("exit:1".to_owned()))]
    #[case::sidecar_on_a_virtual_node(&[(ENDS, "true")], true, Way::Never)]
    fn ways(#[case] env: &[(&str, &str)], #[case] is_virtual: bool, #[case] expect: Way) {
        let env: Vec<_> = env
            .iter()
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect();
        let container = serde_json::from_value(json!({ "name": "a", "env": env })).unwrap();
        assert_eq!(way(&container, is_virtual), expect);
    }
}
