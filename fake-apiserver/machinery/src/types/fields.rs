//! The declared fields of an object.

use std::iter::Zip;
use std::slice::Iter;

use shared_json::Name;

use super::schema::Field;

/// Fields by name, in the order of their names.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// The names apart from their fields: most of them are passed over.
    names: Vec<Name>,
    /// Where each name is kept, by which it is found without a look at it; nowhere is 0.
    places: Vec<usize>,
    fields: Vec<Field>,
}

impl Fields {
    /// A field by its name as text.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Field> {
        let place = self
            .names
            .binary_search_by(|known| known.as_str().cmp(name))
            .ok()?;
        self.fields.get(place)
    }

    /// A field by the name that an object has for it.
    #[must_use]
    pub fn named(&self, name: &Name) -> Option<&Field> {
        // Looking through some dozens of numbers takes less than searching.
        let index = match name.kept_at() {
            Some(place) if self.places.len() <= 64 => self.places.iter().position(|known| *known == place)?,
            _ => self.names.binary_search(name).ok()?,
        };
        self.fields.get(index)
    }

    /// Whether there is a field of this name.
    #[must_use]
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Declares a field, or declares it anew.
    pub fn insert(&mut self, name: impl Into<Name>, field: Field) {
        let name = name.into();
        match self.names.binary_search(&name) {
            Ok(place) => self.fields[place] = field,
            Err(place) => {
                self.places.insert(place, name.kept_at().unwrap_or_default());
                self.names.insert(place, name);
                self.fields.insert(place, field);
            }
        }
    }

    /// Whether none is declared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Names and fields in order.
    pub fn iter(&self) -> Zip<Iter<'_, Name>, Iter<'_, Field>> {
        self.into_iter()
    }

    /// The fields in the order of their names.
    pub fn values(&self) -> Iter<'_, Field> {
        self.fields.iter()
    }
}

impl<'a> IntoIterator for &'a Fields {
    type Item = (&'a Name, &'a Field);
    type IntoIter = Zip<Iter<'a, Name>, Iter<'a, Field>>;

    fn into_iter(self) -> Self::IntoIter {
        self.names.iter().zip(&self.fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_text_and_by_name() {
        for count in [0, 1, 5, 64, 65, 200] {
            let mut fields = Fields::default();
            // Names that are kept and names that are not, in no order.
            let name =
                |number: usize| format!("f{}{}", number % 7, "x".repeat(number % 5) + &number.to_string());
            for number in 0..count {
                let pointer = number % 2 == 0;
                let field = Field {
                    pointer,
                    ..Field::default()
                };
                fields.insert(name(number), Field::default());
                fields.insert(name(number), field);
            }
            assert_eq!(fields.values().count(), count);
            assert!(fields.iter().map(|(name, _)| name).is_sorted());
            for number in 0..count + 3 {
                let found = (number < count).then_some(number % 2 == 0);
                let text = name(number);
                assert_eq!(fields.get(&text).map(|field| field.pointer), found);
                assert_eq!(fields.named(&Name::from(&text)).map(|field| field.pointer), found);
                assert_eq!(fields.contains_key(&text), found.is_some());
            }
        }
    }
}
