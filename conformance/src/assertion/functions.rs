//! What Chainsaw adds to JMESPath's functions, as far as it is needed without scripts.

use jmespath::functions::{ArgumentType, CustomFunction, Signature};
use jmespath::{Context, ErrorReason, JmespathError, Rcvar, Runtime, Variable};

type Implementation = Box<dyn Fn(&[Rcvar], &mut Context<'_>) -> Result<Rcvar, JmespathError> + Sync + Send>;

/// Functions of texts.
type OfOne = fn(&str) -> String;
type OfTwo = fn(&str, &str) -> String;
type Question = fn(&str, &str) -> bool;

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
    let of_one: [(&str, OfOne); 5] = [
        ("to_upper", str::to_uppercase),
        ("to_lower", str::to_lowercase),
        ("upper", str::to_uppercase),
        ("lower", str::to_lowercase),
        ("trim_space", |whole| whole.trim().to_owned()),
    ];
    for (name, run) in of_one {
        add(
            name,
            vec![Text],
            Box::new(move |args, context| Ok(Rcvar::new(Variable::String(run(&text(args, 0, context)?))))),
        );
    }
    let of_two: [(&str, OfTwo); 4] = [
        ("concat", |one, other| format!("{one}{other}")),
        ("trim_left", |whole, set| {
            whole.trim_start_matches(|c| set.contains(c)).to_owned()
        }),
        ("trim_right", |whole, set| {
            whole.trim_end_matches(|c| set.contains(c)).to_owned()
        }),
        ("trim_prefix", |whole, prefix| {
            whole.strip_prefix(prefix).unwrap_or(whole).to_owned()
        }),
    ];
    for (name, run) in of_two {
        add(
            name,
            vec![Text, Text],
            Box::new(move |args, context| {
                let (one, other) = (text(args, 0, context)?, text(args, 1, context)?);
                Ok(Rcvar::new(Variable::String(run(&one, &other))))
            }),
        );
    }
    let questions: [(&str, Question); 2] = [
        ("equal_fold", |one, other| {
            one.to_lowercase() == other.to_lowercase()
        }),
        ("wildcard", |pattern, whole| {
            crate::suite::matches_glob(pattern, whole)
        }),
    ];
    for (name, run) in questions {
        add(
            name,
            vec![Text, Text],
            Box::new(move |args, context| {
                let (one, other) = (text(args, 0, context)?, text(args, 1, context)?);
                Ok(Rcvar::new(Variable::Bool(run(&one, &other))))
            }),
        );
    }
    add(
        "json_parse",
        vec![Text],
        Box::new(|args, context| {
            let whole = text(args, 0, context)?;
            Variable::from_json(&whole)
                .map(Rcvar::new)
                .map_err(|why| fail(context, &why))
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
