//! The annotation of a pod that has a subset.

use serde::{Deserialize, Serialize};

use crate::api::labels;
use crate::pods::pod::{self, Pod};
use crate::pods::template::go_escape;

/// The spread and the subset of a pod. The order of fields is Go's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Matched {
    /// The spread's name.
    #[serde(default)]
    pub(crate) name: String,
    /// The subset's name.
    #[serde(default)]
    pub(crate) subset: String,
    /// An id that the pod got before it had a name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

impl Matched {
    /// The annotation's text.
    pub(crate) fn text(&self) -> String {
        go_escape(serde_json::to_string(self).unwrap_or_default())
    }

    /// The record in a pod's annotation, if it can be read.
    pub(crate) fn of(pod: &Pod) -> Option<Self> {
        serde_json::from_str(pod::annotation(pod, labels::MATCHED_SPREAD)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"name":"ws","subset":"a"}"#)]
    #[case(r#"{"name":"ws","subset":"a","uid":"1-2"}"#)]
    fn texts_are_written_as_they_are_read(#[case] text: &str) {
        assert_eq!(serde_json::from_str::<Matched>(text).unwrap().text(), text);
    }
}
