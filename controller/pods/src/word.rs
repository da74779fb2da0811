//! Words of pods' statuses, most of which are the same in all pods.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer};

use kruise_api::labels;

/// The words that take no memory of their own. Their order says nothing.
const KNOWN: [&str; 20] = [
    "",
    "True",
    "False",
    "Unknown",
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "PodReadyToStartContainers",
    "ContainersNotReady",
    "ReadinessGatesNotReady",
    "PodCompleted",
    "Unschedulable",
    labels::IN_PLACE_READY,
    labels::KRUISE_POD_READY,
    labels::START_IN_PLACE_UPDATE,
];

/// A text that is one of a few in most pods.
#[derive(Clone, PartialEq, Eq)]
pub struct Word(Kept);

#[derive(Clone, PartialEq, Eq)]
enum Kept {
    /// By its place among the known ones.
    Known(u8),
    Other(Box<str>),
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        let place = KNOWN.iter().position(|known| *known == text);
        let place = place.and_then(|place| u8::try_from(place).ok());
        Self(place.map_or_else(|| Kept::Other(text.into()), Kept::Known))
    }
}

impl Default for Word {
    fn default() -> Self {
        Self::from("")
    }
}

impl Deref for Word {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Kept::Known(place) => KNOWN.get(usize::from(*place)).copied().unwrap_or_default(),
            Kept::Other(text) => text,
        }
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Word, E> {
                Ok(Word::from(text))
            }
        }

        decoder.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("True", true)]
    #[case("InPlaceUpdateReady", true)]
    #[case("", true)]
    #[case("example.com/Gate", false)]
    #[case("true", false)]
    fn words(#[case] text: &str, #[case] known: bool) {
        let word: Word = serde_json::from_value(text.into()).expect("a word");
        assert_eq!(&*word, text);
        assert_eq!(matches!(word.0, Kept::Known(_)), known);
        assert_eq!(word, Word::from(text));
    }

    #[test]
    fn a_word_is_as_large_as_a_boxed_text() {
        assert_eq!(size_of::<Word>(), size_of::<Box<str>>());
        assert!(serde_json::from_str::<Word>("1").is_err());
    }
}
