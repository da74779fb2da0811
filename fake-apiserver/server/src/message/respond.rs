//! Answers as HTTP responses: encoding, headers, compression.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER, VARY, WARNING,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use machinery::protobuf;
use machinery::status::ApiError;
use shared_json::Value;

use super::body::ResponseBody;
use super::negotiate::Encoding;
use super::yaml;

/// From this size on an answer is compressed for a client that asks for it, as by the real server.
const GZIP_BYTES_MIN: usize = 128 * 1024;
/// The content type of aggregated discovery.
pub(crate) const AGGREGATED_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
pub(crate) const AGGREGATED_PROTOBUF_TYPE: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
pub(crate) const AGGREGATED_YAML_TYPE: &str =
    "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers with a JSON document in the encoding that was asked for.
pub(crate) fn respond(
    code: StatusCode,
    json: Bytes,
    encoding: Encoding,
    warnings: &[String],
) -> Response<ResponseBody> {
    let (bytes, encoding) = encode(json, encoding);
    let mut response = Response::new(ResponseBody::whole(bytes));
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(encoding.content_type()));
    warn(&mut response, warnings);
    response
}

/// Adds warnings to an answer.
pub(crate) fn warn(response: &mut Response<ResponseBody>, warnings: &[String]) {
    for warning in warnings {
        let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

/// The document in an encoding; in JSON where it has no other form.
fn encode(json: Bytes, encoding: Encoding) -> (Bytes, Encoding) {
    let value = || shared_json::from_slice::<Value>(&json).unwrap_or_default();
    match encoding {
        Encoding::Json => (json, encoding),
        Encoding::Protobuf => match protobuf::encode(&value()) {
            Some(bytes) => (bytes, encoding),
            None => (json, Encoding::Json),
        },
        Encoding::PrettyJson => match shared_json::to_vec_pretty(&value()) {
            Ok(mut pretty) => {
                shared_json::go_escape_from(&mut pretty, 0);
                (Bytes::from(pretty), encoding)
            }
            Err(_) => (json, Encoding::Json),
        },
        Encoding::Yaml => (Bytes::from(yaml::write(&value())), encoding),
    }
}

pub(crate) fn stream(body: ResponseBody, content_type: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

pub(crate) fn failure(error: &ApiError, encoding: Encoding) -> Response<ResponseBody> {
    warned_failure(error, encoding, &[])
}

/// A failure with warnings for the client.
pub(crate) fn warned_failure(
    error: &ApiError,
    encoding: Encoding,
    warnings: &[String],
) -> Response<ResponseBody> {
    let mut response = respond(
        error.code,
        Bytes::from(shared_json::to_go_string(&error.to_status())),
        encoding,
        warnings,
    );
    let seconds = error
        .details
        .as_ref()
        .and_then(|details| details.get("retryAfterSeconds")?.as_u64());
    if let Some(seconds) = seconds {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The answer of the real server's last handler.
pub(crate) fn page_not_found() -> Response<ResponseBody> {
    let mut response = text("404 page not found\n".to_owned());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// The real server's answer to a path that it cannot split.
pub(crate) fn unfinished(path: &str) -> Response<ResponseBody> {
    let mut response = text(format!(
        "Internal Server Error: \"{path}\": failed to create RequestInfo: unable to determine kind and namespace from url, \
         {path}\n"
    ));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

/// A refusal without a word.
pub(crate) fn silent(status: StatusCode) -> Response<ResponseBody> {
    let mut response = text(String::new());
    *response.status_mut() = status;
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

/// A redirect to the present address.
pub(crate) fn moved(place: &str) -> Response<ResponseBody> {
    let mut response = whole(Bytes::new(), "application/json");
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(value) = HeaderValue::from_str(place) {
        response.headers_mut().insert(LOCATION, value);
    }
    response
}

pub(crate) fn text(text: String) -> Response<ResponseBody> {
    whole(Bytes::from(text), "text/plain; charset=utf-8")
}

pub(crate) fn whole(bytes: Bytes, content_type: &'static str) -> Response<ResponseBody> {
    stream(ResponseBody::whole(bytes), content_type)
}

/// The headers that every answer has, and compression.
pub(crate) fn finish(mut response: Response<ResponseBody>, request: &HeaderMap) -> Response<ResponseBody> {
    let headers = response.headers_mut();
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    }
    let accepts = |value: &HeaderValue| {
        value
            .to_str()
            .is_ok_and(|list| list.split(',').any(|token| token.trim() == "gzip"))
    };
    if !request.get_all(ACCEPT_ENCODING).iter().any(accepts) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let body = match body.into_whole() {
        Ok(bytes) if bytes.len() >= GZIP_BYTES_MIN => match gzip(&bytes) {
            Some(compressed) => {
                head.headers
                    .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                let varies = head.headers.get(VARY).and_then(|vary| vary.to_str().ok());
                if !varies.is_some_and(|vary| vary.contains("Accept-Encoding")) {
                    head.headers
                        .append(VARY, HeaderValue::from_static("Accept-Encoding"));
                }
                ResponseBody::whole(compressed)
            }
            None => ResponseBody::whole(bytes),
        },
        Ok(bytes) => ResponseBody::whole(bytes),
        Err(body) => body,
    };
    Response::from_parts(head, body)
}

fn gzip(bytes: &Bytes) -> Option<Bytes> {
    // The real server compresses for speed, too.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}
