//! Limits on the depth of expressions, and the stack that they take.
//!
//! The real parser counts how often each rule of its grammar is entered within itself, and gives up at 250: brackets within brackets,
//! the branches of a condition, and chains of operators, of comparisons and of fields, whose rules are left-recursive. Here that is
//! counted before anything is parsed, since a parser that finds out on its way has taken the stack by then.

/// The deepest nesting of any rule, as in cel-go.
const DEPTH_MAX: usize = 250;
/// The longest expression in characters, as in cel-go.
const LENGTH_MAX: usize = 100_000;

/// The free stack that a walk through expressions needs, and the size of the new stack where there is less.
const STACK_LEFT: usize = 6 << 20;
const STACK_TAKEN: usize = 32 << 20;
/// The same for parsing, which takes some 160 KiB for a bracket where the parser is not optimized.
const PARSER_STACK_LEFT: usize = 1 << 20;
const PARSER_STACK_TAKEN: usize = 1 << 20;
const PARSER_STACK_PER_BRACKET: usize = 256 << 10;
const PARSER_STACK_PER_LINK: usize = 32 << 10;

/// Does something with an expression that has been read, wherever the stack ends.
pub(super) fn deep<R>(act: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(STACK_LEFT, STACK_TAKEN, act)
}

/// How deep an expression is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Depth {
    brackets: usize,
    links: usize,
}

impl Depth {
    /// Looks at the text of an expression.
    ///
    /// # Errors
    /// If it is too long or too deep, in the real parser's words.
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let length = text.chars().count();
        if length > LENGTH_MAX {
            return Err(format!(
                "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {length}, limit {LENGTH_MAX}"
            ));
        }
        Scan::new(text)
            .depth()
            .ok_or_else(|| format!("ERROR: <input>:-1:0: expression recursion limit exceeded: {DEPTH_MAX}"))
    }

    /// Parses, with as much stack as that takes.
    pub(super) fn parsing<R>(self, act: impl FnOnce() -> R) -> R {
        let needed = PARSER_STACK_PER_BRACKET * self.brackets + PARSER_STACK_PER_LINK * self.links;
        stacker::maybe_grow(PARSER_STACK_LEFT + needed, PARSER_STACK_TAKEN + 2 * needed, act)
    }
}

/// How often rules have been entered within themselves.
#[derive(Debug, Clone, Copy, Default)]
struct Rules {
    expressions: usize,
    relations: usize,
    sums: usize,
    members: usize,
}

impl Rules {
    fn plus(self, other: Self) -> Self {
        Self {
            expressions: self.expressions + other.expressions,
            relations: self.relations + other.relations,
            sums: self.sums + other.sums,
            members: self.members + other.members,
        }
    }

    fn less(self, other: Self) -> Self {
        Self {
            expressions: self.expressions - other.expressions,
            relations: self.relations - other.relations,
            sums: self.sums - other.sums,
            members: self.members - other.members,
        }
    }

    fn is_too_deep(self) -> bool {
        [self.expressions, self.relations, self.sums, self.members]
            .iter()
            .any(|count| *count > DEPTH_MAX)
    }
}

/// The part of the text between two brackets that has been read so far. Each operator enters a left-recursive rule once more,
/// and so does the operand on its right.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    /// Whether there is anything.
    begun: bool,
    /// Other branches of conditions, and conditions whose other branch is still to come.
    branches: usize,
    conditions: usize,
    comparisons: usize,
    /// Sums, and the products before the first of them, which the same pass of the rule reads.
    sums: usize,
    in_sum: bool,
    /// The factors in the part of the sum that is being read.
    factors: usize,
    members: usize,
}

impl Frame {
    fn rules(self) -> Rules {
        if !self.begun {
            return Rules::default();
        }
        let with_right_side = |operators: usize| operators + usize::from(operators > 0);
        let factors = if self.sums > 0 {
            with_right_side(self.factors)
        } else {
            0
        };
        Rules {
            expressions: 1 + self.branches,
            relations: 1 + with_right_side(self.comparisons),
            sums: 1 + with_right_side(self.sums) + factors,
            members: 1 + self.members,
        }
    }

    /// Another expression, in the same brackets.
    fn next_expression(&mut self) {
        *self = Self::default();
    }

    /// Another operand of `&&` and the like.
    fn next_condition(&mut self) {
        self.comparisons = 0;
        self.next_operand();
    }

    /// Another operand of a comparison.
    fn next_operand(&mut self) {
        self.sums = 0;
        self.in_sum = false;
        self.factors = 0;
        self.members = 0;
    }
}

struct Scan<'a> {
    rest: &'a str,
    frame: Frame,
    /// The frames around it, and how deep they are together.
    around: Vec<Frame>,
    outer: Rules,
    depth: Depth,
    /// Whether the last token can be the left side of an operator.
    behind_operand: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            frame: Frame::default(),
            around: Vec::new(),
            outer: Rules::default(),
            depth: Depth::default(),
            behind_operand: false,
        }
    }

    /// None if it is too deep.
    fn depth(mut self) -> Option<Depth> {
        while let Some(first) = self.rest.chars().next() {
            self.token(first);
            let all = self.outer.plus(self.frame.rules());
            if all.is_too_deep() {
                return None;
            }
            self.depth.brackets = self.depth.brackets.max(all.expressions);
            self.depth.links = self.depth.links.max(all.relations + all.sums + all.members);
        }
        Some(self.depth)
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    fn token(&mut self, first: char) {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let (before, behind) = self.rest.split_at(word);
        let prefixes = ["r", "R", "b", "B", "rb", "br", "Rb", "bR", "rB", "Br", "RB", "BR"];
        if behind.starts_with(['"', '\'']) && (before.is_empty() || prefixes.contains(&before)) {
            self.rest = behind;
            self.skip_text(before.contains(['r', 'R']));
            self.behind_operand = true;
            self.frame.begun = true;
        } else if first.is_ascii_digit() {
            self.skip_number();
            self.behind_operand = true;
            self.frame.begun = true;
        } else if word > 0 {
            let compares = before == "in";
            self.skip(word);
            self.behind_operand = !compares;
            self.frame.begun = true;
            if compares {
                self.comparison();
            }
        } else if self.rest.starts_with("//") {
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else {
            self.sign(first);
        }
    }

    fn skip_number(&mut self) {
        let mut last = '0';
        let end = self.rest.find(|c: char| {
            let is_part = c.is_ascii_alphanumeric() || c == '.' || ("+-".contains(c) && "eE".contains(last));
            last = c;
            !is_part
        });
        self.skip(end.unwrap_or(self.rest.len()));
    }

    fn skip_text(&mut self, is_raw: bool) {
        let quote = self.rest.get(..1).unwrap_or_default();
        let tripled = quote.repeat(3);
        let end = if self.rest.starts_with(&tripled) {
            tripled.as_str()
        } else {
            quote
        };
        self.skip(end.len());
        while !self.rest.is_empty() && !self.rest.starts_with(end) {
            let mut chars = self.rest.chars();
            let escapes = chars.next() == Some('\\') && !is_raw;
            if escapes {
                chars.next();
            }
            self.rest = chars.as_str();
        }
        self.skip(end.len());
    }

    fn comparison(&mut self) {
        self.frame.comparisons += 1;
        self.frame.next_operand();
    }

    fn sign(&mut self, first: char) {
        let pairs = ["==", "!=", "<=", ">=", "&&", "||"];
        let pair = pairs.iter().find(|pair| self.rest.starts_with(**pair));
        let length = pair.map_or(first.len_utf8(), |pair| pair.len());
        self.skip(length);
        let was_behind_operand = self.behind_operand;
        if first.is_whitespace() {
            return;
        }
        self.behind_operand = matches!(first, ')' | ']' | '}' | '`');
        let frame = &mut self.frame;
        match (first, pair) {
            ('(' | '[' | '{', _) => {
                frame.begun = true;
                frame.members += usize::from(first == '[' && was_behind_operand);
                self.outer = self.outer.plus(frame.rules());
                self.around.push(std::mem::take(frame));
            }
            (')' | ']' | '}', _) => {
                if let Some(around) = self.around.pop() {
                    self.outer = self.outer.less(around.rules());
                    self.frame = around;
                }
            }
            (_, Some(&"&&" | &"||")) => frame.next_condition(),
            (_, Some(_)) | ('<' | '>', _) => self.comparison(),
            (',', _) => frame.next_expression(),
            ('?', _) if was_behind_operand => {
                frame.conditions += 1;
                frame.next_condition();
            }
            (':', _) if frame.conditions > 0 => {
                frame.conditions -= 1;
                frame.branches += 1;
                frame.next_condition();
            }
            (':', _) => frame.next_expression(),
            ('.', _) => frame.members += 1,
            ('+' | '-', _) if was_behind_operand => {
                frame.sums += 1;
                frame.in_sum = true;
                frame.factors = 0;
                frame.members = 0;
            }
            ('*' | '/' | '%', _) => {
                if frame.in_sum {
                    frame.factors += 1;
                } else {
                    frame.sums += 1;
                }
                frame.members = 0;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Depth;
    use rstest::rstest;

    #[rstest]
    #[case::brackets("(", "true", ")", Some(249))]
    #[case::lists("[", "1", "]", Some(249))]
    #[case::maps("{'a': ", "1", "}", Some(249))]
    #[case::calls("f(", "1", ")", Some(249))]
    #[case::conditions("a ? b : ", "c", "", Some(249))]
    // What is right of an operator enters the rule once more.
    #[case::sums("1 + ", "1", "", Some(248))]
    #[case::differences("a - ", "a", "", Some(248))]
    #[case::products("2 * ", "2", "", Some(248))]
    #[case::comparisons("a == ", "a", "", Some(248))]
    #[case::membership("a in ", "a", "", Some(248))]
    #[case::sums_of_products("1 + 2 * ", "2", "", Some(246))]
    #[case::fields("", "a", ".a", Some(249))]
    #[case::methods("", "a", ".f()", Some(249))]
    // The number in the brackets is within it.
    #[case::elements("", "a", "[0]", Some(248))]
    // What is not within itself may be as long as it likes.
    #[case::conjunctions("a.b == 1 && ", "a", "", None)]
    #[case::disjunctions("a.b == 1 || ", "a", "", None)]
    #[case::items("a.b(1)[2] + 3, ", "a", "", None)]
    #[case::negations("!", "a", "", None)]
    #[case::minus("-", "a", "", None)]
    #[case::text("'(((' == \"[[[\" && ", "a", "", None)]
    #[case::long_text("'''(\n'(''' == '' && ", "a", "", None)]
    #[case::raw_text(r"r'(\' == '(\'' && ", "a", "", None)]
    #[case::numbers("1.5e-3 == .5 && ", "a", "", None)]
    #[case::comments("a && // (((((\n", "a", "", None)]
    fn as_deep_as_may_be(
        #[case] before: &str,
        #[case] inner: &str,
        #[case] after: &str,
        #[case] most: Option<usize>,
    ) {
        let nested = |times: usize| format!("{}{inner}{}", before.repeat(times), after.repeat(times));
        let times = most.unwrap_or(2000);
        assert!(Depth::of(&nested(times)).is_ok(), "{times} times");
        if most.is_some() {
            let limit = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
            assert_eq!(Depth::of(&nested(times + 1)), Err(limit.to_owned()));
        }
    }

    #[test]
    fn as_long_as_may_be() {
        let text = |length: usize| format!("'{}'", "x".repeat(length - 2));
        assert!(Depth::of(&text(100_000)).is_ok());
        let limit =
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000";
        assert_eq!(Depth::of(&text(100_001)), Err(limit.to_owned()));
    }
}
