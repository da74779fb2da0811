//! Priority: a pod's priority is that of its class.

use machinery::meta::at;
use machinery::status::ApiError;
use shared_json::Value;
use store::{GroupResource, ObjectKey};

use super::Attributes;
use crate::server::ServerState;

pub(super) fn mutate(server: &ServerState, attributes: &mut Attributes) -> Result<(), ApiError> {
    let pods = attributes.resource.group_resource();
    let name = attributes.shown_name().to_owned();
    let Some(spec) = attributes
        .object
        .as_mut()
        .and_then(|pod| pod.get_mut("spec"))
        .and_then(Value::as_object_mut)
    else {
        return Ok(());
    };
    let classes = GroupResource::new("scheduling.k8s.io", "priorityclasses");
    let asked = spec
        .get("priorityClassName")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let class = if asked.is_empty() {
        let all = server
            .store
            .list(&classes, None, None, None)
            .map_err(ApiError::expired)?;
        all.items
            .into_iter()
            .find(|class| class.value.get("globalDefault").and_then(Value::as_bool) == Some(true))
    } else {
        let class = server.store.get(&classes, &ObjectKey::new("", &asked));
        if class.is_none() {
            let why = format!("no PriorityClass with name {asked} was found");
            return Err(ApiError::forbidden(&pods, &name, &why));
        }
        class
    };
    let (priority, policy) = match &class {
        Some(class) => {
            spec.insert(
                "priorityClassName".to_owned(),
                Value::from(class.key.name.clone()),
            );
            let policy = at(&class.value, "preemptionPolicy")
                .and_then(Value::as_str)
                .unwrap_or("PreemptLowerPriority");
            (
                at(&class.value, "value")
                    .and_then(Value::as_i64)
                    .unwrap_or_default(),
                policy.to_owned(),
            )
        }
        None => (0, "PreemptLowerPriority".to_owned()),
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != priority
    {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        );
        return Err(ApiError::forbidden(&pods, &name, &why));
    }
    spec.insert("priority".to_owned(), Value::from(priority));
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str)
        && given != policy
    {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return Err(ApiError::forbidden(&pods, &name, &why));
    }
    spec.entry("preemptionPolicy")
        .or_insert_with(|| Value::from(policy));
    Ok(())
}
