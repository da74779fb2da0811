//! Expressions in CEL, as Kubernetes extends it.
//!
//! [`Expression`] is one that was read; [`Scope`] holds the functions it may call. [`values`] turns JSON into values of
//! CEL by the schema that describes it; [`rules`] are those of custom resources, [`check`] finds errors in them.
//!
//! The cost of a rule is estimated ([`cost`]) when it is written, and counted ([`spending`]) when it is evaluated.

pub mod check;
mod cost;
mod depth;
mod failures;
mod field_path;
mod folding;
mod format;
mod functions;
mod library;
mod lists;
mod literals;
mod macros;
mod objects;
mod parser_gaps;
pub mod policies;
mod readable;
pub mod rules;
mod sizes;
pub mod spending;
mod ty;
pub mod type_check;
mod types;
mod urls;
pub mod values;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, Value};

use depth::{Depth, deep};
use spending::{Budget, Overrun};
use ty::Ty;
use types::Wrong;

use crate::types::Schema;

/// The parser's own limit of brackets, above the one of [`depth`].
const PARSER_DEPTH_MAX: u16 = 500;

/// An expression that was read.
#[derive(Debug)]
pub struct Expression {
    tree: IdedExpr,
    /// The expression to evaluate, where it differs: objects are maps, loops over two variables are over one.
    run: Option<IdedExpr>,
}

/// Why an expression has no value.
#[derive(Debug)]
pub struct Failure {
    /// The real server's message.
    pub text: String,
    /// The limit of costs that it has reached, if that is the cause.
    pub overrun: Option<Overrun>,
}

/// The real server's message for an expression that costs too much.
pub const CALL_OVERRUN: &str = "operation cancelled: actual cost limit exceeded";
/// The same for expressions that cost too much together.
pub const BUDGET_OVERRUN: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// All that expressions may call, to be shared by many of them.
pub struct Scope {
    root: Context<'static>,
}

impl Scope {
    /// The functions that every expression may call.
    #[must_use]
    pub fn new() -> Self {
        let mut root = Context::default().with_all();
        library::add(&mut root);
        format::add(&mut root);
        readable::add(&mut root);
        urls::add(&mut root);
        lists::add(&mut root);
        Self { root }
    }

    /// Where more functions are added.
    pub fn functions(&mut self) -> &mut Context<'static> {
        &mut self.root
    }
}

impl Default for Scope {
    fn default() -> Self {
        Self::new()
    }
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// The syntax errors, as the real server prints them.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut tree = parse(text)?;
        deep(|| {
            if let Some(error) = parser_gaps::problem(text, &mut tree) {
                return Err(error);
            }
            macros::expand(&mut tree);
            let mut run = tree.clone();
            let changed = macros::to_one_variable(&mut run) | library::lower(&mut run);
            Ok(Self {
                tree,
                run: changed.then_some(run),
            })
        })
    }

    /// Reads an expression that may make objects (`Object{…}`, `Object.spec{…}`, `JSONPatch{…}`), which are maps here.
    ///
    /// # Errors
    /// The syntax errors, as the real server prints them.
    pub fn read_with_objects(text: &str) -> Result<Self, String> {
        let mut read = Self::read(text)?;
        let mut run = read.run.take().unwrap_or_else(|| read.tree.clone());
        if objects::to_maps(&mut run) || run != read.tree {
            read.run = Some(run);
        }
        Ok(read)
    }

    /// Whether the expression looks at a variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.tree.references().has_variable(variable)
    }

    /// The value of the expression.
    pub fn value(&self, scope: &Scope, variables: &[(&str, Value)]) -> Result<Value, Failure> {
        evaluate(self.run.as_ref().unwrap_or(&self.tree), scope, variables)
    }

    /// The value of the expression, if it costs no more than it may.
    pub fn value_within(
        &self,
        scope: &Scope,
        variables: &[(&str, Value)],
        budget: &mut Budget,
    ) -> Result<Value, Failure> {
        let tree = self.run.as_ref().unwrap_or(&self.tree);
        let context = with_variables(scope, variables);
        deep(|| budget.take(tree, &context, variables)).map_err(|overrun| Failure {
            text: match overrun {
                Overrun::Call => CALL_OVERRUN.to_owned(),
                Overrun::Budget => BUDGET_OVERRUN.to_owned(),
            },
            overrun: Some(overrun),
        })?;
        evaluate_in(tree, &context)
    }

    /// The expression as it is evaluated for values of a schema.
    fn lowered(mut self, schema: &Schema) -> Self {
        let tree = self.run.as_ref().unwrap_or(&self.tree);
        if let Some(lowered) = deep(|| lists::lower(tree, &[("self", schema), ("oldSelf", schema)])) {
            self.run = Some(lowered);
        }
        self
    }
}

fn evaluate(tree: &IdedExpr, scope: &Scope, variables: &[(&str, Value)]) -> Result<Value, Failure> {
    evaluate_in(tree, &with_variables(scope, variables))
}

fn with_variables<'a>(scope: &'a Scope, variables: &[(&str, Value)]) -> Context<'a> {
    let mut context = scope.root.new_inner_scope();
    for (name, value) in variables {
        context.add_variable_from_value(*name, value.clone());
    }
    context
}

fn evaluate_in(tree: &IdedExpr, context: &Context<'_>) -> Result<Value, Failure> {
    let value = deep(|| Value::resolve(tree, context));
    value.map_err(|error| Failure {
        text: failures::describe(&error),
        overrun: None,
    })
}

fn parse(text: &str) -> Result<IdedExpr, String> {
    let depth = Depth::of(text)?;
    let masked = literals::mask(text);
    let parsed = depth.parsing(|| parser().parse(masked.as_deref().unwrap_or(text)));
    let mut tree = parsed.map_err(|error| {
        if text.is_empty() {
            // Nothing has no place.
            return error.to_string().replace("<input>:1:1:", "<input>:1:0:");
        }
        let error = literals::unmasked(&error.to_string());
        // The lines that show the place stand one blank further in where the real server prints them.
        parser_gaps::of_macros(text, &error.replace("\n|", "\n |"))
    })?;
    if masked.is_some() {
        deep(|| literals::unmask(&mut tree));
    }
    Ok(tree)
}

fn parser() -> Parser {
    Parser::new()
        .enable_optional_syntax(true)
        .max_recursion_depth(PARSER_DEPTH_MAX)
}

/// Where the nodes of an expression stand, by their ids: line and column, from 1.
///
/// The parser gives places only in its errors; so it gets the same text with an illegal character behind it.
fn places(text: &str) -> impl Fn(u64) -> (usize, usize) {
    let masked = literals::mask(text);
    let unreadable = format!("{}\n\u{1}", masked.as_deref().unwrap_or(text));
    let depth = Depth::of(text).unwrap_or_default();
    let errors = depth.parsing(|| parser().parse(&unreadable).err());
    let info = errors.and_then(|errors| errors.errors.into_iter().find_map(|error| error.source_info));
    let text = text.to_owned();
    move |id| {
        let offset = info
            .as_ref()
            .and_then(|info| info.offset_for(id))
            .map_or(0, |(start, _)| start as usize);
        let before: String = text.chars().take(offset).collect();
        let column = before.chars().rev().take_while(|c| *c != '\n').count();
        (before.matches('\n').count() + 1, column + 1)
    }
}

/// The errors in an expression, as the real server prints them: with the places, in their order.
fn complaints(text: &str, wrong: &[Wrong]) -> String {
    let place = places(text);
    let mut all: Vec<((usize, usize), &str)> = wrong
        .iter()
        .map(|wrong| (place(wrong.id), wrong.what.as_str()))
        .collect();
    all.sort_by_key(|(at, _)| *at);
    let shown = all.into_iter().map(|(at, what)| complaint(text, at, what));
    shown.collect::<Vec<_>>().join("\n")
}

fn complaint(text: &str, (line, column): (usize, usize), what: &str) -> String {
    let source = text.lines().nth(line - 1).unwrap_or_default().replace('\t', " ");
    let dots = ".".repeat(column - 1);
    format!("ERROR: <input>:{line}:{column}: {what}\n | {source}\n | {dots}^")
}

/// Whether a text is a version of three numbers, as `semver` reads it.
pub fn is_version(text: &str) -> bool {
    readable::version_problem(text).is_none()
}

/// Reads an expression; the error is the real server's.
pub fn compile(expression: &str) -> Result<Expression, String> {
    Expression::read(expression).map_err(|error| format!("compilation failed: {error}"))
}

/// The errors in an expression that chooses devices.
pub fn device_selector(text: &str) -> Result<(), String> {
    let expression = Expression::read(text).map_err(|error| format!("compilation failed: {error}"))?;
    let checked = deep(|| types::check(&expression.tree, vec![("device".to_owned(), Ty::Dyn)]));
    // What the fields of a device are is not known here; which names there are is.
    let is_name = |wrong: &Wrong| {
        wrong.what.starts_with("undeclared reference to") && !wrong.what.contains("'includes'")
    };
    if !checked.wrong.is_empty() && checked.wrong.iter().all(is_name) {
        return Err(format!(
            "compilation failed: {}",
            complaints(text, &checked.wrong)
        ));
    }
    if checked.wrong.is_empty() && !matches!(checked.result, Ty::Bool | Ty::Dyn) {
        return Err(format!(
            "must evaluate to bool or the unknown type, not {}",
            checked.result
        ));
    }
    Ok(())
}
