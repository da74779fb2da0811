//! From characters to words and operators.

use std::iter::Peekable;
use std::str::Chars;

use super::{
    DEPTH_MAX, Part, RedirectKind, SyntaxError, Token, Word, error, literal, parameter, parse_nested,
};

/// Cuts a script into words and operators.
pub(super) struct Lexer<'a> {
    chars: Peekable<Chars<'a>>,
    depth: usize,
    /// The here-documents that begin at the end of the line.
    awaited: Vec<HereDocument>,
}

/// A here-document whose text has not come yet.
struct HereDocument {
    /// The place of its text among the tokens.
    at: usize,
    end: String,
    /// Whether tabs at the beginning of lines are left out.
    strips: bool,
    /// Whether nothing in it is expanded.
    is_literal: bool,
}

const OPERATORS: [&str; 10] = ["&&", "||", ";;", ";", "&", "|", "(", ")", "{", "}"];

impl<'a> Lexer<'a> {
    /// A lexer of a script that stands at this depth of command substitutions.
    pub(super) fn new(text: &'a str, depth: usize) -> Self {
        Self {
            chars: text.chars().peekable(),
            depth,
            awaited: Vec::new(),
        }
    }

    pub(super) fn tokens(mut self) -> Result<Vec<Token>, SyntaxError> {
        let mut out = Vec::new();
        loop {
            let Some(&c) = self.chars.peek() else {
                return match self.awaited.first() {
                    Some(document) => error(format!("unterminated here-document (\"{}\")", document.end)),
                    None => Ok(out),
                };
            };
            match c {
                '\n' => {
                    self.chars.next();
                    out.push(Token::Newline);
                    self.here_documents(&mut out)?;
                }
                '&' if self.chars.clone().nth(1) == Some('>') => {
                    self.chars.next();
                    self.chars.next();
                    out.push(Token::Redirect(1, RedirectKind::Both));
                }
                c if c.is_whitespace() => {
                    self.chars.next();
                }
                '#' => while self.chars.next_if(|c| *c != '\n').is_some() {},
                '>' | '<' => {
                    let stream = u8::from(c == '>');
                    self.redirect(stream, &mut out)?;
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
                        (Some(stream), Some('>')) => self.redirect(stream, &mut out)?,
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

    fn redirect(&mut self, stream: u8, out: &mut Vec<Token>) -> Result<(), SyntaxError> {
        let kind = match self.chars.next() {
            Some('<') if self.chars.next_if_eq(&'<').is_some() => return self.here(out),
            Some('<') => RedirectKind::Read,
            _ if self.chars.next_if_eq(&'>').is_some() => RedirectKind::Append,
            _ if self.chars.next_if_eq(&'&').is_some() => RedirectKind::Duplicate,
            _ => RedirectKind::Write,
        };
        out.push(Token::Redirect(stream, kind));
        Ok(())
    }

    /// `<<` with the word behind it, or `<<<`.
    fn here(&mut self, out: &mut Vec<Token>) -> Result<(), SyntaxError> {
        let is_string = self.chars.next_if_eq(&'<').is_some();
        let strips = !is_string && self.chars.next_if_eq(&'-').is_some();
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        let mut word = self.word()?;
        if word.0.is_empty() {
            return error("missing word behind \"<<\"");
        }
        out.push(Token::Redirect(0, RedirectKind::Here));
        if is_string {
            word.0.push(Part::Text("\n".to_owned(), true));
        } else {
            let texts = word.0.iter().map(|part| match part {
                Part::Text(text, _) => text.as_str(),
                _ => "",
            });
            self.awaited.push(HereDocument {
                at: out.len(),
                end: texts.collect(),
                strips,
                is_literal: word.0.iter().any(|part| matches!(part, Part::Text(_, true))),
            });
        }
        out.push(Token::Word(word));
        Ok(())
    }

    /// Reads the here-documents that begin here, and puts their texts where the tokens await them.
    fn here_documents(&mut self, out: &mut [Token]) -> Result<(), SyntaxError> {
        for document in std::mem::take(&mut self.awaited) {
            let mut text = String::new();
            loop {
                if self.chars.peek().is_none() {
                    return error(format!("unterminated here-document (\"{}\")", document.end));
                }
                let mut line = String::new();
                while let Some(c) = self.chars.next_if(|c| *c != '\n') {
                    line.push(c);
                }
                self.chars.next();
                let line = if document.strips {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                if line == document.end {
                    break;
                }
                text.push_str(line);
                text.push('\n');
            }
            let word = if document.is_literal {
                Word(vec![Part::Text(text, true)])
            } else {
                Lexer::new(&text, self.depth).here_text()?
            };
            if let Some(token) = out.get_mut(document.at) {
                *token = Token::Word(word);
            }
        }
        Ok(())
    }

    /// The whole text as one word: as within double quotes, in which these are plain characters.
    pub(super) fn here_text(mut self) -> Result<Word, SyntaxError> {
        let mut word = Word(vec![Part::Text(String::new(), true)]);
        self.quoted(&mut word, None)?;
        Ok(word)
    }

    /// The whole text as one word, blanks included, as a word behind an operator in `${…}`. In quoted text single quotes are plain
    /// characters.
    pub(super) fn whole(mut self, is_quoted: bool) -> Result<Word, SyntaxError> {
        if self.depth > DEPTH_MAX {
            return error("too deeply nested");
        }
        let mut word = Word::default();
        while let Some(c) = self.chars.next() {
            match c {
                '\'' if !is_quoted => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => match self.chars.next() {
                    Some(c) if is_quoted && !matches!(c, '"' | '\\' | '$' | '`' | '}') => {
                        push_text(&mut word, '\\', true);
                        push_text(&mut word, c, true);
                    }
                    Some(c) => word.0.push(Part::Text(c.to_string(), true)),
                    None => {}
                },
                '$' => self.dollar(&mut word, is_quoted)?,
                '`' => self.backquoted(&mut word, is_quoted)?,
                c => push_text(&mut word, c, is_quoted),
            }
        }
        Ok(word)
    }

    fn single_quoted(&mut self, word: &mut Word) -> Result<(), SyntaxError> {
        let mut text = String::new();
        loop {
            match self.chars.next() {
                Some('\'') => break,
                Some(c) => text.push(c),
                None => return error("unterminated quoted string"),
            }
        }
        word.0.push(Part::Text(text, true));
        Ok(())
    }

    fn word(&mut self) -> Result<Word, SyntaxError> {
        let mut word = Word::default();
        while let Some(&c) = self.chars.peek() {
            if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>') {
                break;
            }
            self.chars.next();
            match c {
                '\'' => self.single_quoted(&mut word)?,
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
        self.quoted(word, Some('"'))
    }

    /// Quoted text up to a character, or to the end.
    fn quoted(&mut self, word: &mut Word, end: Option<char>) -> Result<(), SyntaxError> {
        loop {
            match self.chars.next() {
                found if found == end => return Ok(()),
                Some('\\') => match self.chars.next() {
                    Some(c @ ('\\' | '$' | '`')) => push_text(word, c, true),
                    Some(c) if Some(c) == end => push_text(word, c, true),
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
                let text = self.balanced('(', ')', false)?;
                if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
                    let inner = Lexer::new(inner, self.depth + 1).whole(true)?;
                    word.0.push(Part::Arithmetic(inner));
                } else {
                    let node = parse_nested(&text, self.depth + 1)?;
                    word.0.push(Part::Command(Box::new(node), quoted));
                }
            }
            Some('{') => {
                self.chars.next();
                let text = self.balanced('{', '}', quoted)?;
                word.0.push(parameter::read(&text, quoted, self.depth + 1)?);
            }
            Some('\'') if !quoted => {
                self.chars.next();
                self.c_quoted(word)?;
            }
            Some(c) if c.is_alphanumeric() || matches!(c, '_' | '?' | '$' | '#' | '@' | '*' | '!' | '-') => {
                let first = self.chars.next().unwrap_or_default();
                let mut name = first.to_string();
                if first.is_alphabetic() || first == '_' {
                    while let Some(c) = self.chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                        name.push(c);
                    }
                }
                word.0.push(Part::Parameter {
                    name,
                    change: None,
                    quoted,
                });
            }
            _ => push_text(word, '$', quoted),
        }
        Ok(())
    }

    /// `$'…'`: text with the escapes of C.
    fn c_quoted(&mut self, word: &mut Word) -> Result<(), SyntaxError> {
        let mut text = String::new();
        loop {
            match self.chars.next() {
                Some('\'') => break,
                Some('\\') => text.push(match self.chars.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some('0') => '\0',
                    Some('e') => '\u{1b}',
                    Some(c) => c,
                    None => return error("unterminated quoted string"),
                }),
                Some(c) => text.push(c),
                None => return error("unterminated quoted string"),
            }
        }
        word.0.push(Part::Text(text, true));
        Ok(())
    }

    /// The text up to the closing bracket, which is consumed. In quoted text single quotes are plain characters.
    fn balanced(&mut self, open: char, close: char, is_quoted: bool) -> Result<String, SyntaxError> {
        let (mut text, mut level) = (String::new(), 1_u32);
        let mut quote = None;
        while let Some(c) = self.chars.next() {
            match quote {
                Some(q) if c == q => quote = None,
                // A backslash takes the next character with it, but within single quotes.
                None | Some('"') if c == '\\' => {
                    text.push(c);
                    text.extend(self.chars.next());
                    continue;
                }
                Some(_) => {}
                None if c == '"' || (c == '\'' && !is_quoted) => quote = Some(c),
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
