//! A user, the result of authentication and an input of authorization and admission.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use shared_json::{Map, Value, json};

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";
/// The group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The user of requests that do not say who sends them.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of that user.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The start of the user name of a service account.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// Where a user's extra fields say which credential was shown.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The namespace and the name of the service account that a user name stands for; `None` if it stands for none.
#[must_use]
pub fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let valid = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    valid.then_some((namespace, name))
}

/// The groups of the service account that a user name stands for; `None` if it stands for none.
#[must_use]
pub fn groups_of(user: &str) -> Option<Vec<String>> {
    let (namespace, _) = service_account(user)?;
    Some(vec![
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ])
}

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

    /// The user of this name, with the groups that follow from it.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let user = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        user.completed()
    }

    /// A user given by name and perhaps by groups, with the groups that follow from the name.
    #[must_use]
    pub fn completed(mut self) -> Self {
        if self.groups.is_empty() {
            self.groups = groups_of(&self.name).unwrap_or_default();
        }
        let everyone = if self.name == ANONYMOUS {
            UNAUTHENTICATED
        } else {
            AUTHENTICATED
        };
        // Who is said to be one or the other is that.
        let is_said = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if !self.groups.iter().any(is_said) {
            self.groups.push(everyone.to_owned());
        }
        self
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
