//! `types.txt` and `openkruise.txt`: Go's structs and named types.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The types of Kubernetes, and those of OpenKruise.
const TYPES: [&str; 2] = [include_str!("types.txt"), include_str!("openkruise.txt")];

/// The definition of a type.
#[derive(Debug)]
pub(super) enum Definition {
    /// A struct with its fields, in order.
    Struct(Vec<Field>),
    /// Another name of a type.
    Named(&'static str),
}

/// A field of a struct.
#[derive(Debug)]
pub(super) struct Field {
    /// Its name in Go.
    pub name: &'static str,
    /// Its name in JSON; none if its own fields stand there in its place.
    pub json: Option<String>,
    /// Its type, as Go prints it but for the mark that distinguishes types of one name.
    pub ty: &'static str,
}

/// The definition of a type; none of types without a name (`[]string`), of basic ones and of those that print themselves.
pub(super) fn definition(ty: &str) -> Option<&'static Definition> {
    static ALL: LazyLock<BTreeMap<&'static str, Definition>> = LazyLock::new(|| {
        let lines = TYPES.iter().flat_map(|text| text.lines());
        let lines = lines.filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| line.split_once(' '))
            .map(|(name, rest)| (name, parse(rest)))
            .collect()
    });
    ALL.get(ty)
}

fn parse(rest: &'static str) -> Definition {
    if let Some(other) = rest.strip_prefix("= ") {
        return Definition::Named(other);
    }
    let field = |word: &'static str| {
        let (names, ty) = word.split_once(':')?;
        if let Some(name) = names.strip_prefix('~') {
            return Some(Field { name, json: None, ty });
        }
        let (name, json) = names.split_once('/').unwrap_or((names, ""));
        let first = name.chars().next().map(|c| c.to_ascii_lowercase());
        let json = match json {
            "" => first.into_iter().chain(name.chars().skip(1)).collect(),
            json => json.to_owned(),
        };
        Some(Field {
            name,
            json: Some(json),
            ty,
        })
    };
    Definition::Struct(rest.split(' ').filter_map(field).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_structs_and_named_types() {
        let Definition::Struct(fields) = parse("Name:string IP/ip:*string ~Common:v1.Common") else {
            panic!("no struct");
        };
        let read: Vec<_> = fields.iter().map(|f| (f.name, f.json.as_deref(), f.ty)).collect();
        let expected = [
            ("Name", Some("name"), "string"),
            ("IP", Some("ip"), "*string"),
            ("Common", None, "v1.Common"),
        ];
        assert_eq!(read, expected);
        assert!(matches!(parse("= []string"), Definition::Named("[]string")));
    }

    /// Every type that a field has is in the table, or is one that prints itself.
    #[test]
    fn nothing_is_missing() {
        let known = |ty: &str| {
            let ty = ty.trim_start_matches(['*', '[', ']']);
            let ty = ty.rsplit(']').next().unwrap_or(ty);
            definition(ty).is_some()
                || matches!(ty, "string" | "bool" | "int32" | "int64")
                || matches!(
                    ty,
                    "resource.Quantity" | "v1.Time" | "intstr.IntOrString" | "v1.FieldsV1"
                )
        };
        let lines = TYPES.iter().flat_map(|text| text.lines());
        for line in lines.filter(|line| !line.starts_with('#')) {
            let (name, rest) = line.split_once(' ').unwrap();
            match parse(rest) {
                Definition::Named(other) => assert!(known(other), "{name}: {other}"),
                Definition::Struct(fields) => {
                    for field in fields {
                        assert!(known(field.ty), "{name}.{}: {}", field.name, field.ty);
                    }
                }
            }
        }
    }
}
