//! The errors of an EphemeralJob.

use pod_rules::FieldError;
use serde_json::Value;

use crate::pods::template::rules;

/// Fields of a container that Go decodes into lists of texts.
const LISTS: [&str; 2] = ["command", "args"];

/// Whether Go can decode the containers of a job.
///
/// # Errors
/// The text of its decoder.
pub(super) fn decoded(job: &Value) -> Result<(), String> {
    for container in containers(job) {
        if let Some(field) = LISTS
            .iter()
            .find(|field| container.get(**field).is_some_and(Value::is_string))
        {
            let path = "EphemeralContainer.spec.template.ephemeralContainers";
            return Err(format!(
                "json: cannot unmarshal string into Go struct field {path}.{field} of type []string"
            ));
        }
    }
    Ok(())
}

/// Everything that is wrong with a job; nothing means that it is allowed. Texts and their order are those of OpenKruise.
pub(super) fn validate_job(job: &Value) -> Vec<FieldError> {
    rules::ephemeral_containers(Value::from(containers(job).to_vec()))
}

fn containers(job: &Value) -> &[Value] {
    let containers = job.pointer("/spec/template/ephemeralContainers");
    containers.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
