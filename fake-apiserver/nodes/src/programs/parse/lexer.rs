//! From characters to words and operators.

use std::iter::Peekable;
use std::str::Chars;

use super::{Part, RedirectKind, SyntaxError, Token, Word, error, literal, parse_nested};

/// Cuts a script into words and operators.
pub(super) struct Lexer<'a> {
    chars: Peekable<Chars<'a>>,
    depth: usize,
}

const OPERATORS: [&str; 10] = ["&&", "||", ";;", ";", "&", "|", "(", ")", "{", "}"];

impl<'a> Lexer<'a> {
    /// A lexer of a script that stands at this depth of command substitutions.
    pub(super) fn new(text: &'a str, depth: usize) -> Self {
        Self {
            chars: text.chars().peekable(),
            depth,
        }
    }

    pub(super) fn tokens(mut self) -> Result<Vec<Token>, SyntaxError> {
        let mut out = Vec::new();
        loop {
            let Some(&c) = self.chars.peek() else {
                return Ok(out);
            };
            match c {
                '\n' => {
                    self.chars.next();
                    out.push(Token::Newline);
                }
                c if c.is_whitespace() => {
                    self.chars.next();
                }
                '#' => while self.chars.next_if(|c| *c != '\n').is_some() {},
                '>' | '<' => {
                    let stream = u8::from(c == '>');
                    out.push(self.redirect(stream)?);
                }
                ';' | '&' | '|' | '(' | ')' => out.push(Token::Operator(self.operator())),
                _ => {
                    let word = self.word()?;
                    let stream = literal(&word).and_then(|text| match text {
                        "1" => Some(1),
                        "2" => Some(2),
                        _ => None,
                    });
                    match (stream, self.chars.peek()) {
                        (Some(stream), Some('>')) => out.push(self.redirect(stream)?),
                        _ => out.push(match literal(&word) {
                            Some("{") => Token::Operator("{"),
                            Some("}") => Token::Operator("}"),
                            _ => Token::Word(word),
                        }),
                    }
                }
            }
        }
    }

    fn operator(&mut self) -> &'static str {
        let first = self.chars.next().unwrap_or(';');
        let two: String = [Some(first), self.chars.peek().copied()]
            .iter()
            .flatten()
            .collect();
        if let Some(found) = OPERATORS.iter().find(|text| **text == two && text.len() == 2) {
            self.chars.next();
            return found;
        }
        OPERATORS
            .iter()
            .find(|text| text.len() == 1 && text.starts_with(first))
            .copied()
            .unwrap_or(";")
    }

    fn redirect(&mut self, stream: u8) -> Result<Token, SyntaxError> {
        let kind = match self.chars.next() {
            Some('<') => RedirectKind::Read,
            _ if self.chars.next_if_eq(&'>').is_some() => RedirectKind::Append,
            _ if self.chars.next_if_eq(&'&').is_some() => RedirectKind::Duplicate,
            _ => RedirectKind::Write,
        };
        if kind == RedirectKind::Read && self.chars.peek() == Some(&'<') {
            return error("here-documents are not supported");
        }
        Ok(Token::Redirect(stream, kind))
    }

    fn word(&mut self) -> Result<Word, SyntaxError> {
        let mut word = Word::default();
        while let Some(&c) = self.chars.peek() {
            if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>') {
                break;
            }
            self.chars.next();
            match c {
                '\'' => {
                    let mut text = String::new();
                    loop {
                        match self.chars.next() {
                            Some('\'') => break,
                            Some(c) => text.push(c),
                            None => return error("unterminated quoted string"),
                        }
                    }
                    word.0.push(Part::Text(text, true));
                }
                '"' => self.double_quoted(&mut word)?,
                '\\' => match self.chars.next() {
                    Some('\n') | None => {}
                    Some(c) => word.0.push(Part::Text(c.to_string(), true)),
                },
                '$' => self.dollar(&mut word, false)?,
                '`' => self.backquoted(&mut word, false)?,
                c => push_text(&mut word, c, false),
            }
        }
        Ok(word)
    }

    fn double_quoted(&mut self, word: &mut Word) -> Result<(), SyntaxError> {
        word.0.push(Part::Text(String::new(), true));
        loop {
            match self.chars.next() {
                Some('"') => return Ok(()),
                Some('\\') => match self.chars.next() {
                    Some(c @ ('"' | '\\' | '$' | '`')) => push_text(word, c, true),
                    Some('\n') => {}
                    Some(c) => {
                        push_text(word, '\\', true);
                        push_text(word, c, true);
                    }
                    None => return error("unterminated quoted string"),
                },
                Some('$') => self.dollar(word, true)?,
                Some('`') => self.backquoted(word, true)?,
                Some(c) => push_text(word, c, true),
                None => return error("unterminated quoted string"),
            }
        }
    }

    fn backquoted(&mut self, word: &mut Word, quoted: bool) -> Result<(), SyntaxError> {
        let mut text = String::new();
        loop {
            match self.chars.next() {
                Some('`') => break,
                Some(c) => text.push(c),
                None => return error("unterminated backquote"),
            }
        }
        let node = parse_nested(&text, self.depth + 1)?;
        word.0.push(Part::Command(Box::new(node), quoted));
        Ok(())
    }

    /// Reads the expansion after a `$`.
    fn dollar(&mut self, word: &mut Word, quoted: bool) -> Result<(), SyntaxError> {
        match self.chars.peek() {
            Some('(') => {
                self.chars.next();
                let text = self.balanced('(', ')')?;
                if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
                    word.0.push(Part::Arithmetic(inner.to_owned()));
                } else {
                    let node = parse_nested(&text, self.depth + 1)?;
                    word.0.push(Part::Command(Box::new(node), quoted));
                }
            }
            Some('{') => {
                self.chars.next();
                let text = self.balanced('{', '}')?;
                let end = text
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(text.len());
                let (name, rest) = text.split_at(end);
                let default = rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-'));
                if name.is_empty() || (!rest.is_empty() && default.is_none()) {
                    return error(format!("bad substitution \"${{{text}}}\""));
                }
                let default = default
                    .map(|text| {
                        Lexer {
                            chars: text.chars().peekable(),
                            depth: self.depth,
                        }
                        .word()
                    })
                    .transpose()?
                    .map(Box::new);
                word.0.push(Part::Variable {
                    name: name.to_owned(),
                    default,
                    quoted,
                });
            }
            Some(c) if c.is_alphanumeric() || matches!(c, '_' | '?' | '$' | '#' | '@' | '*' | '!') => {
                let first = self.chars.next().unwrap_or_default();
                let mut name = first.to_string();
                if first.is_alphabetic() || first == '_' {
                    while let Some(c) = self.chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                        name.push(c);
                    }
                }
                word.0.push(Part::Variable {
                    name,
                    default: None,
                    quoted,
                });
            }
            _ => push_text(word, '$', quoted),
        }
        Ok(())
    }

    /// The text up to the closing bracket, which is consumed.
    fn balanced(&mut self, open: char, close: char) -> Result<String, SyntaxError> {
        let (mut text, mut level) = (String::new(), 1_u32);
        let mut quote = None;
        for c in self.chars.by_ref() {
            match quote {
                Some(q) if c == q => quote = None,
                Some(_) => {}
                None if c == '\'' || c == '"' => quote = Some(c),
                None if c == open => level += 1,
                None if c == close => {
                    level -= 1;
                    if level == 0 {
                        return Ok(text);
                    }
                }
                None => {}
            }
            text.push(c);
        }
        error(format!("missing '{close}'"))
    }
}

fn push_text(word: &mut Word, c: char, quoted: bool) {
    match word.0.last_mut() {
        Some(Part::Text(text, same)) if *same == quoted => text.push(c),
        _ => word.0.push(Part::Text(c.to_string(), quoted)),
    }
}
