//! The flags of OpenKruise's daemon, 1.9.0's.

use controller::process::flags::{logging, unused};
use controller::workloads::{Flag, Takes};

/// The flags that steer something here.
const USED: [Flag; 7] = [
    (
        "addr",
        Takes::Text,
        ":10221",
        "the address of healthz and metrics; 0 for none",
    ),
    (
        "socket-file",
        Takes::Text,
        "",
        "the socket of the container runtime, instead of all that are below /hostvarrun",
    ),
    (
        "max-workers-for-pull-image",
        Takes::Number,
        "-1",
        "how many images are pulled at a time; 0 or less for no limit",
    ),
    (
        "kubeconfig",
        Takes::Text,
        "",
        "the kubeconfig to use outside of a cluster",
    ),
    ("feature-gates", Takes::Gates, "", "Name=true,Other=false"),
    (
        "version",
        Takes::Truth,
        "false",
        "print the version, the commit, and the versions of OpenKruise and Kubernetes",
    ),
    ("help", Takes::Truth, "false", "print this"),
];

/// The flags that steer nothing here. They are taken, so that OpenKruise's chart runs this daemon.
const NOT_USED: [(&str, Takes, &str); 6] = [
    ("enable-pprof", Takes::Truth, "true"),
    ("plugin-bin-dir", Takes::Text, "/kruise/plugins"),
    (
        "plugin-config-file",
        Takes::Text,
        "/kruise/CredentialProviderPlugin.yaml",
    ),
    ("pprof-addr", Takes::Text, ":10222"),
    ("rest-config-burst", Takes::Number, "0"),
    ("rest-config-qps", Takes::Number, "0"),
];

/// All flags.
#[must_use]
pub fn table() -> Vec<Flag> {
    USED.into_iter()
        .chain(unused(NOT_USED))
        .chain(logging())
        .collect()
}

#[cfg(test)]
mod tests {
    use controller::process::flags::Flags;
    use rstest::rstest;

    use super::*;

    fn parse(line: &str) -> Result<Flags, String> {
        let arguments = line.split_whitespace().map(str::to_owned);
        Flags::parse_of(&table(), arguments).map_err(|error| error.to_string())
    }

    /// A line, a flag, its text and its number.
    #[rstest]
    #[case("", "addr", ":10221", 0)]
    #[case("--addr=:1", "addr", ":1", 0)]
    #[case("", "max-workers-for-pull-image", "-1", 0)]
    #[case("--max-workers-for-pull-image=5", "max-workers-for-pull-image", "5", 5)]
    #[case("--socket-file /a/b.sock -v4", "socket-file", "/a/b.sock", 0)]
    #[case("--socket-file /a/b.sock -v4", "v", "4", 4)]
    #[case(
        "--enable-pprof=false --pprof-addr=:1 --rest-config-qps=5 --rest-config-burst=9",
        "pprof-addr",
        ":1",
        0
    )]
    #[case(
        "--plugin-config-file=/a --plugin-bin-dir=/b --logtostderr=true",
        "plugin-bin-dir",
        "/b",
        0
    )]
    #[case(
        "--feature-gates=A=true --feature-gates=B=false",
        "feature-gates",
        "A=true,B=false",
        0
    )]
    fn flags(#[case] line: &str, #[case] name: &str, #[case] text: &str, #[case] number: usize) {
        let flags = parse(line).unwrap();
        assert_eq!((flags.text(name), flags.number(name)), (text, number));
    }

    #[rstest]
    #[case("--nonesuch", "unknown flag: --nonesuch; there are --addr, --socket-file, ")]
    #[case(
        "--cloneset-workers=3",
        "unknown flag: --cloneset-workers; there are --addr, "
    )]
    #[case(
        "--max-workers-for-pull-image=a",
        "invalid value \"a\" for flag --max-workers-for-pull-image"
    )]
    #[case("--addr", "flag needs an argument: --addr")]
    #[case("now", "unexpected argument \"now\"")]
    fn wrong_lines(#[case] line: &str, #[case] begin: &str) {
        let error = parse(line).unwrap_err();
        assert!(error.starts_with(begin), "{error}");
    }
}
