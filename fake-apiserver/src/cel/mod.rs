//! Expressions in CEL, as Kubernetes extends it.
//!
//! [`Expression`] is one that was read; [`Scope`] holds the functions it may call. [`values`] turns JSON into values of
//! CEL by the schema that describes it; [`rules`] are those of custom resources, [`check`] what is wrong with them.
//!
//! What an expression costs is not counted: the real server refuses what would take it too long.

pub(crate) mod check;
mod field_path;
mod objects;
pub(crate) mod rules;
mod types;
pub(crate) mod values;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::{Context, ExecutionError, Program, Value};

/// An expression that was read.
#[derive(Debug)]
pub(crate) struct Expression {
    program: Program,
    /// The expression with its objects made maps, where it has any.
    rewritten: Option<IdedExpr>,
}

/// Why an expression has no value.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What the real server would say.
    pub text: String,
}

/// All that expressions may call, to be shared by many of them.
pub(crate) struct Scope {
    root: Context<'static>,
}

impl Scope {
    pub(crate) fn new() -> Self {
        Self {
            root: Context::default().with_all(),
        }
    }
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with its syntax, as the real server prints it.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let program = Program::compile(text).map_err(|error| {
            // The lines that show the place stand one blank further in where the real server prints them.
            error.to_string().replace("\n|", "\n |")
        })?;
        Ok(Self {
            program,
            rewritten: None,
        })
    }

    /// Reads an expression that may make objects (`Object{…}`, `Object.spec{…}`, `JSONPatch{…}`), which are maps here.
    ///
    /// # Errors
    /// What is wrong with its syntax, as the real server prints it.
    pub(crate) fn read_with_objects(text: &str) -> Result<Self, String> {
        let mut read = Self::read(text)?;
        let mut rewritten = read.program.expression().clone();
        if objects::to_maps(&mut rewritten) {
            read.rewritten = Some(rewritten);
        }
        Ok(read)
    }

    /// Whether the expression looks at a variable.
    pub(crate) fn uses(&self, variable: &str) -> bool {
        self.program.references().has_variable(variable)
    }

    /// The value of the expression.
    pub(crate) fn value(&self, scope: &Scope, variables: &[(&str, Value)]) -> Result<Value, Failure> {
        let mut context = scope.root.new_inner_scope();
        for (name, value) in variables {
            context.add_variable_from_value(*name, value.clone());
        }
        let value = match &self.rewritten {
            Some(expression) => Value::resolve(expression, &context),
            None => self.program.execute(&context),
        };
        value.map_err(|error| Failure {
            text: describe(&error),
        })
    }
}

/// Reads an expression; the error says what is wrong with it.
pub(crate) fn compile(expression: &str) -> Result<Expression, String> {
    Expression::read(expression).map_err(|error| format!("compilation failed: {error}"))
}

/// The real server's words for what went wrong.
fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(Value::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..) => "no such overload".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("no such attribute(s): {name}"),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}
