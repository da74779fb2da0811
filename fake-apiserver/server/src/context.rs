//! One request for a resource, and its answer.

use std::sync::{Arc, Mutex, PoisonError};

use client_kit::LocalObjects;
use http::StatusCode;
use machinery::status::ApiError;
use shared_json::Value;
use store::{GroupResource, ObjectKey, Revision, Stored};

use crate::authn::User;
use crate::conversion::Asked;
use crate::message::negotiate::Accepted;
use crate::message::params::Params;
use crate::message::payload::Payload;
use crate::message::request::ResourceRequest;
use crate::resources::Resource;
use crate::server::{Server, ServerState};

/// Everything a verb needs to know of its request.
pub(crate) struct Context {
    pub server: Server,
    pub resource: Arc<Resource>,
    pub request: ResourceRequest,
    pub params: Params,
    pub accepted: Accepted,
    pub content_type: String,
    /// The body, unless the request is a part of another one.
    pub body: Payload,
    /// The field manager: the parameter, or the first word of the user agent.
    pub manager: String,
    /// The user of the request.
    pub user: Arc<User>,
    /// Where a part of this process takes objects from, instead of reading text.
    pub local: Option<LocalObjects>,
    /// Whether it came over a socket.
    pub is_remote: bool,
    /// Warnings for the client.
    pub warnings: Warnings,
    /// The conversions that were asked of a webhook to translate managed fields of other versions.
    pub asked: Asked,
}

/// Warnings for a client, sent with any answer, a refusal included: each text once, in the order in which it was found. Clones
/// share their list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    pub(crate) fn tell(&self, warnings: impl IntoIterator<Item = String>) {
        let mut warnings = warnings.into_iter().peekable();
        if warnings.peek().is_none() {
            return;
        }
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in warnings {
            if !told.contains(&warning) {
                told.push(warning);
            }
        }
    }

    /// The warnings so far.
    pub(crate) fn told(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Context {
    pub(crate) fn state(&self) -> &ServerState {
        &self.server.state
    }

    /// The key of the object that the path names.
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.request.namespace, &self.request.name)
    }

    pub(crate) fn table(&self) -> &GroupResource {
        &self.resource.table
    }

    /// The object that the path names.
    ///
    /// # Errors
    /// 404.
    pub(crate) fn existing(&self) -> Result<Arc<Stored>, ApiError> {
        self.state()
            .store
            .get(self.table(), &self.key())
            .ok_or_else(|| ApiError::not_found(&self.resource.group_resource(), &self.request.name))
    }
}

/// An object that an answer shows.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    /// As it is in the store, in its storage version.
    Stored(Arc<Stored>),
    /// A value in the request's own version: a dry run's, a scale, a status.
    Made(Value),
}

/// The answer of a verb.
#[derive(Debug)]
pub(crate) struct Answer {
    pub code: StatusCode,
    pub object: Shown,
}

impl Answer {
    pub(crate) fn ok(object: Shown) -> Self {
        Self {
            code: StatusCode::OK,
            object,
        }
    }

    pub(crate) fn created(object: Shown) -> Self {
        Self {
            code: StatusCode::CREATED,
            object,
        }
    }
}

/// A list, or a page of one.
#[derive(Debug)]
pub(crate) struct Page {
    /// None if its objects are not stored.
    pub revision: Option<Revision>,
    pub items: Vec<Arc<Stored>>,
    pub continue_token: String,
    pub remaining: Option<usize>,
}
