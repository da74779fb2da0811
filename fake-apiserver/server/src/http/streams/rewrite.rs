//! Links of pages that came through the proxy: those to the same host lead back through it.

use std::sync::LazyLock;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use regex::{Captures, Regex};

/// An attribute with a path in quotes.
static LINK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)(\s(?:href|src|action|cite|codebase|data|formaction|icon|longdesc|poster|usemap)=)(["'])(/[^"']*)(["'])"#).ok()
});

/// Whether an answer is a page.
pub(super) fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/html")
}

/// A page with its links below `prefix`.
pub(super) fn page(text: &str, prefix: &str) -> String {
    let Some(links) = &*LINK else {
        return text.to_owned();
    };
    let changed = links.replace_all(text, |found: &Captures<'_>| {
        let part = |number: usize| found.get(number).map_or("", |part| part.as_str());
        format!("{}{}{}{}", part(1), part(2), link(part(3), prefix), part(4))
    });
    changed.into_owned()
}

/// A link with its path below `prefix`, if it is one to the same host.
pub(super) fn link(target: &str, prefix: &str) -> String {
    let is_own = target.starts_with('/') && !target.starts_with("//") && !target.starts_with(prefix);
    if is_own {
        format!("{prefix}{target}")
    } else {
        target.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"<a href="/rewriteme">test</a>"#, r#"<a href="/p/rewriteme">test</a>"#)]
    #[case(r#"<img src='/a.png'>"#, r#"<img src='/p/a.png'>"#)]
    #[case(r#"<a href="b">"#, r#"<a href="b">"#)]
    #[case(r#"<a href="//other/b">"#, r#"<a href="//other/b">"#)]
    #[case(r#"<a href="http://other/b">"#, r#"<a href="http://other/b">"#)]
    #[case(r#"<a href="/p/b">"#, r#"<a href="/p/b">"#)]
    #[case("href=\"/b\"", "href=\"/b\"")]
    fn links(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(page(text, "/p"), expected);
    }
}
