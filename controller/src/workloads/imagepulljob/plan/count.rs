//! The nodes of a job by the state of its image there.

use kube::ResourceExt as _;

use super::Observed;
use crate::api::v1beta1::NodeImage;

/// The names of nodes.
#[derive(Debug, Default)]
pub(super) struct Count {
    /// Those that pull, or have not said anything yet.
    pub(super) pulling: Vec<String>,
    /// Those that have the image.
    pub(super) succeeded: Vec<String>,
    /// Those that have given up.
    pub(super) failed: Vec<String>,
    /// Those that have not been asked, or not with all Secrets.
    pub(super) unasked: Vec<String>,
}

/// Divides the nodes of a job. One that lacks a Secret counts twice.
pub(super) fn count(observed: &Observed) -> Count {
    let mut count = Count::default();
    for node in &observed.nodes {
        let name = node.name_any();
        let Some(phase) = phase(observed, node) else {
            count.unasked.push(name);
            continue;
        };
        if lacks_secret(observed, node) {
            count.unasked.push(name.clone());
        }
        match phase {
            "Succeeded" => count.succeeded.push(name),
            "Failed" => count.failed.push(name),
            _ => count.pulling.push(name),
        }
    }
    for names in [&mut count.pulling, &mut count.failed, &mut count.unasked] {
        names.sort();
    }
    count
}

/// The phase of the image on a node; none where the job has not asked the node for it.
fn phase<'n>(observed: &Observed, node: &'n NodeImage) -> Option<&'n str> {
    let (name, tag) = (&observed.image.name, &observed.image.tag);
    let spec = node.tag(name, tag)?;
    let uid = observed.job.uid();
    spec.owner_references.iter().find(|owner| owner.uid == uid)?;
    let status = node.tag_status(name, tag);
    let status = status.filter(|status| status.version == spec.version);
    Some(status.map_or("", |status| &status.phase))
}

fn lacks_secret(observed: &Observed, node: &NodeImage) -> bool {
    let known = node
        .spec
        .images
        .get(&observed.image.name)
        .map(|spec| &spec.pull_secrets);
    observed.secrets.iter().any(|secret| {
        let mut known = known.into_iter().flatten();
        !known.any(|known| (&known.namespace, &known.name) == (&secret.namespace, &secret.name))
    })
}
