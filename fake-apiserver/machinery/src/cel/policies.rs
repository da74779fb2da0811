//! The environment of admission expressions: policies, and the match conditions of policies and webhooks.

use std::collections::BTreeMap;

use super::depth::deep;
use super::ty::{Record, Shape, Ty};
use super::{Expression, complaints, folding, types};

static KIND: Record = Record {
    name: "kubernetes.GroupVersionKind",
    fields: &[("group", "string"), ("version", "string"), ("kind", "string")],
    records: &[],
};
static RESOURCE: Record = Record {
    name: "kubernetes.GroupVersionResource",
    fields: &[("group", "string"), ("version", "string"), ("resource", "string")],
    records: &[],
};
static USER: Record = Record {
    name: "kubernetes.UserInfo",
    fields: &[
        ("username", "string"),
        ("uid", "string"),
        ("groups", "list(string)"),
        ("extra", "map(string, list(string))"),
    ],
    records: &[],
};
static REQUEST: Record = Record {
    name: "kubernetes.AdmissionRequest",
    fields: &[
        ("subResource", "string"),
        ("requestSubResource", "string"),
        ("name", "string"),
        ("namespace", "string"),
        ("operation", "string"),
        ("dryRun", "bool"),
        ("options", "dyn"),
    ],
    records: &[
        ("kind", &KIND),
        ("resource", &RESOURCE),
        ("requestKind", &KIND),
        ("requestResource", &RESOURCE),
        ("userInfo", &USER),
    ],
};
static NAMESPACE_METADATA: Record = Record {
    name: "kubernetes.NamespaceMetadata",
    fields: &[
        ("name", "string"),
        ("generateName", "string"),
        ("namespace", "string"),
        ("labels", "map(string, string)"),
        ("annotations", "map(string, string)"),
        ("UID", "string"),
        ("creationTimestamp", "timestamp"),
        ("deletionGracePeriodSeconds", "int"),
        ("deletionTimestamp", "timestamp"),
        ("generation", "int"),
        ("resourceVersion", "string"),
        ("finalizers", "list(string)"),
    ],
    records: &[],
};
static NAMESPACE_SPEC: Record = Record {
    name: "kubernetes.NamespaceSpec",
    fields: &[("finalizers", "list(string)")],
    records: &[],
};
static NAMESPACE_STATUS: Record = Record {
    name: "kubernetes.NamespaceStatus",
    fields: &[("conditions", "list(dyn)"), ("phase", "string")],
    records: &[],
};
static NAMESPACE: Record = Record {
    name: "kubernetes.Namespace",
    fields: &[],
    records: &[
        ("metadata", &NAMESPACE_METADATA),
        ("spec", &NAMESPACE_SPEC),
        ("status", &NAMESPACE_STATUS),
    ],
};

/// The type that an expression must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Any type.
    Anything,
    /// `bool`
    Bool,
    /// `string`
    Text,
    /// Of an audit annotation: nothing is `null`.
    TextOrNull,
    /// Of a mutation: the object to merge.
    Object,
    /// Of a mutation: the operations, in order.
    Patches,
}

/// The names that the expressions of one policy or webhook may use.
#[derive(Debug, Default, Clone)]
pub struct Names {
    /// There are parameters.
    pub params: bool,
    /// The variables declared so far by `variables`; none where there are no variables.
    variables: Option<BTreeMap<String, Ty<'static>>>,
}

impl Names {
    /// Those of a policy.
    pub fn of_policy(params: bool) -> Self {
        Self {
            params,
            ..Self::default()
        }
    }

    /// There are variables, none of them declared yet.
    pub fn begin_variables(&mut self) {
        self.variables = Some(BTreeMap::new());
    }

    /// Adds a variable, of the type that its expression has.
    pub fn declare(&mut self, name: &str, expression: &str) {
        let read = Expression::read(expression.trim());
        let ty = read.map_or(Ty::Dyn, |read| {
            let checked = self.check(&read, Wanted::Anything);
            match checked.wrong.is_empty() {
                true => lasting(&checked.result),
                false => Ty::Dyn,
            }
        });
        if let Some(variables) = &mut self.variables {
            variables.insert(name.to_owned(), ty);
        }
    }

    fn check<'a>(&'a self, read: &Expression, wanted: Wanted) -> types::Checked<'a> {
        let params = self.params.then_some(Ty::Dyn);
        let names = environment(Ty::Dyn, params, self.variables.as_ref(), wanted);
        deep(|| types::check(&read.tree, names))
    }

    /// The error in an expression, if there is one.
    pub fn problem(&self, text: &str, wanted: Wanted) -> Option<Problem> {
        let read = match Expression::read(text) {
            Ok(read) => read,
            Err(error) => return Some(Problem::Invalid(format!("compilation failed: {error}"))),
        };
        let checked = self.check(&read, wanted);
        if !checked.wrong.is_empty() {
            return Some(Problem::Invalid(format!(
                "compilation failed: {}",
                complaints(text, &checked.wrong)
            )));
        }
        if let Some(mismatch) = Self::mismatch(&checked.result, wanted) {
            return Some(Problem::Invalid(mismatch));
        }
        let problem = deep(|| folding::problem(&read.tree))?;
        Some(Problem::Internal(format!(
            "program instantiation failed: {problem}"
        )))
    }

    /// Why a value of a type is not of the wanted type.
    fn mismatch(found: &Ty<'_>, wanted: Wanted) -> Option<String> {
        let patches = Ty::list(Ty::Named("JSONPatch"));
        let (fits, named) = match wanted {
            Wanted::Anything => return None,
            Wanted::Bool => (*found == Ty::Bool, "bool"),
            Wanted::Text => (*found == Ty::Text, "string"),
            Wanted::Object => (*found == Ty::Named("Object"), "Object"),
            Wanted::Patches => (*found == patches, "list(JSONPatch)"),
            Wanted::TextOrNull => (matches!(found, Ty::Text | Ty::Null), "one of [string null_type]"),
        };
        (!fits).then(|| format!("must evaluate to {named} but got {}", at_run_time(found)))
    }
}

/// An error in an expression.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    /// It is not one that may be asked.
    Invalid(String),
    /// It is, and cannot be prepared.
    Internal(String),
}

/// The names that an expression may use, and their types: `object` is that of the object before and after, `params` none where there are
/// none; `wanted` decides whether the authorizer and object constructors are available.
pub(super) fn environment<'a>(
    object: Ty<'a>,
    params: Option<Ty<'a>>,
    variables: Option<&'a BTreeMap<String, Ty<'a>>>,
    wanted: Wanted,
) -> Vec<(String, Ty<'a>)> {
    let mut names = vec![
        ("object".to_owned(), object.clone()),
        ("oldObject".to_owned(), object),
        ("request".to_owned(), Ty::Object(Shape::Record(&REQUEST))),
        (
            "namespaceObject".to_owned(),
            Ty::Object(Shape::Record(&NAMESPACE)),
        ),
    ];
    // Messages are made without asking anybody.
    if wanted != Wanted::Text {
        let authorizer = Ty::Named("kubernetes.authorization.Authorizer");
        let check = Ty::Named("kubernetes.authorization.ResourceCheck");
        names.push(("authorizer".to_owned(), authorizer));
        names.push(("authorizer.requestResource".to_owned(), check));
    }
    if matches!(wanted, Wanted::Object | Wanted::Patches) {
        names.push((types::OBJECTS.to_owned(), Ty::Dyn));
    }
    names.extend(params.map(|params| ("params".to_owned(), params)));
    names
        .extend(variables.map(|variables| ("variables".to_owned(), Ty::Object(Shape::Variables(variables)))));
    names
}

/// The type without borrowed parts: types of a schema are not known of variables.
pub(super) fn lasting(ty: &Ty<'_>) -> Ty<'static> {
    let inner = |of: &Ty<'_>| Box::new(lasting(of));
    match ty {
        Ty::Null => Ty::Null,
        Ty::Bool => Ty::Bool,
        Ty::Int => Ty::Int,
        Ty::Uint => Ty::Uint,
        Ty::Double => Ty::Double,
        Ty::Text => Ty::Text,
        Ty::Bytes => Ty::Bytes,
        Ty::Timestamp => Ty::Timestamp,
        Ty::Duration => Ty::Duration,
        Ty::Named(name) => Ty::Named(name),
        Ty::Type(of) => Ty::Type(inner(of)),
        Ty::List(of) => Ty::List(inner(of)),
        Ty::Map(key, value) => Ty::Map(inner(key), inner(value)),
        Ty::Optional(of) => Ty::Optional(inner(of)),
        Ty::Object(Shape::Record(record)) => Ty::Object(Shape::Record(record)),
        _ => Ty::Dyn,
    }
}

/// The name of a type as its values know it.
fn at_run_time(ty: &Ty<'_>) -> String {
    match ty {
        Ty::Null => "null_type".to_owned(),
        Ty::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Ty::Duration => "google.protobuf.Duration".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("object.spec.replicas <= 5", Wanted::Bool, None)]
    #[case("object.spec.paused", Wanted::Bool, Some("must evaluate to bool but got dyn"))]
    #[case(
        "request.userInfo.groups",
        Wanted::Bool,
        Some("must evaluate to bool but got list(string)")
    )]
    #[case("variables.n > 1", Wanted::Bool, None)]
    #[case(
        "'x' + variables.n",
        Wanted::Text,
        Some(
            "compilation failed: ERROR: <input>:1:5: found no matching overload for '_+_' applied to '(string, int)'\n | 'x' + variables.n\n | ....^"
        )
    )]
    #[case(
        "variables.m",
        Wanted::Anything,
        Some("compilation failed: ERROR: <input>:1:10: undefined field 'm'\n | variables.m\n | .........^")
    )]
    #[case(
        "params.max > 1",
        Wanted::Bool,
        Some(
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.max > 1\n | ^"
        )
    )]
    #[case(
        "Object{}",
        Wanted::Bool,
        Some(
            "compilation failed: ERROR: <input>:1:7: undeclared reference to 'Object' (in container '')\n | Object{}\n | ......^"
        )
    )]
    #[case(
        "[JSONPatch{op: 1}]",
        Wanted::Patches,
        Some(
            "compilation failed: ERROR: <input>:1:14: expected type of field 'op' is 'string' but provided type is 'int'\n | [JSONPatch{op: 1}]\n | .............^"
        )
    )]
    #[case(
        "true || 1",
        Wanted::Bool,
        Some(
            "compilation failed: ERROR: <input>:1:9: expected type 'bool' but found 'int'\n | true || 1\n | ........^"
        )
    )]
    #[case("authorizer.requestResource.check('get').allowed()", Wanted::Bool, None)]
    #[case(
        "authorizer.group('').resource('pods').namespace('x').check('get').allowed()",
        Wanted::Bool,
        None
    )]
    #[case(
        "1",
        Wanted::TextOrNull,
        Some("must evaluate to one of [string null_type] but got int")
    )]
    fn expressions_of_policies(#[case] text: &str, #[case] wanted: Wanted, #[case] expect: Option<&str>) {
        let mut names = Names::of_policy(false);
        names.begin_variables();
        names.declare("n", "1 + 1");
        let expect = expect.map(|why| Problem::Invalid(why.to_owned()));
        assert_eq!(names.problem(text, wanted), expect);
    }
}
