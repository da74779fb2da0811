//! The additions of JMESPath Community to JMESPath's grammar: variables, `let`, and arithmetic.
//!
//! An expression with these is written anew with calls of functions for them, which any JMESPath engine with such functions
//! evaluates: `a + b * c` becomes `plus(a, times(b, c))`. Everything else stays as it is. How tightly operators bind is taken
//! from `github.com/jmespath-community/go-jmespath`, which Chainsaw uses.

use std::fmt::Write as _;

/// Functions that stand for operators of two numbers, and their signs.
pub(super) const OF_TWO: [(&str, &[&str]); 6] = [
    ("operator_plus", &["+"]),
    ("operator_minus", &["-", "\u{2212}"]),
    ("operator_times", &["*", "\u{d7}"]),
    ("operator_divide", &["/", "\u{f7}"]),
    ("operator_divide_whole", &["//"]),
    ("operator_rest", &["%"]),
];
/// The function that turns a number's sign.
pub(super) const NEGATIVE: &str = "operator_negative";
/// The function that evaluates an expression with more variables: the expression, its input, names and values.
pub(super) const LET: &str = "operator_let";
/// The function that gives the value of a variable that [`LET`] binds.
pub(super) const VARIABLE: &str = "operator_variable";

/// Signs of more than one character, the longer first.
const LONG_SIGNS: [&str; 9] = ["[?", "[]", "||", "&&", "==", "!=", "<=", ">=", "//"];
/// How deep an expression may be; every level takes some of the stack, here and where it is evaluated.
const DEPTH_MAX: usize = 64;
/// Operators that bind less than arithmetic: they are left as they are.
const LOOSE: [&str; 9] = ["|", "||", "&&", "==", "!=", "<=", ">=", "<", ">"];
const SUMS: [&str; 3] = ["+", "-", "\u{2212}"];
const PRODUCTS: [&str; 6] = ["*", "\u{d7}", "/", "\u{f7}", "//", "%"];

/// Rewrites an expression. `known` gives the value of a variable from outside the expression, as JSON.
///
/// # Errors
/// A missing part and its place, and the error of `known`.
pub(super) fn rewrite(
    expression: &str,
    known: &dyn Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut reader = Reader {
        tokens: tokens(expression),
        at: 0,
        depth: 0,
        bound: Vec::new(),
        known,
    };
    let text = reader.expression()?;
    match reader.peek() {
        "" => Ok(text),
        more => Err(format!("{more:?} is not expected after {text}")),
    }
}

/// The words, signs and quoted texts of an expression.
fn tokens(expression: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match first {
            '\'' | '"' | '`' => quoted(rest, first),
            '$' => 1 + rest[1..].find(|c| !is_word(c)).unwrap_or(rest.len() - 1),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => LONG_SIGNS
                .iter()
                .find(|sign| rest.starts_with(**sign))
                .map_or(c.len_utf8(), |sign| sign.len()),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// How long the quoted text is with which `text` begins.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

struct Reader<'e> {
    tokens: Vec<&'e str>,
    at: usize,
    /// How many operands the present one is within.
    depth: usize,
    /// Variables of the expression itself.
    bound: Vec<&'e str>,
    known: &'e dyn Fn(&str) -> Result<String, String>,
}

impl<'e> Reader<'e> {
    /// The next token; empty at the end.
    fn peek(&self) -> &'e str {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    fn next(&mut self) -> &'e str {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn take(&mut self, of: &[&str]) -> Option<&'e str> {
        of.contains(&self.peek()).then(|| self.next())
    }

    fn need(&mut self, token: &str) -> Result<(), String> {
        match self.next() {
            found if found == token => Ok(()),
            "" => Err(format!("{token:?} is missing at the end")),
            found => Err(format!("{token:?} is missing before {found:?}")),
        }
    }

    fn expression(&mut self) -> Result<String, String> {
        let mut text = self.binary(&SUMS)?;
        while let Some(sign) = self.take(&LOOSE) {
            let right = self.binary(&SUMS)?;
            _ = write!(text, " {sign} {right}");
        }
        Ok(text)
    }

    /// Operands between signs that bind alike, from left to right.
    fn binary(&mut self, signs: &[&str]) -> Result<String, String> {
        let operand = |reader: &mut Self| match signs == SUMS {
            true => reader.binary(&PRODUCTS),
            false => reader.operand(),
        };
        let mut text = operand(self)?;
        while let Some(sign) = self.take(signs) {
            let right = operand(self)?;
            let function = OF_TWO.iter().find(|(_, signs)| signs.contains(&sign));
            let (function, _) = function.ok_or_else(|| format!("{sign:?} is no operator"))?;
            text = format!("{function}({text}, {right})");
        }
        Ok(text)
    }

    /// A value with its selections, and signs before it.
    fn operand(&mut self) -> Result<String, String> {
        if self.depth == DEPTH_MAX {
            return Err(format!("an expression may be {DEPTH_MAX} levels deep"));
        }
        self.depth += 1;
        let operand = self.signed();
        self.depth -= 1;
        operand
    }

    fn signed(&mut self) -> Result<String, String> {
        match self.peek() {
            sign @ ("!" | "+") => {
                self.next();
                let operand = self.operand()?;
                Ok(format!("{}{operand}", sign.trim_start_matches('+')))
            }
            "-" | "\u{2212}" => {
                self.next();
                let operand = self.operand()?;
                Ok(format!("{NEGATIVE}({operand})"))
            }
            "&" => {
                self.next();
                let expression = self.expression()?;
                Ok(format!("&({expression})"))
            }
            "let"
                if self
                    .tokens
                    .get(self.at + 1)
                    .is_some_and(|next| next.starts_with('$')) =>
            {
                self.binding()
            }
            _ => {
                let first = self.value()?;
                self.selected(first)
            }
        }
    }

    /// A name, a literal, or an expression in brackets.
    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            "(" => {
                self.next();
                let within = self.expression()?;
                self.need(")")?;
                Ok(format!("({within})"))
            }
            "[" | "[?" | "[]" => self.bracket(),
            "{" => self.fields(),
            "" => Err("the expression ends too early".to_owned()),
            token if token.starts_with('$') => {
                self.next();
                self.variable(token.trim_start_matches('$'))
            }
            token => {
                self.next();
                Ok(token.to_owned())
            }
        }
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        if self.bound.contains(&name) {
            return Ok(format!("{VARIABLE}('{name}')"));
        }
        let value = (self.known)(name)?;
        Ok(format!("`{}`", value.replace('`', "\\`")))
    }

    /// The selections after a value: fields, elements, arguments.
    fn selected(&mut self, first: String) -> Result<String, String> {
        let mut text = first;
        loop {
            match self.peek() {
                "." => {
                    self.next();
                    let part = self.value()?;
                    _ = write!(text, ".{part}");
                }
                "[" | "[?" | "[]" => text.push_str(&self.bracket()?),
                "(" => {
                    self.next();
                    let arguments = self.list(")")?;
                    _ = write!(text, "({arguments})");
                }
                _ => return Ok(text),
            }
        }
    }

    /// An index, a slice, a projection, a filter, or a list of expressions.
    fn bracket(&mut self) -> Result<String, String> {
        let is_plain = |token: &str| matches!(token, "*" | "-" | ":") || token.parse::<u32>().is_ok();
        match self.next() {
            "[]" => Ok("[]".to_owned()),
            "[?" => {
                let condition = self.expression()?;
                self.need("]")?;
                Ok(format!("[?{condition}]"))
            }
            _ => {
                let rest = self.tokens.get(self.at..).unwrap_or_default();
                let plain: Vec<&str> = rest.iter().copied().take_while(|token| is_plain(token)).collect();
                if !plain.is_empty() && rest.get(plain.len()) == Some(&"]") {
                    self.at += plain.len() + 1;
                    return Ok(format!("[{}]", plain.concat()));
                }
                let items = self.list("]")?;
                Ok(format!("[{items}]"))
            }
        }
    }

    /// Expressions up to the end.
    fn list(&mut self, end: &str) -> Result<String, String> {
        let mut items = Vec::new();
        while self.peek() != end {
            items.push(self.expression()?);
            if self.take(&[","]).is_none() {
                break;
            }
        }
        self.need(end)?;
        Ok(items.join(", "))
    }

    fn fields(&mut self) -> Result<String, String> {
        self.need("{")?;
        let mut fields = Vec::new();
        loop {
            let name = self.next();
            self.need(":")?;
            let value = self.expression()?;
            fields.push(format!("{name}: {value}"));
            if self.take(&[","]).is_none() {
                break;
            }
        }
        self.need("}")?;
        Ok(format!("{{{}}}", fields.join(", ")))
    }

    /// `let $a = …, $b = … in …`: the values do not see each other.
    fn binding(&mut self) -> Result<String, String> {
        self.need("let")?;
        let (mut names, mut values) = (Vec::new(), String::new());
        loop {
            let name = self.next();
            let name = name
                .strip_prefix('$')
                .ok_or_else(|| format!("{name:?} is no variable"))?;
            self.need("=")?;
            let value = self.expression()?;
            _ = write!(values, ", '{name}', {value}");
            names.push(name);
            if self.take(&[","]).is_none() {
                break;
            }
        }
        self.need("in")?;
        let before = self.bound.len();
        self.bound.extend(names);
        let body = self.expression();
        self.bound.truncate(before);
        Ok(format!("{LET}(&({}), @{values})", body?))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a.b[0].\"c d\"[*].e", "a.b[0].\"c d\"[*].e")]
    #[case("a[?b == 'x - y'] | [0]", "a[?b == 'x - y'] | [0]")]
    #[case("a[-1]", "a[-1]")]
    #[case("a[1:-1:2].b", "a[1:-1:2].b")]
    #[case("*.a[]", "*.a[]")]
    #[case("a.*", "a.*")]
    #[case("{a: b, c: [d, e]}", "{a: b, c: [d, e]}")]
    #[case("a || !b && c", "a || !b && c")]
    #[case("length(a) > `2`", "length(a) > `2`")]
    #[case("a + b", "operator_plus(a, b)")]
    #[case("a - b - c", "operator_minus(operator_minus(a, b), c)")]
    #[case("a + b * c", "operator_plus(a, operator_times(b, c))")]
    #[case("(a + b) * c", "operator_times((operator_plus(a, b)), c)")]
    #[case("a // b % c", "operator_rest(operator_divide_whole(a, b), c)")]
    #[case("a / b == c - `1`", "operator_divide(a, b) == operator_minus(c, `1`)")]
    #[case("-a + b", "operator_plus(operator_negative(a), b)")]
    #[case("a[?b > c + `1`].d", "a[?b > operator_plus(c, `1`)].d")]
    #[case("sum(map(&(a * b), c))", "sum(map(&((operator_times(a, b))), c))")]
    #[case("{n: a + b}", "{n: operator_plus(a, b)}")]
    #[case("$x + `1`", "operator_plus(`[1,2]`, `1`)")]
    #[case("$x[0]", "`[1,2]`[0]")]
    #[case("'$x `'", "'$x `'")]
    #[case("let $a = b in $a.c", "operator_let(&(operator_variable('a').c), @, 'a', b)")]
    #[case(
        "let $a = $x, $b = c in [$a, $b]",
        "operator_let(&([operator_variable('a'), operator_variable('b')]), @, 'a', `[1,2]`, 'b', c)"
    )]
    #[case("let.b", "let.b")]
    fn expressions(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(rewrite(expression, &known), Ok(expected.to_owned()));
    }

    #[rstest]
    #[case("a +", "the expression ends too early")]
    #[case("a[b", "\"]\" is missing at the end")]
    #[case("(a b)", "\")\" is missing before \"b\"")]
    #[case("a b", "\"b\" is not expected after a")]
    #[case("let $a b in c", "\"=\" is missing before \"b\"")]
    #[case("let $a = b", "\"in\" is missing at the end")]
    #[case("$y", "the variable $y is not defined")]
    #[case("[let $a = b in $a, $a]", "the variable $a is not defined")]
    fn what_is_none(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(rewrite(expression, &known), Err(expected.to_owned()));
    }

    #[rstest]
    #[case("(", "a", ")")]
    #[case("[", "a", "]")]
    #[case("!", "a", "")]
    #[case("-", "a", "")]
    #[case("a[?", "b", "]")]
    #[case("{a: ", "b", "}")]
    fn depth_has_an_end(#[case] open: &str, #[case] within: &str, #[case] close: &str) {
        let nested = |levels: usize| format!("{}{within}{}", open.repeat(levels), close.repeat(levels));
        assert!(rewrite(&nested(DEPTH_MAX - 1), &known).is_ok());
        let deep = rewrite(&nested(100_000), &known);
        assert_eq!(deep, Err("an expression may be 64 levels deep".to_owned()));
    }

    fn known(name: &str) -> Result<String, String> {
        match name {
            "x" => Ok("[1,2]".to_owned()),
            _ => Err(format!("the variable ${name} is not defined")),
        }
    }
}
