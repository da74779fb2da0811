//! A pass, row by row.
