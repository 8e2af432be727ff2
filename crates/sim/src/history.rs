//! What clients did and what they were told: the only thing the checkers know.

use std::io::Write;

use wire::reply_parse::Value;

use crate::checker::append::tokens;
use crate::checker::bytes_of;
use crate::own::OwnAction;

/// One operation of a client.
#[derive(Clone, Debug)]
pub enum Action {
    /// `APPEND key token`.
    Append {
        /// A token key.
        key: String,
        /// Unique: `client.sequence,`.
        token: String,
    },
    /// `GET key`.
    Get {
        /// A token key.
        key: String,
    },
    /// `SET key old+token IFEQ old`.
    Compare {
        /// A token key.
        key: String,
        /// What this client read last.
        old: Vec<u8>,
        /// Unique.
        token: String,
        /// `old` was never there, though something as long was: the comparison must fail.
        feigned: bool,
    },
    /// `MULTI`, `APPEND` of one token to every key, `EXEC`.
    Unit {
        /// Token keys, on any cores.
        keys: Vec<String>,
        /// Unique.
        token: String,
    },
    /// `MULTI`, `GET` of every key, `EXEC`.
    UnitRead {
        /// Token keys, on any cores.
        keys: Vec<String>,
    },
    /// `INCR key`.
    Increment {
        /// A counter.
        key: String,
    },
    /// `GET key` of a counter.
    Count {
        /// A counter.
        key: String,
    },
    /// `RPUSH key token`.
    Push {
        /// A list.
        key: String,
        /// Unique.
        token: String,
    },
    /// `LPOP key`.
    Pop {
        /// A list.
        key: String,
    },
    /// `BLPOP key… timeout`.
    BlockingPop {
        /// Lists, on any cores.
        keys: Vec<String>,
        /// How long it waits at most.
        timeout_ms: u64,
    },
    /// `BLMOVE source destination LEFT RIGHT timeout`.
    BlockingMove {
        /// A list.
        source: String,
        /// A list of a higher number, so that no element comes back to where it was.
        destination: String,
        /// How long it waits at most.
        timeout_ms: u64,
    },
    /// `MULTI`, `RPUSH` of an own token to every key, `EXEC`.
    PushAll {
        /// Lists, on any cores, each with its unique token.
        pushes: Vec<(String, String)>,
    },
    /// `CLIENT UNBLOCK id TIMEOUT | ERROR` of whoever has that id.
    Unblock {
        /// CLIENT ID.
        client_id: u64,
        /// By an error.
        with_error: bool,
    },
    /// `LRANGE key 0 -1`.
    Range {
        /// A list.
        key: String,
    },
    /// `ECHO text`: the k-th reply belongs to the k-th request.
    Echo {
        /// Unique.
        text: String,
    },
    /// `ZH.WAIT key NE old timeout-ms`.
    Wait {
        /// A token key.
        key: String,
        /// What this client read last.
        old: Vec<u8>,
        /// How long it waits at most.
        timeout_ms: u64,
    },
    /// An operation on a key that only this client touches.
    Own(OwnAction),
}

impl Action {
    /// What it does with keys that only its client touches.
    pub fn own(&self) -> Option<&OwnAction> {
        match self {
            Action::Own(own) => Some(own),
            _ => None,
        }
    }

    /// The key that decides where it goes.
    pub fn first_key(&self) -> Option<&str> {
        match self {
            Action::Append { key, .. }
            | Action::Get { key }
            | Action::Compare { key, .. }
            | Action::Increment { key }
            | Action::Count { key }
            | Action::Push { key, .. }
            | Action::Pop { key }
            | Action::Range { key }
            | Action::BlockingMove { source: key, .. }
            | Action::Wait { key, .. } => Some(key),
            Action::Unit { keys, .. } | Action::UnitRead { keys } | Action::BlockingPop { keys, .. } => {
                keys.first().map(String::as_str)
            }
            Action::PushAll { pushes } => pushes.first().map(|(key, _)| key.as_str()),
            Action::Own(own) => own.key(),
            Action::Echo { .. } | Action::Unblock { .. } => None,
        }
    }
}

/// What became of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// No reply came: it may have happened.
    None,
    /// An error reply: it did not happen.
    Refused(String),
    /// The reply that decides.
    Reply(Value),
}

/// One operation with its times.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Who.
    pub client: usize,
    /// What.
    pub action: Action,
    /// Moment of the invocation, in a count over the whole run.
    pub invoked: u64,
    /// Moment of the reply; `u64::MAX` without one.
    pub returned: u64,
    /// Virtual time of the invocation.
    pub invoked_us: u64,
    /// Virtual time of the reply.
    pub returned_us: u64,
    /// What it was told.
    pub answer: Answer,
}

/// Requests of an action, each a list of arguments.
pub fn requests(action: &Action) -> Vec<Vec<Vec<u8>>> {
    let words = |list: &[&[u8]]| list.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
    let unit = |inner: Vec<Vec<Vec<u8>>>| [vec![words(&[b"MULTI"])], inner, vec![words(&[b"EXEC"])]].concat();
    match action {
        Action::Append { key, token } => vec![words(&[b"APPEND", key.as_bytes(), token.as_bytes()])],
        Action::Get { key } | Action::Count { key } => vec![words(&[b"GET", key.as_bytes()])],
        Action::Compare { key, old, token, .. } => {
            let new = [old, token.as_bytes()].concat();
            vec![words(&[b"SET", key.as_bytes(), &new, b"IFEQ", old])]
        }
        Action::Unit { keys, token } => {
            unit(keys.iter().map(|key| words(&[b"APPEND", key.as_bytes(), token.as_bytes()])).collect())
        }
        Action::UnitRead { keys } => unit(keys.iter().map(|key| words(&[b"GET", key.as_bytes()])).collect()),
        Action::Increment { key } => vec![words(&[b"INCR", key.as_bytes()])],
        Action::Push { key, token } => vec![words(&[b"RPUSH", key.as_bytes(), token.as_bytes()])],
        Action::Pop { key } => vec![words(&[b"LPOP", key.as_bytes()])],
        Action::BlockingPop { keys, timeout_ms } => {
            let keys = keys.iter().map(|key| key.as_bytes().to_vec());
            vec![[vec![b"BLPOP".to_vec()], keys.collect(), vec![seconds(*timeout_ms)]].concat()]
        }
        Action::BlockingMove { source, destination, timeout_ms } => {
            let (source, destination) = (source.as_bytes(), destination.as_bytes());
            vec![words(&[b"BLMOVE", source, destination, b"LEFT", b"RIGHT", &seconds(*timeout_ms)])]
        }
        Action::PushAll { pushes } => {
            unit(pushes.iter().map(|(key, token)| words(&[b"RPUSH", key.as_bytes(), token.as_bytes()])).collect())
        }
        Action::Unblock { client_id, with_error } => {
            let how: &[u8] = if *with_error { b"ERROR" } else { b"TIMEOUT" };
            vec![words(&[b"CLIENT", b"UNBLOCK", client_id.to_string().as_bytes(), how])]
        }
        Action::Range { key } => vec![words(&[b"LRANGE", key.as_bytes(), b"0", b"-1"])],
        Action::Echo { text } => vec![words(&[b"ECHO", text.as_bytes()])],
        Action::Wait { key, old, timeout_ms } => {
            vec![words(&[b"ZH.WAIT", key.as_bytes(), b"NE", old, timeout_ms.to_string().as_bytes()])]
        }
        Action::Own(own) => own.requests(),
    }
}

/// A timeout as blocking commands are told it.
fn seconds(timeout_ms: u64) -> Vec<u8> {
    format!("{}.{:03}", timeout_ms / 1000, timeout_ms % 1000).into_bytes()
}

/// The bytes of a request.
pub fn encode(request: &[Vec<u8>], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", request.len()).as_bytes());
    for argument in request {
        out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
}

/// First words of the errors that a healthy or an honestly failing node may answer.
const REFUSALS: [&str; 11] = [
    "IOERR ",
    "OOM ",
    "MOVED ",
    "CROSSSLOT ",
    "MISCONF ",
    "LOADING ",
    "CLUSTERDOWN ",
    "TRYAGAIN ",
    "EXECABORT ",
    "BUSY ",
    "UNBLOCKED ",
];

/// The answer that an operation's replies amount to.
///
/// # Errors
/// Words about a reply that cannot belong to the request.
pub fn answer(action: &Action, replies: &[Value]) -> Result<Answer, String> {
    let strange = || Err(format!("{action:?} was answered {replies:?}"));
    let decisive = replies.last().expect("an operation has a request");
    let error_of = |reply: &Value| match reply {
        Value::Error(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    };
    // A unit of which nothing happened was refused as a whole.
    let inner = match decisive {
        Value::Array(items) if items.iter().all(|item| error_of(item).is_some()) => items.first().and_then(error_of),
        _ => None,
    };
    if matches!(action, Action::Own(own) if own.fits(decisive)) {
        return Ok(Answer::Reply(decisive.clone()));
    }
    let error = replies.iter().find_map(error_of).or(inner);
    if let Some(error) = error {
        return match REFUSALS.iter().any(|start| error.starts_with(start)) {
            true => Ok(Answer::Refused(error)),
            false => strange(),
        };
    }
    let fits = match (action, decisive) {
        (Action::Append { .. } | Action::Increment { .. } | Action::Push { .. }, Value::Integer(_)) => true,
        (Action::Get { .. } | Action::Count { .. } | Action::Pop { .. }, Value::Bulk(_) | Value::Null) => true,
        (Action::Compare { .. }, Value::Simple(_) | Value::Null) => true,
        (Action::Unit { keys, .. }, Value::Array(items)) => {
            items.len() == keys.len() && items.iter().all(|item| matches!(item, Value::Integer(_)))
        }
        (Action::UnitRead { keys }, Value::Array(items)) => {
            items.len() == keys.len() && items.iter().all(|item| matches!(item, Value::Bulk(_) | Value::Null))
        }
        (Action::BlockingPop { keys, .. }, Value::Array(items)) => {
            items.len() == 2 && keys.iter().any(|key| key.as_bytes() == bytes_of(&items[0]))
        }
        (Action::BlockingMove { .. }, Value::Bulk(_)) => true,
        (Action::BlockingPop { .. } | Action::BlockingMove { .. }, Value::Null) => true,
        (Action::PushAll { pushes }, Value::Array(items)) => {
            items.len() == pushes.len() && items.iter().all(|item| matches!(item, Value::Integer(_)))
        }
        (Action::Unblock { .. }, Value::Integer(0 | 1)) => true,
        (Action::Range { .. }, Value::Array(_)) => true,
        (Action::Echo { text }, Value::Bulk(bytes)) => text.as_bytes() == bytes,
        (Action::Wait { .. }, Value::Integer(0 | 1) | Value::Null | Value::Bulk(_) | Value::Array(_)) => true,
        _ => false,
    };
    if fits { Ok(Answer::Reply(decisive.clone())) } else { strange() }
}

/// Write the operations on token keys in the shape that Elle reads: one transaction each.
///
/// # Errors
/// Those of the writer.
pub fn write_edn(operations: &[Operation], out: &mut impl Write) -> std::io::Result<()> {
    let mut moments = Vec::new();
    for (number, operation) in operations.iter().enumerate() {
        moments.push((operation.invoked, number, false));
        moments.push((operation.returned, number, true));
    }
    moments.sort_unstable();
    let mut index = 0;
    for (_, number, returns) in moments {
        let operation = &operations[number];
        let Some(value) = edn_value(operation, returns) else { continue };
        let (kind, time_us) = match (&operation.answer, returns) {
            (_, false) => ("invoke", operation.invoked_us),
            (Answer::None, true) => ("info", operation.returned_us),
            (Answer::Refused(_), true) => ("fail", operation.returned_us),
            (Answer::Reply(_), true) => ("ok", operation.returned_us),
        };
        let (process, nanoseconds) = (operation.client, time_us * 1000);
        writeln!(
            out,
            "{{:index {index} :type :{kind} :process {process} :time {nanoseconds} :f :txn :value [{value}]}}"
        )?;
        index += 1;
    }
    Ok(())
}

fn edn_value(operation: &Operation, returns: bool) -> Option<String> {
    let append = |key: &str, token: &str| format!("[:append {key:?} {token:?}]");
    let list = |value: &[u8]| {
        let items: Vec<String> = tokens(value).map(|token| format!("{:?}", String::from_utf8_lossy(token))).collect();
        items.join(" ")
    };
    let read = |key: &str, value: Option<&Value>| match value {
        Some(Value::Bulk(bytes)) => format!("[:r {key:?} [{}]]", list(bytes)),
        Some(_) => format!("[:r {key:?} []]"),
        None => format!("[:r {key:?} nil]"),
    };
    let reply = match &operation.answer {
        Answer::Reply(reply) if returns => Some(reply),
        _ => None,
    };
    Some(match &operation.action {
        Action::Append { key, token } => append(key, token),
        Action::Unit { keys, token } => keys.iter().map(|key| append(key, token)).collect::<Vec<_>>().join(" "),
        Action::Get { key } => read(key, reply),
        Action::UnitRead { keys } => {
            let value = |number: usize| match reply {
                Some(Value::Array(items)) => items.get(number),
                _ => None,
            };
            keys.iter().enumerate().map(|(number, key)| read(key, value(number))).collect::<Vec<_>>().join(" ")
        }
        Action::Compare { feigned: true, .. } => return None,
        Action::Compare { key, old, token, .. } => match reply {
            // A refused compare appended nothing; only its reader knows that.
            Some(Value::Null) => return None,
            _ => format!("[:r {key:?} [{}]] {}", list(old), append(key, token)),
        },
        _ => return None,
    })
}
