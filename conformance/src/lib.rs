//! Scenarios, backends, recordings, snapshots and reports.
