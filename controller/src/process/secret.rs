//! The Secret in which the webhooks' certificates are kept, so that all replicas use the same.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, PostParams};

use super::ProcessError;
use super::certs::Certificates;

/// The entries of the Secret, as OpenKruise names them. The last two say the same as `key.pem` and `cert.pem`.
const CA_KEY: &str = "ca-key.pem";
const CA_CERT: &str = "ca-cert.pem";
const KEYS: [&str; 2] = ["key.pem", "tls.key"];
const CERTS: [&str; 2] = ["cert.pem", "tls.crt"];
/// How often another replica may have been faster.
const TRIES: u32 = 5;

/// Reads certificates out of a Secret's data; a missing entry is empty.
fn read(data: &BTreeMap<String, ByteString>) -> Certificates {
    let text = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| data.get(*name))
            .map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned())
            .unwrap_or_default()
    };
    Certificates {
        ca_key: text(&[CA_KEY]),
        ca_cert: text(&[CA_CERT]),
        key: text(&KEYS),
        cert: text(&CERTS),
    }
}

fn write(certificates: &Certificates) -> BTreeMap<String, ByteString> {
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let mut data = BTreeMap::from([
        (CA_KEY.to_owned(), bytes(&certificates.ca_key)),
        (CA_CERT.to_owned(), bytes(&certificates.ca_cert)),
    ]);
    data.extend(KEYS.map(|name| (name.to_owned(), bytes(&certificates.key))));
    data.extend(CERTS.map(|name| (name.to_owned(), bytes(&certificates.cert))));
    data
}

/// The certificates of the Secret `namespace/name`, for a server that is reached as `hosts`. Makes them where there are
/// none, or where they do not hold (any more).
///
/// # Errors
/// If the Secret cannot be read or written.
pub async fn ensure(
    client: &Client,
    namespace: &str,
    name: &str,
    hosts: &[String],
    now: Timestamp,
) -> Result<Certificates, ProcessError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let failed = |error| ProcessError::request("keep the webhooks' certificates", error);
    let mut tries = 0;
    loop {
        let found = secrets.get_opt(name).await.map_err(failed)?;
        let kept = found.as_ref().and_then(|secret| secret.data.as_ref()).map(read);
        if let Some(kept) = kept.filter(|kept| kept.hold(hosts, now)) {
            return Ok(kept);
        }
        let made = Certificates::make(hosts, now)?;
        let written = match found {
            Some(mut secret) => {
                secret.data.get_or_insert_default().extend(write(&made));
                secrets.replace(name, &PostParams::default(), &secret).await
            }
            None => {
                let mut secret = Secret::default();
                secret.metadata.name = Some(name.to_owned());
                secret.data = Some(write(&made));
                secrets.create(&PostParams::default(), &secret).await
            }
        };
        match written {
            Ok(_) => return Ok(made),
            // Another replica was faster: its certificates are as good.
            Err(kube::Error::Api(status))
                if tries < TRIES && (status.is_conflict() || status.is_already_exists()) =>
            {
                tries += 1;
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let certificates = Certificates {
            ca_key: "a".to_owned(),
            ca_cert: "b".to_owned(),
            key: "c".to_owned(),
            cert: "d".to_owned(),
        };
        let data = write(&certificates);
        let names: Vec<&str> = data.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "ca-cert.pem",
                "ca-key.pem",
                "cert.pem",
                "key.pem",
                "tls.crt",
                "tls.key"
            ]
        );
        assert_eq!(read(&data), certificates);
        // A Secret of cert-manager's has only these.
        let partial = data
            .into_iter()
            .filter(|(name, _)| name.starts_with("tls"))
            .collect();
        assert_eq!(read(&partial).cert, "d");
    }
}
