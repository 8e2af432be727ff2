//! What `Store.wait` is to wait for, as Python says it.

use crate::errors;
use crate::request::to_vec;
use pyo3::prelude::*;
use zerohop::Condition;

/// Exactly one of the arguments of `Store.wait`.
pub enum Wanted {
    /// Whether the key exists.
    Exists(bool),
    /// What it holds.
    Equals(Vec<u8>),
    /// What it does not hold.
    Differs(Vec<u8>),
}

impl Wanted {
    /// Reads them.
    pub fn of(
        py: Python<'_>,
        exists: Option<bool>,
        equals: Option<&Bound<'_, PyAny>>,
        differs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Wanted> {
        match (exists, equals, differs) {
            (Some(exists), None, None) => Ok(Wanted::Exists(exists)),
            (None, Some(value), None) => Ok(Wanted::Equals(to_vec(value)?)),
            (None, None, Some(value)) => Ok(Wanted::Differs(to_vec(value)?)),
            _ => Err(errors::exception(py, "DataError", "give one of exists=, equals= and differs=")),
        }
    }

    /// For the library.
    pub fn condition(&self) -> Condition<'_> {
        match self {
            Wanted::Exists(true) => Condition::Exists,
            Wanted::Exists(false) => Condition::Absent,
            Wanted::Equals(value) => Condition::Equals(value),
            Wanted::Differs(value) => Condition::Differs(value),
        }
    }
}
