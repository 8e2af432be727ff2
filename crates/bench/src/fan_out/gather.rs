//! One request: its keys, and what of its answer is there.

use std::sync::{Arc, Mutex};

use super::sockets::Client;
use crate::resp::{Malformed, Parsed, first_request, number_line};

/// A request on its way.
pub struct Gather {
    /// Who asked.
    pub client: Arc<Client>,
    request: Vec<u8>,
    keys: Vec<(usize, usize)>,
    replies: Mutex<Replies>,
}

struct Replies {
    of_keys: Vec<Vec<u8>>,
    missing: usize,
}

impl Gather {
    /// Takes the request out of what `client` sent; `None` while it is not whole.
    ///
    /// # Errors
    /// It is no MGET.
    pub fn take(client: &Arc<Client>, input: &mut Vec<u8>) -> Result<Option<Gather>, Malformed> {
        let Some((bytes, keys)) = keys_of(input)? else { return Ok(None) };
        let rest = input.split_off(bytes);
        let request = std::mem::replace(input, rest);
        let replies = Replies { of_keys: vec![Vec::new(); keys.len()], missing: keys.len() };
        Ok(Some(Gather { client: Arc::clone(client), request, keys, replies: Mutex::new(replies) }))
    }

    /// Its keys.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|(begin, end)| &self.request[*begin..*end])
    }

    /// The key in this place.
    pub fn key(&self, place: usize) -> &[u8] {
        let (begin, end) = self.keys[place];
        &self.request[begin..end]
    }

    /// A reply is there. Whoever brings the last one gets the answer.
    pub fn fill(&self, place: usize, reply: &[u8]) -> Option<Vec<u8>> {
        let mut replies = self.replies.lock().expect("no thread panics while it holds the lock");
        replies.of_keys[place].extend_from_slice(reply);
        replies.missing -= 1;
        (replies.missing == 0).then(|| answer(&replies.of_keys))
    }
}

/// Where the keys of an MGET lie, and how long it is.
type Keys = (usize, Vec<(usize, usize)>);

/// The keys of the request that `input` begins with; `None` while it is not whole.
///
/// # Errors
/// It is no MGET.
pub fn keys_of(input: &[u8]) -> Result<Option<Keys>, Malformed> {
    match first_request(input) {
        Parsed::Incomplete => Ok(None),
        Parsed::Malformed => Err(Malformed),
        Parsed::Request { mut words, bytes } => match words.first() {
            Some((begin, end)) if words.len() > 1 && input[*begin..*end].eq_ignore_ascii_case(b"MGET") => {
                words.remove(0);
                Ok(Some((bytes, words)))
            }
            _ => Err(Malformed),
        },
    }
}

/// The answer that these replies make.
pub fn answer(replies: &[Vec<u8>]) -> Vec<u8> {
    let mut answer = Vec::with_capacity(16 + replies.iter().map(Vec::len).sum::<usize>());
    answer.extend_from_slice(format!("*{}\r\n", replies.len()).as_bytes());
    replies.iter().for_each(|reply| answer.extend_from_slice(reply));
    answer
}

/// Length of the value that `input` begins with, its head included; `None` while it is not whole.
///
/// # Errors
/// It is no value.
pub fn value_bytes(input: &[u8]) -> Result<Option<usize>, Malformed> {
    let mut at = 0;
    let Some(length) = number_line(input, &mut at, b'$')? else { return Ok(None) };
    Ok((input.len() >= at + length + 2).then_some(at + length + 2))
}
