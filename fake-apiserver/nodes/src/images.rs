//! A simulated image registry: reference to digest, time to pull, failures.
//!
//! An image below a name that nobody may have (`invalid.…`, `….invalid`) cannot be pulled, unless it is registered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use client_kit::{Credential, Seed};

use super::programs::Program;

/// How long it takes to ask a registry for an image that is on the node, at most.
const RESOLVE: Duration = Duration::from_millis(20);

/// Why an image cannot be pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullFailure {
    /// The registry does not know it.
    NotFound,
    /// The registry's name is unknown.
    Unreachable,
}

/// A pull that failed, as the container runtime answers it. The texts are those of the resolver of containerd 2.0 (1.6 has others
/// where a registry refuses or is busy).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rpc error: code = {code} desc = {message}")]
pub struct PullError {
    /// The name of the status code: `NotFound`, or `Unknown`.
    pub code: &'static str,
    /// The runtime's text.
    pub message: String,
}

impl PullError {
    fn new(code: &'static str, name: &str, why: &str) -> Self {
        let message = format!(
            "failed to pull and unpack image \"{name}\": failed to resolve reference \"{name}\": {why}"
        );
        Self { code, message }
    }

    /// The text that the kubelet makes of it: it leaves out a code that says nothing.
    #[must_use]
    pub fn of_kubelet(&self) -> String {
        match self.code {
            UNKNOWN => self.message.clone(),
            _ => self.to_string(),
        }
    }
}

/// The code of a failure without one of its own.
const UNKNOWN: &str = "Unknown";
/// The resolver of a node, in the texts of names that are unknown.
const RESOLVER: &str = "127.0.0.53:53";
/// How long a node takes to pull an image of which nothing is said but that it cannot have it from the start.
const PULL: Duration = Duration::from_secs(1);

/// The registry's entry of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `sha256:…`; two references may have one digest.
    pub digest: String,
    /// How long a node that does not have it takes to get it. A node that has it and is to ask for it all the same
    /// (`imagePullPolicy: Always`) takes 20 ms at most.
    pub pull: Duration,
    /// Its size, as the kubelet's `Pulled` event shows it.
    pub size_bytes: u64,
    /// Set if pulling fails.
    pub failure: Option<PullFailure>,
    /// How many pulls of each node fail before one succeeds.
    pub failures: u32,
    /// The credential that a pull needs.
    pub credential: Option<Credential>,
    /// Whether every node has it from the start.
    pub preloaded: bool,
    /// The program of its containers; by default they serve until they are stopped.
    pub program: Option<Program>,
}

impl Image {
    /// An image that every node has, with a digest made from its reference.
    #[must_use]
    pub fn preloaded(reference: &str) -> Self {
        Self {
            digest: digest_of(reference),
            pull: PULL,
            size_bytes: 20_000_000,
            failure: None,
            failures: 0,
            credential: None,
            preloaded: true,
            program: None,
        }
    }

    /// An image that a node has to pull first.
    #[must_use]
    pub fn remote(reference: &str, pull: Duration) -> Self {
        Self {
            pull,
            preloaded: false,
            ..Self::preloaded(reference)
        }
    }

    /// An image that does not exist.
    #[must_use]
    pub fn missing(reference: &str) -> Self {
        let pull = Duration::from_millis(20);
        Self {
            failure: Some(PullFailure::NotFound),
            preloaded: false,
            pull,
            ..Self::preloaded(reference)
        }
    }

    /// An image whose registry's name is unknown.
    #[must_use]
    pub fn unreachable(reference: &str) -> Self {
        Self {
            failure: Some(PullFailure::Unreachable),
            ..Self::missing(reference)
        }
    }

    /// The same image, of which so many pulls of each node fail first.
    #[must_use]
    pub fn with_failures(mut self, failures: u32) -> Self {
        self.failures = failures;
        self.preloaded &= failures == 0;
        self
    }

    /// The same image, which is pulled with this credential alone.
    #[must_use]
    pub fn with_credential(mut self, credential: Credential) -> Self {
        self.credential = Some(credential);
        self.preloaded = false;
        self
    }

    /// The same image with a scripted program.
    #[must_use]
    pub fn with_program(mut self, program: Program) -> Self {
        self.program = Some(program);
        self
    }

    /// The same image under a known digest (`sha256:…`).
    #[must_use]
    pub fn with_digest(mut self, digest: &str) -> Self {
        digest.clone_into(&mut self.digest);
        self
    }
}

fn digest_of(reference: &str) -> String {
    let mut random = Seed(0).fork(&canonical(reference)).random();
    let mut bytes = [0_u8; 32];
    random.fill(&mut bytes);
    format!("sha256:{}", client_kit::hex(&bytes))
}

/// The full name that containerd gives a reference: `nginx` is `docker.io/library/nginx:latest`.
#[must_use]
pub fn canonical(reference: &str) -> String {
    let is_host =
        |name: &str| name.contains(['.', ':']) || name == "localhost" || name.contains(char::is_uppercase);
    let (host, path) = match reference.split_once('/') {
        // The older name of the same registry.
        Some(("docker.io" | "index.docker.io", path)) => ("docker.io", path),
        Some((host, path)) if is_host(host) => (host, path),
        _ => ("docker.io", reference),
    };
    let full = if host == "docker.io" && !path.contains('/') {
        format!("{host}/library/{path}")
    } else {
        format!("{host}/{path}")
    };
    let name = full.rsplit('/').next().unwrap_or_default();
    if name.contains([':', '@']) {
        full
    } else {
        format!("{full}:latest")
    }
}

/// `docker.io/library/nginx` of `docker.io/library/nginx:1.7.9`.
fn repository(canonical: &str) -> &str {
    let name_start = canonical.rfind('/').map_or(0, |at| at + 1);
    match canonical[name_start..].find([':', '@']) {
        Some(at) => &canonical[..name_start + at],
        None => canonical,
    }
}

/// Whether the registry of a canonical name is one that nobody may have.
fn is_below_invalid(name: &str) -> bool {
    let host = name.split('/').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    host.starts_with("invalid.") || host.ends_with(".invalid")
}

/// The host of a registry, and where it has the description of an image, by the image's canonical name.
fn place_of(name: &str) -> (&str, String) {
    let repository = repository(name);
    let tag = name.strip_prefix(repository).unwrap_or_default();
    let tag = tag.trim_start_matches([':', '@']);
    let (host, path) = repository.split_once('/').unwrap_or(("", repository));
    let host = match host {
        "docker.io" => "registry-1.docker.io",
        host => host,
    };
    (host, format!("https://{host}/v2/{path}/manifests/{tag}"))
}

#[derive(Default)]
struct Inner {
    known: BTreeMap<String, Image>,
    /// By the beginning of their references, as written or canonical.
    beginnings: BTreeMap<String, Image>,
    /// Canonical references that each node has pulled.
    pulled: BTreeSet<(String, String)>,
    /// How many pulls of each node have failed, by the canonical reference, of images whose first pulls fail.
    failed: BTreeMap<(String, String), u32>,
}

/// The images of a cluster, shared by its nodes. A reference that was never registered is an image that every node has.
#[derive(Clone, Default)]
pub struct ImageRegistry(Arc<Mutex<Inner>>);

impl ImageRegistry {
    /// Registers an image under a reference.
    pub fn set(&self, reference: &str, image: Image) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .known
            .insert(canonical(reference), image);
    }

    /// Registers an image for all references that begin so and are not registered themselves.
    pub fn set_beginning(&self, beginning: &str, image: Image) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.beginnings.insert(beginning.to_owned(), image);
    }

    /// The registered image of a reference, if there is one: its own, or that of the longest beginning.
    #[must_use]
    pub fn registered(&self, reference: &str) -> Option<Image> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full = canonical(reference);
        let begins = |beginning: &str| reference.starts_with(beginning) || full.starts_with(beginning);
        let of_beginning = || {
            let found = inner.beginnings.iter().filter(|(beginning, _)| begins(beginning));
            found
                .max_by_key(|(beginning, _)| beginning.len())
                .map(|(_, image)| image)
        };
        inner.known.get(&full).or_else(of_beginning).cloned()
    }

    /// The image of a reference.
    #[must_use]
    pub fn get(&self, reference: &str) -> Image {
        let unregistered = || match is_below_invalid(&canonical(reference)) {
            true => Image::unreachable(reference),
            false => Image::preloaded(reference),
        };
        self.registered(reference).unwrap_or_else(unregistered)
    }

    /// Whether a node has the image already.
    #[must_use]
    pub fn is_on(&self, node: &str, reference: &str) -> bool {
        let image = self.get(reference);
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        image.preloaded || inner.pulled.contains(&(node.to_owned(), canonical(reference)))
    }

    /// How long a node takes to get an image, or to find out that it cannot.
    #[must_use]
    pub fn pull_time(&self, node: &str, reference: &str) -> Duration {
        let image = self.get(reference);
        match image.failure.is_none() && self.is_on(node, reference) {
            true => image.pull.min(RESOLVE),
            false => image.pull,
        }
    }

    /// Puts an image onto a node, as it is there after a pull with the first of these credentials that fits.
    ///
    /// # Errors
    /// If the image cannot be pulled.
    pub fn pulled(&self, node: &str, reference: &str, credentials: &[Credential]) -> Result<(), PullError> {
        let image = self.get(reference);
        let name = canonical(reference);
        let (host, url) = place_of(&name);
        match image.failure {
            Some(PullFailure::NotFound) => {
                return Err(PullError::new("NotFound", &name, &format!("{name}: not found")));
            }
            Some(PullFailure::Unreachable) => {
                let name_of_host = host.split(':').next().unwrap_or_default();
                let why = format!(
                    "failed to do request: Head \"{url}\": dial tcp: lookup {name_of_host} on {RESOLVER}: no such host"
                );
                return Err(PullError::new(UNKNOWN, &name, &why));
            }
            None => {}
        }
        if image
            .credential
            .as_ref()
            .is_some_and(|credential| !credentials.contains(credential))
        {
            let why = match credentials {
                [] => "pull access denied, repository does not exist or may require authorization: authorization failed: \
                       no basic auth credentials"
                    .to_owned(),
                _ => format!("unexpected status from HEAD request to {url}: 401 Unauthorized"),
            };
            return Err(PullError::new(UNKNOWN, &name, &why));
        }
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (node.to_owned(), name.clone());
        let failed = inner.failed.get(&place).copied().unwrap_or_default();
        if failed < image.failures {
            inner.failed.insert(place, failed + 1);
            let why = format!("unexpected status from HEAD request to {url}: 503 Service Unavailable");
            return Err(PullError::new(UNKNOWN, &name, &why));
        }
        inner.pulled.insert(place);
        Ok(())
    }

    /// The digest of an image that a node has.
    #[must_use]
    pub fn digest_on(&self, node: &str, reference: &str) -> Option<String> {
        let image = self.get(reference);
        let is_there = image.failure.is_none() && self.is_on(node, reference);
        is_there.then_some(image.digest)
    }

    /// The references of the registered images that a node has.
    #[must_use]
    pub fn names_on(&self, node: &str) -> Vec<String> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let preloaded = inner.known.iter().filter(|(_, image)| image.preloaded);
        let pulled = inner.pulled.iter().filter(|(on, _)| on == node);
        let names: BTreeSet<&String> = preloaded
            .map(|(name, _)| name)
            .chain(pulled.map(|(_, name)| name))
            .collect();
        names.into_iter().cloned().collect()
    }

    /// The `imageID` of a container that runs the image: `docker.io/library/nginx@sha256:…`.
    #[must_use]
    pub fn image_id(&self, reference: &str) -> String {
        format!(
            "{}@{}",
            repository(&canonical(reference)),
            self.get(reference).digest
        )
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("nginx", "docker.io/library/nginx:latest")]
    #[case("nginx:1.7.9", "docker.io/library/nginx:1.7.9")]
    #[case("example/guestbook:v1", "docker.io/example/guestbook:v1")]
    #[case("registry.example.com/a/b", "registry.example.com/a/b:latest")]
    #[case("localhost:5000/a:1", "localhost:5000/a:1")]
    #[case("localhost/a", "localhost/a:latest")]
    #[case("docker.io/nginx", "docker.io/library/nginx:latest")]
    #[case("docker.io/a/b:1", "docker.io/a/b:1")]
    #[case("index.docker.io/nginx:1", "docker.io/library/nginx:1")]
    #[case("library/nginx", "docker.io/library/nginx:latest")]
    #[case("a/b/c", "docker.io/a/b/c:latest")]
    #[case("host:1/a", "host:1/a:latest")]
    #[case("Host/a", "Host/a:latest")]
    #[case("nginx@sha256:00", "docker.io/library/nginx@sha256:00")]
    #[case("e.com/a:1@sha256:00", "e.com/a:1@sha256:00")]
    fn references(#[case] reference: &str, #[case] expected: &str) {
        assert_eq!(canonical(reference), expected);
    }

    #[rstest]
    #[case("nginx", "docker.io/library/nginx")]
    #[case("nginx:1.7.9", "docker.io/library/nginx")]
    #[case("e.com:5000/a/b:1", "e.com:5000/a/b")]
    #[case("e.com/a@sha256:00", "e.com/a")]
    #[case("e.com/a:1@sha256:00", "e.com/a")]
    #[case("e.com:5000/a", "e.com:5000/a")]
    fn repositories(#[case] reference: &str, #[case] expected: &str) {
        assert_eq!(repository(&canonical(reference)), expected);
    }

    /// An image, whether the node has it before and after a pull, and how long the pull takes, in milliseconds.
    #[rstest]
    #[case::preloaded(Image::preloaded("a:1"), true, 20, true)]
    #[case::remote(Image::remote("a:1", Duration::from_secs(9)), false, 9000, true)]
    #[case::missing(Image::missing("a:1"), false, 20, false)]
    fn pulls(#[case] image: Image, #[case] before: bool, #[case] takes_ms: u128, #[case] after: bool) {
        let registry = ImageRegistry::default();
        registry.set("a:1", image);
        assert_eq!(registry.digest_on("n", "a:1").is_some(), before);
        assert_eq!(registry.pull_time("n", "a:1").as_millis(), takes_ms);
        let pulled = registry.pulled("n", "a:1", &[]);
        assert_eq!(
            (pulled.is_ok(), registry.digest_on("n", "a:1").is_some()),
            (after, after)
        );
        if let Err(error) = pulled {
            assert!(
                error.message.ends_with("docker.io/library/a:1: not found"),
                "{error}"
            );
        }
    }

    fn credential(username: &str) -> Credential {
        Credential {
            username: username.to_owned(),
            password: "p".to_owned(),
        }
    }

    /// An image, the credentials of a pull, and the end of the text of its failure.
    #[rstest]
    #[case::private("r.example.com/a:1", Image::preloaded("a").with_credential(credential("u")), &[],
        "pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials")]
    #[case::of_another("r.example.com/a:1", Image::preloaded("a").with_credential(credential("u")), &["v"],
        "unexpected status from HEAD request to https://r.example.com/v2/a/manifests/1: 401 Unauthorized")]
    #[case::with_the_login("r.example.com/a:1", Image::preloaded("a").with_credential(credential("u")), &["v", "u"], "")]
    #[case::unreachable("r.example.com:5000/a/b@sha256:00", Image::unreachable("a"), &[],
        "failed to do request: Head \"https://r.example.com:5000/v2/a/b/manifests/sha256:00\": dial tcp: lookup \
         r.example.com on 127.0.0.53:53: no such host")]
    #[case::busy("a", Image::preloaded("a").with_failures(1), &[],
        "unexpected status from HEAD request to https://registry-1.docker.io/v2/library/a/manifests/latest: 503 Service Unavailable")]
    fn failures(
        #[case] reference: &str,
        #[case] image: Image,
        #[case] credentials: &[&str],
        #[case] end: &str,
    ) {
        let registry = ImageRegistry::default();
        registry.set(reference, image);
        assert!(!registry.is_on("n", reference));
        let credentials: Vec<Credential> = credentials.iter().map(|name| credential(name)).collect();
        let pulled = registry.pulled("n", reference, &credentials);
        let name = canonical(reference);
        let begin =
            format!("failed to pull and unpack image \"{name}\": failed to resolve reference \"{name}\": ");
        let told = pulled.as_ref().map_err(PullError::of_kubelet).err();
        assert_eq!(told.unwrap_or(begin.clone()), format!("{begin}{end}"));
        assert_eq!(registry.is_on("n", reference), pulled.is_ok());
    }

    #[test]
    fn so_many_pulls_of_each_node_fail_first() {
        let registry = ImageRegistry::default();
        registry.set("a:1", Image::preloaded("a:1").with_failures(2));
        let pull = |node| registry.pulled(node, "a:1", &[]).is_ok();
        assert_eq!(
            [pull("n"), pull("n"), pull("m"), pull("n"), pull("n")],
            [false, false, false, true, true]
        );
    }

    #[rstest]
    #[case("invalid.registry.k8s.io/invalid/alpine:3.1", true)]
    #[case("registry.invalid/a", true)]
    #[case("registry.invalid:5000/a", true)]
    #[case("registry.example.com/invalid.a:1", false)]
    #[case("invalid/a", false)]
    fn nobody_has_images_below_invalid(#[case] reference: &str, #[case] fails: bool) {
        let registry = ImageRegistry::default();
        assert_eq!(registry.pulled("n", reference, &[]).is_err(), fails);
        registry.set(reference, Image::preloaded(reference));
        assert_eq!(registry.pulled("n", reference, &[]), Ok(()));
    }

    #[test]
    fn tags_have_digests_of_their_own() {
        let registry = ImageRegistry::default();
        assert_ne!(registry.image_id("nginx:1"), registry.image_id("nginx:2"));
        assert!(
            registry
                .image_id("nginx:1")
                .starts_with("docker.io/library/nginx@sha256:")
        );
        registry.set(
            "nginx:2",
            Image::preloaded("nginx:2").with_digest(&registry.get("nginx:1").digest),
        );
        assert_eq!(registry.image_id("nginx:1"), registry.image_id("nginx:2"));
        registry.set("slow:1", Image::remote("slow:1", Duration::from_secs(9)));
        assert!(!registry.is_on("node1", "slow:1"));
        assert_eq!(registry.pulled("node1", "slow:1", &[]), Ok(()));
        assert!(registry.is_on("node1", "slow:1") && !registry.is_on("node2", "slow:1"));
    }
}
