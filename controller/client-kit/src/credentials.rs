//! The credentials for a registry in Secrets of Docker's configuration.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use serde::Deserialize;
use shared_json::{Map, Value};

/// A name and a password for a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The name.
    pub username: String,
    /// The password.
    pub password: String,
}

/// The registry of images that name none, as its users log in to it.
const DEFAULT_REGISTRIES: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    username: String,
    password: String,
    auth: String,
}

/// The credentials of a Secret that fit an image, those of the longest address first.
#[must_use]
pub fn credentials(secret: &Secret, image: &str) -> Vec<Credential> {
    let data = |key: &str| Some(&secret.data.as_ref()?.get(key)?.0);
    let entries: Option<Map> = match (data(".dockerconfigjson"), data(".dockercfg")) {
        (Some(bytes), _) => read(bytes).and_then(|config| config.get("auths")?.as_object().cloned()),
        (None, Some(bytes)) => read(bytes).and_then(|config| config.as_object().cloned()),
        (None, None) => None,
    };
    let mut found: Vec<(usize, Credential)> = Vec::new();
    for (address, entry) in entries.iter().flatten() {
        let address = trimmed(address);
        if !covers(address, image) {
            continue;
        }
        let entry: Entry = shared_json::from_value(entry.clone()).unwrap_or_default();
        found.extend(credential(entry).map(|credential| (address.len(), credential)));
    }
    found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    found.into_iter().map(|(_, credential)| credential).collect()
}

fn read(bytes: &[u8]) -> Option<Value> {
    shared_json::from_str(std::str::from_utf8(bytes).ok()?).ok()
}

fn credential(entry: Entry) -> Option<Credential> {
    if !entry.username.is_empty() {
        return Some(Credential {
            username: entry.username,
            password: entry.password,
        });
    }
    let text = String::from_utf8(STANDARD.decode(entry.auth).ok()?).ok()?;
    let (username, password) = text.split_once(':')?;
    Some(Credential {
        username: username.to_owned(),
        password: password.to_owned(),
    })
}

/// An address without its scheme and the version of the interface.
fn trimmed(address: &str) -> &str {
    let address = address
        .trim_start_matches("https://")
        .trim_start_matches("http://");
    let address = address.trim_end_matches('/');
    address.trim_end_matches("/v1").trim_end_matches("/v2")
}

/// Whether images below an address include this one.
fn covers(address: &str, image: &str) -> bool {
    let (registry, path) = match image.split_once('/') {
        Some((registry, path)) if registry.contains(['.', ':']) || registry == "localhost" => {
            (registry, path)
        }
        _ => ("docker.io", image),
    };
    let (wanted, below) = address.split_once('/').unwrap_or((address, ""));
    let is_default = |name: &str| DEFAULT_REGISTRIES.contains(&name);
    let fits = wanted == registry || is_default(wanted) && is_default(registry);
    fits && path.starts_with(below)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    /// The configuration, the image, and the names of the users that are tried.
    #[rstest]
    #[case(json!({ "auths": { "r.example.com": { "username": "a" } } }), "r.example.com/x", "a")]
    #[case(json!({ "auths": { "r.example.com": { "auth": "YTpi" } } }), "r.example.com/x", "a")]
    #[case(json!({ "auths": { "r.example.com": { "auth": "?" } } }), "r.example.com/x", "")]
    #[case(json!({ "auths": { "r.example.com": { "username": "a" } } }), "s.example.com/x", "")]
    #[case(json!({ "auths": { "https://index.docker.io/v1/": { "username": "a" } } }), "nginx", "a")]
    #[case(
        json!({ "auths": { "r.example.com": { "username": "a" }, "r.example.com/x": { "username": "b" },
            "r.example.com/y": { "username": "c" } } }),
        "r.example.com/x/z", "b a"
    )]
    #[case(json!({ "auths": [] }), "nginx", "")]
    fn users(#[case] config: Value, #[case] image: &str, #[case] expect: &str) {
        let secret: Secret = shared_json::from_value(json!({ "metadata": {},
            "data": { ".dockerconfigjson": STANDARD.encode(config.to_string()) } }))
        .unwrap();
        let users: Vec<String> = credentials(&secret, image)
            .into_iter()
            .map(|found| found.username)
            .collect();
        assert_eq!(users.join(" "), expect);
    }
}
