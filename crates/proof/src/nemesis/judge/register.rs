//! A key that is nothing but set, each time to another value: which reads saw which write is known, so its history is one of a single
//! copy exactly when no two values had to be there before each other (Gibbons and Korach, 1997).
//!
//! ```text
//!   of a value   first moment at which its write or a read of it had returned          last moment at which one of them began
//!   a before b   one of a's returned before one of b's began                            a before b before a: nothing explains it
//! ```

use std::collections::HashMap;

use super::super::history::{Answer, Operation, What};
use super::told;

/// All that is known of a value.
struct Value<'a> {
    /// What had returned first; nothing of what was there from the beginning.
    first: Option<&'a Operation>,
    first_returned_us: u64,
    last: Option<&'a Operation>,
    last_begun_us: u64,
}

/// What is wrong with it, if anything is.
pub(super) fn judge(of_key: &[&Operation]) -> Result<(), String> {
    let values = values(of_key)?;
    for (index, one) in values.iter().enumerate() {
        let is_both = |other: &&Value<'_>| {
            one.first_returned_us < other.last_begun_us && other.first_returned_us < one.last_begun_us
        };
        if let Some(other) = values[index + 1..].iter().find(is_both) {
            let shown = |value: &Value<'_>| {
                let of = |operation: Option<&Operation>| operation.map_or("what was there at first".to_owned(), told);
                format!("{} … {}", of(value.first), of(value.last))
            };
            return Err(format!("lost or read too late: each before the other: {}; {}", shown(one), shown(other)));
        }
    }
    Ok(())
}

fn values<'a>(of_key: &[&'a Operation]) -> Result<Vec<Value<'a>>, String> {
    let mut writes: HashMap<&str, &Operation> = HashMap::new();
    for operation in of_key.iter().copied() {
        if let What::Put { token } = &operation.what {
            writes.insert(token, operation);
        }
    }
    let at_first = Value { first: None, first_returned_us: 0, last: None, last_begun_us: 0 };
    let mut values: HashMap<&str, Value<'a>> = HashMap::from([("", at_first)]);
    for (token, write) in &writes {
        if write.is_ok() {
            add(values.entry(token).or_insert_with(Value::nothing), write);
        }
    }
    for read in of_key.iter().copied() {
        let Answer::Value(value) = &read.answer else { continue };
        let known = values.entry(value).or_insert_with(Value::nothing);
        if !value.is_empty() {
            let write = *writes.get(value.as_str()).ok_or_else(|| format!("nobody sent it: {}", told(read)))?;
            if matches!(write.answer, Answer::Refused(_)) {
                return Err(format!("it was refused, and done: {}; {}", told(write), told(read)));
            }
            if read.returned_us() < write.begun_us {
                return Err(format!("read before it was sent: {}; {}", told(read), told(write)));
            }
            add(known, write);
        }
        add(known, read);
    }
    Ok(values.into_values().collect())
}

fn add<'a>(value: &mut Value<'a>, operation: &'a Operation) {
    if operation.returned_us() < value.first_returned_us {
        (value.first, value.first_returned_us) = (Some(operation), operation.returned_us());
    }
    if operation.begun_us >= value.last_begun_us {
        (value.last, value.last_begun_us) = (Some(operation), operation.begun_us);
    }
}

impl Value<'_> {
    fn nothing() -> Self {
        Value { first: None, first_returned_us: u64::MAX, last: None, last_begun_us: 0 }
    }
}
