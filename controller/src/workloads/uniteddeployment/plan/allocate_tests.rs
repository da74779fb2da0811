//! Rows: how many pods each subset is to have.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use rstest::rstest;

use super::super::test_world::{child, set};
use super::*;

fn value(text: &str) -> Option<IntOrString> {
    match text {
        "" | "-" => None,
        text => Some(
            text.parse()
                .map_or_else(|_| IntOrString::String(text.to_owned()), IntOrString::Int),
        ),
    }
}

/// Subsets from words such as `a 1`, `b 50%`, `c -`, `d 1..2`, `e 0..`.
fn subsets(text: &str) -> Vec<Subset> {
    let words = text.split(", ").filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (name, amount) = word.split_once(' ').unwrap();
            let mut subset = Subset {
                name: name.to_owned(),
                ..Subset::default()
            };
            match amount.split_once("..") {
                Some((min, max)) => (subset.min_replicas, subset.max_replicas) = (value(min), value(max)),
                None => subset.replicas = value(amount),
            }
            subset
        })
        .collect()
}

/// The places of subsets whose workloads are described by words: `-` is none; `replicas/ready` or `replicas/ready/reserved`, with `U`
/// behind it where the subset is out of room, `m` where it was.
fn numbers(strategy: &str, replicas: Option<i32>, spec: &str, children: &str) -> Result<String, String> {
    let subsets = subsets(spec);
    let mut words = children.split_whitespace().chain(std::iter::repeat("-"));
    let found: Vec<Option<(Child, Verdict)>> = subsets
        .iter()
        .map(|subset| {
            let word = words.next().unwrap();
            let digits = word.trim_end_matches(['U', 'm']);
            let mut numbers = digits.split('/').map(|number| number.parse::<i32>().unwrap());
            if word == "-" {
                return None;
            }
            let mut child = child(&subset.name, "r");
            child.spec.replicas = numbers.next().unwrap();
            child.ready = numbers.next().unwrap_or(child.spec.replicas);
            let reserved = numbers.next().unwrap_or(0);
            let verdict = Verdict {
                is_unschedulable: word.ends_with('U') || reserved > 0,
                was_unschedulable: word.ends_with('m'),
                reserved,
                late: 0,
            };
            Some((child, verdict))
        })
        .collect();
    let mut set = set(strategy);
    set.spec.replicas = replicas;
    let places: Vec<Place<'_>> = subsets
        .iter()
        .zip(&found)
        .map(|(subset, found)| Place {
            subset,
            child: found.as_ref().map(|(child, _)| child),
            verdict: found
                .as_ref()
                .map_or_else(Verdict::default, |(_, verdict)| *verdict),
        })
        .collect();
    let numbers = allocate(&set, &places)?;
    let words: Vec<String> = subsets
        .iter()
        .map(|subset| format!("{}{}", subset.name, numbers[&subset.name]))
        .collect();
    Ok(words.join(" "))
}

#[rstest]
#[case(Some(6), "a 1, b 50%, c -", "", Ok("a1 b3 c2"))]
#[case(Some(9), "a 1, b 50%, c -", "1 3 2", Ok("a1 b5 c3"))]
#[case(Some(5), "a -, b -", "", Ok("a2 b3"))]
#[case(Some(5), "a -, b -", "3 2", Ok("a3 b2"))]
#[case(Some(7), "a -, b -, c -", "", Ok("a2 b2 c3"))]
#[case(Some(8), "a -, b -, c -", "3 2 2", Ok("a3 b2 c3"))]
#[case(Some(4), "a -, b -, c -", "3 2 2", Ok("a2 b1 c1"))]
#[case(Some(5), "a 10%, b -", "", Ok("a1 b4"))]
#[case(Some(4), "a 10%, b -", "", Ok("a0 b4"))]
#[case(
    Some(5),
    "a 50%, b 50%",
    "",
    Err("specified subsets' replica (6) is greater than UnitedDeployment replica (5)")
)]
#[case(
    Some(5),
    "a 2, b 2",
    "",
    Err("specified subsets' replica (4) is less than UnitedDeployment replica (5)")
)]
#[case(
    Some(3),
    "",
    "",
    Err("specified subsets' replica (0) is less than UnitedDeployment replica (3)")
)]
#[case(None, "a 2, b 3", "", Ok("a2 b3"))]
#[case(
    None,
    "a 2, b -",
    "",
    Err("all subsets must be specified when UnitedDeployment replica is unspecified")
)]
#[case(Some(0), "a -, b -", "3 2", Ok("a0 b0"))]
#[case::no_subset_at_all(Some(0), "", "", Ok(""))]
#[case::unreadable_counts_as_unset(Some(4), "a x, b 1", "", Ok("a3 b1"))]
#[case::negative(Some(-2), "a -", "", Err("specified subsets' replica (0) is greater than UnitedDeployment replica (-2)"))]
#[case::large(
    Some(i32::MAX),
    "a 100%, b 100%",
    "",
    Err("specified subsets' replica (4294967294) is greater than UnitedDeployment replica (2147483647)")
)]
fn specific_numbers(
    #[case] replicas: Option<i32>,
    #[case] spec: &str,
    #[case] children: &str,
    #[case] want: Result<&str, &str>,
) {
    let want = want.map(str::to_owned).map_err(str::to_owned);
    assert_eq!(numbers("", replicas, spec, children), want);
}

#[rstest]
#[case(Some(4), "a 1..2, b 25%..3, c 0..", Ok("a2 b2 c0"))]
#[case(Some(7), "a 1..2, b 25%..3, c 0..", Ok("a2 b3 c2"))]
#[case(Some(1), "a 1..2, b 25%..3, c 0..", Ok("a1 b0 c0"))]
#[case(Some(10), "a 1..2, b 25%..3, c 0..", Ok("a2 b3 c5"))]
#[case(Some(5), "a 2..4, b 2..", Ok("a3 b2"))]
#[case(Some(3), "a 2..4, b 2..", Ok("a2 b1"))]
#[case(
    Some(4),
    "a 50%..1, b ..",
    Err("subset[0].maxReplicas(1) must be more than or equal to minReplicas(2)")
)]
#[case::nothing_said(None, "a 1..2, b ..", Ok("a0 b0"))]
#[case::unreadable_is_zero(Some(3), "a x..y, b ..", Ok("a0 b3"))]
fn minima_and_maxima(#[case] replicas: Option<i32>, #[case] spec: &str, #[case] want: Result<&str, &str>) {
    let want = want.map(str::to_owned).map_err(str::to_owned);
    assert_eq!(numbers("", replicas, spec, "9 9 9"), want);
}

#[rstest]
#[case(3, "a 0..2, b 0..", "", "a2 b1")]
#[case(3, "a 0..2, b 0..", "2/0U 1/1", "a0 b3")]
#[case(4, "a 0..2, b 0..", "0/0 3/3", "a1 b3")]
#[case(4, "a 0..2, b 0..", "1/0U 3/3", "a0 b4")]
#[case(5, "a 3..4, b 0..", "4/1U 1/1", "a3 b2")]
#[case(3, "a 0.., b 0..", "2/2 2/2", "a2 b1")]
#[case(5, "a 0..1, b 0..", "3/3 2/2", "a1 b4")]
fn adaptive_numbers(#[case] replicas: i32, #[case] spec: &str, #[case] children: &str, #[case] want: &str) {
    let got = numbers("Adaptive", Some(replicas), spec, children);
    assert_eq!(got.as_deref(), Ok(want));
}

#[rstest]
#[case(3, "a 0..2, b 0..", "2/0/2 1/1/0", "a2 b3")]
#[case(3, "a 0..2, b 0..", "2/0/1 3/3/0", "a2 b2")]
#[case(3, "a 0..2, b 0..", "2/2/0m 2/2/0", "a2 b1")]
#[case(3, "a 0..3, b 0..", "2/2/0m 1/1/0", "a3 b1")]
#[case::row_5(5, "a 2..2, b 0..", "1/0/1 5/5/0", "a1 b5")]
#[case(8, "a 1..2, b 1..2, c 1..2, d 1..", "2/2/0 2/0/2 2/0/2 2/2/0", "a2 b2 c2 d6")]
#[case(
    16,
    "a 2..4, b 2..4, c 2..4, d 2..",
    "2/2/0 2/1/1 2/1/1 6/6/0",
    "a4 b2 c2 d10"
)]
#[case(
    16,
    "a 2..4, b 2..4, c 2..4, d 2..",
    "4/4/0 2/2/0m 2/2/0m 10/10/0",
    "a4 b4 c4 d8"
)]
#[case(2, "a 0.., b 0.., c 0..", "2/2/0 2/1/1 1/1/0", "a2 b0 c0")]
#[case::row_10(5, "n 0.., b 0..", "- 5/5/0", "n5 b0")]
#[case::nothing_to_give(0, "a 1.., b ..", "1/1/0 1/1/0", "a0 b0")]
fn reserving_numbers(#[case] replicas: i32, #[case] spec: &str, #[case] children: &str, #[case] want: &str) {
    let got = numbers("Reserve", Some(replicas), spec, children);
    assert_eq!(got.as_deref(), Ok(want));
}
