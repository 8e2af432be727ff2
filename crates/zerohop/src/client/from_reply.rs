//! What a program wants of a reply.

use super::error::{Error, ServerError};
use super::reply::Reply;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

/// A type that a reply can be taken for.
pub trait FromReply: Sized {
    /// Takes it.
    ///
    /// # Errors
    /// [`Error::Unexpected`] when it is of another kind.
    fn from_reply(reply: Reply) -> Result<Self, Error>;
}

impl FromReply for Reply {
    fn from_reply(reply: Reply) -> Result<Reply, Error> {
        Ok(reply)
    }
}

/// Any reply that is no error.
impl FromReply for () {
    fn from_reply(_: Reply) -> Result<(), Error> {
        Ok(())
    }
}

impl FromReply for Vec<u8> {
    #[inline]
    fn from_reply(reply: Reply) -> Result<Vec<u8>, Error> {
        match reply {
            Reply::BulkString(bytes) | Reply::VerbatimString(_, bytes) | Reply::BigNumber(bytes) => Ok(bytes),
            Reply::SimpleString(text) => Ok(text.into_bytes()),
            Reply::Okay => Ok(b"OK".to_vec()),
            Reply::Int(number) => Ok(number.to_string().into_bytes()),
            other => Err(other.unexpected("bytes")),
        }
    }
}

impl FromReply for String {
    fn from_reply(reply: Reply) -> Result<String, Error> {
        let bytes = Vec::<u8>::from_reply(reply)?;
        String::from_utf8(bytes).map_err(|wrong| Reply::BulkString(wrong.into_bytes()).unexpected("UTF-8 text"))
    }
}

impl FromReply for i64 {
    #[inline]
    fn from_reply(reply: Reply) -> Result<i64, Error> {
        match &reply {
            Reply::Int(number) => Some(*number),
            Reply::BulkString(bytes) => wire::number::parse_integer(bytes),
            _ => None,
        }
        .ok_or_else(|| reply.unexpected("a number"))
    }
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl FromReply for $type {
            fn from_reply(reply: Reply) -> Result<$type, Error> {
                let number = i64::from_reply(reply)?;
                <$type>::try_from(number)
                    .map_err(|_| Reply::Int(number).unexpected(concat!("a number of type ", stringify!($type))))
            }
        })*
    };
}

integers!(u64, u32, i32, usize);

impl FromReply for f64 {
    fn from_reply(reply: Reply) -> Result<f64, Error> {
        match &reply {
            Reply::Double(number) => Some(*number),
            Reply::Int(number) => Some(*number as f64),
            Reply::BulkString(bytes) => std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()),
            _ => None,
        }
        .ok_or_else(|| reply.unexpected("a number"))
    }
}

/// One and `OK` are true, zero and nil false.
impl FromReply for bool {
    fn from_reply(reply: Reply) -> Result<bool, Error> {
        match reply {
            Reply::Boolean(is_true) => Ok(is_true),
            Reply::Int(number @ (0 | 1)) => Ok(number == 1),
            Reply::Okay => Ok(true),
            Reply::Nil => Ok(false),
            other => Err(other.unexpected("true or false")),
        }
    }
}

impl<T: FromReply> FromReply for Option<T> {
    #[inline]
    fn from_reply(reply: Reply) -> Result<Option<T>, Error> {
        match reply {
            Reply::Nil => Ok(None),
            other => T::from_reply(other).map(Some),
        }
    }
}

impl<T: FromReply> FromReply for Vec<T> {
    fn from_reply(reply: Reply) -> Result<Vec<T>, Error> {
        match reply {
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => all_of(items),
            other => Err(other.unexpected("an array")),
        }
    }
}

/// Where some of them are errors it is told of how many there is something else.
fn all_of<T: FromReply>(items: Vec<Reply>) -> Result<Vec<T>, Error> {
    let (all, mut first) = (items.len(), None);
    let mut taken = Vec::with_capacity(all);
    for item in items {
        let is_error = matches!(item, Reply::ServerError(_));
        match T::from_reply(item) {
            Ok(value) => taken.push(value),
            Err(error) if is_error => first = first.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    match first {
        None => Ok(taken),
        Some(error) if taken.is_empty() => Err(error),
        Some(error) => Err(Error::Partly { reached: taken.len(), all, error: Box::new(error) }),
    }
}

/// A value of an array, or the error in its place.
impl<T: FromReply> FromReply for Result<T, ServerError> {
    fn from_reply(reply: Reply) -> Result<Result<T, ServerError>, Error> {
        match reply {
            Reply::ServerError(error) => Ok(Err(error)),
            other => T::from_reply(other).map(Ok),
        }
    }
}

/// The pairs of a map, or of the flat array that is one in RESP2.
fn pairs(reply: Reply) -> Result<Vec<(Reply, Reply)>, Error> {
    match reply {
        Reply::Map(pairs) => Ok(pairs),
        Reply::Array(items) if items.len().is_multiple_of(2) => {
            let mut items = items.into_iter();
            Ok(std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect())
        }
        other => Err(other.unexpected("a map")),
    }
}

impl<K: FromReply + Ord, V: FromReply> FromReply for BTreeMap<K, V> {
    fn from_reply(reply: Reply) -> Result<BTreeMap<K, V>, Error> {
        pairs(reply)?.into_iter().map(|(key, value)| Ok((K::from_reply(key)?, V::from_reply(value)?))).collect()
    }
}

impl<K: FromReply + Eq + Hash, V: FromReply, S: BuildHasher + Default> FromReply for HashMap<K, V, S> {
    fn from_reply(reply: Reply) -> Result<HashMap<K, V, S>, Error> {
        pairs(reply)?.into_iter().map(|(key, value)| Ok((K::from_reply(key)?, V::from_reply(value)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_type<T: FromReply>(bytes: &[u8]) -> Result<T, Error> {
        Reply::read(bytes).and_then(T::from_reply)
    }

    #[test]
    fn replies_are_taken_for_what_they_are_and_for_nothing_else() {
        assert_eq!(as_type::<Option<Vec<u8>>>(b"$-1\r\n"), Ok(None));
        assert_eq!(as_type::<Option<String>>(b"$2\r\nhi\r\n"), Ok(Some("hi".to_owned())));
        assert_eq!(as_type::<Vec<Option<Vec<u8>>>>(b"*2\r\n$1\r\na\r\n$-1\r\n"), Ok(vec![Some(b"a".to_vec()), None]));
        assert_eq!(as_type::<u64>(b":7\r\n"), Ok(7));
        assert_eq!(as_type::<f64>(b"$3\r\n1.5\r\n"), Ok(1.5));
        assert_eq!((as_type::<bool>(b":1\r\n"), as_type::<bool>(b"$-1\r\n")), (Ok(true), Ok(false)));
        let flat = b"*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n";
        let map = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]);
        assert_eq!(as_type::<BTreeMap<String, i64>>(flat), Ok(map.clone()));
        assert_eq!(as_type::<BTreeMap<String, i64>>(b"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n"), Ok(map));
        for wrong in [b":-1\r\n".as_slice(), b"+OK\r\n", b"*0\r\n"] {
            let error = as_type::<u64>(wrong).expect_err("it is no u64");
            assert!(error.to_string().contains("not a number"), "{error}");
        }
        // An error inside is the server's, whatever was wanted.
        assert!(matches!(as_type::<Vec<i64>>(b"*1\r\n-ERR x\r\n"), Err(Error::Server(_))));
    }
}
