//! Names of fields.

use std::borrow::{Borrow, Cow};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// The name of a field. It takes two words. Names that look like those of a schema are kept once for the whole process, and are
/// copied and compared without a look at their text.
#[derive(Clone)]
pub struct Name(Text);

#[derive(Clone)]
enum Text {
    /// A text that is kept as long as the process runs. Equal ones are the same memory.
    Kept(Glance, Kept),
    /// Any other.
    Own(Glance, Arc<Box<str>>),
}

/// The parts of a name that are compared at a glance: its first letter, its length, the one in its middle and its last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Glance(u32);

impl Glance {
    /// Of a text that is known when this is compiled, it is known then, too.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a name is looked up for every field that is read"
    )]
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let [length, ..] = bytes.len().to_le_bytes();
        match (bytes.first(), bytes.get(bytes.len() / 2), bytes.last()) {
            (Some(first), Some(middle), Some(last)) => {
                Self(u32::from_be_bytes([*first, length, *middle, *last]))
            }
            _ => Self(0),
        }
    }

    /// The place for it among so many.
    #[inline]
    fn place(self) -> usize {
        // The upper bits of the product depend on all of them.
        let spread = self.0.wrapping_mul(0x9e37_79b9) >> (32 - RECENT_BITS);
        usize::try_from(spread).unwrap_or_default()
    }

    fn first(self) -> u8 {
        self.0.to_be_bytes()[0]
    }
}

/// So many names are kept; whoever sends ever new ones fills the memory no further.
const KEPT_MAX: usize = 8192;
/// For so many ways in which names look it is remembered which was the last that looked so: 2 to the power of this.
const RECENT_BITS: u32 = 11;
/// Longer names are not kept.
const LENGTH_MAX: usize = 64;

/// A name that is kept.
struct KeptText {
    text: &'static str,
    number: u64,
}

type Kept = &'static KeptText;

/// The names that are kept.
static KEPT: Mutex<BTreeMap<&'static str, Kept>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The last that looked so.
    static RECENT: [Cell<Option<Kept>>; 1 << RECENT_BITS] = const { [const { Cell::new(None) }; 1 << RECENT_BITS] };
    /// Those of them that this thread has met.
    static MET: RefCell<HashMap<&'static str, Kept, BuildHasherDefault<Words>>> = RefCell::default();
}

/// A number for a text, by words of eight bytes.
#[derive(Default)]
struct Words(u64);

impl Hasher for Words {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        let rest = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.write_u64(rest);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Whether a name looks like one that many objects have: letters, and no number or identifier among them.
fn is_common(text: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || b"./:-_".contains(byte);
    text.bytes().filter(u8::is_ascii_digit).count() <= 1
        && text.bytes().all(|byte| is_letter(&byte) || byte.is_ascii_digit())
}

/// The kept text that is equal, if it is kept now.
fn kept(glance: Glance, text: &str) -> Option<Kept> {
    RECENT.with(|recent| {
        let place = recent.get(glance.place())?;
        if let Some(kept) = place.get()
            && kept.text == text
        {
            return Some(kept);
        }
        let kept = kept_anywhere(text)?;
        place.set(Some(kept));
        Some(kept)
    })
}

#[cold]
fn kept_anywhere(text: &str) -> Option<Kept> {
    if text.len() > LENGTH_MAX {
        return None;
    }
    MET.with_borrow_mut(|met| {
        if let Some(kept) = met.get(text) {
            return Some(*kept);
        }
        let kept = keep(text)?;
        met.insert(kept.text, kept);
        Some(kept)
    })
}

fn keep(text: &str) -> Option<Kept> {
    if !is_common(text) {
        return None;
    }
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = all.get(text) {
        return Some(*kept);
    }
    if all.len() >= KEPT_MAX {
        return None;
    }
    let text: &'static str = Box::leak(text.into());
    let number = Name::number_of(text);
    let kept: Kept = Box::leak(Box::new(KeptText { text, number }));
    all.insert(text, kept);
    Some(kept)
}

/// Whether two texts begin and end with the same so many bytes. Those that are no longer than twice that are equal then.
#[inline]
fn have_same_ends<const BYTES: usize>(one: &[u8], other: &[u8]) -> bool {
    one.first_chunk::<BYTES>() == other.first_chunk() && one.last_chunk::<BYTES>() == other.last_chunk()
}

impl Name {
    #[inline]
    fn new(text: &str) -> Self {
        Self::seen(Glance::of(text), text)
    }

    fn seen(glance: Glance, text: &str) -> Self {
        Self(match kept(glance, text) {
            Some(kept) => Text::Kept(glance, kept),
            None => Text::Own(glance, Arc::new(text.into())),
        })
    }

    /// The number of the name with this text.
    #[must_use]
    pub fn number_of(text: &str) -> u64 {
        let mut hasher = Words::default();
        hasher.write(text.as_bytes());
        hasher.finish()
    }

    /// A number for its text: the same for the same text, as long as the process runs.
    #[must_use]
    pub fn number(&self) -> u64 {
        match &self.0 {
            Text::Kept(_, kept) => kept.number,
            Text::Own(_, text) => Self::number_of(text),
        }
    }

    /// Where in memory its text is, if it is kept as long as the process runs: the same for the same name, and for no other.
    #[must_use]
    #[inline]
    pub fn kept_at(&self) -> Option<usize> {
        match &self.0 {
            Text::Kept(_, kept) => Some(std::ptr::from_ref(*kept).addr()),
            Text::Own(..) => None,
        }
    }

    /// Its text.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Kept(_, kept) => kept.text,
            Text::Own(_, text) => text,
        }
    }

    #[inline]
    pub(crate) fn glance(&self) -> Glance {
        match &self.0 {
            Text::Kept(glance, _) | Text::Own(glance, _) => *glance,
        }
    }

    /// Whether it is a text. Names are short: most are distinguished without a call.
    #[inline]
    pub(crate) fn is_text(&self, text: &str) -> bool {
        let (own, text) = (self.as_str().as_bytes(), text.as_bytes());
        own.len() == text.len()
            && match own.len() {
                4..=8 => have_same_ends::<4>(own, text),
                9..=16 => have_same_ends::<8>(own, text),
                _ => own == text,
            }
    }

    /// How it compares with a text, which looks so.
    #[inline]
    pub(crate) fn order(&self, glance: Glance, text: &str) -> Ordering {
        // Most differ in their first letters.
        let first = self.glance().first().cmp(&glance.first());
        first.then_with(|| self.as_str().cmp(text))
    }
}

impl Deref for Name {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq for Name {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Text::Kept(_, one), Text::Kept(_, other)) => std::ptr::eq(*one, *other),
            _ => self.glance() == other.glance() && self.as_str() == other.as_str(),
        }
    }
}

impl Eq for Name {}

impl Ord for Name {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if self == other {
            return Ordering::Equal;
        }
        self.order(other.glance(), other)
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

macro_rules! texts {
    ($($text:ty),*) => {$(
        impl PartialEq<$text> for Name {
            fn eq(&self, other: &$text) -> bool {
                self.as_str() == &other[..]
            }
        }

        impl PartialEq<Name> for $text {
            fn eq(&self, other: &Name) -> bool {
                other.as_str() == &self[..]
            }
        }

        impl From<&$text> for Name {
            #[inline]
            fn from(text: &$text) -> Self {
                Self::new(text)
            }
        }
    )*};
}

texts!(str, &str, String, Cow<'_, str>);

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl From<Cow<'_, str>> for Name {
    fn from(text: Cow<'_, str>) -> Self {
        Self::new(&text)
    }
}

impl From<&Self> for Name {
    fn from(name: &Self) -> Self {
        name.clone()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.as_str().to_owned()
    }
}

impl From<&Name> for String {
    fn from(name: &Name) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(OfText)
    }
}

struct OfText;

impl Visitor<'_> for OfText {
    type Value = Name;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Name, E> {
        Ok(Name::new(text))
    }
}
