//! The command line, with the flags of OpenKruise's manager: Go's way of writing them, its names and its defaults.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ProcessError;

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// `true` or `false`; alone, the flag means `true`.
    Truth,
    /// A whole number.
    Number,
    /// `1h30m`, `15s`, `5ms`.
    Duration,
    /// Anything.
    Text,
}

/// A flag: its name, what it takes, its default, what it is for.
type Flag = (&'static str, Takes, &'static str, &'static str);

/// Every flag. Those without a use here are taken all the same, so that the chart's own templates run this manager.
const FLAGS: [Flag; 42] = [
    (
        "install",
        Takes::Truth,
        "false",
        "apply definitions, roles, Service, Secret and webhook configurations first",
    ),
    (
        "kubeconfig",
        Takes::Text,
        "",
        "the kubeconfig to use outside of a cluster",
    ),
    (
        "webhook-url",
        Takes::Text,
        "",
        "where the API server reaches the webhooks of a manager outside of the cluster",
    ),
    (
        "metrics-addr",
        Takes::Text,
        ":8080",
        "the address of the metrics; 0 for none",
    ),
    (
        "health-probe-addr",
        Takes::Text,
        ":8000",
        "the address of healthz and readyz; 0 for none",
    ),
    (
        "allow-privileged",
        Takes::Truth,
        "true",
        "let templates ask for privileged containers",
    ),
    (
        "enable-leader-election",
        Takes::Truth,
        "true",
        "act only while holding the lease",
    ),
    (
        "leader-election-namespace",
        Takes::Text,
        "kruise-system",
        "where the lease is",
    ),
    (
        "leader-election-id",
        Takes::Text,
        "kruise-manager",
        "the name of the lease",
    ),
    (
        "leader-election-lease-duration",
        Takes::Duration,
        "15s",
        "for how long a lease holds that is not renewed",
    ),
    (
        "leader-election-renew-deadline",
        Takes::Duration,
        "10s",
        "for how long a leader tries to renew",
    ),
    (
        "leader-election-retry-period",
        Takes::Duration,
        "2s",
        "how often a lease is tried",
    ),
    (
        "leader-election-resource-lock",
        Takes::Text,
        "leases",
        "the kind of the lock; leases is the only one",
    ),
    ("namespace", Takes::Text, "", "look at this namespace alone"),
    (
        "sync-period",
        Takes::Text,
        "",
        "how often everything is looked at again (not needed here)",
    ),
    (
        "enable-pprof",
        Takes::Truth,
        "true",
        "profiles (there are none here)",
    ),
    ("pprof-addr", Takes::Text, ":8090", "the address of profiles"),
    ("rest-config-qps", Takes::Number, "30", "requests a second"),
    ("rest-config-burst", Takes::Number, "50", "requests at once"),
    ("feature-gates", Takes::Text, "", "Name=true,Other=false"),
    (
        "cloneset-workers",
        Takes::Number,
        "3",
        "how many sets are worked on at a time",
    ),
    (
        "cloneset-scaling-exclude-preparing-delete",
        Takes::Truth,
        "false",
        "pods in PreparingDelete do not count when scaling",
    ),
    (
        "expectation-timeout",
        Takes::Duration,
        "5m0s",
        "how long to wait for the cache to show what was done",
    ),
    (
        "rate-limiter-base-delay",
        Takes::Duration,
        "5ms",
        "the first delay after a failure",
    ),
    (
        "rate-limiter-max-delay",
        Takes::Duration,
        "16m40s",
        "the longest delay after failures",
    ),
    ("rate-limiter-qps", Takes::Number, "10", "retries a second"),
    (
        "rate-limiter-bucket-size",
        Takes::Number,
        "100",
        "retries at once",
    ),
    (
        "v",
        Takes::Number,
        "0",
        "how much to log: 0 to 3 as it is, from 4 on more",
    ),
    ("vmodule", Takes::Text, "", "klog's; taken and not used"),
    (
        "logtostderr",
        Takes::Truth,
        "true",
        "klog's; logs always go to standard error",
    ),
    (
        "alsologtostderr",
        Takes::Truth,
        "false",
        "klog's; taken and not used",
    ),
    ("stderrthreshold", Takes::Text, "2", "klog's; taken and not used"),
    ("log_dir", Takes::Text, "", "klog's; taken and not used"),
    ("log_file", Takes::Text, "", "klog's; taken and not used"),
    (
        "log_file_max_size",
        Takes::Number,
        "1800",
        "klog's; taken and not used",
    ),
    (
        "log_backtrace_at",
        Takes::Text,
        ":0",
        "klog's; taken and not used",
    ),
    (
        "add_dir_header",
        Takes::Truth,
        "false",
        "klog's; taken and not used",
    ),
    ("one_output", Takes::Truth, "false", "klog's; taken and not used"),
    (
        "skip_headers",
        Takes::Truth,
        "false",
        "klog's; taken and not used",
    ),
    (
        "skip_log_headers",
        Takes::Truth,
        "false",
        "klog's; taken and not used",
    ),
    ("logging-format", Takes::Text, "text", "text or json"),
    ("help", Takes::Truth, "false", "print this"),
];

/// What was given on the command line, over the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flags(BTreeMap<&'static str, String>);

impl Default for Flags {
    fn default() -> Self {
        Self(
            FLAGS
                .iter()
                .map(|(name, _, default, _)| (*name, (*default).to_owned()))
                .collect(),
        )
    }
}

impl Flags {
    /// Reads the arguments after the program's name: `--flag=value`, `--flag value`, `-flag=value`, and `--flag` alone
    /// for truth values.
    ///
    /// # Errors
    /// If a flag is unknown (the error lists those that are known), lacks its value or has a wrong one.
    pub fn parse<I: IntoIterator<Item = String>>(arguments: I) -> Result<Self, ProcessError> {
        let mut flags = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let Some(body) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
                return Err(ProcessError::Flag(format!("unexpected argument {argument:?}")));
            };
            let (name, given) = match body.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (body, None),
            };
            let (name, takes, _, _) = FLAGS
                .iter()
                .find(|(known, _, _, _)| *known == name)
                .ok_or_else(|| unknown(name))?;
            let value = match (given, takes) {
                (Some(value), _) => value,
                (None, Takes::Truth) => "true".to_owned(),
                (None, _) => arguments
                    .next()
                    .ok_or_else(|| ProcessError::Flag(format!("flag needs an argument: --{name}")))?,
            };
            let fits = match takes {
                Takes::Truth => truth(&value).is_some(),
                Takes::Number => value.parse::<u32>().is_ok(),
                Takes::Duration => duration(&value).is_some(),
                Takes::Text => true,
            };
            if !fits {
                return Err(ProcessError::Flag(format!(
                    "invalid value {value:?} for flag --{name}"
                )));
            }
            flags.0.insert(name, value);
        }
        Ok(flags)
    }

    /// What each flag is for, a line each.
    #[must_use]
    pub fn usage() -> String {
        FLAGS
            .iter()
            .map(|(name, _, default, about)| match *default {
                "" => format!("  --{name}\n        {about}\n"),
                default => format!("  --{name} (default {default})\n        {about}\n"),
            })
            .collect()
    }

    /// A flag's text; empty for a flag that there is not.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Whether a flag is set to true.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        truth(self.text(name)).unwrap_or(false)
    }

    /// A flag's number.
    #[must_use]
    pub fn number(&self, name: &str) -> usize {
        self.text(name).parse().unwrap_or_default()
    }

    /// A flag's time.
    #[must_use]
    pub fn time(&self, name: &str) -> Duration {
        duration(self.text(name)).unwrap_or_default()
    }
}

fn unknown(name: &str) -> ProcessError {
    let known: Vec<String> = FLAGS
        .iter()
        .map(|(known, _, _, _)| format!("--{known}"))
        .collect();
    ProcessError::Flag(format!("unknown flag: --{name}; there are {}", known.join(", ")))
}

/// A truth value as Go's `strconv.ParseBool` reads it.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// A time as Go's `time.ParseDuration` reads it, whole numbers only.
fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let unit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let ms = match rest.get(..unit)? {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        total = total.checked_add(Duration::from_millis(number.checked_mul(ms)?))?;
        rest = rest.get(unit..)?;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn parse(line: &str) -> Result<Flags, ProcessError> {
        Flags::parse(line.split_whitespace().map(str::to_owned))
    }

    #[rstest]
    #[case("", "metrics-addr", ":8080")]
    #[case("--metrics-addr=:1", "metrics-addr", ":1")]
    #[case("-metrics-addr :2", "metrics-addr", ":2")]
    #[case("--enable-leader-election", "enable-leader-election", "true")]
    #[case("--enable-leader-election=false --v=5", "enable-leader-election", "false")]
    #[case("--feature-gates=A=true,B=false", "feature-gates", "A=true,B=false")]
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
    fn refusals(#[case] line: &str, #[case] expected: &str) {
        let error = parse(line).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    /// OpenKruise's charts and administrators set these; here they steer nothing, and refusing them would help nobody.
    #[rstest]
    #[case("--rest-config-qps=30 --rest-config-burst=50", "rest-config-qps", "30")]
    #[case(
        "--rate-limiter-base-delay=5ms --rate-limiter-max-delay=1000s",
        "rate-limiter-max-delay",
        "1000s"
    )]
    #[case(
        "--rate-limiter-qps=10 --rate-limiter-bucket-size=100",
        "rate-limiter-bucket-size",
        "100"
    )]
    #[case("--sync-period=10m", "sync-period", "10m")]
    #[case("--expectation-timeout=5m0s", "expectation-timeout", "5m0s")]
    #[case("--enable-pprof=true --pprof-addr=:8090", "enable-pprof", "true")]
    #[case("--logtostderr=true --log_dir=/tmp --alsologtostderr", "log_dir", "/tmp")]
    fn taken_and_not_used(#[case] line: &str, #[case] flag: &str, #[case] expected: &str) {
        assert_eq!(parse(line).unwrap().text(flag), expected);
    }

    #[rstest]
    #[case("15s", Some(15_000))]
    #[case("1h30m", Some(5_400_000))]
    #[case("5m0s", Some(300_000))]
    #[case("5ms", Some(5))]
    #[case("0", Some(0))]
    #[case("", None)]
    #[case("5", None)]
    #[case("5x", None)]
    #[case("99999999999999999999s", None)]
    fn durations(#[case] text: &str, #[case] ms: Option<u64>) {
        assert_eq!(duration(text), ms.map(Duration::from_millis));
    }

    #[test]
    fn every_default_is_a_value_of_its_flag() {
        for (name, _, default, _) in FLAGS {
            assert!(parse(&format!("--{name}={default}")).is_ok(), "{name}");
        }
    }
}
