//! Rows of the filters of volumes, as the tables of the real plugins have them: zones, limits of drivers, claims that one pod has to itself.

use rstest::rstest;
use shared_json::{Map, Value, json};

use super::*;

/// A claim `claim` of the namespace `d` that has the volume `volume`.
fn bound(cluster: &mut Cluster, claim: &str, volume: &str) {
    let object = json!({
        "metadata": {"namespace": "d", "name": claim, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": volume},
    });
    cluster.claims.insert(("d".to_owned(), claim.to_owned()), object);
}

/// A pod that names these claims; one that begins with `~` is made for it.
fn pod(name: &str, namespace: &str, claims: &[&str]) -> Arc<PodInfo> {
    let volumes: Vec<Value> = claims
        .iter()
        .map(|claim| match claim.strip_prefix('~') {
            Some(volume) => json!({"name": volume, "ephemeral": {}}),
            None => json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}),
        })
        .collect();
    Arc::new(PodInfo::new(json!({
        "metadata": {"uid": name, "name": name, "namespace": namespace}, "spec": {"volumes": volumes},
    })))
}

/// The refusal of the node `a` for the pod; empty if it can go there.
fn refused(cluster: &Cluster, pod: &Arc<PodInfo>) -> String {
    match Cycle::new(pod, cluster) {
        Err(Hopeless::Volumes(_, why) | Hopeless::Devices(why)) => why,
        Ok(cycle) => {
            let refusal = cluster.nodes.get("a").and_then(|node| cycle.refuse(node));
            refusal.map_or_else(String::new, |refusal| refusal.reasons.join(", "))
        }
    }
}

/// Labels in short: `z=` and `r=` are the zone and the region, `Z=` and `R=` by their older names.
fn labels(short: &str) -> Value {
    let pairs = short.split_whitespace().map(|pair| {
        let (key, value) = pair.split_once('=').expect("a label");
        let key = match key {
            "z" => "topology.kubernetes.io/zone",
            "r" => "topology.kubernetes.io/region",
            "Z" => "failure-domain.beta.kubernetes.io/zone",
            "R" => "failure-domain.beta.kubernetes.io/region",
            other => other,
        };
        (key.to_owned(), json!(value))
    });
    Value::Object(pairs.collect::<Map>())
}

fn node(cluster: &mut Cluster, short: &str) {
    let labels = labels(short);
    cluster.put_node(
        json!({"metadata": {"name": "a", "labels": labels}, "status": {"allocatable": {"pods": "99"}}}),
    );
}

const ZONE: &str = "node(s) had no available volume zone";

#[rstest]
#[case::neither_says_anything("", "", "")]
#[case::node_says_nothing("Z=a", "", "")]
#[case::node_says_something_else("Z=a", "disk=fast", "")]
#[case::volume_says_nothing("", "z=a", "")]
#[case::older_zone("Z=a", "Z=a disk=fast", "")]
#[case::older_region("R=w disk=fast", "R=w", "")]
#[case::other_older_region("R=w", "R=v", ZONE)]
#[case::other_older_zone("Z=a", "Z=b", ZONE)]
#[case::zone("z=a", "z=a disk=fast", "")]
#[case::region("r=w disk=fast", "r=w", "")]
#[case::other_region("r=w", "r=v", ZONE)]
#[case::other_zone("z=a", "z=b", ZONE)]
#[case::zone_without_the_region("z=a r=w", "z=a", ZONE)]
#[case::zone_and_region("z=a r=w", "z=a r=w", "")]
#[case::zone_and_other_region("z=a r=w", "z=a r=v", ZONE)]
#[case::zone_by_its_older_name_on_the_node("z=a", "Z=a", ZONE)]
#[case::zone_by_its_older_name_on_the_volume("Z=a", "z=a", "")]
#[case::other_zone_by_its_older_name_on_the_volume("Z=a", "z=b", ZONE)]
#[case::region_of_a_node_and_zone_of_a_volume("Z=a", "r=w", ZONE)]
#[case::both_older_names_on_the_volume("Z=a R=w", "z=a r=w", "")]
#[case::several_zones_and_node_says_nothing("Z=c__a", "", "")]
#[case::one_of_several_older_zones("Z=c__a", "Z=a", "")]
#[case::one_of_several_zones("z=c__a", "z=a", "")]
#[case::none_of_several_zones("z=c__a", "z=b", ZONE)]
#[case::a_zone_without_a_name_makes_the_label_say_nothing("z=a__", "z=b", "")]
#[case::and_leaves_the_other("z=a__ r=w", "z=b r=v", ZONE)]
fn zones(#[case] volume: &str, #[case] on_node: &str, #[case] expected: &str) {
    let mut cluster = Cluster::default();
    node(&mut cluster, on_node);
    let object = json!({"metadata": {"name": "v", "labels": labels(volume)}, "spec": {}});
    cluster.volumes.insert("v".to_owned(), object);
    bound(&mut cluster, "c", "v");
    assert_eq!(refused(&cluster, &pod("p", "d", &["c"])), expected);
    // Of claims that are made for a pod the zone is not looked at.
    bound(&mut cluster, "p-c", "v");
    assert_eq!(refused(&cluster, &pod("p", "d", &["~c"])), "");
}

const UNBOUND: &str = "pod has unbound immediate PersistentVolumeClaims";
const NO_CLAIM: &str = "persistentvolumeclaim \"c\" not found";
const NOT_YET: &str = "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-c\"";
const GONE: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const NO_VOLUME: &str = "persistentvolume \"v\" not found";
const LOST: &str = "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"v\"";
const GOES: &str = "persistentvolumeclaim \"c\" is being deleted";

/// The claim, whether its volume exists, and the messages for a pod that names it and for one for which it is made.
#[rstest]
#[case::missing(Value::Null, true, NO_CLAIM, NOT_YET)]
#[case::bound(json!({"spec": {"volumeName": "v"}}), true, "", "")]
#[case::without_its_volume(json!({"spec": {"volumeName": "v"}}), false, NO_VOLUME, GONE)]
#[case::not_quite_bound(json!({"metadata": {"annotations": null}, "spec": {"volumeName": "v"}}), true, UNBOUND, UNBOUND)]
#[case::of_no_class(json!({"metadata": {"annotations": null}}), true, UNBOUND, UNBOUND)]
#[case::of_a_class_that_is_not_there(
    json!({"metadata": {"annotations": null}, "spec": {"storageClassName": "none"}}), true, UNBOUND, UNBOUND
)]
#[case::of_a_class_that_binds_at_once(
    json!({"metadata": {"annotations": null}, "spec": {"storageClassName": "soon"}}), true, UNBOUND, UNBOUND
)]
#[case::of_a_class_that_waits(json!({"metadata": {"annotations": null}, "spec": {"storageClassName": "late"}}), true, "", "")]
#[case::of_a_class_that_waits_with_a_volume(
    json!({"metadata": {"annotations": null}, "spec": {"storageClassName": "late", "volumeName": "v"}}), true, UNBOUND, UNBOUND
)]
#[case::lost(json!({"spec": {"volumeName": "v"}, "status": {"phase": "Lost"}}), false, LOST, "")]
#[case::going(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"volumeName": "v"}}), true, GOES, "")]
fn claims(#[case] change: Value, #[case] is_there: bool, #[case] named: &str, #[case] made: &str) {
    let mut cluster = Cluster::default();
    node(&mut cluster, "");
    for (class, mode) in [("soon", "Immediate"), ("late", "WaitForFirstConsumer")] {
        let object = json!({"provisioner": "x", "volumeBindingMode": mode});
        cluster.classes.insert(class.to_owned(), object);
    }
    if is_there {
        cluster
            .volumes
            .insert("v".to_owned(), json!({"metadata": {"name": "v"}, "spec": {}}));
    }
    for name in ["c", "p-c"] {
        if change.is_object() {
            bound(&mut cluster, name, "");
            let claim = cluster.claims.get_mut(&("d".to_owned(), name.to_owned()));
            claim.expect("a claim").merge(&change);
        }
    }
    assert_eq!(refused(&cluster, &pod("p", "d", &["c"])), named);
    // The same is said of the others, by their own names.
    let made = if made.is_empty() {
        named.replace("\"c\"", "\"p-c\"")
    } else {
        made.to_owned()
    };
    assert_eq!(refused(&cluster, &pod("p", "d", &["~c"])), made);
}

const FULL: &str = "node(s) exceed max volume count";

/// How many volumes of a driver its node takes, those that are there, those that the pod brings, and whether that is too many.
#[rstest]
#[case::no_limit(Value::Null, &["1", "2"], &["3"], "")]
#[case::room(json!(3), &["1", "2"], &["3"], "")]
#[case::no_room(json!(2), &["1", "2"], &["3"], FULL)]
#[case::there_already(json!(2), &["1", "2"], &["2"], "")]
#[case::one_there_already_and_one_not(json!(2), &["1", "2"], &["2", "3"], FULL)]
#[case::one_there_already_and_room_for_another(json!(3), &["1", "2"], &["2", "3"], "")]
#[case::above_already_without_more(json!(1), &["1", "2"], &["2"], "")]
#[case::first(json!(1), &[], &["1"], "")]
#[case::two_at_once(json!(1), &[], &["1", "2"], FULL)]
#[case::one_twice(json!(1), &[], &["1", "1"], "")]
#[case::none_at_all(json!(0), &[], &["1"], FULL)]
#[case::others_there(json!(1), &["other/1", "other/2"], &["1"], "")]
#[case::others_come(json!(1), &["1"], &["other/1", "other/2"], "")]
#[case::no_volumes_of_a_driver(json!(0), &[], &["-"], "")]
#[case::nothing_comes(json!(1), &["1", "2"], &[], "")]
fn limits(#[case] most: Value, #[case] there: &[&str], #[case] new: &[&str], #[case] expected: &str) {
    let mut cluster = Cluster::default();
    node(&mut cluster, "");
    let allocatable = if most.is_null() {
        json!({})
    } else {
        json!({"count": most})
    };
    let drivers =
        json!({"spec": {"drivers": [{"name": "d", "allocatable": allocatable}, {"name": "silent"}]}});
    cluster.drivers.insert("a".to_owned(), drivers);
    let mut claimed = |prefix: &str, handles: &[&str]| -> Vec<String> {
        let mut names = Vec::new();
        for (index, handle) in handles.iter().enumerate() {
            let (driver, handle) = handle.split_once('/').unwrap_or(("d", handle));
            let name = format!("{prefix}{index}");
            let spec = match handle {
                "-" => json!({"hostPath": {"path": "/x"}}),
                handle => json!({"csi": {"driver": driver, "volumeHandle": handle}}),
            };
            let volume = json!({"metadata": {"name": name}, "spec": spec});
            cluster.volumes.insert(name.clone(), volume);
            bound(&mut cluster, &name, &name);
            names.push(name);
        }
        names
    };
    let (old, new) = (claimed("old", there), claimed("new", new));
    for name in old {
        cluster.place(pod(&format!("of-{name}"), "d", &[&name]), "a");
    }
    let names: Vec<&str> = new.iter().map(String::as_str).collect();
    assert_eq!(refused(&cluster, &pod("p", "d", &names)), expected);
}

const IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";

/// The modes of a claim, the pods that use claims on nodes, and whether another pod can use the claim.
#[rstest]
#[case::of_one_pod_and_unused(&["ReadWriteOncePod"], &[], "")]
#[case::of_one_pod_and_used(&["ReadWriteOncePod"], &[("d", "c", "a")], IN_USE)]
#[case::of_one_pod_and_used_elsewhere(&["ReadWriteOncePod"], &[("d", "c", "b")], IN_USE)]
#[case::another_is_used(&["ReadWriteOncePod"], &[("d", "other", "a")], "")]
#[case::used_in_another_namespace(&["ReadWriteOncePod"], &[("e", "c", "a")], "")]
#[case::of_one_node_and_used(&["ReadWriteOnce"], &[("d", "c", "a")], "")]
#[case::of_many_and_used(&["ReadWriteMany"], &[("d", "c", "a"), ("d", "c", "b")], "")]
#[case::read_only_and_used(&["ReadOnlyMany"], &[("d", "c", "a")], "")]
#[case::of_one_pod_among_others(&["ReadWriteOnce", "ReadWriteOncePod"], &[("d", "c", "b")], IN_USE)]
fn claims_of_one_pod(#[case] modes: &[&str], #[case] used: &[(&str, &str, &str)], #[case] expected: &str) {
    let mut cluster = Cluster::default();
    node(&mut cluster, "");
    cluster.put_node(json!({"metadata": {"name": "b"}, "status": {"allocatable": {"pods": "99"}}}));
    for name in ["c", "other"] {
        cluster
            .volumes
            .insert(name.to_owned(), json!({"metadata": {"name": name}, "spec": {}}));
        bound(&mut cluster, name, name);
    }
    let claim = cluster.claims.get_mut(&("d".to_owned(), "c".to_owned()));
    claim.expect("a claim")["spec"]["accessModes"] = json!(modes);
    for (index, (namespace, claim, node)) in used.iter().enumerate() {
        cluster.place(pod(&format!("user{index}"), namespace, &[claim]), node);
    }
    assert_eq!(refused(&cluster, &pod("p", "d", &["c"])), expected);
}
