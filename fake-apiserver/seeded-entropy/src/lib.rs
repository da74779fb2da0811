//! Seeded entropy.
