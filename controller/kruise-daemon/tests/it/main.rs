//! The program as a user starts it: its errors when it cannot run, and its work on a simulated node.

mod simulated;
mod starts;
