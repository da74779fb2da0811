//! Claims of devices: a device's status from drivers is removed when the device is freed.

use machinery::meta::at;
use shared_json::Value;

/// The identity of a device.
fn identity(device: &Value) -> [&str; 4] {
    ["driver", "pool", "device", "shareID"]
        .map(|field| device.get(field).and_then(Value::as_str).unwrap_or_default())
}

fn allocated(claim: &Value) -> &[Value] {
    at(claim, "status.allocation.devices.results")
        .and_then(Value::as_array)
        .map_or(&[][..], |results| results.as_slice())
}

/// Removes the status of devices that the claim had before and has no longer.
pub fn drop_freed(claim: &mut Value, old: &Value) {
    let now: Vec<[String; 4]> = allocated(claim)
        .iter()
        .map(|result| identity(result).map(str::to_owned))
        .collect();
    let is_freed = |device: &Value| {
        let own = identity(device);
        allocated(old).iter().any(|result| identity(result) == own) && !now.iter().any(|other| *other == own)
    };
    let Some(status) = claim.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) else {
        return;
    };
    devices.retain(|device| !is_freed(device));
    if devices.is_empty() {
        status.remove("devices");
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::kept(json!(["a", "b"]), json!(["a", "b"]), json!(["a"]), json!(["a"]))]
    #[case::freed(json!(["a", "b"]), json!(["b"]), json!(["a", "b"]), json!(["b"]))]
    #[case::never_had(json!(["a"]), json!(["a"]), json!(["c"]), json!(["c"]))]
    #[case::all_freed(json!(["a"]), json!([]), json!(["a"]), json!(null))]
    fn what_was_told_goes_with_its_device(
        #[case] before: Value,
        #[case] now: Value,
        #[case] told: Value,
        #[case] expected: Value,
    ) {
        let devices = |names: &Value| -> Vec<Value> {
            let names = names.as_array().into_iter().flatten();
            names
                .map(|name| json!({"driver": "d", "pool": "p", "device": name}))
                .collect()
        };
        let claim =
            |names: &Value| json!({"status": {"allocation": {"devices": {"results": devices(names)}}}});
        let mut claimed = claim(&now);
        claimed["status"]["devices"] = devices(&told).into();
        drop_freed(&mut claimed, &claim(&before));
        let left = claimed["status"].get("devices").cloned().unwrap_or_default();
        let wanted = if expected.is_null() {
            expected
        } else {
            devices(&expected).into()
        };
        assert_eq!(left, wanted);
    }
}
