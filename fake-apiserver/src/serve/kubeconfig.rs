//! The kubeconfig of a served cluster.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use shared_json::{Value, json};

use super::Transport;

/// A kubeconfig for a server that answers at `address`: with the authority and an administrator's certificate, or for plain HTTP.
#[must_use]
pub fn kubeconfig(address: SocketAddr, transport: &Transport) -> Value {
    let name = "fake-apiserver";
    let (cluster, user) = match &transport.identity {
        Some(identity) => {
            let (certificate, key) = identity.client_pem();
            (
                json!({
                    "server": format!("https://{address}"),
                    "certificate-authority-data": STANDARD.encode(identity.authority_pem()),
                }),
                json!({
                    "client-certificate-data": STANDARD.encode(certificate),
                    "client-key-data": STANDARD.encode(key),
                }),
            )
        }
        None => (json!({"server": format!("http://{address}")}), json!({})),
    };
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    })
}
