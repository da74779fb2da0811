//! Objects.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use crate::Value;

/// A JSON object: its fields ordered by name. A copy costs nothing until one of both is written.
pub struct Map<K = String, V = Value> {
    /// None for an object without fields, which takes no memory.
    fields: Option<Arc<Vec<(K, V)>>>,
}

impl<K, V> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        Self {
            fields: self.fields.clone(),
        }
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self { fields: None }
    }
}

/// The order of two names. Most differ in their first letters, which takes no call to see.
fn order(one: &str, other: &str) -> Ordering {
    let first = one.as_bytes().first().cmp(&other.as_bytes().first());
    first.then_with(|| one.cmp(other))
}

/// Where a name is, or where it would be.
fn place<K: Borrow<str>, V>(fields: &[(K, V)], name: &str) -> Result<usize, usize> {
    // Documents are mostly written in the order of their fields' names.
    match fields.last() {
        None => return Err(0),
        Some((last, _)) => match order(last.borrow(), name) {
            Ordering::Less => return Err(fields.len()),
            Ordering::Equal => return Ok(fields.len() - 1),
            Ordering::Greater => {}
        },
    }
    fields.binary_search_by(|(field, _)| order(field.borrow(), name))
}

/// Where a name is. Few fields are looked through, as most of them differ in their lengths or last letters.
fn find<K: Borrow<str>, V>(fields: &[(K, V)], name: &str) -> Option<usize> {
    const FEW: usize = 12;
    if fields.len() > FEW {
        return place(fields, name).ok();
    }
    let last = name.as_bytes().last();
    fields.iter().position(|(field, _)| {
        let field: &str = field.borrow();
        field.len() == name.len() && field.as_bytes().last() == last && field == name
    })
}

impl Map<String, Value> {
    /// An object without fields.
    #[must_use]
    pub const fn new() -> Self {
        Self { fields: None }
    }

    /// An object without fields, and with room for some.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            fields: (capacity > 0).then(|| Arc::new(Vec::with_capacity(capacity))),
        }
    }

    fn slice(&self) -> &[(String, Value)] {
        self.fields.as_deref().map_or(&[], Vec::as_slice)
    }

    fn slice_mut(&mut self) -> &mut [(String, Value)] {
        match &mut self.fields {
            Some(fields) => Arc::make_mut(fields).as_mut_slice(),
            None => &mut [],
        }
    }

    fn owned(&mut self) -> &mut Vec<(String, Value)> {
        Arc::make_mut(self.fields.get_or_insert_default())
    }

    /// Takes the fields, which are copied if another object has them, too.
    fn into_fields(self) -> Vec<(String, Value)> {
        self.fields.map(Arc::unwrap_or_clone).unwrap_or_default()
    }

    pub(crate) fn from_fields(fields: Vec<(String, Value)>) -> Self {
        Self {
            fields: (!fields.is_empty()).then(|| Arc::new(fields)),
        }
    }

    /// Whether both are the same memory, and so equal.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.fields, &other.fields) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Where in memory the fields are: no other object has them there while this one is. None without fields.
    #[must_use]
    pub fn address(&self) -> Option<usize> {
        self.fields.as_ref().map(|fields| Arc::as_ptr(fields).addr())
    }

    /// How many fields it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slice().len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slice().is_empty()
    }

    /// Takes out all fields.
    pub fn clear(&mut self) {
        self.fields = None;
    }

    /// A field's value.
    #[must_use]
    pub fn get(&self, name: &(impl Borrow<str> + ?Sized)) -> Option<&Value> {
        let fields = self.slice();
        let index = find(fields, name.borrow())?;
        fields.get(index).map(|(_, value)| value)
    }

    /// A field's name and value.
    #[must_use]
    pub fn get_key_value(&self, name: &(impl Borrow<str> + ?Sized)) -> Option<(&String, &Value)> {
        let fields = self.slice();
        let index = find(fields, name.borrow())?;
        fields.get(index).map(|(name, value)| (name, value))
    }

    /// A field's value, to be written.
    pub fn get_mut(&mut self, name: &(impl Borrow<str> + ?Sized)) -> Option<&mut Value> {
        let index = find(self.slice(), name.borrow())?;
        self.slice_mut().get_mut(index).map(|(_, value)| value)
    }

    /// Whether it has a field.
    #[must_use]
    pub fn contains_key(&self, name: &(impl Borrow<str> + ?Sized)) -> bool {
        find(self.slice(), name.borrow()).is_some()
    }

    /// Sets a field; gives what it was.
    pub fn insert(&mut self, name: String, value: Value) -> Option<Value> {
        match place(self.slice(), &name) {
            Ok(index) => {
                let (_, present) = self.slice_mut().get_mut(index)?;
                Some(std::mem::replace(present, value))
            }
            Err(index) => {
                self.owned().insert(index, (name, value));
                None
            }
        }
    }

    /// Takes out a field.
    pub fn remove(&mut self, name: &(impl Borrow<str> + ?Sized)) -> Option<Value> {
        self.remove_entry(name).map(|(_, value)| value)
    }

    /// Takes out a field with its name.
    pub fn remove_entry(&mut self, name: &(impl Borrow<str> + ?Sized)) -> Option<(String, Value)> {
        let index = find(self.slice(), name.borrow())?;
        let fields = self.fields.as_mut()?;
        if fields.len() == 1 {
            return self.fields.take().map(Arc::unwrap_or_clone)?.pop();
        }
        Some(Arc::make_mut(fields).remove(index))
    }

    /// Takes all fields of another object, which is without any then.
    pub fn append(&mut self, other: &mut Self) {
        self.extend(std::mem::take(other));
    }

    /// Keeps the fields for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&String, &mut Value) -> bool) {
        if self.is_empty() {
            return;
        }
        self.owned().retain_mut(|(name, value)| keep(name, value));
        if self.is_empty() {
            self.fields = None;
        }
    }

    /// A field that is there or not.
    pub fn entry(&mut self, name: impl Into<String>) -> Entry<'_> {
        let name = name.into();
        match place(self.slice(), &name) {
            Ok(index) => Entry::Occupied(OccupiedEntry { map: self, index }),
            Err(index) => Entry::Vacant(VacantEntry {
                map: self,
                index,
                name,
            }),
        }
    }

    /// Names and values in order.
    pub fn iter(&self) -> Iter<'_> {
        self.slice().iter().map(pair)
    }

    /// Names and values in order, these to be written.
    pub fn iter_mut(&mut self) -> IterMut<'_> {
        self.slice_mut().iter_mut().map(pair_mut)
    }

    /// The names in order.
    pub fn keys(&self) -> Keys<'_> {
        self.slice().iter().map(key)
    }

    /// The values in the order of their names.
    pub fn values(&self) -> Values<'_> {
        self.slice().iter().map(value)
    }

    /// The values in the order of their names, to be written.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Value> + ExactSizeIterator {
        self.slice_mut().iter_mut().map(|(_, value)| value)
    }

    /// The values in the order of their names.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = Value> + ExactSizeIterator {
        self.into_fields().into_iter().map(|(_, value)| value)
    }

    /// The names in order.
    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = String> + ExactSizeIterator {
        self.into_fields().into_iter().map(|(name, _)| name)
    }
}

type Field = (String, Value);

fn pair(field: &Field) -> (&String, &Value) {
    (&field.0, &field.1)
}

fn pair_mut(field: &mut Field) -> (&String, &mut Value) {
    (&field.0, &mut field.1)
}

fn key(field: &Field) -> &String {
    &field.0
}

fn value(field: &Field) -> &Value {
    &field.1
}

/// An object's fields.
pub type Iter<'a> = std::iter::Map<std::slice::Iter<'a, Field>, fn(&Field) -> (&String, &Value)>;
/// An object's fields, to be written.
pub type IterMut<'a> =
    std::iter::Map<std::slice::IterMut<'a, Field>, fn(&mut Field) -> (&String, &mut Value)>;
/// An object's names.
pub type Keys<'a> = std::iter::Map<std::slice::Iter<'a, Field>, fn(&Field) -> &String>;
/// An object's values.
pub type Values<'a> = std::iter::Map<std::slice::Iter<'a, Field>, fn(&Field) -> &Value>;
/// The fields of what was an object.
pub type IntoIter = std::vec::IntoIter<Field>;

impl IntoIterator for Map<String, Value> {
    type Item = (String, Value);
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        self.into_fields().into_iter()
    }
}

impl<'a> IntoIterator for &'a Map<String, Value> {
    type Item = (&'a String, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Map<String, Value> {
    type Item = (&'a String, &'a mut Value);
    type IntoIter = IterMut<'a>;

    fn into_iter(self) -> IterMut<'a> {
        self.iter_mut()
    }
}

impl Extend<(String, Value)> for Map<String, Value> {
    fn extend<T: IntoIterator<Item = (String, Value)>>(&mut self, fields: T) {
        for (name, value) in fields {
            self.insert(name, value);
        }
    }
}

impl FromIterator<(String, Value)> for Map<String, Value> {
    fn from_iter<T: IntoIterator<Item = (String, Value)>>(fields: T) -> Self {
        let fields = fields.into_iter();
        let mut map = Self::with_capacity(fields.size_hint().0);
        map.extend(fields);
        if map.is_empty() {
            map.fields = None;
        }
        map
    }
}

impl PartialEq for Map<String, Value> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.slice() == other.slice()
    }
}

impl Eq for Map<String, Value> {}

impl fmt::Debug for Map<String, Value> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<Q: Borrow<str> + ?Sized> Index<&Q> for Map<String, Value> {
    type Output = Value;

    /// # Panics
    /// If there is no such field.
    fn index(&self, name: &Q) -> &Value {
        match self.get(name.borrow()) {
            Some(value) => value,
            None => panic!("no field {:?}", name.borrow()),
        }
    }
}

impl<Q: Borrow<str> + ?Sized> IndexMut<&Q> for Map<String, Value> {
    /// # Panics
    /// If there is no such field.
    fn index_mut(&mut self, name: &Q) -> &mut Value {
        match self.get_mut(name.borrow()) {
            Some(value) => value,
            None => panic!("no field {:?}", name.borrow()),
        }
    }
}

/// A field that is there or not.
#[derive(Debug)]
pub enum Entry<'a> {
    /// It is there.
    Occupied(OccupiedEntry<'a>),
    /// It is not.
    Vacant(VacantEntry<'a>),
}

/// A field that is there.
#[derive(Debug)]
pub struct OccupiedEntry<'a> {
    map: &'a mut Map<String, Value>,
    index: usize,
}

/// A field that is not there.
#[derive(Debug)]
pub struct VacantEntry<'a> {
    map: &'a mut Map<String, Value>,
    index: usize,
    name: String,
}

impl<'a> OccupiedEntry<'a> {
    /// Its value.
    #[must_use]
    pub fn get(&self) -> &Value {
        &self.map.slice()[self.index].1
    }

    /// Its value, to be written.
    pub fn get_mut(&mut self) -> &mut Value {
        &mut self.map.slice_mut()[self.index].1
    }

    /// Its value, to be written for as long as the object is.
    #[must_use]
    pub fn into_mut(self) -> &'a mut Value {
        &mut self.map.slice_mut()[self.index].1
    }

    /// Sets it; gives what it was.
    pub fn insert(&mut self, value: Value) -> Value {
        std::mem::replace(self.get_mut(), value)
    }

    /// Takes it out.
    #[must_use]
    pub fn remove(self) -> Value {
        self.map.owned().remove(self.index).1
    }
}

impl<'a> VacantEntry<'a> {
    /// Sets it.
    pub fn insert(self, value: Value) -> &'a mut Value {
        let fields = self.map.owned();
        fields.insert(self.index, (self.name, value));
        &mut fields[self.index].1
    }
}

impl<'a> Entry<'a> {
    /// Its name.
    #[must_use]
    pub fn key(&self) -> &String {
        match self {
            Self::Occupied(entry) => &entry.map.slice()[entry.index].0,
            Self::Vacant(entry) => &entry.name,
        }
    }

    /// Its value, which is set to `value` if it is not there.
    pub fn or_insert(self, value: Value) -> &'a mut Value {
        self.or_insert_with(|| value)
    }

    /// Its value, which is made if it is not there.
    pub fn or_insert_with(self, make: impl FnOnce() -> Value) -> &'a mut Value {
        match self {
            Self::Occupied(entry) => entry.into_mut(),
            Self::Vacant(entry) => entry.insert(make()),
        }
    }

    /// Changes it if it is there.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut Value)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            change(entry.get_mut());
        }
        self
    }
}
