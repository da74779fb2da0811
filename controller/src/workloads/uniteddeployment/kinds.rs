//! The kinds of workloads that a subset can have.

use crate::api::v1alpha1::{SubsetTemplate, WorkloadTemplate};

/// A kind of workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ChildKind {
    /// Kubernetes' own StatefulSet.
    StatefulSet,
    /// OpenKruise's StatefulSet.
    AdvancedStatefulSet,
    /// OpenKruise's CloneSet.
    CloneSet,
    /// Kubernetes' Deployment.
    Deployment,
}

impl ChildKind {
    /// All of them. Of several templates the first one in this order counts.
    pub(super) const ALL: [Self; 4] = [
        Self::StatefulSet,
        Self::AdvancedStatefulSet,
        Self::CloneSet,
        Self::Deployment,
    ];

    /// The kind of the template; none if there is no template.
    pub(super) fn of(template: &SubsetTemplate) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.template(template).is_some())
    }

    /// The template of this kind.
    pub(super) fn template(self, template: &SubsetTemplate) -> Option<&WorkloadTemplate> {
        match self {
            Self::StatefulSet => template.stateful_set_template.as_ref(),
            Self::AdvancedStatefulSet => template.advanced_stateful_set_template.as_ref(),
            Self::CloneSet => template.clone_set_template.as_ref(),
            Self::Deployment => template.deployment_template.as_ref(),
        }
    }

    /// The field of its template.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::StatefulSet => "statefulSetTemplate",
            Self::AdvancedStatefulSet => "advancedStatefulSetTemplate",
            Self::CloneSet => "cloneSetTemplate",
            Self::Deployment => "deploymentTemplate",
        }
    }

    /// Its name in events and errors.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::StatefulSet => "StatefulSet",
            Self::AdvancedStatefulSet => "AdvancedStatefulSet",
            Self::CloneSet => "CloneSet",
            Self::Deployment => "Deployment",
        }
    }

    /// Its name in the API.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::AdvancedStatefulSet => "StatefulSet",
            kind => kind.word(),
        }
    }

    /// Its group and version.
    pub(super) fn api_version(self) -> &'static str {
        match self {
            Self::StatefulSet | Self::Deployment => "apps/v1",
            Self::AdvancedStatefulSet => "apps.kruise.io/v1beta1",
            Self::CloneSet => "apps.kruise.io/v1alpha1",
        }
    }
}
