//! Addresses and ports of services, whose holders the store knows.

use std::collections::BTreeSet;

use machinery::status::ApiError;
use rules::strategy::service::{Pool, Refusal, allocate};
use rules::validation::fields::Fields;
use shared_json::Value;

use crate::context::Context;

/// The addresses and ports of the cluster's other services.
struct Held<'a> {
    context: &'a Context,
    addresses: BTreeSet<String>,
    ports: BTreeSet<i64>,
}

impl Pool for Held<'_> {
    fn has_address(&self, address: &str) -> bool {
        self.addresses.contains(address)
    }

    fn has_port(&self, port: i64) -> bool {
        self.ports.contains(&port)
    }

    fn draw(&self, low: u64, high: u64) -> u64 {
        self.context.state().random_between(low, high)
    }

    fn is_dry(&self) -> bool {
        self.context.params.dry_run
    }
}

/// Gives a service its addresses and ports; does nothing for other resources.
///
/// # Errors
/// 422, if it cannot be had; 500, if that is a port for checks of health.
pub(crate) fn give(context: &Context, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    let resource = &context.resource;
    let concerned =
        resource.group.is_empty() && resource.plural == "services" && context.request.subresource.is_empty();
    if !concerned {
        return Ok(());
    }
    let own = old.map(machinery::meta::ObjectMeta::uid).unwrap_or_default();
    let mut held = Held {
        context,
        addresses: BTreeSet::new(),
        ports: BTreeSet::new(),
    };
    let all = context
        .state()
        .store
        .list(context.table(), None, None, None)
        .map_err(ApiError::expired)?;
    for stored in all.items {
        let Some(spec) = stored.value.part("spec") else {
            continue;
        };
        if machinery::meta::ObjectMeta::uid(&*stored.value) == own {
            continue;
        }
        held.addresses.extend(spec.texts("clusterIPs").map(str::to_owned));
        held.ports
            .extend(spec.list("ports").iter().filter_map(|port| port.int("nodePort")));
        held.ports.extend(spec.int("healthCheckNodePort"));
    }
    allocate(object, old, &held).map_err(|refusal| match refusal {
        Refusal::Fields(errors) => {
            ApiError::invalid("", "Service", machinery::meta::ObjectMeta::name(object), &errors)
        }
        Refusal::Internal(why) => ApiError::internal(why),
    })
}

/// A service that is a name for another has no policy for traffic, whatever it was given: it would say nothing.
pub(crate) fn settle(context: &Context, object: &mut Value) {
    let resource = &context.resource;
    if resource.group.is_empty()
        && resource.plural == "services"
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        && spec.text("type") == "ExternalName"
    {
        spec.remove("internalTrafficPolicy");
    }
}
