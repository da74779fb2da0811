//! The type of an expression, as the real server's checker finds it.

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};

use super::functions::{overloads, parse};
use super::ty::{Found, Record, Shape, Ty};
use super::values::{is_called, is_reserved};
use crate::types::{Kind, Schema};

/// The name whose presence says that an expression may make objects and patches.
pub(super) const OBJECTS: &str = "@objects";

/// An error in an expression.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The node of the expression where it is.
    pub id: u64,
    pub what: String,
}

/// All that is known of an expression.
pub(super) struct Checked<'a> {
    pub result: Ty<'a>,
    pub wrong: Vec<Wrong>,
    /// The types of all nodes.
    pub types: BTreeMap<u64, Ty<'a>>,
    /// Which ways to call a function calls may take.
    pub overloads: BTreeMap<u64, Vec<&'static str>>,
}

/// Finds the types of an expression that may use `names`.
pub(super) fn check<'a>(expression: &IdedExpr, names: Vec<(String, Ty<'a>)>) -> Checked<'a> {
    let mut checker = Checker {
        names,
        found: Found::default(),
        next: 1000,
        wrong: Vec::new(),
        types: BTreeMap::new(),
        overloads: BTreeMap::new(),
    };
    let result = checker.check(expression);
    let result = checker.found.settled(&result);
    if checker.wrong.is_empty() {
        checker.literals(expression, false);
    }
    let found = &checker.found;
    let types = checker
        .types
        .iter()
        .map(|(id, ty)| (*id, found.settled(ty)))
        .collect();
    Checked {
        result,
        wrong: checker.wrong,
        types,
        overloads: checker.overloads,
    }
}

/// The type of a schema's values; none where expressions cannot see them.
pub(super) fn of(schema: &Schema) -> Option<Ty<'_>> {
    Some(match &schema.kind {
        Kind::Object(object) => {
            if schema.untyped && !object.embedded_resource {
                return None;
            }
            match &object.additional {
                Some(values) => Ty::Map(Box::new(Ty::Text), Box::new(of(values)?)),
                None => Ty::Object(Shape::Described {
                    schema,
                    is_resource: object.embedded_resource,
                }),
            }
        }
        Kind::Array(array) => Ty::list(of(&array.items)?),
        Kind::Boolean => Ty::Bool,
        Kind::Integer => Ty::Int,
        Kind::Number => Ty::Double,
        Kind::String => match schema.format.as_deref() {
            Some("byte") => Ty::Bytes,
            Some("date" | "date-time") => Ty::Timestamp,
            Some("duration") => Ty::Duration,
            _ => Ty::Text,
        },
        Kind::Bytes => Ty::Bytes,
        Kind::IntOrString => Ty::Dyn,
        Kind::Time | Kind::MicroTime => Ty::Timestamp,
        // Built-in types that may hold anything are objects of which no field is known.
        Kind::Any if is_opaque(schema) => Ty::Object(Shape::Record(&OPAQUE)),
        // An amount is a number or text, which is no type.
        Kind::Quantity | Kind::Any => return None,
    })
}

static OPAQUE: Record = Record {
    name: "object",
    fields: &[],
    records: &[],
};

fn is_opaque(schema: &Schema) -> bool {
    let name = schema.name.as_deref().unwrap_or_default();
    name.ends_with(".FieldsV1") || name.ends_with(".RawExtension")
}

/// The type of a custom resource.
pub(super) fn of_resource(schema: &Schema) -> Ty<'_> {
    Ty::Object(Shape::Described {
        schema,
        is_resource: true,
    })
}

/// The type of a field; none if there is no such field.
fn field<'a>(shape: Shape<'a>, name: &str) -> Option<Ty<'a>> {
    match shape {
        Shape::Variables(variables) => variables.get(name).cloned(),
        Shape::Metadata => matches!(name, "name" | "generateName").then_some(Ty::Text),
        Shape::Record(record) => {
            let inner = record.records.iter().find(|(field, _)| *field == name);
            if let Some((_, inner)) = inner {
                return Some(Ty::Object(Shape::Record(inner)));
            }
            let own = record.fields.iter().find(|(field, _)| *field == name);
            own.map(|(_, ty)| parse(ty))
        }
        Shape::Described { schema, is_resource } => {
            match name {
                "metadata" if is_resource => return Some(Ty::Object(Shape::Metadata)),
                "apiVersion" | "kind" if is_resource => return Some(Ty::Text),
                _ => {}
            }
            let fields = &schema.as_object()?.fields;
            let (_, field) = fields.iter().find(|(field, _)| is_called(field, name))?;
            of(&field.schema)
        }
    }
}

struct Checker<'a> {
    /// Names and their types, the innermost last.
    names: Vec<(String, Ty<'a>)>,
    found: Found<'a>,
    /// The next variable.
    next: u32,
    wrong: Vec<Wrong>,
    types: BTreeMap<u64, Ty<'a>>,
    overloads: BTreeMap<u64, Vec<&'static str>>,
}

impl<'a> Checker<'a> {
    fn complain(&mut self, id: u64, what: String) -> Ty<'a> {
        let wrong = Wrong { id, what };
        // What macros repeat is said once.
        if !self.wrong.contains(&wrong) {
            self.wrong.push(wrong);
        }
        Ty::Wrong
    }

    fn variable(&mut self) -> Ty<'a> {
        self.next += 1;
        Ty::Var(self.next)
    }

    fn check(&mut self, expression: &IdedExpr) -> Ty<'a> {
        let ty = self.checked(expression);
        let ty = self.found.apply(&ty);
        self.types.insert(expression.id, ty.clone());
        ty
    }

    fn checked(&mut self, expression: &IdedExpr) -> Ty<'a> {
        let id = expression.id;
        match &expression.expr {
            Expr::Ident(name) => self.name(id, name),
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Ty::Bool,
                LiteralValue::Bytes(_) => Ty::Bytes,
                LiteralValue::Double(_) => Ty::Double,
                LiteralValue::Int(_) => Ty::Int,
                LiteralValue::Null => Ty::Null,
                LiteralValue::String(_) => Ty::Text,
                LiteralValue::UInt(_) => Ty::Uint,
            },
            Expr::List(list) => {
                let mut of: Option<Ty<'a>> = None;
                for (index, element) in list.elements.iter().enumerate() {
                    let mut ty = self.check(element);
                    if list.optional_indices.contains(&index) {
                        ty = match ty {
                            Ty::Optional(of) => *of,
                            open if open.is_open() => open,
                            other => {
                                let given = self.found.settled(&other);
                                let what =
                                    format!("expected type 'optional_type({given})' but found '{given}'");
                                self.complain(element.id, what)
                            }
                        };
                    }
                    of = Some(self.joined(of, ty));
                }
                let of = of.unwrap_or_else(|| self.variable());
                Ty::list(of)
            }
            Expr::Map(map) => {
                let (mut keys, mut values): (Option<Ty<'a>>, Option<Ty<'a>>) = (None, None);
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        continue;
                    };
                    let key = self.check(&entry.key);
                    keys = Some(self.joined(keys, key));
                    let value = self.check(&entry.value);
                    values = Some(self.joined(values, value));
                }
                let key = keys.unwrap_or_else(|| self.variable());
                let value = values.unwrap_or_else(|| self.variable());
                Ty::Map(Box::new(key), Box::new(value))
            }
            Expr::Struct(object) => {
                let name = &object.type_name;
                let is_object = name == "Object" || name.starts_with("Object.") || name == "JSONPatch";
                if !self.makes_objects() || !is_object {
                    return self.complain(id, format!("undeclared reference to '{name}' (in container '')"));
                }
                for entry in &object.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        let ty = self.check(&field.value);
                        if object.type_name == "JSONPatch" {
                            self.patch_field(entry.id, &field.field, &ty);
                        }
                    }
                }
                match object.type_name.as_str() {
                    "Object" => Ty::Named("Object"),
                    "JSONPatch" => Ty::Named("JSONPatch"),
                    _ => Ty::Dyn,
                }
            }
            Expr::Select(select) => {
                // A name with a dot: `authorizer.requestResource`.
                if let Some(name) = qualified(expression)
                    && let Some((_, known)) = self.names.iter().find(|(known, _)| *known == name)
                {
                    return known.clone();
                }
                match qualified(expression).as_deref() {
                    Some("google.protobuf.Duration") => return Ty::Type(Box::new(Ty::Duration)),
                    Some("google.protobuf.Timestamp") => return Ty::Type(Box::new(Ty::Timestamp)),
                    _ => {}
                }
                let operand = self.check(&select.operand);
                let field = self.field(id, operand, &select.field, false);
                if select.test { Ty::Bool } else { field }
            }
            Expr::Call(call) => self.call(id, call),
            Expr::Comprehension(all) => self.comprehension(all),
            Expr::Unspecified => Ty::Dyn,
        }
    }

    /// Whether the expression may make objects and patches.
    fn makes_objects(&self) -> bool {
        self.names.iter().any(|(name, _)| name == OBJECTS)
    }

    fn patch_field(&mut self, id: u64, name: &str, ty: &Ty<'a>) {
        let wanted = match name {
            "value" => return,
            "op" | "path" | "from" => Some(Ty::Text),
            _ => None,
        };
        let fits = |found: &mut Found<'a>, wanted: &Ty<'a>| {
            found.accepts(std::slice::from_ref(ty), std::slice::from_ref(wanted))
        };
        if wanted
            .as_ref()
            .is_some_and(|wanted| fits(&mut self.found, wanted))
        {
            return;
        }
        let wanted = wanted.map(|wanted| wanted.to_string()).unwrap_or_default();
        let given = self.found.settled(ty);
        self.complain(
            id,
            format!("expected type of field '{name}' is '{wanted}' but provided type is '{given}'"),
        );
    }

    /// The common type of a list's values.
    fn joined(&mut self, before: Option<Ty<'a>>, ty: Ty<'a>) -> Ty<'a> {
        let Some(before) = before else {
            return ty;
        };
        if self
            .found
            .accepts(std::slice::from_ref(&ty), std::slice::from_ref(&before))
        {
            return if ty == Ty::Dyn || before == Ty::Null {
                ty
            } else {
                before
            };
        }
        Ty::Dyn
    }

    fn name(&mut self, id: u64, name: &str) -> Ty<'a> {
        if let Some((_, known)) = self.names.iter().rev().find(|(known, _)| known == name) {
            return known.clone();
        }
        let of = match name {
            "bool" => Ty::Bool,
            "bytes" => Ty::Bytes,
            "double" => Ty::Double,
            "dyn" | "type" => Ty::Dyn,
            "int" => Ty::Int,
            "list" => Ty::list(Ty::Dyn),
            "map" => Ty::Map(Box::new(Ty::Dyn), Box::new(Ty::Dyn)),
            "null_type" => Ty::Null,
            "string" => Ty::Text,
            "uint" => Ty::Uint,
            word if is_reserved(word) => return self.complain(id, format!("reserved identifier: {name}")),
            _ => return self.complain(id, format!("undeclared reference to '{name}' (in container '')")),
        };
        Ty::Type(Box::new(of))
    }

    fn field(&mut self, id: u64, operand: Ty<'a>, name: &str, optional: bool) -> Ty<'a> {
        let operand = self.found.apply(&operand);
        let (target, is_optional) = match operand {
            Ty::Optional(of) => (*of, true),
            other => (other, optional),
        };
        let ty = match target {
            Ty::Map(_, value) => *value,
            Ty::Object(shape) => match field(shape, name) {
                Some(ty) => ty,
                None => self.complain(id, format!("undefined field '{name}'")),
            },
            Ty::Var(_) => {
                self.found.accepts(&[Ty::Dyn], &[target]);
                Ty::Dyn
            }
            Ty::Named(name) if name.starts_with("kubernetes.") => {
                self.complain(id, format!("unexpected failed resolution of '{name}'"))
            }
            other if other.is_open() => Ty::Dyn,
            other => {
                let what = format!("type '{other}' does not support field selection");
                self.complain(id, what);
                Ty::Dyn
            }
        };
        if is_optional { Ty::optional(ty) } else { ty }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Ty<'a> {
        if let ("_?._", [operand, name]) = (call.func_name.as_str(), call.args.as_slice()) {
            let operand = self.check(operand);
            self.types.insert(name.id, Ty::Text);
            self.overloads.insert(id, vec!["select_optional_field"]);
            let name = match &name.expr {
                Expr::Literal(LiteralValue::String(name)) => name.inner().to_owned(),
                _ => return self.complain(id, "unsupported optional field selection".to_owned()),
            };
            return self.field(id, operand, &name, true);
        }
        let mut args: Vec<Ty<'a>> = call.args.iter().map(|arg| self.check(arg)).collect();
        if matches!(
            call.func_name.as_str(),
            operators::LOGICAL_AND | operators::LOGICAL_OR
        ) {
            for (arg, ty) in call.args.iter().zip(&args) {
                self.expect(arg.id, ty, &Ty::Bool);
            }
            // What is no truth has been said.
            args.fill(Ty::Bool);
        }
        let Some(target) = call.target.as_deref() else {
            return self.resolve(id, &call.func_name, None, args);
        };
        // A library's functions are written like its methods.
        if let Some(library) = qualified(target) {
            let name = format!("{library}.{}", call.func_name);
            if overloads(&name).is_some() && (library != "jsonpatch" || self.makes_objects()) {
                return self.resolve(id, &name, None, args);
            }
        }
        let target = self.check(target);
        self.resolve(id, &call.func_name, Some(target), args)
    }

    fn resolve(&mut self, id: u64, name: &str, target: Option<Ty<'a>>, args: Vec<Ty<'a>>) -> Ty<'a> {
        let Some(known) = overloads(name) else {
            return self.complain(id, format!("undeclared reference to '{name}' (in container '')"));
        };
        let is_method = target.is_some();
        let given: Vec<Ty<'a>> = target.into_iter().chain(args).collect();
        let mut result: Option<Ty<'a>> = None;
        let mut taken = Vec::new();
        for overload in known.iter().filter(|overload| overload.is_method == is_method) {
            let first = self.next + 1;
            self.next += 4;
            let wanted: Vec<Ty<'a>> = overload.args.iter().map(|arg| arg.fresh(first)).collect();
            if !self.found.accepts(&given, &wanted) {
                continue;
            }
            taken.push(overload.id);
            let own = self.found.apply(&overload.result.fresh(first));
            result = Some(match result {
                Some(before) if before == own || before == Ty::Dyn => before,
                Some(_) => Ty::Dyn,
                None => own,
            });
        }
        self.overloads.insert(id, taken);
        if let Some(result) = result {
            return result;
        }
        let shown: Vec<String> = given
            .iter()
            .map(|ty| self.found.settled(ty).to_string())
            .collect();
        let shown = match shown.split_first() {
            Some((target, args)) if is_method => format!("{target}.({})", args.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.complain(
            id,
            format!("found no matching overload for '{name}' applied to '{shown}'"),
        )
    }

    fn comprehension(&mut self, all: &ComprehensionExpr) -> Ty<'a> {
        let range = self.check(&all.iter_range);
        let initial = self.check(&all.accu_init);
        let range = self.found.apply(&range);
        let (first, second) = match range {
            Ty::List(items) if all.iter_var2.is_some() => (Ty::Int, *items),
            Ty::List(items) => (*items, Ty::Dyn),
            Ty::Map(key, value) => (*key, *value),
            Ty::Var(_) => {
                self.found.accepts(&[Ty::Dyn], &[range]);
                (Ty::Dyn, Ty::Dyn)
            }
            other if other.is_open() => (Ty::Dyn, Ty::Dyn),
            other => {
                let what = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.complain(all.iter_range.id, what);
                (Ty::Wrong, Ty::Wrong)
            }
        };
        let depth = self.names.len();
        self.names.push((all.accu_var.clone(), initial.clone()));
        self.names.push((all.iter_var.clone(), first));
        if let Some(name) = &all.iter_var2 {
            self.names.push((name.clone(), second));
        }
        let cond = self.check(&all.loop_cond);
        self.expect(all.loop_cond.id, &cond, &Ty::Bool);
        let step = self.check(&all.loop_step);
        self.expect(all.loop_step.id, &step, &initial);
        self.names.truncate(depth + 1);
        let result = self.check(&all.result);
        self.names.truncate(depth);
        result
    }

    fn expect(&mut self, id: u64, ty: &Ty<'a>, wanted: &Ty<'a>) {
        if !self
            .found
            .accepts(std::slice::from_ref(ty), std::slice::from_ref(wanted))
        {
            let what = format!(
                "expected type '{}' but found '{}'",
                self.found.settled(wanted),
                self.found.settled(ty)
            );
            self.complain(id, what);
        }
    }

    /// Texts that are written out and must be a regular expression, a time or a duration; and lists and maps that are written
    /// out and must hold values of one type, unless (`mixed`) they are to be formatted.
    fn literals(&mut self, expression: &IdedExpr, mixed: bool) {
        let mixed = mixed || matches!(&expression.expr, Expr::Call(call) if call.func_name == "format");
        let mut copy = expression.clone();
        for part in super::objects::parts(&mut copy.expr) {
            self.literals(part, mixed);
        }
        match &expression.expr {
            Expr::List(list) if !mixed => {
                let ids = list.elements.iter().map(|element| element.id);
                self.same(&ids.collect::<Vec<_>>(), &list.optional_indices);
            }
            Expr::Map(map) if !mixed => {
                let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Some((entry.key.id, entry.value.id)),
                    EntryExpr::StructField(_) => None,
                });
                let (keys, values): (Vec<u64>, Vec<u64>) = entries.unzip();
                self.same(&keys, &[]);
                self.same(&values, &[]);
            }
            Expr::Call(call) => {
                self.text_argument(call);
                self.formatted(expression.id, call);
            }
            _ => {}
        }
    }

    /// Complains of the first of several nodes that has not the type of those before it; those at `optional` may be missing.
    fn same(&mut self, ids: &[u64], optional: &[usize]) {
        let own = |(index, id): (usize, &u64)| {
            let ty = self.found.settled(self.types.get(id)?);
            Some(match ty {
                Ty::Optional(of) if optional.contains(&index) => (*id, *of),
                ty => (*id, ty),
            })
        };
        let types: Vec<(u64, Ty<'a>)> = ids.iter().enumerate().filter_map(own).collect();
        let Some((_, first)) = types.first() else {
            return;
        };
        if let Some((id, other)) = types.iter().find(|(_, ty)| ty != first) {
            self.complain(*id, format!("expected type '{first}' but found '{other}'"));
        }
    }

    /// A format that is written out, with its arguments.
    fn formatted(&mut self, id: u64, call: &CallExpr) {
        let (
            "format",
            Some(target),
            [
                IdedExpr {
                    expr: Expr::List(args),
                    ..
                },
            ],
        ) = (
            call.func_name.as_str(),
            call.target.as_deref(),
            call.args.as_slice(),
        )
        else {
            return;
        };
        let Expr::Literal(LiteralValue::String(format)) = &target.expr else {
            return;
        };
        let type_at = |id: u64| self.types.get(&id).map_or(Ty::Dyn, |ty| self.found.settled(ty));
        if let Some((id, what)) = super::format::problem(id, format.inner(), &args.elements, &type_at) {
            self.complain(id, what);
        }
    }

    fn text_argument(&mut self, call: &CallExpr) {
        let Some(IdedExpr {
            id,
            expr: Expr::Literal(LiteralValue::String(text)),
        }) = call.args.last()
        else {
            return;
        };
        let text = text.inner();
        let good = match call.func_name.as_str() {
            "matches" => crate::pattern::problem(text).is_none(),
            "timestamp" => chrono::DateTime::parse_from_rfc3339(text).is_ok(),
            // Only schemas know days and weeks.
            "duration" => !text.contains(['d', 'w']) && super::values::duration(text).is_some(),
            _ => true,
        };
        if !good {
            self.complain(*id, format!("invalid {} argument", call.func_name));
        }
    }
}

/// `a.b` as a name.
fn qualified(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}
