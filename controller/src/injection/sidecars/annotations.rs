//! The record of a pod's SidecarSets in its annotations. Field order and omissions are Go's.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::hash;
use crate::api::labels;
use crate::api::v1beta1::{SidecarContainer, SidecarSet};
use crate::pods::lifecycle::rfc3339;
use crate::pods::template::go_escape;

/// The version of a set that a pod has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Applied {
    /// When the pod got it, RFC 3339 in whole seconds.
    pub(crate) update_timestamp: String,
    /// The set's hash then.
    pub(crate) hash: String,
    /// The set's name.
    pub(crate) sidecar_set_name: String,
    /// The names of the set's containers, sorted.
    pub(crate) sidecar_list: Vec<String>,
    /// The set's revision then.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) controller_revision: String,
}

/// An entry of the annotation; at first it was the hash alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Now(Applied),
    Once(String),
}

/// Reads the versions of a pod by set, from the text of one of the two annotations.
///
/// # Errors
/// The decoder's text.
pub(crate) fn read(text: Option<&str>) -> Result<BTreeMap<String, Applied>, String> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(BTreeMap::new());
    };
    let entries: BTreeMap<String, Entry> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let applied = entries.into_iter().map(|(set, entry)| {
        let applied = match entry {
            Entry::Now(applied) => applied,
            Entry::Once(hash) => Applied {
                hash,
                ..Applied::default()
            },
        };
        (set, applied)
    });
    Ok(applied.collect())
}

/// The text of versions by set.
pub(crate) fn write(applied: &BTreeMap<String, Applied>) -> String {
    go_escape(serde_json::to_string(applied).unwrap_or_default())
}

/// The hash of a set's version that a pod has, from the text of one of the two annotations.
pub(crate) fn hash_of(text: Option<&str>, set: &str) -> Option<String> {
    let mut applied = read(text).ok()?;
    applied.remove(set).map(|applied| applied.hash)
}

/// The names of the containers of a set: its containers, and its init containers that keep running.
fn sidecars(set: &SidecarSet) -> Vec<String> {
    let inits = set.spec.inits().iter().filter(|init| init.is_native());
    let names: BTreeSet<&str> = set
        .spec
        .sidecars()
        .iter()
        .chain(inits)
        .map(SidecarContainer::name)
        .collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The versions of a set as it is: with and without images.
pub(crate) fn applied(set: &SidecarSet, now: Timestamp) -> (Applied, Applied) {
    let name = set.metadata.name.clone().unwrap_or_default();
    let status = set.status.as_ref();
    let without_image = Applied {
        update_timestamp: rfc3339(now),
        hash: hash::without_image(set).to_owned(),
        sidecar_set_name: name,
        sidecar_list: sidecars(set),
        controller_revision: String::new(),
    };
    let full = Applied {
        hash: hash::full(set).to_owned(),
        controller_revision: status.map_or_else(String::new, |status| status.latest_revision.clone()),
        ..without_image.clone()
    };
    (full, without_image)
}

/// The names in a pod's list of injected sets.
pub(crate) fn injected(text: Option<&str>) -> BTreeSet<&str> {
    let names = text.unwrap_or_default().split(',');
    names.filter(|name| !name.is_empty()).collect()
}

/// Adds the sets to a new pod's annotations.
///
/// # Errors
/// The name and the text of an annotation that cannot be read, with the decoder's text.
pub(super) fn add(
    sets: &[&SidecarSet],
    now: Timestamp,
    annotations: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    let keys = [labels::SIDECARS_HASH, labels::SIDECARS_HASH_WITHOUT_IMAGE];
    let mut maps = Vec::new();
    for key in keys {
        let text = annotations.get(key).map(String::as_str);
        let map = read(text).map_err(|error| {
            let text = text.unwrap_or_default();
            format!("invalid annotations[{key}] value {text}, unmarshal failed: {error}")
        })?;
        maps.push(map);
    }
    let listed = annotations.get(labels::SIDECARS_INJECTED).map(String::as_str);
    let mut names: BTreeSet<String> = injected(listed).into_iter().map(str::to_owned).collect();
    for set in sets {
        let name = set.metadata.name.clone().unwrap_or_default();
        let (full, without_image) = applied(set, now);
        for (map, applied) in maps.iter_mut().zip([full, without_image]) {
            map.insert(name.clone(), applied);
        }
        names.insert(name);
    }
    for (key, map) in keys.into_iter().zip(&maps) {
        annotations.insert(key.to_owned(), write(map));
    }
    let names: Vec<String> = names.into_iter().collect();
    annotations.insert(labels::SIDECARS_INJECTED.to_owned(), names.join(","));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_text_is_read_and_written_as_it_is() {
        let text = r#"{"s":{"updateTimestamp":"2026-11-25T17:45:17Z","hash":"4625","sidecarSetName":"s","sidecarList":["after","side"],"controllerRevision":"s-5fd998866d"}}"#;
        assert_eq!(write(&read(Some(text)).unwrap()), text);
    }

    #[test]
    fn the_old_form_is_read() {
        assert_eq!(hash_of(Some(r#"{"s":"4625"}"#), "s").as_deref(), Some("4625"));
        assert!(read(Some("[]")).is_err());
    }
}
