//! A simulated image registry: reference to digest, time to pull, failures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use client_kit::Seed;

use super::programs::Program;

/// How long it takes to ask a registry for an image that is on the node, at most.
const RESOLVE: Duration = Duration::from_millis(20);

/// Why an image cannot be pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullFailure {
    /// The registry does not know it.
    NotFound,
}

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
            pull: Duration::from_secs(1),
            size_bytes: 20_000_000,
            failure: None,
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

/// What containerd says of an image that its registry does not have.
pub(super) fn not_found(image: &str) -> String {
    let name = canonical(image);
    format!(
        "rpc error: code = NotFound desc = failed to pull and unpack image \"{name}\": failed to resolve reference \
         \"{name}\": {name}: not found"
    )
}

#[derive(Default)]
struct Inner {
    known: BTreeMap<String, Image>,
    /// By the beginning of their references, as written or canonical.
    beginnings: BTreeMap<String, Image>,
    /// Canonical references that each node has pulled.
    pulled: BTreeSet<(String, String)>,
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
        self.registered(reference)
            .unwrap_or_else(|| Image::preloaded(reference))
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

    /// Puts an image onto a node, as it is there after a pull.
    ///
    /// # Errors
    /// The text of the container runtime where the image cannot be pulled.
    pub fn pulled(&self, node: &str, reference: &str) -> Result<(), String> {
        match self.get(reference).failure {
            Some(PullFailure::NotFound) => Err(not_found(reference)),
            None => {
                self.mark_pulled(node, reference);
                Ok(())
            }
        }
    }

    /// The digest of an image that a node has.
    #[must_use]
    pub fn digest_on(&self, node: &str, reference: &str) -> Option<String> {
        let image = self.get(reference);
        let is_there = image.failure.is_none() && self.is_on(node, reference);
        is_there.then_some(image.digest)
    }

    pub(super) fn mark_pulled(&self, node: &str, reference: &str) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.pulled.insert((node.to_owned(), canonical(reference)));
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
        let pulled = registry.pulled("n", "a:1");
        assert_eq!(
            (pulled.is_ok(), registry.digest_on("n", "a:1").is_some()),
            (after, after)
        );
        if let Err(error) = pulled {
            assert!(error.ends_with("docker.io/library/a:1: not found"), "{error}");
        }
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
        registry.mark_pulled("node1", "slow:1");
        assert!(registry.is_on("node1", "slow:1") && !registry.is_on("node2", "slow:1"));
    }
}
