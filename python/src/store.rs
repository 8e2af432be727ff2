//! The embedded store: what `zerohop.open` returns.

use crate::batch::Batch;
use crate::conditions::Wanted;
use crate::entries::{Entries, Part};
use crate::errors;
use crate::owned::Owned;
use crate::request::{duration, to_vec, with_bytes};
use crate::signals;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::time::Duration;
use zerohop::{Durability, Error, Value, Version, Waited};

const SECOND: Duration = Duration::from_secs(1);

/// A key-value store in a directory, or in memory alone, inside this process. Made by `zerohop.open`.
///
/// Keys and values are bytes; `str` is taken as UTF-8. It may be used by all threads of the process that opened it, and by no other one.
#[pyclass(frozen, mapping, module = "zerohop._zerohop")]
pub struct Store {
    store: Owned<zerohop::Store>,
}

/// A value's bytes, copied once.
pub fn to_bytes<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, value.len(), |mut rest| {
        for piece in value.pieces() {
            let (now, later) = rest.split_at_mut(piece.len());
            now.copy_from_slice(piece);
            rest = later;
        }
        Ok(())
    })
}

/// Why a child of fork cannot use what its parent opened.
pub fn of_another_process(py: Python<'_>, process: u32) -> PyErr {
    let text = format!("process {process} opened this store, and its threads are there: a child of fork cannot use it");
    errors::exception(py, "StoreError", &text)
}

impl Store {
    /// The library's store, in the process that opened it.
    pub fn store(&self, py: Python<'_>) -> PyResult<&zerohop::Store> {
        self.store.get().map_err(|process| of_another_process(py, process))
    }

    /// Does something without the GIL.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl Send + FnOnce(&zerohop::Store) -> Result<R, Error>,
    ) -> PyResult<R> {
        let store = self.store(py)?;
        py.detach(|| act(store)).map_err(|error| errors::of_store(py, &error))
    }

    fn read<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let py = key.py();
        let key = to_vec(key)?;
        self.with(py, |store| store.get(&key))?.map(|value| to_bytes(py, &value)).transpose()
    }

    fn entries(&self, py: Python<'_>, prefix: Option<&Bound<'_, PyAny>>, part: Part) -> PyResult<Entries> {
        let prefix = prefix.map(to_vec).transpose()?.unwrap_or_default();
        Ok(Entries::new(self.store(py)?.iter_prefix(&prefix), part))
    }
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (directory, *, durability, memory_limit))]
    fn new(
        py: Python<'_>,
        directory: Option<PathBuf>,
        durability: &str,
        memory_limit: Option<usize>,
    ) -> PyResult<Store> {
        let durability = match durability {
            "memory" => Durability::Memory,
            "interval" => Durability::Interval,
            "commit" => Durability::Commit,
            other => {
                let text = format!("no durability is called {other:?}: give memory, interval or commit");
                return Err(errors::exception(py, "DataError", &text));
            }
        };
        let mut options = zerohop::Store::options().durability(durability);
        if let Some(bytes) = memory_limit {
            options = options.memory_limit(bytes);
        }
        let opened = py.detach(|| match directory {
            Some(directory) => options.open(directory),
            None if memory_limit.is_some() => Err(zerohop::Error::LimitWithoutDisk),
            None => zerohop::Store::in_memory(),
        });
        let store = opened.map_err(|error| errors::of_store(py, &error))?;
        Ok(Store { store: Owned::new(store) })
    }

    /// The value of a key, or `default` when it does not exist.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.read(key)?.map(Bound::into_any).or(default))
    }

    /// The value of a key and its version, or `None`. Every write gives its key a higher version.
    fn get_with_version<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyBytes>, u64)>> {
        let py = key.py();
        let key = to_vec(key)?;
        let value = self.with(py, |store| store.get(&key))?;
        value.map(|value| Ok((to_bytes(py, &value)?, value.version().0))).transpose()
    }

    /// Sets a key, whatever it held. It is removed once `ttl` seconds are over; without, it does not expire.
    #[pyo3(signature = (key, value, *, ttl=None))]
    fn put(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, ttl: Option<f64>) -> PyResult<()> {
        let py = key.py();
        let ttl = ttl.map(|ttl| duration(py, "ttl", ttl, SECOND)).transpose()?;
        let key = to_vec(key)?;
        with_bytes(value, |value| {
            self.with(py, |store| match ttl {
                Some(ttl) => store.put_with_expiry(&key, value, ttl),
                None => store.put(&key, value),
            })
        })??;
        Ok(())
    }

    /// Removes a key; whether it was there.
    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = to_vec(key)?;
        self.with(key.py(), |store| store.delete(&bytes))
    }

    /// Adds to the end of a value, or sets it where there is none; how long it is then.
    fn append(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = key.py();
        let key = to_vec(key)?;
        with_bytes(value, |value| self.with(py, |store| store.append(&key, value)))?
    }

    /// Sets a key to `new` (`None`: removes it) if it holds `expected` (`None`: if it does not exist), in one step; whether it did.
    fn compare_and_swap(
        &self,
        key: &Bound<'_, PyAny>,
        expected: Option<&Bound<'_, PyAny>>,
        new: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let py = key.py();
        let (key, expected, new) = (to_vec(key)?, expected.map(to_vec).transpose()?, new.map(to_vec).transpose()?);
        let swap = |store: &zerohop::Store| store.compare_and_swap(&key, expected.as_deref(), new.as_deref());
        Ok(self.with(py, swap)?.is_ok())
    }

    /// As `compare_and_swap`, if the key has that version (0: if it does not exist).
    fn compare_and_swap_version(
        &self,
        key: &Bound<'_, PyAny>,
        version: u64,
        new: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let py = key.py();
        let (key, new) = (to_vec(key)?, new.map(to_vec).transpose()?);
        let swap = |store: &zerohop::Store| store.compare_and_swap_version(&key, Version(version), new.as_deref());
        Ok(self.with(py, swap)?.is_ok())
    }

    /// Waits until a key exists or does not (`exists=`), holds something (`equals=`) or does not (`differs=`), and returns what it holds
    /// then. The write that brings it about fires at once, also when others have written since.
    ///
    /// `timeout` is in seconds; `TimeoutError` when it is over.
    #[pyo3(signature = (key, *, exists=None, equals=None, differs=None, timeout=None))]
    fn wait<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        exists: Option<bool>,
        equals: Option<&Bound<'py, PyAny>>,
        differs: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let py = key.py();
        let wanted = Wanted::of(py, exists, equals, differs)?;
        let time = timeout.map_or(Ok(Duration::MAX), |time| duration(py, "the timeout", time, SECOND))?;
        let key = to_vec(key)?;
        let waited =
            self.with(py, |store| store.wait_unless(&key, wanted.condition(), time, Some(&signals::is_interrupted)))?;
        match waited {
            Waited::Met(value) => value.map(|value| to_bytes(py, &value)).transpose(),
            Waited::TimedOut => Err(signals::take_raised().unwrap_or_else(|| {
                let text = format!("what was waited for did not come within {} s", timeout.unwrap_or(f64::INFINITY));
                errors::exception(py, "TimeoutError", &text)
            })),
        }
    }

    /// Changes that are made together: `with store.batch() as batch: ...`.
    fn batch(slf: &Bound<'_, Self>) -> Batch {
        Batch::new(slf.clone().unbind())
    }

    /// A walk over the keys that begin with `prefix`. It looks at every key of the store, in no order that means anything.
    #[pyo3(signature = (prefix=None))]
    fn keys(&self, py: Python<'_>, prefix: Option<&Bound<'_, PyAny>>) -> PyResult<Entries> {
        self.entries(py, prefix, Part::Key)
    }

    /// As `keys`: their values.
    #[pyo3(signature = (prefix=None))]
    fn values(&self, py: Python<'_>, prefix: Option<&Bound<'_, PyAny>>) -> PyResult<Entries> {
        self.entries(py, prefix, Part::Value)
    }

    /// As `keys`: pairs of key and value.
    #[pyo3(signature = (prefix=None))]
    fn items(&self, py: Python<'_>, prefix: Option<&Bound<'_, PyAny>>) -> PyResult<Entries> {
        self.entries(py, prefix, Part::Both)
    }

    /// Makes everything durable and ends the store, so that the next opening has nothing to replay. Calls that are under way end first, or
    /// raise `ClosedError`, as later ones do.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |store| store.clone().close())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let keys = self.with(py, |store| Ok(store.len()))?;
        Ok(usize::try_from(keys).unwrap_or(usize::MAX))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = to_vec(key)?;
        Ok(self.with(key.py(), |store| store.get(&bytes))?.is_some())
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        self.read(key)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value, None)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.delete(key)? { Ok(()) } else { Err(PyKeyError::new_err(key.clone().unbind())) }
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Entries> {
        self.entries(py, None, Part::Key)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (_kind, _error, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }
}
