//! The ordinals of pods: as many as there are replicas, from a start, without the reserved ones.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The ordinals that no pod gets, as ranges with both ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reserved(Vec<(i64, i64)>);

impl Reserved {
    /// Reads `spec.reserveOrdinals`. One text that is no range makes all of them count for nothing, as in OpenKruise.
    pub fn of(list: &[IntOrString]) -> Self {
        let mut ranges = Vec::with_capacity(list.len());
        for item in list {
            match item {
                IntOrString::Int(number) => ranges.push((i64::from(*number), i64::from(*number))),
                IntOrString::String(text) => match range(text) {
                    Some(range) => ranges.push(range),
                    None => return Self::default(),
                },
            }
        }
        Self(ranges)
    }

    /// The last ordinal of a range that has this one.
    fn end_of(&self, ordinal: i64) -> Option<i64> {
        let ranges = self.0.iter();
        ranges
            .filter(|(from, to)| (*from..=*to).contains(&ordinal))
            .map(|(_, to)| *to)
            .max()
    }
}

/// Reads `a-b`.
fn range(text: &str) -> Option<(i64, i64)> {
    let (from, to) = text.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(from) || !digits(to) {
        return None;
    }
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (from <= to).then_some((from, to))
}

/// The ordinals of an owner with this start and these replicas, lowest first.
pub fn ordinals(start: i32, replicas: i32, reserved: &Reserved) -> Vec<i32> {
    let mut out = Vec::with_capacity(usize::try_from(replicas).unwrap_or(0));
    let mut next = i64::from(start);
    for _ in 0..replicas {
        while let Some(end) = reserved.end_of(next) {
            next = end + 1;
        }
        let Ok(ordinal) = i32::try_from(next) else { break };
        out.push(ordinal);
        next += 1;
    }
    out
}

/// The ordinal in a pod's name, if it is one that the owner gives.
pub fn ordinal_of(owner: &str, pod: &str) -> Option<i32> {
    let text = pod.strip_prefix(owner)?.strip_prefix('-')?;
    let ordinal: i32 = text.parse().ok()?;
    // Go's owner gives neither a sign nor zeros in front.
    (text.bytes().all(|byte| byte.is_ascii_digit()) && ordinal.to_string() == text).then_some(ordinal)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case::row_1(json!([1]), 0, 3, &[0, 2, 3])]
    #[case::row_2(json!([0, 1]), 0, 3, &[2, 3, 4])]
    #[case::row_3(json!([1, 4]), 0, 4, &[0, 2, 3, 5])]
    #[case::row_4(json!([0, "3-5"]), 0, 5, &[1, 2, 6, 7, 8])]
    #[case::row_5(json!([1, 3]), 2, 4, &[2, 4, 5, 6])]
    #[case::row_6(json!([6]), 5, 3, &[5, 7, 8])]
    #[case::row_7(json!([0]), 0, 0, &[])]
    #[case::row_8(json!([1, "x"]), 0, 3, &[0, 1, 2])]
    #[case::a_number_as_text(json!(["1"]), 0, 3, &[0, 1, 2])]
    #[case::a_range_that_is_reversed(json!(["2-1"]), 0, 3, &[0, 1, 2])]
    #[case::ranges_that_overlap(json!(["0-4", "3-6"]), 0, 2, &[7, 8])]
    #[case::a_range_without_end_in_sight(json!(["0-4000000000"]), 0, 2, &[])]
    #[case::a_negative_number(json!([-1]), 0, 2, &[0, 1])]
    fn rows(#[case] reserved: Value, #[case] start: i32, #[case] replicas: i32, #[case] expect: &[i32]) {
        let reserved = Reserved::of(&serde_json::from_value::<Vec<IntOrString>>(reserved).unwrap());
        assert_eq!(ordinals(start, replicas, &reserved), expect);
    }

    #[rstest]
    #[case("sample", "sample-0", Some(0))]
    #[case("a-b", "a-b-12", Some(12))]
    #[case("a", "a-b-12", None)]
    #[case("a", "a-01", None)]
    #[case("a", "a-+1", None)]
    #[case("a", "a-4000000000", None)]
    #[case("a", "b-1", None)]
    fn names(#[case] set: &str, #[case] pod: &str, #[case] expect: Option<i32>) {
        assert_eq!(ordinal_of(set, pod), expect);
    }
}
