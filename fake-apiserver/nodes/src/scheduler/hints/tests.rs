use rstest::rstest;
use shared_json::{Value, json};

use super::*;

fn pod(uid: &str, change: &Value) -> PodInfo {
    let mut pod =
        json!({"metadata": {"uid": uid, "name": uid, "namespace": "d"}, "spec": {"containers": [{}]}});
    pod.merge(change);
    PodInfo::new(pod)
}

fn placed(change: &Value) -> PodInfo {
    PodInfo {
        bound: true,
        ..pod("other", change)
    }
}

fn some(value: &Value) -> Option<&Value> {
    Some(value).filter(|value| !value.is_null())
}

/// Whether a change (null: it was not there, or is not any more) moves the pod `p` that a filter has refused.
fn moves(filter: Filter, p: &Value, what: &str, old: Value, new: Value) -> bool {
    let p = pod("p", p);
    let mut cluster = Cluster::default();
    cluster.namespaces.insert("far".to_owned(), json!({"team": "x"}));
    for name in ["mine", "free"] {
        let claim = json!({"metadata": {"name": name, "namespace": "d", "uid": name}});
        cluster
            .device_claims
            .insert(("d".to_owned(), name.to_owned()), claim);
    }
    let pods = [&old, &new].map(|one| some(one).map(placed));
    let own = [&old, &new].map(|one| pod("p", one));
    let event = match what {
        "node" => Event::Node(NodeEvent::of(some(&old), some(&new))),
        "pod" => Event::Pod(pods[0].as_ref(), pods[1].as_ref()),
        "own" => Event::Own(&own[0], &own[1]),
        "claim" => Event::Claim(some(&old), &new),
        "volume" => Event::Volume(some(&old), &new),
        "class" => Event::Class(some(&old), &new),
        "drivers" => Event::Drivers(some(&old), &new),
        "device claim" => Event::DeviceClaim(some(&old), &new),
        "device class" => Event::DeviceClass(some(&old), &new),
        "slice" => Event::Slice,
        other => panic!("an event {other}"),
    };
    let asked = if what == "own" { &own[1] } else { &p };
    event.concerns().contains(&filter) && event.may_help(filter, asked, &cluster)
}

const NONE: Value = Value::Null;

#[rstest]
#[case::new(NONE, json!({}), true)]
#[case::new_and_cordoned(NONE, json!({"spec": {"unschedulable": true}}), false)]
#[case::lifted(json!({"spec": {"unschedulable": true}}), json!({}), true)]
#[case::cordoned(json!({}), json!({"spec": {"unschedulable": true}}), false)]
#[case::labels(json!({}), json!({"metadata": {"labels": {"a": "b"}}}), false)]
#[case::still_cordoned(json!({"spec": {"unschedulable": true}}), json!({"spec": {"unschedulable": true, "taints": [{"key": "a", "effect": "NoSchedule"}]}}), false)]
fn cordons(#[case] old: Value, #[case] new: Value, #[case] expected: bool) {
    assert_eq!(
        moves(Filter::Unschedulable, &json!({}), "node", old, new),
        expected
    );
}

#[rstest]
#[case::cordon(Filter::Unschedulable, json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]), true)]
#[case::other_than_cordon(Filter::Unschedulable, json!([{"key": "other", "operator": "Exists"}]), false)]
#[case::taint(Filter::Taints, json!([{"key": "other", "operator": "Exists"}]), true)]
#[case::none(Filter::Taints, json!([]), false)]
#[case::of_no_use(Filter::NodeAffinity, json!([{"key": "other", "operator": "Exists"}]), false)]
fn tolerations_added(#[case] filter: Filter, #[case] tolerations: Value, #[case] expected: bool) {
    let new = json!({"spec": {"tolerations": tolerations}});
    assert_eq!(moves(filter, &json!({}), "own", json!({}), new), expected);
}

#[rstest]
#[case::new(NONE, json!({}), true)]
#[case::new_and_tainted(NONE, json!([{"key": "a", "effect": "NoSchedule"}]), false)]
#[case::new_and_tolerated(NONE, json!([{"key": "known", "effect": "NoSchedule"}]), true)]
#[case::taken_off(json!([{"key": "a", "effect": "NoSchedule"}]), json!([]), true)]
#[case::another(json!([{"key": "a", "effect": "NoSchedule"}]), json!([{"key": "b", "effect": "NoSchedule"}]), false)]
#[case::tolerated_now(json!([{"key": "a", "effect": "NoExecute"}]), json!([{"key": "known", "effect": "NoExecute"}]), true)]
#[case::was_tolerated(json!([{"key": "known", "effect": "NoSchedule"}]), json!([]), false)]
#[case::soft(json!([{"key": "a", "effect": "PreferNoSchedule"}]), json!([]), false)]
fn taints_of_nodes(#[case] old: Value, #[case] new: Value, #[case] expected: bool) {
    let pod = json!({"spec": {"tolerations": [{"key": "known", "operator": "Exists"}]}});
    let node = |taints: Value| {
        if taints.is_null() {
            NONE
        } else {
            json!({"spec": {"taints": taints}})
        }
    };
    assert_eq!(
        moves(Filter::Taints, &pod, "node", node(old), node(new)),
        expected
    );
}

#[rstest]
#[case::new(NONE, json!({"zone": "1"}), true)]
#[case::new_elsewhere(NONE, json!({"zone": "2"}), false)]
#[case::fits_now(json!({"zone": "2"}), json!({"zone": "1"}), true)]
#[case::fitted_before(json!({"zone": "1"}), json!({"zone": "1", "a": "b"}), false)]
#[case::fits_no_more(json!({"zone": "1"}), json!({}), false)]
#[case::elsewhere(json!({"zone": "2"}), json!({"zone": "3"}), false)]
fn labels_of_nodes(#[case] old: Value, #[case] new: Value, #[case] expected: bool) {
    let pod = json!({"spec": {"nodeSelector": {"zone": "1"}}});
    let node = |labels: Value| {
        if labels.is_null() {
            NONE
        } else {
            json!({"metadata": {"labels": labels}})
        }
    };
    assert_eq!(
        moves(Filter::NodeAffinity, &pod, "node", node(old), node(new)),
        expected
    );
}

#[rstest]
#[case::new(NONE, json!({"cpu": "4", "pods": "10"}), true)]
#[case::new_and_small(NONE, json!({"cpu": "1", "pods": "10"}), false)]
#[case::new_and_without(NONE, json!({"memory": "4Gi", "pods": "10"}), false)]
#[case::new_and_full(NONE, json!({"cpu": "4", "pods": "0"}), false)]
#[case::more(json!({"cpu": "1", "pods": "10"}), json!({"cpu": "2", "pods": "10"}), true)]
#[case::more_but_too_little(json!({"cpu": "500m", "pods": "10"}), json!({"cpu": "1", "pods": "10"}), false)]
#[case::more_of_something_else(json!({"cpu": "4", "memory": "1Gi", "pods": "10"}), json!({"cpu": "4", "memory": "2Gi", "pods": "10"}), false)]
#[case::room_for_more_pods(json!({"cpu": "4", "pods": "10"}), json!({"cpu": "4", "pods": "11"}), true)]
#[case::less(json!({"cpu": "4", "pods": "10"}), json!({"cpu": "3", "pods": "10"}), false)]
fn resources_of_nodes(#[case] old: Value, #[case] new: Value, #[case] expected: bool) {
    let pod = json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "2"}}}]}});
    let node = |has: Value| {
        if has.is_null() {
            NONE
        } else {
            json!({"status": {"allocatable": has}})
        }
    };
    assert_eq!(
        moves(Filter::Resources, &pod, "node", node(old), node(new)),
        expected
    );
}

#[rstest]
#[case::gone("pod", json!({}), NONE, true)]
#[case::new("pod", NONE, json!({"cpu": "1"}), false)]
#[case::takes_less("pod", json!({"cpu": "2"}), json!({"cpu": "1"}), true)]
#[case::takes_less_of_something_else("pod", json!({"cpu": "1", "memory": "2Gi"}), json!({"cpu": "1", "memory": "1Gi"}), false)]
#[case::takes_more("pod", json!({"cpu": "1"}), json!({"cpu": "2"}), false)]
#[case::asks_for_less("own", json!({"cpu": "2"}), json!({"cpu": "1"}), true)]
#[case::asks_for_less_of_anything("own", json!({"cpu": "2", "memory": "2Gi"}), json!({"cpu": "2"}), true)]
#[case::asks_for_more("own", json!({"cpu": "2"}), json!({"cpu": "3"}), false)]
fn resources_of_pods(#[case] what: &str, #[case] old: Value, #[case] new: Value, #[case] expected: bool) {
    let of = |asked: Value| {
        if asked.is_null() {
            NONE
        } else {
            json!({"spec": {"containers": [{"resources": {"requests": asked}}]}})
        }
    };
    assert_eq!(
        moves(
            Filter::Resources,
            &of(json!({"cpu": "2"})),
            what,
            of(old),
            of(new)
        ),
        expected
    );
}

#[rstest]
#[case::same(json!({"hostPort": 80}), true)]
#[case::another(json!({"hostPort": 81}), false)]
#[case::another_protocol(json!({"hostPort": 80, "protocol": "UDP"}), false)]
#[case::one_address_of_all(json!({"hostPort": 80, "hostIP": "10.0.0.1"}), true)]
#[case::none(json!({"containerPort": 80}), false)]
fn ports_given_back(#[case] port: Value, #[case] expected: bool) {
    let of = |port: Value| json!({"spec": {"containers": [{"ports": [port]}]}});
    let old = of(port);
    assert_eq!(
        moves(Filter::Ports, &of(json!({"hostPort": 80})), "pod", old, NONE),
        expected
    );
}

#[rstest]
#[case::port(Filter::Ports, true)]
#[case::name(Filter::Name, true)]
#[case::volume_in_use(Filter::VolumeInUse, true)]
#[case::volume_out_of_reach(Filter::VolumeBinding, true)]
#[case::volume_elsewhere(Filter::VolumeZone, true)]
#[case::too_many_volumes(Filter::VolumeLimits, false)]
#[case::devices(Filter::Devices, true)]
fn new_nodes(#[case] filter: Filter, #[case] expected: bool) {
    assert_eq!(moves(filter, &json!({}), "node", NONE, json!({})), expected);
}

fn spread(change: Value) -> Value {
    let mut constraint = json!({
        "topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}},
    });
    constraint.merge(&change);
    json!({"metadata": {"labels": {"app": "web", "hash": "1"}}, "spec": {"topologySpreadConstraints": [constraint]}})
}

fn labelled(labels: &Value) -> Value {
    if labels.is_null() {
        NONE
    } else {
        json!({"metadata": {"labels": labels}})
    }
}

#[rstest]
#[case::new(json!({}), "pod", NONE, json!({"app": "web"}), true)]
#[case::new_of_another_kind(json!({}), "pod", NONE, json!({"app": "db"}), false)]
#[case::gone(json!({}), "pod", json!({"app": "web"}), NONE, true)]
#[case::gone_of_another_kind(json!({}), "pod", json!({"app": "db"}), NONE, false)]
#[case::of_the_kind_now(json!({}), "pod", json!({"app": "db"}), json!({"app": "web"}), true)]
#[case::of_the_kind_no_more(json!({}), "pod", json!({"app": "web"}), json!({"app": "db"}), true)]
#[case::of_the_kind_still(json!({}), "pod", json!({"app": "web"}), json!({"app": "web", "a": "b"}), false)]
#[case::of_another_hash(json!({"matchLabelKeys": ["hash"]}), "pod", json!({"app": "web", "hash": "2"}), NONE, false)]
#[case::of_the_same_hash(json!({"matchLabelKeys": ["hash"]}), "pod", json!({"app": "web", "hash": "1"}), NONE, true)]
#[case::soft(json!({"whenUnsatisfiable": "ScheduleAnyway"}), "pod", json!({"app": "web"}), NONE, false)]
#[case::own(json!({}), "own", json!({"app": "web"}), json!({"app": "db"}), true)]
#[case::own_of_no_concern(json!({}), "own", json!({"app": "web"}), json!({"app": "web", "a": "b"}), false)]
#[case::node_new(json!({}), "node", NONE, json!({"zone": "1"}), true)]
#[case::node_new_elsewhere(json!({}), "node", NONE, json!({"rack": "1"}), false)]
#[case::node_gone(json!({}), "node", json!({"zone": "1"}), NONE, true)]
#[case::node_gone_elsewhere(json!({}), "node", json!({"rack": "1"}), NONE, false)]
#[case::node_moved(json!({}), "node", json!({"zone": "1"}), json!({"zone": "2"}), true)]
#[case::node_left(json!({}), "node", json!({"zone": "1"}), json!({}), true)]
#[case::node_came(json!({}), "node", json!({}), json!({"zone": "1"}), true)]
#[case::node_of_another_label(json!({}), "node", json!({"zone": "1"}), json!({"zone": "1", "a": "b"}), false)]
fn spreads(
    #[case] change: Value,
    #[case] what: &str,
    #[case] old: Value,
    #[case] new: Value,
    #[case] expected: bool,
) {
    let pod = spread(change);
    let [old, new] = [old, new].map(|labels| match what {
        "own" => {
            let mut own = pod.clone();
            own["metadata"]["labels"] = labels;
            own
        }
        _ => labelled(&labels),
    });
    assert_eq!(moves(Filter::Spread, &pod, what, old, new), expected);
}

#[test]
fn spreads_over_tainted_nodes() {
    let node = |taints: Value| json!({"metadata": {"labels": {"zone": "1"}}, "spec": {"taints": taints}});
    let taints = [json!([{"key": "a", "effect": "NoSchedule"}]), json!([])].map(node);
    let [old, new] = taints;
    assert!(moves(Filter::Spread, &spread(json!({})), "node", old, new));
    for (policy, expected) in [("Honor", true), ("Ignore", false)] {
        let old = spread(json!({"nodeTaintsPolicy": policy}));
        let mut new = old.clone();
        new["spec"]["tolerations"] = json!([{"key": "a", "operator": "Exists"}]);
        assert_eq!(
            moves(Filter::Spread, &json!({}), "own", old, new),
            expected,
            "{policy}"
        );
    }
}

#[test]
fn spreads_in_its_namespace() {
    let far = json!({"metadata": {"namespace": "far", "labels": {"app": "web"}}});
    assert!(!moves(Filter::Spread, &spread(json!({})), "pod", far, NONE));
}

fn beside(kind: &str, app: &str) -> Value {
    let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}});
    json!({"spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}})
}

#[rstest]
#[case::wanted_new("podAffinity", "pod", NONE, json!({"app": "db"}), true)]
#[case::unwanted_new("podAntiAffinity", "pod", NONE, json!({"app": "db"}), false)]
#[case::another_new("podAffinity", "pod", NONE, json!({"app": "web"}), false)]
#[case::wanted_gone("podAffinity", "pod", json!({"app": "db"}), NONE, false)]
#[case::unwanted_gone("podAntiAffinity", "pod", json!({"app": "db"}), NONE, true)]
#[case::another_gone("podAntiAffinity", "pod", json!({"app": "web"}), NONE, false)]
#[case::wanted_now("podAffinity", "pod", json!({}), json!({"app": "db"}), true)]
#[case::wanted_no_more("podAffinity", "pod", json!({"app": "db"}), json!({}), false)]
#[case::unwanted_no_more("podAntiAffinity", "pod", json!({"app": "db"}), json!({}), true)]
#[case::unwanted_now("podAntiAffinity", "pod", json!({}), json!({"app": "db"}), false)]
#[case::own("podAffinity", "own", json!({}), json!({"app": "db"}), true)]
#[case::own_unchanged("podAffinity", "own", json!({"app": "db"}), json!({"app": "db"}), false)]
#[case::node_new("podAffinity", "node", NONE, json!({"zone": "1"}), true)]
#[case::node_new_elsewhere("podAffinity", "node", NONE, json!({}), false)]
#[case::node_new_without("podAntiAffinity", "node", NONE, json!({}), true)]
#[case::node_came("podAffinity", "node", json!({}), json!({"zone": "1"}), true)]
#[case::node_left("podAffinity", "node", json!({"zone": "1"}), json!({}), false)]
#[case::node_moved("podAffinity", "node", json!({"zone": "1"}), json!({"zone": "2"}), true)]
#[case::node_of_another_label("podAffinity", "node", json!({"zone": "1"}), json!({"zone": "1", "a": "b"}), false)]
#[case::node_left_the_unwanted("podAntiAffinity", "node", json!({"zone": "1"}), json!({}), true)]
#[case::node_came_to_the_unwanted("podAntiAffinity", "node", json!({}), json!({"zone": "1"}), false)]
#[case::node_moved_among_the_unwanted("podAntiAffinity", "node", json!({"zone": "1"}), json!({"zone": "2"}), true)]
fn affinities(
    #[case] kind: &str,
    #[case] what: &str,
    #[case] old: Value,
    #[case] new: Value,
    #[case] expected: bool,
) {
    let pod = beside(kind, "db");
    assert_eq!(
        moves(Filter::PodAffinity, &pod, what, labelled(&old), labelled(&new)),
        expected
    );
}

#[rstest]
#[case::it(json!({"app": "web"}), true)]
#[case::another(json!({"app": "db"}), false)]
fn affinities_of_one_that_is_gone(#[case] labels: Value, #[case] expected: bool) {
    let pod = json!({"metadata": {"labels": labels}});
    let gone = beside("podAntiAffinity", "web");
    assert_eq!(moves(Filter::PodAffinity, &pod, "pod", gone, NONE), expected);
}

fn with_claim(name: &str) -> Value {
    json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}})
}

fn claim(name: &str, namespace: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace}})
}

#[rstest]
#[case::in_use_gone(Filter::VolumeInUse, "pod", with_claim("mine"), NONE, true)]
#[case::another_in_use_gone(Filter::VolumeInUse, "pod", with_claim("other"), NONE, false)]
#[case::in_use_claimed(Filter::VolumeInUse, "claim", NONE, claim("mine", "d"), true)]
#[case::in_use_claim_changed(Filter::VolumeInUse, "claim", claim("mine", "d"), claim("mine", "d"), false)]
#[case::limits_gone(Filter::VolumeLimits, "pod", with_claim("other"), NONE, true)]
#[case::limits_gone_without(Filter::VolumeLimits, "pod", json!({}), NONE, false)]
#[case::limits_claimed(Filter::VolumeLimits, "claim", NONE, claim("mine", "d"), true)]
#[case::limits_claimed_elsewhere(Filter::VolumeLimits, "claim", NONE, claim("mine", "far"), false)]
#[case::limits_drivers(Filter::VolumeLimits, "drivers", NONE, json!({}), true)]
#[case::limits_raised(
    Filter::VolumeLimits, "drivers", json!({"spec": {"drivers": [{"name": "a", "allocatable": {"count": 1}}]}}),
    json!({"spec": {"drivers": [{"name": "a", "allocatable": {"count": 2}}]}}), true
)]
#[case::limits_lowered(
    Filter::VolumeLimits, "drivers", json!({"spec": {"drivers": [{"name": "a", "allocatable": {"count": 2}}]}}),
    json!({"spec": {"drivers": [{"name": "a", "allocatable": {"count": 1}}]}}), false
)]
#[case::binding_claimed(Filter::VolumeBinding, "claim", NONE, claim("mine", "d"), true)]
#[case::binding_claim_changed(Filter::VolumeBinding, "claim", claim("mine", "d"), claim("mine", "d"), true)]
#[case::binding_another_claim(Filter::VolumeBinding, "claim", NONE, claim("other", "d"), false)]
#[case::binding_volume(Filter::VolumeBinding, "volume", json!({}), json!({}), true)]
#[case::binding_class(Filter::VolumeBinding, "class", NONE, json!({}), true)]
#[case::binding_class_moved(
    Filter::VolumeBinding, "class", json!({"allowedTopologies": []}), json!({"allowedTopologies": [{"a": "b"}]}), true
)]
#[case::binding_class_changed(
    Filter::VolumeBinding, "class", json!({}), json!({"metadata": {"labels": {"a": "b"}}}), false
)]
#[case::binding_drivers(Filter::VolumeBinding, "drivers", NONE, json!({}), true)]
#[case::binding_drivers_changed(Filter::VolumeBinding, "drivers", json!({}), json!({"spec": {}}), false)]
#[case::binding_gone(Filter::VolumeBinding, "pod", with_claim("mine"), NONE, false)]
#[case::zone_class(Filter::VolumeZone, "class", NONE, json!({"volumeBindingMode": "WaitForFirstConsumer"}), true)]
#[case::zone_class_at_once(Filter::VolumeZone, "class", NONE, json!({"volumeBindingMode": "Immediate"}), false)]
#[case::zone_volume(Filter::VolumeZone, "volume", NONE, json!({}), true)]
#[case::zone_volume_moved(
    Filter::VolumeZone, "volume", json!({}), json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "1"}}}), true
)]
#[case::zone_volume_changed(Filter::VolumeZone, "volume", json!({}), json!({"metadata": {"labels": {"a": "b"}}}), false)]
#[case::zone_claim(Filter::VolumeZone, "claim", json!({}), claim("mine", "d"), true)]
fn volumes_of_pods(
    #[case] filter: Filter,
    #[case] what: &str,
    #[case] old: Value,
    #[case] new: Value,
    #[case] expected: bool,
) {
    assert_eq!(moves(filter, &with_claim("mine"), what, old, new), expected);
}

fn device_claim(name: &str, status: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "d", "uid": name}, "status": status})
}

#[rstest]
#[case::own("device claim", NONE, device_claim("mine", json!({})), true)]
#[case::own_changed("device claim", device_claim("mine", json!({})), device_claim("mine", json!({"reservedFor": []})), true)]
#[case::own_unchanged("device claim", device_claim("mine", json!({})), device_claim("mine", json!({})), false)]
#[case::another("device claim", NONE, device_claim("free", json!({})), false)]
#[case::given_back(
    "device claim", device_claim("free", json!({"allocation": {}})), device_claim("free", json!({})), true
)]
#[case::taken("device claim", device_claim("free", json!({})), device_claim("free", json!({"allocation": {}})), false)]
#[case::class("device class", json!({}), json!({}), true)]
#[case::slice("slice", NONE, json!({}), true)]
#[case::room("node", json!({}), json!({"status": {"allocatable": {"cpu": "1"}}}), true)]
#[case::taint("node", json!({}), json!({"spec": {"taints": [{"key": "a"}]}}), false)]
#[case::gone("pod", json!({}), NONE, false)]
fn devices_of_pods(#[case] what: &str, #[case] old: Value, #[case] new: Value, #[case] expected: bool) {
    let pod = json!({"spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]}});
    assert_eq!(moves(Filter::Devices, &pod, what, old, new), expected);
}

#[test]
fn a_claim_that_was_made_for_it() {
    let old = json!({"spec": {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}});
    let mut new = old.clone();
    new["status"] = json!({"resourceClaimStatuses": [{"name": "c"}]});
    assert!(moves(Filter::Devices, &json!({}), "own", old.clone(), new));
    assert!(!moves(Filter::Devices, &json!({}), "own", old.clone(), old));
}

/// A class of devices named `gpu`, and the extended resource that it stands for.
fn class(resource: &str) -> Value {
    let mut class = json!({"metadata": {"name": "gpu"}, "spec": {}});
    if !resource.is_empty() {
        class["spec"]["extendedResourceName"] = json!(resource);
    }
    class
}

#[rstest]
#[case::by_its_name("deviceclass.resource.kubernetes.io/gpu", NONE, class(""), true)]
#[case::by_another_name("deviceclass.resource.kubernetes.io/nic", NONE, class(""), false)]
#[case::by_its_resource("example.com/gpu", NONE, class("example.com/gpu"), true)]
#[case::by_another_resource("example.com/gpu", NONE, class("example.com/nic"), false)]
#[case::without_resource("example.com/gpu", NONE, class(""), false)]
#[case::gets_its_resource("example.com/gpu", class(""), class("example.com/gpu"), true)]
#[case::keeps_its_resource("example.com/gpu", class("example.com/gpu"), class("example.com/gpu"), false)]
#[case::loses_its_resource("example.com/gpu", class("example.com/gpu"), class(""), false)]
#[case::gets_another_resource("example.com/gpu", class(""), class("example.com/nic"), false)]
#[case::changed_of_its_name(
    "deviceclass.resource.kubernetes.io/gpu",
    class(""),
    class("example.com/gpu"),
    false
)]
fn classes_for_extended_resources(
    #[case] asked: &str,
    #[case] old: Value,
    #[case] new: Value,
    #[case] expected: bool,
) {
    let pod = json!({"spec": {"containers": [{"resources": {"requests": {asked: "1"}}}]}});
    assert_eq!(moves(Filter::Resources, &pod, "device class", old, new), expected);
}

#[test]
fn a_change_of_status_concerns_nobody() {
    let old = placed(&json!({"metadata": {"labels": {"a": "b"}}}));
    let new = placed(&json!({"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}}));
    assert!(Event::Pod(Some(&old), Some(&new)).concerns().is_empty());
}

#[rstest]
#[case::new("node", NONE, json!({}), true)]
#[case::declares("node", json!({}), json!({"status": {"declaredFeatures": ["F"]}}), true)]
#[case::declares_less("node", json!({"status": {"declaredFeatures": ["F"]}}), json!({}), true)]
#[case::as_before(
    "node",
    json!({"status": {"declaredFeatures": ["F"]}}),
    json!({"metadata": {"labels": {"a": "b"}}, "status": {"declaredFeatures": ["F"]}}),
    false
)]
#[case::room("node", json!({}), json!({"status": {"allocatable": {"cpu": "1"}}}), false)]
#[case::gone("node", json!({}), NONE, false)]
#[case::another_pod("pod", json!({}), NONE, false)]
#[case::needs_it_no_more("own", json!({"spec": {"containers": [restarts_all()]}}), json!({}), true)]
#[case::its_labels("own", json!({}), json!({"metadata": {"labels": {"a": "b"}}}), false)]
fn declared_features(#[case] what: &str, #[case] old: Value, #[case] new: Value, #[case] expected: bool) {
    let pod = json!({"spec": {"containers": [restarts_all()]}});
    assert_eq!(moves(Filter::DeclaredFeatures, &pod, what, old, new), expected);
}

fn restarts_all() -> Value {
    json!({"restartPolicyRules": [{"action": "RestartAllContainers"}]})
}

/// The declared features of nodes concern no other filter.
#[test]
fn features_are_the_business_of_one_filter() {
    let (old, new) = (json!({}), json!({"status": {"declaredFeatures": ["F"]}}));
    let event = Event::Node(NodeEvent::of(Some(&old), Some(&new)));
    assert_eq!(event.concerns(), [Filter::DeclaredFeatures]);
}
