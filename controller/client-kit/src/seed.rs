//! Where randomness comes from.

use std::fmt;
use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// The number a run is a function of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Seed(pub u64);

impl Seed {
    /// The seed of a part of the run. The same seed and the same name give the same stream, whatever other parts do.
    #[must_use]
    pub fn fork(self, part: &str) -> Self {
        // FNV-1a over the name, mixed with the parent: stable across platforms and releases.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in part.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self(hash)
    }

    /// The generator of this seed.
    #[must_use]
    pub fn random(self) -> Random {
        Random { seed: self, at: 0 }
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Seed {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A seeded generator. There is no other source of randomness.
///
/// It is kept as a place in its stream, and not with the state that `ChaCha` works with: there may be one for each of many pods.
#[derive(Debug, Clone)]
pub struct Random {
    seed: Seed,
    /// How many words have been drawn.
    at: u128,
}

impl Random {
    fn draw<T>(&mut self, draw: impl FnOnce(&mut ChaCha8Rng) -> T) -> T {
        let mut stream = ChaCha8Rng::seed_from_u64(self.seed.0);
        stream.set_word_pos(self.at);
        let drawn = draw(&mut stream);
        self.at = stream.get_word_pos();
        drawn
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.draw(RngCore::next_u64)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.draw(|stream| stream.fill_bytes(bytes));
    }

    /// A version 4 UUID, as the API server gives objects.
    pub fn uuid(&mut self) -> String {
        let mut b = [0_u8; 16];
        self.fill(&mut b);
        b[6] = (b[6] & 0x0f) | 0x40;
        b[8] = (b[8] & 0x3f) | 0x80;
        let mut out = String::with_capacity(36);
        for (index, byte) in b.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                out.push('-');
            }
            out.extend(digits(*byte));
        }
        out
    }
}

/// A byte in hexadecimal.
fn digits(byte: u8) -> [char; 2] {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    [byte >> 4, byte & 0x0f].map(|digit| DIGITS[usize::from(digit)])
}

/// Bytes in hexadecimal.
///
/// ```
/// assert_eq!(client_kit::hex(&[0x0f, 0xa0]), "0fa0");
/// ```
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    out.extend(bytes.iter().flat_map(|byte| digits(*byte)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_depends_on_seed_and_name_only() {
        assert_eq!(Seed(1).fork("a"), Seed(1).fork("a"));
        assert_ne!(Seed(1).fork("a"), Seed(1).fork("b"));
        assert_ne!(Seed(1).fork("a"), Seed(2).fork("a"));
    }

    #[test]
    fn a_place_in_a_stream_is_all_that_has_to_be_known_of_it() {
        let (mut random, mut stream) = (Seed(7).random(), ChaCha8Rng::seed_from_u64(7));
        for length in 0..200 {
            assert_eq!(random.next_u64(), stream.next_u64());
            let (mut one, mut other) = (vec![0; length], vec![0; length]);
            random.fill(&mut one);
            stream.fill_bytes(&mut other);
            assert_eq!(one, other);
        }
    }

    #[test]
    fn uuids_are_version_4() {
        let uuid = Seed(7).random().uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(&uuid[14..15], "4");
        assert_eq!(uuid, Seed(7).random().uuid());
    }
}
