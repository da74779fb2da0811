//! A compact key for the difference of two versions of an object, quick to compute and compare.
//!
//! Programs write the same fields again and again, into the same object or into a similar one. Such a write changes
//! the same set of paths each time. The key (trace) is a row of words from which that set follows, and is computed without
//! paths; the set is then found again.

use std::cell::RefCell;

use shared_json::{Map, Name, Value};

use super::compare::{Comparison, differing, items, kind};
use super::memo::{Spans, number_of};
use super::types::{List, MapShape, Shape, Type, same};

/// Longer traces are not remembered.
const LENGTH_MAX: usize = 1024;
/// So many traces are remembered anew before those are forgotten that have not been met since.
const KNOWN_MAX: usize = 128;
/// Lists of more items, and items of more keys, have no trace.
const ITEMS_MAX: usize = 16;
const KEYS_MAX: usize = 4;

// Words that are no address: what follows, or what has come to its end, and the flags of that.
const TEXT: u64 = 1 << 60;
const NUMBER: u64 = 2 << 60;
const ITEM: u64 = 3 << 60;
const END: u64 = 4 << 60;

const REMOVED: u64 = 1;
const MODIFIED: u64 = 2;
const ADDED: u64 = 4;

/// The difference of two values has no trace; the paths must be computed.
struct Untraceable;

type Traced<T> = Result<T, Untraceable>;

/// The values of the keys of an item.
type Keys<'v> = [Option<&'v Value>; KEYS_MAX];

/// Comparisons by the numbers of their traces.
type Known = Spans<u64, (Box<[u64]>, Comparison)>;

thread_local! {
    static TRACE: RefCell<Vec<u64>> = RefCell::default();
    static KNOWN: RefCell<Known> = const { RefCell::new(Spans::new(KNOWN_MAX)) };
}

/// The difference of two objects of a built-in kind: from the cache if its trace was met before, else by `compare`.
pub(super) fn recall(
    of: Type<'_>,
    old: &Value,
    new: &Value,
    compare: impl FnOnce() -> Comparison,
) -> Comparison {
    // Only the types of built-in kinds are where they are as long as the process runs.
    let Type::Known(schema, false) = of else {
        return compare();
    };
    if schema.name.is_none() {
        return compare();
    }
    let mut words = TRACE.take();
    words.clear();
    words.push(u64::try_from(std::ptr::from_ref(schema).addr()).unwrap_or_default());
    let traced = walk(&mut words, of, Some(old), Some(new));
    let found = match traced {
        Ok(flags) if words.len() < LENGTH_MAX => {
            words.push(END | flags);
            find(&words, compare)
        }
        _ => compare(),
    };
    TRACE.set(words);
    found
}

fn find(words: &[u64], compare: impl FnOnce() -> Comparison) -> Comparison {
    let number = number_of(words);
    let met = KNOWN.with_borrow_mut(|known| {
        known
            .get(&number)
            .map(|(other, found)| (**other == *words).then(|| found.clone()))
    });
    match met {
        Some(Some(found)) => {
            debug_assert_eq!(found, compare(), "a trace stands for one comparison");
            found
        }
        // Another trace has the same number: it need not be hard to find one.
        Some(None) => compare(),
        None => {
            let found = compare();
            KNOWN.with_borrow_mut(|known| {
                if known.is_met_again(&number) {
                    known.put(number, (words.into(), found.clone()));
                }
            });
            found
        }
    }
}

fn walk(words: &mut Vec<u64>, of: Type<'_>, old: Option<&Value>, new: Option<&Value>) -> Traced<u64> {
    if old == new {
        return Ok(0);
    }
    walk_changed(words, of, old, new)
}

fn walk_changed(words: &mut Vec<u64>, of: Type<'_>, old: Option<&Value>, new: Option<&Value>) -> Traced<u64> {
    let shape = of.shape(new.or(old));
    if old.is_some() && new.is_some() && kind(of.shape(old)) != kind(shape) {
        return Err(Untraceable);
    }
    let leaf = || match (old, new) {
        (None, _) => ADDED,
        (_, None) => REMOVED,
        (Some(old), Some(new)) if same(old, new) => 0,
        _ => MODIFIED,
    };
    match shape {
        Shape::Scalar(_) => return Ok(leaf()),
        Shape::List(list) => {
            let (before, after) = (items(old), items(new));
            if list.atomic() || (before.is_empty() && after.is_empty()) {
                return Ok(leaf());
            }
            walk_items(words, list, before, after)?;
        }
        Shape::Map(map) => {
            let (before, after) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            let empty = before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty);
            if map.atomic || empty {
                return Ok(leaf());
            }
            walk_fields(words, map, before, after)?;
        }
    }
    Ok(match (old, new) {
        (None, _) => ADDED,
        (_, None) => REMOVED,
        _ => 0,
    })
}

/// Traces the parts below a step; leaves the step out where no part differs.
fn step(
    words: &mut Vec<u64>,
    name: impl FnOnce(&mut Vec<u64>) -> Traced<()>,
    below: impl FnOnce(&mut Vec<u64>) -> Traced<u64>,
) -> Traced<()> {
    let start = words.len();
    if start > LENGTH_MAX {
        return Err(Untraceable);
    }
    name(words)?;
    let inside = words.len();
    let flags = below(words)?;
    if flags == 0 && words.len() == inside {
        words.truncate(start);
    } else {
        words.push(END | flags);
    }
    Ok(())
}

fn walk_fields(
    words: &mut Vec<u64>,
    shape: MapShape<'_>,
    before: Option<&Map>,
    after: Option<&Map>,
) -> Traced<()> {
    for (name, old, new) in differing(before, after) {
        let Some(of) = shape.child(name) else { continue };
        step(
            words,
            |words| {
                push_name(words, name);
                Ok(())
            },
            |words| walk_changed(words, of, old, new),
        )?;
    }
    Ok(())
}

fn walk_items(words: &mut Vec<u64>, list: List<'_>, before: &[Value], after: &[Value]) -> Traced<()> {
    let (mut old_keys, mut new_keys) = ([[None; KEYS_MAX]; ITEMS_MAX], [[None; KEYS_MAX]; ITEMS_MAX]);
    let old_keys = keys(list, before, &mut old_keys)?;
    let new_keys = keys(list, after, &mut new_keys)?;
    let of = list.items();
    for (at, (item, key)) in after.iter().zip(new_keys).enumerate() {
        // Most items stay where they are.
        let there = match old_keys.get(at) {
            Some(other) if other == key => Some(at),
            _ => old_keys.iter().position(|other| other == key),
        };
        let old = there.and_then(|there| before.get(there));
        step(
            words,
            |words| push_keys(words, key),
            |words| walk(words, of, old, Some(item)),
        )?;
    }
    for (item, key) in before.iter().zip(old_keys) {
        if !new_keys.contains(key) {
            step(
                words,
                |words| push_keys(words, key),
                |words| walk(words, of, Some(item), None),
            )?;
        }
    }
    Ok(())
}

/// The keys of all items, which must be different.
fn keys<'k, 'v>(
    list: List<'_>,
    items: &'v [Value],
    room: &'k mut [Keys<'v>; ITEMS_MAX],
) -> Traced<&'k [Keys<'v>]> {
    let keys = room.get_mut(..items.len()).ok_or(Untraceable)?;
    for (at, item) in items.iter().enumerate() {
        let key = list.key_values(item).ok_or(Untraceable)?;
        if keys.get(..at).is_some_and(|others| others.contains(&key)) {
            return Err(Untraceable);
        }
        if let Some(place) = keys.get_mut(at) {
            *place = key;
        }
    }
    Ok(keys)
}

fn push_name(words: &mut Vec<u64>, name: &Name) {
    match name.kept_at().and_then(|at| u64::try_from(at).ok()) {
        Some(at) => words.push(at),
        None => push_text(words, name),
    }
}

fn push_text(words: &mut Vec<u64>, text: &str) {
    words.push(TEXT | u64::try_from(text.len()).unwrap_or_default());
    let (whole, rest) = text.as_bytes().as_chunks::<8>();
    words.extend(whole.iter().map(|word| u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        words.push(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
}

fn push_keys(words: &mut Vec<u64>, keys: &Keys<'_>) -> Traced<()> {
    words.push(ITEM);
    for key in keys.iter().flatten() {
        match key {
            Value::String(text) => push_text(words, text),
            Value::Number(number) => {
                words.push(NUMBER);
                words.push(number.as_i64().ok_or(Untraceable)?.cast_unsigned());
            }
            _ => return Err(Untraceable),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use client_kit::{Random, Seed};
    use shared_json::json;

    use super::super::compare::compare;
    use super::*;
    use crate::types::builtin;

    fn pick<T: Clone>(random: &mut Random, of: &[T]) -> T {
        let count = u64::try_from(of.len()).expect("a count");
        of[usize::try_from(random.below(count)).expect("an index")].clone()
    }

    /// Items with few keys and few values, so that equal ones meet, some keys twice, and some none.
    fn items(random: &mut Random, key: &str, more: &str) -> Value {
        let values = [
            json!("a"),
            json!("b"),
            json!(null),
            json!({}),
            json!([]),
            json!({"x": "1"}),
        ];
        let names = [
            json!("a"),
            json!("b"),
            json!("c-10-20"),
            json!(80),
            json!(80.0),
            json!(null),
        ];
        let item = |random: &mut Random| {
            let mut item = json!({});
            for (field, of) in [(key, &names[..pick(random, &[3, 3, 3, 6])]), (more, &values)] {
                if random.below(5) != 0 {
                    item[field] = pick(random, of);
                }
            }
            item
        };
        (0..random.below(4)).map(|_| item(random)).collect()
    }

    fn pod(random: &mut Random) -> Value {
        let mut pod = json!({"metadata": {}, "spec": {}, "status": {}});
        for (part, field, key, more) in [
            ("metadata", "ownerReferences", "uid", "kind"),
            ("spec", "containers", "name", "image"),
            ("spec", "tolerations", "key", "value"),
            ("spec", "volumes", "name", "emptyDir"),
            ("status", "conditions", "type", "status"),
        ] {
            if random.below(3) == 0 {
                pod[part][field] = items(random, key, more);
            }
        }
        for (part, field) in [
            ("metadata", "labels"),
            ("spec", "nodeName"),
            ("status", "startTime"),
            ("unknown", "x"),
        ] {
            if random.below(3) == 0 {
                pod[part][field] = pick(
                    random,
                    &[
                        json!("a"),
                        json!({"b": "c", "d-1-2-3": "e"}),
                        json!({}),
                        json!(null),
                    ],
                );
            }
        }
        pod
    }

    #[test]
    fn a_trace_stands_for_one_comparison() {
        let schema = builtin(("", "v1", "Pod")).expect("a schema");
        let of = Type::Known(&schema, false);
        let mut random = Seed(11).random();
        let mut known: HashMap<Vec<u64>, Comparison> = HashMap::new();
        let (mut met, mut untraceable) = (0, 0);
        for _ in 0..20_000 {
            let (old, new) = (pod(&mut random), pod(&mut random));
            let found = compare(of, &old, &new);
            let mut words = Vec::new();
            let Ok(flags) = walk(&mut words, of, Some(&old), Some(&new)) else {
                untraceable += 1;
                continue;
            };
            words.push(flags);
            match known.get(&words) {
                Some(before) => {
                    met += 1;
                    assert_eq!(*before, found, "{old} {new}");
                }
                None => drop(known.insert(words, found)),
            }
        }
        assert!(
            met > 300 && known.len() > 4000 && untraceable > 1000,
            "{met} {} {untraceable}",
            known.len()
        );
    }

    #[test]
    fn what_was_met_twice_is_the_same_memory() {
        let schema = builtin(("", "v1", "ConfigMap")).expect("a schema");
        let of = Type::Known(&schema, false);
        let added = |value: &str| {
            let new = json!({"data": {"a": value}, "metadata": {"name": value}});
            compare(of, &json!({}), &new).added
        };
        let (_, second, third) = (added("x"), added("y"), added("z"));
        assert_eq!(second.address(), third.address());
        assert_eq!(
            third,
            super::super::FieldSet::of(&[&["data"], &["data", "a"], &["metadata"], &["metadata", "name"]])
        );
    }
}
