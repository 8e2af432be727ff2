//! A request while it is written: its words first, and how many they are when all are there.

use super::error::Error;
use base::limits::REQUEST_BYTES_MAX;
use client::{CommandTable, FirstKey, Hold, Known, Way};
use std::sync::OnceLock;
use wire::request::encode_word;

/// A word of a request.
pub trait ToArg {
    /// Hands over its bytes.
    fn to_arg(&self, take: &mut dyn FnMut(&[u8]));
}

macro_rules! arguments_of_bytes {
    ($($type:ty),*) => {
        $(impl ToArg for $type {
            #[inline]
            fn to_arg(&self, take: &mut dyn FnMut(&[u8])) {
                take(self.as_ref());
            }
        })*
    };
}

macro_rules! arguments_of_digits {
    ($($type:ty),*) => {
        $(impl ToArg for $type {
            fn to_arg(&self, take: &mut dyn FnMut(&[u8])) {
                take(self.to_string().as_bytes());
            }
        })*
    };
}

arguments_of_bytes!(str, String, [u8], Vec<u8>);
arguments_of_digits!(i64, i32, u64, u32, u16, usize, f64);

impl<const N: usize> ToArg for [u8; N] {
    #[inline]
    fn to_arg(&self, take: &mut dyn FnMut(&[u8])) {
        take(self);
    }
}

impl<T: ToArg + ?Sized> ToArg for &T {
    #[inline]
    fn to_arg(&self, take: &mut dyn FnMut(&[u8])) {
        (**self).to_arg(take);
    }
}

/// Room in front of the words for the line that counts them: a star, digits, CR and LF. A request of that many bytes has no more
/// than ten digits of words.
const HEAD_BYTES: usize = 16;

/// Words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// [`HEAD_BYTES`] of room, and the words as they will be sent.
    bytes: Vec<u8>,
    count: usize,
}

impl Request {
    /// One of no words yet.
    #[inline]
    pub fn new() -> Request {
        let mut bytes = Vec::with_capacity(64);
        bytes.resize(HEAD_BYTES, 0);
        Request { bytes, count: 0 }
    }

    #[inline]
    pub fn word(mut self, word: &(impl ToArg + ?Sized)) -> Request {
        self.push(word);
        self
    }

    #[inline]
    pub fn push(&mut self, word: &(impl ToArg + ?Sized)) {
        let bytes = &mut self.bytes;
        word.to_arg(&mut |word| encode_word(word, bytes));
        self.count += 1;
    }

    /// The bytes to be sent.
    #[inline]
    pub fn finish(&mut self) -> Result<&[u8], Error> {
        if self.bytes.len() > REQUEST_BYTES_MAX {
            return Err(Error::TooLong { bytes: self.bytes.len() });
        }
        let mut start = HEAD_BYTES - 2;
        self.bytes[start..HEAD_BYTES].copy_from_slice(b"\r\n");
        let mut rest = self.count;
        loop {
            start -= 1;
            self.bytes[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.bytes[start - 1] = b'*';
        Ok(&self.bytes[start - 1..])
    }

    fn words(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[HEAD_BYTES..];
        std::iter::from_fn(move || {
            let (_, text) = rest.split_first()?;
            let end = text.iter().position(|&byte| byte == b'\r')?;
            let length = usize::try_from(wire::number::parse_integer(&text[..end])?).ok()?;
            let (word, behind) = text[end + 2..].split_at(length);
            rest = &behind[2..];
            Some(word)
        })
    }

    /// Whether it only reads, if a connection that others use may carry it. A command that this version does not know is taken for
    /// one that writes.
    pub fn is_shared_read(&self) -> Result<bool, Error> {
        let mut words = self.words();
        let (name, second) = (words.next().unwrap_or_default(), words.next());
        let known = own_commands().look_up(name, second);
        match known {
            None if is_client(name) => Err(not_shared(name, second)),
            None if is_holding(name) || self.has_word(b"BLOCK") => Err(not_shared(name, None)),
            None => Ok(false),
            Some(known) if self.may_share(&known) => Ok(known.is_read),
            Some(known) => Err(not_shared(name, second.filter(|_| known.has_subcommands || is_client(name)))),
        }
    }

    /// Whether it has several keys that may be of several slots, each for itself.
    #[inline]
    pub fn may_be_spread(&self) -> bool {
        let step = || super::parts::apart(self.words().next()?).map(|(step, _)| step);
        self.count > 2 && step().is_some_and(|step| self.count > 1 + step)
    }

    /// The first key, if there is one: of a plain command, and of one that is not known, the word behind its name.
    pub fn first_key(&self, is_plain: bool) -> Option<&[u8]> {
        if is_plain {
            return self.words().nth(1);
        }
        let mut words = self.words();
        let (name, second) = (words.next()?, words.next());
        match own_commands().look_up(name, second).map(|known| known.first_key) {
            None => second,
            Some(FirstKey::None) => None,
            Some(FirstKey::At(index)) => self.words().nth(index),
            Some(FirstKey::Counted(index)) => {
                let count = wire::number::parse_integer(self.words().nth(index)?)?;
                (count > 0).then(|| self.words().nth(index + 1)).flatten()
            }
            Some(FirstKey::Behind(word, from)) => {
                let is_word = |other: &&[u8]| other.eq_ignore_ascii_case(word);
                let at = self.words().skip(from).position(|other| is_word(&other))?;
                self.words().nth(from + at + 1)
            }
        }
    }

    fn has_word(&self, word: &[u8]) -> bool {
        self.words().any(|other| other.eq_ignore_ascii_case(word))
    }

    fn may_share(&self, known: &Known) -> bool {
        match known.way {
            Way::Shared => known.blocks_with.is_none_or(|word| !self.has_word(word)),
            // Those with keys wait for others' writes; the others are done when they are answered.
            Way::Alone => known.first_key == FirstKey::None,
            Way::Held(hold) => matches!(hold, Hold::Named | Hold::Described),
            Way::Caller | Way::Hint | Way::Sticky => false,
        }
    }
}

fn own_commands() -> &'static CommandTable {
    static TABLE: OnceLock<CommandTable> = OnceLock::new();
    TABLE.get_or_init(CommandTable::own)
}

/// Commands of Redis and Valkey that hold or change their connection and that our own nodes may not have.
const HOLDING: &[&[u8]] = &[
    b"ASKING",
    b"BLMOVE",
    b"BLMPOP",
    b"BLPOP",
    b"BRPOP",
    b"BRPOPLPUSH",
    b"BZMPOP",
    b"BZPOPMAX",
    b"BZPOPMIN",
    b"MONITOR",
    b"PSUBSCRIBE",
    b"PSYNC",
    b"PUNSUBSCRIBE",
    b"QUIT",
    b"READONLY",
    b"READWRITE",
    b"REPLCONF",
    b"RESET",
    b"SSUBSCRIBE",
    b"SUBSCRIBE",
    b"SUNSUBSCRIBE",
    b"SYNC",
    b"UNSUBSCRIBE",
    b"WAIT",
    b"WAITAOF",
];

fn is_holding(name: &[u8]) -> bool {
    HOLDING.iter().any(|holding| name.eq_ignore_ascii_case(holding))
}

/// Of `CLIENT`, a subcommand that is not known may change its connection as well.
fn is_client(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"client")
}

fn not_shared(name: &[u8], second: Option<&[u8]>) -> Error {
    let words: Vec<&[u8]> = [Some(name), second].into_iter().flatten().collect();
    Error::NotShared { command: String::from_utf8_lossy(&words.join(&b' ')).to_uppercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: &[&str]) -> Request {
        words.iter().fold(Request::new(), |request, word| request.word(*word))
    }

    #[test]
    fn words_are_counted_and_written_as_they_are() {
        let mut request = Request::new().word("SET").word(b"k\r\n").word(&12i64).word(&vec![0u8, 255]);
        let expected = b"*4\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$2\r\n12\r\n$2\r\n\x00\xff\r\n";
        assert_eq!(request.finish().map(<[u8]>::to_vec), Ok(expected.to_vec()));
        assert_eq!(request.words().collect::<Vec<_>>(), [b"SET".as_slice(), b"k\r\n", b"12", b"\x00\xff"]);
        for word in 0..200 {
            request.push(&word);
        }
        assert!(request.finish().is_ok_and(|bytes| bytes.starts_with(b"*204\r\n$3\r\nSET")));
    }

    #[test]
    fn what_would_hold_the_connection_is_refused_by_name() {
        for (words, is_read) in [
            (&["GET", "a"][..], true),
            (&["lrange", "a", "0", "1"], true),
            (&["SET", "a", "b"], false),
            (&["INFO"], false),
            (&["CONFIG", "GET", "x"], false),
            (&["XREAD", "STREAMS", "a", "0"], false),
            (&["CLIENT", "ID"], false),
            (&["JSON.SET", "a"], false),
        ] {
            assert_eq!(request(words).is_shared_read(), Ok(is_read), "{words:?}");
        }
        for words in [
            &["BLPOP", "a", "0"][..],
            &["MULTI"],
            &["watch", "a"],
            &["SELECT", "1"],
            &["AUTH", "x"],
            &["SUBSCRIBE", "a"],
            &["XREAD", "BLOCK", "0", "STREAMS", "a", "0"],
            &["CLIENT", "REPLY", "OFF"],
            &["CLIENT", "NEVERHEARD"],
            &["WAIT", "1", "0"],
            &["HELLO", "3"],
            &["BZPOPMIN", "a", "0"],
            &["MONITOR"],
        ] {
            let error = request(words).is_shared_read().expect_err(words[0]);
            assert!(error.to_string().contains(&words[0].to_uppercase()), "{error}");
        }
    }

    #[test]
    fn only_several_keys_of_which_each_is_for_itself_may_be_spread() {
        for words in
            [&["mGet", "a", "b"][..], &["MSET", "a", "1", "b", "2"], &["UNLINK", "a", "b"], &["Touch", "a", "b"]]
        {
            assert!(request(words).may_be_spread(), "{words:?}");
        }
        for words in [
            &["MGET", "a"][..],
            &["MSET", "a", "1"],
            &["SUNION", "a", "b"],
            &["SET", "a", "1"],
            &["KEYS", "a", "b"],
            &[],
        ] {
            assert!(!request(words).may_be_spread(), "{words:?}");
        }
        assert!(!request(&["OBJECT", "FREQ", "a"]).may_be_spread());
    }
}
