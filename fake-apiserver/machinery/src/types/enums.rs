//! The explanations of enumeration values: published OpenAPI has them behind the descriptions of fields.
//!
//! `enums.txt` has a line of fields that share their values, and below it an indented line for each value that is explained.

use shared_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The explanations of one enumeration, each with its place among the values.
type Meanings = Vec<(usize, &'static str)>;

fn meanings(definition: &str, field: &str) -> &'static [(usize, &'static str)] {
    static ALL: OnceLock<BTreeMap<&'static str, Meanings>> = OnceLock::new();
    let all = ALL.get_or_init(|| read(include_str!("enums.txt")));
    let path = format!("{definition}.{field}");
    all.get(path.as_str()).map(Vec::as_slice).unwrap_or_default()
}

fn read(text: &'static str) -> BTreeMap<&'static str, Meanings> {
    let mut all: BTreeMap<&str, Meanings> = BTreeMap::new();
    let mut fields: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some(entry) = line.strip_prefix(' ') else {
            fields = line.split(' ').collect();
            continue;
        };
        let Some((place, meaning)) = entry.split_once(' ') else {
            continue;
        };
        for field in &fields {
            let meanings = all.entry(field).or_default();
            meanings.extend(place.parse().ok().map(|place| (place, meaning)));
        }
    }
    all
}

/// A field's description with its values behind it.
pub(super) fn described(description: &str, definition: &str, field: &str, values: &[Value]) -> String {
    let meanings = meanings(definition, field);
    let mut out = format!("{description}\n\nPossible enum values:");
    for (place, value) in values.iter().enumerate() {
        out.push_str(&format!("\n - `{value}`"));
        if let Some((_, meaning)) = meanings.iter().find(|(other, _)| *other == place) {
            out.push(' ');
            out.push_str(meaning);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_json::json;

    #[test]
    fn values_stand_behind_the_description() {
        let described = |field, values: Value| {
            let values = values.as_array().cloned().unwrap_or_default();
            described("D.", "io.k8s.api.core.v1.PodSpec", field, &values)
        };
        assert_eq!(
            described("restartPolicy", json!(["Always", "Never"])),
            "D.\n\nPossible enum values:\n - `\"Always\"`\n - `\"Never\"`"
        );
        assert_eq!(
            described("preemptionPolicy", json!(["Never", "PreemptLowerPriority"])),
            "D.\n\nPossible enum values:\n - `\"Never\"` means that pod never preempts other pods with lower priority.\n \
             - `\"PreemptLowerPriority\"` means that pod can preempt other pods with lower priority."
        );
    }
}
