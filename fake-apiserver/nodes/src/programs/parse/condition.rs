//! `[[ … ]]`: conditions whose words are neither split nor taken for patterns of files.

use super::{Parser, Part, RedirectKind, SyntaxError, Token, Word, error, literal, show};

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Condition {
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    /// `-f word`
    Unary(String, Word),
    /// `word == pattern`, `word -lt word`
    Binary(Word, String, Word),
    /// A word, which holds if it is not empty.
    Text(Word),
}

impl Parser {
    /// A condition, from behind its opening brackets to its closing ones.
    pub(super) fn condition(&mut self) -> Result<Condition, SyntaxError> {
        self.at += 1;
        let condition = self.any_of()?;
        self.skip_newlines();
        self.expect("]]")?;
        Ok(condition)
    }

    fn skip_newlines(&mut self) {
        while self.peek() == Some(&Token::Newline) {
            self.at += 1;
        }
    }

    fn any_of(&mut self) -> Result<Condition, SyntaxError> {
        let mut left = self.all_of()?;
        loop {
            self.skip_newlines();
            if !self.take_operator("||") {
                return Ok(left);
            }
            left = Condition::Or(Box::new(left), Box::new(self.all_of()?));
        }
    }

    fn all_of(&mut self) -> Result<Condition, SyntaxError> {
        let mut left = self.one()?;
        loop {
            self.skip_newlines();
            if !self.take_operator("&&") {
                return Ok(left);
            }
            left = Condition::And(Box::new(left), Box::new(self.one()?));
        }
    }

    fn one(&mut self) -> Result<Condition, SyntaxError> {
        self.skip_newlines();
        if self.keyword() == Some("!") {
            self.at += 1;
            return self.nested().map(|inner| Condition::Not(Box::new(inner)));
        }
        if self.take_operator("(") {
            let inner = self.nested_list()?;
            self.skip_newlines();
            if !self.take_operator(")") {
                return error("missing \")\" in a condition");
            }
            return Ok(inner);
        }
        let left = self.operand()?;
        if let Some(operator) = literal(&left).filter(|text| is_unary(text))
            && !self.is_over()
            && self.binary_operator().is_none()
        {
            let operator = operator.to_owned();
            return Ok(Condition::Unary(operator, self.operand()?));
        }
        let Some(operator) = self.binary_operator() else {
            return Ok(Condition::Text(left));
        };
        self.at += 1;
        let right = if operator == "=~" {
            self.expression()?
        } else {
            self.operand()?
        };
        Ok(Condition::Binary(left, operator, right))
    }

    fn nested(&mut self) -> Result<Condition, SyntaxError> {
        self.deeper()?;
        let inner = self.one();
        self.depth -= 1;
        inner
    }

    fn nested_list(&mut self) -> Result<Condition, SyntaxError> {
        self.deeper()?;
        let inner = self.any_of();
        self.depth -= 1;
        inner
    }

    fn is_over(&self) -> bool {
        self.keyword() == Some("]]") || !matches!(self.peek(), Some(Token::Word(_)))
    }

    fn operand(&mut self) -> Result<Word, SyntaxError> {
        match self.peek().cloned() {
            Some(Token::Word(word)) if literal(&word) != Some("]]") => {
                self.at += 1;
                Ok(word)
            }
            Some(token) => error(format!("unexpected {} in a condition", show(&token))),
            None => error("unexpected end of file (expecting \"]]\")"),
        }
    }

    fn binary_operator(&self) -> Option<String> {
        match self.peek()? {
            Token::Redirect(0, RedirectKind::Read) => Some("<".to_owned()),
            Token::Redirect(1, RedirectKind::Write) => Some(">".to_owned()),
            Token::Word(word) => literal(word).filter(|text| is_binary(text)).map(str::to_owned),
            _ => None,
        }
    }

    /// A regular expression, in which brackets and bars are no operators of the shell.
    fn expression(&mut self) -> Result<Word, SyntaxError> {
        let mut word = Word::default();
        let mut level = 0_u32;
        loop {
            let text = match self.peek().cloned() {
                Some(Token::Word(next)) if literal(&next) != Some("]]") => {
                    if level == 0 && matches!(word.0.last(), Some(part) if !is_bracket(part)) {
                        return Ok(word);
                    }
                    word.0.extend(next.0);
                    self.at += 1;
                    continue;
                }
                Some(Token::Operator("(")) => {
                    level += 1;
                    "("
                }
                Some(Token::Operator(")")) if level > 0 => {
                    level -= 1;
                    ")"
                }
                Some(Token::Operator("|")) if level > 0 => "|",
                _ if word.0.is_empty() => return self.operand(),
                _ => return Ok(word),
            };
            self.at += 1;
            word.0.push(Part::Text(text.to_owned(), false));
        }
    }
}

fn is_bracket(part: &Part) -> bool {
    matches!(part, Part::Text(text, false) if matches!(text.as_str(), "(" | ")" | "|"))
}

fn is_unary(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('-')
        && chars
            .next()
            .is_some_and(|c| "abcdefghknprstuvwxzLNOSG".contains(c))
        && chars.next().is_none()
}

fn is_binary(text: &str) -> bool {
    matches!(
        text,
        "=" | "==" | "!=" | "=~" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-nt" | "-ot" | "-ef"
    )
}
