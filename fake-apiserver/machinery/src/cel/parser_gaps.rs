//! Words that the parser takes and the real server does not.

use kube_cel::cel::common::ast::{Expr, IdedExpr};

use super::objects::parts;
use super::{complaint, places, values};

/// Macros that name their variable otherwise than others when it is none.
const MAPPING: [&str; 2] = [".map(", ".filter("];

/// Finds calls of reserved words, fields in backquotes, and sorts of values that are no lists.
pub(super) fn problem(text: &str, tree: &mut IdedExpr) -> Option<String> {
    let (id, found) = find(tree)?;
    let (line, column) = places(text)(id);
    let (column, said) = match found {
        // Of a call the place is its parenthesis; of a field the dot before it.
        Found::Reserved(word) => (
            column - word.chars().count().min(column - 1),
            format!("reserved identifier: {word}"),
        ),
        Found::Quoted => (column + 1, "unsupported syntax: '`'".to_owned()),
        Found::Unsortable => (column, UNSORTABLE.to_owned()),
    };
    Some(complaint(text, (line, column), &said))
}

const UNSORTABLE: &str =
    "sortBy can only be applied to a list, identifier, comprehension, call or select expression";

enum Found {
    Reserved(String),
    Quoted,
    Unsortable,
}

fn find(tree: &mut IdedExpr) -> Option<(u64, Found)> {
    let id = tree.id;
    match &tree.expr {
        Expr::Call(call) if call.target.is_none() && values::is_reserved(&call.func_name) => {
            return Some((id, Found::Reserved(call.func_name.clone())));
        }
        Expr::Call(call) if call.func_name == "sortBy" && call.args.len() == 2 => {
            if let Some(target) = &call.target
                && matches!(target.expr, Expr::Literal(_) | Expr::Map(_) | Expr::Struct(_))
            {
                return Some((target.id, Found::Unsortable));
            }
        }
        Expr::Select(select) if select.field.starts_with('`') => return Some((id, Found::Quoted)),
        _ => {}
    }
    parts(&mut tree.expr).into_iter().find_map(find)
}

/// The parser's error, with the real server's wording for macros whose variable is no name.
pub(super) fn of_macros(text: &str, error: &str) -> String {
    let common = "argument must be a simple name";
    let Some(place) = error.find(common) else {
        return error.to_owned();
    };
    // `ERROR: <input>:1:12: ` stands before it.
    let column = error.get(..place).and_then(|before| {
        before
            .trim_end()
            .trim_end_matches(':')
            .rsplit(':')
            .next()?
            .parse::<usize>()
            .ok()
    });
    let before: String = text.chars().take(column.unwrap_or(1) - 1).collect();
    if MAPPING.iter().any(|name| before.trim_end().ends_with(name)) {
        return error.replacen(common, "argument is not an identifier", 1);
    }
    error.to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::Expression;

    #[rstest]
    #[case("self.l.map(1, x)", "ERROR: <input>:1:12: argument is not an identifier")]
    #[case("self.l.all(1, x)", "ERROR: <input>:1:12: argument must be a simple name")]
    #[case("self.`s` == 'x'", "ERROR: <input>:1:6: unsupported syntax: '`'")]
    #[case("if(true)", "ERROR: <input>:1:1: reserved identifier: if")]
    #[case("true && ", "ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>'")]
    fn said(#[case] text: &str, #[case] expected: &str) {
        let error = Expression::read(text).expect_err("no expression");
        assert!(error.starts_with(expected), "{error}");
    }
}
