//! Requests on their way: futures of the library, and those that a thread submitted and asks for later.

use crate::errors;
use crate::owned::Owned;
use crate::replies::Form;
use crate::request::Words;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use zerohop::Client;
use zerohop::client::{Error, Reply};

/// Between two looks whether a signal came.
const LOOK: Duration = Duration::from_millis(100);

type Answer = Result<Reply, Error>;

/// A request, which is sent when it is polled for the first time.
pub struct Asked {
    future: Owned<Pin<Box<dyn Future<Output = Answer> + Send>>>,
}

impl Asked {
    /// One that keeps its client until it is answered.
    pub fn new(client: Arc<Client>, words: Words, within: Option<Duration>) -> Asked {
        Asked { future: Owned::new(Box::pin(async move { words.call(&client, within).await })) }
    }

    /// Asks, or looks for the answer; `Err` is the process that asked, if it is not this one.
    pub fn poll(&mut self, waker: &Waker) -> Result<Poll<Answer>, u32> {
        Ok(self.future.get_mut()?.as_mut().poll(&mut Context::from_waker(waker)))
    }
}

/// Rings for the thread that waits.
#[derive(Default)]
struct Bell {
    has_rung: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.has_rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, time: Duration) {
        let (mut has_rung, _) =
            self.rung.wait_timeout_while(self.lock(), time, |rung| !*rung).unwrap_or_else(PoisonError::into_inner);
        *has_rung = false;
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        *self.lock() = true;
        self.rung.notify_all();
    }
}

enum State {
    Asked(Asked),
    Told(Answer),
}

/// A submitted request.
#[pyclass(frozen, module = "zerohop._zerohop")]
pub struct Pending {
    /// Locked while it is polled, and never while anybody waits.
    state: Mutex<State>,
    bell: Arc<Bell>,
    form: Form,
}

#[pymethods]
impl Pending {
    /// Waits for the reply. What the request met is raised.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loop {
            if let Some(answer) = self.look(py)? {
                return self.form.of(py, answer);
            }
            py.detach(|| self.bell.wait(LOOK));
            py.check_signals()?;
        }
    }

    /// `Pending[int]`, which means something to those who check types only.
    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _result: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
    }

    /// Whether the reply is there.
    fn done(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.look(py)?.is_some())
    }
}

impl Pending {
    /// Asks.
    pub fn begin(mut asked: Asked, form: Form) -> Pending {
        let bell = Arc::<Bell>::default();
        let state = match asked.poll(&Waker::from(Arc::clone(&bell))) {
            Ok(Poll::Ready(answer)) => State::Told(answer),
            Ok(Poll::Pending) | Err(_) => State::Asked(asked),
        };
        Pending { state: Mutex::new(state), bell, form }
    }

    fn look(&self, py: Python<'_>) -> PyResult<Option<Answer>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = match &mut *state {
            State::Told(answer) => return Ok(Some(answer.clone())),
            State::Asked(asked) => asked,
        };
        match asked.poll(&Waker::from(Arc::clone(&self.bell))) {
            Ok(Poll::Pending) => Ok(None),
            Ok(Poll::Ready(answer)) => {
                *state = State::Told(answer.clone());
                Ok(Some(answer))
            }
            Err(process) => {
                let text = format!("process {process} submitted this, and has the reply: a child of fork asks anew");
                Err(errors::exception(py, "UnknownOutcomeError", &text))
            }
        }
    }
}
