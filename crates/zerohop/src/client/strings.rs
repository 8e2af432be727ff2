//! The commands of strings and counters, with the types of their replies.

use super::Client;
use super::call::Call;
use super::request::{Request, ToArg};
use std::time::Duration;

impl Client {
    /// The value of a key: `GET`.
    #[inline]
    pub fn get(&self, key: impl ToArg) -> Call<'_, Option<Vec<u8>>> {
        Call::new(self, Request::new().word("GET").word(&key), Some(true))
    }

    /// Sets a key: `SET`.
    #[inline]
    pub fn set(&self, key: impl ToArg, value: impl ToArg) -> Call<'_, ()> {
        Call::new(self, Request::new().word("SET").word(&key).word(&value), Some(false))
    }

    /// Sets a key that goes after that time: `SET` with `PX`.
    pub fn set_for(&self, key: impl ToArg, value: impl ToArg, time: Duration) -> Call<'_, ()> {
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let request = Request::new().word("SET").word(&key).word(&value).word("PX").word(&time_ms);
        Call::new(self, request, Some(false))
    }

    /// Deletes a key; whether it was there: `DEL`.
    pub fn del(&self, key: impl ToArg) -> Call<'_, bool> {
        Call::new(self, Request::new().word("DEL").word(&key), Some(false))
    }

    /// Whether a key is there: `EXISTS`.
    pub fn exists(&self, key: impl ToArg) -> Call<'_, bool> {
        Call::new(self, Request::new().word("EXISTS").word(&key), Some(true))
    }

    /// Adds to a counter, and returns what it is then: `INCRBY`.
    pub fn incr(&self, key: impl ToArg, by: i64) -> Call<'_, i64> {
        Call::new(self, Request::new().word("INCRBY").word(&key).word(&by), Some(false))
    }

    /// Takes from a counter, and returns what it is then: `DECRBY`.
    pub fn decr(&self, key: impl ToArg, by: i64) -> Call<'_, i64> {
        Call::new(self, Request::new().word("DECRBY").word(&key).word(&by), Some(false))
    }

    /// Adds to the end of a value, and returns how long it is then: `APPEND`.
    pub fn append(&self, key: impl ToArg, value: impl ToArg) -> Call<'_, usize> {
        Call::new(self, Request::new().word("APPEND").word(&key).word(&value), Some(false))
    }

    /// The values of some keys: `MGET`.
    pub fn mget<K: ToArg>(&self, keys: impl IntoIterator<Item = K>) -> Call<'_, Vec<Option<Vec<u8>>>> {
        let request = keys.into_iter().fold(Request::new().word("MGET"), |request, key| request.word(&key));
        Call::new(self, request, Some(true))
    }

    /// Sets some keys at once: `MSET`.
    pub fn mset<K: ToArg, V: ToArg>(&self, pairs: impl IntoIterator<Item = (K, V)>) -> Call<'_, ()> {
        let add = |request: Request, (key, value): (K, V)| request.word(&key).word(&value);
        Call::new(self, pairs.into_iter().fold(Request::new().word("MSET"), add), Some(false))
    }
}
