//! Changes of an embedded store that are made together.

use crate::errors;
use crate::request::{duration, to_vec};
use crate::store::Store;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

enum Change {
    Put(Vec<u8>, Option<Duration>),
    Delete,
}

type Changes = Vec<(Vec<u8>, Change)>;

/// Changes that are made together, in their order: seen together, and after a crash all there or none.
///
/// A context manager: they are made at the end of the block, unless that ends with an exception.
#[pyclass(frozen, module = "zerohop._zerohop")]
pub struct Batch {
    store: Py<Store>,
    /// Locked by whoever has the GIL.
    changes: Mutex<Changes>,
}

impl Batch {
    /// One without changes.
    pub fn new(store: Py<Store>) -> Batch {
        Batch { store, changes: Mutex::default() }
    }

    fn add(&self, key: Vec<u8>, change: Change) {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).push((key, change));
    }
}

#[pymethods]
impl Batch {
    /// Adds a `put`; its `ttl` counts from the commit.
    #[pyo3(signature = (key, value, *, ttl=None))]
    fn put(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, ttl: Option<f64>) -> PyResult<()> {
        let ttl = ttl.map(|ttl| duration(key.py(), "ttl", ttl, Duration::from_secs(1))).transpose()?;
        self.add(to_vec(key)?, Change::Put(to_vec(value)?, ttl));
        Ok(())
    }

    /// Adds a `delete`.
    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.add(to_vec(key)?, Change::Delete);
        Ok(())
    }

    /// Makes the changes, all or none, and forgets them.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let changes = std::mem::take(&mut *self.changes.lock().unwrap_or_else(PoisonError::into_inner));
        let store = self.store.get().store(py)?;
        py.detach(|| commit(store, &changes)).map_err(|error| errors::of_store(py, &error))
    }

    fn __len__(&self) -> usize {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        match (kind, error, traceback) {
            (None, None, None) => self.commit(py),
            _ => Ok(()),
        }
    }
}

fn commit(store: &zerohop::Store, changes: &Changes) -> Result<(), zerohop::Error> {
    let mut batch = store.batch();
    for (key, change) in changes {
        match change {
            Change::Put(value, None) => batch.put(key, value)?,
            Change::Put(value, Some(ttl)) => batch.put_with_expiry(key, value, *ttl)?,
            Change::Delete => batch.delete(key)?,
        }
    }
    batch.commit()
}
