//! The facts that OpenAPI's types leave out: merge keys and strategies of fields, and their treatment by Go's encoder.
//!
//! `facts.txt` holds one definition per unindented line and one field per indented line, only where there is something to say:
//!
//! | word | says |
//! | --- | --- |
//! | `w` | always written, null and zero values included (no `omitempty`) |
//! | `z` | left out when it is the zero value (`omitzero`) |
//! | `p` | a pointer: a written zero stays |
//! | `t=` | the name of a scalar's Go type |
//! | `list=`, `keys=`, `map=` | `x-kubernetes-list-type`, `-list-map-keys`, `-map-type` |
//! | `patch=`, `key=` | `x-kubernetes-patch-strategy`, `-patch-merge-key` |
//! | `default=` | the default in OpenAPI v3, where it is not the zero value |
//! | `zero=` | the default in OpenAPI v3, where it is the zero value of a field that may be left out |
//! | `enum=` | the values, `\|` between them, `_` for a space |
//! | `items=` | the values of the items of the list or map, likewise (published in OpenAPI only) |
//!
//! Origin: OpenAPI v2 and v3 as a running kube-apiserver 1.36.2 answers them, and the field tags of `k8s.io/api`,
//! `k8s.io/apimachinery`, `k8s.io/apiextensions-apiserver` and `k8s.io/kube-aggregator`, for the served versions.

use super::schema::{PatchStrategy, Written};
use shared_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The facts about one definition.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) atomic: bool,
    pub(super) fields: BTreeMap<&'static str, FieldFacts>,
}

/// The facts about one field.
#[derive(Debug, Default)]
pub(super) struct FieldFacts {
    pub(super) list: Option<&'static str>,
    pub(super) keys: Vec<&'static str>,
    pub(super) map: Option<&'static str>,
    pub(super) patch: PatchStrategy,
    pub(super) default: Option<Value>,
    pub(super) allowed: Vec<Value>,
    pub(super) allowed_items: Vec<Value>,
    pub(super) zero: Option<Value>,
    pub(super) written: Written,
    pub(super) pointer: bool,
    pub(super) go_type: Option<&'static str>,
}

/// The facts of a definition, parsed when asked for.
pub(super) fn of(definition: &str) -> Facts {
    static INDEX: OnceLock<BTreeMap<&'static str, &'static str>> = OnceLock::new();
    let index = INDEX.get_or_init(|| index(include_str!("facts.txt")));
    index
        .get(definition)
        .map(|block| parse(block))
        .unwrap_or_default()
}

/// Cuts the text into one block per definition.
fn index(text: &'static str) -> BTreeMap<&'static str, &'static str> {
    let mut blocks = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = next_definition(rest);
        let (block, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if let Some(name) = block.split_whitespace().next() {
            blocks.insert(name, block);
        }
        rest = tail;
    }
    blocks
}

/// Where the second unindented line starts.
fn next_definition(text: &str) -> usize {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at > 0 && !line.starts_with(' ') {
            return at;
        }
        at += line.len();
    }
    at
}

fn parse(block: &'static str) -> Facts {
    let mut lines = block.lines();
    let mut facts = Facts {
        atomic: lines.next().is_some_and(|head| head.ends_with(" map=atomic")),
        ..Facts::default()
    };
    for line in lines {
        let mut words = line.split_whitespace();
        if let Some(name) = words.next() {
            facts.fields.insert(name, words.fold(FieldFacts::default(), word));
        }
    }
    facts
}

fn word(mut facts: FieldFacts, word: &'static str) -> FieldFacts {
    match word.split_once('=').unwrap_or((word, "")) {
        ("w", _) => facts.written = Written::Always,
        ("z", _) => facts.written = Written::UnlessZero,
        ("p", _) => facts.pointer = true,
        ("t", name) => facts.go_type = Some(name),
        ("list", kind) => facts.list = Some(kind),
        ("keys", keys) => facts.keys = keys.split(',').collect(),
        ("map", kind) => facts.map = Some(kind),
        ("patch", strategy) => {
            facts.patch.replace = strategy == "replace";
            facts.patch.merge = strategy.contains("merge");
            facts.patch.retain_keys = strategy.contains("retainKeys");
        }
        ("key", key) => facts.patch.key = Some(key.to_owned()),
        ("zero", json) => facts.zero = shared_json::from_str(json).ok(),
        ("default", json) => facts.default = shared_json::from_str(json).ok(),
        ("enum", values) => facts.allowed = alternatives(values),
        ("items", values) => facts.allowed_items = alternatives(values),
        _ => {}
    }
    facts
}

fn alternatives(values: &str) -> Vec<Value> {
    values
        .split('|')
        .map(|value| Value::from(value.replace('_', " ")))
        .collect()
}
