//! The CustomResourceDefinitions of OpenKruise 1.9.0.

use serde_json::Value;

use super::ALL;
use crate::gates::FeatureGates;

/// The definitions that are installed with these gates, one value each.
///
/// They are data (`fixtures/crds/`), not generated from the types: a test says that both agree.
#[must_use]
pub fn crds(gates: &FeatureGates) -> Vec<Value> {
    let all = ALL.iter().flat_map(|workload| workload.crds);
    all.filter(|crd| crd.is_installed(gates))
        .map(super::Crd::object)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1alpha1::{
        CloneSet, ContainerRecreateRequest, EphemeralJob, NodePodProbe, PersistentPodState, PodProbeMarker,
        PodUnavailableBudget, ResourceDistribution, UnitedDeployment, WorkloadSpread,
    };
    use crate::api::v1beta1::{
        AdvancedCronJob, BroadcastJob, DaemonSet, ImageListPullJob, ImagePullJob, NodeImage, SidecarSet,
        StatefulSet,
    };
    use crate::workloads::{
        Crd, advancedcronjob, broadcastjob, cloneset, containerrecreaterequest, daemonset, ephemeraljob,
        imagelistpulljob, imagepulljob, nodeimage, nodepodprobe, persistentpodstate, podprobemarker,
        podunavailablebudget, resourcedistribution, sidecarset, statefulset, uniteddeployment,
        workloadspread,
    };
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::CustomResourceExt;
    use rstest::rstest;
    use serde_json::json;

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
        for crd in ALL.iter().flat_map(|workload| workload.crds) {
            assert_eq!(crd.object()["kind"], "CustomResourceDefinition");
            assert_eq!(crd.object()["metadata"]["name"], crd.name());
        }
    }

    #[rstest]
    #[case(&advancedcronjob::WORKLOAD.crds[0], AdvancedCronJob::crd())]
    #[case(&broadcastjob::WORKLOAD.crds[0], BroadcastJob::crd())]
    #[case(&cloneset::WORKLOAD.crds[0], CloneSet::crd())]
    #[case(&containerrecreaterequest::WORKLOAD.crds[0], ContainerRecreateRequest::crd())]
    #[case(&daemonset::WORKLOAD.crds[0], DaemonSet::crd())]
    #[case(&ephemeraljob::WORKLOAD.crds[0], EphemeralJob::crd())]
    #[case(&imagelistpulljob::WORKLOAD.crds[0], ImageListPullJob::crd())]
    #[case(&imagepulljob::WORKLOAD.crds[0], ImagePullJob::crd())]
    #[case(&nodeimage::WORKLOAD.crds[0], NodeImage::crd())]
    #[case(&nodepodprobe::WORKLOAD.crds[0], NodePodProbe::crd())]
    #[case(&persistentpodstate::WORKLOAD.crds[0], PersistentPodState::crd())]
    #[case(&podprobemarker::WORKLOAD.crds[0], PodProbeMarker::crd())]
    #[case(&podunavailablebudget::WORKLOAD.crds[0], PodUnavailableBudget::crd())]
    #[case(&resourcedistribution::WORKLOAD.crds[0], ResourceDistribution::crd())]
    #[case(&sidecarset::WORKLOAD.crds[0], SidecarSet::crd())]
    #[case(&statefulset::WORKLOAD.crds[0], StatefulSet::crd())]
    #[case(&uniteddeployment::WORKLOAD.crds[0], UnitedDeployment::crd())]
    #[case(&workloadspread::WORKLOAD.crds[0], WorkloadSpread::crd())]
    fn the_types_agree_with_the_installed_definition(
        #[case] installed: &Crd,
        #[case] generated: CustomResourceDefinition,
    ) {
        let mut installed = installed.object()["spec"].clone();
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
}
