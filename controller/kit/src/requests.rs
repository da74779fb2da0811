//! Requests whose objects are sent as they are written, field by field, and the write of a status.

use kube::api::{Api, GetParams, PostParams};
use kube::core::Request;
use kube::{Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde_json::Value;

use super::error::{ActError, Kind};
use super::informer::Cached;

/// How often a write is tried when somebody else wrote meanwhile (client-go's default for conflicts).
const WRITE_TRIES_MAX: u32 = 5;

fn body(object: &Value) -> Result<Vec<u8>, ActError> {
    serde_json::to_vec(object).map_err(|error| ActError::planned(&error.to_string()))
}

/// Creates an object.
pub async fn create<K: Resource<DynamicType = ()>>(
    client: &Client,
    namespace: &str,
    params: &PostParams,
    object: &Value,
) -> Result<Value, ActError> {
    let request = Request::new(K::url_path(&(), Some(namespace)))
        .create(params, body(object)?)
        .map_err(kube::Error::BuildRequest)?;
    Ok(client.request(request).await?)
}

/// An object with all of its fields.
pub async fn get<K: Resource<DynamicType = ()>>(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Value, ActError> {
    let request = Request::new(K::url_path(&(), Some(namespace)))
        .get(name, &GetParams::default())
        .map_err(kube::Error::BuildRequest)?;
    Ok(client.request(request).await?)
}

/// Replaces an object.
pub async fn replace<K: Resource<DynamicType = ()>>(
    client: &Client,
    namespace: &str,
    name: &str,
    object: &Value,
) -> Result<Value, ActError> {
    let request = Request::new(K::url_path(&(), Some(namespace)))
        .replace(name, &PostParams::default(), body(object)?)
        .map_err(kube::Error::BuildRequest)?;
    Ok(client.request(request).await?)
}

/// Writes the status that `set` puts into an object, also if others write the object meanwhile, and gives the object as it is then.
///
/// # Errors
/// Those of the requests, and the conflict with an object of the same name that is another one.
pub async fn write_status<K: Cached + Serialize>(
    api: &Api<K>,
    object: &K,
    set: impl Fn(&mut K),
) -> Result<K, ActError> {
    let mut object = object.clone();
    let mut attempt = 1;
    loop {
        set(&mut object);
        let name = object.name_any();
        let written = api.replace_status(&name, &PostParams::default(), &object).await;
        match written.map_err(ActError::from) {
            Err(error) if error.kind == Kind::Conflict && attempt < WRITE_TRIES_MAX => {
                attempt += 1;
                let uid = object.uid();
                object = api.get(&name).await?;
                if object.uid() != uid {
                    return Err(error);
                }
            }
            result => return result,
        }
    }
}
