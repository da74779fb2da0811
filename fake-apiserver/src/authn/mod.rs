//! Who asks.

mod user;

pub(crate) use user::User;
