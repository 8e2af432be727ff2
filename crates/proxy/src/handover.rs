//! What is said of a caller, and of a listener, to the process that takes over: bytes of one format, which is no format of a disk. Two
//! versions of it never meet, because both sides say theirs first.
//!
//! ```text
//!   hello      "ZHUP" version:4 sockets:4                          + standard input
//!   listener   number:2 of:1 (0 callers, 1 callers with TLS, 2 the admin port) is_unix:1 place…    + socket
//!   answer     "ready" version:4, or "no" and why…                 back
//!   go         "go"
//!   caller     listener:2 flags:1 (1 login, 2 user named, 4 deadline named, 8 user of the proxy's own)
//!              protocol:1 database:4 qos:1 within_us:8 kept:8 missed:8 since_us:8
//!              user[length:4 …] password[…] peer[…] local[…] name[…] library[…] its version[…] unread[…]      + socket
//! ```
//!
//! Numbers are little-endian.

use crate::caller::{Caller, Library, Whence};
use crate::config::Place;
use crate::identity::Identity;
use crate::qos::Promises;
use base::ConnectionId;
use base::limits::HANDOVER_BYTES_MAX;
use client::Qos;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Of everything on this page. Another one is another way to say it.
pub const HANDOVER_VERSION: u32 = 2;
/// The version that who has no users of its own speaks: that of before there were any.
const HANDOVER_VERSION_WITHOUT_USERS: u32 = 1;

/// The version that a proxy hands over by.
pub(crate) fn version(has_users: bool) -> u32 {
    if has_users { HANDOVER_VERSION } else { HANDOVER_VERSION_WITHOUT_USERS }
}

const MAGIC: &[u8] = b"ZHUP";
const READY: &[u8] = b"ready";
const REFUSED: &[u8] = b"no";

const HAS_LOGIN: u8 = 1;
const HAS_USER: u8 = 2;
const NAMED_QOS: u8 = 4;
/// The user is one of the proxy's own, or nobody yet.
const IS_GUARDED: u8 = 8;

/// Reads what [`put`] and its like have written; `None` where it is something else.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let count = u32::from_le_bytes(self.array()?);
        self.take(count as usize).map(<[u8]>::to_vec)
    }
}

fn put(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text);
}

/// The old process's first word.
pub(crate) fn hello(version: u32, sockets: usize) -> Vec<u8> {
    [MAGIC, &version.to_le_bytes(), &(sockets as u32).to_le_bytes()].concat()
}

/// The version that it speaks, and how many sockets follow.
pub(crate) fn read_hello(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut reader = Reader(bytes.strip_prefix(MAGIC)?);
    let version = u32::from_le_bytes(reader.array()?);
    // What else another version says nobody knows.
    Some((version, reader.array().map_or(0, u32::from_le_bytes) as usize))
}

/// The new process's answer.
pub(crate) fn ready(version: u32) -> Vec<u8> {
    [READY, &version.to_le_bytes()].concat()
}

/// The new process does not take over.
pub(crate) fn refused(reason: &str) -> Vec<u8> {
    let mut bytes = [REFUSED, reason.as_bytes()].concat();
    bytes.truncate(HANDOVER_BYTES_MAX);
    bytes
}

/// What the new process answered.
///
/// # Errors
/// Why it does not take over.
pub(crate) fn read_answer(version: u32, bytes: &[u8]) -> Result<(), String> {
    if bytes == ready(version) {
        return Ok(());
    }
    match bytes.strip_prefix(REFUSED) {
        Some(reason) => Err(String::from_utf8_lossy(reason).into_owned()),
        None => Err(format!("it does not speak version {version} of the handover")),
    }
}

/// Whose connections a listener takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Callers'.
    Callers { is_sealed: bool },
    /// Collectors'.
    Admin,
}

/// What is said of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inherits {
    /// Its number among those of the configuration.
    pub number: u16,
    pub of: Of,
    /// As it was configured, port 0 included.
    pub place: Place,
}

impl Inherits {
    pub fn encode(&self) -> Vec<u8> {
        let of = match self.of {
            Of::Callers { is_sealed } => u8::from(is_sealed),
            Of::Admin => 2,
        };
        let mut bytes = self.number.to_le_bytes().to_vec();
        bytes.push(of);
        match &self.place {
            Place::Tcp(address) => {
                bytes.push(0);
                bytes.extend_from_slice(address.to_string().as_bytes());
            }
            Place::Unix(path) => {
                bytes.push(1);
                bytes.extend_from_slice(path.as_os_str().as_bytes());
            }
        }
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<Inherits> {
        let mut reader = Reader(bytes);
        let number = u16::from_le_bytes(reader.array()?);
        let of = match reader.array()? {
            [0] => Of::Callers { is_sealed: false },
            [1] => Of::Callers { is_sealed: true },
            [2] => Of::Admin,
            _ => return None,
        };
        let place = match reader.array()? {
            [0] => Place::Tcp(std::str::from_utf8(reader.0).ok()?.parse().ok()?),
            [1] => Place::Unix(PathBuf::from(std::ffi::OsStr::from_bytes(reader.0))),
            _ => return None,
        };
        Some(Inherits { number, of, place })
    }
}

/// All that there is to know of a caller at rest, beside its socket; `None` if it is too much for a message.
pub(crate) fn encode(caller: &Caller) -> Option<Vec<u8>> {
    let Identity { login, protocol, database } = &caller.identity;
    // What the proxy's own connections log in with is for the other process to know.
    let login = login.as_ref().filter(|_| !caller.is_guarded);
    let (mut user, password) = login.map_or((None, &[][..]), |(user, password)| (user.as_deref(), &password[..]));
    if let Some(own) = &caller.user {
        user = Some(own.name());
    }
    let flag = |is_so, flag| if is_so { flag } else { 0 };
    let flags = flag(login.is_some(), HAS_LOGIN)
        | flag(user.is_some(), HAS_USER)
        | flag(caller.named_qos, NAMED_QOS)
        | flag(caller.is_guarded, IS_GUARDED);
    let (qos, within_us) = match caller.qos {
        Qos::Batch => (0, 0),
        Qos::Single => (1, 0),
        Qos::Within { us } => (2, us),
    };
    let Whence { peer, local, listener, since_us } = &caller.whence;
    let mut bytes = listener.to_le_bytes().to_vec();
    bytes.extend_from_slice(&[flags, *protocol]);
    bytes.extend_from_slice(&database.to_le_bytes());
    bytes.push(qos);
    let Promises { asked, missed } = caller.promises;
    [within_us, asked, missed, *since_us].iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    let Library { name, version } = &caller.library;
    let of_library = [name.as_slice(), version];
    [user.unwrap_or_default(), password, peer.as_bytes(), local.as_bytes(), &caller.name]
        .iter()
        .chain(&of_library)
        .chain([&caller.input.bytes()])
        .for_each(|text| put(&mut bytes, text));
    (bytes.len() <= HANDOVER_BYTES_MAX).then_some(bytes)
}

/// Who came.
pub(crate) struct Arrival {
    pub caller: Caller,
    /// The part of a request that it sent.
    pub unread: Vec<u8>,
    /// The other process decided what it may do, and knew it as this user.
    pub was_guarded: bool,
    pub user: Option<Vec<u8>>,
}

/// The caller of which that was said.
pub(crate) fn decode(id: ConnectionId, bytes: &[u8]) -> Option<Arrival> {
    let mut reader = Reader(bytes);
    let listener = u16::from_le_bytes(reader.array()?);
    let mut caller = Caller::new(id, Whence { listener, ..Whence::default() }, false);
    let [flags, protocol] = reader.array()?;
    let database = u32::from_le_bytes(reader.array()?);
    let [qos] = reader.array()?;
    let [us, asked, missed] = [reader.array()?, reader.array()?, reader.array()?].map(u64::from_le_bytes);
    caller.whence.since_us = u64::from_le_bytes(reader.array()?);
    caller.qos = match qos {
        0 => Qos::Batch,
        1 => Qos::Single,
        2 => Qos::Within { us },
        _ => return None,
    };
    caller.promises = Promises { asked, missed };
    caller.named_qos = flags & NAMED_QOS != 0;
    let (user, password) = (reader.text()?, reader.text()?);
    caller.whence.peer = String::from_utf8(reader.text()?).ok()?;
    caller.whence.local = String::from_utf8(reader.text()?).ok()?;
    caller.name = reader.text()?;
    caller.library = Library { name: reader.text()?, version: reader.text()? };
    let unread = reader.text()?;
    let user = (flags & HAS_USER != 0).then_some(user);
    let login = (flags & HAS_LOGIN != 0).then(|| (user.clone(), password));
    caller.identity = Identity { login, protocol, database };
    Some(Arrival { caller, unread, was_guarded: flags & IS_GUARDED != 0, user })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ID: ConnectionId = ConnectionId { index: 3, generation: 5 };

    #[test]
    fn a_caller_is_the_same_on_the_other_side() {
        let logins = [None, Some((None, b"secret".to_vec())), Some((Some(b"ann".to_vec()), b"secret".to_vec()))];
        for login in logins {
            let (peer, local) = ("10.0.0.5:4242".to_owned(), "10.0.0.1:6380".to_owned());
            let mut caller = Caller::new(ID, Whence { peer, local, listener: 7, since_us: 99 }, false);
            caller.identity = Identity { login, protocol: 3, database: 11 };
            (caller.qos, caller.named_qos) = (Qos::Within { us: 500 }, true);
            caller.promises = Promises { asked: 9, missed: 2 };
            caller.name = b"worker".to_vec();
            caller.library = Library { name: b"redis-py".to_vec(), version: b"8.1".to_vec() };
            caller.input.append(b"*2\r\n$3\r\nGE");
            let bytes = encode(&caller).unwrap();
            let Arrival { caller: same, unread, was_guarded, .. } = decode(ID, &bytes).unwrap();
            assert!(!was_guarded);
            assert_eq!(unread, b"*2\r\n$3\r\nGE");
            assert_eq!((&same.whence, &same.identity, &same.name), (&caller.whence, &caller.identity, &caller.name));
            assert_eq!(same.library, caller.library);
            assert_eq!((same.qos, same.named_qos, same.promises), (caller.qos, true, caller.promises));
            for length in 0..bytes.len() {
                assert!(decode(ID, &bytes[..length]).is_none(), "{length} bytes of it");
            }
        }
        let mut caller = Caller::new(ID, Whence::default(), false);
        caller.input.append(&vec![b'x'; HANDOVER_BYTES_MAX]);
        assert!(encode(&caller).is_none());
    }

    #[test]
    fn a_user_of_the_proxys_own_goes_by_its_name_and_the_stores_password_stays_here() {
        let mut caller = Caller::new(ID, Whence::default(), false);
        caller.identity.login = Some((None, b"of the store".to_vec()));
        caller.is_guarded = true;
        for user in [None, Some(session::acl::User::unbounded(b"ann"))] {
            let name = user.as_ref().map(|user| user.name().to_vec());
            caller.user = user.map(std::sync::Arc::new);
            let bytes = encode(&caller).unwrap();
            assert!(!bytes.windows(12).any(|window| window == b"of the store"));
            let Arrival { caller, was_guarded, user, .. } = decode(ID, &bytes).unwrap();
            assert_eq!((caller.identity.login, was_guarded, user), (None, true, name));
        }
    }

    #[test]
    fn places_and_words_are_understood_and_others_are_refused() {
        let places = [Place::Tcp("[::1]:6380".parse().unwrap()), Place::Unix(PathBuf::from("/run/a b"))];
        let of = [Of::Callers { is_sealed: false }, Of::Callers { is_sealed: true }, Of::Admin];
        for (place, of) in places.iter().flat_map(|place| of.map(|of| (place.clone(), of))) {
            let place = Inherits { number: 300, of, place };
            assert_eq!(Inherits::decode(&place.encode()), Some(place));
        }
        assert_eq!(Inherits::decode(b"\0\0\x09\0/run"), None);
        assert_eq!(read_hello(&hello(2, 12)), Some((HANDOVER_VERSION, 12)));
        assert_eq!(read_hello(b"ZHUP\x02\0\0\0and more"), Some((2, u32::from_le_bytes(*b"and ") as usize)));
        assert_eq!(read_hello(b"hello"), None);
        assert_eq!(read_answer(2, &ready(2)), Ok(()));
        assert_eq!(read_answer(2, &refused("why not")), Err("why not".to_owned()));
        assert!(read_answer(1, b"ready\x02\0\0\0").unwrap_err().contains("version 1"));
    }
}
