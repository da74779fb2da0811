//! A user, the result of authentication and an input of authorization and admission.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use shared_json::{Map, Value, json};

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";
/// The group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Where a user's extra fields say which credential was shown.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The user of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// Distinguishes the user from others of that name; empty where authentication gave none.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// The further results of authentication, by field.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The user of clients in this process: `system:admin`, with the right to do everything.
    pub fn master() -> Arc<Self> {
        static MASTER: LazyLock<Arc<User>> = LazyLock::new(|| {
            Arc::new(User {
                name: "system:admin".to_owned(),
                groups: vec![MASTERS.to_owned(), AUTHENTICATED.to_owned()],
                ..User::default()
            })
        });
        Arc::clone(&MASTER)
    }

    /// `authentication.k8s.io/v1` `UserInfo`.
    pub fn info(&self) -> Value {
        let mut info = Map::new();
        for (field, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                info.insert(field.to_owned(), Value::from(text.clone()));
            }
        }
        if !self.groups.is_empty() {
            info.insert("groups".to_owned(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".to_owned(), json!(self.extra));
        }
        Value::Object(info)
    }
}
