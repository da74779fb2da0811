//! Claims of devices: creates those of pods' templates, and keeps their reservations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use machinery::meta::{ObjectMeta as _, at, string_map};
use shared_json::{Map, Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, controller_of, is_not_found, list, text};
use super::runtime::{claim_name, claim_object, is_over};

/// Whose fields of a pod's status are those that name its claims.
const MANAGER: &str = "ResourceClaimController";
/// Says for which of its pod's claims a claim was made.
const POD_CLAIM: &str = "resource.kubernetes.io/pod-claim-name";
/// Keeps a claim while it is allocated.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// Before the key of a claim, where a pod's has nothing.
const CLAIM_KEY: &str = "claim:";
/// How long the beginning of a generated name may be.
const BASE_MAX: usize = 57;
/// A claim is reserved for so many at most.
const RESERVED_MAX: usize = 256;
/// When a pod is looked at again whose claims could not be made: at first, and at most.
const TRY_AFTER: Duration = Duration::from_millis(5);
const TRY_AFTER_MAX: Duration = Duration::from_secs(1000);

/// The controller.
#[derive(Default)]
pub(super) struct ResourceClaims {
    /// How often the claims of each pod could not be made.
    tries: BTreeMap<Key, u32>,
}

fn claim_key(namespace: &str, name: &str) -> Key {
    Key::new(namespace, &format!("{CLAIM_KEY}{name}"))
}

/// Whether a pod will not run any more, or never.
fn is_done(pod: &Value) -> bool {
    is_over(pod) || (pod.is_terminating() && text(pod, "spec.nodeName").is_empty())
}

/// The name of the claim that the scheduler has made for a pod's extended resources.
fn extended(pod: &Value) -> Option<&str> {
    Some(text(pod, "status.extendedResourceClaimStatus.resourceClaimName")).filter(|name| !name.is_empty())
}

/// The beginning of the name of a claim that is made: pod and claim, both shortened alike if they are long.
fn generate_name(pod: &str, claim: &str) -> String {
    let whole = format!("{pod}-{claim}-");
    if whole.len() <= BASE_MAX {
        return whole;
    }
    let part = |text: &str| {
        let end = text.len() * BASE_MAX / whole.len();
        text.get(..end).unwrap_or(text).to_owned()
    };
    format!("{}-{}", part(pod), part(claim))
}

/// The claim of a pod by a template.
fn from_template(pod: &Value, claim: &str, template: &Value) -> Value {
    let of = |field: &str| at(template, &format!("spec.metadata.{field}")).cloned();
    let mut annotations = of("annotations").unwrap_or_else(|| json!({}));
    annotations[POD_CLAIM] = json!(claim);
    let mut metadata = json!({
        "generateName": generate_name(pod.name(), claim), "namespace": pod.namespace(), "annotations": annotations,
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": pod.name(), "uid": pod.uid(), "controller": true},
        ],
    });
    if let Some(labels) = of("labels") {
        metadata["labels"] = labels;
    }
    json!({"metadata": metadata, "spec": at(template, "spec.spec").cloned().unwrap_or_else(|| json!({}))})
}

#[async_trait]
impl Controller for ResourceClaims {
    fn name(&self) -> &'static str {
        "resource_claim"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Pods, Res::ResourceClaims, Res::ResourceClaimTemplates]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        let namespace = object.namespace();
        match res {
            Res::Pods => {
                let claims = list(object, "spec.resourceClaims");
                if claims.is_empty() && extended(object).is_none() {
                    return Vec::new();
                }
                let gone = cache.get(Res::Pods, namespace, object.name()).is_none();
                let named = claims.iter().filter_map(|claim| claim_object(object, claim));
                let released = named.chain(extended(object)).filter(|_| gone || is_done(object));
                released
                    .map(|name| claim_key(namespace, name))
                    .chain([Key::of(object)])
                    .collect()
            }
            Res::ResourceClaims => {
                let reserved = list(object, "status.reservedFor").iter();
                let owner = controller_of(object).filter(|owner| text(owner, "kind") == "Pod");
                let is_allocated = |claim: &Value| at(claim, "status.allocation").is_some();
                // A pod that has a node may have waited for this.
                let waiting = match is_allocated(object) && !old.is_some_and(is_allocated) {
                    true => cache.users(&Key::of(object)).cloned().collect(),
                    false => Vec::new(),
                };
                reserved
                    .filter(|one| text(one, "resource") == "pods")
                    .chain(owner)
                    .map(|one| Key::new(namespace, text(one, "name")))
                    .chain([claim_key(namespace, object.name())])
                    .chain(waiting)
                    .collect()
            }
            _ => {
                let is_meant = |claim: &Value| text(claim, "resourceClaimTemplateName") == object.name();
                let pods = cache.in_namespace(Res::Pods, namespace);
                pods.filter(|pod| list(pod, "spec.resourceClaims").iter().any(is_meant))
                    .map(|pod| Key::of(pod))
                    .collect()
            }
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        if let Some(name) = key.name.strip_prefix(CLAIM_KEY) {
            let claim = cx.cache.get(Res::ResourceClaims, &key.namespace, name).cloned();
            if let Some(claim) = claim {
                sync_claim(cx, claim).await?;
            }
            return Ok(Next::Change);
        }
        let pod = cx.cache.get(Res::Pods, &key.namespace, &key.name).cloned();
        let Some(pod) = pod.filter(|pod| !pod.is_terminating()) else {
            self.tries.remove(key);
            return Ok(Next::Change);
        };
        let complaint = make(cx, &pod).await?;
        let Some((claim, complaint)) = complaint else {
            self.tries.remove(key);
            reserve(cx, &pod).await?;
            return Ok(Next::Change);
        };
        let message = format!("PodResourceClaim {claim}: {complaint}");
        cx.warning(Res::Pods, &pod, "FailedResourceClaimCreation", message);
        let tries = self.tries.entry(key.clone()).or_default();
        let delay = TRY_AFTER.saturating_mul(2_u32.saturating_pow(*tries));
        *tries += 1;
        Ok(Next::After(delay.min(TRY_AFTER_MAX)))
    }
}

/// Makes the claims that a pod has by templates and writes their names into its status. Returns the obstacle to
/// one of them, if there is one: the claim's name in the pod, and the reason.
async fn make(cx: &mut Cx<'_>, pod: &Value) -> Result<Option<(String, String)>, kube::Error> {
    let mut statuses = Vec::new();
    for claim in list(pod, "spec.resourceClaims") {
        let (name, template) = (text(claim, "name"), text(claim, "resourceClaimTemplateName"));
        // One that was made and is gone does not come back: the real controller remembers that it made it.
        if template.is_empty() || claim_name(pod, claim).is_some() {
            continue;
        }
        let owned = cx.cache.owned(Res::ResourceClaims, pod.uid());
        let found = owned
            .iter()
            .find(|one| string_map(one, "annotations").get(POD_CLAIM) == Some(&json!(name)));
        let made = match found {
            Some(found) => found.name().to_owned(),
            None => {
                let templates = cx
                    .cache
                    .get(Res::ResourceClaimTemplates, pod.namespace(), template);
                let Some(object) = templates.map(|found| from_template(pod, name, found)) else {
                    let missing = format!(
                        "resource claim template \"{template}\": resourceclaimtemplate.resource.k8s.io \"{template}\" not found"
                    );
                    return Ok(Some((name.to_owned(), missing)));
                };
                match cx.create(Res::ResourceClaims, pod.namespace(), object).await {
                    Ok(created) => created.name().to_owned(),
                    Err(kube::Error::Api(status)) => {
                        let why = format!("create ResourceClaim : {}", status.message);
                        return Ok(Some((name.to_owned(), why)));
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        statuses.push(json!({"name": name, "resourceClaimName": made}));
    }
    if !statuses.is_empty() {
        let status = json!({"resourceClaimStatuses": statuses});
        cx.apply(Res::Pods, pod, "/status", json!({"status": status}), MANAGER)
            .await?;
    }
    Ok(None)
}

/// Reserves the allocated claims of a pod that has a node already: the scheduler did not see it.
async fn reserve(cx: &mut Cx<'_>, pod: &Value) -> Result<(), kube::Error> {
    // One that is done needs no devices.
    if text(pod, "spec.nodeName").is_empty() || is_done(pod) {
        return Ok(());
    }
    for claim in list(pod, "spec.resourceClaims") {
        let Some(name) = claim_object(pod, claim) else {
            continue;
        };
        let Some(found) = cx.cache.get(Res::ResourceClaims, pod.namespace(), name).cloned() else {
            return Ok(());
        };
        let reserved = list(&found, "status.reservedFor");
        let is_reserved = reserved.iter().any(|one| text(one, "uid") == pod.uid());
        if at(&found, "status.allocation").is_none() || is_reserved || reserved.len() >= RESERVED_MAX {
            continue;
        }
        let mut reserved = reserved.to_vec();
        reserved.push(json!({"resource": "pods", "name": pod.name(), "uid": pod.uid()}));
        let mut changed = Value::clone(&found);
        changed["status"]["reservedFor"] = Value::from(reserved);
        cx.put_status(Res::ResourceClaims, changed).await?;
    }
    Ok(())
}

/// Whether the pod that a claim is reserved for may still need it.
async fn needs(cx: &Cx<'_>, namespace: &str, reserved: &Value) -> Result<bool, kube::Error> {
    if text(reserved, "resource") != "pods" || !text(reserved, "apiGroup").is_empty() {
        return Ok(true);
    }
    let (name, uid) = (text(reserved, "name"), text(reserved, "uid"));
    if let Some(pod) = cx.cache.get(Res::Pods, namespace, name) {
        return Ok(pod.uid() == uid && !is_done(pod));
    }
    // It may be too new to be known.
    match cx.read(&format!("{}/{name}", Res::Pods.path(namespace))).await {
        Ok(pod) => Ok(pod.uid() == uid),
        Err(error) if is_not_found(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes users that are done from a claim, and deletes it if the pod that it was made for is done.
async fn sync_claim(cx: &mut Cx<'_>, mut claim: Arc<Value>) -> Result<(), kube::Error> {
    let namespace = claim.namespace().to_owned();
    let reserved = list(&claim, "status.reservedFor").to_vec();
    let mut remaining = Vec::new();
    for one in &reserved {
        if needs(cx, &namespace, one).await? {
            remaining.push(one.clone());
        }
    }
    let protected = claim.finalizers().contains(&FINALIZER);
    let idle = remaining.is_empty();
    let unused = idle && protected && (!reserved.is_empty() || claim.is_terminating());
    if remaining.len() < reserved.len() || (unused && at(&claim, "status.allocation").is_some()) {
        let mut changed = Value::clone(&claim);
        if let Some(status) = changed.get_mut("status").and_then(Value::as_object_mut) {
            release(status, remaining, unused);
        }
        cx.put_status(Res::ResourceClaims, changed).await?;
        let written = cx
            .cache
            .get(Res::ResourceClaims, &namespace, claim.name())
            .cloned();
        claim = written.unwrap_or(claim);
    }
    if unused {
        let left: Vec<&str> = claim
            .finalizers()
            .into_iter()
            .filter(|name| *name != FINALIZER)
            .collect();
        let patch = json!({"metadata": {"finalizers": left}});
        match cx.patch(Res::ResourceClaims, &claim, "", patch).await {
            Err(error) if is_not_found(&error) => return Ok(()),
            other => drop(other?),
        }
    }
    let owner = controller_of(&claim).filter(|owner| text(owner, "kind") == "Pod");
    let pod = owner.and_then(|owner| {
        let pod = cx.cache.get(Res::Pods, &namespace, text(owner, "name"))?;
        (pod.uid() != text(owner, "uid") || is_done(pod)).then_some(())
    });
    if idle && pod.is_some() && !claim.is_terminating() {
        cx.delete(Res::ResourceClaims, &claim, None).await?;
    }
    Ok(())
}

/// Sets the users in a claim's status to the remaining ones; without users its allocation is removed.
fn release(status: &mut Map, remaining: Vec<Value>, unused: bool) {
    if remaining.is_empty() {
        status.remove("reservedFor");
    } else {
        status.insert("reservedFor".to_owned(), Value::from(remaining));
    }
    if unused {
        status.remove("allocation");
        // What drivers have told of the devices goes with them.
        status.remove("devices");
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("p", "x", "p-x-")]
    #[case(&"p".repeat(50), "gpus", &format!("{}-gpus-", "p".repeat(50)))]
    #[case(&"p".repeat(51), "gpus", &format!("{}-gpus-", "p".repeat(51)))]
    #[case(&"p".repeat(52), "gpus", &format!("{}-gpu", "p".repeat(51)))]
    #[case(&"p".repeat(46), &"x".repeat(31), &format!("{}-{}", "p".repeat(33), "x".repeat(22)))]
    fn beginnings_of_names(#[case] pod: &str, #[case] claim: &str, #[case] expected: &str) {
        assert_eq!(generate_name(pod, claim), expected);
    }

    #[rstest]
    // phase, deleted, on a node, done
    #[case("Running", false, true, false)]
    #[case("Succeeded", false, true, true)]
    #[case("Failed", false, false, true)]
    #[case("Pending", true, false, true)]
    #[case("Running", true, true, false)]
    fn pods_that_are_done(
        #[case] phase: &str,
        #[case] deleted: bool,
        #[case] placed: bool,
        #[case] done: bool,
    ) {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": {}, "status": {"phase": phase}});
        if deleted {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        if placed {
            pod["spec"]["nodeName"] = json!("n");
        }
        assert_eq!(is_done(&pod), done);
    }

    #[test]
    fn made_from_a_template() {
        let pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}});
        let template = json!({"spec": {
            "metadata": {"labels": {"l": "m"}, "annotations": {"a": "b"}}, "spec": {"devices": {}},
        }});
        let expected = json!({
            "metadata": {
                "generateName": "p-x-", "namespace": "n", "labels": {"l": "m"}, "annotations": {"a": "b", POD_CLAIM: "x"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}],
            },
            "spec": {"devices": {}},
        });
        assert_eq!(from_template(&pod, "x", &template), expected);
    }

    #[rstest]
    #[case(vec![json!({"name": "a"})], false, json!({"allocation": {}, "reservedFor": [{"name": "a"}]}))]
    #[case(vec![], true, json!({}))]
    #[case(vec![], false, json!({"allocation": {}}))]
    fn released(#[case] remaining: Vec<Value>, #[case] unused: bool, #[case] expected: Value) {
        let mut status = json!({"allocation": {}, "reservedFor": [{"name": "a"}, {"name": "b"}]});
        release(status.as_object_mut().unwrap(), remaining, unused);
        assert_eq!(status, expected);
    }
}
