//! Errors in the template of the workloads.

use kube::core::{Selector, SelectorExt as _};
use pod_rules::FieldError;
use serde_json::Value;

use crate::api::v1alpha1::{SubsetTemplate, WorkloadTemplate};
use crate::kit::go_syntax;
use crate::pods::build::strings;
use crate::pods::template::{defaults, rules};
use crate::workloads::uniteddeployment::kinds::ChildKind;

const PATH: &str = "spec.template";
const ONE_OF: &str =
    "one of statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate, or deploymentTemplate";
const MISMATCH: &str = "`selector` does not match template `labels`";

/// Adds the errors in the template. A CloneSet is not looked at.
pub(super) fn check(template: &SubsetTemplate, selector: &Selector, errors: &mut Vec<FieldError>) {
    let given = |kind: &ChildKind| kind.template(template).is_some();
    match ChildKind::ALL.iter().filter(|kind| given(kind)).count() {
        0 => errors.push(FieldError::required(PATH, format!("should provide {ONE_OF}"))),
        1 => {}
        _ => {
            let detail = format!("should provide only {ONE_OF}");
            errors.push(FieldError::invalid_shown(PATH, shown(template), detail));
        }
    }
    let checked = ChildKind::ALL.iter().filter(|kind| **kind != ChildKind::CloneSet);
    let Some(kind) = checked.copied().find(given) else {
        return;
    };
    if let Some(workload) = kind.template(template) {
        marks(kind, workload, selector, errors);
        fields(kind, workload, errors);
        pod(kind, workload, selector, errors);
    }
}

/// The templates as Go prints them, without addresses.
fn shown(template: &SubsetTemplate) -> String {
    let parts = ChildKind::ALL.map(|kind| {
        let name = kind.word();
        let value = if kind.template(template).is_some() {
            "..."
        } else {
            "nil"
        };
        format!("{name}Template:(*v1alpha1.{name}TemplateSpec)({value})")
    });
    format!("v1alpha1.SubsetTemplate{{{}}}", parts.join(", "))
}

fn mismatch(path: String, metadata: Option<&Value>) -> FieldError {
    let labels = metadata.and_then(|metadata| metadata.get("labels")?.as_object());
    FieldError::invalid_shown(path, go_syntax::text_map(labels), MISMATCH)
}

/// The labels of the workload must match. The path of an Advanced StatefulSet is that of the other, as in OpenKruise.
fn marks(kind: ChildKind, workload: &WorkloadTemplate, selector: &Selector, errors: &mut Vec<FieldError>) {
    let metadata = workload.metadata.as_ref();
    if selector.matches(&strings(metadata.unwrap_or(&Value::Null), "/labels")) {
        return;
    }
    let field = match kind {
        ChildKind::AdvancedStatefulSet => ChildKind::StatefulSet.field(),
        kind => kind.field(),
    };
    errors.push(mismatch(format!("{PATH}.{field}.metadata.labels"), metadata));
}

/// Fields that the subsets say must not be there.
fn fields(kind: ChildKind, workload: &WorkloadTemplate, errors: &mut Vec<FieldError>) {
    let field = kind.field();
    let mut refuse = |at: &str, name: &str| {
        let value = workload.spec.pointer(&format!("/{}", at.replace('.', "/")));
        if let Some(number) = value.and_then(Value::as_i64) {
            let detail = format!("{name} in {field} will not be used");
            errors.push(FieldError::invalid(
                format!("{PATH}.{field}.spec.{at}"),
                number,
                detail,
            ));
        }
    };
    refuse("replicas", "replicas");
    let strategy = workload
        .spec
        .pointer("/updateStrategy/type")
        .and_then(Value::as_str);
    if kind != ChildKind::Deployment && strategy == Some("RollingUpdate") {
        refuse("updateStrategy.rollingUpdate.partition", "partition");
    }
}

/// The pod template: of StatefulSets its labels and annotations alone, as in OpenKruise.
fn pod(kind: ChildKind, workload: &WorkloadTemplate, selector: &Selector, errors: &mut Vec<FieldError>) {
    let base = format!("{PATH}.{}.spec.template", kind.field());
    let mut pod = workload.spec.get("template").cloned().unwrap_or_default();
    let metadata = pod.get("metadata");
    if !selector.matches(&strings(metadata.unwrap_or(&Value::Null), "/labels")) {
        errors.push(mismatch(format!("{base}.metadata.labels"), metadata));
    }
    let found = match kind {
        ChildKind::Deployment => {
            defaults::pod_template(&mut pod);
            let mut found = rules::pod_template(&pod, &[]);
            found.extend(rules::of_sets(&pod, "ReplicaSet"));
            found
        }
        _ => rules::marks(&pod),
    };
    errors.extend(found.into_iter().map(|mut error| {
        if let Some(rest) = error.path.strip_prefix(PATH) {
            error.path = format!("{base}{rest}");
        }
        error
    }));
}
