//! Replies as objects of Python.

use crate::errors;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString};
use zerohop::client::{Error, FromReply, Reply};

/// As what a reply is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Bytes become text.
    pub decodes: bool,
    shape: Shape,
}

/// What the command's method promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// What the server said.
    Plain,
    /// Whether it was done.
    Flag,
    /// A number that RESP2 sends as text.
    Float,
    /// Values: an error among them is raised.
    Values,
}

impl Form {
    /// The form with the name that `zerohop/_commands.py` uses.
    pub fn named(name: &str, decodes: bool) -> PyResult<Form> {
        let shape = match name {
            "plain" => Shape::Plain,
            "flag" => Shape::Flag,
            "float" => Shape::Float,
            "values" => Shape::Values,
            _ => return Err(PyValueError::new_err(format!("no form of a reply is called {name:?}"))),
        };
        Ok(Form { decodes, shape })
    }

    /// The object, or the exception.
    pub fn of<'py>(self, py: Python<'py>, answer: Result<Reply, Error>) -> PyResult<Bound<'py, PyAny>> {
        let reply = answer.map_err(|error| errors::of_client(py, &error))?;
        match (self.shape, &reply) {
            (Shape::Flag, Reply::Nil | Reply::Int(0) | Reply::Boolean(false)) => {
                Ok(false.into_pyobject(py)?.to_owned().into_any())
            }
            (Shape::Flag, _) => Ok(true.into_pyobject(py)?.to_owned().into_any()),
            (Shape::Float, Reply::BulkString(bytes)) => {
                Ok(py.get_type::<pyo3::types::PyFloat>().call1((PyBytes::new(py, bytes),))?)
            }
            (Shape::Values, Reply::Array(items)) if items.iter().any(|item| matches!(item, Reply::ServerError(_))) => {
                match Vec::<Option<Vec<u8>>>::from_reply(reply) {
                    Ok(_) => Err(PyValueError::new_err("an error that is a value")),
                    Err(error) => Err(errors::of_client(py, &error)),
                }
            }
            _ => self.plain(py, &reply),
        }
    }

    fn plain<'py>(self, py: Python<'py>, reply: &Reply) -> PyResult<Bound<'py, PyAny>> {
        Ok(match reply {
            Reply::Nil => py.None().into_bound(py),
            Reply::Okay => true.into_pyobject(py)?.to_owned().into_any(),
            Reply::SimpleString(text) => self.text(py, text.as_bytes())?,
            Reply::Int(number) => number.into_pyobject(py)?.into_any(),
            Reply::BulkString(bytes) | Reply::VerbatimString(_, bytes) => self.text(py, bytes)?,
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => self.list(py, items)?,
            Reply::Map(pairs) => {
                let map = PyDict::new(py);
                for (key, value) in pairs {
                    map.set_item(self.plain(py, key)?, self.plain(py, value)?)?;
                }
                map.into_any()
            }
            Reply::Double(number) => number.into_pyobject(py)?.into_any(),
            Reply::Boolean(is_true) => is_true.into_pyobject(py)?.to_owned().into_any(),
            Reply::BigNumber(digits) => py.get_type::<PyInt>().call1((PyBytes::new(py, digits),))?,
            Reply::ServerError(error) => errors::of_server(py, error).into_value(py).into_bound(py).into_any(),
            other => return Err(PyValueError::new_err(format!("this version knows no such reply: {other:?}"))),
        })
    }

    fn list<'py>(self, py: Python<'py>, items: &[Reply]) -> PyResult<Bound<'py, PyAny>> {
        let list = PyList::empty(py);
        for item in items {
            list.append(self.plain(py, item)?)?;
        }
        Ok(list.into_any())
    }

    fn text<'py>(self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self.decodes {
            true => Ok(PyString::from_encoded_object(&PyBytes::new(py, bytes), Some(c"utf-8"), None)?.into_any()),
            false => Ok(PyBytes::new(py, bytes).into_any()),
        }
    }
}
