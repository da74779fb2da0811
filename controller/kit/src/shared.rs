//! State that the webhooks and the controllers of one manager share.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A value of each type, made when it is asked for first. Clones share the values.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Vec<Held>>>);

/// A value, and its type.
type Held = (TypeId, Arc<dyn Any + Send + Sync>);

impl Shared {
    /// The value of a type.
    pub fn of<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = TypeId::of::<T>();
        let known = held.iter().find(|(known, _)| *known == kind);
        if let Some(value) = known.and_then(|(_, value)| Arc::clone(value).downcast::<T>().ok()) {
            return value;
        }
        let value = Arc::<T>::default();
        held.push((kind, Arc::clone(&value) as Arc<dyn Any + Send + Sync>));
        value
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Shared")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn clones_share_a_value_of_each_type() {
        let shared = Shared::default();
        shared.of::<AtomicU32>().store(7, Ordering::Relaxed);
        assert_eq!(shared.clone().of::<AtomicU32>().load(Ordering::Relaxed), 7);
        assert!(shared.of::<Mutex<String>>().lock().unwrap().is_empty());
    }
}
