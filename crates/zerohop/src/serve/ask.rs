//! One request to the store.

use crate::client::ToArg;
use crate::client::request::Request;
use client::Qos;
use std::time::Duration;

/// One request to the store, which goes to the holder of its first key. Asks that are on their way at the same time are carried out in
/// any order: who needs one, asks in another round ([`Handler::complete`](super::Handler::complete)). What would change or hold a connection that others share is
/// refused as it is for a [`Client`](crate::Client).
#[derive(Clone, Debug)]
pub struct Ask {
    pub(super) request: Request,
    pub(super) qos: Qos,
    pub(super) timeout: Option<Duration>,
    /// Of a plain command, which has its key behind its name and may share a connection, whether it only reads. Of any other the table of
    /// commands has to be asked, twice.
    pub(super) plain: Option<bool>,
}

impl Ask {
    /// Any command, by its name; its other words follow with [`Ask::arg`].
    pub fn command(name: &str) -> Ask {
        let request = name.split(' ').fold(Request::new(), |request, word| request.word(word));
        Ask { request, qos: Qos::Batch, timeout: None, plain: None }
    }

    /// `GET key`: [`Reply::BulkString`](crate::client::Reply::BulkString), or nil.
    pub fn get(key: impl ToArg) -> Ask {
        Ask::plain("GET", true).arg(key)
    }

    /// `SET key value`: [`Reply::Okay`](crate::client::Reply::Okay).
    pub fn set(key: impl ToArg, value: impl ToArg) -> Ask {
        Ask::plain("SET", false).arg(key).arg(value)
    }

    /// `DEL key`: how many there were.
    pub fn delete(key: impl ToArg) -> Ask {
        Ask::plain("DEL", false).arg(key)
    }

    fn plain(name: &str, is_read: bool) -> Ask {
        let request = Request::new().word(name);
        Ask { request, qos: Qos::Batch, timeout: None, plain: Some(is_read) }
    }

    /// One more word.
    pub fn arg(mut self, word: impl ToArg) -> Ask {
        self.request.push(&word);
        self
    }

    /// The reply is wanted within that time: the ask waits for others only as long as that allows, and within a hundredth of a
    /// second it has a connection beside those that are in no hurry. It is no promise; [`Ask::timeout`] says when to give up.
    pub fn within(mut self, time: Duration) -> Ask {
        self.qos = Qos::Within { us: u64::try_from(time.as_micros()).unwrap_or(u64::MAX) };
        self
    }

    /// How long the reply is waited for, in place of the server's time; then it is
    /// [`Error::TimedOut`](crate::client::Error::TimedOut).
    pub fn timeout(mut self, time: Duration) -> Ask {
        self.timeout = Some(time);
        self
    }
}
