use rstest::rstest;
use shared_json::{Value, json};

use super::super::message::{self, Preemption};
use super::super::preemption;
use super::*;

fn merge(object: &mut Value, change: &Value) {
    if change.is_object() {
        object.merge(change);
    }
}

/// Three nodes: `a` and `b` in zone 1, `c` in zone 2, 2 cores each. On `a` is a pod with the label `app: web`.
fn cluster(change: Value) -> Cluster {
    let mut cluster = Cluster::default();
    for (name, zone) in [("a", "1"), ("b", "1"), ("c", "2")] {
        let mut node = json!({
            "metadata": {"name": name, "labels": {"zone": zone, "kubernetes.io/hostname": name, "size": "4"}},
            "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "2"}},
        });
        merge(&mut node, &change["nodes"][name]);
        cluster.put_node(node);
    }
    let mut web = json!({
        "metadata": {"uid": "web", "namespace": "d", "labels": {"app": "web"}},
        "spec": {"containers": [{"resources": {"requests": {"cpu": "1500m"}}, "ports": [{"hostPort": 80}]}]},
    });
    merge(&mut web, &change["web"]);
    cluster.place(Arc::new(PodInfo::new(web.clone())), "a");
    for claim in change["claims"].as_array().into_iter().flatten() {
        let name = claim["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        cluster.claims.insert(("d".to_owned(), name), claim.clone());
    }
    for volume in change["volumes"].as_array().into_iter().flatten() {
        let name = volume["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        cluster.volumes.insert(name, volume.clone());
    }
    cluster.classes.insert(
        "late".to_owned(),
        json!({"provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}),
    );
    cluster.classes.insert(
        "local".to_owned(),
        json!({"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}),
    );
    cluster
}

/// The nodes that a pod can go to; the reasons of the others.
fn place(spec: Value, change: Value) -> String {
    let cluster = cluster(change);
    let pod = json!({"metadata": {"uid": "p", "name": "p", "namespace": "d", "labels": {"app": "web"}}, "spec": spec});
    let pod = Arc::new(PodInfo::new(pod));
    let cycle = match Cycle::new(&pod, &cluster) {
        Ok(cycle) => cycle,
        Err(Hopeless::Volumes(_, message) | Hopeless::Devices(message)) => return message,
    };
    let words: Vec<String> = cluster
        .nodes
        .values()
        .map(|node| match cycle.refuse(node) {
            None => node.name().to_owned(),
            Some(refusal) => format!(
                "({}{})",
                refusal.reasons.join(", "),
                if refusal.resolvable { "" } else { "!" }
            ),
        })
        .collect();
    words.join(" ")
}

const SPREAD: &str = "(node(s) didn't match pod topology spread constraints)";

const TAINTED: &str = "(node(s) had untolerated taint(s)!)";

/// A pod that is spread over zones, and selects the first one if it is `narrow`. Pods with the label `app: web` count unless `more` says otherwise.
fn spread(narrow: bool, more: Value) -> Value {
    let mut constraint = json!({
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    });
    for (field, value) in more.as_object().expect("fields") {
        constraint[field] = value.clone();
    }
    let mut spec = json!({"topologySpreadConstraints": [constraint]});
    if narrow {
        spec["nodeSelector"] = json!({"zone": "1"});
    }
    spec
}

/// The last node has a taint if it is `tainted`.
#[rstest]
#[case::as_it_is(spread(false, json!({})), false, &format!("{SPREAD} {SPREAD} c"))]
#[case::further_apart(spread(false, json!({"maxSkew": 2})), false, "a b c")]
#[case::soft(spread(false, json!({"whenUnsatisfiable": "ScheduleAnyway"})), false, "a b c")]
#[case::of_others(spread(false, json!({"labelSelector": {"matchLabels": {"app": "x"}}})), false, "a b c")]
#[case::of_nobody(spread(false, json!({"labelSelector": null})), false, "a b c")]
#[case::of_everybody_is_of_nobody(spread(false, json!({"labelSelector": {}})), false, "a b c")]
#[case::of_the_same_label(
    spread(false, json!({"labelSelector": {}, "matchLabelKeys": ["app"]})), false, &format!("{SPREAD} {SPREAD} c")
)]
#[case::of_a_label_that_is_not_there(spread(false, json!({"labelSelector": {}, "matchLabelKeys": ["x"]})), false, "a b c")]
#[case::both(
    spread(false, json!({"labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["app"]})), false, "a b c"
)]
#[case::only_where_it_may_be(spread(true, json!({})), false, &format!("a b {AFFINITY}"))]
#[case::everywhere(
    spread(true, json!({"nodeAffinityPolicy": "Ignore"})), false, &format!("{SPREAD} {SPREAD} {AFFINITY}")
)]
#[case::too_few_places(spread(true, json!({"minDomains": 2})), false, &format!("{SPREAD} {SPREAD} {AFFINITY}"))]
#[case::enough_places(spread(true, json!({"minDomains": 1})), false, &format!("a b {AFFINITY}"))]
#[case::many_places(spread(false, json!({"minDomains": 5})), false, &format!("{SPREAD} {SPREAD} c"))]
#[case::taints_do_not_count(spread(false, json!({})), true, &format!("{SPREAD} {SPREAD} {TAINTED}"))]
#[case::taints_count(spread(false, json!({"nodeTaintsPolicy": "Honor"})), true, &format!("a b {TAINTED}"))]
#[case::by_node(spread(false, json!({"topologyKey": "kubernetes.io/hostname"})), false, &format!("{SPREAD} b c"))]
fn where_pods_are_spread(#[case] spec: Value, #[case] tainted: bool, #[case] expected: &str) {
    let change = if tainted {
        json!({"nodes": {"c": {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}}})
    } else {
        json!({})
    };
    assert_eq!(place(spec, change), expected);
}

const AFFINITY: &str = "(node(s) didn't match Pod's node affinity/selector!)";

const FEATURES: &str = "(node(s) didn't match Pod's required features!)";

const NAMED: &str = "(node(s) didn't satisfy plugin(s) [NodeAffinity]!)";

#[rstest]
#[case(json!({}), json!({}), "a b c")]
#[case(json!({}), json!({"nodes": {"b": {"spec": {"unschedulable": true}}}}), "a (node(s) were unschedulable!) c")]
#[case(json!({"nodeName": "b"}), json!({}), "(node(s) didn't match the requested node name!) b (node(s) didn't match the requested node name!)")]
#[case(json!({}), json!({"nodes": {"b": {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}}}), "a (node(s) had untolerated taint(s)!) c")]
#[case(json!({}), json!({"nodes": {"b": {"spec": {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}}}}), "a b c")]
#[case(
    json!({"tolerations": [{"key": "k", "operator": "Exists"}]}),
    json!({"nodes": {"b": {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}}}), "a b c"
)]
#[case(
    json!({"tolerations": [{"key": "k", "value": "v"}]}),
    json!({"nodes": {"b": {"spec": {"taints": [{"key": "k", "value": "w", "effect": "NoSchedule"}]}}}}),
    "a (node(s) had untolerated taint(s)!) c"
)]
#[case(json!({"nodeSelector": {"zone": "2"}}), json!({}), &format!("{AFFINITY} {AFFINITY} c"))]
#[case(json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["2"]}]}]}}}}), json!({}), &format!("a b {AFFINITY}"))]
#[case(json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]}}}}), json!({}), &format!("{NAMED} b {NAMED}"))]
#[case(json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["3"]}]}]}}}}), json!({}), "a b c")]
#[case(
    json!({"containers": [{"ports": [{"hostPort": 80}]}]}), json!({}),
    "(node(s) didn't have free ports for the requested pod ports) b c"
)]
#[case(json!({"containers": [{"ports": [{"hostPort": 80, "protocol": "UDP"}]}]}), json!({}), "a b c")]
#[case(json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}), json!({}), "(Insufficient cpu) b c")]
#[case(
    json!({"containers": [{"resources": {"requests": {"cpu": "3", "memory": "2Gi"}}}]}), json!({}),
    "(Insufficient cpu, Insufficient memory!) (Insufficient cpu, Insufficient memory!) (Insufficient cpu, Insufficient memory!)"
)]
#[case(json!({}), json!({"nodes": {"a": {"status": {"allocatable": {"pods": "1"}}}}}), "(Too many pods) b c")]
#[case(json!({"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}]}), json!({}), "persistentvolumeclaim \"x\" not found")]
#[case(
    json!({"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}]}),
    json!({"claims": [{"metadata": {"name": "x"}, "spec": {}}]}), "pod has unbound immediate PersistentVolumeClaims"
)]
#[case(
    json!({"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}]}),
    json!({"claims": [{"metadata": {"name": "x"}, "spec": {"storageClassName": "late"}}]}), "a b c"
)]
#[case(
    json!({"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}]}),
    json!({
        "claims": [{"metadata": {"name": "x"}, "spec": {"storageClassName": "local"}}],
        "volumes": [{"metadata": {"name": "v"}, "status": {"phase": "Available"}, "spec": {"storageClassName": "local", "nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["2"]}]}]}}}}],
    }),
    "(node(s) didn't find available persistent volumes to bind!) (node(s) didn't find available persistent volumes to bind!) c"
)]
#[case(
    json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}]}),
    json!({}),
    "(node(s) didn't match pod topology spread constraints) (node(s) didn't match pod topology spread constraints) c"
)]
#[case(
    json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]}),
    json!({"nodes": {"b": {"metadata": {"labels": {"rack": "r"}}}}}),
    "(node(s) didn't match pod topology spread constraints (missing required label)!) b \
     (node(s) didn't match pod topology spread constraints (missing required label)!)"
)]
#[case(
    json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}]}}}),
    json!({}), "a b (node(s) didn't match pod affinity rules!)"
)]
#[case(
    json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}]}}}),
    json!({"web": {"metadata": {"labels": {"app": "other"}}}}), "a b c"
)]
#[case(
    json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}}}),
    json!({}), "(node(s) didn't match pod anti-affinity rules) b c"
)]
#[case(
    json!({}),
    json!({"web": {"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}]}}}}}),
    "(node(s) didn't satisfy existing pods anti-affinity rules) (node(s) didn't satisfy existing pods anti-affinity rules) c"
)]
#[case(
    json!({"containers": [{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]}),
    json!({"nodes": {"b": {"status": {"declaredFeatures": ["Other", "RestartAllContainersOnContainerExits"]}}, "c": {"status": {"declaredFeatures": ["Other"]}}}}),
    &format!("{FEATURES} b {FEATURES}")
)]
#[case(json!({"initContainers": [{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]}), json!({}), &format!("{FEATURES} {FEATURES} {FEATURES}"))]
#[case(json!({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}), json!({}), "a b c")]
#[case(json!({"hostNetwork": true, "hostUsers": false}), json!({}), &format!("{FEATURES} {FEATURES} {FEATURES}"))]
#[case(json!({"hostNetwork": true}), json!({}), "a b c")]
#[case(json!({"hostUsers": false}), json!({}), "a b c")]
fn where_pods_fit(#[case] spec: Value, #[case] change: Value, #[case] expected: &str) {
    assert_eq!(place(spec, change), expected);
}

/// The message about a pod that fits nowhere, or its possible nodes.
fn said(spec: Value, change: Value) -> String {
    let cluster = cluster(change);
    let never = spec["preemptionPolicy"] == "Never";
    let pod = json!({"metadata": {"uid": "p", "name": "p", "namespace": "d", "labels": {"app": "web"}}, "spec": spec});
    let pod = Arc::new(PodInfo::new(pod));
    let cycle = match Cycle::new(&pod, &cluster) {
        Ok(cycle) => cycle,
        Err(Hopeless::Volumes(_, why)) => return message::hopeless(cluster.nodes.len(), &why),
        Err(Hopeless::Devices(why)) => return message::no_devices(cluster.nodes.len(), &why),
    };
    let mut refusals = Vec::new();
    for node in cluster.nodes.values() {
        match cycle.refuse(node) {
            Some(refusal) => refusals.push((node, refusal)),
            None => return format!("fits {}", node.name()),
        }
    }
    let outcome = match (never, preemption::find(&cycle, &refusals)) {
        (true, _) => Preemption::Never,
        (false, Ok(_)) => Preemption::Found,
        (false, Err(why)) => Preemption::Vain(why),
    };
    let refusals: Vec<Refusal> = refusals.into_iter().map(|(_, refusal)| refusal).collect();
    message::refused(&refusals, message::NO_CLAIMS, &outcome)
}

/// The messages of kube-scheduler 1.36.2 on the same nodes: the refusals, and the result of preemption.
#[rstest]
#[case(json!({"containers": [{"resources": {"requests": {"cpu": "3"}}}]}), json!({}), "3 Insufficient cpu", "3 useless")]
#[case(json!({"containers": [{"resources": {"requests": {"memory": "2Gi"}}}]}), json!({}), "3 Insufficient memory", "3 useless")]
#[case(
    json!({"containers": [{"resources": {"requests": {"cpu": "3", "memory": "2Gi"}}}]}), json!({}),
    "3 Insufficient cpu, 3 Insufficient memory", "3 useless"
)]
#[case(json!({"containers": [{"resources": {"requests": {"e.com/gpu": "1"}}}]}), json!({}), "3 Insufficient e.com/gpu", "3 useless")]
#[case(json!({"nodeSelector": {"zone": "9"}}), json!({}), "3 node(s) didn't match Pod's node affinity/selector", "3 useless")]
#[case(
    json!({"nodeSelector": {"zone": "1"}, "containers": [{"resources": {"requests": {"cpu": "3"}}}]}), json!({}),
    "1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient cpu", "3 useless"
)]
#[case(
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["zz"]}]}]}}}}),
    json!({}), "3 node(s) didn't satisfy plugin(s) [NodeAffinity]", "3 useless"
)]
#[case(
    json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}], "affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]}}}}),
    json!({}), "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]", "1 without victims, 2 useless"
)]
#[case(
    json!({}),
    json!({"nodes": {
        "a": {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
        "b": {"spec": {"taints": [{"key": "l", "effect": "NoExecute"}]}},
        "c": {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "m", "effect": "NoSchedule"}]}},
    }}),
    "3 node(s) had untolerated taint(s)", "3 useless"
)]
#[case(
    json!({"containers": [{"resources": {"requests": {"cpu": "3"}}}]}),
    json!({"nodes": {"a": {"spec": {"unschedulable": true}}}}),
    "1 node(s) were unschedulable, 2 Insufficient cpu", "3 useless"
)]
#[case(
    json!({"nodeSelector": {"kubernetes.io/hostname": "a"}, "containers": [{"ports": [{"hostPort": 80}]}]}), json!({}),
    "1 node(s) didn't have free ports for the requested pod ports, 2 node(s) didn't match Pod's node affinity/selector",
    "1 without victims, 2 useless"
)]
#[case(
    json!({}),
    json!({"nodes": {"a": {"status": {"allocatable": {"pods": "0"}}}, "b": {"status": {"allocatable": {"pods": "0"}}},
        "c": {"status": {"allocatable": {"pods": "0"}}}}}),
    "3 Too many pods", "3 without victims"
)]
#[case(
    json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "web"}}}]}}}),
    json!({}), "3 node(s) didn't match pod affinity rules", "3 useless"
)]
#[case(
    json!({"nodeSelector": {"kubernetes.io/hostname": "a"}, "affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}]}}}),
    json!({}),
    "1 node(s) didn't match pod anti-affinity rules, 2 node(s) didn't match Pod's node affinity/selector",
    "1 without victims, 2 useless"
)]
#[case(
    json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}]}),
    json!({"nodes": {"c": {"status": {"allocatable": {"pods": "0"}}}}}),
    "1 Too many pods, 2 node(s) didn't match pod topology spread constraints", "3 without victims"
)]
#[case(
    json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}]}),
    json!({}), "3 node(s) didn't match pod topology spread constraints (missing required label)", "3 useless"
)]
#[case(json!({"volumes": [{"persistentVolumeClaim": {"claimName": "none"}}]}), json!({}), "persistentvolumeclaim \"none\" not found", "")]
#[case(
    json!({"volumes": [{"persistentVolumeClaim": {"claimName": "x"}}]}),
    json!({"claims": [{"metadata": {"name": "x"}, "spec": {"storageClassName": "nope"}}]}),
    "pod has unbound immediate PersistentVolumeClaims", ""
)]
#[case(
    json!({"preemptionPolicy": "Never", "nodeSelector": {"zone": "9"}}), json!({}),
    "3 node(s) didn't match Pod's node affinity/selector", "never"
)]
fn what_is_said(#[case] spec: Value, #[case] change: Value, #[case] why: &str, #[case] preemption: &str) {
    let rest = match preemption {
        "" => "not found".to_owned(),
        "never" => {
            "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.".to_owned()
        }
        short => {
            let long = short
                .replace("useless", "Preemption is not helpful for scheduling")
                .replace("without victims", "No preemption victims found for incoming pod");
            format!("no new claims to deallocate, preemption: 0/3 nodes are available: {long}.")
        }
    };
    assert_eq!(
        said(spec, change),
        format!("0/3 nodes are available: {why}. {rest}")
    );
}
