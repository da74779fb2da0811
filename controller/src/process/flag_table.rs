//! The table of flags: OpenKruise 1.9.0's, and this manager's own. Those of a kind are in its room.

use crate::workloads::{ALL, Flag, Takes};

/// The purpose of a flag that steers nothing here.
const UNUSED: &str = "taken and not used";
/// The purpose of a flag for the workers of a kind that this manager has no controller for.
const WORKERS_UNUSED: &str = "how many objects of the kind are worked on at a time; taken and not used";

/// The flags that this manager has and OpenKruise's has not.
const OWN: [Flag; 5] = [
    (
        "install",
        Takes::Truth,
        "false",
        "apply definitions, roles, Service, Secret and webhook configurations first",
    ),
    (
        "webhook-url",
        Takes::Text,
        "",
        "where the API server reaches the webhooks of a manager outside of the cluster",
    ),
    (
        "check-uninstall",
        Takes::Truth,
        "false",
        "fail if there are workloads whose pods would go with their definitions, and do nothing else",
    ),
    (
        "version",
        Takes::Truth,
        "false",
        "print the version, the commit, and the versions of OpenKruise and Kubernetes",
    ),
    ("help", Takes::Truth, "false", "print this"),
];

/// The flags of OpenKruise 1.9.0 that steer something here.
const USED: [Flag; 14] = [
    (
        "kubeconfig",
        Takes::Text,
        "",
        "the kubeconfig to use outside of a cluster",
    ),
    ("namespace", Takes::Text, "", "look at this namespace alone"),
    (
        "metrics-addr",
        Takes::Text,
        ":8080",
        "the address of the metrics; 0 for none",
    ),
    (
        "health-probe-addr",
        Takes::Text,
        ":8000",
        "the address of healthz and readyz; 0 for none",
    ),
    (
        "enable-leader-election",
        Takes::Truth,
        "true",
        "act only while holding the lease",
    ),
    (
        "leader-election-namespace",
        Takes::Text,
        "kruise-system",
        "where the lease is",
    ),
    (
        "leader-election-id",
        Takes::Text,
        "kruise-manager",
        "the name of the lease",
    ),
    (
        "leader-election-lease-duration",
        Takes::Duration,
        "15s",
        "for how long a lease holds that is not renewed",
    ),
    (
        "leader-election-renew-deadline",
        Takes::Duration,
        "10s",
        "for how long a leader tries to renew",
    ),
    (
        "leader-election-retry-period",
        Takes::Duration,
        "2s",
        "how often a lease is tried",
    ),
    (
        "leader-election-resource-lock",
        Takes::Text,
        "leases",
        "the kind of the lock; leases is the only one",
    ),
    ("feature-gates", Takes::Gates, "", "Name=true,Other=false"),
    (
        "rate-limiter-base-delay",
        Takes::Duration,
        "5ms",
        "the first delay after a failure",
    ),
    (
        "rate-limiter-max-delay",
        Takes::Duration,
        "16m40s",
        "the longest delay after failures",
    ),
];

/// The flags of logging that steer something here.
const LOGGING: [Flag; 2] = [
    (
        "v",
        Takes::Level,
        "0",
        "how much to log: 0 to 3 as it is, from 4 on more",
    ),
    ("logging-format", Takes::Format, "text", "text or json"),
];

/// The flags of OpenKruise 1.9.0 that steer nothing here. They are taken, so that its chart runs this manager.
const NOT_USED: [(&str, Takes, &str); 14] = [
    ("allow-privileged", Takes::Truth, "true"),
    ("controller-cache-sync-timeout", Takes::Duration, "2m0s"),
    ("disable-no-deepcopy", Takes::Truth, "false"),
    ("enable-pprof", Takes::Truth, "true"),
    ("expectation-timeout", Takes::Duration, "5m0s"),
    ("pprof-addr", Takes::Text, ":8090"),
    ("protection-log-path", Takes::Text, "/log"),
    ("rate-limiter-bucket-size", Takes::Number, "100"),
    ("rate-limiter-qps", Takes::Number, "10"),
    ("rest-config-burst", Takes::Number, "50"),
    ("rest-config-qps", Takes::Number, "30"),
    ("sync-period", Takes::Text, ""),
    ("webhook-initialize-timeout", Takes::Duration, "1m0s"),
    (
        "ws-enabled-versioned-status",
        Takes::Text,
        "deployment,replicaset",
    ),
];

/// The flags of Go's logging libraries that steer nothing here, of the manager and of the daemon.
const LOGGING_NOT_USED: [(&str, Takes, &str); 17] = [
    ("add_dir_header", Takes::Truth, "false"),
    ("alsologtostderr", Takes::Truth, "false"),
    ("log-flush-frequency", Takes::Duration, "5s"),
    ("log-json-info-buffer-size", Takes::Unread, "0"),
    ("log-json-split-stream", Takes::Truth, "false"),
    ("log-text-info-buffer-size", Takes::Unread, "0"),
    ("log-text-split-stream", Takes::Truth, "false"),
    ("log_backtrace_at", Takes::Unread, ":0"),
    ("log_dir", Takes::Text, ""),
    ("log_file", Takes::Text, ""),
    ("log_file_max_size", Takes::Unsigned, "1800"),
    ("logtostderr", Takes::Truth, "true"),
    ("one_output", Takes::Truth, "false"),
    ("skip_headers", Takes::Truth, "false"),
    ("skip_log_headers", Takes::Truth, "false"),
    ("stderrthreshold", Takes::Unread, "2"),
    ("vmodule", Takes::Unread, ""),
];

/// The flags of logging that a program of OpenKruise has.
pub fn logging() -> impl Iterator<Item = Flag> {
    LOGGING.into_iter().chain(unused(LOGGING_NOT_USED))
}

/// Flags that steer nothing here.
pub fn unused<const N: usize>(flags: [(&'static str, Takes, &'static str); N]) -> impl Iterator<Item = Flag> {
    flags
        .into_iter()
        .map(|(name, takes, default)| (name, takes, default, UNUSED))
}

/// The flags of OpenKruise 1.9.0 for the workers of the kinds that are not CloneSets; three is the default. Those of kinds that
/// have a room here are that room's.
const WORKERS: [&str; 15] = [
    "advancedcronjob-workers",
    "broadcastjob-workers",
    "crr-workers",
    "daemonset-workers",
    "imagepulljob-workers",
    "nodeimage-workers",
    "nodepodprobe-workers",
    "persistentpodstate-workers",
    "podprobemarker-workers",
    "podunavailablebudget-workers",
    "resourcedistribution-workers",
    "sidecarset-workers",
    "sidecarterminator-workers",
    "uniteddeployment-workers",
    "workloadspread-workers",
];

/// The flags of the kinds that this manager has controllers for.
pub(super) fn of_kinds() -> impl Iterator<Item = Flag> {
    ALL.iter().flat_map(|workload| workload.all_flags())
}

/// Every flag.
pub(super) fn flags() -> impl Iterator<Item = Flag> {
    let without_controller = |name: &&str| of_kinds().all(|(known, _, _, _)| known != *name);
    OWN.into_iter()
        .chain(USED)
        .chain(of_kinds())
        .chain(unused(NOT_USED))
        .chain(logging())
        .chain(
            WORKERS
                .into_iter()
                .filter(without_controller)
                .map(|name| (name, Takes::Number, "3", WORKERS_UNUSED)),
        )
}
