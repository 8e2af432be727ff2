//! Walks over the keys of an embedded store.

use crate::errors;
use crate::owned::Owned;
use crate::store::{of_another_process, to_bytes};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use std::sync::{Mutex, PoisonError};

/// What is wanted of each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its key.
    Key,
    /// Its value.
    Value,
    /// Both.
    Both,
}

/// A walk over the keys of a store; each is as it was when the walk came to it.
#[pyclass(frozen, module = "zerohop._zerohop")]
pub struct Entries {
    /// Locked without the GIL.
    walk: Owned<Mutex<zerohop::Entries>>,
    part: Part,
}

impl Entries {
    /// Those of a walk that has not begun.
    pub fn new(walk: zerohop::Entries, part: Part) -> Entries {
        Entries { walk: Owned::new(Mutex::new(walk)), part }
    }
}

#[pymethods]
impl Entries {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// As that of `Pending`.
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let walk = self.walk.get().map_err(|process| of_another_process(py, process))?;
        let next = py.detach(|| walk.lock().unwrap_or_else(PoisonError::into_inner).next());
        let Some(entry) = next else { return Ok(None) };
        let entry = entry.map_err(|error| errors::of_store(py, &error))?;
        let key = || PyBytes::new(py, &entry.key);
        Ok(Some(match self.part {
            Part::Key => key().into_any(),
            Part::Value => to_bytes(py, &entry.value)?.into_any(),
            Part::Both => (key(), to_bytes(py, &entry.value)?).into_pyobject(py)?.into_any(),
        }))
    }
}
