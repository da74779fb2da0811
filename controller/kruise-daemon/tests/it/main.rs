//! The program as a user starts it: what it says when it cannot run.

mod starts;
