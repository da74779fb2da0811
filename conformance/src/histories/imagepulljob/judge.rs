//! The invariants of a history, checked after every change.
//!
//! A NodeImage lists an image only for a job that is there, has not ended and selects the node, and a node pulls only what its
//! NodeImage lists. A job is deleted when its time to live is over, and not before. In the end all jobs have ended, and no NodeImage
//! lists anything for those.

use std::collections::{BTreeMap, BTreeSet};

use shared_json::Value;

use super::wish::MISSING;
use crate::histories::commits::{LATE_MS, in_order};
use crate::histories::deeds::Deeds;
use crate::histories::errand::Errand;
use crate::history::{Change, ChangeKind, list, number, text};

/// ImagePullJobs, as histories name them.
pub(super) const JOBS: &str = "imagepulljobs";
/// NodeImages, as histories name them.
const NODE_IMAGES: &str = "nodeimages";
/// A time to live may be so much shorter, since ends are written in whole seconds …
const EARLY_MS: i64 = 1000;
/// … and so much longer, while requests are refused.
const SLOW_MS: i64 = 30_000;

/// A NodeImage drops the tag of a job that ends after less than this.
const DROPPED_S: i64 = 1000;

/// A job and its past.
#[derive(Debug, Clone, Default)]
struct Job {
    name: String,
    object: Value,
    ended_ms: Option<i64>,
    gone_ms: Option<i64>,
}

impl Job {
    fn ttl_s(&self) -> Option<i64> {
        let ttl = self
            .object
            .pointer("/spec/completionPolicy/ttlSecondsAfterFinished");
        ttl.and_then(Value::as_i64)
    }

    fn ends(&self) -> bool {
        text(&self.object, "/spec/completionPolicy/type") != "Never"
    }

    fn selects(&self, node: &str) -> bool {
        let names = self
            .object
            .pointer("/spec/selector/names")
            .and_then(Value::as_array);
        names.is_none_or(|names| names.iter().any(|name| name.as_str() == Some(node)))
    }
}

/// The jobs and NodeImages at some moment.
#[derive(Default)]
struct World {
    /// By uid.
    jobs: BTreeMap<String, Job>,
    nodes: BTreeMap<String, Value>,
    /// The image, node and version of each listed tag, and until when, if it is not listed any more.
    listed: BTreeMap<(String, String, i64), Option<i64>>,
}

/// The tags of a NodeImage: the image with its tag, and the tag's entry.
fn tags(node: &Value) -> Vec<(String, &Value)> {
    let images = node.pointer("/spec/images").and_then(Value::as_object);
    let mut out = Vec::new();
    for (image, spec) in images.into_iter().flatten() {
        for tag in list(spec, "/tags") {
            out.push((format!("{image}:{}", text(tag, "/tag")), tag));
        }
    }
    out
}

/// The images that a node has begun to pull, with their versions.
fn begun(node: &Value) -> Vec<(String, i64)> {
    let images = node.pointer("/status/imageStatuses").and_then(Value::as_object);
    let mut out = Vec::new();
    for (image, status) in images.into_iter().flatten() {
        for tag in list(status, "/tags") {
            if !text(tag, "/startTime").is_empty() {
                out.push((format!("{image}:{}", text(tag, "/tag")), number(tag, "/version")));
            }
        }
    }
    out
}

fn owners(tag: &Value) -> impl Iterator<Item = String> {
    list(tag, "/ownerReferences")
        .iter()
        .map(|owner| text(owner, "/uid"))
}

/// The violations in a history; empty if all is well.
pub(super) fn wrongs(history: &[Change], deeds: &Deeds) -> Vec<String> {
    let mut world = World::default();
    let mut out = Vec::new();
    for change in in_order(history) {
        let faults = match change.resource.as_str() {
            JOBS => world.job(change, deeds).into_iter().collect(),
            NODE_IMAGES if change.kind != ChangeKind::Deleted => world.node(change),
            _ => Vec::new(),
        };
        let faults = faults.into_iter();
        out.extend(faults.map(|fault| format!("at {} ms, {}: {fault}", change.at_ms, change.name())));
    }
    out.extend(world.at_rest());
    out
}

impl World {
    /// Takes in a job; gives the error in its end.
    fn job(&mut self, change: &Change, deeds: &Deeds) -> Option<String> {
        let job = self
            .jobs
            .entry(text(&change.object, "/metadata/uid"))
            .or_default();
        job.name = change.name();
        job.object = Value::clone(&change.object);
        if !text(&change.object, "/status/completionTime").is_empty() {
            job.ended_ms.get_or_insert(change.at_ms);
        }
        // One that is on its way out is over, too.
        let going = !text(&change.object, "/metadata/deletionTimestamp").is_empty();
        if !(going || change.kind == ChangeKind::Deleted) || job.gone_ms.is_some() {
            return None;
        }
        job.gone_ms = Some(change.at_ms);
        let by_hand = deeds.errands.iter().any(|(_, errand)| {
            matches!(errand, Errand::Delete(object) if text(object, "/metadata/name") == job.name)
        });
        let of_a_list = !list(&job.object, "/metadata/ownerReferences").is_empty();
        let lived_ms = job.ended_ms.map(|ended_ms| change.at_ms - ended_ms);
        match (lived_ms, job.ttl_s()) {
            _ if by_hand || of_a_list => None,
            (Some(lived_ms), Some(ttl_s)) => {
                let right = ttl_s * 1000 - EARLY_MS..=ttl_s * 1000 + SLOW_MS;
                let is_right = right.contains(&lived_ms);
                (!is_right).then(|| format!("deleted {lived_ms} ms after its end, not after {ttl_s} s"))
            }
            _ => Some("deleted without an end or a time to live".to_owned()),
        }
    }

    /// Takes in the images of a node; gives the tags that no job asks for.
    fn node(&mut self, change: &Change) -> Vec<String> {
        let node = change.name();
        let before = self.nodes.insert(node.clone(), Value::clone(&change.object));
        let before = before.unwrap_or_default();
        let known: BTreeSet<(String, String)> = tags(&before)
            .into_iter()
            .flat_map(|(image, tag)| owners(tag).map(move |owner| (image.clone(), owner)))
            .collect();
        let mut faults = Vec::new();
        let mut listed = BTreeSet::new();
        for (image, tag) in tags(&change.object) {
            listed.insert((image.clone(), node.clone(), number(tag, "/version")));
            for owner in owners(tag).filter(|owner| !known.contains(&(image.clone(), owner.clone()))) {
                faults.extend(self.unasked(&image, &node, &owner, change.at_ms));
            }
        }
        for (place, until_ms) in &mut self.listed {
            if place.1 == node && !listed.contains(place) {
                until_ms.get_or_insert(change.at_ms);
            }
        }
        self.listed.extend(listed.into_iter().map(|place| (place, None)));
        let known = begun(&before);
        for (image, version) in begun(&change.object) {
            let place = (image.clone(), node.clone(), version);
            let lately = self.listed.get(&place);
            let asked =
                lately.is_some_and(|until_ms| until_ms.is_none_or(|at_ms| change.at_ms - at_ms < LATE_MS));
            if !asked && !known.contains(&(image.clone(), version)) {
                faults.push(format!("pulls {image}, which is not listed"));
            }
        }
        faults
    }

    /// The fault of a job that has an image listed for a node.
    fn unasked(&self, image: &str, node: &str, owner: &str, at_ms: i64) -> Option<String> {
        let lists = |why: &str| Some(format!("lists {image} for {why}"));
        let Some(job) = self.jobs.get(owner) else {
            return lists("a job that is not there");
        };
        let late = |since_ms: Option<i64>| since_ms.is_some_and(|since_ms| at_ms - since_ms > LATE_MS);
        if text(&job.object, "/spec/image") != image {
            return lists(&format!("{}, which wants another image", job.name));
        }
        if !job.selects(node) {
            return lists(&format!("{}, which wants it on other nodes", job.name));
        }
        if late(job.ended_ms) || late(job.gone_ms) {
            return lists(&format!("{}, which is over", job.name));
        }
        None
    }

    /// The errors at the end.
    fn at_rest(&self) -> Vec<String> {
        let mut out = Vec::new();
        let there = || self.jobs.values().filter(|job| job.gone_ms.is_none());
        for job in there() {
            let count = |field: &str| number(&job.object, &format!("/status/{field}"));
            let (desired, succeeded, failed) = (count("desired"), count("succeeded"), count("failed"));
            if succeeded + failed != desired || job.ends() && job.ended_ms.is_none() {
                let done = succeeded + failed;
                out.push(format!("at the end {} has {done} of {desired} nodes", job.name));
            }
            let excused = text(&job.object, "/spec/image") == MISSING
                || job
                    .object
                    .pointer("/spec/completionPolicy/activeDeadlineSeconds")
                    .is_some();
            if failed > 0 && !excused {
                out.push(format!("at the end {} has failed on {failed} nodes", job.name));
            }
            if job.ttl_s().is_some() && job.ended_ms.is_some() {
                out.push(format!(
                    "at the end {} is there, though its time to live is over",
                    job.name
                ));
            }
        }
        let stays = |owner: &String| {
            let job = self.jobs.get(owner).filter(|job| job.gone_ms.is_none());
            job.is_some_and(|job| !job.ends() || job.ended_ms.is_none())
        };
        for (node, images) in &self.nodes {
            for (image, tag) in tags(images) {
                // A tag lives as long as the first of its jobs says, which may be one that never ends.
                let is_due = number(tag, "/pullPolicy/ttlSecondsAfterFinished") < DROPPED_S;
                if is_due && !owners(tag).any(|owner| stays(&owner)) {
                    out.push(format!("at the end {node} lists {image} for nobody"));
                }
            }
        }
        out
    }
}

/// The differences between the list job at the end, and a job for so many images that goes on; without them it should have ended.
pub(super) fn unlike(job: &Value, images: Option<i64>) -> Vec<String> {
    let count = |field: &str| number(job, &format!("/status/{field}"));
    let (desired, completed) = (count("desired"), count("completed"));
    match images {
        None if text(job, "/status/completionTime").is_empty() => {
            vec![format!("at the end the list has {completed} of {desired} images")]
        }
        Some(images) if desired != images || completed != images => {
            vec![format!(
                "at the end the list has {completed} of {desired} images, not {images}"
            )]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
