//! References to images (`nginx:1.25`), as Docker's library reads them.

use std::sync::LazyLock;

use regex::Regex;

/// The registry of references that name none.
const DEFAULT_DOMAIN: &str = "docker.io";
/// The older name of the same registry.
const OLD_DOMAIN: &str = "index.docker.io";
/// The repository of images whose name has one part, in the default registry.
const DEFAULT_REPOSITORY: &str = "library/";
/// The tag of references that have none.
const DEFAULT_TAG: &str = "latest";
/// How long the name of an image may be.
const NAME_LENGTH_MAX: usize = 255;

/// A registry, a path of lower-case words, a tag, a digest.
static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let domain = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?";
    let word = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*";
    let tag = r"(?::([\w][\w.-]{0,127}))?";
    let digest = r"(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?";
    Regex::new(&format!("^((?:{domain}/)?{word}(?:/{word})*){tag}{digest}$")).ok()
});

/// An image's name and its tag, or its digest where the reference has one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ImageReference {
    /// The name in its short form: `nginx` for `docker.io/library/nginx`.
    pub(crate) name: String,
    /// The tag, or the digest (`sha256:…`).
    pub(crate) tag: String,
}

impl ImageReference {
    /// Reads a reference.
    ///
    /// # Errors
    /// The text of Docker's library where it is none.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        const IN_CAPITALS: &str = "invalid reference format: repository name must be lowercase";
        let (domain, path) = split(text);
        let path_only = path.split(':').next().unwrap_or_default();
        if path_only.to_lowercase() != path_only {
            return Err(IN_CAPITALS);
        }
        let full = format!("{domain}/{path}");
        let invalid = "invalid reference format";
        let found = REFERENCE.as_ref().and_then(|reference| reference.captures(&full));
        let parts = found.ok_or(invalid)?;
        let part = |at: usize| parts.get(at).map(|part| part.as_str());
        let name = part(1).unwrap_or_default();
        if name.len() > NAME_LENGTH_MAX {
            return Err("repository name must not be more than 255 characters");
        }
        let tag = part(3).or(part(2)).unwrap_or(DEFAULT_TAG);
        Ok(Self {
            name: short(name).to_owned(),
            tag: tag.to_owned(),
        })
    }

    /// The reference of a tag or a digest of an image.
    pub(crate) fn text(name: &str, tag: &str) -> String {
        let mark = if tag.contains(':') { '@' } else { ':' };
        format!("{name}{mark}{tag}")
    }
}

/// The registry of a reference, and the rest.
fn split(text: &str) -> (&str, String) {
    let is_domain =
        |word: &str| word.contains(['.', ':']) || word == "localhost" || word.chars().any(char::is_uppercase);
    let (domain, path) = match text.split_once('/') {
        Some((OLD_DOMAIN, path)) => (DEFAULT_DOMAIN, path),
        Some((domain, path)) if is_domain(domain) => (domain, path),
        _ => (DEFAULT_DOMAIN, text),
    };
    match domain == DEFAULT_DOMAIN && !path.contains('/') {
        true => (domain, format!("{DEFAULT_REPOSITORY}{path}")),
        false => (domain, path.to_owned()),
    }
}

/// A name without the default registry and its default repository.
fn short(name: &str) -> &str {
    let Some(path) = name
        .strip_prefix(DEFAULT_DOMAIN)
        .and_then(|rest| rest.strip_prefix('/'))
    else {
        return name;
    };
    match path.strip_prefix(DEFAULT_REPOSITORY) {
        Some(image) if !image.contains('/') => image,
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef";

    #[rstest]
    #[case("nginx", "nginx", "latest")]
    #[case("docker.io/library/nginx:1", "nginx", "1")]
    #[case("index.docker.io/nginx:1", "nginx", "1")]
    #[case("docker.io/library/a/b:1", "library/a/b", "1")]
    #[case("example/guestbook:v1", "example/guestbook", "v1")]
    #[case("reg.local:5000/a/b:1", "reg.local:5000/a/b", "1")]
    #[case("localhost/a", "localhost/a", "latest")]
    #[case("Host/a:1", "Host/a", "1")]
    #[case(&format!("x@{DIGEST}"), "x", DIGEST)]
    #[case(&format!("x:1@{DIGEST}"), "x", DIGEST)]
    fn names_and_tags(#[case] text: &str, #[case] name: &str, #[case] tag: &str) {
        let reference = ImageReference::parse(text).unwrap();
        assert_eq!((&*reference.name, &*reference.tag), (name, tag));
    }

    #[rstest]
    #[case("", "invalid reference format")]
    #[case("a b", "invalid reference format")]
    #[case("nginx:", "invalid reference format")]
    #[case("nginx@sha256:00", "invalid reference format")]
    #[case("NGINX:x", "invalid reference format: repository name must be lowercase")]
    #[case("A b:c", "invalid reference format: repository name must be lowercase")]
    #[case(&"a".repeat(300), "repository name must not be more than 255 characters")]
    fn texts_that_are_none(#[case] text: &str, #[case] expect: &str) {
        assert_eq!(ImageReference::parse(text), Err(expect));
    }

    #[rstest]
    #[case("nginx", "1", "nginx:1")]
    #[case("nginx", DIGEST, "nginx@sha256:0123456789abcdef0123456789abcdef")]
    fn texts(#[case] name: &str, #[case] tag: &str, #[case] expect: &str) {
        assert_eq!(ImageReference::text(name, tag), expect);
    }
}
