//! The form of a Chainsaw test, as far as Seatrial plays it. Unknown fields are refused by name.

use std::collections::BTreeMap;

use serde::Deserialize;
use shared_json::Value;

use super::duration::GoDuration;
use crate::assertion::Compiler;

/// The `apiVersion` of Chainsaw's files.
pub const API_VERSION: &str = "chainsaw.kyverno.io/v1alpha1";

/// A `Test`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Test {
    /// Must be [`API_VERSION`].
    pub api_version: String,
    /// Must be `Test`.
    pub kind: String,
    /// Name and annotations.
    pub metadata: Metadata,
    /// The test itself.
    pub spec: Spec,
}

/// A test's metadata.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Metadata {
    /// The test's name.
    pub name: String,
    /// Accepted; tests are files here.
    pub namespace: Option<String>,
    /// Accepted; generators write it.
    pub creation_timestamp: Option<String>,
    /// See [`super::extras`].
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// Labels, for selecting tests.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// The body of a test.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Spec {
    /// The description.
    #[serde(default)]
    pub description: String,
    /// The namespace it runs in, instead of `default`; it is made unless it is there.
    pub namespace: Option<String>,
    /// The template of that namespace.
    pub namespace_template: Option<Value>,
    /// The language of expressions in that.
    pub namespace_template_compiler: Option<Compiler>,
    /// The language of expressions.
    pub compiler: Option<Compiler>,
    /// The cluster it runs on: none but the one it has, whose name is empty.
    pub cluster: Option<String>,
    /// How long each kind of operation may take.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Values by name, for expressions.
    #[serde(default)]
    pub bindings: Vec<Binding>,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Done when a step fails.
    #[serde(default)]
    pub catch: Vec<Operation>,
    /// Whether to leave the objects that it made.
    #[serde(default)]
    pub skip_delete: bool,
    /// Whether not to run it.
    #[serde(default)]
    pub skip: bool,
    /// Accepted; tests run one after the other here.
    pub concurrent: Option<bool>,
    /// Accepted; each test stops at its first failure here.
    pub fail_fast: Option<bool>,
    /// Whether expressions in objects are evaluated; they are, unless this says no.
    pub template: Option<bool>,
    /// Accepted; the cluster goes with the test.
    pub fast_namespace_deletion: Option<bool>,
    /// Accepted; the cluster goes with the test.
    pub force_termination_grace_period: Option<GoDuration>,
    /// Accepted, without effect.
    pub delay_before_cleanup: Option<GoDuration>,
    /// The propagation policy of deletions.
    pub deletion_propagation_policy: Option<String>,
    /// The test is played once for each of these.
    #[serde(default)]
    pub scenarios: Vec<Variant>,
}

/// Values with which a test is played once more.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Values by name.
    #[serde(default)]
    pub bindings: Vec<Binding>,
}

/// How long each kind of operation may take.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    /// For apply, create, update and patch; 5 s unless given.
    pub apply: Option<GoDuration>,
    /// For assert; 30 s unless given.
    pub assert: Option<GoDuration>,
    /// For deleting the objects that it made.
    pub cleanup: Option<GoDuration>,
    /// For delete; 15 s unless given.
    pub delete: Option<GoDuration>,
    /// For error; 30 s unless given.
    pub error: Option<GoDuration>,
    /// For wait; 30 s unless given.
    pub exec: Option<GoDuration>,
}

impl Timeouts {
    /// These, and `outer`'s where these say nothing.
    #[must_use]
    pub fn within(self, outer: Self) -> Self {
        Self {
            apply: self.apply.or(outer.apply),
            assert: self.assert.or(outer.assert),
            cleanup: self.cleanup.or(outer.cleanup),
            delete: self.delete.or(outer.delete),
            error: self.error.or(outer.error),
            exec: self.exec.or(outer.exec),
        }
    }
}

/// A value with a name; the value may be an expression in parentheses.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The name, used as `$name`; it may be an expression, too.
    pub name: String,
    /// The value.
    pub value: Value,
    /// The language of expressions in both.
    pub compiler: Option<Compiler>,
}

/// A step.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Step {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// The language of expressions.
    pub compiler: Option<Compiler>,
    /// The cluster it runs on: none but the test's, whose name is empty.
    pub cluster: Option<String>,
    /// Values by name.
    #[serde(default)]
    pub bindings: Vec<Binding>,
    /// How long each kind of operation may take.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// A file that has the step's operations.
    #[serde(rename = "use")]
    pub template_of: Option<Use>,
    /// The operations, in order.
    #[serde(default, rename = "try")]
    pub operations: Vec<Operation>,
    /// Done when it fails.
    #[serde(default)]
    pub catch: Vec<Operation>,
    /// Done afterwards in any case.
    #[serde(default)]
    pub finally: Vec<Operation>,
    /// Done when the test is over.
    #[serde(default)]
    pub cleanup: Vec<Operation>,
    /// Whether to leave the objects that it made.
    #[serde(default)]
    pub skip_delete: bool,
    /// Whether expressions in objects are evaluated.
    pub template: Option<bool>,
    /// The propagation policy of deletions.
    pub deletion_propagation_policy: Option<String>,
}

/// A file that has a step's operations.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Use {
    /// The file, beside the test.
    pub template: String,
    /// The bindings that it gets.
    #[serde(default)]
    pub with: Variant,
}

/// A `StepTemplate`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StepTemplate {
    /// Must be [`API_VERSION`].
    pub api_version: String,
    /// Must be `StepTemplate`.
    pub kind: String,
    /// Its name.
    pub metadata: Metadata,
    /// The step.
    pub spec: Step,
}

/// One operation: exactly one of its actions is set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Operation {
    /// The description.
    #[serde(default)]
    pub description: String,
    /// The language of expressions.
    pub compiler: Option<Compiler>,
    /// Accepted; an operation that fails ends its step.
    pub continue_on_error: Option<bool>,
    /// Creates or changes objects.
    pub apply: Option<WriteAction>,
    /// Creates objects.
    pub create: Option<WriteAction>,
    /// Replaces objects.
    pub update: Option<WriteAction>,
    /// Merges into objects that are there.
    pub patch: Option<WriteAction>,
    /// Deletes objects.
    pub delete: Option<DeleteAction>,
    /// Waits until an object matches.
    pub assert: Option<CheckAction>,
    /// Waits until no object matches.
    pub error: Option<CheckAction>,
    /// Waits for a condition, a deletion or a field.
    pub wait: Option<WaitAction>,
    /// Lets time pass.
    pub sleep: Option<SleepAction>,
    /// Shows logs to people; passed over.
    pub pod_logs: Option<Value>,
    /// Shows objects to people; passed over.
    pub describe: Option<Value>,
    /// Shows events to people; passed over.
    pub events: Option<Value>,
    /// Shows objects to people; passed over.
    pub get: Option<Value>,
    /// A shell's; passed over where nothing depends on it (see [`super::beyond`]).
    pub script: Option<Value>,
    /// A program's; passed over likewise.
    pub command: Option<Value>,
}

/// Objects from a file or inline.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WriteAction {
    /// A file beside the test.
    pub file: Option<String>,
    /// An object.
    pub resource: Option<Value>,
    /// Values by name.
    #[serde(default)]
    pub bindings: Vec<Binding>,
    /// The allowed outcomes besides success.
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// Values taken from the outcome, for later operations.
    #[serde(default)]
    pub outputs: Vec<Output>,
    /// Whether the request is a dry run.
    #[serde(default)]
    pub dry_run: bool,
    /// Which subresource is patched.
    pub subresource: Option<String>,
    /// How long it may take.
    pub timeout: Option<GoDuration>,
    /// Whether expressions in the object are evaluated; they are, unless this says no.
    pub template: Option<bool>,
}

/// An allowed outcome of an operation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename = "expectation")]
pub struct Expectation {
    /// Which objects it concerns; all if it is not given.
    #[serde(rename = "match")]
    pub matches: Option<Value>,
    /// An assertion tree over the outcome, with `$error` bound.
    pub check: Value,
}

/// A value taken from an outcome.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Which objects it is taken from.
    #[serde(rename = "match")]
    pub matches: Option<Value>,
    /// Its name.
    pub name: String,
    /// An expression over the object.
    pub value: Value,
    /// The language of expressions in it.
    pub compiler: Option<Compiler>,
}

/// Objects to delete.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DeleteAction {
    /// Which objects.
    #[serde(rename = "ref")]
    pub reference: Option<Reference>,
    /// The objects of a file.
    pub file: Option<String>,
    /// Whether expressions are evaluated.
    pub template: Option<bool>,
    /// The propagation policy.
    pub deletion_propagation_policy: Option<String>,
    /// The allowed outcomes besides success.
    #[serde(default)]
    pub expect: Vec<Expectation>,
    /// Values by name.
    #[serde(default)]
    pub bindings: Vec<Binding>,
    /// How long it may take.
    pub timeout: Option<GoDuration>,
}

/// Objects by kind and name, or labels.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Reference {
    /// Their `apiVersion`.
    pub api_version: String,
    /// Their kind.
    pub kind: String,
    /// The name of the one.
    pub name: Option<String>,
    /// Their namespace.
    pub namespace: Option<String>,
    /// Their labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// An assertion tree, from a file or inline.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckAction {
    /// A file beside the test.
    pub file: Option<String>,
    /// A tree.
    pub resource: Option<Value>,
    /// Values by name.
    #[serde(default)]
    pub bindings: Vec<Binding>,
    /// How long it may take.
    pub timeout: Option<GoDuration>,
    /// Whether expressions in the tree's metadata are evaluated.
    pub template: Option<bool>,
}

/// An operation that waits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WaitAction {
    /// The objects' `apiVersion`.
    pub api_version: String,
    /// Their kind.
    pub kind: String,
    /// The name of the one.
    pub name: Option<String>,
    /// Their namespace.
    pub namespace: Option<String>,
    /// A label selector.
    pub selector: Option<String>,
    /// Accepted; nothing is printed.
    pub format: Option<String>,
    /// The condition to wait for.
    #[serde(rename = "for")]
    pub until: WaitFor,
    /// How long it may take.
    pub timeout: Option<GoDuration>,
}

/// The condition to wait for: one of these.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WaitFor {
    /// A condition in the status.
    pub condition: Option<WaitCondition>,
    /// That the objects are there.
    pub creation: Option<Value>,
    /// That the objects are gone.
    pub deletion: Option<Value>,
    /// A field's value.
    pub json_path: Option<WaitJsonPath>,
}

/// A condition in the status.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitCondition {
    /// Its type.
    pub name: String,
    /// Its status; `True` unless given.
    pub value: Option<String>,
}

/// A field's value.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitJsonPath {
    /// The path, such as `{.status.phase}`.
    pub path: String,
    /// The value; any unless given.
    pub value: Option<String>,
}

/// Lets time pass.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SleepAction {
    /// How much.
    pub duration: GoDuration,
}

impl Operation {
    /// The name of its action, if that only shows something to people or is passed over.
    #[must_use]
    pub fn passed_over(&self) -> Option<&'static str> {
        let name = self.actions().first().copied()?;
        ["podLogs", "describe", "events", "get", "script", "command"]
            .contains(&name)
            .then_some(name)
    }

    /// The names of the actions that are set.
    #[must_use]
    pub fn actions(&self) -> Vec<&'static str> {
        [
            ("apply", self.apply.is_some()),
            ("create", self.create.is_some()),
            ("update", self.update.is_some()),
            ("patch", self.patch.is_some()),
            ("delete", self.delete.is_some()),
            ("assert", self.assert.is_some()),
            ("error", self.error.is_some()),
            ("wait", self.wait.is_some()),
            ("sleep", self.sleep.is_some()),
            ("podLogs", self.pod_logs.is_some()),
            ("describe", self.describe.is_some()),
            ("events", self.events.is_some()),
            ("get", self.get.is_some()),
            ("script", self.script.is_some()),
            ("command", self.command.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, set)| set.then_some(name))
        .collect()
    }
}
