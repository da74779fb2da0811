//! The owners that are known to be gone: pure.

use std::collections::VecDeque;

use super::graph::{Node, Owner};

/// How many owners are remembered (as many as the real collector remembers).
const OWNERS_MAX: usize = 500;

/// An object that once existed, or that a reference names though it never did.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    uid: String,
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

/// Owners that were seen to be deleted or looked up in vain. A uid is never given twice, so an owner that is gone stays gone, and its
/// dependents are deleted even when its kind is not served any more.
#[derive(Debug, Default)]
pub(super) struct Absent {
    /// The one that was added last is the last.
    owners: VecDeque<Identity>,
}

impl Absent {
    /// Remembers an object of the graph that was deleted.
    pub(super) fn add(&mut self, uid: &str, node: &Node) {
        self.remember(Identity {
            uid: uid.to_owned(),
            group: node.kind.group.clone(),
            kind: node.kind.kind.clone(),
            namespace: node.namespace.to_string(),
            name: node.name.to_string(),
        });
    }

    /// Remembers an owner that does not exist in `namespace`, which is empty for a kind without namespaces.
    pub(super) fn add_owner(&mut self, owner: &Owner, namespace: &str) {
        self.remember(identity(owner, namespace));
    }

    /// Whether the owner that a dependent in `namespace` names is known to be gone.
    pub(super) fn contains(&self, owner: &Owner, namespace: &str) -> bool {
        let named = identity(owner, namespace);
        self.owners.iter().any(|gone| {
            let of_namespace = gone.namespace.is_empty() || gone.namespace == named.namespace;
            of_namespace
                && (&gone.uid, &gone.group, &gone.kind, &gone.name)
                    == (&named.uid, &named.group, &named.kind, &named.name)
        })
    }

    fn remember(&mut self, identity: Identity) {
        self.owners.retain(|known| *known != identity);
        self.owners.push_back(identity);
        if self.owners.len() > OWNERS_MAX {
            self.owners.pop_front();
        }
    }
}

fn identity(owner: &Owner, namespace: &str) -> Identity {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    Identity {
        uid: owner.uid.clone(),
        group: group.to_owned(),
        kind: owner.kind.clone(),
        namespace: namespace.to_owned(),
        name: owner.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use shared_json::Value;

    use super::*;

    fn owner(api_version: &str, name: &str, uid: &str) -> Owner {
        Owner {
            uid: uid.to_owned(),
            api_version: api_version.to_owned(),
            kind: "CloneSet".to_owned(),
            name: name.to_owned(),
            blocks: true,
            entry: Value::Null,
        }
    }

    #[test]
    fn an_owner_is_known_by_all_that_a_reference_says() {
        let mut absent = Absent::default();
        absent.add_owner(&owner("apps.kruise.io/v1alpha1", "a", "1"), "x");
        absent.add_owner(&owner("apps.kruise.io/v1alpha1", "b", "2"), "");
        let check = |api_version: &str, name: &str, uid: &str, namespace: &str, expected: bool| {
            let found = absent.contains(&owner(api_version, name, uid), namespace);
            assert_eq!(found, expected, "{api_version} {name} {uid} {namespace}");
        };
        check("apps.kruise.io/v1alpha1", "a", "1", "x", true);
        check("apps.kruise.io/v1beta1", "a", "1", "x", true);
        check("apps.kruise.io/v1alpha1", "a", "1", "y", false);
        check("apps.kruise.io/v1alpha1", "a", "3", "x", false);
        check("apps.kruise.io/v1alpha1", "c", "1", "x", false);
        check("v1", "a", "1", "x", false);
        check("apps.kruise.io/v1alpha1", "b", "2", "y", true);
    }

    #[test]
    fn the_oldest_owners_are_forgotten() {
        let mut absent = Absent::default();
        for uid in 0..=OWNERS_MAX {
            absent.add_owner(&owner("v1", "a", &uid.to_string()), "x");
        }
        let known = |uid: usize| absent.contains(&owner("v1", "a", &uid.to_string()), "x");
        assert_eq!((known(0), known(1), known(OWNERS_MAX)), (false, true, true));
    }
}
