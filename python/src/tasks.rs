//! Requests that tasks of asyncio wait for: no thread for any of them, and one turn of the loop for all that were answered together.
//!
//! ```text
//!  the loop's thread: ask ─► poll, which sends ─────────────────────────────► drain ─► poll ─► set_result
//!  the client's background thread:               reply ─► woken ─► one byte ─►┘ (the loop watches the pipe)
//! ```
//!
//! The background thread never wants the GIL. Whoever is woken while a byte is on its way, or while the loop drains, is only noted: the
//! library wakes one task of those that were answered together, and that one wakes the others while it is polled here.

use crate::client::Connection;
use crate::errors;
use crate::pending::Asked;
use crate::replies::Form;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::BTreeMap;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};

/// Who was woken.
struct Ready {
    woken: Mutex<Woken>,
    writer: PipeWriter,
}

#[derive(Default)]
struct Woken {
    numbers: Vec<u64>,
    /// The loop knows that there is something to do.
    is_told: bool,
}

impl Ready {
    fn lock(&self) -> MutexGuard<'_, Woken> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, number: u64) {
        let mut woken = self.lock();
        woken.numbers.push(number);
        if !std::mem::replace(&mut woken.is_told, true) {
            drop(woken);
            // There is room, because the last byte was read. Without a reader the loop is gone, and with it who waits.
            (&self.writer).write_all(&[0]).ok();
        }
    }

    /// Those that were woken; when there is nobody, the next one tells the loop again.
    fn take(&self) -> Vec<u64> {
        let mut woken = self.lock();
        woken.is_told = !woken.numbers.is_empty();
        std::mem::take(&mut woken.numbers)
    }
}

struct NumberedWaker {
    number: u64,
    ready: Arc<Ready>,
}

impl Wake for NumberedWaker {
    fn wake(self: Arc<NumberedWaker>) {
        self.ready.add(self.number);
    }
}

struct Task {
    asked: Asked,
    waker: Waker,
    future: Py<PyAny>,
    form: Form,
}

#[derive(Default)]
struct Waiting {
    tasks: BTreeMap<u64, Task>,
    begun: u64,
}

/// The requests of one event loop.
#[pyclass(frozen, weakref, module = "zerohop._zerohop")]
pub struct Tasks {
    ready: Arc<Ready>,
    reader: PipeReader,
    /// Used by the loop's thread alone.
    waiting: Mutex<Waiting>,
}

#[pymethods]
impl Tasks {
    #[new]
    fn new() -> PyResult<Tasks> {
        let (reader, writer) = pipe()?;
        let ready = Arc::new(Ready { woken: Mutex::default(), writer });
        Ok(Tasks { ready, reader, waiting: Mutex::default() })
    }

    /// The end of the pipe that the loop is to watch; when there is something to read, it calls `drain`.
    fn fileno(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    /// Asks; the reply will be the result of `future`.
    fn ask(
        &self,
        py: Python<'_>,
        connection: &Connection,
        words: &Bound<'_, PyTuple>,
        form: &str,
        within_ms: Option<f64>,
        future: Py<PyAny>,
    ) -> PyResult<()> {
        let (asked, form) = connection.begin(py, words, form, within_ms)?;
        let number = {
            let mut waiting = self.lock();
            waiting.begun += 1;
            waiting.begun
        };
        let waker = Waker::from(Arc::new(NumberedWaker { number, ready: Arc::clone(&self.ready) }));
        self.step(py, number, Task { asked, waker, future, form })
    }

    /// The futures that have no result yet.
    fn waiting(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.lock().tasks.values().map(|task| task.future.clone_ref(py)).collect()
    }

    /// Futures know who awaits them, and those the client: of a loop that ended in the middle all of it is one ring.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(waiting) = self.waiting.try_lock() else { return Ok(()) };
        waiting.tasks.values().try_for_each(|task| visit.call(&task.future))
    }

    fn __clear__(&self) {
        let tasks = std::mem::take(&mut self.lock().tasks);
        drop(tasks);
    }

    /// Gives those their results who have been answered.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        (&self.reader).read_exact(&mut [0])?;
        loop {
            let numbers = self.ready.take();
            if numbers.is_empty() {
                return Ok(());
            }
            for number in numbers {
                let task = self.lock().tasks.remove(&number);
                if let Some(Err(error)) = task.map(|task| self.step(py, number, task)) {
                    // A loop whose futures take no result: the others have theirs.
                    error.write_unraisable(py, None);
                }
            }
        }
    }
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls it, and keeps it if it is not answered.
    fn step(&self, py: Python<'_>, number: u64, mut task: Task) -> PyResult<()> {
        let answer = match task.asked.poll(&task.waker) {
            Ok(Poll::Pending) => {
                self.lock().tasks.insert(number, task);
                return Ok(());
            }
            Ok(Poll::Ready(answer)) => task.form.of(py, answer),
            Err(process) => {
                let text = format!("process {process} asked this, and has the reply: a child of fork asks anew");
                Err(errors::exception(py, "UnknownOutcomeError", &text))
            }
        };
        // Cancelled meanwhile: nobody wants it.
        if task.future.call_method0(py, "done")?.extract(py)? {
            return Ok(());
        }
        match answer {
            Ok(value) => task.future.call_method1(py, "set_result", (value,))?,
            Err(error) => task.future.call_method1(py, "set_exception", (error.into_value(py),))?,
        };
        Ok(())
    }
}
