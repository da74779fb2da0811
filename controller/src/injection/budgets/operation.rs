//! The operations on a pod, and which of them a budget guards.

use crate::api::labels;
use crate::api::v1alpha1::PodUnavailableBudget;

/// An operation on a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// It is deleted.
    Delete,
    /// It is evicted.
    Evict,
    /// It is updated.
    Update,
    /// Its containers get more or less of the node, and nothing else changes.
    Resize,
}

impl Operation {
    const ALL: [Self; 4] = [Self::Delete, Self::Update, Self::Evict, Self::Resize];

    const fn name(self) -> &'static str {
        match self {
            Self::Delete => "DELETE",
            Self::Evict => "EVICT",
            Self::Update => "UPDATE",
            Self::Resize => "RESIZE",
        }
    }

    /// Whether a budget guards pods against the operation. Unless resizes are distinguished from updates, a budget that guards against
    /// updates guards against both.
    pub(super) fn is_guarded(self, budget: &PodUnavailableBudget, tells_resizes: bool) -> bool {
        let annotations = budget.metadata.annotations.as_ref();
        let listed = annotations.and_then(|notes| notes.get(labels::BUDGET_OPERATIONS));
        let names: Vec<&str> = match listed.map_or("", String::as_str) {
            "" => vec!["DELETE", "UPDATE", "EVICT"],
            listed => listed.split(',').collect(),
        };
        let guards = |operation: Self| names.contains(&operation.name());
        guards(self) || (self == Self::Resize && !tells_resizes && guards(Self::Update))
    }
}

/// Whether a text names an operation.
pub(crate) fn is_operation(text: &str) -> bool {
    Operation::ALL.iter().any(|operation| operation.name() == text)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::by_default(None, "DELETE UPDATE EVICT", "DELETE UPDATE EVICT RESIZE")]
    #[case::empty(Some(""), "DELETE UPDATE EVICT", "DELETE UPDATE EVICT RESIZE")]
    #[case::listed(Some("EVICT"), "EVICT", "EVICT")]
    #[case::two(Some("DELETE,RESIZE"), "DELETE RESIZE", "DELETE RESIZE")]
    #[case::updates(Some("UPDATE"), "UPDATE", "UPDATE RESIZE")]
    #[case::untrimmed(Some("DELETE, EVICT"), "DELETE", "DELETE")]
    fn guarded(#[case] annotation: Option<&str>, #[case] telling: &str, #[case] not_telling: &str) {
        let mut budget = PodUnavailableBudget::default();
        budget.metadata.annotations =
            annotation.map(|text| [(labels::BUDGET_OPERATIONS.to_owned(), text.to_owned())].into());
        for (tells, want) in [(true, telling), (false, not_telling)] {
            let guarded = Operation::ALL.iter().filter(|one| one.is_guarded(&budget, tells));
            let names: Vec<&str> = guarded.map(|one| one.name()).collect();
            assert_eq!(names.join(" "), want, "resizes told apart: {tells}");
        }
    }
}
