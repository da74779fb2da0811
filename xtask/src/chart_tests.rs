//! The chart's files, values and templates, as far as they can be looked at without Helm. `conformance/helm/run` installs the chart.

use std::collections::BTreeSet;
use std::fs;

use controller::process::install;
use rstest::rstest;
use serde_json::Value;

use super::*;

fn chart() -> PathBuf {
    crate::conformance::workspace().join(CHART)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(&chart().join(path))).expect("a document")
}

/// The paths of files below a folder of the chart.
fn below(folder: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(chart().join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let path = Path::new(folder).join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            found.extend(below(path.to_str().expect("a path")));
        } else {
            found.insert(path);
        }
    }
    found
}

/// All templates, one after the other.
fn templates() -> String {
    below("templates")
        .iter()
        .map(|path| read(&chart().join(path)))
        .collect()
}

#[test]
fn files_are_those_of_an_installation() {
    let files = files(&objects());
    let there = below("files");
    assert_eq!(
        there,
        files.keys().cloned().collect(),
        "write them with `cargo xtask chart`"
    );
    for (path, text) in files {
        let kept = read(&chart().join(&path));
        assert_eq!(
            kept,
            text,
            "{}: write it with `cargo xtask chart`",
            path.display()
        );
    }
}

/// The definitions are those of OpenKruise 1.9.0 but for the webhook that converts versions.
#[test]
fn definitions_are_openkruises() {
    let theirs = crate::conformance::workspace().join("controller/api/crds");
    let mut count = 0;
    for path in below("files/crds") {
        let mut here: Value = serde_json::from_str(&read(&chart().join(&path))).expect("a document");
        let file = theirs.join(path.file_name().expect("a name"));
        let mut there: Value = serde_json::from_str(&read(&file)).expect("a document");
        for definition in [&mut here, &mut there] {
            definition["spec"]["conversion"] = Value::Null;
        }
        assert_eq!(here["spec"], there["spec"], "{}", path.display());
        count += 1;
    }
    assert_eq!(count, fs::read_dir(&theirs).expect("a folder").count());
}

#[test]
fn the_version_is_the_workspaces() {
    let chart = yaml("Chart.yaml");
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    let of = format!(
        "OpenKruise {}",
        controller::process::version::OPENKRUISE.trim_end_matches(".0")
    );
    let about = chart["description"].as_str().expect("a description");
    assert!(about.starts_with(&of), "{about}");
}

/// The paths of the values that have no values below them, and of those above.
fn paths(value: &Value, path: &str, leaves: &mut BTreeSet<String>, all: &mut BTreeSet<String>) {
    all.insert(path.to_owned());
    match value.as_object().filter(|object| !object.is_empty()) {
        Some(object) => {
            for (name, value) in object {
                paths(value, &format!("{path}.{name}"), leaves, all);
            }
        }
        None => {
            leaves.insert(path.to_owned());
        }
    }
}

/// The values that templates name: `.Values.a.b`, and `$values.a.b` of a helper.
fn named() -> BTreeSet<String> {
    let text = templates();
    let mut named = BTreeSet::new();
    for part in text.replace("$values.", ".Values.").split(".Values.").skip(1) {
        let end = part
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '.')
            .unwrap_or(part.len());
        named.insert(format!(".{}", part[..end].trim_end_matches('.')));
    }
    named
}

#[test]
fn every_value_is_used_and_every_used_value_is_there() {
    let (mut leaves, mut all) = (BTreeSet::new(), BTreeSet::new());
    paths(&yaml("values.yaml"), "", &mut leaves, &mut all);
    let named = named();
    let is_used = |leaf: &&String| {
        !named
            .iter()
            .any(|name| *leaf == name || leaf.starts_with(&format!("{name}.")))
    };
    let unused: Vec<&String> = leaves.iter().filter(is_used).collect();
    assert_eq!(unused, Vec::<&String>::new(), "values that no template names");
    let unknown: Vec<&String> = named.difference(&all).collect();
    assert_eq!(unknown, Vec::<&String>::new(), "values without a default");
}

/// Values of OpenKruise's chart 1.9 and their defaults.
#[rstest]
#[case("/crds/managed", "true")]
#[case("/installation/namespace", "kruise-system")]
#[case("/installation/createNamespace", "true")]
#[case("/installation/roleListGroups/0", "*")]
#[case("/featureGates", "ImagePullJobGate=true")]
#[case("/manager/log/level", "4")]
#[case("/manager/replicas", "2")]
#[case("/manager/webhook/port", "9876")]
#[case("/manager/metrics/port", "8080")]
#[case("/manager/healthProbe/port", "8000")]
#[case("/manager/resyncPeriod", "0")]
#[case("/manager/hostNetwork", "false")]
#[case("/webhookConfiguration/timeoutSeconds", "30")]
#[case("/daemon/log/level", "4")]
#[case("/daemon/port", "10221")]
#[case("/daemon/socketLocation", "/var/run")]
#[case("/daemon/socketFile", "")]
fn values_have_openkruises_names_and_defaults(#[case] pointer: &str, #[case] expected: &str) {
    let values = yaml("values.yaml");
    let value = values.pointer(pointer).expect("a value");
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    assert_eq!(text, expected);
}

/// The chart has a template for each object of an installation, and no roles but those of its files.
#[test]
fn every_object_of_an_installation_has_a_template() {
    let text = templates();
    let mut all = objects();
    all.extend(install::manifests("a", "b", "").expect("objects"));
    let (mut kinds, mut names) = (BTreeSet::new(), BTreeSet::new());
    for object in all {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        if kind == "CustomResourceDefinition" || kind == "Namespace" {
            continue;
        }
        kinds.insert(format!("kind: {}\n", kind.as_str().expect("a kind")));
        names.insert(name.as_str().expect("a name").to_owned());
    }
    for part in kinds.iter().chain(&names) {
        assert!(text.contains(part.as_str()), "{part}");
    }
    for path in files(&objects())
        .keys()
        .filter(|path| !path.starts_with("files/crds"))
    {
        let path = path.to_str().expect("a path");
        assert!(text.contains(&format!("\"{path}\"")), "{path}");
    }
}
