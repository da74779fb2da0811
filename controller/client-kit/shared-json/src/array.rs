//! Arrays.

use std::fmt;
use std::ops::{Deref, DerefMut};

use ecow::EcoVec;
use serde::ser::{Serialize, Serializer};

use crate::Value;

/// A JSON array. A copy costs nothing until one of both is written.
#[derive(Clone, Default, Eq)]
pub struct Array {
    items: EcoVec<Value>,
}

impl Array {
    /// An array without elements, which takes no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { items: EcoVec::new() }
    }

    /// An array without elements, and with room for some.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            items: EcoVec::with_capacity(capacity),
        }
    }

    /// Whether both are the same memory, and so equal.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len() && (self.is_empty() || self.as_ptr() == other.as_ptr())
    }

    /// How many elements it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Its elements.
    #[must_use]
    pub fn as_slice(&self) -> &[Value] {
        self.items.as_slice()
    }

    /// Adds an element at its end.
    pub fn push(&mut self, item: Value) {
        self.items.push(item);
    }

    /// Takes out the last element.
    pub fn pop(&mut self) -> Option<Value> {
        self.items.pop()
    }

    /// Adds an element in a place.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn insert(&mut self, index: usize, item: Value) {
        self.items.insert(index, item);
    }

    /// Takes out the element in a place.
    ///
    /// # Panics
    /// If there is none.
    pub fn remove(&mut self, index: usize) -> Value {
        self.items.remove(index)
    }

    /// Keeps the first elements.
    pub fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
    }

    /// Takes out all elements.
    pub fn clear(&mut self) {
        self.items = EcoVec::new();
    }

    /// Keeps the elements for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&Value) -> bool) {
        self.items.retain(|item| keep(item));
    }
}

impl Deref for Array {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        self.as_slice()
    }
}

impl DerefMut for Array {
    fn deref_mut(&mut self) -> &mut [Value] {
        self.items.make_mut()
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.as_slice() == other.as_slice()
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl Serialize for Array {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize(serializer)
    }
}

impl From<Vec<Value>> for Array {
    fn from(items: Vec<Value>) -> Self {
        Self { items: items.into() }
    }
}

impl<const N: usize> From<[Value; N]> for Array {
    fn from(items: [Value; N]) -> Self {
        items.into_iter().collect()
    }
}

impl From<Array> for Vec<Value> {
    fn from(array: Array) -> Self {
        array.into_iter().collect()
    }
}

impl FromIterator<Value> for Array {
    fn from_iter<T: IntoIterator<Item = Value>>(items: T) -> Self {
        Self {
            items: items.into_iter().collect(),
        }
    }
}

impl Extend<Value> for Array {
    fn extend<T: IntoIterator<Item = Value>>(&mut self, items: T) {
        self.items.extend(items);
    }
}

impl IntoIterator for Array {
    type Item = Value;
    type IntoIter = ecow::vec::IntoIter<Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a> IntoIterator for &'a Array {
    type Item = &'a Value;
    type IntoIter = std::slice::Iter<'a, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Array {
    type Item = &'a mut Value;
    type IntoIter = std::slice::IterMut<'a, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
