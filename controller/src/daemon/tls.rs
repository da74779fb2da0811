//! Connections by TLS to servers of pods. As with the kubelet any certificate will do: a probe asks whether a server answers, and its
//! certificate is made for its clients.

use std::sync::Arc;

use client_kit::AnyCertificate;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{Error, InvalidMessage};

use super::runtime::Connection;

/// A connection by TLS over a connection to `host`.
///
/// # Errors
/// The reason, in Go's words where the server does not speak TLS.
pub(super) async fn connect(stream: Box<dyn Connection>, host: &str) -> Result<Box<dyn Connection>, String> {
    let config = AnyCertificate::config().map_err(|error| error.to_string())?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let stream = connected.map_err(|error| text(&error))?;
    Ok(Box::new(stream))
}

fn text(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        _ if error.kind() == std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => error.to_string(),
    }
}
