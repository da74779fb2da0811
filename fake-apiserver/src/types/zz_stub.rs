//! Placeholders until defaults and validation land: nothing is defaulted or validated yet.
use super::Schema; use serde_json::Value; use crate::field_error::FieldError;
impl Schema {
 pub fn apply_defaults(&self,_v:&mut Value){}
 pub fn validate(&self,_v:&Value)->Vec<FieldError>{vec![]}
 pub fn from_openapi_v3(_v:&Value)->Result<Schema,Vec<FieldError>>{Ok(Schema::of(super::Kind::Any))}
}
