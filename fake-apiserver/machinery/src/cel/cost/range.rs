//! Least and most: of sizes, and of costs.

/// From the least to the most: of sizes, and of costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub min: u64,
    pub max: u64,
}

pub(super) const UNKNOWN: Range = Range {
    min: 0,
    max: u64::MAX,
};

impl Range {
    pub(super) const fn of(value: u64) -> Self {
        Self {
            min: value,
            max: value,
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        // Conversion to whole numbers saturates.
        let scale = |value: u64| (value as f64 * factor).ceil() as u64;
        Self {
            min: scale(self.min),
            max: scale(self.max),
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// The sizes of the entries of a list or map that the expression made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entries {
    pub is_list: bool,
    pub key: Range,
    pub value: Range,
}

impl Entries {
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            is_list: self.is_list,
            key: self.key.or(other.key),
            value: self.value.or(other.value),
        }
    }
}
