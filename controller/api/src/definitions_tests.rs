//! The types have the fields of the definitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use rstest::rstest;
use serde_json::{Value, json};

use crate::definitions;
use crate::v1alpha1::{
    CloneSet, ContainerRecreateRequest, EphemeralJob, NodePodProbe, PersistentPodState, PodProbeMarker,
    PodUnavailableBudget, ResourceDistribution, UnitedDeployment, WorkloadSpread,
};
use crate::v1beta1::{
    AdvancedCronJob, BroadcastJob, DaemonSet, ImageListPullJob, ImagePullJob, NodeImage, SidecarSet,
    StatefulSet,
};

/// Leaves out keywords that say the same in another way, or nothing to a client.
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
                *map = serde_json::Map::from_iter([("x-kubernetes-int-or-string".to_owned(), json!(true))]);
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

#[rstest]
#[case(definitions::ADVANCEDCRONJOBS, AdvancedCronJob::crd())]
#[case(definitions::BROADCASTJOBS, BroadcastJob::crd())]
#[case(definitions::CLONESETS, CloneSet::crd())]
#[case(definitions::CONTAINERRECREATEREQUESTS, ContainerRecreateRequest::crd())]
#[case(definitions::DAEMONSETS, DaemonSet::crd())]
#[case(definitions::EPHEMERALJOBS, EphemeralJob::crd())]
#[case(definitions::IMAGELISTPULLJOBS, ImageListPullJob::crd())]
#[case(definitions::IMAGEPULLJOBS, ImagePullJob::crd())]
#[case(definitions::NODEIMAGES, NodeImage::crd())]
#[case(definitions::NODEPODPROBES, NodePodProbe::crd())]
#[case(definitions::PERSISTENTPODSTATES, PersistentPodState::crd())]
#[case(definitions::PODPROBEMARKERS, PodProbeMarker::crd())]
#[case(definitions::PODUNAVAILABLEBUDGETS, PodUnavailableBudget::crd())]
#[case(definitions::RESOURCEDISTRIBUTIONS, ResourceDistribution::crd())]
#[case(definitions::SIDECARSETS, SidecarSet::crd())]
#[case(definitions::STATEFULSETS, StatefulSet::crd())]
#[case(definitions::UNITEDDEPLOYMENTS, UnitedDeployment::crd())]
#[case(definitions::WORKLOADSPREADS, WorkloadSpread::crd())]
fn the_types_agree_with_the_installed_definition(
    #[case] installed: &str,
    #[case] generated: CustomResourceDefinition,
) {
    let installed: Value = serde_json::from_str(installed).unwrap();
    let mut installed = installed["spec"].clone();
    let mut generated = serde_json::to_value(generated).unwrap()["spec"].clone();
    for spec in [&mut installed, &mut generated] {
        // The types are those of the version that is stored.
        let versions = spec["versions"].as_array_mut().unwrap();
        versions.retain(|version| version["storage"] == true);
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

#[test]
fn each_is_the_definition_of_another_kind() {
    let name = |json: &str| -> String {
        let definition: CustomResourceDefinition = serde_json::from_str(json).unwrap();
        definition.metadata.name.unwrap()
    };
    let names: Vec<String> = definitions::ALL.into_iter().map(name).collect();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
}
