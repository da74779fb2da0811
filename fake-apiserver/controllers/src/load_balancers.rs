//! Load balancers: a cloud provider's `service-lb-controller` for Services of type `LoadBalancer`.
//!
//! Events, the finalizer and the order of writes are those of Kubernetes' own service controller. The load balancer itself is an
//! address of the benchmarking networks (RFC 2544, RFC 5180), at which nothing answers.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use async_trait::async_trait;
use machinery::meta::ObjectMeta as _;
use shared_json::{Array, Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list, text};

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// 198.18.0.0/15, without its first address.
const FIRST_V4: u32 = u32::from_be_bytes([198, 18, 0, 1]);
const COUNT_V4: u32 = (1 << 17) - 2;
/// 2001:2::/48, without its first address.
const FIRST_V6: u128 = 0x2001_0002_u128 << 96 | 1;

/// Gives Services of type `LoadBalancer` an address.
pub(super) struct LoadBalancers;

/// Whether the Service is to have a load balancer of ours.
fn is_wanted(service: &Value) -> bool {
    text(service, "spec.type") == "LoadBalancer" && text(service, "spec.loadBalancerClass").is_empty()
}

fn addresses(service: &Value) -> impl Iterator<Item = &str> {
    let given = list(service, "status.loadBalancer.ingress").iter();
    given.map(|ingress| text(ingress, "ip"))
}

/// The addresses of a new load balancer: the one that the Service asks for, or the lowest free one of each of its families.
fn choose(service: &Value, taken: &BTreeSet<&str>) -> Array {
    let asked = text(service, "spec.loadBalancerIP");
    let mut chosen = Vec::new();
    for family in list(service, "spec.ipFamilies") {
        let is_v6 = family.as_str() == Some("IPv6");
        let is_of_family = |address: &IpAddr| address.is_ipv6() == is_v6;
        if asked.parse().is_ok_and(|address| is_of_family(&address)) {
            chosen.push(asked.to_owned());
            continue;
        }
        let free = (0..COUNT_V4)
            .map(|number| match is_v6 {
                true => Ipv6Addr::from_bits(FIRST_V6 + u128::from(number)).to_string(),
                false => Ipv4Addr::from_bits(FIRST_V4 + number).to_string(),
            })
            .find(|address| !taken.contains(address.as_str()));
        chosen.extend(free);
    }
    chosen.into_iter().map(|address| json!({"ip": address})).collect()
}

#[async_trait]
impl Controller for LoadBalancers {
    fn name(&self) -> &'static str {
        "service-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Services]
    }

    fn affected(&self, _: &Cache, _: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        vec![Key::of(object)]
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(service) = cx.cache.get(Res::Services, &key.namespace, &key.name).cloned() else {
            return Ok(Next::Change);
        };
        let has_finalizer = service.finalizers().contains(&FINALIZER);
        let has_address = addresses(&service).next().is_some();
        if is_wanted(&service) && !service.is_terminating() {
            if has_finalizer && has_address {
                return Ok(Next::Change);
            }
            tell(cx, &service, "EnsuringLoadBalancer", "Ensuring load balancer");
            let service = match has_finalizer {
                true => service,
                false => set_finalizer(cx, &service, true).await?,
            };
            if !has_address {
                let taken: BTreeSet<&str> = cx
                    .cache
                    .all(Res::Services)
                    .flat_map(|other| addresses(other))
                    .collect();
                let ingress = choose(&service, &taken);
                set_addresses(cx, &service, json!({"ingress": ingress})).await?;
            }
            tell(cx, &service, "EnsuredLoadBalancer", "Ensured load balancer");
        } else if has_finalizer {
            tell(cx, &service, "DeletingLoadBalancer", "Deleting load balancer");
            // The API server drops the addresses of a Service whose type changes; one that gets a class may keep them.
            if has_address && !service.is_terminating() {
                set_addresses(cx, &service, Value::Null).await?;
            }
            set_finalizer(cx, &service, false).await?;
            tell(cx, &service, "DeletedLoadBalancer", "Deleted load balancer");
        }
        Ok(Next::Change)
    }
}

fn tell(cx: &Cx<'_>, service: &Value, reason: &str, message: &str) {
    cx.normal(Res::Services, service, reason, message.to_owned());
}

async fn set_addresses(cx: &mut Cx<'_>, service: &Value, load_balancer: Value) -> Result<(), kube::Error> {
    let patch = json!({"status": {"loadBalancer": load_balancer}});
    cx.patch(Res::Services, service, "/status", patch).await?;
    Ok(())
}

async fn set_finalizer(
    cx: &mut Cx<'_>,
    service: &Value,
    held: bool,
) -> Result<std::sync::Arc<Value>, kube::Error> {
    let mut finalizers = service.finalizers();
    finalizers.retain(|name| *name != FINALIZER);
    if held {
        finalizers.push(FINALIZER);
    }
    let patch = json!({"metadata": {"finalizers": finalizers}});
    Ok(std::sync::Arc::new(
        cx.patch(Res::Services, service, "", patch).await?,
    ))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::first(json!({"ipFamilies": ["IPv4"]}), &[], "198.18.0.1")]
    #[case::lowest_free(json!({"ipFamilies": ["IPv4"]}), &["198.18.0.1", "198.18.0.3"], "198.18.0.2")]
    #[case::both(json!({"ipFamilies": ["IPv6", "IPv4"]}), &[], "2001:2::1 198.18.0.1")]
    #[case::asked_for(json!({"ipFamilies": ["IPv4", "IPv6"], "loadBalancerIP": "192.0.2.7"}), &[], "192.0.2.7 2001:2::1")]
    #[case::no_address(json!({"ipFamilies": ["IPv4"], "loadBalancerIP": "mine"}), &[], "198.18.0.1")]
    fn addresses_of_a_new_one(#[case] spec: Value, #[case] taken: &[&str], #[case] expected: &str) {
        let taken = taken.iter().copied().collect();
        let chosen = choose(&json!({"spec": spec}), &taken);
        let chosen: Vec<&str> = chosen.iter().map(|ingress| text(ingress, "ip")).collect();
        assert_eq!(chosen.join(" "), expected);
    }
}
