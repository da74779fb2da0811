//! Parts that objects have in common, kept once.
//!
//! The pods of one template differ in a few fields, and so do their statuses. Equal parts share one memory across all of them.
//! A reader of several objects finds the shared part in the processor's cache, and a comparison by address sees that parts are
//! equal.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use shared_json::Value;

use super::size::Size;

/// So many parts are kept: each has one place, which it may lose to another.
const PLACES: usize = 4096;
/// A longer text has memory of its own, a shorter one is within its value.
const TEXT_MIN: usize = 16;
/// Objects with longer texts, or with more fields or elements, are rarely similar to others.
const TEXT_MAX: usize = 1024;
const PARTS_MAX: usize = 64;

/// Interns the parts that objects have in common. Only values that were met twice are kept.
#[derive(Default)]
pub(super) struct Common {
    places: Vec<Place>,
    /// The place of each object and array that is kept, by its address.
    by_address: HashMap<usize, usize, FixedState>,
    /// The planned change of each value under inspection.
    steps: Vec<Step>,
}

#[derive(Default, Clone)]
struct Place {
    /// The number of the value that was last met in this slot.
    met: u64,
    number: u64,
    part: Value,
    /// No fewer bytes than the part has as JSON.
    json: usize,
}

/// The change of one value.
enum Change {
    Nothing,
    /// The value is replaced by an equal one.
    Whole(Value),
    /// Some of its values change: the steps that were noted last.
    Within,
}

/// A change within an object or an array. Steps stand in a row, those within one after it.
struct Step {
    /// The place of the value that changes.
    index: usize,
    /// The new value; on `Err`, the number of following steps that are about its parts.
    part: Result<Value, usize>,
}

/// The result of looking at a value.
struct Seen {
    /// Made from the content, so that each run shares the same parts. `None`: the value was not looked at.
    number: Option<u64>,
    change: Change,
    size: Size,
}

fn mix(number: u64, word: u64) -> u64 {
    (number.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word)
}

fn number_of_text(text: &str) -> u64 {
    let words = text.as_bytes().chunks(8);
    let start = u64::try_from(text.len()).unwrap_or_default();
    words.fold(mix(3, start), |number, bytes| mix(number, word(bytes)))
}

/// Where in memory an object or an array is.
fn address(value: &Value) -> Option<usize> {
    match value {
        Value::Array(items) => (!items.is_empty()).then(|| items.as_ptr().addr()),
        Value::Object(map) => map.address(),
        _ => None,
    }
}

/// Whether two equal values are one memory.
fn is_one_memory(value: &Value, equal: &Value) -> bool {
    match (value, equal) {
        (Value::String(one), Value::String(other)) => one.as_ptr() == other.as_ptr(),
        _ => address(value) == address(equal),
    }
}

fn place_of(number: u64) -> usize {
    usize::try_from(number >> 40).unwrap_or_default() % PLACES
}

/// Whether a value has no memory besides its own, which could be another's.
fn is_within_its_value(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text.len() < TEXT_MIN,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// A number for a value without parts, made from its content.
fn number_of_leaf(value: &Value) -> u64 {
    match value {
        Value::Null => 1,
        Value::Bool(is) => 11 + u64::from(*is),
        Value::Number(number) => {
            let bits = number
                .as_i64()
                .map(i64::cast_unsigned)
                .or_else(|| number.as_u64());
            mix(
                5,
                bits.unwrap_or_else(|| number.as_f64().unwrap_or_default().to_bits()),
            )
        }
        Value::String(text) => number_of_text(text),
        Value::Array(_) => 13,
        Value::Object(_) => 17,
    }
}

/// Whether applying these steps to `value` gives `known`.
fn is_outcome(known: &Value, value: &Value, steps: &[Step]) -> bool {
    let mut steps = steps.iter().peekable();
    let mut same =
        |index: usize, known: &Value, value: &Value| match steps.next_if(|step| step.index == index) {
            Some(step) => step.part.as_ref().is_ok_and(|part| known.is_same(part)),
            None => known.is_same(value),
        };
    match (known, value) {
        (Value::String(known), Value::String(text)) => known == text,
        (Value::Array(known), Value::Array(items)) => {
            known.len() == items.len()
                && std::iter::zip(known, items)
                    .enumerate()
                    .all(|(index, (known, value))| same(index, known, value))
        }
        (Value::Object(known), Value::Object(map)) => {
            known.len() == map.len()
                && std::iter::zip(known, map)
                    .enumerate()
                    .all(|(index, ((name, known), (other, value)))| {
                        name == other && same(index, known, value)
                    })
        }
        _ => false,
    }
}

/// The change that these steps make.
fn change_by(steps: &[Step]) -> Change {
    match steps {
        [] => Change::Nothing,
        _ => Change::Within,
    }
}

/// Takes so many steps within a value.
fn take(value: &mut Value, steps: &mut impl Iterator<Item = Step>, count: usize) {
    let mut left = count;
    while let Some(step) = (left > 0).then(|| steps.next()).flatten() {
        left -= 1;
        let part = match value {
            Value::Array(items) => items.get_mut(step.index),
            Value::Object(map) => map.values_mut().nth(step.index),
            _ => None,
        };
        match (part, step.part) {
            (Some(part), Ok(known)) => *part = known,
            (Some(part), Err(within)) => {
                take(part, steps, within);
                left -= within;
            }
            // A step is about what was looked at.
            (None, _) => {}
        }
    }
}

impl Common {
    /// Replaces each part by an equal interned one. Parts that share memory with `old`, the previous version, are skipped.
    pub(super) fn share(&mut self, value: &mut Value, old: Option<&Value>) -> Size {
        self.places.resize(PLACES, Place::default());
        let seen = self.look(value, old);
        self.make(value, seen.change, 0);
        seen.size
    }

    /// Makes a change whose steps are those from `start` on.
    fn make(&mut self, value: &mut Value, change: Change, start: usize) {
        match change {
            Change::Nothing => {}
            Change::Whole(part) => *value = part,
            Change::Within => {
                let count = self.steps.len() - start;
                take(value, &mut self.steps.drain(start..), count);
            }
        }
    }

    fn look(&mut self, value: &Value, old: Option<&Value>) -> Seen {
        let same = old.filter(|old| old.is_same(value));
        if let Some(old) = same {
            let change = match (value, old) {
                (Value::String(text), Value::String(before))
                    if text.len() >= TEXT_MIN && text.as_ptr() != before.as_ptr() =>
                {
                    Change::Whole(old.clone())
                }
                _ => Change::Nothing,
            };
            return Seen {
                number: match address(value) {
                    Some(_) => self.kept(value).map(|place| place.number),
                    None => Some(number_of_leaf(value)),
                },
                change,
                size: Size::default(),
            };
        }
        if let Some(place) = self.kept(value) {
            return Seen {
                number: Some(place.number),
                change: Change::Nothing,
                size: Size {
                    fresh: 0,
                    json: place.json,
                },
            };
        }
        let start = self.steps.len();
        let mut size = Size::of_shell(value);
        let number = match value {
            Value::Array(items) if !items.is_empty() => {
                let each = items.iter().enumerate();
                let each = each.map(|(index, item)| (item, old.and_then(|old| old.get(index))));
                self.look_within(mix(13, 0), each, &mut size)
            }
            Value::Object(map) if !map.is_empty() => {
                let old = old.and_then(Value::as_object);
                let names = map.keys().fold(17, |number, name| mix(number, name.number()));
                let each = map.iter().enumerate();
                let each = each
                    .map(|(index, (name, value))| (value, old.and_then(|old| old.get_named(name, index))));
                self.look_within(names, each, &mut size)
            }
            other => Some(number_of_leaf(other)),
        };
        match number {
            Some(number) => self.find(value, number, start, size),
            // A part of it is this object's alone, so it is, too.
            None => Seen {
                number,
                change: change_by(self.steps.get(start..).unwrap_or_default()),
                size,
            },
        }
    }

    /// The place of a value that is a kept part itself, and not only equal to one.
    fn kept(&self, value: &Value) -> Option<&Place> {
        let index = self.by_address.get(&address(value)?)?;
        self.places.get(*index)
    }

    fn look_within<'a>(
        &mut self,
        start: u64,
        parts: impl Iterator<Item = (&'a Value, Option<&'a Value>)>,
        size: &mut Size,
    ) -> Option<u64> {
        let mut number = Some(start);
        for (index, (value, old)) in parts.enumerate() {
            if is_within_its_value(value) {
                number = number.map(|number| mix(number, number_of_leaf(value)));
                if !old.is_some_and(|old| old.is_same(value)) {
                    size.add(Size::of_shell(value));
                }
                continue;
            }
            let at = self.steps.len();
            // What comes of it is known after what is within.
            self.steps.push(Step { index, part: Err(0) });
            let seen = self.look(value, old);
            number = number.zip(seen.number).map(|(number, part)| mix(number, part));
            size.add(seen.size);
            let part = match seen.change {
                Change::Nothing => None,
                Change::Whole(part) => Some(Ok(part)),
                Change::Within => Some(Err(self.steps.len() - at - 1)),
            };
            match (self.steps.get_mut(at), part) {
                (Some(step), Some(part)) => step.part = part,
                _ => self.steps.truncate(at),
            }
        }
        number
    }

    /// Finds the interned value that equals this one; interns the value itself if it was met before. `start`: the first step
    /// inside it.
    fn find(&mut self, value: &Value, number: u64, start: usize, size: Size) -> Seen {
        let is_common = match value {
            Value::String(text) => (TEXT_MIN..=TEXT_MAX).contains(&text.len()),
            Value::Array(items) => (1..=PARTS_MAX).contains(&items.len()),
            Value::Object(map) => (1..=PARTS_MAX).contains(&map.len()),
            _ => false,
        };
        let steps = self.steps.get(start..).unwrap_or_default();
        let change = change_by(steps);
        let index = place_of(number);
        let known = self.places.get_mut(index).filter(|_| is_common);
        if let Some(place) = &known
            && place.number == number
            && is_outcome(&place.part, value, steps)
        {
            let part = place.part.clone();
            self.steps.truncate(start);
            return Seen {
                number: Some(number),
                change: match is_one_memory(value, &part) {
                    true => Change::Nothing,
                    false => Change::Whole(part),
                },
                size: Size { fresh: 0, ..size },
            };
        }
        let is_met_again = known.is_some_and(|place| std::mem::replace(&mut place.met, number) == number);
        if !is_met_again {
            return Seen {
                number: Some(number),
                change,
                size,
            };
        }
        let mut part = value.clone();
        self.make(&mut part, change, start);
        self.keep(index, number, &part);
        Seen {
            number: Some(number),
            change: match is_one_memory(value, &part) {
                true => Change::Nothing,
                false => Change::Whole(part),
            },
            size,
        }
    }

    fn keep(&mut self, index: usize, number: u64, part: &Value) {
        if let Some(place) = self.places.get_mut(index) {
            if let Some(lost) = address(&place.part) {
                self.by_address.remove(&lost);
            }
            if let Some(address) = address(part) {
                self.by_address.insert(address, index);
            }
            place.number = number;
            place.json = Size::of(part, None).json;
            place.part = part.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shared_json::json;

    use super::*;

    fn pod(number: usize) -> Value {
        json!({
            "metadata": {"name": format!("pod-{number}"), "uid": format!("uid-of-a-pod-{number:08}"), "labels": {"app": "web"}},
            "spec": {"nodeName": format!("node-{}", number % 3), "tolerations": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        })
    }

    #[test]
    fn what_was_met_twice_is_kept_and_then_shared() {
        let mut common = Common::default();
        let pods: Vec<Value> = (0..8)
            .map(|number| {
                let mut value = pod(number);
                let size = common.share(&mut value, None);
                assert_eq!(value, pod(number));
                assert_eq!(size.json, Size::of(&value, None).json);
                assert!(number < 6 || size.fresh < size.json * 2 / 3, "{size:?}");
                value
            })
            .collect();
        let [.., one, other] = pods.as_slice() else {
            panic!("8 pods")
        };
        for path in [
            "/metadata/labels",
            "/spec/tolerations",
            "/status",
            "/status/conditions/0",
        ] {
            let part = |pod: &Value| pod.pointer(path).cloned().expect("a part");
            assert!(part(one).is_same(&part(other)), "{path}");
        }
        assert!(!one["metadata"].is_same(&other["metadata"]));
    }

    #[test]
    fn what_a_version_shares_with_the_one_before_is_not_looked_at() {
        let mut common = Common::default();
        let mut old = pod(1);
        common.share(&mut old, None);
        let mut new = old.clone();
        new["status"]["phase"] = json!("Running");
        new["metadata"]["uid"] = json!("uid-of-a-pod-00000001");
        let size = common.share(&mut new, Some(&old));
        assert!(size.json < Size::of(&new, None).json / 2, "{size:?}");
        assert!(new["spec"].is_same(&old["spec"]));
        let text = |pod: &Value| pod["metadata"]["uid"].as_str().map(str::as_ptr);
        assert_eq!(text(&new), text(&old), "equal texts are the same memory");
    }

    #[test]
    fn what_is_one_memory_already_stays_where_it_is() {
        let mut common = Common::default();
        let status = pod(0)["status"].clone();
        for number in 0..6 {
            let mut value = pod(number);
            value["status"] = status.clone();
            common.share(&mut value, None);
            assert_eq!(address(&value["status"]), address(&status), "{number}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-2..3_i64).prop_map(Value::from),
            Just(json!(0.5)),
            prop_oneof![
                "a",
                "a text that is longer than a few",
                "another text that is as long"
            ]
            .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((prop_oneof!["a", "b", "c"], inner), 0..4)
                    .prop_map(|fields| fields.into_iter().collect::<Value>()),
            ]
        })
    }

    proptest! {
        #[test]
        fn nothing_is_changed(all in prop::collection::vec(values(), 1..12)) {
            let mut common = Common::default();
            let mut old: Option<Value> = None;
            for (index, original) in all.iter().chain(&all).chain(&all).enumerate() {
                let mut value = original.clone();
                let before = old.as_ref().filter(|_| index % 2 == 0);
                let counted = Size::of(&value, before);
                let size = common.share(&mut value, before);
                prop_assert_eq!(&value, original);
                prop_assert!(size.json >= counted.json && size.json <= Size::of(&value, None).json);
                prop_assert!(before.is_some() || size.json == counted.json);
                prop_assert!(size.fresh <= counted.fresh);
                old = Some(value);
            }
        }
    }
}
