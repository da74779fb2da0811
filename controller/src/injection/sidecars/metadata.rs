//! The annotations that sets give to pods (`patchPodMetadata`).

use std::collections::BTreeMap;

use shared_json::Value;

use crate::api::v1beta1::SidecarSetPatchPodMetadata;

/// Patches annotations.
///
/// # Errors
/// If a text that is to be merged is no JSON.
pub(crate) fn patch(
    patches: &[SidecarSetPatchPodMetadata],
    annotations: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    for patch in patches {
        for (key, value) in patch.annotations.iter().flatten() {
            let before = annotations.get(key);
            let value = match patch.patch_policy.as_deref() {
                Some("Overwrite") => value.clone(),
                Some("MergePatchJson") => match before.filter(|text| !text.is_empty()) {
                    Some(before) => merged(before, value)?,
                    None => value.clone(),
                },
                _ if before.is_some() => continue,
                _ => value.clone(),
            };
            annotations.insert(key.clone(), value);
        }
    }
    Ok(())
}

/// Merges JSON texts as RFC 7396 says.
fn merged(before: &str, patch: &str) -> Result<String, String> {
    let read = |text: &str| shared_json::from_str::<Value>(text).map_err(|error| error.to_string());
    let mut value = read(before)?;
    value.merge(&read(patch)?);
    Ok(shared_json::to_go_string(&value))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn patched(policy: &str, value: &str, before: Option<&str>) -> Result<String, ()> {
        let patch = SidecarSetPatchPodMetadata {
            annotations: Some(BTreeMap::from([("k".to_owned(), value.to_owned())])),
            patch_policy: Some(policy.to_owned()),
        };
        let mut annotations: BTreeMap<String, String> = before
            .into_iter()
            .map(|text| ("k".to_owned(), text.to_owned()))
            .collect();
        self::patch(&[patch], &mut annotations).map_err(drop)?;
        Ok(annotations["k"].clone())
    }

    #[rstest]
    #[case::kept("Retain", "1", Some("app"), Ok("app"))]
    #[case::kept_empty("Retain", "1", Some(""), Ok(""))]
    #[case::added("Retain", "1", None, Ok("1"))]
    #[case::set("Overwrite", "new", Some("app"), Ok("new"))]
    #[case::merged("MergePatchJson", r#"{"x":1}"#, Some(r#"{"y":2}"#), Ok(r#"{"x":1,"y":2}"#))]
    #[case::removed(
        "MergePatchJson",
        r#"{"y":null}"#,
        Some(r#"{"y":2,"z":{"a":1}}"#),
        Ok(r#"{"z":{"a":1}}"#)
    )]
    #[case::deep(
        "MergePatchJson",
        r#"{"z":{"b":2}}"#,
        Some(r#"{"z":{"a":1}}"#),
        Ok(r#"{"z":{"a":1,"b":2}}"#)
    )]
    #[case::nothing_to_merge_with("MergePatchJson", "{ \"x\": 1 }", Some(""), Ok("{ \"x\": 1 }"))]
    #[case::not_json("MergePatchJson", r#"{"x":1}"#, Some("app"), Err(()))]
    fn annotations(
        #[case] policy: &str,
        #[case] value: &str,
        #[case] before: Option<&str>,
        #[case] want: Result<&str, ()>,
    ) {
        assert_eq!(patched(policy, value, before), want.map(str::to_owned));
    }
}
