//! Schemas and defaults of fields.

/// The schema of a field whose content the server does not look into (`x-kubernetes-preserve-unknown-fields`).
pub(crate) fn schemaless(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_zero_i64(number: &i64) -> bool {
    *number == 0
}
