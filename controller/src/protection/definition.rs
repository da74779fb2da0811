//! CustomResourceDefinitions that have objects.

use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use serde_json::Value;

use super::CASCADING_GATE;
use crate::kit::admission::{Refusal, Request};
use crate::kit::protection::{Protection, protected};
use crate::metrics::Family;

/// The metric of refusals.
pub(super) const REFUSALS: Family = (
    "crd_deletion_protection",
    "counter",
    "Number of times that a CustomResourceDefinition was protected from deletion",
);

/// Answers the deletion of a CustomResourceDefinition.
///
/// # Errors
/// The refusal.
pub(super) async fn answer(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let Some((definition, protection)) = protected(request) else {
        return Ok(None);
    };
    let refusal = match protection {
        Protection::Always => Some(protection.refusal()),
        Protection::Cascading if !request.surroundings.gates.is_on(CASCADING_GATE) => {
            Some(format!("feature-gate {CASCADING_GATE} is not enabled"))
        }
        Protection::Cascading => in_use(definition, request).await,
    };
    let Some(text) = refusal else { return Ok(None) };
    let pairs = [("name", request.name), ("username", request.user)];
    request.surroundings.metrics.add(REFUSALS.0, &pairs, 1.0);
    Err(Refusal::new(403, text))
}

/// The resource that a definition stores.
fn stored(definition: &Value) -> ApiResource {
    let text = |pointer: &str| {
        let text = definition.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let stored = versions
        .into_iter()
        .flatten()
        .find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let version = stored
        .and_then(|version| version.get("name")?.as_str())
        .unwrap_or_default();
    let group = text("/spec/group");
    ApiResource {
        api_version: format!("{group}/{version}"),
        version: version.to_owned(),
        kind: text("/spec/names/kind"),
        plural: text("/spec/names/plural"),
        group,
    }
}

/// Why a definition that has objects stays.
async fn in_use(definition: &Value, request: &Request<'_>) -> Option<String> {
    let client = request.surroundings.client.as_ref()?;
    let resource = stored(definition);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    match api.list_metadata(&ListParams::default()).await {
        Ok(list) => {
            let ends = list
                .items
                .iter()
                .map(|object| object.metadata.deletion_timestamp.is_some());
            refusal(ends)
        }
        Err(error) => {
            let ApiResource {
                group, version, kind, ..
            } = resource;
            Some(format!(
                "failed to list CRs of {group}/{version}, Kind={kind}: {error}"
            ))
        }
    }
}

/// The refusal for a definition with objects of which each ends or not.
fn refusal(ends: impl Iterator<Item = bool>) -> Option<String> {
    let active = ends.filter(|ends| !ends).count();
    (active > 0).then(|| format!("{} and active CRs {active}>0", Protection::Cascading.refusal()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::row_18(&[true], None)]
    #[case::row_19(&[false, false], Some(2))]
    #[case::none(&[], None)]
    fn what_keeps_a_definition(#[case] ends: &[bool], #[case] want: Option<usize>) {
        let want = want.map(|count| {
            format!("forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and active CRs {count}>0")
        });
        assert_eq!(refusal(ends.iter().copied()), want);
    }

    #[test]
    fn objects_are_listed_in_the_version_that_is_stored() {
        let versions =
            json!([{ "name": "v1alpha1", "storage": false }, { "name": "v1beta1", "storage": true }]);
        let names = json!({ "kind": "Thing", "plural": "things" });
        let found =
            stored(&json!({ "spec": { "group": "example.com", "names": names, "versions": versions } }));
        assert_eq!(
            (found.api_version.as_str(), found.plural.as_str()),
            ("example.com/v1beta1", "things")
        );
    }
}
