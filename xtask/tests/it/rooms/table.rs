//! The rule: the allowed imports of each crate, and within some crates of each top-level module.

/// A crate.
pub(super) struct Crate {
    /// Its name.
    pub name: &'static str,
    /// The crates of the workspace that it may import.
    pub imports: &'static [&'static str],
    /// The allowed imports among its top-level modules; without rows there is no rule.
    pub modules: &'static [(&'static str, &'static [&'static str])],
}

const fn row(name: &'static str, imports: &'static [&'static str]) -> Crate {
    Crate {
        name,
        imports,
        modules: &[],
    }
}

/// From the bottom up: a crate stands below all that it imports.
pub(super) const CRATES: &[Crate] = &[
    row("shared-json", &[]),
    row("client-kit", &["shared-json"]),
    row("cri", &[]),
    row("kruise-api", &[]),
    row("seeded-entropy", &["client-kit"]),
    row("pod-rules", &["shared-json"]),
    row("go-dump", &["client-kit", "shared-json"]),
    Crate {
        name: "machinery",
        imports: &["pod-rules", "shared-json"],
        modules: &[
            ("cel", &["pattern", "types"]),
            ("finalizers", &[]),
            ("go_json", &[]),
            ("keys", &[]),
            ("meta", &["keys"]),
            ("patch", &["types"]),
            ("pattern", &[]),
            ("placement", &["meta", "selector", "types"]),
            ("protobuf", &["types", "wire"]),
            ("quota", &["meta", "placement", "types"]),
            ("selector", &["status"]),
            ("status", &["keys"]),
            ("types", &["go_json", "pattern"]),
            ("user", &[]),
            ("wire", &[]),
        ],
    },
    row("network", &["client-kit", "machinery", "shared-json"]),
    row("pki", &["client-kit"]),
    row("node-access", &["shared-json"]),
    row("store", &["client-kit", "machinery", "shared-json"]),
    row("rules", &["machinery", "pki", "pod-rules", "shared-json"]),
    row(
        "controllers",
        &[
            "client-kit",
            "go-dump",
            "machinery",
            "pki",
            "pod-rules",
            "shared-json",
        ],
    ),
    row(
        "nodes",
        &["client-kit", "machinery", "network", "node-access", "shared-json"],
    ),
    row(
        "server",
        &[
            "client-kit",
            "machinery",
            "network",
            "node-access",
            "pki",
            "pod-rules",
            "rules",
            "shared-json",
            "store",
        ],
    ),
    row(
        "fake-apiserver",
        &[
            "client-kit",
            "controllers",
            "cri",
            "go-dump",
            "machinery",
            "network",
            "nodes",
            "pki",
            "pod-rules",
            "server",
            "shared-json",
            "store",
        ],
    ),
    row(
        "kruise-kit",
        &["client-kit", "kruise-api", "pod-rules", "shared-json"],
    ),
    row(
        "kruise-pods",
        &[
            "client-kit",
            "go-dump",
            "kruise-api",
            "kruise-kit",
            "pod-rules",
            "shared-json",
        ],
    ),
    row(
        "controller",
        &[
            "client-kit",
            "go-dump",
            "kruise-api",
            "kruise-kit",
            "kruise-pods",
            "pod-rules",
            "shared-json",
        ],
    ),
    row(
        "kruise-cluster",
        &["client-kit", "controller", "fake-apiserver", "shared-json"],
    ),
    row(
        "conformance",
        &[
            "client-kit",
            "controller",
            "fake-apiserver",
            "kruise-cluster",
            "shared-json",
        ],
    ),
    row("kruise-daemon", &["client-kit", "controller", "cri"]),
    row(
        "containerd-proof",
        &["client-kit", "controller", "cri", "fake-apiserver"],
    ),
    row(
        "xtask",
        &[
            "client-kit",
            "conformance",
            "controller",
            "fake-apiserver",
            "kruise-cluster",
            "seeded-entropy",
        ],
    ),
];

/// The imports that are allowed in tests alone.
pub(super) const IN_TESTS: &[(&str, &str)] = &[
    ("machinery", "client-kit"),
    ("fake-apiserver", "seeded-entropy"),
    ("conformance", "seeded-entropy"),
    ("kruise-cluster", "kruise-api"),
    ("kruise-daemon", "fake-apiserver"),
];
