//! The ordinals of a set.

use super::gates::Gates;
use super::settings::Settings;
use crate::api::v1beta1::StatefulSet;
use crate::pods::ordinals::{Reserved, ordinals};

pub(super) use crate::pods::ordinals::ordinal_of;

/// The ordinals of `set`, lowest first.
pub(super) fn own_ordinals(set: &StatefulSet, gates: Gates) -> Vec<i32> {
    let settings = Settings::of(set, gates);
    let reserved = set.spec.reserve_ordinals.as_deref();
    ordinals(
        settings.start,
        settings.replicas,
        &Reserved::of(reserved.unwrap_or_default()),
    )
}
