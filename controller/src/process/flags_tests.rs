//! The command line against the flags of OpenKruise 1.9.0's own manager.

use rstest::rstest;

use super::*;
use crate::process::gates::FeatureGates;

/// Name, type, default and a value to try, of each flag that `manager --help` of OpenKruise 1.9.0 lists.
const THEIRS: &str = include_str!("../../../fixtures/installation/flags-1.9.0.tsv");

/// The flags that OpenKruise's manager has not.
const OWN: [&str; 5] = ["check-uninstall", "help", "install", "version", "webhook-url"];

fn parse(line: &str) -> Result<Flags, ProcessError> {
    Flags::parse(line.split_whitespace().map(str::to_owned))
}

fn theirs() -> impl Iterator<Item = (&'static str, &'static str, &'static str, &'static str)> {
    let lines = THEIRS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, kind, default, value] = cells[..] else {
            panic!("{line:?} has not four cells");
        };
        (name, kind, default, value)
    })
}

#[test]
fn every_flag_of_1_9_0_is_taken() {
    for (name, _, default, value) in theirs() {
        assert_eq!(parse("").unwrap().text(name), default, "--{name}");
        let line = format!("--{name}={value}");
        match parse(&line) {
            Ok(flags) => assert_eq!(flags.text(name), value, "{line}"),
            Err(error) => panic!(
                "{line}: {}",
                error.to_string().split(';').next().unwrap_or_default()
            ),
        }
    }
    let together = theirs().map(|(name, _, _, value)| format!("--{name}={value}"));
    assert!(Flags::parse(together).is_ok());
}

#[test]
fn there_are_no_others() {
    let mut names: Vec<&str> = theirs().map(|(name, _, _, _)| name).chain(OWN).collect();
    names.sort_unstable();
    let mut ours: Vec<&str> = flags().map(|(name, _, _, _)| name).collect();
    ours.sort_unstable();
    assert_eq!(ours, names);
}

#[test]
fn types_are_those_of_1_9_0() {
    for (name, kind, _, _) in theirs() {
        let expected: &[Takes] = match kind {
            "bool" => &[Takes::Truth],
            "int" => &[Takes::Number],
            "uint" => &[Takes::Unsigned],
            "Level" => &[Takes::Level],
            "duration" => &[Takes::Duration],
            "mapStringBool" => &[Takes::Gates],
            "string" => &[Takes::Text, Takes::Format],
            _ => &[Takes::Unread],
        };
        let (_, takes, _, _) = flags().find(|(ours, _, _, _)| *ours == name).unwrap();
        assert!(expected.contains(&takes), "--{name} takes {kind}, not {takes:?}");
    }
}

#[test]
fn every_default_is_a_value_of_its_flag() {
    for (name, takes, default, _) in flags() {
        assert!(fits(takes, default), "--{name}={default}");
    }
}

#[rstest]
#[case("", "metrics-addr", ":8080")]
#[case("--metrics-addr=:1", "metrics-addr", ":1")]
#[case("-metrics-addr :2", "metrics-addr", ":2")]
#[case("--enable-leader-election", "enable-leader-election", "true")]
#[case("--enable-leader-election=false --v=5", "enable-leader-election", "false")]
#[case("--v 5", "v", "5")]
#[case("-v 5", "v", "5")]
#[case("-v=5", "v", "5")]
#[case("-v5", "v", "5")]
#[case("-h", "help", "true")]
#[case("--vmodule=a=1,b=2", "vmodule", "a=1,b=2")]
#[case("--cloneset-workers=0x10", "cloneset-workers", "0x10")]
#[case("--cloneset-workers=-1", "cloneset-workers", "-1")]
#[case("--v=1 --v=2", "v", "2")]
#[case("--feature-gates=A=true,B=false", "feature-gates", "A=true,B=false")]
#[case("--feature-gates=", "feature-gates", "")]
#[case(
    "--feature-gates=A=true --feature-gates=B=false",
    "feature-gates",
    "A=true,B=false"
)]
fn values(#[case] line: &str, #[case] flag: &str, #[case] expected: &str) {
    assert_eq!(parse(line).unwrap().text(flag), expected);
}

#[rstest]
#[case("--nonsense=1", "unknown flag: --nonsense; there are --install")]
#[case("serve", "unexpected argument \"serve\"")]
#[case("--metrics-addr", "flag needs an argument: --metrics-addr")]
#[case(
    "--cloneset-workers=many",
    "invalid value \"many\" for flag --cloneset-workers"
)]
#[case("--leader-election-retry-period=2", "invalid value \"2\" for flag")]
#[case(
    "--allow-privileged=perhaps",
    "invalid value \"perhaps\" for flag --allow-privileged"
)]
#[case("--log_file_max_size=-1", "invalid value \"-1\" for flag --log_file_max_size")]
#[case("--v=-1", "invalid value \"-1\" for flag --v")]
#[case("--v=0x4", "invalid value \"0x4\" for flag --v")]
#[case("-vx", "unknown flag: --vx")]
#[case("--logging-format=xml", "invalid value \"xml\" for flag --logging-format")]
fn refusals(#[case] line: &str, #[case] expected: &str) {
    let error = parse(line).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[rstest]
#[case("", 3)]
#[case("--cloneset-workers=0x10", 16)]
#[case("--cloneset-workers=-1", 0)]
fn numbers(#[case] line: &str, #[case] workers: usize) {
    assert_eq!(parse(line).unwrap().number("cloneset-workers"), workers);
}

#[rstest]
#[case("", 2_000)]
#[case("--leader-election-retry-period=1.5s", 1_500)]
#[case("--leader-election-retry-period=-2s", 0)]
fn times(#[case] line: &str, #[case] ms: u64) {
    let retry = parse(line).unwrap().time("leader-election-retry-period");
    assert_eq!(retry, Duration::from_millis(ms));
}

/// The arguments of the manager in OpenKruise's chart with its default values (1.9.0-alpha.3, the newest 1.9 among the
/// charts that are public as source; 1.8.3 says the same), and in the configuration in OpenKruise's own tree at 1.9.0.
#[rstest]
#[case::chart(
    "--enable-leader-election --metrics-addr=:8080 --health-probe-addr=:8000 --logtostderr=true \
     --leader-election-namespace=kruise-system --v=4 --feature-gates=ImagePullJobGate=true --sync-period=0",
    "ImagePullJobGate"
)]
#[case::chart_with_json(
    "--enable-leader-election --metrics-addr=:8080 --health-probe-addr=:8000 --logtostderr=true \
     --leader-election-namespace=kruise-system --v=4 --feature-gates= --sync-period=0 --logging-format=json",
    "PodWebhook"
)]
#[case::tree(
    "--enable-leader-election --logtostderr=true --v=5 \
     --feature-gates=AllAlpha=true,AllBeta=true,EnableExternalCerts=false,TemplateNoDefaults=false",
    "InPlacePodVerticalScaling"
)]
fn command_lines_of_1_9(#[case] line: &str, #[case] on: &str) {
    let flags = parse(line).unwrap();
    assert!(flags.is_set("enable-leader-election"));
    assert!(
        FeatureGates::parse(flags.text("feature-gates"))
            .unwrap()
            .is_on(on)
    );
}
