//! The software bill of materials, in CycloneDX's JSON (1.5), from the output of `cargo metadata`.
//!
//! The crates that write this form bring an XML parser and a validator along, and every build of `cargo xtask` would wait for them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::programs::PROGRAMS;

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// Whether a dependency is one of the program: not of its tests alone.
fn is_built(dependency: &Value) -> bool {
    list(dependency, "dep_kinds").any(|kind| text(kind, "kind") != "dev")
}

/// Whether a package has one of the programs.
fn has_program(package: &Value) -> bool {
    list(package, "targets").any(|target| {
        PROGRAMS.contains(&text(target, "name")) && list(target, "kind").any(|kind| kind == "bin")
    })
}

/// The packages that the programs are built from, with those that each of them needs.
fn needed(metadata: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let nodes: BTreeMap<&str, &Value> = metadata
        .get("resolve")
        .map(|resolve| {
            list(resolve, "nodes")
                .map(|node| (text(node, "id"), node))
                .collect()
        })
        .unwrap_or_default();
    let programs = list(metadata, "packages").filter(|package| has_program(package));
    let mut open: Vec<&str> = programs.map(|package| text(package, "id")).collect();
    let mut found = BTreeMap::new();
    while let Some(id) = open.pop() {
        if found.contains_key(id) {
            continue;
        }
        let node = nodes.get(id).copied().unwrap_or(&Value::Null);
        let needs: BTreeSet<&str> = list(node, "deps")
            .filter(|dependency| is_built(dependency))
            .map(|dependency| text(dependency, "pkg"))
            .collect();
        open.extend(&needs);
        found.insert(id, needs);
    }
    found
}

/// The checksums in `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let of = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name));
            line.map(|line| line.trim_start_matches(" = ").trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(checksum)) = (of("name"), of("version"), of("checksum")) {
            found.insert((name, version), checksum);
        }
    }
    found
}

/// The name of a package in the bill.
fn purl(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"))
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let purl = purl(package);
    let mut component =
        json!({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl});
    let license = text(package, "license");
    if !license.is_empty() {
        // Older packages write `/` for `OR`.
        component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    if let Some(checksum) = checksums.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

/// The bill of the programs.
pub(super) fn cyclonedx(metadata: &Value, lock: &str, version: &str) -> Value {
    let packages: BTreeMap<&str, &Value> = list(metadata, "packages")
        .map(|package| (text(package, "id"), package))
        .collect();
    let (needed, checksums) = (needed(metadata), checksums(lock));
    let mut components = BTreeMap::new();
    let mut dependencies = BTreeMap::new();
    for (id, needs) in &needed {
        let Some(package) = packages.get(id) else { continue };
        let needs: BTreeSet<String> = needs
            .iter()
            .filter_map(|id| packages.get(id))
            .map(|package| purl(package))
            .collect();
        components.insert(purl(package), component(package, &checksums));
        dependencies.insert(purl(package), json!({"ref": purl(package), "dependsOn": needs}));
    }
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "seatrial", "name": "seatrial", "version": version}},
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies.into_values().collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, license: &str, program: &str) -> Value {
        json!({
            "id": format!("id-{name}"), "name": name, "version": "1.0.0", "license": license,
            "targets": [{"name": program, "kind": ["bin"]}],
        })
    }

    fn node(name: &str, needs: &[(&str, Option<&str>)]) -> Value {
        let needs: Vec<Value> = needs
            .iter()
            .map(|(name, kind)| json!({"pkg": format!("id-{name}"), "dep_kinds": [{"kind": kind}]}))
            .collect();
        json!({"id": format!("id-{name}"), "deps": needs})
    }

    /// A crate that is only tested with, or belongs to another program, is left out.
    #[test]
    fn a_bill_has_what_the_programs_are_built_from() {
        let metadata = json!({
            "packages": [
                package("controller", "Apache-2.0", "kruise-manager"), package("kube", "MIT/Apache-2.0", "none"),
                package("cc", "", "none"), package("rstest", "MIT", "none"), package("other", "MIT", "other"),
            ],
            "resolve": {"nodes": [
                node("controller", &[("kube", None), ("cc", Some("build")), ("rstest", Some("dev"))]),
                node("kube", &[("controller", Some("dev"))]), node("cc", &[]), node("rstest", &[]), node("other", &[("kube", None)]),
            ]},
        });
        let lock = "version = 4\n\n[[package]]\nname = \"kube\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\n[[package]]\nname = \"cc\"\nversion = \"1.0.0\"\n";
        let bom = cyclonedx(&metadata, lock, "1.2.3");
        let names: Vec<&str> = list(&bom, "components")
            .map(|component| text(component, "purl"))
            .collect();
        assert_eq!(
            names,
            [
                "pkg:cargo/cc@1.0.0",
                "pkg:cargo/controller@1.0.0",
                "pkg:cargo/kube@1.0.0"
            ]
        );
        assert_eq!(
            bom["components"][2]["licenses"],
            json!([{"expression": "MIT OR Apache-2.0"}])
        );
        assert_eq!(
            bom["components"][2]["hashes"],
            json!([{"alg": "SHA-256", "content": "ab"}])
        );
        assert_eq!(
            (&bom["components"][0]["licenses"], &bom["components"][0]["hashes"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(
            bom["dependencies"][1]["dependsOn"],
            json!(["pkg:cargo/cc@1.0.0", "pkg:cargo/kube@1.0.0"])
        );
        assert_eq!(bom["metadata"]["component"]["version"], "1.2.3");
    }

    #[test]
    fn bad_metadata_makes_an_empty_bill() {
        for metadata in [
            json!(null),
            json!({"packages": 1}),
            json!({"resolve": [], "packages": [{}]}),
        ] {
            let bom = cyclonedx(&metadata, "[[package]]", "1.0.0");
            assert_eq!(bom["components"], json!([]));
        }
    }
}
