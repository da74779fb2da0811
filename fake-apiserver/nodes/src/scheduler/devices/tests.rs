//! The devices that claims get on the node `a`: pools, requests, and allocations.

use std::sync::Arc;

use rstest::rstest;
use shared_json::{Value, json};

use super::super::cluster::{Cluster, PodInfo, list, text};
use super::State;
use super::search::Failure;

/// A device, with further fields.
fn d(name: &str, more: Value) -> Value {
    let mut device = json!({"name": name});
    device.merge(&more);
    device
}

fn plain(names: &[&str]) -> Value {
    names.iter().map(|name| d(name, json!({}))).collect()
}

fn sized(name: &str, size: &str) -> Value {
    d(name, json!({"capacity": {"size": {"value": size}}}))
}

fn coloured(name: &str, colour: &str) -> Value {
    d(name, json!({"attributes": {"colour": {"string": colour}}}))
}

fn tainted(name: &str, effect: &str) -> Value {
    d(name, json!({"taints": [{"key": "k", "effect": effect}]}))
}

fn shared(name: &str, capacity: Value) -> Value {
    d(
        name,
        json!({"allowMultipleAllocations": true, "capacity": {"size": capacity}}),
    )
}

fn part(name: &str, amount: &str) -> Value {
    d(
        name,
        json!({"consumesCounters": [{"counterSet": "s", "counters": {"n": {"value": amount}}}]}),
    )
}

/// A slice of a pool on the node `a`; its only one unless `more` says otherwise.
fn slice(pool: &str, devices: Value, more: Value) -> Value {
    let mut spec = json!({
        "driver": "d.io", "nodeName": "a", "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}, "devices": devices,
    });
    spec.merge(&more);
    spec
}

fn counters(amount: &str) -> Value {
    let mut slice = slice(
        "p",
        json!([]),
        json!({"sharedCounters": [{"name": "s", "counters": {"n": {"value": amount}}}], "pool": {"resourceSliceCount": 2}}),
    );
    slice["nodeName"] = Value::Null;
    slice
}

fn of_two(devices: Value) -> Value {
    slice("p", devices, json!({"pool": {"resourceSliceCount": 2}}))
}

/// A request `name` for devices of the class `any`.
fn r(name: &str, more: Value) -> Value {
    let mut exactly = json!({"deviceClassName": "any"});
    exactly.merge(&more);
    json!({"name": name, "exactly": exactly})
}

/// A request that several ways will do for.
fn ways(name: &str, ways: &[(&str, Value)]) -> Value {
    let ways: Vec<Value> = ways
        .iter()
        .map(|(name, more)| {
            let mut way = json!({"name": name, "deviceClassName": "any"});
            way.merge(more);
            way
        })
        .collect();
    json!({"name": name, "firstAvailable": ways})
}

fn asks(requests: Value) -> Value {
    json!({"devices": {"requests": requests}})
}

fn alike(field: &str, requests: Value, of: Value) -> Value {
    let mut constraint = json!({field: "d.io/colour"});
    if requests.is_array() {
        constraint["requests"] = requests;
    }
    json!({"devices": {"requests": of, "constraints": [constraint]}})
}

/// A device that another claim has, and how much of it if it shares.
fn has(device: &str, size: Value) -> Value {
    let mut result = json!({"driver": "d.io", "pool": "p", "device": device});
    if size.is_string() {
        result["shareID"] = json!("x");
        result["consumedCapacity"] = json!({"size": size});
    }
    result
}

const BIG: &str = "device.capacity['d.io'].size.compareTo(quantity('10')) >= 0";

fn big() -> Value {
    json!({"selectors": [{"cel": {"expression": BIG}}]})
}

/// The allocation of each claim, as `request:device` with the consumption behind it; `-` if there is none.
fn found(slices: &[Value], claims: &[Value], taken: &[Value]) -> String {
    let mut cluster = Cluster::default();
    for (name, zone) in [("a", "1"), ("b", "2")] {
        cluster.put_node(json!({"metadata": {"name": name, "labels": {"zone": zone}}}));
    }
    cluster
        .device_classes
        .insert("any".to_owned(), json!({"metadata": {"name": "any"}, "spec": {}}));
    for (number, spec) in slices.iter().enumerate() {
        let name = format!("s{number}");
        let slice = json!({"metadata": {"name": name}, "spec": spec});
        cluster.slices.insert(name, slice);
    }
    let others = json!({
        "metadata": {"name": "others", "namespace": "d"}, "status": {"allocation": {"devices": {"results": taken}}},
    });
    cluster
        .device_claims
        .insert(("d".to_owned(), "others".to_owned()), others);
    let mut wanted = Vec::new();
    for (number, spec) in claims.iter().enumerate() {
        let name = format!("c{number}");
        wanted.push(json!({"name": name, "resourceClaimName": name}));
        let claim = json!({"metadata": {"name": name, "namespace": "d", "uid": name}, "spec": spec});
        cluster.device_claims.insert(("d".to_owned(), name), claim);
    }
    let pod =
        json!({"metadata": {"name": "p", "namespace": "d", "uid": "p"}, "spec": {"resourceClaims": wanted}});
    let pod = Arc::new(PodInfo::new(pod));
    let state = match State::new(&pod, &cluster) {
        Ok(state) => state,
        Err(why) => return why,
    };
    let allocations = match state.allocate(&cluster, &cluster.nodes["a"]) {
        Ok(Some(allocated)) => allocated.claims,
        Ok(None) => return "-".to_owned(),
        Err(Failure::Here(why) | Failure::Wrong(why)) => return why,
    };
    let shown = |result: &Value| {
        let size = result.pointer("/consumedCapacity/size").and_then(Value::as_str);
        let size = size.map_or_else(String::new, |size| format!("({size})"));
        format!("{}:{}{size}", text(result, "request"), text(result, "device"))
    };
    let each = allocations.iter().map(|allocation| {
        let results: Vec<String> = list(allocation, "devices.results").iter().map(shown).collect();
        results.join(" ")
    });
    each.collect::<Vec<_>>().join(" | ")
}

#[rstest]
#[case::one(&[slice("p", plain(&["d0", "d1"]), json!({}))], r("r", json!({})), "r:d0")]
#[case::two(&[slice("p", plain(&["d0", "d1"]), json!({}))], r("r", json!({"count": 2})), "r:d0 r:d1")]
#[case::not_enough(&[slice("p", plain(&["d0", "d1"]), json!({}))], r("r", json!({"count": 3})), "-")]
#[case::nothing(&[], r("r", json!({})), "-")]
#[case::of_another_node(&[slice("p", plain(&["d0"]), json!({"nodeName": "b"}))], r("r", json!({})), "-")]
#[case::of_all_nodes(&[slice("p", plain(&["d0"]), json!({"nodeName": null, "allNodes": true}))], r("r", json!({})), "r:d0")]
#[case::of_nodes_like_it(
    &[slice("p", plain(&["d0"]), json!({"nodeName": null, "nodeSelector": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["1"]}]}]}}))],
    r("r", json!({})), "r:d0"
)]
#[case::of_nodes_unlike_it(
    &[slice("p", plain(&["d0"]), json!({"nodeName": null, "nodeSelector": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["2"]}]}]}}))],
    r("r", json!({})), "-"
)]
#[case::each_device_for_its_own_nodes(
    &[slice("p", json!([d("d0", json!({"nodeName": "b"})), d("d1", json!({"nodeName": "a"})), d("d2", json!({"allNodes": true}))]),
        json!({"nodeName": null, "perDeviceNodeSelection": true}))],
    r("r", json!({"allocationMode": "All"})), "r:d1 r:d2"
)]
#[case::pools_by_name(&[slice("q", plain(&["d1"]), json!({})), slice("p", plain(&["d0"]), json!({}))], r("r", json!({})), "r:d0")]
#[case::what_waits_comes_last(
    &[slice("p", json!([d("d0", json!({"bindingConditions": ["x"]}))]), json!({})), slice("q", plain(&["d1"]), json!({}))],
    r("r", json!({})), "r:d1"
)]
#[case::over_two_slices(&[of_two(plain(&["d0"])), of_two(plain(&["d1"]))], r("r", json!({"count": 2})), "r:d0 r:d1")]
#[case::a_slice_is_missing(&[of_two(plain(&["d0"]))], r("r", json!({})), "-")]
#[case::all_but_a_slice_is_missing(
    &[of_two(plain(&["d0"]))], r("r", json!({"allocationMode": "All"})),
    "claim d/c0, request r: asks for all devices, but resource pool d.io/p is currently being updated"
)]
#[case::replaced(
    &[slice("p", plain(&["d0"]), json!({})), slice("p", plain(&["d1"]), json!({"pool": {"generation": 2}}))],
    r("r", json!({"allocationMode": "All"})), "r:d1"
)]
#[case::replaced_by_one_for_another_node(
    &[slice("p", plain(&["d0"]), json!({"pool": {"resourceSliceCount": 2}})), slice("p", plain(&["d1"]), json!({"nodeName": "b", "pool": {"generation": 2}}))],
    r("r", json!({})), "-"
)]
#[case::twice_the_same_name(&[slice("p", plain(&["d0", "d0"]), json!({}))], r("r", json!({})), "invalid resource pools were encountered")]
#[case::another_pool_will_do(
    &[slice("p", plain(&["d0", "d0"]), json!({})), slice("q", plain(&["d1"]), json!({}))], r("r", json!({})), "r:d1"
)]
#[case::no_such_class(
    &[slice("p", plain(&["d0"]), json!({}))], r("r", json!({"deviceClassName": "none"})),
    "request r: device class none does not exist"
)]
#[case::all(&[slice("p", plain(&["d0", "d1"]), json!({}))], r("r", json!({"allocationMode": "All"})), "r:d0 r:d1")]
#[case::all_of_none(&[slice("p", plain(&[]), json!({}))], r("r", json!({"allocationMode": "All"})), "-")]
#[case::too_many(
    &[slice("p", plain(&["d0"]), json!({}))], r("r", json!({"count": 33})),
    "claim d/c0: number of requested devices 33 exceeds the claim limit of 32"
)]
#[case::big(&[slice("p", json!([sized("d0", "5"), sized("d1", "20")]), json!({}))], r("r", big()), "r:d1")]
#[case::none_is_big(&[slice("p", json!([sized("d0", "5")]), json!({}))], r("r", big()), "-")]
#[case::shunned(&[slice("p", json!([tainted("d0", "NoSchedule"), d("d1", json!({}))]), json!({}))], r("r", json!({})), "r:d1")]
#[case::shunned_by_all(&[slice("p", json!([tainted("d0", "NoExecute")]), json!({}))], r("r", json!({})), "-")]
#[case::tolerated(
    &[slice("p", json!([tainted("d0", "NoSchedule")]), json!({}))],
    r("r", json!({"tolerations": [{"key": "k", "operator": "Exists"}]})), "r:d0"
)]
#[case::only_marked(&[slice("p", json!([tainted("d0", "None")]), json!({}))], r("r", json!({})), "r:d0")]
#[case::all_but_one_is_shunned(
    &[slice("p", json!([tainted("d0", "NoSchedule"), d("d1", json!({}))]), json!({}))], r("r", json!({"allocationMode": "All"})), "-"
)]
#[case::the_first_way(
    &[slice("p", plain(&["d0", "d1"]), json!({}))], ways("r", &[("x", json!({"count": 2})), ("y", json!({}))]), "r/x:d0 r/x:d1"
)]
#[case::the_second_way(
    &[slice("p", plain(&["d0"]), json!({}))], ways("r", &[("x", json!({"count": 2})), ("y", json!({}))]), "r/y:d0"
)]
#[case::no_way(&[slice("p", plain(&["d0"]), json!({}))], ways("r", &[("x", json!({"count": 2})), ("y", json!({"count": 3}))]), "-")]
#[case::all_of_them_by_the_way(
    &[slice("p", plain(&["d0", "d1"]), json!({}))], ways("r", &[("x", json!({"count": 3})), ("y", json!({"allocationMode": "All"}))]),
    "r/y:d0 r/y:d1"
)]
#[case::parts(&[counters("4"), of_two(json!([part("d0", "3"), part("d1", "2"), part("d2", "1")]))], r("r", json!({"count": 2})), "r:d0 r:d2")]
#[case::too_many_parts(&[counters("4"), of_two(json!([part("d0", "3"), part("d1", "2")]))], r("r", json!({"count": 2})), "-")]
#[case::parts_of_what_is_not_there(
    &[slice("p", json!([part("d0", "1")]), json!({}))], r("r", json!({})), "invalid resource pools were encountered"
)]
#[case::shares(
    &[slice("p", json!([shared("d0", json!({"value": "10"}))]), json!({}))],
    r("r", json!({"capacity": {"requests": {"size": "4"}}})), "r:d0(4)"
)]
#[case::shares_all_without_a_word(&[slice("p", json!([shared("d0", json!({"value": "10"}))]), json!({}))], r("r", json!({})), "r:d0(10)")]
#[case::shares_as_by_default(
    &[slice("p", json!([shared("d0", json!({"value": "10", "requestPolicy": {"default": "3", "validValues": ["3", "5"]}}))]), json!({}))],
    r("r", json!({})), "r:d0(3)"
)]
#[case::shares_rounded_up(
    &[slice("p", json!([shared("d0", json!({"value": "10", "requestPolicy": {"default": "3", "validValues": ["3", "5"]}}))]), json!({}))],
    r("r", json!({"capacity": {"requests": {"size": "4"}}})), "r:d0(5)"
)]
#[case::shares_in_steps(
    &[slice("p", json!([shared("d0", json!({"value": "10", "requestPolicy": {"default": "2", "validRange": {"min": "2", "step": "3"}}}))]), json!({}))],
    r("r", json!({"capacity": {"requests": {"size": "4"}}})), "r:d0(5)"
)]
#[case::shares_more_than_one_may(
    &[slice("p", json!([shared("d0", json!({"value": "10", "requestPolicy": {"default": "2", "validRange": {"min": "2", "max": "6"}}}))]), json!({}))],
    r("r", json!({"capacity": {"requests": {"size": "7"}}})), "-"
)]
#[case::shares_of_what_it_has_not(
    &[slice("p", json!([shared("d0", json!({"value": "10"}))]), json!({}))],
    r("r", json!({"capacity": {"requests": {"weight": "1"}}})), "-"
)]
#[case::the_whole_of_one_that_is_big_enough(
    &[slice("p", json!([sized("d0", "3"), sized("d1", "5")]), json!({}))],
    r("r", json!({"capacity": {"requests": {"size": "4"}}})), "r:d1"
)]
fn what_a_request_gets(#[case] slices: &[Value], #[case] request: Value, #[case] expected: &str) {
    assert_eq!(found(slices, &[asks(json!([request]))], &[]), expected);
}

#[rstest]
#[case::the_first_gives_way(
    &[slice("p", json!([sized("d0", "20"), sized("d1", "5")]), json!({}))],
    asks(json!([r("x", json!({})), r("y", big())])), "x:d1 y:d0"
)]
#[case::all_and_another(
    &[slice("p", plain(&["d0", "d1"]), json!({}))], asks(json!([r("x", json!({"allocationMode": "All"})), r("y", json!({}))])), "-"
)]
#[case::alike(
    &[slice("p", json!([coloured("d0", "red"), coloured("d1", "blue"), coloured("d2", "blue")]), json!({}))],
    alike("matchAttribute", Value::Null, json!([r("x", json!({"count": 2}))])), "x:d1 x:d2"
)]
#[case::none_alike(
    &[slice("p", json!([coloured("d0", "red"), coloured("d1", "blue")]), json!({}))],
    alike("matchAttribute", Value::Null, json!([r("x", json!({})), r("y", json!({}))])), "-"
)]
#[case::nothing_said_of_it(
    &[slice("p", plain(&["d0"]), json!({}))], alike("matchAttribute", Value::Null, json!([r("x", json!({}))])), "-"
)]
#[case::alike_but_not_the_third(
    &[slice("p", json!([coloured("d0", "red"), coloured("d1", "red"), coloured("d2", "blue")]), json!({}))],
    alike("matchAttribute", json!(["x", "y"]), json!([r("z", json!({})), r("x", json!({})), r("y", json!({}))])), "z:d2 x:d0 y:d1"
)]
#[case::all_and_not_alike(
    &[slice("p", json!([coloured("d0", "red"), coloured("d1", "blue")]), json!({}))],
    alike("matchAttribute", Value::Null, json!([r("x", json!({"allocationMode": "All"}))])),
    "claim d/c0, request x: cannot add device d.io/p/d1 because a claim constraint would not be satisfied"
)]
#[case::different(
    &[slice("p", json!([coloured("d0", "red"), coloured("d1", "red"), coloured("d2", "blue")]), json!({}))],
    alike("distinctAttribute", Value::Null, json!([r("x", json!({})), r("y", json!({}))])), "x:d0 y:d2"
)]
#[case::none_different(
    &[slice("p", json!([coloured("d0", "red"), coloured("d1", "red")]), json!({}))],
    alike("distinctAttribute", Value::Null, json!([r("x", json!({})), r("y", json!({}))])), "-"
)]
#[case::alike_in_one_way(
    &[slice("p", json!([coloured("d0", "red"), coloured("d1", "blue"), coloured("d2", "blue")]), json!({}))],
    alike("matchAttribute", json!(["x/v", "y"]), json!([ways("x", &[("v", json!({"count": 1}))]), r("y", json!({}))])), "x/v:d1 y:d2"
)]
fn what_requests_get_together(#[case] slices: &[Value], #[case] claim: Value, #[case] expected: &str) {
    assert_eq!(found(slices, &[claim], &[]), expected);
}

#[rstest]
#[case::the_next(plain(&["d0", "d1"]), &[asks(json!([r("r", json!({}))]))], &[has("d0", Value::Null)], "r:d1")]
#[case::none_is_left(plain(&["d0"]), &[asks(json!([r("r", json!({}))]))], &[has("d0", Value::Null)], "-")]
#[case::all_but_one_is_taken(plain(&["d0", "d1"]), &[asks(json!([r("r", json!({"allocationMode": "All"}))]))], &[has("d0", Value::Null)], "-")]
#[case::who_looks_after_it(plain(&["d0"]), &[asks(json!([r("r", json!({"adminAccess": true}))]))], &[has("d0", Value::Null)], "r:d0")]
#[case::who_looks_after_all(
    plain(&["d0", "d1"]), &[asks(json!([r("r", json!({"adminAccess": true, "allocationMode": "All"}))]))], &[has("d0", Value::Null)],
    "r:d0 r:d1"
)]
#[case::two_claims(plain(&["d0", "d1"]), &[asks(json!([r("r", json!({}))])), asks(json!([r("s", json!({}))]))], &[], "r:d0 | s:d1")]
#[case::one_for_two_claims(plain(&["d0"]), &[asks(json!([r("r", json!({}))])), asks(json!([r("s", json!({}))]))], &[], "-")]
#[case::the_first_claim_gives_way(
    json!([sized("d0", "20"), sized("d1", "5")]), &[asks(json!([r("r", json!({}))])), asks(json!([r("s", big())]))], &[],
    "r:d1 | s:d0"
)]
#[case::what_is_left_of_one_that_is_shared(
    json!([shared("d0", json!({"value": "10"})), shared("d1", json!({"value": "10"}))]),
    &[asks(json!([r("r", json!({"capacity": {"requests": {"size": "4"}}}))]))], &[has("d0", json!("6"))], "r:d0(4)"
)]
#[case::too_little_is_left_of_it(
    json!([shared("d0", json!({"value": "10"})), shared("d1", json!({"value": "10"}))]),
    &[asks(json!([r("r", json!({"capacity": {"requests": {"size": "4"}}}))]))], &[has("d0", json!("7"))], "r:d1(4)"
)]
#[case::twice_of_one_that_is_shared(
    json!([shared("d0", json!({"value": "10"}))]),
    &[asks(json!([r("r", json!({"capacity": {"requests": {"size": "4"}}}))])), asks(json!([r("s", json!({"capacity": {"requests": {"size": "6"}}}))]))],
    &[], "r:d0(4) | s:d0(6)"
)]
#[case::more_than_there_is_of_it(
    json!([shared("d0", json!({"value": "10"}))]),
    &[asks(json!([r("r", json!({"capacity": {"requests": {"size": "4"}}}))])), asks(json!([r("s", json!({"capacity": {"requests": {"size": "7"}}}))]))],
    &[], "-"
)]
#[case::whole_though_it_is_shared_now(
    json!([shared("d0", json!({"value": "10"})), d("d1", json!({}))]), &[asks(json!([r("r", json!({}))]))], &[has("d0", Value::Null)],
    "r:d1"
)]
fn what_others_leave(
    #[case] devices: Value,
    #[case] claims: &[Value],
    #[case] taken: &[Value],
    #[case] expected: &str,
) {
    assert_eq!(found(&[slice("p", devices, json!({}))], claims, taken), expected);
}
