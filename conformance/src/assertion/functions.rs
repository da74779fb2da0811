//! What Chainsaw adds to JMESPath's functions, as far as it is needed without scripts.

use jmespath::functions::{ArgumentType, CustomFunction, Signature};
use jmespath::{Context, ErrorReason, JmespathError, Rcvar, Runtime, Variable};

type Implementation = Box<dyn Fn(&[Rcvar], &mut Context<'_>) -> Result<Rcvar, JmespathError> + Sync + Send>;

fn text(args: &[Rcvar], index: usize, context: &Context<'_>) -> Result<String, JmespathError> {
    args.get(index)
        .and_then(|arg| arg.as_string().cloned())
        .ok_or_else(|| fail(context, "expected a string"))
}

fn fail(context: &Context<'_>, why: &str) -> JmespathError {
    JmespathError::new(
        context.expression,
        context.offset,
        ErrorReason::Parse(why.to_owned()),
    )
}

fn string_list(parts: impl Iterator<Item = String>) -> Rcvar {
    Rcvar::new(Variable::Array(
        parts.map(|part| Rcvar::new(Variable::String(part))).collect(),
    ))
}

/// Adds the functions to a runtime.
pub(super) fn register(runtime: &mut Runtime) {
    use ArgumentType::{Number, String as Text};
    let mut add = |name: &str, types: Vec<ArgumentType>, run: Implementation| {
        runtime.register_function(
            name,
            Box::new(CustomFunction::new(Signature::new(types, None), run)),
        );
    };
    add(
        "split",
        vec![Text, Text],
        Box::new(|args, context| {
            let (whole, separator) = (text(args, 0, context)?, text(args, 1, context)?);
            Ok(string_list(whole.split(&separator).map(str::to_owned)))
        }),
    );
    add(
        "trim",
        vec![Text, Text],
        Box::new(|args, context| {
            let (whole, set) = (text(args, 0, context)?, text(args, 1, context)?);
            let trimmed = whole.trim_matches(|c| set.contains(c)).to_owned();
            Ok(Rcvar::new(Variable::String(trimmed)))
        }),
    );
    add(
        "to_upper",
        vec![Text],
        Box::new(|args, context| {
            Ok(Rcvar::new(Variable::String(
                text(args, 0, context)?.to_uppercase(),
            )))
        }),
    );
    add(
        "to_lower",
        vec![Text],
        Box::new(|args, context| {
            Ok(Rcvar::new(Variable::String(
                text(args, 0, context)?.to_lowercase(),
            )))
        }),
    );
    add(
        "replace_all",
        vec![Text, Text, Text],
        Box::new(|args, context| {
            let (whole, from, to) = (
                text(args, 0, context)?,
                text(args, 1, context)?,
                text(args, 2, context)?,
            );
            Ok(Rcvar::new(Variable::String(whole.replace(&from, &to))))
        }),
    );
    add(
        "truncate",
        vec![Text, Number],
        Box::new(|args, context| {
            let whole = text(args, 0, context)?;
            let length = args
                .get(1)
                .and_then(|arg| arg.as_number())
                .unwrap_or_default()
                .max(0.0) as usize;
            Ok(Rcvar::new(Variable::String(whole.chars().take(length).collect())))
        }),
    );
}
