//! Errors of the library as exceptions, which `zerohop/_errors.py` defines.

use crate::signals;
use pyo3::prelude::*;
use zerohop::client::{Error as ClientError, ServerError};

/// The exception `name` with this text.
pub fn exception(py: Python<'_>, name: &str, text: &str) -> PyErr {
    let made = py.import("zerohop._errors").and_then(|errors| errors.getattr(name)?.call1((text,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// What the server answered with an error, as an exception that is not raised: one of several replies may be it.
pub fn of_server(py: Python<'_>, error: &ServerError) -> PyErr {
    exception(py, "ResponseError", error.text())
}

/// What a request met.
pub fn of_client(py: Python<'_>, error: &ClientError) -> PyErr {
    let name = match error {
        ClientError::Server(error) => return of_server(py, error),
        ClientError::Partly { error: reason, .. } => {
            let partly = exception(py, "PartialError", &error.to_string());
            partly.set_cause(py, Some(of_client(py, reason)));
            return partly;
        }
        ClientError::Interrupted => {
            return signals::take_raised().unwrap_or_else(|| exception(py, "Error", &error.to_string()));
        }
        ClientError::Unknown { .. } | ClientError::Closed => "UnknownOutcomeError",
        ClientError::Refused { .. } => "AuthenticationError",
        ClientError::Lost { .. } | ClientError::Unreachable { .. } => "ConnectionError",
        ClientError::TimedOut { .. } => "TimeoutError",
        ClientError::Full { .. } | ClientError::Unclaimed { .. } => "BusyError",
        ClientError::NotShared { .. } | ClientError::TooLong { .. } | ClientError::Address { .. } => "DataError",
        ClientError::SentAstray { .. } => "ClusterError",
        _ => "Error",
    };
    exception(py, name, &error.to_string())
}

/// What the embedded store met.
pub fn of_store(py: Python<'_>, error: &zerohop::Error) -> PyErr {
    use zerohop::Error::{
        BatchTooLong, Closed, DiskFull, GroupFull, Held, KeyTooLong, LimitWithoutDisk, LogFailed, MemoryFull, Refused,
        ValueTooLong, WrongType,
    };
    let name = match error {
        Held { .. } => "HeldError",
        Refused(_) => "DamagedError",
        KeyTooLong { .. } | ValueTooLong { .. } | BatchTooLong { .. } | LimitWithoutDisk => "DataError",
        WrongType { .. } => "WrongTypeError",
        GroupFull { .. } | DiskFull(_) | MemoryFull { .. } => "FullError",
        LogFailed(_) => "LogFailedError",
        Closed => "ClosedError",
        _ => "StoreError",
    };
    exception(py, name, &error.to_string())
}
