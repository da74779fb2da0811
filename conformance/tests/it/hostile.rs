//! The fuzz targets of the API server, on the requests of the recorded cases and on random changes of them. `cargo xtask fuzz` goes on
//! from there.

use std::path::Path;
use std::sync::OnceLock;

use client_kit::{Random, Seed};
use conformance::apidiff::{self, Seeds};
use rstest::rstest;

#[path = "../../../fake-apiserver/fuzz/src/inputs.rs"]
mod inputs;

/// The inputs to begin with, which all targets share.
static SEEDS: OnceLock<Seeds> = OnceLock::new();

/// So many inputs are made of the seeds of each target.
const INPUTS: u64 = 150;

/// Words that are put into inputs: decoders, numbers and paths stumble over them.
const WORDS: [&str; 24] = [
    "null",
    "-1",
    "9223372036854775808",
    "1e400",
    "0.1",
    "true",
    "\"\"",
    "[]",
    "{}",
    "[[[[[[[[",
    "{\"a\":",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\u{fffd}",
    "metadata",
    "$patch",
    "$setElementOrder/a",
    "/-",
    "~1",
    "%00",
    "\0\0\0\0",
    "\u{7f}\u{7f}",
    "~",
    "&*!|>",
];

/// An input with some bytes changed, left out, doubled or put in, or joined with another one.
fn changed(random: &mut Random, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(3) {
        let place = |random: &mut Random, length: usize| {
            usize::try_from(random.below(length as u64 + 1)).unwrap_or_default()
        };
        let at = place(random, bytes.len());
        let end = (at + place(random, 24)).min(bytes.len());
        match random.below(6) {
            0 => {
                let byte = u8::try_from(random.below(256)).unwrap_or_default();
                bytes.splice(at..(at + 1).min(bytes.len()), [byte]);
            }
            1 => drop(bytes.drain(at..end)),
            2 => {
                let doubled = bytes[at..end].to_vec();
                bytes.splice(at..at, doubled);
            }
            3 => bytes.truncate(at.max(bytes.len() / 2)),
            4 => {
                let from = place(random, other.len());
                bytes.splice(at..end, other[from..].iter().copied().take(64));
            }
            _ => {
                let word = WORDS[place(random, WORDS.len() - 1)];
                bytes.splice(at..end, word.bytes());
            }
        }
    }
    bytes
}

#[rstest]
fn whatever_is_sent_is_answered(#[values(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)] target: usize) {
    let (name, put) = inputs::INPUTS[target];
    let seeds = SEEDS.get_or_init(|| {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/apidiff/cases");
        apidiff::seeds(&apidiff::read_all(&cases).expect("cases"))
    });
    let seeds: Vec<&Vec<u8>> = seeds[name].iter().collect();
    assert!(seeds.len() >= 10, "{name}: {} seeds", seeds.len());
    let mut random = Seed(1).fork(name).random();
    let count = seeds.len() as u64;
    for _ in 0..INPUTS {
        let mut pick = || seeds[usize::try_from(random.below(count)).unwrap_or_default()];
        let (input, other) = (pick(), pick());
        let input = changed(&mut random, input, other);
        // Shown if what follows panics.
        println!("{name}: {}", String::from_utf8_lossy(&input));
        put(&input);
    }
}
