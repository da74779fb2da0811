//! The verdict of a pass on the pods of a subset, before it distributes replicas.

/// How the workload of a subset stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Whether it gets no further pods.
    pub(super) is_unschedulable: bool,
    /// Whether it got none when the pass began.
    pub(super) was_unschedulable: bool,
    /// How many of its pods stand for nothing yet.
    pub(super) reserved: i32,
    /// How many of those have not been updated in time.
    pub(super) late: i32,
}
