//! The record of a pod's SidecarSets in its annotations. Field order and omissions are Go's.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::hash;
use crate::api::labels;
use crate::api::v1beta1::{SidecarContainer, SidecarSet};
use crate::pods::template::go_escape;

/// The version of a set that a pod has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Applied<'a> {
    /// When the pod got it, RFC 3339 in whole seconds.
    pub(crate) update_timestamp: Cow<'a, str>,
    /// The set's hash then.
    pub(crate) hash: Cow<'a, str>,
    /// The set's name.
    pub(crate) sidecar_set_name: Cow<'a, str>,
    /// The names of the set's containers, sorted.
    pub(crate) sidecar_list: Vec<Cow<'a, str>>,
    /// The set's revision then.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) controller_revision: Cow<'a, str>,
}

/// An entry of the annotation; at first it was the hash alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Now(Applied<'static>),
    Once(String),
}

/// Reads the versions of a pod by set, from the text of one of the two annotations.
///
/// # Errors
/// The decoder's text.
pub(crate) fn read(text: Option<&str>) -> Result<BTreeMap<String, Applied<'static>>, String> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(BTreeMap::new());
    };
    let entries: BTreeMap<String, Entry> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let applied = entries.into_iter().map(|(set, entry)| {
        let applied = match entry {
            Entry::Now(applied) => applied,
            Entry::Once(hash) => Applied {
                hash: hash.into(),
                ..Applied::default()
            },
        };
        (set, applied)
    });
    Ok(applied.collect())
}

/// The text of versions by set.
pub(crate) fn write(applied: &BTreeMap<String, Applied<'_>>) -> String {
    go_escape(serde_json::to_string(applied).unwrap_or_default())
}

/// The hash of a set's version that a pod has, from the text of one of the two annotations.
pub(crate) fn hash_of(text: Option<&str>, set: &str) -> Option<String> {
    let mut applied = read(text).ok()?;
    applied.remove(set).map(|applied| applied.hash.into_owned())
}

/// The names of the containers of a set: its containers, and its init containers that keep running.
fn sidecars(set: &SidecarSet) -> Vec<Cow<'_, str>> {
    let inits = set.spec.inits().iter().filter(|init| init.is_native());
    let names: BTreeSet<&str> = set
        .spec
        .sidecars()
        .iter()
        .chain(inits)
        .map(SidecarContainer::name)
        .collect();
    names.into_iter().map(Cow::Borrowed).collect()
}

fn name(set: &SidecarSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// The versions of a set as it is, with and without images. `now` is the time as the annotations have it.
pub(crate) fn applied<'a>(set: &'a SidecarSet, now: &'a str) -> (Applied<'a>, Applied<'a>) {
    let status = set.status.as_ref();
    let without_image = Applied {
        update_timestamp: now.into(),
        hash: hash::without_image(set).into(),
        sidecar_set_name: name(set).into(),
        sidecar_list: sidecars(set),
        controller_revision: Cow::default(),
    };
    let full = Applied {
        hash: hash::full(set).into(),
        controller_revision: status
            .map_or_else(Cow::default, |status| status.latest_revision.as_str().into()),
        ..without_image.clone()
    };
    (full, without_image)
}

/// The names in a pod's list of injected sets.
pub(crate) fn injected(text: Option<&str>) -> BTreeSet<&str> {
    let names = text.unwrap_or_default().split(',');
    names.filter(|name| !name.is_empty()).collect()
}

/// Adds the sets to a new pod's annotations. `now` is the time as the annotations have it.
///
/// # Errors
/// The name and the text of an annotation that cannot be read, with the decoder's text.
pub(super) fn add(
    sets: &[&SidecarSet],
    now: &str,
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
    let mut names = injected(listed);
    for set in sets {
        let (full, without_image) = applied(set, now);
        for (map, applied) in maps.iter_mut().zip([full, without_image]) {
            map.insert(name(set).to_owned(), applied);
        }
        names.insert(name(set));
    }
    let names = names.into_iter().collect::<Vec<_>>().join(",");
    for (key, map) in keys.into_iter().zip(&maps) {
        annotations.insert(key.to_owned(), write(map));
    }
    annotations.insert(labels::SIDECARS_INJECTED.to_owned(), names);
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
