//! `authorizer`: asks whether the requesting user, or a service account, may do something else.
//!
//! A question is a map that methods add to; `check` asks it, and its answer is a map too.

use std::sync::Arc;

use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{ExecutionError, Value};
use machinery::cel::{Scope, values};
use machinery::user::SERVICE_ACCOUNT_PREFIX;
use pod_rules::names;

use crate::authn::User;
use crate::authz::{self, Act};
use crate::server::Server;

/// Methods that name one part of a question, and the key of that part.
const PARTS: [(&str, &str); 7] = [
    ("path", "path"),
    ("group", "group"),
    ("resource", "resource"),
    ("subresource", "subresource"),
    ("namespace", "namespace"),
    ("name", "name"),
    ("fieldSelector", "fieldSelector"),
];
/// The namespace and name of the service account that the question is about, if it is not the requesting user.
const ACCOUNT: &str = "@account";
/// The fields of an answer.
const ALLOWED: &str = "@allowed";
const REASON: &str = "@reason";

/// The value of `authorizer` for a request.
pub(in crate::admission) fn value(request: &Act) -> Value {
    let part = |name: &str, text: &str| (name.to_owned(), values::text(text));
    let resource = values::map([
        part("group", &request.group),
        part("resource", &request.resource),
        part("subresource", &request.subresource),
        part("namespace", &request.namespace),
        part("name", &request.name),
    ]);
    values::map([("requestResource".to_owned(), resource)])
}

/// All that expressions may call, and the methods of `authorizer`, for requests of `user`.
pub(in crate::admission) fn scope(server: &Server, user: &Arc<User>) -> Scope {
    let mut scope = Scope::new();
    let root = scope.functions();
    for (method, part) in PARTS {
        root.add_function(method, move |This(this): This<Value>, text: Arc<String>| {
            if text.is_empty() && matches!(part, "path" | "resource") {
                let why = format!("{part} must not be empty");
                return Err(ExecutionError::function_error(part, why));
            }
            with(&this, part, Value::String(text))
        });
    }
    // Nobody who decides here looks at labels.
    root.add_function("labelSelector", |This(this): This<Value>, _text: Arc<String>| {
        Ok::<_, ExecutionError>(this)
    });
    root.add_function(
        "serviceAccount",
        |This(this): This<Value>, namespace: Arc<String>, name: Arc<String>| {
            let wrong = |what: &str| {
                let why = format!("Invalid service account {what}");
                Err(ExecutionError::function_error("serviceAccount", why))
            };
            if !names::label_problems(&namespace).is_empty() {
                return wrong("namespace");
            }
            if !names::subdomain_problems(&name).is_empty() {
                return wrong("name");
            }
            with(&this, ACCOUNT, values::text(&format!("{namespace}:{name}")))
        },
    );
    let (server, user) = (server.clone(), Arc::clone(user));
    root.add_function("check", move |This(this): This<Value>, verb: Arc<String>| {
        let (allowed, reason) = decided(&server, &user, &this, &verb);
        Ok::<_, ExecutionError>(values::map([
            (ALLOWED.to_owned(), Value::Bool(allowed)),
            (REASON.to_owned(), values::text(&reason)),
        ]))
    });
    root.add_function("allowed", |This(this): This<Value>| {
        let allowed = entry(&this, ALLOWED).is_some_and(|value| value == Value::Bool(true));
        Ok::<_, ExecutionError>(Value::Bool(allowed))
    });
    root.add_function("reason", |This(this): This<Value>| {
        Ok::<_, ExecutionError>(entry(&this, REASON).unwrap_or_else(|| values::text("")))
    });
    // Nobody who decides here fails at it.
    root.add_function("error", |This(_): This<Value>| {
        Ok::<_, ExecutionError>(values::text(""))
    });
    root.add_function("errored", |This(_): This<Value>| {
        Ok::<_, ExecutionError>(Value::Bool(false))
    });
    scope
}

fn entry(of: &Value, name: &str) -> Option<Value> {
    let Value::Map(map) = of else {
        return None;
    };
    map.map.get(&Key::from(name)).cloned()
}

fn with(of: &Value, name: &str, value: Value) -> Result<Value, ExecutionError> {
    let Value::Map(map) = of else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let mut entries = (*map.map).clone();
    entries.insert(Key::from(name), value);
    Ok(Value::Map(Map {
        map: Arc::new(entries),
    }))
}

/// Whether the action is allowed, and the authorizer's reason.
fn decided(server: &Server, user: &Arc<User>, asked: &Value, verb: &str) -> (bool, String) {
    let text = |name: &str| match entry(asked, name) {
        Some(Value::String(text)) => text.to_string(),
        _ => String::new(),
    };
    let act = Act {
        verb: verb.to_owned(),
        group: text("group"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        path: text("path"),
        field_selector: text("fieldSelector"),
    };
    let account = text(ACCOUNT);
    let user = match account.contains(':') {
        true => &Arc::new(User::named(&format!("{SERVICE_ACCOUNT_PREFIX}{account}"))),
        false => user,
    };
    authz::decision(&server.state, user, &act)
}
