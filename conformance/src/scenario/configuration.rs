//! `.chainsaw.yaml`: the configuration of all tests of a folder.

use std::path::Path;

use regex::Regex;
use shared_json::{Value, json};

use super::chainsaw::{Spec, Test, Timeouts};
use crate::assertion::Compiler;
use crate::error::Error;

/// The file's name.
const FILE: &str = ".chainsaw.yaml";
/// The default name of test files, without the ending for their form.
const TEST_FILE: &str = "chainsaw-test";

/// The configuration of a folder's tests. Both versions of Chainsaw's configuration are read; settings about clusters that live
/// on when a test is over is passed over.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    timeouts: Timeouts,
    test_file: Option<String>,
    include: Option<Regex>,
    exclude: Option<Regex>,
    namespace: Option<String>,
    namespace_template: Option<Value>,
    namespace_template_compiler: Option<Compiler>,
    compiler: Option<Compiler>,
    template: Option<bool>,
    deletion_propagation_policy: Option<String>,
}

impl Configuration {
    /// Reads the configuration in a file, or that of a folder, which need not have one.
    ///
    /// # Errors
    /// If it cannot be read, or is invalid.
    pub(super) fn read(root: &Path, file: Option<&Path>) -> Result<Self, Error> {
        let path = file.map_or_else(|| root.join(FILE), Path::to_owned);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && file.is_none() => {
                return Ok(Self::default());
            }
            Err(source) => return Err(Error::Read { path, source }),
        };
        let tree: Value = serde_saphyr::from_str(&text).map_err(|error| Error::yaml(&path, &error))?;
        Self::of(&tree).map_err(|why| Error::Parse {
            path,
            line: 0,
            column: 0,
            why,
            help: "see Chainsaw's documentation of its configuration".to_owned(),
        })
    }

    fn of(tree: &Value) -> Result<Self, String> {
        // The newer version has sections, the older one has all in one place.
        let find = |paths: [&str; 2]| {
            let found = paths
                .iter()
                .find_map(|path| tree.pointer(&format!("/spec/{path}")));
            found.filter(|value| !value.is_null())
        };
        let text = |paths: [&str; 2]| match find(paths) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.to_string())),
            Some(_) => Err(format!("spec.{}: must be a string", paths[1])),
        };
        let regex = |paths: [&str; 2]| match text(paths)?.as_deref() {
            None | Some("") => Ok(None),
            Some(pattern) => Regex::new(pattern)
                .map(Some)
                .map_err(|error| format!("spec.{}: {error}", paths[1])),
        };
        let compiler = |paths: [&str; 2]| match find(paths) {
            None => Ok(None),
            Some(value) => shared_json::from_value(value.clone())
                .map(Some)
                .map_err(|error| format!("spec.{}: {error}", paths[1])),
        };
        let timeouts = find(["timeouts", "timeouts"])
            .cloned()
            .unwrap_or_else(|| json!({}));
        let namespace = tree.pointer("/spec/namespace");
        Ok(Self {
            timeouts: shared_json::from_value(timeouts).map_err(|error| format!("spec.timeouts: {error}"))?,
            test_file: text(["discovery/testFile", "testFile"])?.filter(|name| !name.is_empty()),
            include: regex(["discovery/includeTestRegex", "includeTestRegex"])?,
            exclude: regex(["discovery/excludeTestRegex", "excludeTestRegex"])?,
            namespace: match namespace {
                Some(Value::Object(_)) => text(["namespace/name", "namespace/name"])?,
                _ => text(["namespace", "namespace"])?,
            },
            namespace_template: find(["namespace/template", "namespaceTemplate"]).cloned(),
            namespace_template_compiler: compiler(["namespace/compiler", "namespaceTemplateCompiler"])?,
            compiler: compiler(["templating/compiler", "compiler"])?,
            template: find(["templating/enabled", "template"]).and_then(Value::as_bool),
            deletion_propagation_policy: text(["deletion/propagation", "deletionPropagationPolicy"])?,
        })
    }

    /// The names of files of tests.
    pub(super) fn file_names(&self) -> [String; 2] {
        let name = self.test_file.as_deref().unwrap_or(TEST_FILE);
        [format!("{name}.yaml"), format!("{name}.yml")]
    }

    /// Whether a test is to be played at all, by its name.
    pub(super) fn takes(&self, test: &Test) -> bool {
        let name = test.metadata.name.as_str();
        self.include.as_ref().is_none_or(|wanted| wanted.is_match(name))
            && !self
                .exclude
                .as_ref()
                .is_some_and(|unwanted| unwanted.is_match(name))
    }

    /// Fills in the settings that a test does not have itself.
    pub(super) fn fill(&self, spec: &mut Spec) {
        spec.timeouts = spec.timeouts.within(self.timeouts);
        if spec.namespace.is_none() && spec.namespace_template.is_none() {
            spec.namespace.clone_from(&self.namespace);
            spec.namespace_template.clone_from(&self.namespace_template);
            spec.namespace_template_compiler = self.namespace_template_compiler;
        }
        spec.compiler = spec.compiler.or(self.compiler);
        spec.template = spec.template.or(self.template);
        if spec.deletion_propagation_policy.is_none() {
            spec.deletion_propagation_policy
                .clone_from(&self.deletion_propagation_policy);
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The outcome for a test called `name` without settings: whether it is selected, and its file, namespace, labels of that,
    /// templating and policy of deletion.
    fn outcome(spec: &Value, name: &str) -> Value {
        let configuration = Configuration::of(&json!({"spec": spec.clone()})).expect("a configuration");
        let test = json!({
            "apiVersion": super::super::chainsaw::API_VERSION, "kind": "Test", "metadata": {"name": name}, "spec": {"steps": []},
        });
        let mut test: Test = shared_json::from_value(test).expect("a test");
        configuration.fill(&mut test.spec);
        json!([
            configuration.takes(&test),
            configuration.file_names()[0].clone(),
            test.spec.namespace,
            test.spec.namespace_template,
            test.spec.template,
            test.spec.deletion_propagation_policy,
        ])
    }

    #[rstest]
    #[case::nothing(json!({}), json!([true, "chainsaw-test.yaml", null, null, null, null]))]
    #[case::older(
        json!({"testFile": "e2e", "namespace": "n", "namespaceTemplate": {"metadata": {}}, "template": false, "deletionPropagationPolicy": "Orphan"}),
        json!([true, "e2e.yaml", "n", {"metadata": {}}, false, "Orphan"]),
    )]
    #[case::newer(
        json!({"discovery": {"testFile": "e2e"}, "namespace": {"name": "n", "template": {"metadata": {}}}, "templating": {"enabled": false}, "deletion": {"propagation": "Orphan"}}),
        json!([true, "e2e.yaml", "n", {"metadata": {}}, false, "Orphan"]),
    )]
    #[case::included(json!({"discovery": {"includeTestRegex": "^scale"}}), json!([true, "chainsaw-test.yaml", null, null, null, null]))]
    #[case::not_included(json!({"includeTestRegex": "^x"}), json!([false, "chainsaw-test.yaml", null, null, null, null]))]
    #[case::excluded(json!({"discovery": {"excludeTestRegex": "up$"}}), json!([false, "chainsaw-test.yaml", null, null, null, null]))]
    #[case::empty_patterns(json!({"excludeTestRegex": "", "includeTestRegex": ""}), json!([true, "chainsaw-test.yaml", null, null, null, null]))]
    fn configurations(#[case] spec: Value, #[case] expected: Value) {
        assert_eq!(outcome(&spec, "scale-up"), expected);
    }

    /// The languages of the namespace's template and of all else.
    #[rstest]
    #[case::nothing(json!({}), (None, None))]
    #[case::newer(json!({"namespace": {"compiler": "cel"}, "templating": {"compiler": "jp"}}), (Some(Compiler::Cel), Some(Compiler::Jp)))]
    #[case::older(json!({"namespaceTemplateCompiler": "cel", "compiler": "cel"}), (Some(Compiler::Cel), Some(Compiler::Cel)))]
    fn languages(#[case] spec: Value, #[case] expected: (Option<Compiler>, Option<Compiler>)) {
        let found = Configuration::of(&json!({"spec": spec})).expect("a configuration");
        assert_eq!((found.namespace_template_compiler, found.compiler), expected);
    }

    #[rstest]
    #[case(json!({"excludeTestRegex": "("}), "spec.excludeTestRegex: regex parse error")]
    #[case(json!({"discovery": {"testFile": 1}}), "spec.testFile: must be a string")]
    #[case(json!({"timeouts": {"assert": "x"}}), "spec.timeouts: ")]
    #[case(json!({"templating": {"compiler": "lua"}}), "spec.compiler: unknown variant `lua`")]
    fn what_is_none(#[case] spec: Value, #[case] expected: &str) {
        let why = Configuration::of(&json!({"spec": spec})).expect_err("a refusal");
        assert!(why.starts_with(expected), "{why}");
    }
}
