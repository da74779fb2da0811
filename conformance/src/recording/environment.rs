//! The test bed of a recording, as far as a run under the same conditions needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::nodes::Timing;
use jiff::Timestamp;
use shared_json::Value;

use super::choices::Choices;
use super::creations::{self, Creations};
use super::load::Recording;
use super::node_speed;
use super::pages::{self, Pages};
use crate::history::{Change, ChangeKind, number, text};

/// The conditions of a recording: the inputs from its test bed, not OpenKruise's own actions.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// The suffixes of the names of pods and of workloads that controllers named, in the order in which these were created, by prefix
    /// (`cs-demo-`).
    pub names: BTreeMap<String, Vec<String>>,
    /// The digests of the images that ran, by reference.
    pub images: BTreeMap<String, String>,
    /// The pages that the images served, as far as they are known.
    pub pages: Pages,
    /// Images that pods asked for and that never ran.
    pub missing: BTreeSet<String>,
    /// How long nodes take to get images that they do not have, by reference.
    pub pulls: BTreeMap<String, Duration>,
    /// The node on which each pod ran.
    pub placements: BTreeMap<String, String>,
    /// How long things took on the nodes for the pods of each name, one after the other.
    pub paces: BTreeMap<String, Vec<Option<Timing>>>,
    /// When the pods were created.
    pub creations: Creations,
    /// The order in which equal pods were taken, if it is known.
    pub choices: Option<Arc<Choices>>,
    /// On how many nodes a job wanted a pod: there were so many, whether they got one or not.
    pub wanted_nodes: u32,
    /// How many processors a node had, where an event says it.
    pub cpus: Option<u32>,
    /// How many nodes had a list of images, where jobs pulled some.
    pub listed_nodes: u32,
    /// When the first step began: times are whole seconds, so that the part of a second counts.
    pub began: Option<Timestamp>,
    /// The feature gates of OpenKruise's manager, as its flag takes them.
    pub gates: String,
    /// Whether OpenKruise's daemon ran on the nodes.
    pub daemon: bool,
}

/// The kinds of jobs that pull images.
const PULL_JOBS: [&str; 2] = ["imagelistpulljobs", "imagepulljobs"];

/// The daemon's annotation on pods.
const DAEMONS_WORD: &str = "/metadata/annotations/apps.kruise.io~1runtime-containers-meta";

/// Whether a change says that the daemon ran: it has annotated a pod, or has begun with a request, or has the result of a probe.
fn is_of_the_daemon(change: &Change) -> bool {
    let word = match &*change.resource {
        "pods" => DAEMONS_WORD,
        "containerrecreaterequests" => "/status/containerRecreateStates",
        "nodepodprobes" => "/status/podProbeStatuses",
        _ => return false,
    };
    change.object.pointer(word).is_some()
}

/// Gates whose default an earlier version had otherwise: the first version with today's default, and the one before.
const EARLIER_DEFAULTS: [((u32, u32), &str); 2] = [
    ((1, 4), "InPlaceUpdateEnvFromMetadata=false"),
    ((1, 9), "ResourcesDeletionProtection=true"),
];

/// The gate that the charts of 1.5 and later switch on.
const OF_THE_CHART: &str = "ImagePullJobGate=true";

/// The feature gates with which today's manager behaves as that of `version` did with `gates`.
fn gates(version: &str, gates: &str) -> String {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return gates.to_owned();
    };
    let mut all: Vec<&str> = EARLIER_DEFAULTS
        .iter()
        .filter(|(since, _)| (major, minor) < *since)
        .map(|(_, gate)| *gate)
        .collect();
    if gates.is_empty() && (major, minor) >= (1, 5) {
        all.push(OF_THE_CHART);
    }
    all.extend(gates.split(',').map(str::trim).filter(|gate| !gate.is_empty()));
    all.join(",")
}

/// The processors of a node, as the server names them when it refuses to resize a pod.
fn processors(message: &str) -> Option<u32> {
    let refusal = message.split_once("enough allocatable resources: cpu, ")?.1;
    let number = refusal.split_once("allocatable: ")?.1;
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    let thousandths: u32 = number[..end].parse().ok()?;
    Some(thousandths / 1000).filter(|processors| *processors > 0)
}

/// The number in the name of a node.
fn node_number(node: &str) -> Option<u32> {
    let digits = node.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.parse().ok()
}

fn containers(pod: &Value) -> impl Iterator<Item = (String, String)> {
    ["/spec/initContainers", "/spec/containers"]
        .into_iter()
        .filter_map(|list| pod.pointer(list)?.as_array())
        .flatten()
        .map(|container| (text(container, "/name"), text(container, "/image")))
}

impl Environment {
    /// How many nodes there were, by the highest number in a node's name and by the wishes of jobs; none if no pod ran.
    #[must_use]
    pub fn nodes(&self) -> Option<u32> {
        let listed = Some(self.listed_nodes).filter(|listed| *listed > 0);
        let placed = self.placements.values().filter_map(|node| node_number(node));
        let highest = placed.chain(listed).max();
        highest.map(|highest| highest.max(self.wanted_nodes))
    }

    /// Reads the conditions out of a recording.
    #[must_use]
    pub fn of(recording: &Recording) -> Self {
        let version = recording.name.split('/').next().unwrap_or_default();
        let mut environment = Self {
            gates: gates(version, &recording.gates),
            paces: node_speed::of(&recording.history),
            creations: creations::of(recording),
            pages: pages::of(&recording.history),
            choices: Some(Choices::of(recording)),
            began: recording.began,
            ..Self::default()
        };
        let mut asked = BTreeSet::new();
        let mut pulls_failed = BTreeSet::new();
        for change in &recording.history {
            if change.resource == "events" && text(&change.object, "/reason") == "Failed" {
                let message = text(&change.object, "/message");
                let image = message
                    .strip_prefix("Failed to pull image \"")
                    .and_then(|rest| rest.split('"').next());
                pulls_failed.extend(image.map(str::to_owned));
            }
            if change.resource == "events" {
                let message = text(&change.object, "/message");
                environment.cpus = environment.cpus.or_else(|| processors(&message));
            }
            if change.resource == "broadcastjobs" {
                let wanted = number(&change.object, "/status/desired");
                let wanted = u32::try_from(wanted).unwrap_or_default();
                environment.wanted_nodes = environment.wanted_nodes.max(wanted);
            }
            environment.daemon |= is_of_the_daemon(change);
            if change.resource != "pods" {
                environment.note_name(change);
                continue;
            }
            let name = change.name();
            if change.kind == ChangeKind::Added
                && let Some((prefix, suffix)) = name.rsplit_once('-')
            {
                // A name that comes again is that of a claim that was left, and is not handed out.
                let names = environment.names.entry(format!("{prefix}-")).or_default();
                if !names.iter().any(|known| known == suffix) {
                    names.push(suffix.to_owned());
                }
            }
            let node = text(&change.object, "/spec/nodeName");
            if !node.is_empty() {
                environment.placements.insert(name.clone(), node);
            }
            for (container, image) in containers(&change.object) {
                if let Some(digest) = digest(&change.object, &container, &image) {
                    environment.images.insert(image.clone(), digest);
                }
                asked.insert(image);
            }
        }
        let pulls = |change: &Change| PULL_JOBS.contains(&change.resource.as_str());
        if recording.history.iter().any(pulls) {
            environment.daemon = true;
            environment.sort_jobs_of_lists(&recording.history);
            let lists = recording
                .history
                .iter()
                .filter(|change| change.resource == "nodeimages");
            for list in lists {
                let number = node_number(&list.name()).unwrap_or_default();
                environment.listed_nodes = environment.listed_nodes.max(number);
                for (image, tag) in tags(&list.object) {
                    environment.note_tag(&image, tag);
                }
            }
        }
        let mut missing: BTreeSet<String> = asked
            .into_iter()
            .filter(|image| pulls_failed.contains(image) && !environment.images.contains_key(image))
            .collect();
        environment.missing.append(&mut missing);
        environment
    }

    /// Puts the names of the jobs that a list of images made at once into the order of its images, in which a run makes them.
    fn sort_jobs_of_lists(&mut self, history: &[Change]) {
        let added = |resource: &str| {
            let resource = resource.to_owned();
            let is_added =
                move |change: &&Change| change.kind == ChangeKind::Added && change.resource == resource;
            history.iter().filter(is_added)
        };
        for list in added("imagelistpulljobs") {
            let images = list.object.pointer("/spec/images").and_then(Value::as_array);
            let images: Vec<&str> = images.into_iter().flatten().filter_map(Value::as_str).collect();
            let prefix = format!("{}-", list.name());
            let place = |suffix: &String| {
                let job = added("imagepulljobs").find(|job| job.name() == format!("{prefix}{suffix}"))?;
                let image = text(&job.object, "/spec/image");
                images.iter().position(|listed| *listed == image)
            };
            if let Some(names) = self.names.get_mut(&prefix) {
                names.sort_by_key(|suffix| place(suffix).unwrap_or(usize::MAX));
            }
        }
    }

    /// The entry in a node's list for an image that a job pulled there.
    fn note_tag(&mut self, image: &str, tag: &Value) {
        let reference = format!("{image}:{}", text(tag, "/tag"));
        if text(tag, "/phase") == "Failed" {
            self.missing.insert(reference);
        } else if let Some((_, digest)) = text(tag, "/imageID").split_once('@') {
            self.images.entry(reference).or_insert_with(|| digest.to_owned());
        }
    }

    /// The name of an object other than a pod, if it was made up.
    fn note_name(&mut self, change: &Change) {
        let prefix = text(&change.object, "/metadata/generateName");
        let name = change.name();
        let suffix = name.strip_prefix(&prefix).filter(|_| !prefix.is_empty());
        if let (ChangeKind::Added, Some(suffix)) = (change.kind, suffix) {
            self.names.entry(prefix).or_default().push(suffix.to_owned());
        }
    }
}

/// The tags in the status of a list of images, with their images.
fn tags(list: &Value) -> Vec<(String, &Value)> {
    let images = list.pointer("/status/imageStatuses").and_then(Value::as_object);
    let images = images.into_iter().flat_map(|images| images.iter());
    images
        .flat_map(|(name, image)| {
            let tags = image.get("tags").and_then(Value::as_array).into_iter().flatten();
            tags.map(move |tag| (name.to_string(), tag))
        })
        .collect()
}

/// The digest under which a container runs `image`.
fn digest(pod: &Value, container: &str, image: &str) -> Option<String> {
    let status = ["/status/initContainerStatuses", "/status/containerStatuses"]
        .into_iter()
        .filter_map(|list| pod.pointer(list)?.as_array())
        .flatten()
        .find(|status| text(status, "/name") == container)?;
    ["/state/running", "/state/terminated"]
        .into_iter()
        .find_map(|state| status.pointer(state))?;
    let shown = text(status, "/image");
    let same = shown == image || shown.ends_with(&format!("/{image}"));
    let (_, digest) = status.get("imageID")?.as_str()?.split_once('@')?;
    same.then(|| digest.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1.9.0", "A=true,B=false", "A=true,B=false")]
    #[case("1.5.0", "A=true", "ResourcesDeletionProtection=true,A=true")]
    #[case(
        "1.0.1",
        "",
        "InPlaceUpdateEnvFromMetadata=false,ResourcesDeletionProtection=true"
    )]
    #[case(
        "1.0.1",
        "InPlaceUpdateEnvFromMetadata=true\n",
        "InPlaceUpdateEnvFromMetadata=false,ResourcesDeletionProtection=true,InPlaceUpdateEnvFromMetadata=true"
    )]
    #[case("1.5.0", "", "ResourcesDeletionProtection=true,ImagePullJobGate=true")]
    #[case("1.9.0", "", "ImagePullJobGate=true")]
    #[case("mine", "A=true", "A=true")]
    fn gates_of_a_version(#[case] version: &str, #[case] given: &str, #[case] expected: &str) {
        assert_eq!(gates(version, given), expected);
    }

    const REFUSED: &str = "pods \"p\" is forbidden: node didn't have enough allocatable resources: ";

    #[rstest]
    #[case::cpu("cpu, requested: 199000, allocatable: 2000", Some(2))]
    #[case::and_memory(
        "cpu, requested: 199000, allocatable: 8000; memory, requested: 2, allocatable: 1",
        Some(8)
    )]
    #[case::memory_alone("memory, requested: 2, allocatable: 1", None)]
    #[case::no_number("cpu, requested: 199000, allocatable: some", None)]
    #[case::less_than_one("cpu, requested: 199000, allocatable: 500", None)]
    fn processors_of_a_node(#[case] why: &str, #[case] expected: Option<u32>) {
        assert_eq!(processors(&format!("{REFUSED}{why}")), expected);
    }
}
