//! The hints of the filter that looks at devices.

use machinery::meta::{ObjectMeta as _, at};
use shared_json::Value;

use super::super::cluster::{Cluster, PodInfo};
use super::super::devices::claims_of;
use super::Event;

pub(super) fn devices(event: &Event<'_>, pod: &PodInfo, cluster: &Cluster) -> bool {
    match event {
        Event::Node(node) => node.is_new() || node.labels || node.allocatable,
        Event::DeviceClass(_, _) | Event::Slice => true,
        Event::Own(old, new) => {
            let made = |pod: &PodInfo| {
                let of = |field: &str| at(&pod.object, &format!("status.{field}")).cloned();
                (of("resourceClaimStatuses"), of("extendedResourceClaimStatus"))
            };
            made(old) != made(new) && claims_of(&new.object, cluster).is_ok()
        }
        Event::DeviceClaim(old, new) => {
            let Ok(claims) = claims_of(&pod.object, cluster) else {
                return false;
            };
            let has_devices = |claim: &Value| at(claim, "status.allocation").is_some_and(Value::is_object);
            let given_back = old.is_some_and(has_devices) && !has_devices(new);
            let is_own = claims.iter().any(|claim| claim.uid() == new.uid());
            given_back || (is_own && old.is_none_or(|old| old.get("status") != new.get("status")))
        }
        _ => false,
    }
}
