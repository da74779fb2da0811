//! URLs as Go's `net/url` reads them: `url`, `isURL`, and the methods of URLs.
//!
//! Unlike a browser's parser it keeps ports, the case of hosts and the dots in paths, and takes URLs without a host.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::{Key, Map, Opaque};
use kube_cel::cel::{Context, ExecutionError, Value};
use pod_rules::field_error::go_quote;

use super::{readable, values};

/// The most parameters of a query that are read.
const PARAMETERS_MAX: usize = 10_000;

/// Reads one part of a URL.
type Read = fn(&Url) -> String;

/// Adds the functions.
pub(super) fn add(context: &mut Context<'static>) {
    context.add_function("url", |text: Arc<String>| match Url::read(&text) {
        Ok(url) => Ok(Value::Opaque(Arc::new(url))),
        Err(why) => {
            let why = format!("URL parse error during conversion from string: {why}");
            Err(ExecutionError::function_error("url", why))
        }
    });
    context.add_function("isURL", |text: Arc<String>| {
        Ok::<_, ExecutionError>(Value::Bool(parse(&text, true).is_ok()))
    });
    let texts: [(&str, Read); 5] = [
        ("getScheme", |url| url.scheme.clone()),
        ("getHost", |url| url.host.clone()),
        ("getHostname", |url| url.split_host().0.to_owned()),
        ("getPort", |url| url.split_host().1.to_owned()),
        ("getEscapedPath", |url| shown(&url.path, Part::Path)),
    ];
    for (name, read) in texts {
        context.add_function(name, move |This(this): This<Value>| {
            of_url(&this).map(|url| values::text(&read(url)))
        });
    }
    context.add_function("getQuery", |This(this): This<Value>| {
        of_url(&this).map(|url| parameters(&url.query))
    });
}

fn of_url(value: &Value) -> Result<&Url, ExecutionError> {
    match value {
        Value::Opaque(opaque) => opaque.downcast_ref::<Url>(),
        _ => None,
    }
    .ok_or(ExecutionError::NoSuchOverload)
}

/// A URL in its parts. Paths, queries and fragments are kept as they were written.
#[derive(Debug, Clone, Default)]
struct Url {
    scheme: String,
    /// The text after the scheme, if it does not begin with a slash.
    opaque: String,
    user: Option<String>,
    host: String,
    /// Whether a scheme is followed by a path at once.
    omits_host: bool,
    path: String,
    /// Whether a question mark ends it.
    asks: bool,
    query: String,
    fragment: String,
}

impl PartialEq for Url {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Url {}

impl Opaque for Url {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.URL"
    }
}

impl Url {
    /// Reads a text that has to be an absolute URL or an absolute path.
    fn read(text: &str) -> Result<Self, String> {
        parse(text, true).map_err(|why| refused(text, &why))?;
        // That takes a fragment for a part of the path or of the query.
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = parse(before, false).map_err(|why| refused(before, &why))?;
        unescape(fragment, Part::Fragment).map_err(|why| refused(text, &why))?;
        fragment.clone_into(&mut url.fragment);
        Ok(url)
    }

    /// The host without brackets, and the port.
    fn split_host(&self) -> (&str, &str) {
        let (mut host, mut port) = (self.host.as_str(), "");
        if let Some((before, after)) = host.rsplit_once(':')
            && after.bytes().all(|byte| byte.is_ascii_digit())
        {
            (host, port) = (before, after);
        }
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (bare.unwrap_or(host), port)
    }

    /// The URL as it is written anew: by this URLs are compared.
    fn text(&self) -> String {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            out = format!("{}:", self.scheme);
        }
        if self.opaque.is_empty() {
            self.write_place(&mut out);
        } else {
            out.push_str(&self.opaque);
        }
        if self.asks || !self.query.is_empty() {
            out.push('?');
            out.push_str(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push('#');
            out.push_str(&shown(&self.fragment, Part::Fragment));
        }
        out
    }

    /// Writes host and path.
    fn write_place(&self, out: &mut String) {
        let is_alone = self.host.is_empty() && self.user.is_none();
        let path = shown(&self.path, Part::Path);
        if !(is_alone && (self.scheme.is_empty() || self.omits_host)) {
            if !is_alone || !path.is_empty() {
                out.push_str("//");
            }
            if let Some(user) = &self.user {
                out.push_str(user);
                out.push('@');
            }
            out.push_str(&escape(self.host.as_bytes(), Part::Host));
        }
        if !self.host.is_empty() && !path.is_empty() && !path.starts_with('/') {
            out.push('/');
        }
        out.push_str(&path);
    }
}

fn refused(text: &str, why: &str) -> String {
    format!("parse {}: {why}", go_quote(text))
}

/// Reads a URL without its fragment. One of a request is absolute, or an absolute path.
fn parse(text: &str, is_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && is_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        text.clone_into(&mut url.path);
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    query.clone_into(&mut url.query);
    url.asks = query.is_empty() && text.ends_with('?');
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if is_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_host = !scheme.is_empty() || !is_request && !rest.starts_with("///");
    if let Some(after) = rest.strip_prefix("//").filter(|_| has_host) {
        let end = after.find('/').unwrap_or(after.len());
        let authority = after.get(..end).unwrap_or_default();
        rest = after.get(end..).unwrap_or_default();
        (url.user, url.host) = read_authority(&url.scheme, authority)?;
    } else {
        url.omits_host = !scheme.is_empty();
    }
    unescape(rest, Part::Path)?;
    rest.clone_into(&mut url.path);
    Ok(url)
}

/// The scheme, which may be missing, and the text after its colon.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'));
    match end.and_then(|at| text.split_at_checked(at)) {
        Some(("", rest)) if rest.starts_with(':') => Err("missing protocol scheme".to_owned()),
        Some((scheme, rest))
            if rest.starts_with(':') && scheme.starts_with(|c: char| c.is_ascii_alphabetic()) =>
        {
            Ok((scheme, rest.get(1..).unwrap_or_default()))
        }
        _ => Ok(("", text)),
    }
}

/// The user, escaped, and the host.
fn read_authority(scheme: &str, authority: &str) -> Result<(Option<String>, String), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let host = read_host(scheme, host)?;
    let Some(user) = user else {
        return Ok((None, host));
    };
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(is_valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let again = |text: &str| unescape(text, Part::User).map(|bytes| escape(&bytes, Part::User));
    let user = match user.split_once(':') {
        Some((name, password)) => format!("{}:{}", again(name)?, again(password)?),
        None => again(user)?,
    };
    Ok((Some(user), host))
}

fn read_host(scheme: &str, host: &str) -> Result<String, String> {
    let check_port = |port: &str| {
        let is_port = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if port.is_empty() || port.strip_prefix(':').is_some_and(is_port) {
            return Ok(());
        }
        Err(format!("invalid port {} after host", go_quote(port)))
    };
    match host.rfind('[') {
        Some(0) => {
            let Some((literal, port)) = host.get(1..).and_then(|host| host.rsplit_once(']')) else {
                return Err("missing ']' in host".to_owned());
            };
            check_port(port)?;
            return Ok(format!("[{}]{port}", read_literal(literal)?));
        }
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    if let Some(first) = host.find(':') {
        // Several hosts with ports are known to some databases, and to browsers they are not.
        let at = match scheme {
            "http" | "https" => first,
            _ => host.rfind(':').unwrap_or(first),
        };
        check_port(host.get(at..).unwrap_or_default())?;
    }
    Ok(text_of(unescape(host, Part::Host)?))
}

/// An address between brackets, which may name a zone.
fn read_literal(literal: &str) -> Result<String, String> {
    let at = literal.find("%25").unwrap_or(literal.len());
    let (address, zone) = literal.split_at(at);
    let mut bytes = unescape(address, Part::Host)?;
    bytes.extend(unescape(zone, Part::Zone)?);
    let address = text_of(bytes);
    if let Some(problem) = readable::parse_problem(&address) {
        return Err(format!("invalid host: {problem}"));
    }
    if !address.contains(':') {
        return Err("invalid IP-literal".to_owned());
    }
    Ok(address)
}

/// Texts here are Unicode; Go's need not be.
fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The values of a query by their names.
fn parameters(query: &str) -> Value {
    let mut all: HashMap<String, Vec<Value>> = HashMap::new();
    let count = query.split('&').count();
    let parts = query
        .split('&')
        .filter(|part| count <= PARAMETERS_MAX && !part.is_empty() && !part.contains(';'));
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (Ok(name), Ok(value)) = (unescape(name, Part::Query), unescape(value, Part::Query)) else {
            continue;
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        all.entry(text(&name))
            .or_default()
            .push(values::text(&text(&value)));
    }
    let map = all
        .into_iter()
        .map(|(name, values)| (Key::String(Arc::new(name)), Value::List(Arc::new(values))))
        .collect();
    Value::Map(Map { map: Arc::new(map) })
}

/// The parts of a URL, in which different characters stand for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

impl Part {
    /// Whether a byte stands for itself.
    fn is_plain(self, byte: u8) -> bool {
        let plain: &[u8] = match self {
            Self::Query => b"-._~",
            Self::User => b"$&+,-.;=_~",
            Self::Path => b"$&+,-./:;=@_~",
            Self::Fragment => b"!$&()*+,-./:;=?@_~",
            Self::Host | Self::Zone => b"!\"$&'()*+,-.:;<=>[]_~",
        };
        byte.is_ascii_alphanumeric() || plain.contains(&byte)
    }

    /// Whether a byte that is escaped may be so.
    fn may_escape(self, byte: u8) -> bool {
        match self {
            Self::Host => byte >= 0x80 || byte == b'%',
            Self::Zone => matches!(byte, b'%' | b' ') || Self::Host.is_plain(byte),
            _ => true,
        }
    }
}

/// Replaces escapes by the bytes for which they stand.
fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        match byte {
            b'%' => {
                let value = digit(bytes.get(at + 1)).zip(digit(bytes.get(at + 2)));
                let value = value.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
                let Some(value) = value.filter(|value| part.may_escape(*value)) else {
                    let escape = bytes.get(at..bytes.len().min(at + 3)).unwrap_or_default();
                    return Err(format!("invalid URL escape {}", quoted(escape)));
                };
                out.push(value);
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => out.push(b' '),
            byte if matches!(part, Part::Host | Part::Zone) && byte.is_ascii() && !part.is_plain(byte) => {
                return Err(format!("invalid character {} in host name", quoted(&[byte])));
            }
            byte => out.push(byte),
        }
        at += 1;
    }
    Ok(out)
}

/// Bytes in quotes as Go writes them, whether they are text or not.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        let text = go_quote(chunk.valid());
        out.push_str(text.get(1..text.len() - 1).unwrap_or_default());
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    format!("\"{out}\"")
}

fn escape(bytes: &[u8], part: Part) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match part.is_plain(*byte) {
            true => out.push(char::from(*byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A path or a fragment as it was written, if that is properly escaped; otherwise escaped anew.
fn shown(written: &str, part: Part) -> String {
    let is_proper = |byte: u8| b"!$&'()*+,;=:@[]%".contains(&byte) || part.is_plain(byte);
    if written.bytes().all(is_proper) {
        return written.to_owned();
    }
    // It has been read before.
    escape(&unescape(written, part).unwrap_or_default(), part)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A part of a URL, by the name of its method.
    fn part(url: &str, method: &str) -> Result<String, String> {
        let url = Url::read(url)?;
        Ok(match method {
            "scheme" => url.scheme.clone(),
            "host" => url.host.clone(),
            "hostname" => url.split_host().0.to_owned(),
            "port" => url.split_host().1.to_owned(),
            "path" => shown(&url.path, Part::Path),
            _ => url.text(),
        })
    }

    #[rstest]
    #[case("https://Example.COM:443/a/../b", "host", "Example.COM:443")]
    #[case("https://Example.COM:443/a/../b", "hostname", "Example.COM")]
    #[case("https://Example.COM:443/a/../b", "port", "443")]
    #[case("https://Example.COM:443/a/../b", "path", "/a/../b")]
    #[case("http://a:80", "host", "a:80")]
    #[case("http://a:80", "hostname", "a")]
    #[case("http://a:80", "port", "80")]
    #[case("http://a:", "host", "a:")]
    #[case("http://a:", "hostname", "a")]
    #[case("HTTP://a/", "host", "a")]
    #[case("HTTP://a/", "path", "/")]
    #[case("HTTP://a/", "text", "http://a/")]
    #[case("/p/a%20b", "host", "")]
    #[case("/p/a%20b", "path", "/p/a%20b")]
    #[case("/p/a%20b", "scheme", "")]
    #[case("/a b", "host", "")]
    #[case("/a b", "path", "/a%20b")]
    #[case("/a b", "scheme", "")]
    #[case("/a b", "text", "/a%20b")]
    #[case("/a%2Fb", "host", "")]
    #[case("/a%2Fb", "path", "/a%2Fb")]
    #[case("/a%2Fb", "scheme", "")]
    #[case("//h/x", "host", "h")]
    #[case("//h/x", "path", "/x")]
    #[case("//h/x", "scheme", "")]
    #[case("mailto:a@b", "host", "")]
    #[case("mailto:a@b", "scheme", "mailto")]
    #[case("http://[::1]:8080/x", "host", "[::1]:8080")]
    #[case("http://[::1]:8080/x", "hostname", "::1")]
    #[case("http://[::1]:8080/x", "port", "8080")]
    #[case("http://[::1]:8080/x", "path", "/x")]
    #[case("http://[FE80::1%25en0]/", "host", "[FE80::1%en0]")]
    #[case("http://[FE80::1%25en0]/", "hostname", "FE80::1%en0")]
    #[case("http://[FE80::1%25en0]/", "path", "/")]
    #[case("http://u:p@h/", "host", "h")]
    #[case("http://u:p@h/", "path", "/")]
    #[case("http://u:p%40@h/", "host", "h")]
    #[case("http://u:p%40@h/", "path", "/")]
    #[case("https://h/?a=b#f", "host", "h")]
    #[case("https://h/?a=b#f", "path", "/")]
    #[case("https://h?", "host", "h")]
    #[case("*", "host", "")]
    #[case("*", "path", "*")]
    #[case("*", "scheme", "")]
    #[case("/é", "host", "")]
    #[case("/é", "path", "/%C3%A9")]
    #[case("/é", "scheme", "")]
    #[case("/é", "text", "/%C3%A9")]
    #[case("https://h/a;b=c", "host", "h")]
    #[case("https://h/a;b=c", "path", "/a;b=c")]
    #[case("x://a:1:2/", "host", "a:1:2")]
    #[case("x://a:1:2/", "hostname", "a:1")]
    #[case("x://a:1:2/", "port", "2")]
    #[case("x://a:1:2/", "path", "/")]
    #[case("x://a:1:2/", "scheme", "x")]
    #[case("http://h/a[b]", "host", "h")]
    #[case("http://h/a[b]", "path", "/a[b]")]
    #[case("http:a/b", "host", "")]
    #[case("https:///p", "host", "")]
    #[case("https:///p", "path", "/p")]
    #[case("http://h%C3%A9/", "host", "hé")]
    #[case("http://h%C3%A9/", "path", "/")]
    #[case("file:/a", "host", "")]
    #[case("file:/a", "path", "/a")]
    #[case("file:/a", "scheme", "file")]
    fn parts(#[case] url: &str, #[case] method: &str, #[case] expected: &str) {
        assert_eq!(part(url, method).as_deref(), Ok(expected));
    }

    #[rstest]
    #[case("", "parse \"\": empty url")]
    #[case("a", "parse \"a\": invalid URI for request")]
    #[case("a/b", "parse \"a/b\": invalid URI for request")]
    #[case("http://a b/", "parse \"http://a b/\": invalid character \" \" in host name")]
    #[case("http://a:b/", "parse \"http://a:b/\": invalid port \":b\" after host")]
    #[case("http://a:1:2/", "parse \"http://a:1:2/\": invalid port \":1:2\" after host")]
    #[case("http://[::1", "parse \"http://[::1\": missing ']' in host")]
    #[case("http://[1.2.3.4]/", "parse \"http://[1.2.3.4]/\": invalid IP-literal")]
    #[case("http://[::1]x/", "parse \"http://[::1]x/\": invalid port \"x\" after host")]
    #[case("http://x[::1]/", "parse \"http://x[::1]/\": invalid IP-literal")]
    #[case("/%zz", "parse \"/%zz\": invalid URL escape \"%zz\"")]
    #[case("/%", "parse \"/%\": invalid URL escape \"%\"")]
    #[case("http://h%20/", "parse \"http://h%20/\": invalid URL escape \"%20\"")]
    #[case("http://h%/", "parse \"http://h%/\": invalid URL escape \"%\"")]
    #[case("/a\x7f", "parse \"/a\\x7f\": net/url: invalid control character in URL")]
    #[case("http://u<@h/", "parse \"http://u<@h/\": net/url: invalid userinfo")]
    #[case(":a", "parse \":a\": missing protocol scheme")]
    #[case("1a:b", "parse \"1a:b\": invalid URI for request")]
    #[case("https://h/?a#%zz", "parse \"https://h/?a#%zz\": invalid URL escape \"%zz\"")]
    #[case(
        "http://[g::]/",
        "parse \"http://[g::]/\": invalid host: ParseAddr(\"g::\"): each colon-separated field must have at least one digit (at \"g::\")"
    )]
    #[case("/%e4ä%zä", "parse \"/%e4ä%zä\": invalid URL escape \"%z\\xc3\"")]
    #[case(
        "http://h\"\\/",
        "parse \"http://h\\\"\\\\/\": invalid character \"\\\\\" in host name"
    )]
    fn refusals(#[case] url: &str, #[case] expected: &str) {
        assert_eq!(part(url, "").unwrap_err(), expected);
    }
}
