//! Objects.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Index, IndexMut};

use ecow::EcoVec;

use crate::name::Glance;
use crate::{Name, Value};

/// A JSON object: its fields ordered by name. A copy costs nothing until one of both is written.
#[derive(Clone, Default)]
pub struct Map {
    /// Without any they take no memory.
    fields: EcoVec<Field>,
}

type Field = (Name, Value);

/// Where a name is, or where it would be.
fn place(fields: &[Field], name: &str) -> Result<usize, usize> {
    let glance = Glance::of(name);
    // Documents are mostly written in the order of their fields' names.
    match fields.last() {
        None => return Err(0),
        Some((last, _)) => match last.order(glance, name) {
            Ordering::Less => return Err(fields.len()),
            Ordering::Equal => return Ok(fields.len() - 1),
            Ordering::Greater => {}
        },
    }
    fields.binary_search_by(|(field, _)| field.order(glance, name))
}

/// Objects of no more fields than these are looked through, larger ones are searched.
const FEW: usize = 16;

/// Where a name is.
#[inline]
fn find(fields: &[Field], name: &str) -> Option<usize> {
    find_seen(fields, Glance::of(name), name)
}

/// Where a name is, which looks so.
fn find_seen(fields: &[Field], glance: Glance, name: &str) -> Option<usize> {
    if fields.len() > FEW {
        return place(fields, name).ok();
    }
    // No text is read before one looks alike, and then it is nearly always this one.
    let at = fields.iter().position(|(field, _)| field.glance() == glance)?;
    let (field, _) = fields.get(at)?;
    if field.is_text(name) {
        return Some(at);
    }
    find_after(fields, at, name)
}

/// Where a name is behind one that only looks like it.
#[cold]
fn find_after(fields: &[Field], at: usize, name: &str) -> Option<usize> {
    let rest = fields.iter().enumerate().skip(at + 1);
    rest.into_iter()
        .find(|(_, (field, _))| field == name)
        .map(|(at, _)| at)
}

impl Map {
    /// An object without fields.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            fields: EcoVec::new(),
        }
    }

    /// An object without fields, and with room for some.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            fields: EcoVec::with_capacity(capacity),
        }
    }

    fn slice(&self) -> &[Field] {
        self.fields.as_slice()
    }

    fn slice_mut(&mut self) -> &mut [Field] {
        self.fields.make_mut()
    }

    pub(crate) fn from_fields(fields: Vec<Field>) -> Self {
        Self {
            fields: fields.into(),
        }
    }

    /// Whether both are the same memory, and so equal.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len() && (self.is_empty() || self.slice().as_ptr() == other.slice().as_ptr())
    }

    /// Whether both have the same fields with values in the same memory, or small and alike. False says nothing.
    #[must_use]
    pub fn is_alike(&self, other: &Self) -> bool {
        self.is_same(other)
            || self.len() == other.len()
                && std::iter::zip(self, other)
                    .all(|((one, value), (other, others))| one == other && value.is_same(others))
    }

    /// Where in memory the fields are: no other object has them there while this one is. None without fields.
    #[must_use]
    pub fn address(&self) -> Option<usize> {
        (!self.is_empty()).then(|| self.slice().as_ptr().addr())
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
        self.fields = EcoVec::new();
    }

    /// A field's value.
    #[must_use]
    #[inline]
    pub fn get(&self, name: &(impl Borrow<str> + ?Sized)) -> Option<&Value> {
        let fields = self.slice();
        let index = find(fields, name.borrow())?;
        fields.get(index).map(|(_, value)| value)
    }

    /// The value of a field whose name another object has, too: near the same place, as a rule.
    #[must_use]
    pub fn get_named(&self, name: &Name, near: usize) -> Option<&Value> {
        let fields = self.slice();
        if let Some((there, value)) = fields.get(near)
            && there == name
        {
            return Some(value);
        }
        if fields.len() > FEW {
            let index = fields.binary_search_by(|(field, _)| field.cmp(name)).ok()?;
            return fields.get(index).map(|(_, value)| value);
        }
        fields
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value)
    }

    /// A field's name and value.
    #[must_use]
    pub fn get_key_value(&self, name: &(impl Borrow<str> + ?Sized)) -> Option<(&Name, &Value)> {
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

    /// Sets a field; gives the value that it had.
    pub fn insert(&mut self, name: impl Into<Name>, value: Value) -> Option<Value> {
        let name = name.into();
        match place(self.slice(), &name) {
            Ok(index) => {
                let (_, present) = self.slice_mut().get_mut(index)?;
                Some(std::mem::replace(present, value))
            }
            Err(index) => {
                self.fields.insert(index, (name, value));
                None
            }
        }
    }

    /// Takes out a field.
    pub fn remove(&mut self, name: &(impl Borrow<str> + ?Sized)) -> Option<Value> {
        self.remove_entry(name).map(|(_, value)| value)
    }

    /// Takes out a field with its name.
    pub fn remove_entry(&mut self, name: &(impl Borrow<str> + ?Sized)) -> Option<(Name, Value)> {
        let index = find(self.slice(), name.borrow())?;
        let field = self.fields.remove(index);
        if self.is_empty() {
            self.clear();
        }
        Some(field)
    }

    /// Takes all fields of another object, which is without any then.
    pub fn append(&mut self, other: &mut Self) {
        self.extend(std::mem::take(other));
    }

    /// Keeps the fields for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&Name, &mut Value) -> bool) {
        if self.is_empty() {
            return;
        }
        self.fields.retain(|(name, value)| keep(name, value));
        if self.is_empty() {
            self.clear();
        }
    }

    /// A field that is there or not.
    pub fn entry(&mut self, name: impl Into<Name>) -> Entry<'_> {
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
        self.fields.into_iter().map(|(_, value)| value)
    }

    /// The names in order.
    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = Name> + ExactSizeIterator {
        self.fields.into_iter().map(|(name, _)| name)
    }
}

fn pair(field: &Field) -> (&Name, &Value) {
    (&field.0, &field.1)
}

fn pair_mut(field: &mut Field) -> (&Name, &mut Value) {
    (&field.0, &mut field.1)
}

fn key(field: &Field) -> &Name {
    &field.0
}

fn value(field: &Field) -> &Value {
    &field.1
}

/// An object's fields.
pub type Iter<'a> = std::iter::Map<std::slice::Iter<'a, Field>, fn(&Field) -> (&Name, &Value)>;
/// An object's fields, to be written.
pub type IterMut<'a> = std::iter::Map<std::slice::IterMut<'a, Field>, fn(&mut Field) -> (&Name, &mut Value)>;
/// An object's names.
pub type Keys<'a> = std::iter::Map<std::slice::Iter<'a, Field>, fn(&Field) -> &Name>;
/// An object's values.
pub type Values<'a> = std::iter::Map<std::slice::Iter<'a, Field>, fn(&Field) -> &Value>;
/// The fields of a map that was consumed.
pub type IntoIter = ecow::vec::IntoIter<Field>;

impl IntoIterator for Map {
    type Item = (Name, Value);
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        self.fields.into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Name, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Map {
    type Item = (&'a Name, &'a mut Value);
    type IntoIter = IterMut<'a>;

    fn into_iter(self) -> IterMut<'a> {
        self.iter_mut()
    }
}

impl<K: Into<Name>> Extend<(K, Value)> for Map {
    fn extend<T: IntoIterator<Item = (K, Value)>>(&mut self, fields: T) {
        for (name, value) in fields {
            self.insert(name, value);
        }
    }
}

impl<K: Into<Name>> FromIterator<(K, Value)> for Map {
    fn from_iter<T: IntoIterator<Item = (K, Value)>>(fields: T) -> Self {
        let fields = fields.into_iter();
        let mut map = Self::with_capacity(fields.size_hint().0);
        map.extend(fields);
        if map.is_empty() {
            map.clear();
        }
        map
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.slice() == other.slice()
    }
}

impl Eq for Map {}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<Q: Borrow<str> + ?Sized> Index<&Q> for Map {
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

impl<Q: Borrow<str> + ?Sized> IndexMut<&Q> for Map {
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
    map: &'a mut Map,
    index: usize,
}

/// A field that is not there.
#[derive(Debug)]
pub struct VacantEntry<'a> {
    map: &'a mut Map,
    index: usize,
    name: Name,
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

    /// Sets the value; gives the one before.
    pub fn insert(&mut self, value: Value) -> Value {
        std::mem::replace(self.get_mut(), value)
    }

    /// Takes it out.
    #[must_use]
    pub fn remove(self) -> Value {
        self.map.fields.remove(self.index).1
    }
}

impl<'a> VacantEntry<'a> {
    /// Sets it.
    pub fn insert(self, value: Value) -> &'a mut Value {
        self.map.fields.insert(self.index, (self.name, value));
        &mut self.map.slice_mut()[self.index].1
    }
}

impl<'a> Entry<'a> {
    /// Its name.
    #[must_use]
    pub fn key(&self) -> &Name {
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
