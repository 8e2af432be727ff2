//! What one watched key holds, as its reply says it.

use std::collections::VecDeque;

use crate::connection::encode;
use crate::reply::{Reply, show};

/// What a watched key is used for, all its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SET, MSET, APPEND, DEL.
    Text,
    /// LPUSH, RPOP, DEL.
    List,
}

/// What a watched key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing: it was never written, or removed.
    Absent,
    /// A string.
    Text(Vec<u8>),
    /// A list, from its head.
    List(VecDeque<Vec<u8>>),
}

impl Kind {
    /// The request that reads a key of this kind whole.
    pub fn encode_read(self, name: &[u8], request: &mut Vec<u8>) {
        match self {
            Kind::Text => encode(&[b"GET", name], request),
            Kind::List => encode(&[b"LRANGE", name, b"0", b"-1"], request),
        }
    }

    /// What the reply to that request says.
    ///
    /// # Errors
    /// The reply, when it says something else.
    pub fn state(self, reply: Reply) -> Result<State, String> {
        match (self, reply) {
            (Kind::Text, Reply::Nil) => Ok(State::Absent),
            (Kind::Text, Reply::Bulk(text)) => Ok(State::Text(text)),
            (Kind::List, Reply::Array(elements)) if elements.is_empty() => Ok(State::Absent),
            (Kind::List, Reply::Array(elements)) => {
                let bytes = elements.into_iter().map(|element| match element {
                    Reply::Bulk(bytes) => Ok(bytes),
                    other => Err(format!("{other:?} in a list")),
                });
                Ok(State::List(bytes.collect::<Result<_, _>>()?))
            }
            (kind, other) => Err(format!("{other:?} for a key of kind {kind:?}")),
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            State::Absent => formatter.write_str("nothing"),
            State::Text(text) => write!(formatter, "{}", show(text)),
            State::List(elements) => {
                let bytes = elements.iter().cloned().collect::<Vec<_>>().join(&b' ');
                write!(formatter, "{} elements [{}]", elements.len(), show(&bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Kind, State};
    use crate::reply::Reply;

    #[test]
    fn replies_become_states_and_others_are_refused() {
        let bulk = |text: &[u8]| Reply::Bulk(text.to_vec());
        assert_eq!(Kind::Text.state(Reply::Nil).unwrap(), State::Absent);
        assert_eq!(Kind::Text.state(bulk(b"a")).unwrap(), State::Text(b"a".to_vec()));
        assert_eq!(Kind::List.state(Reply::Array(Vec::new())).unwrap(), State::Absent);
        let list = Kind::List.state(Reply::Array(vec![bulk(b"b"), bulk(b"a")])).unwrap();
        assert_eq!(list, State::List([b"b".to_vec(), b"a".to_vec()].into()));
        assert!(Kind::Text.state(Reply::Error(b"WRONGTYPE".to_vec())).is_err());
        assert!(Kind::List.state(Reply::Nil).is_err());
    }
}
