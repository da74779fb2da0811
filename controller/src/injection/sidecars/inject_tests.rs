//! Injection, row by row.
