//! The `timeAdded` of device taints: the server sets it where the driver does not.

use shared_json::{Value, json};

use crate::context::Context;

/// Gives the taints of a slice's devices the time, if they have none.
pub(super) fn stamp(context: &Context, object: &mut Value) {
    let resource = &context.resource;
    if resource.plural != "resourceslices" || resource.group != "resource.k8s.io" {
        return;
    }
    let has_taints = |device: &Value| device.get("taints").is_some();
    let devices = object.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten().filter(|device| has_taints(device)) {
        let taints = device.get_mut("taints").and_then(Value::as_array_mut);
        for taint in taints.into_iter().flatten() {
            if taint.is_object() && taint.get("timeAdded").is_none_or(Value::is_null) {
                taint["timeAdded"] = json!(context.state().now());
            }
        }
    }
}
