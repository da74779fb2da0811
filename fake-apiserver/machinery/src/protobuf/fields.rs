//! The numbers of fields, from `fields.txt`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

const FIELDS: &str = include_str!("fields.txt");

/// A field of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// A field by its JSON name.
    Field(&'static str, u32),
    /// A message whose fields are, in JSON, those of the message around it.
    Inline(u32, Vec<Entry>),
}

impl Entry {
    pub(super) fn number(&self) -> u32 {
        match self {
            Self::Field(_, number) | Self::Inline(number, _) => *number,
        }
    }
}

/// The fields of a definition, in order of their numbers; none of one that is not known.
pub(super) fn of(definition: &str) -> &'static [Entry] {
    static ALL: LazyLock<BTreeMap<&'static str, Vec<Entry>>> = LazyLock::new(|| {
        let lines = FIELDS.lines().filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| line.split_once(' '))
            .map(|(name, fields)| (name, parse(&mut { fields })))
            .collect()
    });
    ALL.get(definition).map(Vec::as_slice).unwrap_or_default()
}

/// Reads entries up to the end or a closing bracket.
fn parse(rest: &mut &'static str) -> Vec<Entry> {
    let mut out = Vec::new();
    loop {
        *rest = rest.trim_start();
        if rest.is_empty() {
            return out;
        }
        if let Some(after) = rest.strip_prefix(')') {
            *rest = after;
            return out;
        }
        let end = rest.find([' ', '(', ')']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match (word.split_once(':'), after.strip_prefix('(')) {
            (Some((name, number)), _) => {
                out.extend(number.parse().map(|number| Entry::Field(name, number)));
                *rest = after;
            }
            (None, Some(after)) => {
                *rest = after;
                let inner = parse(rest);
                out.extend(word.parse().map(|number| Entry::Inline(number, inner)));
            }
            (None, None) => *rest = after,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::types::{Kind, Schema, builtin, builtin_kinds};

    #[test]
    fn reads_fields_and_inlined_messages() {
        let read = parse(&mut "a:1 2(b:1 3(c:4)) d:5");
        let inner = vec![Entry::Field("b", 1), Entry::Inline(3, vec![Entry::Field("c", 4)])];
        assert_eq!(
            read,
            [
                Entry::Field("a", 1),
                Entry::Inline(2, inner),
                Entry::Field("d", 5)
            ]
        );
    }

    /// Fields that the published `.proto` files no longer have, or not in this form.
    const WITHOUT_NUMBER: [&str; 2] = [
        "io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus.resources",
        "io.k8s.api.resource.v1.Device.nodeAllocatableResourceMappings",
    ];

    #[test]
    fn every_field_of_every_kind_has_a_number() {
        let mut missing = Vec::new();
        let mut seen = BTreeSet::new();
        for gvk in builtin_kinds() {
            visit(&builtin(gvk).expect("a schema"), &mut seen, &mut missing);
        }
        missing.retain(|path| !WITHOUT_NUMBER.contains(&path.as_str()));
        assert_eq!(missing, Vec::<String>::new());
    }

    fn visit(schema: &Schema, seen: &mut BTreeSet<String>, missing: &mut Vec<String>) {
        let name = schema.name.as_deref().unwrap_or_default();
        if !name.is_empty() && !seen.insert(name.to_owned()) {
            return;
        }
        match &schema.kind {
            Kind::Array(array) => visit(&array.items, seen, missing),
            Kind::Object(object) => {
                let mut known = BTreeSet::new();
                names(of(name), &mut known);
                for (field, description) in &object.fields {
                    let is_type = matches!(field.as_str(), "kind" | "apiVersion");
                    // What has no number has no message of its own either.
                    if name.ends_with("NodeAllocatableResourceMapping") {
                        continue;
                    }
                    if !known.contains(field.as_str()) && !is_type {
                        missing.push(format!("{name}.{field}"));
                    }
                    visit(&description.schema, seen, missing);
                }
                object
                    .additional
                    .iter()
                    .for_each(|values| visit(values, seen, missing));
            }
            _ => {}
        }
    }

    fn names(entries: &[Entry], into: &mut BTreeSet<&'static str>) {
        for entry in entries {
            match entry {
                Entry::Field(name, _) => {
                    into.insert(name);
                }
                Entry::Inline(_, inner) => names(inner, into),
            }
        }
    }
}
