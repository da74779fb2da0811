//! The parts of requests and answers, without the server: [`request`] parses the target, [`params`] the options, [`payload`] and
//! [`decode`] the body; [`negotiate`] says in which form the answer is, [`respond`] makes it, [`body`] is its stream.

pub(crate) mod body;
pub(crate) mod decode;
pub(crate) mod negotiate;
pub(crate) mod params;
pub(crate) mod payload;
pub(crate) mod request;
pub(crate) mod respond;
mod yaml;
mod yaml_keys;

/// The Go struct that the kind is read into, as decoding errors print it.
pub(crate) const TYPE_META: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
