//! Jobs that pull images, and the entries of their tags in the lists of nodes.

use std::collections::BTreeSet;

use shared_json::Value;

use super::normalise;
use super::tables::{align, rows};
use crate::history::{State, list, number, text};

/// The ImagePullJobs with the columns that `kubectl get` prints, their images, messages and failed nodes.
pub(super) fn jobs(state: &State) -> String {
    let mut jobs: Vec<&Value> = state.of("imagepulljobs").collect();
    if jobs.is_empty() {
        return String::new();
    }
    jobs.sort_by_key(|job| (normalise::generated_name(job), text(job, "/spec/image")));
    let columns = [
        "/status/desired",
        "/status/active",
        "/status/succeeded",
        "/status/failed",
    ];
    let mut rows = rows(&jobs, &columns);
    for (row, job) in rows.iter_mut().zip(&jobs) {
        row[0] = normalise::generated_name(job);
        row.insert(1, text(job, "/spec/image"));
        let nodes: Vec<&str> = list(job, "/status/failedNodes")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        row.push(text(job, "/status/message"));
        row.push(nodes.join(","));
    }
    let header = [
        "NAME",
        "IMAGE",
        "TOTAL",
        "ACTIVE",
        "SUCCEED",
        "FAILED",
        "MESSAGE",
        "FAILED_NODES",
    ];
    align(&header, &rows)
}

/// The ImageListPullJobs with the columns that `kubectl get` prints, and the images that failed.
pub(super) fn lists(state: &State) -> String {
    let jobs: Vec<&Value> = state.of("imagelistpulljobs").collect();
    if jobs.is_empty() {
        return String::new();
    }
    let columns = [
        "/status/desired",
        "/status/succeeded",
        "/status/completed",
        "/status/active",
    ];
    let mut rows = rows(&jobs, &columns);
    for (row, job) in rows.iter_mut().zip(&jobs) {
        let mut failed: Vec<String> = list(job, "/status/failedImageStatuses")
            .iter()
            .map(|image| text(image, "/name"))
            .collect();
        failed.sort();
        row.push(failed.join(","));
        row.push((!text(job, "/status/completionTime").is_empty()).to_string());
    }
    let header = [
        "NAME",
        "TOTAL",
        "SUCCEEDED",
        "COMPLETED",
        "ACTIVE",
        "FAILED_IMAGES",
        "OVER",
    ];
    align(&header, &rows)
}

/// The entries in the lists of nodes for the tags that the jobs own. Jobs of other namespaces may own these, too, so that their
/// versions and policies depend on other events in a recorded cluster.
pub(super) fn tags(state: &State) -> String {
    let jobs: BTreeSet<String> = state
        .of("imagepulljobs")
        .map(|job| text(job, "/metadata/uid"))
        .collect();
    let mut out = String::new();
    for node in state.of("nodeimages") {
        let images = node.pointer("/spec/images").and_then(Value::as_object);
        for (name, image) in images.into_iter().flat_map(|images| images.iter()) {
            for tag in list(image, "/tags") {
                let owners = list(tag, "/ownerReferences").iter();
                let own = owners.filter(|owner| jobs.contains(&text(owner, "/uid"))).count();
                if own > 0 {
                    out.push_str(&line(node, name, tag, own));
                }
            }
        }
    }
    out
}

fn line(node: &Value, image: &str, tag: &Value, jobs: usize) -> String {
    let (text_of_tag, version) = (text(tag, "/tag"), number(tag, "/version"));
    let statuses = node
        .pointer("/status/imageStatuses")
        .and_then(|images| images.get(image));
    let statuses = statuses.map(|image| list(image, "/tags")).unwrap_or_default();
    let status = statuses
        .iter()
        .find(|status| text(status, "/tag") == text_of_tag && number(status, "/version") == version);
    let phase = status.map_or_else(|| "no answer".to_owned(), |status| text(status, "/phase"));
    let name = text(node, "/metadata/name");
    format!("{name} {image}:{text_of_tag} of {jobs} jobs: {phase}\n")
}
