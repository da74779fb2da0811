//! Which writes the webhooks are asked about.

/// Whether a webhook changes objects or only refuses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookKind {
    /// May answer with a patch.
    Mutating,
    /// May only allow or refuse.
    Validating,
}

/// One webhook of the installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name, which the server quotes in refusals.
    pub name: &'static str,
    /// Its path.
    pub path: &'static str,
    /// What it may do.
    pub kind: WebhookKind,
    /// API groups; the empty one is the core group.
    pub groups: &'static [&'static str],
    /// API versions.
    pub versions: &'static [&'static str],
    /// Resources.
    pub resources: &'static [&'static str],
    /// `CREATE`, `UPDATE`, `DELETE`.
    pub operations: &'static [&'static str],
}

pub(super) const MUTATE_POD: &str = "/mutate-pod";
pub(super) const MUTATE_CLONESET: &str = "/mutate-apps-kruise-io-v1alpha1-cloneset";
pub(super) const VALIDATE_CLONESET: &str = "/validate-apps-kruise-io-v1alpha1-cloneset";

/// The webhooks, with the names and paths of OpenKruise's installation.
#[must_use]
pub fn rules() -> Vec<Rule> {
    let cloneset = |name, path, kind, operations| Rule {
        name,
        path,
        kind,
        groups: &["apps.kruise.io"],
        versions: &["v1alpha1"],
        resources: &["clonesets"],
        operations,
    };
    vec![
        Rule {
            name: "mpod.kb.io",
            path: MUTATE_POD,
            kind: WebhookKind::Mutating,
            groups: &[""],
            versions: &["v1"],
            resources: &["pods"],
            operations: &["CREATE"],
        },
        cloneset(
            "mcloneset.kb.io",
            MUTATE_CLONESET,
            WebhookKind::Mutating,
            &["CREATE", "UPDATE"],
        ),
        cloneset(
            "vcloneset.kb.io",
            VALIDATE_CLONESET,
            WebhookKind::Validating,
            &["CREATE", "UPDATE", "DELETE"],
        ),
    ]
}
