//! The words of a label selector.

/// The kinds of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Word,
    In,
    NotIn,
    Bang,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    Open,
    Close,
    Comma,
    End,
}

const SYMBOLS: [(&str, Token); 9] = [
    ("==", Token::DoubleEquals),
    ("!=", Token::NotEquals),
    ("=", Token::Equals),
    ("!", Token::Bang),
    (">", Token::Greater),
    ("<", Token::Less),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
];

/// Cuts a selector into words.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// The next word and its text.
    pub(super) fn next(&mut self) -> (Token, &'a str) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if self.rest.is_empty() {
            return (Token::End, "");
        }
        for (symbol, token) in SYMBOLS {
            if let Some(rest) = self.rest.strip_prefix(symbol) {
                let literal = self.rest.get(..symbol.len()).unwrap_or_default();
                self.rest = rest;
                return (token, literal);
            }
        }
        let ends = |c: char| {
            matches!(
                c,
                ' ' | '\t' | '\r' | '\n' | '=' | '!' | '(' | ')' | ',' | '>' | '<'
            )
        };
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (literal, rest) = self.rest.split_at(end);
        self.rest = rest;
        let token = match literal {
            "in" => Token::In,
            "notin" => Token::NotIn,
            _ => Token::Word,
        };
        (token, literal)
    }

    /// The next word where a key or value is wanted: `in` and `notin` are words like any other there.
    pub(super) fn next_value(&mut self) -> (Token, &'a str) {
        match self.next() {
            (Token::In | Token::NotIn, literal) => (Token::Word, literal),
            other => other,
        }
    }

    /// The next result of [`Lexer::next_value`].
    pub(super) fn peek_value(&self) -> (Token, &'a str) {
        self.clone().next_value()
    }
}
