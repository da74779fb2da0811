//! JSON pointers with wildcards: `*` is any key or index, `**` any depth.

use shared_json::{Array, Value};

fn tokens(pointer: &str) -> Vec<String> {
    if matches!(pointer, "" | "/") {
        return Vec::new();
    }
    pointer
        .trim_start_matches('/')
        .split('/')
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .collect()
}

fn step<'a>(value: &'a Value, token: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(token),
        Value::Array(items) if token == "-" => items.last(),
        Value::Array(items) => items.get(token.parse::<usize>().ok()?),
        _ => None,
    }
}

/// The value at a pointer without wildcards.
pub(super) fn get<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    tokens(pointer)
        .iter()
        .try_fold(value, |value, token| step(value, token))
}

/// The text at a pointer; empty without one.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    get(value, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The value at a pointer, to be changed.
pub(super) fn get_mut<'a>(value: &'a mut Value, pointer: &str) -> Option<&'a mut Value> {
    tokens(pointer)
        .iter()
        .try_fold(value, |value, token| match value {
            Value::Object(map) => map.get_mut(token),
            Value::Array(items) => items.get_mut(token.parse::<usize>().ok()?),
            _ => None,
        })
}

/// All values at a pointer.
pub(super) fn find<'a>(value: &'a Value, pointer: &str) -> Vec<&'a Value> {
    tokens(pointer).iter().fold(vec![value], |found, token| {
        found
            .into_iter()
            .flat_map(|value| match (token.as_str(), value) {
                ("*", Value::Array(items)) => items.iter().collect(),
                ("*", Value::Object(map)) => map.values().collect(),
                ("*", _) => Vec::new(),
                _ => step(value, token).into_iter().collect(),
            })
            .collect()
    })
}

/// Calls `act` with every list at a pointer.
pub(super) fn for_each_list(value: &mut Value, pointer: &str, act: &mut impl FnMut(&mut Array)) {
    fn go(value: &mut Value, tokens: &[String], act: &mut impl FnMut(&mut Array)) {
        let Some((token, rest)) = tokens.split_first() else {
            if let Value::Array(items) = value {
                act(items);
            }
            return;
        };
        match value {
            Value::Object(map) if token == "*" => map.values_mut().for_each(|value| go(value, rest, act)),
            Value::Array(items) if token == "*" => items.iter_mut().for_each(|value| go(value, rest, act)),
            Value::Object(map) => {
                if let Some(value) = map.get_mut(token) {
                    go(value, rest, act);
                }
            }
            Value::Array(items) => {
                if let Some(value) = token.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                    go(value, rest, act);
                }
            }
            _ => {}
        }
    }
    go(value, &tokens(pointer), act);
}

/// Removes the value at a pointer.
pub(super) fn remove(value: &mut Value, pointer: &str) {
    fn children(value: &mut Value) -> Vec<&mut Value> {
        match value {
            Value::Object(map) => map.values_mut().collect(),
            Value::Array(items) => items.iter_mut().collect(),
            _ => Vec::new(),
        }
    }
    fn go(value: &mut Value, tokens: &[String]) {
        let Some((token, rest)) = tokens.split_first() else {
            return;
        };
        if token == "**" {
            go(value, rest);
            children(value).into_iter().for_each(|child| go(child, tokens));
            return;
        }
        if rest.is_empty() {
            match value {
                Value::Object(map) if token == "*" => map.clear(),
                Value::Array(items) if token == "*" => items.clear(),
                Value::Object(map) => {
                    map.remove(token);
                }
                Value::Array(items) => {
                    if let Some(index) = token.parse().ok().filter(|index| *index < items.len()) {
                        items.remove(index);
                    }
                }
                _ => {}
            }
        } else if token == "*" {
            children(value).into_iter().for_each(|child| go(child, rest));
        } else {
            match value {
                Value::Object(map) => {
                    if let Some(child) = map.get_mut(token) {
                        go(child, rest);
                    }
                }
                Value::Array(items) => {
                    if let Some(child) = token.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                        go(child, rest);
                    }
                }
                _ => {}
            }
        }
    }
    go(value, &tokens(pointer));
}

/// Puts a value at a pointer; objects on the way are made.
pub(super) fn set(value: &mut Value, pointer: &str, new: Value) {
    let tokens = tokens(pointer);
    let Some((last, parents)) = tokens.split_last() else {
        *value = new;
        return;
    };
    let mut at = value;
    for token in parents {
        let next = match at {
            Value::Object(map) => Some(
                map.entry(token.clone())
                    .or_insert_with(|| Value::Object(shared_json::Map::new())),
            ),
            Value::Array(items) => token.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
            _ => None,
        };
        let Some(next) = next else { return };
        at = next;
    }
    match at {
        Value::Object(map) => {
            map.insert(last.clone(), new);
        }
        Value::Array(items) if last == "-" => items.push(new),
        Value::Array(items) => {
            if let Some(item) = last.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                *item = new;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case("/a/b", json!([1]))]
    #[case("/l/*/n", json!(["x", "y"]))]
    #[case("/a/*", json!([1]))]
    #[case("/none", json!([]))]
    #[case("/sl~1ash", json!([2]))]
    fn finds(#[case] pointer: &str, #[case] expected: Value) {
        let value = json!({"a": {"b": 1}, "l": [{"n": "x"}, {"n": "y"}, {}], "sl/ash": 2});
        assert_eq!(json!(find(&value, pointer)), expected);
    }

    #[rstest]
    #[case("/**/m", json!({"a": {"b": [{}]}, "l": [1, 2]}))]
    #[case("/l/0", json!({"m": 1, "a": {"m": 1, "b": [{"m": 1}]}, "l": [2]}))]
    #[case("/a/*", json!({"m": 1, "a": {}, "l": [1, 2]}))]
    #[case("/x/y", json!({"m": 1, "a": {"m": 1, "b": [{"m": 1}]}, "l": [1, 2]}))]
    fn removes(#[case] pointer: &str, #[case] expected: Value) {
        let mut value = json!({"m": 1, "a": {"m": 1, "b": [{"m": 1}]}, "l": [1, 2]});
        remove(&mut value, pointer);
        assert_eq!(value, expected);
    }

    #[rstest]
    #[case("/a/b", json!({"a": {"b": 9}, "l": [1]}))]
    #[case("/n/e/w", json!({"a": {}, "l": [1], "n": {"e": {"w": 9}}}))]
    #[case("/l/0", json!({"a": {}, "l": [9]}))]
    #[case("/l/-", json!({"a": {}, "l": [1, 9]}))]
    fn sets(#[case] pointer: &str, #[case] expected: Value) {
        let mut value = json!({"a": {}, "l": [1]});
        set(&mut value, pointer, json!(9));
        assert_eq!(value, expected);
    }
}
