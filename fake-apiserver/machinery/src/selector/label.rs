//! Label selectors: `app=x,tier in (a, b),!env`.

use pod_rules::field_error::FieldError;
use pod_rules::names;
use shared_json::{Array, Map, Value};

use super::lexer::{Lexer, Token};
use crate::status::ApiError;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Absent(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Greater(String, i64),
    Less(String, i64),
}

/// A parsed label selector. The empty one matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

impl LabelSelector {
    /// Parses the text of a `labelSelector` parameter.
    ///
    /// # Errors
    /// 400, in the real parser's words.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let mut parser = Parser(Lexer::new(text));
        parser.selector().map(Self).map_err(ApiError::bad_request)
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &Map) -> bool {
        let get = |key: &str| labels.get(key).and_then(Value::as_str);
        self.0.iter().all(|requirement| match requirement {
            Requirement::Exists(key) => labels.contains_key(key),
            Requirement::Absent(key) => !labels.contains_key(key),
            Requirement::In(key, values) => get(key).is_some_and(|value| values.iter().any(|v| v == value)),
            Requirement::NotIn(key, values) => get(key).is_none_or(|value| values.iter().all(|v| v != value)),
            Requirement::Greater(key, bound) => get(key)
                .and_then(|value| value.parse::<i64>().ok())
                .is_some_and(|value| value > *bound),
            Requirement::Less(key, bound) => get(key)
                .and_then(|value| value.parse::<i64>().ok())
                .is_some_and(|value| value < *bound),
        })
    }
}

/// The operators, as a complaint about another one lists them.
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

struct Parser<'a>(Lexer<'a>);

impl Parser<'_> {
    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            let (token, literal) = self.0.peek_value();
            match token {
                Token::Word | Token::Bang => {}
                Token::End => return Ok(requirements),
                _ => {
                    return Err(format!(
                        "found '{literal}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
            let requirement = self
                .requirement()
                .map_err(|error| format!("unable to parse requirement: {error}"))?;
            requirements.push(requirement);
            let (token, literal) = self.0.next_value();
            match token {
                Token::End => return Ok(requirements),
                Token::Comma => {
                    let (token, literal) = self.0.peek_value();
                    if !matches!(token, Token::Word | Token::Bang) {
                        return Err(format!("found '{literal}', expected: identifier after ','"));
                    }
                }
                _ => return Err(format!("found '{literal}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut literal) = self.0.next_value();
        let absent = token == Token::Bang;
        if absent {
            (token, literal) = self.0.next_value();
        }
        if token != Token::Word {
            return Err(format!("found '{literal}', expected: identifier"));
        }
        let key = literal.to_owned();
        check_key(&key)?;
        if absent {
            return Ok(Requirement::Absent(key));
        }
        if matches!(self.0.peek_value().0, Token::End | Token::Comma) {
            return Ok(Requirement::Exists(key));
        }
        let (token, literal) = self.0.next();
        let values = match token {
            Token::In | Token::NotIn => self.values()?,
            Token::Equals | Token::DoubleEquals | Token::NotEquals | Token::Greater | Token::Less => {
                vec![self.exact_value()?]
            }
            _ => return Err(format!("found '{literal}', expected: {OPERATORS}")),
        };
        make(token, key, values)
    }

    /// `(a, b)`
    fn values(&mut self) -> Result<Vec<String>, String> {
        let (token, literal) = self.0.next_value();
        if token != Token::Open {
            return Err(format!("found '{literal}' expected: '('"));
        }
        let (token, literal) = self.0.peek_value();
        match token {
            Token::Word | Token::Comma => {}
            // Nothing at all is the empty value, too.
            Token::Close => {
                let _close = self.0.next_value();
                return Ok(vec![String::new()]);
            }
            _ => return Err(format!("found '{literal}', expected: ',', ')' or identifier")),
        }
        let values = self.identifiers()?;
        let (token, literal) = self.0.next_value();
        if token != Token::Close {
            return Err(format!("found '{literal}', expected: ')'"));
        }
        Ok(values)
    }

    /// `a, b` up to the closing parenthesis; nothing between commas is the empty value.
    fn identifiers(&mut self) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        loop {
            let (token, literal) = self.0.next_value();
            match token {
                Token::Word => {
                    values.push(literal.to_owned());
                    let (token, literal) = self.0.peek_value();
                    match token {
                        Token::Comma => {}
                        Token::Close => return Ok(values),
                        _ => return Err(format!("found '{literal}', expected: ',' or ')'")),
                    }
                }
                Token::Comma => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.0.peek_value().0 {
                        Token::Close => {
                            values.push(String::new());
                            return Ok(values);
                        }
                        Token::Comma => {
                            let _comma = self.0.next_value();
                            values.push(String::new());
                        }
                        _ => {}
                    }
                }
                _ => return Err(format!("found '{literal}', expected: ',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.0.peek_value().0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        let (token, literal) = self.0.next_value();
        if token == Token::Word {
            return Ok(literal.to_owned());
        }
        Err(format!("found '{literal}', expected: identifier"))
    }
}

fn check_key(key: &str) -> Result<(), String> {
    // The real parser has no path to name here, and prints the lack of one.
    match names::qualified_problems(key).first() {
        None => Ok(()),
        Some(_) => {
            let problems = names::qualified_problems(key).join("; ");
            Err(FieldError::invalid("<nil>", key, problems).to_string())
        }
    }
}

fn make(operator: Token, key: String, values: Vec<String>) -> Result<Requirement, String> {
    let mut errors = Vec::new();
    if matches!(operator, Token::In | Token::NotIn) && values.is_empty() {
        let detail = "for 'in', 'notin' operators, values set can't be empty";
        errors.push(FieldError::invalid("values", Value::Array(Array::new()), detail));
    }
    let bound = values.first().and_then(|value| value.parse::<i64>().ok());
    if matches!(operator, Token::Greater | Token::Less) && bound.is_none() {
        let value = values.first().map(String::as_str).unwrap_or_default();
        let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
        errors.push(FieldError::invalid("values[0]", value, detail));
    }
    for (index, value) in values.iter().enumerate() {
        let problems = names::label_value_problems(value);
        if !problems.is_empty() {
            errors.push(FieldError::invalid(
                format!("values[{index}][{key}]"),
                value.as_str(),
                problems.join("; "),
            ));
        }
    }
    if !errors.is_empty() {
        return Err(pod_rules::field_error::aggregate(&errors));
    }
    Ok(match operator {
        Token::NotIn | Token::NotEquals => Requirement::NotIn(key, values),
        Token::Greater => Requirement::Greater(key, bound.unwrap_or_default()),
        Token::Less => Requirement::Less(key, bound.unwrap_or_default()),
        _ => Requirement::In(key, values),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case("", true)]
    #[case("app=cs", true)]
    #[case("app==cs,tier!=db", true)]
    #[case("app = other", false)]
    #[case("app in (a, cs)", true)]
    #[case("app in (,cs)", true)]
    #[case("app notin (a,b),env", false)]
    #[case("!env,app", true)]
    #[case("! env", true)]
    #[case("n>4,n<6", true)]
    #[case("n>5", false)]
    #[case("in=", false)]
    #[case("app=", false)]
    fn selects(#[case] text: &str, #[case] expected: bool) {
        let labels = json!({"app": "cs", "n": "5"});
        let labels = labels.as_object().expect("labels");
        assert_eq!(
            LabelSelector::parse(text).expect("a selector").matches(labels),
            expected,
            "{text}"
        );
    }

    #[rstest]
    #[case("a,,b", "found ',', expected: identifier after ','")]
    #[case(",", "found ',', expected: !, identifier, or 'end of string'")]
    #[case("a,", "found '', expected: identifier after ','")]
    #[case("app in a", "unable to parse requirement: found 'a' expected: '('")]
    #[case("=x", "found '=', expected: !, identifier, or 'end of string'")]
    #[case("!", "unable to parse requirement: found '', expected: identifier")]
    #[case("a=>x", "unable to parse requirement: found '>', expected: identifier")]
    #[case(
        "a frobs (b)",
        "unable to parse requirement: found 'frobs', expected: in, notin, =, ==, !=, gt, lt"
    )]
    #[case(
        "n>x",
        "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"
    )]
    #[case("a=b c", "found 'c', expected: ',' or 'end of string'")]
    fn refuses(#[case] text: &str, #[case] message: &str) {
        let error = LabelSelector::parse(text).expect_err(text);
        assert_eq!((error.code.as_u16(), error.message.as_str()), (400, message));
    }
}
