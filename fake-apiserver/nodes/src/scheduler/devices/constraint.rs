//! Constraints over the devices of some requests: attributes that must be equal, or distinct.

use shared_json::Value;

use super::super::cluster::{list, text};
use super::pools::Device;

/// A constraint of a claim, and the attributes of the devices that it has let pass so far.
#[derive(Debug)]
pub(super) struct Constraint<'a> {
    requests: &'a [Value],
    attribute: &'a str,
    distinct: bool,
    /// By request. Where they are to differ, the real one remembers the last of each request.
    passed: Vec<(&'a str, &'a Value)>,
}

impl<'a> Constraint<'a> {
    pub(super) fn of(claim: &'a Value) -> Vec<Self> {
        let all = list(claim, "spec.devices.constraints").iter();
        all.map(|constraint| {
            let alike = text(constraint, "matchAttribute");
            Self {
                requests: list(constraint, "requests"),
                attribute: if alike.is_empty() {
                    text(constraint, "distinctAttribute")
                } else {
                    alike
                },
                distinct: alike.is_empty(),
                passed: Vec::new(),
            }
        })
        .collect()
    }

    fn is_about(&self, request: &str, alternative: Option<&str>) -> bool {
        let named = |wanted: &Value| {
            let wanted = wanted.as_str().unwrap_or_default();
            wanted == request
                || alternative.is_some_and(|alternative| wanted == format!("{request}/{alternative}"))
        };
        self.requests.is_empty() || self.requests.iter().any(named)
    }

    /// Whether a device may be added; if so, it is.
    pub(super) fn add(&mut self, request: &'a str, alternative: Option<&str>, device: &Device<'a>) -> bool {
        if !self.is_about(request, alternative) {
            return true;
        }
        let Some(value) = attribute(device, self.attribute) else {
            return false;
        };
        let fits = if self.distinct {
            !self.passed.iter().any(|(_, other)| *other == value)
        } else {
            self.passed.first().is_none_or(|(_, other)| *other == value)
        };
        if fits {
            if self.distinct {
                self.passed.retain(|(name, _)| *name != request);
            }
            self.passed.push((request, value));
        }
        fits
    }

    /// Takes back the last device that was added for a request.
    pub(super) fn remove(&mut self, request: &str, alternative: Option<&str>) {
        if !self.is_about(request, alternative) {
            return;
        }
        if self.distinct {
            self.passed.retain(|(name, _)| *name != request);
        } else {
            self.passed.pop();
        }
    }
}

/// An attribute of a device by its whole name; in a device's own list those of its driver need no domain.
fn attribute<'a>(device: &Device<'a>, name: &str) -> Option<&'a Value> {
    let all = device.object.get("attributes")?;
    all.get(name).or_else(|| {
        let (domain, id) = name.split_once('/')?;
        all.get(id).filter(|_| domain == device.id.0)
    })
}
