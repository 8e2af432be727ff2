//! The differential run: the same sequences to the server under test and to those who say what is right.

pub mod compare;
pub mod coverage;
pub mod exceptions;
pub mod lanes;
pub mod run;
pub mod scan;
pub mod shrink;
