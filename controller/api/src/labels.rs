//! The labels, annotations, readiness gates and reasons that are part of OpenKruise's API.

/// Pod label: which instance of a CloneSet this is; the last part of the pod's name.
pub const INSTANCE_ID: &str = "apps.kruise.io/cloneset-instance-id";
/// Label of a pod that has an ordinal: the pod's name.
pub const ORDINAL_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// Label of a pod that has an ordinal: the ordinal.
pub const ORDINAL_INDEX: &str = "apps.kubernetes.io/pod-index";
/// Pod label: the name of the revision the pod runs.
pub const REVISION_HASH: &str = "controller-revision-hash";
/// Pod label: the hash of the template the pod runs, without the set's name.
pub const TEMPLATE_HASH: &str = "pod-template-hash";
/// Pod label: the number of the template that the pod runs, from the time before there were revisions.
pub const TEMPLATE_GENERATION: &str = "pod-template-generation";
/// Annotation of a DaemonSet: the number of its template.
pub const TEMPLATE_GENERATION_OF_SET: &str = "deprecated.daemonset.template.generation";
/// Label of a ControllerRevision: its hash.
pub const REVISION_LABEL: &str = "controller.kubernetes.io/hash";
/// Pod label: delete this pod, whatever its value.
pub const SPECIFIED_DELETE: &str = "apps.kruise.io/specified-delete";
/// Pod label: where in its life the pod is.
pub const LIFECYCLE_STATE: &str = "lifecycle.apps.kruise.io/state";
/// Pod annotation: since when it is there.
pub const LIFECYCLE_TIMESTAMP: &str = "lifecycle.apps.kruise.io/timestamp";
/// Pod annotation: the state of an in-place update, as JSON.
pub const IN_PLACE_STATE: &str = "apps.kruise.io/inplace-update-state";
/// Pod annotation: an in-place update that waits for its grace period, as JSON.
pub const IN_PLACE_GRACE: &str = "apps.kruise.io/inplace-update-grace";
/// The name of [`IN_PLACE_STATE`] before OpenKruise 1.0.
pub const IN_PLACE_STATE_OLD: &str = "inplace-update-state";
/// The name of [`IN_PLACE_GRACE`] before OpenKruise 1.0.
pub const IN_PLACE_GRACE_OLD: &str = "inplace-update-grace";
/// Annotation of a ControllerRevision: the hash of the claim templates that came with it.
pub const CLAIMS_HASH: &str = "kruise.io/cloneset-volumeclaimtemplate-hash";
/// Pod annotation: the daemon's knowledge of the containers that run, as JSON.
pub const RUNTIME_CONTAINERS: &str = "apps.kruise.io/runtime-containers-meta";
/// Pod annotation: the higher, the later the pod is deleted when a set shrinks.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// CloneSet label: do not count pods that prepare to be deleted when scaling.
pub const EXCLUDE_PREPARING_DELETE: &str = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete";
/// Annotation of a claim that a StatefulSet has made grow: the set's name.
pub const OWNED_BY_STATEFUL_SET: &str = "apps.kruise.io/owned-by-asts";
/// Label that protects an object from being deleted: `Always`, or `Cascading` while it has pods.
pub const DELETION_PROTECTION: &str = "policy.kruise.io/delete-protection";
/// Annotation of a PodUnavailableBudget: the operations that it guards, with commas between.
pub const BUDGET_OPERATIONS: &str = "kruise.io/pub-protect-operations";
/// Annotation of a PodUnavailableBudget: how many pods there are to be, whatever their workloads say.
pub const BUDGET_TOTAL_REPLICAS: &str = "pub.kruise.io/protect-total-replicas";
/// Pod annotation: the name of the PodUnavailableBudget that guards the pod.
pub const RELATED_BUDGET: &str = "kruise.io/related-pub";
/// Pod annotation: `true` takes the pod out of the protection of its PodUnavailableBudget.
pub const BUDGET_NO_PROTECT: &str = "pub.kruise.io/no-protect";
/// Beginning of pod labels that make the pod count as unavailable.
pub const UNAVAILABLE_POD_PREFIX: &str = "unavailable-pod.kruise.io/";
/// Pod annotation: the WorkloadSpread and the subset of the pod, as JSON.
pub const MATCHED_SPREAD: &str = "apps.kruise.io/matched-workloadspread";
/// Annotation of a WorkloadSpread: `true` keeps pods that exist from getting the labels and annotations of their subset.
pub const SPREAD_IGNORES_METADATA: &str = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata";
/// Container environment variable: updated (and started) in this order, highest first.
pub const CONTAINER_PRIORITY_ENV: &str = "KRUISE_CONTAINER_PRIORITY";
/// Container environment variable that the pod webhook gives to containers with a priority: it comes from the key
/// `p_<priority>` of the ConfigMap `<pod>-barrier`, without which the kubelet does not start the container.
pub const CONTAINER_BARRIER_ENV: &str = "KRUISE_CONTAINER_BARRIER";
/// Pod annotation: `Ordered` has the containers start in the order of the spec.
pub const CONTAINER_LAUNCH_PRIORITY: &str = "apps.kruise.io/container-launch-priority";
/// Pod annotation: every key of the pod's barrier is there.
pub const CONTAINER_LAUNCH_COMPLETED: &str = "apps.kruise.io/container-launch-priority-completed";
/// Label of a ControllerRevision: the jobs that pull its images have been made.
pub const PREDOWNLOAD_CREATED: &str = "apps.kruise.io/pre-predownload-created";
/// Label of a ControllerRevision: its images are not pulled early.
pub const PREDOWNLOAD_IGNORED: &str = "apps.kruise.io/image-predownload-ignored";
/// CloneSet annotation: on how many nodes an image is pulled at the same time.
pub const PREDOWNLOAD_PARALLELISM: &str = "apps.kruise.io/image-predownload-parallelism";
/// CloneSet annotation: how many seconds a node may take to pull an image.
pub const PREDOWNLOAD_TIMEOUT: &str = "apps.kruise.io/image-predownload-timeout-seconds";
/// CloneSet annotation: how many pods must run the new revision before its images are pulled elsewhere.
pub const PREDOWNLOAD_MIN_UPDATED_READY: &str = "apps.kruise.io/image-predownload-min-updated-ready-pods";
/// Readiness gate and pod condition: false while the pod is updated in place.
pub const IN_PLACE_READY: &str = "InPlaceUpdateReady";
/// Readiness gate and pod condition: false while some controller of OpenKruise wants the pod out of service.
pub const KRUISE_POD_READY: &str = "KruisePodReady";
/// Reason of [`IN_PLACE_READY`] being false.
pub const START_IN_PLACE_UPDATE: &str = "StartInPlaceUpdate";
/// Pod annotation: the hash of each injected set of sidecars, as JSON. On the set itself: its hash.
pub const SIDECARS_HASH: &str = "kruise.io/sidecarset-hash";
/// The same without the images.
pub const SIDECARS_HASH_WITHOUT_IMAGE: &str = "kruise.io/sidecarset-hash-without-image";
/// Pod annotation: the names of the injected sets, sorted, with commas between.
pub const SIDECARS_INJECTED: &str = "kruise.io/sidecarset-injected-list";
/// Pod annotation: the updates in place of sidecars by set, as JSON.
pub const SIDECARS_IN_PLACE_STATE: &str = "kruise.io/sidecarset-inplace-update-state";
/// Pod annotation: which of two containers works for each sidecar that is upgraded hot, as JSON.
pub const SIDECARS_WORKING: &str = "kruise.io/sidecarset-working-hotupgrade-container";
/// Beginning of the pod annotation that has the version of a container of such a pair.
pub const SIDECAR_VERSION_PREFIX: &str = "version.sidecarset.kruise.io/";
/// Beginning of the pod annotation that has the version of the other container of such a pair.
pub const SIDECAR_ALTERNATE_VERSION_PREFIX: &str = "versionalt.sidecarset.kruise.io/";
/// Container environment variable: `true` for containers that were injected.
pub const IS_INJECTED_ENV: &str = "IS_INJECTED";
/// Label of a ControllerRevision: the name of its set of sidecars.
pub const SIDECARS_NAME: &str = "kruise.io/sidecarset-name";
/// Label of a ControllerRevision, and of sets in version `v1alpha1`: the set's custom version.
pub const SIDECARS_CUSTOM_VERSION: &str = "apps.kruise.io/sidecarset-custom-version";
/// Pod condition: whether all of the pod's sidecars can be upgraded in place.
pub const SIDECARS_UPGRADABLE: &str = "SidecarSetUpgradable";
/// Label of the workload of a subset and of its pods: the subset's name.
pub const SUBSET_NAME: &str = "apps.kruise.io/subset-name";
/// Label of the workload of a subset and of its pods: the name of the UnitedDeployment's revision.
pub const SUBSET_REVISION: &str = "apps.kruise.io/controller-revision-hash";
/// Annotation of the workload of a subset: the subset's patch, as JSON.
pub const SUBSET_PATCH: &str = "apps.kruise.io/subset-patch";
/// Label of the pods of a UnitedDeployment that keeps unschedulable pods: `true` while others stand in for the pod.
pub const RESERVED_POD: &str = "apps.kruise.io/united-deployment-reserved-pod";
/// Label of a ContainerRecreateRequest: the pod's uid.
pub const REQUEST_POD_UID: &str = "crr.apps.kruise.io/pod-uid";
/// Label of a ContainerRecreateRequest: the pod's node, whose daemon carries it out.
pub const REQUEST_NODE: &str = "crr.apps.kruise.io/node-name";
/// Label of a ContainerRecreateRequest that has not ended.
pub const REQUEST_ACTIVE: &str = "crr.apps.kruise.io/active";
/// Annotation of a ContainerRecreateRequest: its containers as the pod's status has them since it was made, as JSON.
pub const REQUEST_STATUSES: &str = "crr.apps.kruise.io/sync-container-statuses";
/// Annotation of a ContainerRecreateRequest: since when its pod is out of service. Finalizer of one whose pod is.
pub const REQUEST_UNREADY: &str = "crr.apps.kruise.io/unready-acquired";
