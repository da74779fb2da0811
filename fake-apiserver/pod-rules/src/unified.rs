//! The difference of two texts in the unified format, as the matcher finds it that Go's difflib took from Python.

use std::collections::BTreeMap;

const CONTEXT: usize = 3;
/// From so many lines on, lines that are there too often find no matches of their own.
const MANY_LINES: usize = 200;

/// The difference; empty for equal texts. Each line ends with a newline.
pub fn difference(old: &str, new: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut matches = Vec::new();
    let places = places(&b);
    find(&a, &b, &places, (0, a.len()), (0, b.len()), &mut matches);
    let edits = edits(&matches, a.len(), b.len());
    let mut out = String::new();
    for group in groups(&edits) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        out.push_str(&format!(
            "@@ -{} +{} @@\n",
            range(first.a.0, last.a.1),
            range(first.b.0, last.b.1)
        ));
        for edit in &group {
            let mut push = |mark: char, lines: &[&str]| {
                for line in lines {
                    out.push(mark);
                    out.push_str(line);
                    out.push('\n');
                }
            };
            let (before, after) = (
                a.get(edit.a.0..edit.a.1).unwrap_or_default(),
                b.get(edit.b.0..edit.b.1).unwrap_or_default(),
            );
            if edit.equal {
                push(' ', before);
            } else {
                push('-', before);
                push('+', after);
            }
        }
    }
    out
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        1 => (start + 1).to_string(),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

/// Where each line of `b` is, without those that are there too often.
fn places<'a>(b: &[&'a str]) -> BTreeMap<&'a str, Vec<usize>> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, line) in b.iter().enumerate() {
        places.entry(line).or_default().push(index);
    }
    if b.len() >= MANY_LINES {
        let most = b.len() / 100 + 1;
        places.retain(|_, indices| indices.len() <= most);
    }
    places
}

type Span = (usize, usize);

/// A piece that is equal in both: where it begins in each, and its length.
type Match = (usize, usize, usize);

fn find(
    a: &[&str],
    b: &[&str],
    places: &BTreeMap<&str, Vec<usize>>,
    in_a: Span,
    in_b: Span,
    matches: &mut Vec<Match>,
) {
    let (i, j, length) = longest(a, b, places, in_a, in_b);
    if length == 0 {
        return;
    }
    if in_a.0 < i && in_b.0 < j {
        find(a, b, places, (in_a.0, i), (in_b.0, j), matches);
    }
    matches.push((i, j, length));
    if i + length < in_a.1 && j + length < in_b.1 {
        find(a, b, places, (i + length, in_a.1), (j + length, in_b.1), matches);
    }
}

fn longest(a: &[&str], b: &[&str], places: &BTreeMap<&str, Vec<usize>>, in_a: Span, in_b: Span) -> Match {
    let (mut best_i, mut best_j, mut best) = (in_a.0, in_b.0, 0);
    let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
    for i in in_a.0..in_a.1 {
        let mut next = BTreeMap::new();
        let line = a.get(i).copied().unwrap_or_default();
        for &j in places.get(line).map(Vec::as_slice).unwrap_or_default() {
            if j < in_b.0 {
                continue;
            }
            if j >= in_b.1 {
                break;
            }
            let before = j
                .checked_sub(1)
                .and_then(|j| lengths.get(&j))
                .copied()
                .unwrap_or(0);
            let length = before + 1;
            next.insert(j, length);
            if length > best {
                (best_i, best_j, best) = (i + 1 - length, j + 1 - length, length);
            }
        }
        lengths = next;
    }
    while best_i > in_a.0 && best_j > in_b.0 && a.get(best_i - 1) == b.get(best_j - 1) {
        (best_i, best_j, best) = (best_i - 1, best_j - 1, best + 1);
    }
    while best_i + best < in_a.1 && best_j + best < in_b.1 && a.get(best_i + best) == b.get(best_j + best) {
        best += 1;
    }
    (best_i, best_j, best)
}

#[derive(Clone, Copy)]
struct Edit {
    equal: bool,
    a: Span,
    b: Span,
}

fn edits(matches: &[Match], a_lines: usize, b_lines: usize) -> Vec<Edit> {
    let mut out: Vec<Edit> = Vec::new();
    let (mut i, mut j) = (0, 0);
    for &(at_a, at_b, length) in matches.iter().chain(std::iter::once(&(a_lines, b_lines, 0))) {
        if i < at_a || j < at_b {
            out.push(Edit {
                equal: false,
                a: (i, at_a),
                b: (j, at_b),
            });
        }
        (i, j) = (at_a + length, at_b + length);
        if length > 0 {
            match out.last_mut() {
                Some(last) if last.equal => (last.a.1, last.b.1) = (i, j),
                _ => out.push(Edit {
                    equal: true,
                    a: (at_a, i),
                    b: (at_b, j),
                }),
            }
        }
    }
    out
}

/// Edits with a few equal lines around; those that are near each other stand together.
fn groups(edits: &[Edit]) -> Vec<Vec<Edit>> {
    let mut edits = edits.to_vec();
    if let Some(first) = edits.first_mut().filter(|edit| edit.equal) {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(CONTEXT));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(CONTEXT));
    }
    if let Some(last) = edits.last_mut().filter(|edit| edit.equal) {
        last.a.1 = last.a.1.min(last.a.0 + CONTEXT);
        last.b.1 = last.b.1.min(last.b.0 + CONTEXT);
    }
    let mut out = Vec::new();
    let mut group: Vec<Edit> = Vec::new();
    for mut edit in edits {
        if edit.equal && edit.a.1 - edit.a.0 > 2 * CONTEXT {
            group.push(Edit {
                equal: true,
                a: (edit.a.0, edit.a.0 + CONTEXT),
                b: (edit.b.0, edit.b.0 + CONTEXT),
            });
            out.push(std::mem::take(&mut group));
            edit.a.0 = edit.a.1 - CONTEXT;
            edit.b.0 = edit.b.1 - CONTEXT;
        }
        group.push(edit);
    }
    if group.len() > 1 || group.first().is_some_and(|edit| !edit.equal) {
        out.push(group);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("a\nb\nc", "a\nb\nc", "")]
    #[case("a\nb\nc", "a\nx\nc", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n")]
    #[case("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5", "@@ -3,4 +3,3 @@\n 3\n 4\n 5\n-6\n")]
    fn is_written_as_diff_does(#[case] old: &str, #[case] new: &str, #[case] expected: &str) {
        assert_eq!(difference(old, new), expected);
    }
}
