//! The subcommands that ask the API server from their pod, as its service account: `inclusterclient` and
//! `test-service-account-issuer-discovery`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, UnparsedPublicKey};
use shared_json::Value;

use super::super::native::Container;
use super::super::web::{HttpReply, Url, open, send};
use super::Flags;

/// The files of a pod's service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const AGENT: &str = "agnhost/v0.0.0 (linux/amd64) kubernetes/$Format";

/// A client of the API server with a pod's service account.
struct InCluster {
    base: String,
    authorities: Vec<u8>,
}

impl InCluster {
    fn new(container: &Container) -> Result<Self, String> {
        let variable = |name: &str| container.env.get(name).filter(|value| !value.is_empty());
        let place = (
            variable("KUBERNETES_SERVICE_HOST"),
            variable("KUBERNETES_SERVICE_PORT"),
        );
        let (Some(host), Some(port)) = place else {
            return Err(
                "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
                    .to_owned(),
            );
        };
        Ok(Self {
            base: format!("https://{host}:{port}"),
            authorities: read(container, &format!("{ACCOUNT}/ca.crt"))?,
        })
    }

    /// The pod's token, as it is now.
    fn token(container: &Container) -> Result<String, String> {
        let token = read(container, &format!("{ACCOUNT}/token"))?;
        Ok(String::from_utf8_lossy(&token).trim().to_owned())
    }

    async fn get(&self, container: &Container, address: &str) -> Result<HttpReply, String> {
        let failed = |why: &str| format!("Get \"{address}\": {why}");
        let url = Url::read(address).ok_or_else(|| failed("unsupported protocol scheme"))?;
        let mut headers = HeaderMap::new();
        let bearer = format!("Bearer {}", Self::token(container)?);
        let bearer = HeaderValue::from_str(&bearer).map_err(|_| failed("invalid header field value"))?;
        headers.insert(AUTHORIZATION, bearer);
        let reply = async {
            let stream = open(&container.nic, &url, Some(&self.authorities)).await?;
            send(stream, &url, (Method::GET, headers, Bytes::new()), AGENT).await
        };
        reply.await.map_err(|error| failed(&error.to_string()))
    }

    /// The JSON at an address.
    async fn get_json(&self, container: &Container, address: &str) -> Result<Value, String> {
        let reply = self.get(container, address).await?;
        let text = String::from_utf8_lossy(&reply.body);
        if !reply.status.is_success() {
            return Err(format!("{}: {text}", reply.status));
        }
        shared_json::from_str(&text).map_err(|error| format!("{address}: {error}"))
    }
}

fn read(container: &Container, path: &str) -> Result<Vec<u8>, String> {
    let content = container.read_file(path);
    content.map_err(|_| format!("open {path}: no such file or directory"))
}

/// Asks the server whether it is well, again and again.
pub(super) async fn poll(container: &Container, flags: &Flags) -> i32 {
    let period = flags.text(&["poll-interval"]).and_then(|text| text.parse().ok());
    let period = Duration::from_secs(period.unwrap_or(30).max(1));
    let client = match InCluster::new(container) {
        Ok(client) => client,
        Err(why) => {
            container.print_error(&format!("err: {why}\n"));
            return 1;
        }
    };
    // A line of klog.
    let note = |level: char, text: &str| {
        let now = container.now().strftime("%m%d %H:%M:%S.%6f").to_string();
        container.print_error(&format!("{level}{now}       1 main.go:1] {text}\n"));
    };
    note('I', "started");
    loop {
        tokio::time::sleep(period).await;
        note('I', "calling /healthz");
        if let Ok(token) = InCluster::token(container) {
            let hash = digest(&SHA256, format!("salt|Bearer {token}").as_bytes());
            note(
                'I',
                &format!("authz_header={}", URL_SAFE_NO_PAD.encode(hash.as_ref())),
            );
        }
        let reply = client.get(container, &format!("{}/healthz", client.base)).await;
        let why = match reply {
            Ok(reply) if reply.status.is_success() => continue,
            Ok(reply) => String::from_utf8_lossy(&reply.body).into_owned(),
            Err(why) => why,
        };
        note('E', "status=failed");
        note('E', &format!("error checking /healthz: {why}\n"));
    }
}

/// Checks a token by what its issuer publishes.
pub(super) async fn check_token(container: &Container, flags: &Flags) -> i32 {
    let say = |text: &str| {
        let now = container.now().strftime("%Y/%m/%d %H:%M:%S").to_string();
        container.print_error(&format!("{now} {text}\n"));
    };
    let path = flags.text(&["token-path"]).unwrap_or_default();
    let audience = flags.text(&["audience"]).unwrap_or_default();
    let token = match read(container, path) {
        Ok(token) => String::from_utf8_lossy(&token).trim().to_owned(),
        Err(why) => {
            say(&why);
            return 1;
        }
    };
    say("OK: Got token");
    say("validating with in-cluster discovery");
    match validate(container, &token, audience, &say).await {
        Ok(()) => 0,
        Err(why) => {
            say(&format!("failed to validate with in-cluster discovery: {why}"));
            1
        }
    }
}

async fn validate(
    container: &Container,
    token: &str,
    audience: &str,
    say: &impl Fn(&str),
) -> Result<(), String> {
    let client = InCluster::new(container)?;
    let token = Token::read(token)?;
    let issuer = token.claim("iss");
    say(&format!("OK: got issuer {issuer}"));
    say(&format!("Full, not-validated claims: \n{}", token.claims));
    let place = format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    );
    let provider = client.get_json(container, &place).await?;
    let said = text(&provider, "issuer");
    if said != issuer {
        return Err(format!(
            "oidc: issuer did not match the issuer returned by provider, expected \"{issuer}\" got \"{said}\""
        ));
    }
    say(&format!("OK: Constructed OIDC provider for issuer {issuer}"));
    let keys = client.get_json(container, text(&provider, "jwks_uri")).await?;
    token.verify(&keys)?;
    token.check(audience, container.now())?;
    say("OK: Validated signature on JWT");
    say("OK: Got valid claims from token!");
    say(&format!("Full, validated claims: \n{}", token.claims));
    Ok(())
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A signed token (JWS), in its parts.
struct Token<'a> {
    header: Value,
    claims: Value,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Token<'a> {
    fn read(token: &'a str) -> Result<Self, String> {
        let bad = || "square/go-jose: compact JWS format must have three parts".to_owned();
        let (signed, signature) = token.rsplit_once('.').ok_or_else(bad)?;
        let (header, claims) = signed.split_once('.').ok_or_else(bad)?;
        let bytes = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|error| error.to_string());
        let object = |part: &str| shared_json::from_slice(&bytes(part)?).map_err(|error| error.to_string());
        Ok(Self {
            header: object(header)?,
            claims: object(claims)?,
            signed,
            signature: bytes(signature)?,
        })
    }

    fn claim(&self, name: &str) -> &str {
        text(&self.claims, name)
    }

    /// Whether one of the keys has signed it.
    fn verify(&self, keys: &Value) -> Result<(), String> {
        let algorithm = text(&self.header, "alg");
        if algorithm != "EdDSA" {
            return Err(format!(
                "oidc: id token signed with unsupported algorithm, expected [\"EdDSA\"] got \"{algorithm}\""
            ));
        }
        let keys = keys
            .get("keys")
            .and_then(Value::as_array)
            .map(|keys| keys.as_slice());
        let of_token = |key: &&Value| text(key, "kid") == text(&self.header, "kid");
        let key = keys.unwrap_or_default().iter().find(of_token);
        let public = key.and_then(|key| URL_SAFE_NO_PAD.decode(text(key, "x")).ok());
        let is_good = public.is_some_and(|public| {
            let key = UnparsedPublicKey::new(&ED25519, public);
            key.verify(self.signed.as_bytes(), &self.signature).is_ok()
        });
        if is_good {
            Ok(())
        } else {
            Err("failed to verify signature: failed to verify id token signature".to_owned())
        }
    }

    /// Whether it is for this audience, and holds now.
    fn check(&self, audience: &str, now: Timestamp) -> Result<(), String> {
        let audiences = self.claims.get("aud").and_then(Value::as_array);
        let audiences = audiences
            .map(|audiences| audiences.as_slice())
            .unwrap_or_default();
        if !audiences.iter().any(|known| known.as_str() == Some(audience)) {
            return Err(format!(
                "oidc: expected audience \"{audience}\" got {}",
                Value::from_iter(audiences.iter().cloned())
            ));
        }
        let expiry = self.claims.get("exp").and_then(Value::as_i64).unwrap_or_default();
        if now.as_second() > expiry {
            return Err(format!("oidc: token is expired (Token Expiry: {expiry})"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    fn signed(claims: &Value) -> (String, Value) {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!(
            "{}.{}",
            encode(&json!({"alg": "EdDSA", "kid": "k"})),
            encode(claims)
        );
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(signed.as_bytes()));
        let public = URL_SAFE_NO_PAD.encode(pair.public_key());
        let keys = json!({"keys": [{"kid": "other", "x": ""}, {"kid": "k", "x": public}]});
        (format!("{signed}.{signature}"), keys)
    }

    #[rstest]
    #[case::good("a", 100, None)]
    #[case::for_others("b", 100, Some("oidc: expected audience \"b\" got [\"a\"]"))]
    #[case::late("a", 101, Some("oidc: token is expired (Token Expiry: 100)"))]
    fn tokens(#[case] audience: &str, #[case] second: i64, #[case] expected: Option<&str>) {
        let (token, keys) = signed(&json!({"iss": "i", "aud": ["a"], "exp": 100}));
        let token = Token::read(&token).expect("a token");
        assert_eq!(token.verify(&keys), Ok(()));
        let now = Timestamp::from_second(second).expect("a time");
        assert_eq!(token.check(audience, now).err().as_deref(), expected);
    }

    #[test]
    fn a_token_that_was_changed_is_not_verified() {
        let (token, keys) = signed(&json!({"iss": "i"}));
        let (other, _) = signed(&json!({"iss": "j"}));
        let mixed = format!(
            "{}.{}",
            token.rsplit_once('.').expect("parts").0,
            other.rsplit_once('.').expect("parts").1
        );
        assert!(Token::read(&mixed).expect("a token").verify(&keys).is_err());
        assert!(Token::read("a.b").is_err());
    }
}
