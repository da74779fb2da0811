//! The program as a user starts it: what it says when it cannot run, and its work on a simulated node.

mod simulated;
mod starts;
