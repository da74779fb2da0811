//! A registry on loopback, with the endpoints that a pull needs. Images below `private/` need a name and a password.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::Failure;
use crate::image::{Blob, Image, MANIFEST};

/// The name that reads private images.
pub(crate) const USER: &str = "proof";
/// Its password.
pub(crate) const PASSWORD: &str = "open-sesame";

/// The images of a registry by `name:tag`.
pub(crate) type Images = BTreeMap<String, Image>;

/// Serves images until `tasks` is dropped. Gives its address.
pub(crate) async fn start(tasks: &mut JoinSet<()>, images: Images) -> Result<String, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let images = Arc::new(images);
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let images = Arc::clone(&images);
            let service = service_fn(move |request: Request<Incoming>| {
                std::future::ready(Ok::<_, Infallible>(answer(&images, &request)))
            });
            let server = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            connections.spawn(async move {
                // A client that goes away is none of the registry's business.
                let _gone = server.await;
            });
        }
    });
    Ok(address)
}

fn answer(images: &Images, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let path = request.uri().path().strip_prefix("/v2/").unwrap_or_default();
    let expected = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
    let given = request.headers().get("authorization");
    let may_read = given.is_some_and(|given| given.as_bytes() == expected.as_bytes());
    if path.starts_with("private/") && !may_read {
        let refused = r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#;
        return respond(401, "application/json", None, refused.into());
    }
    let blob = match path.split("/manifests/").collect::<Vec<_>>()[..] {
        [name, reference] => manifest(images, name, reference).map(|blob| (MANIFEST, blob)),
        _ => path
            .split_once("/blobs/")
            .and_then(|(_, digest)| Some(("application/octet-stream", find_blob(images, digest)?))),
    };
    match blob {
        Some((kind, blob)) => {
            let is_head = request.method() == Method::HEAD;
            let length = blob.bytes.len();
            let body = if is_head { Bytes::new() } else { blob.bytes };
            let mut response = respond(200, kind, Some(&blob.digest), body);
            response.headers_mut().insert("content-length", length.into());
            response
        }
        None if path.is_empty() => respond(200, "application/json", None, "{}".into()),
        None => {
            let missing = r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#;
            respond(404, "application/json", None, missing.into())
        }
    }
}

fn manifest(images: &Images, name: &str, reference: &str) -> Option<Blob> {
    let tagged = images.get(&format!("{name}:{reference}"));
    let found = tagged.or_else(|| images.values().find(|image| image.manifest.digest == reference));
    found.map(|image| image.manifest.clone())
}

fn find_blob(images: &Images, digest: &str) -> Option<Blob> {
    let mut blobs = images.values().flat_map(|image| [&image.config, &image.layer]);
    blobs.find(|blob| blob.digest == digest).cloned()
}

fn respond(status: u16, kind: &str, digest: Option<&str>, body: Bytes) -> Response<Full<Bytes>> {
    let response = Response::builder().status(status).header("content-type", kind);
    let response = match (status, digest) {
        (401, _) => response.header("www-authenticate", "Basic realm=\"proof\""),
        (_, Some(digest)) => response.header("docker-content-digest", digest),
        _ => response,
    };
    // Numbers and texts of this file are valid.
    response.body(Full::new(body)).unwrap_or_default()
}
