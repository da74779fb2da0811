//! What type an expression has, as far as schemas tell.
//!
//! Not all that the real server finds: it knows the types of every function's arguments, this only where fields are
//! looked up, which names there are, and what comes out.

use kube_cel::cel::common::ast::{Expr, IdedExpr, LiteralValue};

use super::values::escape;
use crate::types::{Kind, Schema};

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Type<'a> {
    /// Not known.
    Any,
    Bool,
    Text,
    /// A number, a time, bytes: nothing that has fields or is an answer.
    Scalar,
    /// An object or a map.
    Described(&'a Schema),
    /// The root of a custom resource, of whose metadata only the names are seen.
    Root(&'a Schema),
    Metadata,
    List(Option<&'a Schema>),
}

/// What is wrong with an expression.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The text that stands at the place.
    pub at: String,
    pub what: String,
}

pub(super) struct Checker<'a> {
    /// Names and their types, the innermost last.
    pub names: Vec<(String, Type<'a>)>,
    pub wrong: Vec<Wrong>,
}

/// The names of types.
const TYPES: [&str; 13] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "google",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "timestamp",
    "type",
];
const LIBRARIES: [&str; 9] = [
    "sets",
    "math",
    "base64",
    "format",
    "jsonpatch",
    "optional",
    "strings",
    "lists",
    "uint",
];
const TESTS: [&str; 33] = [
    "_&&_",
    "_||_",
    "!_",
    "_==_",
    "_!=_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "@in",
    "_in_",
    "startsWith",
    "endsWith",
    "contains",
    "matches",
    "isSorted",
    "isURL",
    "isIP",
    "isCIDR",
    "isQuantity",
    "isSemver",
    "isLessThan",
    "isGreaterThan",
    "containsIP",
    "containsCIDR",
    "isLoopback",
    "isUnspecified",
    "isInteger",
    "hasValue",
    "intersects",
    "equivalent",
    "bool",
    "@not_strictly_false",
];
const TEXTS: [&str; 13] = [
    "string",
    "lowerAscii",
    "upperAscii",
    "replace",
    "substring",
    "trim",
    "join",
    "charAt",
    "getHost",
    "getScheme",
    "getHostname",
    "getPort",
    "getEscapedPath",
];

/// The type of what a schema describes.
pub(super) fn of(schema: &Schema) -> Type<'_> {
    match &schema.kind {
        Kind::Object(_) => Type::Described(schema),
        Kind::Array(array) => Type::List(Some(&array.items)),
        Kind::Boolean => Type::Bool,
        Kind::String
            if schema
                .format
                .as_deref()
                .is_none_or(|format| !matches!(format, "date" | "date-time" | "duration" | "byte")) =>
        {
            Type::Text
        }
        Kind::Any | Kind::IntOrString => Type::Any,
        _ => Type::Scalar,
    }
}

impl<'a> Checker<'a> {
    pub(super) fn check(&mut self, expression: &IdedExpr) -> Type<'a> {
        match &expression.expr {
            Expr::Ident(name) => self.name(name),
            Expr::Literal(LiteralValue::Boolean(_)) => Type::Bool,
            Expr::Literal(LiteralValue::String(_)) => Type::Text,
            Expr::Literal(_) => Type::Scalar,
            Expr::List(list) => {
                for element in &list.elements {
                    self.check(element);
                }
                Type::List(None)
            }
            Expr::Select(select) => {
                let operand = self.operand(&select.operand);
                let field = self.field(operand, &select.field);
                if select.test { Type::Bool } else { field }
            }
            Expr::Call(call) => {
                let target = call.target.as_ref().map(|target| self.operand(target));
                let args: Vec<Type<'a>> = call.args.iter().map(|arg| self.check(arg)).collect();
                self.call(&call.func_name, target, &args)
            }
            Expr::Comprehension(all) => {
                let range = self.check(&all.iter_range);
                let initial = self.check(&all.accu_init);
                let item = match range {
                    Type::List(Some(items)) => of(items),
                    Type::Described(schema) if all.iter_var2.is_none() && is_map(schema) => Type::Text,
                    _ => Type::Any,
                };
                let depth = self.names.len();
                self.names.push((all.accu_var.clone(), initial));
                self.names.push((all.iter_var.clone(), item));
                if let Some(second) = &all.iter_var2 {
                    self.names.push((second.clone(), Type::Any));
                }
                self.check(&all.loop_cond);
                self.check(&all.loop_step);
                let result = self.check(&all.result);
                self.names.truncate(depth);
                result
            }
            _ => Type::Any,
        }
    }

    /// What something is asked of: it may be a library, whose functions are written like its methods.
    fn operand(&mut self, expression: &IdedExpr) -> Type<'a> {
        match &expression.expr {
            Expr::Ident(name) if LIBRARIES.contains(&name.as_str()) => Type::Any,
            _ => self.check(expression),
        }
    }

    fn name(&mut self, name: &str) -> Type<'a> {
        let known = self.names.iter().rev().find(|(known, _)| known == name);
        if let Some((_, known)) = known {
            return *known;
        }
        if !TYPES.contains(&name) && !LIBRARIES.contains(&name) && !name.starts_with('@') {
            self.wrong.push(Wrong {
                at: name.to_owned(),
                what: format!("undeclared reference to '{name}' (in container '')"),
            });
        }
        Type::Any
    }

    fn field(&mut self, operand: Type<'a>, name: &str) -> Type<'a> {
        let schema = match operand {
            Type::Root(_) if name == "metadata" => return Type::Metadata,
            Type::Metadata if matches!(name, "name" | "generateName") => return Type::Text,
            Type::Root(schema) | Type::Described(schema) => Some(schema),
            Type::Metadata => None,
            _ => return Type::Any,
        };
        if let Some(object) = schema.and_then(Schema::as_object) {
            if object.embedded_resource && matches!(name, "apiVersion" | "kind" | "metadata") {
                return Type::Any;
            }
            if let Some(values) = object.additional.as_deref().filter(|_| object.fields.is_empty()) {
                return of(values);
            }
            let known = object.fields.iter().find(|(field, _)| escape(field) == name);
            if let Some((_, field)) = known {
                return of(&field.schema);
            }
            // A field of any kind of an object of which nothing is declared.
            if object.fields.is_empty() && object.preserve_unknown {
                return Type::Any;
            }
        }
        self.wrong.push(Wrong {
            at: format!(".{name}"),
            what: format!("undefined field '{name}'"),
        });
        Type::Any
    }

    fn call(&self, function: &str, target: Option<Type<'a>>, args: &[Type<'a>]) -> Type<'a> {
        if TESTS.contains(&function) {
            return Type::Bool;
        }
        if TEXTS.contains(&function) {
            return Type::Text;
        }
        match (function, target, args) {
            ("_?:_" | "_?_:_", None, [_, first, _]) => *first,
            ("_+_", None, [Type::Text, _] | [_, Type::Text]) => Type::Text,
            ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", None, [Type::Scalar, _]) => Type::Scalar,
            (
                "size" | "int" | "double" | "uint" | "timestamp" | "duration" | "indexOf" | "lastIndexOf",
                ..,
            ) => Type::Scalar,
            ("_[_]", None, [Type::List(Some(items)), _]) => of(items),
            ("_[_]", None, [Type::Described(schema), _]) => schema
                .as_object()
                .and_then(|object| object.additional.as_deref())
                .map_or(Type::Any, of),
            _ => Type::Any,
        }
    }
}

fn is_map(schema: &Schema) -> bool {
    schema
        .as_object()
        .is_some_and(|object| object.fields.is_empty() && object.additional.is_some())
}

impl Wrong {
    /// The complaint as the real server prints it, with the place in the expression.
    pub(super) fn text(&self, expression: &str) -> String {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let found = expression.match_indices(self.at.as_str()).find(|(at, found)| {
            let before = expression.get(..*at).and_then(|text| text.chars().next_back());
            let after = expression
                .get(at + found.len()..)
                .and_then(|text| text.chars().next());
            !after.is_some_and(is_word)
                && (found.starts_with('.') || !before.is_some_and(|c| is_word(c) || c == '.'))
        });
        let at = found.map_or(0, |(at, _)| at);
        let before = expression.get(..at).unwrap_or_default();
        let line = before.matches('\n').count();
        let column = before.chars().rev().take_while(|c| *c != '\n').count();
        let shown = expression.lines().nth(line).unwrap_or_default();
        let dots = ".".repeat(column);
        format!(
            "ERROR: <input>:{}:{}: {}\n | {shown}\n | {dots}^",
            line + 1,
            column + 1,
            self.what
        )
    }
}
