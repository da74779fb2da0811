//! The marks of a simulated node.

/// The operating system image that simulated nodes report. A node with another one is a real kubelet's.
pub const OS_IMAGE: &str = "Seatrial simulated node";
