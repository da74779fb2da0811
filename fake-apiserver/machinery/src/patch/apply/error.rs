//! Why an apply did not work.

use super::managed::Manager;
use shared_json::{Value, json};

/// Another manager owns a field that the configuration would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: Manager,
    /// The field: `.spec.replicas`.
    pub path: String,
}

/// Why a configuration could not be applied. `Display` is the `message` of the status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Fields are owned by others: 409, reason `Conflict`, with the causes of [`ApplyError::causes`].
    #[error("{}", message(.0))]
    Conflict(Vec<Conflict>),
    /// The request makes no sense: 400, reason `BadRequest`.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration does not fit the type, for which the real server answers 500 without a reason.
    #[error("{0}")]
    Typed(String),
}

impl ApplyError {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            ApplyError::Conflict(_) => 409,
            ApplyError::BadRequest(_) => 400,
            ApplyError::Typed(_) => 500,
        }
    }

    /// `details.causes` of the status: one `FieldManagerConflict` per conflict, empty for other errors.
    pub fn causes(&self) -> Vec<Value> {
        let ApplyError::Conflict(conflicts) = self else {
            return Vec::new();
        };
        let cause = |conflict: &Conflict| {
            json!({
                "reason": "FieldManagerConflict",
                "message": format!("conflict with {}", conflict.manager.describe()),
                "field": conflict.path,
            })
        };
        conflicts.iter().map(cause).collect()
    }
}

fn message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            only.manager.describe(),
            only.path
        );
    }
    let mut text = format!("Apply failed with {} conflicts: ", conflicts.len());
    let mut before: Option<&Manager> = None;
    for conflict in conflicts {
        if before != Some(&conflict.manager) {
            if before.is_some() {
                text.push('\n');
            }
            text.push_str(&format!("conflicts with {}:", conflict.manager.describe()));
            before = Some(&conflict.manager);
        }
        text.push_str(&format!("\n- {}", conflict.path));
    }
    text
}
