//! A map of the few things that a pod has of a kind.

/// A map by name, ordered by name. A pod has one or two entries: a map's node would have room for eleven.
#[derive(Debug, Clone)]
pub(crate) struct ByName<V>(Vec<(Box<str>, V)>);

impl<V> Default for ByName<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> ByName<V> {
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&V> {
        let place = self.place(name).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.place(name).is_ok()
    }

    /// Returns the former value of the name.
    pub(crate) fn insert(&mut self, name: &str, value: V) -> Option<V> {
        match self.place(name) {
            Ok(place) => self
                .0
                .get_mut(place)
                .map(|(_, known)| std::mem::replace(known, value)),
            Err(place) => {
                self.0.reserve_exact(1);
                self.0.insert(place, (name.into(), value));
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<V> {
        let place = self.place(name).ok()?;
        Some(self.0.remove(place).1)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_map() {
        let mut map = ByName::default();
        assert_eq!(
            ["b", "a", "c", "a"].map(|name| map.insert(name, name.len())),
            [None, None, None, Some(1)]
        );
        assert_eq!((map.get("c"), map.get("d")), (Some(&1), None));
        assert_eq!((map.remove("b"), map.remove("b")), (Some(1), None));
        assert!(map.contains_key("a") && !map.contains_key("b"));
        map.clear();
        assert!(!map.contains_key("a"));
    }
}
