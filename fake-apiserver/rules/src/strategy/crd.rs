//! CustomResourceDefinitions: names filled in, accepted and established.

use machinery::meta::{ObjectMeta, at};
use pod_rules::field_error::FieldError;
use shared_json::{Value, json};

use super::Strategy;
use crate::validation::definitions;

pub(super) struct DefinitionStrategy;

fn fill_names(object: &mut Value) {
    let kind = at(object, "spec.names.kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let Some(names) = object.pointer_mut("/spec/names").and_then(Value::as_object_mut) else {
        return;
    };
    if names
        .get("singular")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .is_empty()
    {
        names.insert("singular".to_owned(), Value::from(kind.to_lowercase()));
    }
    if !kind.is_empty()
        && names
            .get("listKind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .is_empty()
    {
        names.insert("listKind".to_owned(), Value::from(format!("{kind}List")));
    }
}

fn fill_conversion(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("conversion")
            .or_insert_with(|| json!({"strategy": "None"}));
    }
}

impl Strategy for DefinitionStrategy {
    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        fill_names(object);
        fill_conversion(object);
        let versions = object
            .pointer("/spec/versions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let stored: Vec<Value> = versions
            .iter()
            .filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
            .filter_map(|version| version.get("name").cloned())
            .take(1)
            .collect();
        object["status"] = json!({
            "acceptedNames": {"kind": "", "plural": ""},
            "conditions": null,
            "storedVersions": stored,
        });
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        fill_names(object);
        fill_conversion(object);
        super::copy_field(object, old, "status");
        // What is stored from now on counts as stored.
        let versions = at(object, "spec.versions").and_then(Value::as_array);
        let storage = versions
            .into_iter()
            .flatten()
            .find(|version| version.get("storage").and_then(Value::as_bool) == Some(true));
        let name = storage.and_then(|version| version.get("name")).cloned();
        if let (Some(name), Some(stored)) = (
            name,
            object
                .pointer_mut("/status/storedVersions")
                .and_then(Value::as_array_mut),
        ) && !stored.contains(&name)
        {
            stored.push(name);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let text = |path: &str| at(object, path).and_then(Value::as_str).unwrap_or_default();
        let mut errors = Vec::new();
        let expected = format!("{}.{}", text("spec.names.plural"), text("spec.group"));
        if !object.name().is_empty() && object.name() != expected {
            errors.push(FieldError::invalid(
                "metadata.name",
                Value::from(object.name()),
                "must be spec.names.plural+\".\"+spec.group",
            ));
        }
        errors.extend(definitions::check(object));
        errors
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let established = old
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .is_some_and(|list| {
                list.iter()
                    .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
            });
        let mut errors = definitions::check(object);
        if established {
            let fields = ["spec.scope", "spec.names.kind", "spec.group", "spec.names.plural"];
            // What was stored is looked at last.
            let stored = errors.partition_point(|error| !error.path.starts_with("status.storedVersions"));
            errors.splice(stored..stored, super::immutable::check(&fields, object, old));
        }
        errors
    }
}

/// The definition with the status that the API server writes about its names a moment after a write, where the names in `taken`,
/// those of the others of its group, are not free; none if the status is right already.
pub fn settled(definition: &Value, taken: &[&Value], now: &str) -> Option<Value> {
    let empty = Value::Null;
    let requested = at(definition, "spec.names").unwrap_or(&empty);
    let accepted = at(definition, "status.acceptedNames").unwrap_or(&empty);
    let name = |of: &Value, field: &str| {
        of.get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let short = |of: &Value| -> Vec<String> {
        let list = of.get("shortNames").and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    let resources = |wanted: &str| {
        taken.iter().any(|names| {
            ["plural", "singular"]
                .iter()
                .any(|field| name(names, field) == wanted)
                || short(names).iter().any(|short| short == wanted)
        })
    };
    let kinds = |wanted: &str| {
        taken.iter().any(|names| {
            ["kind", "listKind"]
                .iter()
                .any(|field| name(names, field) == wanted)
        })
    };
    let mut names = accepted.clone();
    let mut conflict: Option<(&str, String)> = None;
    let in_use = |wanted: &str| format!("\"{wanted}\" is already in use");
    for (field, reason) in [("plural", "PluralConflict"), ("singular", "SingularConflict")] {
        let wanted = name(requested, field);
        if wanted != name(accepted, field) && resources(&wanted) {
            conflict = Some((reason, in_use(&wanted)));
        } else {
            names[field] = Value::from(wanted);
        }
    }
    let own = short(accepted);
    let clashes: Vec<String> = short(requested)
        .iter()
        .filter(|wanted| !own.contains(wanted) && resources(wanted))
        .map(|wanted| in_use(wanted))
        .collect();
    match clashes.as_slice() {
        [] => super::copy_field(&mut names, requested, "shortNames"),
        [one] => conflict = Some(("ShortNamesConflict", one.clone())),
        many => conflict = Some(("ShortNamesConflict", format!("[{}]", many.join(", ")))),
    }
    for (field, reason) in [("kind", "KindConflict"), ("listKind", "ListKindConflict")] {
        let wanted = name(requested, field);
        if wanted != name(accepted, field) && kinds(&wanted) {
            conflict = Some((reason, in_use(&wanted)));
        } else {
            names[field] = Value::from(wanted);
        }
    }
    super::copy_field(&mut names, requested, "categories");
    if let Some(names) = names.as_object_mut() {
        let is_always = |field: &str| matches!(field, "plural" | "kind");
        names.retain(|field, value| is_always(field) || !value.is_null() && *value != "");
    }
    let old = |kind: &str| {
        let list = at(definition, "status.conditions").and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .find(|condition| condition.get("type").is_some_and(|own| own == kind))
    };
    let condition = |kind: &str, status: bool, reason: &str, message: &str| {
        let status = if status { "True" } else { "False" };
        let since = old(kind)
            .filter(|old| old.get("status").is_some_and(|own| own == status))
            .and_then(|old| old.get("lastTransitionTime").cloned())
            .unwrap_or_else(|| Value::from(now));
        json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message})
    };
    let of_names = match &conflict {
        None => condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
        Some((reason, message)) => condition("NamesAccepted", false, reason, message),
    };
    let established = match (old("Established"), &conflict) {
        (Some(old), _) if old.get("status").is_some_and(|status| status == "True") => old.clone(),
        (_, None) => condition(
            "Established",
            true,
            "InitialNamesAccepted",
            "the initial names have been accepted",
        ),
        _ => condition("Established", false, "NotAccepted", "not all names are accepted"),
    };
    let (said, is_named) = (
        old("Established") == Some(&established),
        old("NamesAccepted") == Some(&of_names),
    );
    if said && is_named && *accepted == names {
        return None;
    }
    let mut out = definition.clone();
    out["status"]["acceptedNames"] = names;
    let others = at(definition, "status.conditions").and_then(Value::as_array);
    let kept = others.into_iter().flatten().filter(|condition| {
        let kind = condition.get("type").and_then(Value::as_str).unwrap_or_default();
        !matches!(kind, "NamesAccepted" | "Established")
    });
    let conditions: Vec<Value> = [of_names, established].into_iter().chain(kept.cloned()).collect();
    out["status"]["conditions"] = Value::from(conditions);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn definition(names: Value) -> Value {
        json!({"spec": {"names": names}, "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": null}})
    }

    #[rstest]
    #[case(json!({"plural": "ws", "singular": "w", "kind": "W", "listKind": "WList"}), "True NoConflicts no conflicts found, True InitialNamesAccepted")]
    #[case(json!({"plural": "ws", "singular": "widget", "kind": "W", "listKind": "WList"}),
        "False SingularConflict \"widget\" is already in use, False NotAccepted")]
    #[case(json!({"plural": "ws", "singular": "w", "kind": "Widget", "listKind": "WList", "shortNames": ["wd"]}),
        "False KindConflict \"Widget\" is already in use, False NotAccepted")]
    #[case(json!({"plural": "ws", "singular": "w", "kind": "W", "listKind": "WList", "shortNames": ["x", "wd"]}),
        "False ShortNamesConflict \"wd\" is already in use, False NotAccepted")]
    fn names_are_had_once(#[case] names: Value, #[case] expected: &str) {
        let taken = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"]});
        let found = settled(&definition(names), &[&taken], "now").expect("a status");
        let text = |index: usize, field: &str| {
            found["status"]["conditions"][index][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let said = format!(
            "{} {} {}, {} {}",
            text(0, "status"),
            text(0, "reason"),
            text(0, "message"),
            text(1, "status"),
            text(1, "reason")
        );
        assert_eq!(said, expected);
        assert_eq!(settled(&found, &[&taken], "later"), None);
    }
}
