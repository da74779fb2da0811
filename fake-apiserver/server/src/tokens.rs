//! Tokens of service accounts: signed JWTs, as `TokenRequest` gives them.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use client_kit::Seed;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use shared_json::{Value, json};

/// The issuer of tokens, and the audience of tokens that name none.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const KEY_ID: &str = "fake-apiserver";

/// Signs and checks tokens, with a key that follows from the seed. (The real server's key is RSA; EdDSA needs no randomness.)
pub(crate) struct TokenSigner {
    seed: Seed,
    key: OnceLock<Option<Ed25519KeyPair>>,
}

impl TokenSigner {
    pub(crate) fn new(seed: Seed) -> Self {
        Self {
            seed: seed.fork("tokens"),
            key: OnceLock::new(),
        }
    }

    fn key(&self) -> Option<&Ed25519KeyPair> {
        let make = || {
            let mut secret = [0; 32];
            self.seed.random().fill(&mut secret);
            Ed25519KeyPair::from_seed_unchecked(&secret).ok()
        };
        self.key.get_or_init(make).as_ref()
    }

    /// The token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({"alg": "EdDSA", "kid": KEY_ID});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(claims));
        let signature = self.key()?.sign(signed.as_bytes());
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The claims of a token that this server signed; whether they hold is for the caller to judge.
    pub(crate) fn claims(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = UnparsedPublicKey::new(&ED25519, self.key()?.public_key().as_ref());
        key.verify(signed.as_bytes(), &signature).ok()?;
        let payload = signed.split_once('.')?.1;
        shared_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
    }

    /// The public key as others fetch it (`/openid/v1/jwks`).
    pub(crate) fn key_set(&self) -> Value {
        let public = self.key().map(|key| URL_SAFE_NO_PAD.encode(key.public_key()));
        json!({"keys": [{"use": "sig", "kty": "OKP", "crv": "Ed25519", "kid": KEY_ID, "alg": "EdDSA", "x": public}]})
    }

    /// `/.well-known/openid-configuration`
    pub(crate) fn configuration() -> Value {
        json!({
            "issuer": ISSUER,
            "jwks_uri": format!("{ISSUER}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["EdDSA"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_believed_only_if_nothing_of_it_was_changed() {
        let signer = TokenSigner::new(Seed(1));
        let claims = json!({"sub": "a"});
        let token = signer.sign(&claims).expect("a token");
        assert_eq!(signer.claims(&token), Some(claims.clone()));
        assert_eq!(TokenSigner::new(Seed(1)).sign(&claims), Some(token.clone()));
        assert_eq!(TokenSigner::new(Seed(2)).claims(&token), None);
        let other = signer.sign(&json!({"sub": "b"})).expect("a token");
        let parts: Vec<&str> = token
            .split('.')
            .zip(other.split('.'))
            .map(|(a, b)| if a == b { a } else { b })
            .collect();
        let mixed = format!(
            "{}.{}.{}",
            parts[0],
            parts[1],
            token.rsplit('.').next().unwrap_or_default()
        );
        assert_eq!(signer.claims(&mixed), None);
        assert_eq!(signer.claims("garbage"), None);
    }
}
