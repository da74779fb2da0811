//! The only place that masks values which differ between runs.
//!
//! * Node names: which node a pod goes to depends on how many there are. They become `<node>`.
//! * How long an image took to pull, and its size.
//! * The count of `ScaleUpLimited`: it says how often the controller happened to look (5 in the tutorial, 11 and 9 in
//!   the recordings). So does that of `NoPods`, and that of `PubPreventPodDeletion`, since a controller asks once a second. That of
//!   `FailedScheduling`, likewise, says how often the scheduler tried (1 to 3 for pods of one set).
//!   That of `Paused` and `Continue` of a job that a failed pod has paused says how often the controller looked.
//! * The object in a `FailedCreate`, which holds uids and times, and how often it was tried.
//! * The messages of a source about an object when it has nearly reached its limit (25 events in a row), some of it in tries of
//!   such a number: then only the first 15 other events are shown.
//! * The order of pods that are created in one burst: OpenKruise creates them in parallel. The order in which the
//!   containers of one pod are killed: the kubelet does that in parallel, too. The order in which pods are deleted one right
//!   after the other: that of pods that are marked is a Go map's. The order of a controller's event about its change of a pod and
//!   the kubelet's about the same change.
//! * How often the kubelet looked for a Secret that is not there (`FailedToRetrieveImagePullSecret`).
//! * Differences by the speed or the setup of the test bed ([`is_of_the_test_bed`]).
//! * The uid of the claim in the name of its volume (`ProvisioningSucceeded`).
//! * The pod's uid in a `FailedPreStopHook`, and in the name of a request that ends sidecars.
//! * The pod's uid in a `BackOff`, and how often the kubelet looked at the container meanwhile.
//! * How often an image that cannot be pulled has been tried, and which of the two reasons in turn the pod shows.
//! * The names of ImagePullJobs that a list has made: they come at once, and their names are drawn.
//! * Container ids, addresses, uids and times are not rendered at all.

use std::borrow::Cow;

use shared_json::Value;

use crate::history::text;

/// Events whose count depends on how often the controller, the scheduler or the kubelet looked or tried.
const COUNT_VARIES: [&str; 9] = [
    "BackOff",
    "Continue",
    "FailedCreate",
    "FailedScheduling",
    "FailedToRetrieveImagePullSecret",
    "NoPods",
    "Paused",
    "PubPreventPodDeletion",
    "ScaleUpLimited",
];

/// A source may write 25 events about one object in a row. When more than so many have been written …
pub(super) const NEARLY_ALL: usize = 22;
/// … and tries are among them, so many of the others are compared.
pub(super) const SAID_MAX: usize = 15;

/// Events that come in any order when several come at once.
const ORDER_VARIES: [&str; 3] = ["SuccessfulCreate", "SuccessfulDelete", "Killing"];

/// Events about one change of a pod: one is the controller's, which made it, the other the kubelet's, which saw it.
const OF_ONE_CHANGE: [&str; 2] = ["Killing", "ResetContainerSucceed"];

/// Events, by their reason and a part of their message, that come from the recordings' test bed: caches, volumes and the node
/// authorizer that were slow on a busy machine, whether the scheduler or the provisioner of volumes was first (the recordings of one
/// step have it either way), volumes that its provisioner cannot delete, a probe that met a container between two lives.
const OF_THE_TEST_BED: [(&str, &str); 7] = [
    ("FailedMount", "failed to sync configmap cache: timed out"),
    ("FailedMount", "no relationship found between node"),
    (
        "FailedMount",
        "node requested token bound to a pod scheduled on a different node",
    ),
    ("FailedMount", "failed to process volumes="),
    ("FailedScheduling", "unbound immediate PersistentVolumeClaims"),
    ("VolumeFailedDelete", "host_path deleter only supports"),
    ("Unhealthy", "probe errored and resulted in unknown state"),
];

/// Events that come again and again: while an image cannot be pulled, a Secret is missing, or a pod cannot be created. How often
/// within a step depends on how soon the first came.
const TOLD_ONCE: [(&str, &str); 4] = [
    ("BackOff", "Back-off pulling image"),
    ("Failed", "Error: ImagePullBackOff"),
    ("FailedCreate", "(combined from similar events)"),
    (
        "FailedToRetrieveImagePullSecret",
        "Unable to retrieve some image pull secrets",
    ),
];

/// An event that the kubelet records at every look at a pod: it may use up the kubelet's limit of events, or nearly.
pub(super) const TOLD_AT_EVERY_LOOK: &str = "FailedToRetrieveImagePullSecret";

fn is_one_of(list: &[(&str, &str)], reason: &str, message: &str) -> bool {
    list.iter()
        .any(|(known, part)| *known == reason && message.contains(part))
}

/// Whether an event says something of the test bed alone.
pub(super) fn is_of_the_test_bed(reason: &str, message: &str) -> bool {
    is_one_of(&OF_THE_TEST_BED, reason, message)
}

/// Whether an event that is seen again says nothing new.
pub(super) fn is_told_once(reason: &str, message: &str) -> bool {
    is_one_of(&TOLD_ONCE, reason, message)
}

/// A waiting container's reason: while an image cannot be pulled there are two, in turn.
pub(super) fn waiting_reason(reason: String) -> String {
    if reason == "ErrImagePull" {
        return "ImagePullBackOff".to_owned();
    }
    reason
}

/// The beginning of the names of requests that end sidecars; the pod's uid follows.
const SIDECARS_END: &str = "sidecar-termination-";

/// The name of an object without the parts that differ from run to run.
pub(super) fn name(name: String) -> String {
    match name.starts_with(SIDECARS_END) {
        true => format!("{SIDECARS_END}<uid>"),
        false => name,
    }
}

/// An event's message without the parts that differ from run to run.
pub(super) fn message<'a>(reason: &str, message: &'a str) -> Cow<'a, str> {
    match reason {
        "Scheduled" => match message.rsplit_once(" to ") {
            Some((head, _)) => format!("{head} to <node>").into(),
            None => message.into(),
        },
        "Pulled" => match message.split_once(" in ") {
            Some((head, _)) if message.starts_with("Successfully pulled") => {
                format!("{head} in <time>").into()
            }
            _ => message.into(),
        },
        "BackOff" => match message.rsplit_once('(') {
            Some((head, uid)) if message.starts_with("Back-off restarting") && uid.ends_with(')') => {
                format!("{head}(<uid>)").into()
            }
            _ => message.into(),
        },
        "FailedPreStopHook" => match message.split_once(" in Pod \"") {
            Some((head, rest)) => match (rest.split_once('('), rest.split_once(')')) {
                (Some((pod, _)), Some((_, tail))) => format!("{head} in Pod \"{pod}(<uid>){tail}").into(),
                _ => message.into(),
            },
            None => message.into(),
        },
        "Killing" => match message.split_once(SIDECARS_END) {
            Some((head, _)) => format!("{head}{SIDECARS_END}<uid>").into(),
            None => message.into(),
        },
        "ProvisioningSucceeded" => match message.split_once(" pvc-") {
            Some((head, _)) => format!("{head} pvc-<uid>").into(),
            None => message.into(),
        },
        "FailedCreate" => {
            let object = [", pod: {", ", pvc: {"]
                .into_iter()
                .find_map(|mark| message.split_once(mark).map(|(head, _)| (head, mark)));
            match object {
                Some((head, mark)) => format!("{head}{mark}…}}").into(),
                None => message.into(),
            }
        }
        _ => message.into(),
    }
}

/// The name of an object without the part that was drawn.
pub(super) fn generated_name(object: &Value) -> String {
    match text(object, "/metadata/generateName") {
        prefix if prefix.is_empty() => text(object, "/metadata/name"),
        prefix => format!("{prefix}*"),
    }
}

/// Whether how often an event comes differs from run to run.
pub(super) fn count_varies(reason: &str) -> bool {
    COUNT_VARIES.contains(&reason)
}

/// How often an event was seen, as far as that is the same in every run.
pub(super) fn count(reason: &str, count: i64) -> String {
    match (count, count_varies(reason)) {
        (_, true) => " (xN)".to_owned(),
        (0 | 1, false) => String::new(),
        (count, false) => format!(" (x{count})"),
    }
}

/// Deletions further apart than this are not those of one pass.
const PASS_MS_MAX: i64 = 300;

/// Whether neighbouring events of these reasons, so many milliseconds apart, have no order.
pub(super) fn is_unordered([one, other]: [&str; 2], apart_ms: i64) -> bool {
    if one != other {
        return [one, other].iter().all(|reason| OF_ONE_CHANGE.contains(reason));
    }
    ORDER_VARIES.contains(&one) && (one != "SuccessfulDelete" || apart_ms <= PASS_MS_MAX)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    #[rstest]
    #[case::hook(
        "FailedPreStopHook",
        "Exec lifecycle hook ([a (b)]) for Container \"c\" in Pod \"p_n(u-1)\" failed - error: (x)",
        "Exec lifecycle hook ([a (b)]) for Container \"c\" in Pod \"p_n(<uid>)\" failed - error: (x)"
    )]
    #[case::hook_of_the_kubelet("FailedPreStopHook", "PreStopHook failed", "PreStopHook failed")]
    #[case::sidecar(
        "Killing",
        "Stopping container s by ContainerRecreateRequest sidecar-termination-u-1",
        "Stopping container s by ContainerRecreateRequest sidecar-termination-<uid>"
    )]
    #[case::request(
        "Killing",
        "Stopping container s by ContainerRecreateRequest r",
        "Stopping container s by ContainerRecreateRequest r"
    )]
    fn messages(#[case] reason: &str, #[case] message: &str, #[case] expect: &str) {
        assert_eq!(super::message(reason, message), expect);
    }
}
