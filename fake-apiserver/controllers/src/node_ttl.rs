//! The cache lifetime of Secrets and ConfigMaps on a node: an annotation of the node, by the number of nodes.

use async_trait::async_trait;
use machinery::meta::string_map;
use shared_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res};

const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// From how many nodes, up to how many, how many seconds. The ranges overlap, so that a node that comes and goes changes nothing.
const STEPS: [(usize, usize, u32); 5] = [
    (0, 100, 0),
    (90, 500, 15),
    (450, 1000, 30),
    (900, 2000, 60),
    (1800, usize::MAX, 300),
];

/// The step that a cluster is at which was at `step` and now has so many nodes.
fn step_after(mut step: usize, nodes: usize) -> usize {
    while nodes > STEPS[step].1 {
        step += 1;
    }
    while nodes < STEPS[step].0 {
        step -= 1;
    }
    step
}

/// Writes the annotation. The nodes there are follow as they change: their heartbeats are changes.
#[derive(Default)]
pub(super) struct NodeTtl {
    step: usize,
    nodes: usize,
}

#[async_trait]
impl Controller for NodeTtl {
    fn name(&self) -> &'static str {
        "ttl-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Nodes]
    }

    fn affected(&self, _: &Cache, _: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        vec![Key::of(object)]
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let nodes = cx.cache.count(Res::Nodes);
        if nodes != self.nodes {
            (self.nodes, self.step) = (nodes, step_after(self.step, nodes));
        }
        let Some(node) = cx.cache.get(Res::Nodes, "", &key.name).cloned() else {
            return Ok(Next::Change);
        };
        let wanted = STEPS[self.step].2;
        let shown = string_map(&node, "annotations")
            .get(ANNOTATION)
            .and_then(Value::as_str);
        // As Go reads numbers: a sign may be there.
        if shown.and_then(|shown| shown.parse::<i64>().ok()) != Some(i64::from(wanted)) {
            let patch = json!({"metadata": {"annotations": {ANNOTATION: wanted.to_string()}}});
            cx.patch(Res::Nodes, &node, "", patch).await?;
        }
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::small(0, 100, 0)]
    #[case::one_more(0, 101, 15)]
    #[case::one_less_again(1, 100, 15)]
    #[case::enough_less(1, 89, 0)]
    #[case::at_the_lower_end(1, 90, 15)]
    #[case::at_the_upper_end(1, 500, 15)]
    #[case::middle(1, 501, 30)]
    #[case::middle_stays(2, 450, 30)]
    #[case::middle_goes(2, 449, 15)]
    #[case::large(2, 1001, 60)]
    #[case::large_stays(3, 900, 60)]
    #[case::largest(3, 2001, 300)]
    #[case::largest_stays(4, 1800, 300)]
    #[case::largest_goes(4, 1799, 60)]
    #[case::all_at_once(0, 5000, 300)]
    #[case::all_gone(4, 0, 0)]
    fn steps(#[case] step: usize, #[case] nodes: usize, #[case] seconds: u32) {
        assert_eq!(STEPS[step_after(step, nodes)].2, seconds);
    }
}
