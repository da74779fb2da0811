//! A person's values for tests as `$values`: files, and settings such as `image.tag=1,args={a,b},ports[0]=80`, in Helm's grammar.

use std::path::Path;

use shared_json::{Map, Value};

use crate::error::Error;

/// So far a list may be filled up by naming an element of it (Helm's limit).
const INDEX_MAX: usize = 65_536;
/// So deep a setting may go (Helm's limit).
const DEPTH_MAX: usize = 30;

/// The values of files, changed by settings: first the typed ones, then those of texts alone.
///
/// # Errors
/// If a file cannot be read, or a setting is wrong.
pub fn gather(files: &[impl AsRef<Path>], typed: &[String], texts: &[String]) -> Result<Value, Error> {
    let mut values = read(files)?;
    let settings = [
        ("--set", typed, Typing::Typed),
        ("--set-string", texts, Typing::Texts),
    ];
    for (option, settings, typing) in settings {
        for setting in settings {
            set(&mut values, setting, typing).map_err(|why| Error::Option {
                option: format!("{option} {setting}"),
                why,
            })?;
        }
    }
    Ok(values)
}

/// Reads files of values: a later one goes before an earlier one, field by field.
///
/// # Errors
/// If a file cannot be read, or is no object in YAML.
fn read(paths: &[impl AsRef<Path>]) -> Result<Value, Error> {
    let mut all = Value::Object(Map::new());
    for path in paths.iter().map(AsRef::as_ref) {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        let values: Value = serde_saphyr::from_str(&text).map_err(|error| Error::yaml(path, &error))?;
        match values {
            Value::Null => {}
            Value::Object(_) => merge(&mut all, values),
            _ => {
                return Err(Error::Parse {
                    path: path.to_owned(),
                    line: 0,
                    column: 0,
                    why: "values must be an object".to_owned(),
                    help: "a file of values holds names and what they stand for".to_owned(),
                });
            }
        }
    }
    Ok(all)
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from.iter() {
                match into.get_mut(key) {
                    Some(known) if known.is_object() && value.is_object() => merge(known, value.clone()),
                    _ => _ = into.insert(key.clone(), value.clone()),
                }
            }
        }
        (into, from) => *into = from,
    }
}

/// Whether a setting's values are read for their type, or are texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typing {
    /// `true`, `false`, `null` and whole numbers have their JSON types.
    Typed,
    /// All values are texts.
    Texts,
}

/// Applies a setting to values.
///
/// # Errors
/// The error in the setting.
fn set(values: &mut Value, setting: &str, typing: Typing) -> Result<(), String> {
    let mut reader = Reader {
        rest: setting,
        typing,
    };
    while !reader.rest.is_empty() {
        reader.pair(values)?;
    }
    Ok(())
}

/// A step from a value to one below it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Field(String),
    Element(usize),
}

struct Reader<'a> {
    rest: &'a str,
    typing: Typing,
}

impl Reader<'_> {
    /// Takes text up to one of some characters, and that; a backslash escapes a character.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut text = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '\\' => text.extend(characters.next().map(|(_, next)| next)),
                c if stops.contains(&c) => {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return (text, Some(c));
                }
                c => text.push(c),
            }
        }
        self.rest = "";
        (text, None)
    }

    /// Takes a pair of a path and a value.
    fn pair(&mut self, values: &mut Value) -> Result<(), String> {
        let mut path = Vec::new();
        loop {
            let (name, stop) = self.until(&['=', '[', ',', '.']);
            if !name.is_empty() {
                path.push(Place::Field(name.clone()));
            }
            if path.len() > DEPTH_MAX {
                return Err(format!("a setting goes {DEPTH_MAX} levels deep at most"));
            }
            match stop {
                Some('=') if !path.is_empty() => break,
                Some('.') if !path.is_empty() => {}
                Some('[') if !path.is_empty() => {
                    let (index, end) = self.until(&[']']);
                    let index = index.trim().parse::<usize>().ok().filter(|_| end.is_some());
                    match index {
                        Some(index) if index <= INDEX_MAX => path.push(Place::Element(index)),
                        _ => return Err("an index must be a whole number within brackets".to_owned()),
                    }
                }
                None | Some(',') => return Err(format!("key \"{name}\" has no value")),
                Some(_) => return Err("a key is missing".to_owned()),
            }
        }
        let value = self.value()?;
        put(values, &path, value);
        Ok(())
    }

    fn value(&mut self) -> Result<Option<Value>, String> {
        let Some(rest) = self.rest.strip_prefix('{') else {
            let (text, _) = self.until(&[',']);
            return Ok(self.scalar(&text));
        };
        self.rest = rest;
        let mut items = Vec::new();
        loop {
            let (text, stop) = self.until(&[',', '}']);
            if !(text.is_empty() && items.is_empty() && stop == Some('}')) {
                items.push(self.scalar(&text).unwrap_or_default());
            }
            match stop {
                Some('}') => break,
                Some(_) => {}
                None => return Err("list must terminate with '}'".to_owned()),
            }
        }
        match self.rest.strip_prefix(',') {
            Some(rest) => self.rest = rest,
            None if self.rest.is_empty() => {}
            None => return Err(format!("\"{}\" is not expected after a list", self.rest)),
        }
        Ok(Some(Value::from(items)))
    }

    /// A value, or none for `null`, which takes the field away.
    fn scalar(&self, text: &str) -> Option<Value> {
        if self.typing == Typing::Texts {
            return Some(Value::from(text));
        }
        match text {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            "null" => None,
            "0" => Some(Value::from(0)),
            // With a zero in front it is no number, but a tag or a date.
            text if text.starts_with('0') => Some(Value::from(text)),
            text => Some(
                text.parse::<i64>()
                    .map_or_else(|_| Value::from(text), Value::from),
            ),
        }
    }
}

/// Puts a value where the path leads, making missing parts; removes the field if there is no value.
fn put(values: &mut Value, path: &[Place], value: Option<Value>) {
    let Some((first, below)) = path.split_first() else {
        *values = value.unwrap_or_default();
        return;
    };
    match first {
        Place::Field(name) => {
            if !values.is_object() {
                *values = Value::Object(Map::new());
            }
            if value.is_none() && below.is_empty() {
                if let Some(fields) = values.as_object_mut() {
                    fields.remove(name.as_str());
                }
                return;
            }
            put(&mut values[name.as_str()], below, value);
        }
        Place::Element(index) => {
            let mut items: Vec<Value> = values
                .as_array()
                .map(|items| items.iter().cloned().collect())
                .unwrap_or_default();
            if items.len() <= *index {
                items.resize(index + 1, Value::Null);
            }
            put(&mut items[*index], below, value);
            *values = Value::from(items);
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::text("a=b", json!({"a": "b", "k": {"x": 1, "y": 2}}))]
    #[case::several("a=b,c=d", json!({"a": "b", "c": "d", "k": {"x": 1, "y": 2}}))]
    #[case::types("a=1,b=true,c=01,d=1.5,e=0,f=", json!({"a": 1, "b": true, "c": "01", "d": "1.5", "e": 0, "f": "", "k": {"x": 1, "y": 2}}))]
    #[case::below("k.x=5,k.z.deep=6", json!({"k": {"x": 5, "y": 2, "z": {"deep": 6}}}))]
    #[case::gone("k.x=null", json!({"k": {"y": 2}}))]
    #[case::list("a={1,b,}", json!({"a": [1, "b", ""], "k": {"x": 1, "y": 2}}))]
    #[case::empty_list("a={},b=1", json!({"a": [], "b": 1, "k": {"x": 1, "y": 2}}))]
    #[case::element("a[1].b=c", json!({"a": [null, {"b": "c"}], "k": {"x": 1, "y": 2}}))]
    #[case::escaped("a\\.b=c\\,d", json!({"a.b": "c,d", "k": {"x": 1, "y": 2}}))]
    #[case::equals_in_a_value("a=b=c", json!({"a": "b=c", "k": {"x": 1, "y": 2}}))]
    #[case::in_place_of_a_value("k.x.y=1", json!({"k": {"x": {"y": 1}, "y": 2}}))]
    fn settings(#[case] setting: &str, #[case] expected: Value) {
        let mut values = json!({"k": {"x": 1, "y": 2}});
        set(&mut values, setting, Typing::Typed).expect("a setting");
        assert_eq!(values, expected);
    }

    #[rstest]
    #[case("a=01,b=true,c=null", json!({"a": "01", "b": "true", "c": "null"}))]
    #[case("a={1,2}", json!({"a": ["1", "2"]}))]
    fn settings_of_texts(#[case] setting: &str, #[case] expected: Value) {
        let mut values = json!({});
        set(&mut values, setting, Typing::Texts).expect("a setting");
        assert_eq!(values, expected);
    }

    #[rstest]
    #[case("a", "key \"a\" has no value")]
    #[case("a,b=c", "key \"a\" has no value")]
    #[case("=b", "a key is missing")]
    #[case("a={b", "list must terminate with '}'")]
    #[case("a={b}c", "\"c\" is not expected after a list")]
    #[case("a[x]=1", "an index must be a whole number within brackets")]
    #[case("a[65537]=1", "an index must be a whole number within brackets")]
    fn wrong_settings(#[case] setting: &str, #[case] why: &str) {
        assert_eq!(set(&mut json!({}), setting, Typing::Typed), Err(why.to_owned()));
    }
}
