//! Names of CustomResourceDefinitions: no two of one group may share any, and the first has them.

use std::sync::Arc;

use machinery::meta::at;
use machinery::patch::apply::{FieldSet, Operation, track_update};
use machinery::types;
use rules::strategy::crd;
use shared_json::Value;
use store::{Change, GroupResource, Stored};

use crate::server::ServerState;

/// How many definitions one write may change.
const ROUNDS_MAX: usize = 16;

/// The server itself owns the parts of the status about names.
fn own(old: &Value, value: &mut Value, now: &str) {
    let (group, version) = ("apiextensions.k8s.io", "v1");
    let Some(schema) = types::builtin((group, version, "CustomResourceDefinition")) else {
        return;
    };
    let operation = Operation {
        manager: "kube-apiserver",
        api_version: &format!("{group}/{version}"),
        subresource: "status",
        now,
        reset_fields: &FieldSet::default(),
        versions: None,
    };
    track_update(&schema, Some(old), value, &operation);
}

/// Says in the definitions of a group which names they have got, and serves those that have got theirs. The real server does so
/// a moment after a definition was written or removed.
pub(super) fn settle(state: &ServerState, group: &str) {
    let table = GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions");
    // What one gives up another may take; each round changes one of them.
    for _ in 0..ROUNDS_MAX {
        let Ok(all) = state.store.list(&table, None, None, None) else {
            return;
        };
        let of_group =
            |stored: &&Arc<Stored>| at(&stored.value, "spec.group").is_some_and(|own| own == group);
        let definitions: Vec<&Arc<Stored>> = all.items.iter().filter(of_group).collect();
        let mut changed = false;
        for stored in &definitions {
            let others = definitions.iter().filter(|other| other.key != stored.key);
            let taken: Vec<&Value> = others
                .filter_map(|other| at(&other.value, "status.acceptedNames"))
                .collect();
            let now = state.now();
            let Some(mut value) = crd::settled(&stored.value, &taken, &now) else {
                continue;
            };
            own(&stored.value, &mut value, &now);
            // It was read when it was written.
            let _defined = state.registry.define(&value, state.store.revision());
            let written = state
                .store
                .commit(&table, &stored.key, Some(stored.revision), Change::Put(value));
            changed |= written.is_ok();
            if changed {
                break;
            }
        }
        if !changed {
            return;
        }
    }
}

/// The table of the custom resource that a definition defines.
pub(super) fn defined_table(definition: &Value) -> GroupResource {
    let text = |path: &str| at(definition, path).and_then(Value::as_str).unwrap_or_default();
    GroupResource::new(text("spec.group"), text("spec.names.plural"))
}
