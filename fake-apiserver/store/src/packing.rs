//! Versions of objects as tables keep them: as they are, or in little memory.

use std::sync::Arc;

use bytes::Bytes;
use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use machinery::keys::{ObjectKey, Revision};

use super::event::{Encoded, Held, Stored};

/// The longest dictionary that is learnt for a table, in bytes.
const MODEL_MAX: usize = 8 << 10;
/// The compression factor below which the dictionary does not fit an object.
const SHRINKS: usize = 3;
/// So many versions at least become small by one model.
const MODEL_USES_MIN: usize = 64;

/// A version that is kept.
#[derive(Clone)]
pub(super) enum Kept {
    Whole(Arc<Stored>),
    Small(Arc<Small>),
}

impl Kept {
    pub(super) fn revision(&self) -> Revision {
        match self {
            Self::Whole(stored) => stored.revision,
            Self::Small(small) => small.revision,
        }
    }

    pub(super) fn packed(self) -> Option<Arc<Small>> {
        match self {
            Self::Whole(_) => None,
            Self::Small(small) => Some(small),
        }
    }

    pub(super) fn stored(&self) -> Arc<Stored> {
        match self {
            Self::Whole(stored) => Arc::clone(stored),
            Self::Small(small) => Arc::new(small.stored()),
        }
    }
}

/// A version's encoding, packed.
pub(super) struct Small {
    key: ObjectKey,
    revision: Revision,
    created: Revision,
    size_max: usize,
    /// As of [`Encoded`].
    rest: usize,
    /// How many bytes it has.
    length: usize,
    /// The dictionary that it was compressed with.
    model: Arc<[u8]>,
    packed: Box<[u8]>,
}

impl Small {
    fn stored(&self) -> Stored {
        // What was packed is unpacked.
        let bytes = decompress_with_dict(&self.packed, self.length, &self.model).unwrap_or_default();
        let encoded = Encoded {
            bytes: Bytes::from(bytes),
            rest: self.rest,
        };
        let value = Held::of_encoded(encoded);
        Stored::held(
            self.key.clone(),
            self.revision,
            self.created,
            value,
            self.size_max,
        )
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.packed.len()
    }
}

/// Compresses versions with a dictionary of other objects of their table.
pub(super) struct Packer {
    model: Arc<[u8]>,
    /// How often it has been used.
    uses: usize,
}

impl Default for Packer {
    fn default() -> Self {
        Self {
            model: Arc::default(),
            uses: MODEL_USES_MIN,
        }
    }
}

impl Packer {
    pub(super) fn pack(&mut self, stored: &Stored) -> Small {
        let Encoded { bytes, rest } = stored.value.encoded();
        let packed = compress_with_dict(bytes, &self.model);
        self.uses += 1;
        let small = Small {
            key: stored.key.clone(),
            revision: stored.revision,
            created: stored.created,
            size_max: stored.size_max,
            rest: *rest,
            length: bytes.len(),
            model: Arc::clone(&self.model),
            packed: packed.into(),
        };
        if small.packed.len() * SHRINKS > bytes.len() && self.uses >= MODEL_USES_MIN {
            self.learn(bytes);
        }
        small
    }

    /// Makes these bytes the dictionary for similar objects from now on.
    fn learn(&mut self, bytes: &[u8]) {
        self.uses = 0;
        let known = match self.model.len() + bytes.len() <= MODEL_MAX {
            true => &*self.model,
            false => &[],
        };
        self.model = known
            .iter()
            .chain(bytes.iter().take(MODEL_MAX))
            .copied()
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use shared_json::{Value, json};

    use super::*;

    fn event(number: usize, reason: &str) -> Stored {
        let name = format!("pod-{number}.17f3{number:012x}");
        let object = json!({
            "kind": "Event", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default", "uid": format!("{number:036x}")},
            "involvedObject": {"kind": "Pod", "name": format!("pod-{number}"), "namespace": "default"}, "reason": reason,
            "message": format!("{reason} of pod-{number}"), "source": {"component": "kubelet", "host": "node-1"}, "count": 1,
        });
        let revision = Revision(u64::try_from(number).unwrap_or_default());
        Stored::alone(ObjectKey::new("default", &name), revision, revision, object)
    }

    #[test]
    fn what_is_alike_becomes_small_and_comes_back_as_it_was() {
        let mut packer = Packer::default();
        let reasons = ["Scheduled", "Pulled", "Created", "Started"];
        let mut bytes = 0;
        for number in 0..400 {
            let stored = event(number, reasons[number % 4]);
            let small = packer.pack(&stored);
            let back = small.stored();
            assert_eq!(back.bytes(), stored.bytes());
            assert_eq!(back.bytes_after_kind(), stored.bytes_after_kind());
            assert_eq!(
                (&back.key, back.revision, back.created),
                (&stored.key, stored.revision, stored.created)
            );
            assert_eq!(*back.value, *stored.value);
            if number >= 300 {
                bytes += small.packed.len() * 100 / stored.bytes().len();
            }
        }
        assert!(bytes / 100 < 33, "{} of a hundred bytes are left", bytes / 100);
    }

    #[test]
    fn what_is_like_nothing_is_learnt_now_and_then() {
        let mut packer = Packer::default();
        let mut random = client_kit::Seed(1).random();
        let mut models: Vec<Arc<[u8]>> = Vec::new();
        for number in 0..1000 {
            let mut noise = vec![0; if number == 500 { 3 * MODEL_MAX } else { 300 }];
            random.fill(&mut noise);
            let value: Value = json!({"metadata": {"name": "x"}, "data": client_kit::hex(&noise)});
            let stored = Stored::alone(ObjectKey::new("", "x"), Revision(number), Revision(number), value);
            let small = packer.pack(&stored);
            assert_eq!(small.stored().bytes(), stored.bytes());
            assert!(small.model.len() <= MODEL_MAX);
            if models.last().is_none_or(|last| !Arc::ptr_eq(last, &small.model)) {
                models.push(Arc::clone(&small.model));
            }
        }
        assert!(
            (2..=1000 / MODEL_USES_MIN + 2).contains(&models.len()),
            "{}",
            models.len()
        );
    }
}
