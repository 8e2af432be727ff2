//! The model of keys that one client has to itself.

use crate::checker::loss::Loss;
use crate::history::Operation;

/// Check the operations on own keys of a span.
///
/// # Errors
/// Words about the first violation.
pub fn check(_operations: &[Operation], _loss: Option<Loss>) -> Result<(), String> {
    Ok(())
}
