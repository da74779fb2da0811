//! The CustomResourceDefinitions of OpenKruise 1.9.0.

use serde_json::Value;

/// The definition of ImagePullJob.
const IMAGE_PULL_JOBS: &str = include_str!("../../fixtures/crds/imagepulljobs.apps.kruise.io.json");

/// The definitions that every installation has.
const ALWAYS: [&str; 1] = [include_str!("../../fixtures/crds/clonesets.apps.kruise.io.json")];

/// The definitions that a feature gate needs: the gate's name, and the definition. The gates for downloads of images switch
/// `ImagePullJobGate` on, so they bring its definitions, too.
const OF_GATES: [(&str, &str); 1] = [("ImagePullJobGate", IMAGE_PULL_JOBS)];

/// The definitions as they are installed whatever the feature gates say, one value each.
///
/// They are data (`fixtures/crds/`), not generated from the types: a test says that both agree.
#[must_use]
pub fn crds() -> Vec<Value> {
    ALWAYS.into_iter().map(parsed).collect()
}

/// The definitions that feature gates need besides, where `is_on` says of a gate's name whether it is on.
#[must_use]
pub fn crds_of_gates(is_on: impl Fn(&str) -> bool) -> Vec<Value> {
    let needed = OF_GATES.into_iter().filter(|(gate, _)| is_on(gate));
    needed.map(|(_, text)| parsed(text)).collect()
}

/// The definition of ImagePullJob, for those who have CloneSets make them without a whole OpenKruise around.
#[must_use]
pub fn pull_job_crd() -> Value {
    parsed(IMAGE_PULL_JOBS)
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1alpha1::CloneSet;
    use kube::CustomResourceExt;
    use serde_json::json;

    /// Leaves out what says the same in another way, or nothing to a client.
    fn essence(value: &mut Value) {
        match value {
            Value::Object(map) => {
                for noise in [
                    "description",
                    "nullable",
                    "x-kubernetes-list-type",
                    "x-kubernetes-map-type",
                    "default",
                ] {
                    // A property may be called like one of these; properties are objects, keywords of this list are not.
                    if map.get(noise).is_some_and(|v| !v.is_object()) {
                        map.remove(noise);
                    }
                }
                if map.contains_key("x-kubernetes-int-or-string") {
                    *map =
                        serde_json::Map::from_iter([("x-kubernetes-int-or-string".to_owned(), json!(true))]);
                }
                map.values_mut().for_each(essence);
            }
            Value::Array(list) => {
                list.iter_mut().for_each(essence);
                if list.iter().all(Value::is_string) {
                    list.sort_by_key(ToString::to_string);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn every_definition_is_json() {
        let all = crds().into_iter().chain(crds_of_gates(|_| true));
        assert!(
            all.map(|definition| definition["kind"].clone())
                .all(|kind| kind == "CustomResourceDefinition")
        );
    }

    #[test]
    fn the_types_agree_with_the_installed_definition() {
        let mut installed = crds().remove(0)["spec"].clone();
        let mut generated = serde_json::to_value(CloneSet::crd()).unwrap()["spec"].clone();
        for spec in [&mut installed, &mut generated] {
            let version = &mut spec["versions"][0];
            if let Some(properties) = version["schema"]["openAPIV3Schema"]["properties"].as_object_mut() {
                for own in ["apiVersion", "kind", "metadata"] {
                    properties.remove(own);
                }
            }
            if let Some(schema) = version["schema"]["openAPIV3Schema"].as_object_mut() {
                schema.remove("required");
                schema.remove("title");
            }
            if let Some(names) = spec["names"].as_object_mut() {
                names.remove("listKind");
                names.remove("categories");
            }
            essence(spec);
        }
        assert_eq!(
            serde_json::to_string_pretty(&generated["versions"]).unwrap(),
            serde_json::to_string_pretty(&installed["versions"]).unwrap()
        );
        assert_eq!(generated["names"], installed["names"]);
        assert_eq!(generated["scope"], installed["scope"]);
    }
}
