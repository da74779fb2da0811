//! Seatrial's additions to Chainsaw, in annotations, so that a scenario stays a valid Chainsaw test.

use std::collections::BTreeMap;
use std::time::Duration;

use fake_apiserver::faults::Fault;

use super::duration;

/// The suffixes that pods get, in the order of their creation: `cs-demo-: 4wz2z, cg8bt, mdqwn`, a prefix a line.
const POD_NAMES: &str = "seatrial.dev/pod-names";
/// The recordings that judge the scenario, a line each: `1.0.1/s1-cs-demo: 4xj8z=cg8bt, 5twdq=mdqwn`; the pairs say which
/// recorded pod is which of the scenario's.
const RECORDINGS: &str = "seatrial.dev/recordings";
/// Feature gates of OpenKruise's manager, as its flag takes them.
const FEATURE_GATES: &str = "seatrial.dev/feature-gates";
/// `true` if OpenKruise's daemon runs on the nodes.
const DAEMON: &str = "seatrial.dev/daemon";
/// `true` if a run plays the scenario before the others, and shows it step by step.
const SHOWN_FIRST: &str = "seatrial.dev/shown-first";
/// The seed of the scenario, if it must be a certain one.
const SEED: &str = "seatrial.dev/seed";

/// The digests of images, a line each: `nginx:1.25.3: sha256:…`. Two references may have one digest.
const IMAGES: &str = "seatrial.dev/images";
/// How long nodes take to get images that they do not have, a line each: `nginx:1.30: 4s`.
const PULLS: &str = "seatrial.dev/pulls";
/// Images that no registry has.
const MISSING: &str = "seatrial.dev/missing-images";
/// Faults in YAML, as `fake_apiserver::faults::Fault` reads them, by the name of the step that they begin with.
const FAULTS: &str = "seatrial.dev/faults";

/// The contents of the annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extras {
    /// Suffixes by prefix.
    pub pod_names: Vec<(String, Vec<String>)>,
    /// Recordings by name, each with the names of its pods here.
    pub recordings: Vec<(String, BTreeMap<String, String>)>,
    /// Feature gates.
    pub gates: String,
    /// Whether the daemon runs.
    pub daemon: bool,
    /// The digests of images, by reference.
    pub images: BTreeMap<String, String>,
    /// How long nodes take to get images, by reference.
    pub pulls: BTreeMap<String, Duration>,
    /// Images that no registry has.
    pub missing: Vec<String>,
    /// The faults from a step on, by the step's name.
    pub faults: BTreeMap<String, Vec<Fault>>,
    /// Whether the scenario is played first and shown step by step.
    pub shown_first: bool,
    /// The seed.
    pub seed: Option<u64>,
}

fn list(text: &str) -> impl Iterator<Item = String> {
    text.split([',', ' '])
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
}

/// An image and the text about it.
fn of_image(key: &str, line: &str, what: &str) -> Result<(String, String), String> {
    let (image, said) = line
        .split_once(": ")
        .ok_or_else(|| format!("{key}: \"{line}\" is not of the form `image: {what}`"))?;
    Ok((image.trim().to_owned(), said.trim().to_owned()))
}

fn flag(key: &str, value: &str) -> Result<bool, String> {
    value
        .trim()
        .parse()
        .map_err(|_| format!("{key}: \"{value}\" is neither true nor false"))
}

impl Extras {
    /// Reads the annotations.
    ///
    /// # Errors
    /// Which annotation is wrong, and how.
    pub fn read(annotations: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut extras = Self::default();
        for (key, value) in annotations
            .iter()
            .filter(|(key, _)| key.starts_with("seatrial.dev/"))
        {
            let lines = value.lines().map(str::trim).filter(|line| !line.is_empty());
            match key.as_str() {
                POD_NAMES => {
                    for line in lines {
                        let (prefix, names) = line.split_once(':').ok_or_else(|| {
                            format!("{key}: \"{line}\" is not of the form `prefix-: name, name`")
                        })?;
                        extras
                            .pod_names
                            .push((prefix.trim().to_owned(), list(names).collect()));
                    }
                }
                FEATURE_GATES => {
                    controller::process::gates::FeatureGates::parse(value)
                        .map_err(|error| format!("{key}: {error}"))?;
                    extras.gates = value.trim().to_owned();
                }
                DAEMON => extras.daemon = flag(key, value)?,
                SHOWN_FIRST => extras.shown_first = flag(key, value)?,
                RECORDINGS => {
                    for line in lines {
                        let (name, pairs) = line.split_once(':').unwrap_or((line, ""));
                        let mut map = BTreeMap::new();
                        for pair in list(pairs) {
                            let (from, to) = pair.split_once('=').ok_or_else(|| {
                                format!("{key}: \"{pair}\" is not of the form `recorded=here`")
                            })?;
                            map.insert(from.to_owned(), to.to_owned());
                        }
                        extras.recordings.push((name.trim().to_owned(), map));
                    }
                }
                IMAGES => {
                    for line in lines {
                        let (image, digest) = of_image(key, line, "digest")?;
                        extras.images.insert(image, digest);
                    }
                }
                PULLS => {
                    for line in lines {
                        let (image, time) = of_image(key, line, "time")?;
                        let pull = duration::parse(&time)
                            .ok_or_else(|| format!("{key}: \"{time}\" is no duration such as 4s"))?;
                        extras.pulls.insert(image, pull);
                    }
                }
                MISSING => extras.missing = list(value).collect(),
                FAULTS => {
                    extras.faults =
                        serde_saphyr::from_str(value).map_err(|error| format!("{key}: {error}"))?;
                }
                SEED => {
                    let seed = value
                        .trim()
                        .parse()
                        .map_err(|_| format!("{key}: \"{value}\" is not a number"))?;
                    extras.seed = Some(seed);
                }
                other => return Err(format!("the annotation {other} is not known")),
            }
        }
        Ok(extras)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, value: &str) -> Result<Extras, String> {
        Extras::read(&BTreeMap::from([(key.to_owned(), value.to_owned())]))
    }

    #[test]
    fn reads_annotations() {
        let extras = read(POD_NAMES, "cs-demo-: 4wz2z, cg8bt").expect("names");
        assert_eq!(
            extras.pod_names,
            [(
                "cs-demo-".to_owned(),
                vec!["4wz2z".to_owned(), "cg8bt".to_owned()]
            )]
        );
        let extras = read(RECORDINGS, "1.0.1/s1: a=b, c=d\n1.5.0/s1").expect("recordings");
        assert_eq!(extras.recordings.len(), 2);
        assert_eq!(extras.recordings[0].1.get("c").map(String::as_str), Some("d"));
        let extras = read(FAULTS, "two:\n- {do: endWatch}\n- {do: {delay: 1s}, times: 1}").expect("faults");
        assert_eq!(extras.faults.get("two").map(Vec::len), Some(2));
        assert!(read(FAULTS, "two:\n- {do: nothing}").is_err());
        assert!(read("seatrial.dev/nonsense", "").is_err());
        let extras = read(IMAGES, "nginx:1.25: sha256:ab\nnginx:1.25.3: sha256:ab").expect("images");
        assert_eq!(
            extras.images.get("nginx:1.25").map(String::as_str),
            Some("sha256:ab")
        );
        assert!(read(IMAGES, "nginx:1.25").is_err());
        assert!(read(POD_NAMES, "no colon").is_err());
        assert!(read(SEED, "x").is_err());
        assert!(read(SHOWN_FIRST, "true").expect("a flag").shown_first);
        assert!(read(SHOWN_FIRST, "yes").is_err());
    }
}
