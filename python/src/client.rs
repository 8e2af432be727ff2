//! The connections of a client, for all threads and tasks of a process.

use crate::errors;
use crate::pending::{Asked, Pending};
use crate::replies::Form;
use crate::request::{Words, duration};
use crate::signals;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use zerohop::Client;

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// The connections of one `zerohop.Client` or `zerohop.aio.Client`.
#[pyclass(frozen, module = "zerohop._zerohop")]
pub struct Connection {
    /// `None` once it was closed. Locked for a moment only, by whoever has the GIL: a child of fork finds it free.
    client: Mutex<Option<Arc<Client>>>,
    decodes: bool,
}

#[pymethods]
impl Connection {
    #[new]
    #[pyo3(signature = (address, *, login, database, timeout, connect_timeout, protocol, decodes))]
    #[expect(clippy::too_many_arguments, reason = "each is a word of Python's call")]
    fn new(
        py: Python<'_>,
        address: &str,
        login: Option<(String, String)>,
        database: u32,
        timeout: f64,
        connect_timeout: f64,
        protocol: u8,
        decodes: bool,
    ) -> PyResult<Connection> {
        let mut options = Client::options()
            .timeout(duration(py, "the timeout", timeout, SECOND)?)
            .connect_timeout(duration(py, "the timeout of connecting", connect_timeout, SECOND)?)
            .database(database)
            .interrupted_by(signals::is_interrupted);
        if let Some((user, password)) = login {
            options = options.login(&user, &password);
        }
        options = match protocol {
            2 => options,
            3 => options.resp3(),
            _ => {
                let text = format!("protocol {protocol} is not spoken: give 2 or 3");
                return Err(errors::exception(py, "DataError", &text));
            }
        };
        let client = options.open(address).map_err(|error| errors::of_client(py, &error))?;
        Ok(Connection { client: Mutex::new(Some(Arc::new(client))), decodes })
    }

    /// Asks, and waits for the reply.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        words: &Bound<'py, PyTuple>,
        form: &str,
        within_ms: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let form = Form::named(form, self.decodes)?;
        let client = self.client(py)?;
        let call = Words::of(words)?.call(&client, hurry(py, within_ms)?);
        let answer = py.detach(|| call.wait());
        form.of(py, answer)
    }

    /// Asks, and returns at once what to ask for the reply.
    fn submit(
        &self,
        py: Python<'_>,
        words: &Bound<'_, PyTuple>,
        form: &str,
        within_ms: Option<f64>,
    ) -> PyResult<Pending> {
        let (asked, form) = self.begin(py, words, form, within_ms)?;
        Ok(Pending::begin(asked, form))
    }

    /// No request is taken any more; what is on its way is answered.
    fn close(&self) {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Requests, writes to and reads from sockets so far.
    fn traffic(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let traffic = self.client(py)?.traffic();
        Ok((traffic.requests, traffic.writes, traffic.reads))
    }
}

impl Connection {
    /// A request that is asked when it is polled for the first time.
    pub fn begin(
        &self,
        py: Python<'_>,
        words: &Bound<'_, PyTuple>,
        form: &str,
        within_ms: Option<f64>,
    ) -> PyResult<(Asked, Form)> {
        let form = Form::named(form, self.decodes)?;
        let asked = Asked::new(self.client(py)?, Words::of(words)?, hurry(py, within_ms)?);
        Ok((asked, form))
    }

    fn client(&self, py: Python<'_>) -> PyResult<Arc<Client>> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        client.ok_or_else(|| errors::exception(py, "ConnectionError", "the client was closed; open another one"))
    }
}

fn hurry(py: Python<'_>, within_ms: Option<f64>) -> PyResult<Option<Duration>> {
    within_ms.map(|ms| duration(py, "within_ms", ms, MILLISECOND)).transpose()
}
