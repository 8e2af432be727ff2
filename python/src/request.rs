//! What Python says as what a request is made of: words, and by when the reply is wanted.

use crate::errors;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyMemoryView, PyString, PyTuple};
use std::time::Duration;
use zerohop::Client;
use zerohop::client::{Call, Reply};

/// Hands over the bytes of a word: text in UTF-8, bytes, or a number in digits.
pub fn with_bytes<R>(word: &Bound<'_, PyAny>, take: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
    if let Ok(bytes) = word.cast::<PyBytes>() {
        return Ok(take(bytes.as_bytes()));
    }
    if let Ok(text) = word.cast::<PyString>() {
        return Ok(take(text.to_str()?.as_bytes()));
    }
    let is_number =
        (word.is_instance_of::<PyInt>() && !word.is_instance_of::<PyBool>()) || word.is_instance_of::<PyFloat>();
    if is_number {
        return Ok(take(word.repr()?.to_str()?.as_bytes()));
    }
    if word.is_instance_of::<PyByteArray>() || word.is_instance_of::<PyMemoryView>() {
        let copy = word.py().get_type::<PyBytes>().call1((word,))?;
        return Ok(take(copy.cast::<PyBytes>()?.as_bytes()));
    }
    let kind = word.get_type().name()?;
    let text = format!("a {kind} is no word of a request: give str, bytes, int or float");
    Err(errors::exception(word.py(), "DataError", &text))
}

/// The bytes of a key or value of the embedded store.
pub fn to_vec(word: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    with_bytes(word, <[u8]>::to_vec)
}

/// The words of a request: the command's name, and the others.
pub struct Words {
    /// May be two of them, as in `CONFIG GET`.
    pub name: String,
    /// Behind the name.
    pub others: Vec<Vec<u8>>,
}

impl Words {
    /// Reads them.
    pub fn of(words: &Bound<'_, PyTuple>) -> PyResult<Words> {
        let py = words.py();
        let mut words = words.iter();
        let Some(name) = words.next() else {
            return Err(errors::exception(py, "DataError", "a request begins with the name of a command"));
        };
        let name = with_bytes(&name, |name| String::from_utf8_lossy(name).into_owned())?;
        let others = words.map(|word| to_vec(&word)).collect::<PyResult<_>>()?;
        Ok(Words { name, others })
    }

    /// The request of `client`, with the reply wanted within that time.
    pub fn call<'c>(&self, client: &'c Client, within: Option<Duration>) -> Call<'c, Reply> {
        let call = client.command(&self.name).args(&self.others);
        match within {
            Some(within) => call.within(within),
            None => call,
        }
    }
}

/// A time that Python counts in `unit`s.
pub fn duration(py: Python<'_>, what: &str, count: f64, unit: Duration) -> PyResult<Duration> {
    let wrong =
        || errors::exception(py, "DataError", &format!("{what} is {count}: give a number that is not negative"));
    match count {
        _ if count.is_nan() || count < 0.0 => Err(wrong()),
        // For ever.
        _ => Ok(Duration::try_from_secs_f64(count * unit.as_secs_f64()).unwrap_or(Duration::MAX)),
    }
}
