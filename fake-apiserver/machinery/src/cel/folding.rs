//! The real server's computations while it prepares an expression: conversions of literals, and regular
//! expressions. An expression with a failing one is refused.

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::{Scope, evaluate, library};
use crate::pattern;

/// Functions that convert one value.
const CONVERSIONS: [&str; 9] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "uint",
];

/// The first thing in an expression that cannot be computed, and why.
pub(super) fn problem(tree: &IdedExpr) -> Option<String> {
    let mut copy = tree.clone();
    for part in super::objects::parts(&mut copy.expr) {
        if let Some(problem) = problem(part) {
            return Some(problem);
        }
    }
    let Expr::Call(call) = &tree.expr else {
        return None;
    };
    if library::SEARCHES.contains(&call.func_name.as_str())
        && let Some(pattern) = pattern_of(call)
    {
        return pattern::problem(pattern);
    }
    if !is_constant(tree) {
        return None;
    }
    let mut run = tree.clone();
    library::lower(&mut run);
    evaluate(&run, &Scope::new(), &[])
        .err()
        .map(|failure| failure.text)
}

fn pattern_of(call: &CallExpr) -> Option<&str> {
    let at = usize::from(call.target.is_none());
    match &call.args.get(at)?.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// Whether an expression is a conversion of a value that is written out.
fn is_constant(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Call(call) => {
            call.target.is_none()
                && CONVERSIONS.contains(&call.func_name.as_str())
                && matches!(call.args.as_slice(), [arg] if matches!(arg.expr, Expr::Literal(_)) || is_constant(arg))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::Expression;
    use super::*;

    #[rstest]
    #[case("int('x') == 1", Some("type conversion error from 'string' to 'int'"))]
    #[case(
        "string(bool('yes')) == ''",
        Some("type conversion error from 'string' to 'bool'")
    )]
    #[case("uint(-1) == 1u", Some("unsigned integer overflow"))]
    #[case("int(1e20) == 1", Some("integer overflow"))]
    #[case(
        "string(b'\\xff') == ''",
        Some("invalid UTF-8 in bytes, cannot convert to string")
    )]
    #[case("self.find('[') == ''", Some("error parsing regexp: missing closing ]: `[`"))]
    #[case("int('7') == 1 && 1 / 0 == 1 && int(self) == 1", None)]
    fn problems(#[case] expression: &str, #[case] expected: Option<&str>) {
        let read = Expression::read(expression).expect("an expression");
        assert_eq!(problem(&read.tree).as_deref(), expected);
    }
}
