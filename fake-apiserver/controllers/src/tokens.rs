//! Tokens of service accounts that are kept in Secrets.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery::meta::{ObjectMeta as _, string_map};
use shared_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, is_not_found, list, text};

const KIND: &str = "kubernetes.io/service-account-token";
const ACCOUNT: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// How long a token is good for: the real ones have no end.
const LIFE_SECONDS: u32 = u32::MAX;

/// The controller. Its keys are secrets; of one that is gone also the account, behind a slash.
pub(super) struct ServiceAccountTokens;

fn is_token(secret: &Value) -> bool {
    text(secret, "type") == KIND
}

fn annotation<'a>(secret: &'a Value, key: &str) -> &'a str {
    string_map(secret, "annotations")
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether a secret is of that account: by name, and by uid where it names one.
fn is_of(secret: &Value, account: &Value) -> bool {
    let uid = annotation(secret, ACCOUNT_UID);
    annotation(secret, ACCOUNT) == account.name() && (uid.is_empty() || uid == account.uid())
}

/// Whether an account names a secret as one of its own.
fn names(account: &Value, secret: &str) -> bool {
    list(account, "secrets")
        .iter()
        .any(|entry| text(entry, "name") == secret)
}

/// Takes a secret that is gone from those that its account names.
async fn forget(cx: &mut Cx<'_>, namespace: &str, account: &str, secret: &str) -> Result<(), kube::Error> {
    let Some(account) = cx
        .cache
        .get(Res::ServiceAccounts, namespace, account)
        .filter(|account| names(account, secret))
    else {
        return Ok(());
    };
    let mut changed = Value::clone(account);
    let mut left = list(account, "secrets").to_vec();
    left.retain(|entry| text(entry, "name") != secret);
    changed["secrets"] = Value::from(left);
    changed["apiVersion"] = json!("v1");
    changed["kind"] = json!("ServiceAccount");
    cx.update(Res::ServiceAccounts, &changed).await?;
    Ok(())
}

#[async_trait]
impl Controller for ServiceAccountTokens {
    fn name(&self) -> &'static str {
        "serviceaccount-token-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Secrets, Res::ServiceAccounts]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Secrets if is_token(object) => {
                if cache
                    .get(Res::Secrets, object.namespace(), object.name())
                    .is_some()
                {
                    return vec![Key::of(object)];
                }
                let account = cache.get(
                    Res::ServiceAccounts,
                    object.namespace(),
                    annotation(object, ACCOUNT),
                );
                let names = account.filter(|account| is_of(object, account) && names(account, object.name()));
                names
                    .map(|account| {
                        let name = format!("{}/{}", object.name(), account.name());
                        Key::new(object.namespace(), &name)
                    })
                    .into_iter()
                    .collect()
            }
            Res::ServiceAccounts => cache
                .in_namespace(Res::Secrets, object.namespace())
                .filter(|secret| is_token(secret) && annotation(secret, ACCOUNT) == object.name())
                .map(|secret| Key::of(secret))
                .collect(),
            _ => Vec::new(),
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        if let Some((secret, account)) = key.name.split_once('/') {
            forget(cx, &key.namespace, account, secret).await?;
            return Ok(Next::Change);
        }
        let secret: Option<Arc<Value>> = cx.cache.get(Res::Secrets, &key.namespace, &key.name).cloned();
        let Some(secret) = secret.filter(|secret| is_token(secret) && !secret.is_terminating()) else {
            return Ok(Next::Change);
        };
        let account = cx
            .cache
            .get(Res::ServiceAccounts, &key.namespace, annotation(&secret, ACCOUNT))
            .cloned();
        let Some(account) = account.filter(|account| is_of(&secret, account)) else {
            cx.delete(Res::Secrets, &secret, None).await?;
            return Ok(Next::Change);
        };
        let has = |field: &str| !text(&secret, &format!("data.{field}")).is_empty();
        let path = format!("{}/kube-root-ca.crt", Res::ConfigMaps.path(&key.namespace));
        let authority = match cx.read(&path).await {
            Ok(map) => map
                .pointer("/data/ca.crt")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            Err(error) if is_not_found(&error) => String::new(),
            Err(error) => return Err(error),
        };
        let authority = STANDARD.encode(authority);
        let known = secret.pointer("/data/ca.crt").and_then(Value::as_str);
        if has("token") && has("namespace") && known.unwrap_or_default() == authority {
            return Ok(Next::Change);
        }
        let mut changed = Value::clone(&secret);
        changed["metadata"]["annotations"][ACCOUNT_UID] = Value::from(account.uid());
        if !has("namespace") {
            changed["data"]["namespace"] = Value::from(STANDARD.encode(&key.namespace));
        }
        changed["data"]["ca.crt"] = Value::from(authority);
        if !has("token") {
            let path = format!(
                "{}/{}/token",
                Res::ServiceAccounts.path(&key.namespace),
                account.name()
            );
            let bound =
                json!({"apiVersion": "v1", "kind": "Secret", "name": secret.name(), "uid": secret.uid()});
            let request = json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"boundObjectRef": bound, "expirationSeconds": LIFE_SECONDS},
            });
            let answer = cx.post(&path, &request).await?;
            changed["data"]["token"] = Value::from(STANDARD.encode(text(&answer, "status.token")));
        }
        changed["apiVersion"] = json!("v1");
        changed["kind"] = json!("Secret");
        cx.update(Res::Secrets, &changed).await?;
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({ACCOUNT: "a"}), true)]
    #[case(json!({ACCOUNT: "a", ACCOUNT_UID: "1"}), true)]
    #[case(json!({ACCOUNT: "a", ACCOUNT_UID: "2"}), false)]
    #[case(json!({ACCOUNT: "b"}), false)]
    #[case(json!({}), false)]
    fn whose_a_secret_is(#[case] annotations: Value, #[case] expected: bool) {
        let account = json!({"metadata": {"name": "a", "uid": "1"}});
        assert_eq!(
            is_of(&json!({"metadata": {"annotations": annotations}}), &account),
            expected
        );
    }
}
