//! `TokenReview`s: whose a token is.

use machinery::meta::at;
use machinery::status::ApiError;
use pod_rules::field_error::go_quote;
use shared_json::{Value, json};

use crate::authn::authenticate_token;
use crate::context::Context;
use crate::tokens::ISSUER;

/// The status of a `TokenReview`: the user of the token that it asks about.
///
/// # Errors
/// 400 without a token.
pub(crate) fn status(context: &Context, review: &Value) -> Result<Value, ApiError> {
    let token = at(review, "spec.token")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if token.is_empty() {
        return Err(ApiError::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let given = at(review, "spec.audiences").and_then(Value::as_array);
    let given: Vec<String> = given
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let audiences = if given.is_empty() {
        vec![ISSUER.to_owned()]
    } else {
        given
    };
    Ok(match authenticate_token(context.state(), token, &audiences) {
        Some((mut user, audiences)) => {
            user.groups.push(machinery::user::AUTHENTICATED.to_owned());
            json!({"authenticated": true, "user": user.info(), "audiences": audiences})
        }
        None => {
            let claims = context.state().tokens.claims(token);
            let error = claims.map_or_else(
                || "invalid bearer token".to_owned(),
                |claims| format!("[invalid bearer token, {}]", no_longer(&claims, &audiences)),
            );
            json!({"user": {}, "error": error})
        }
    })
}

/// Why a token that this server made is not taken.
fn no_longer(claims: &Value, audiences: &[String]) -> String {
    let own = claims.get("aud").and_then(Value::as_array);
    let own: Vec<&str> = own.into_iter().flatten().filter_map(Value::as_str).collect();
    if audiences.iter().any(|wanted| own.contains(&wanted.as_str())) {
        return "Token has been invalidated".to_owned();
    }
    let listed = |texts: Vec<&str>| {
        let texts: Vec<String> = texts.into_iter().map(go_quote).collect();
        format!("[{}]", texts.join(" "))
    };
    let wanted = audiences.iter().map(String::as_str).collect();
    format!(
        "token audiences {} is invalid for the target audiences {}",
        listed(own),
        listed(wanted)
    )
}
