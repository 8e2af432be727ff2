//! Labels: for whom a connection is, so that the upstream's `CLIENT LIST` can tell; and that reply as its caller would get it directly.
//!
//! ```text
//!  lib-name=zerohop-proxy(10.0.0.5:4242)                             a caller's own, or that of the caller who had it last
//!  lib-name=zerohop-proxy(10.0.0.5:4242;redis-py)                    the same, of a caller that named its library
//!  lib-name=zerohop-proxy(2-callers;10.0.0.5:4242;10.0.0.6:4243)     one that these share
//! ```

use crate::caller::{Caller, Described, Library, Whence};
use crate::identity::Identity;
use crate::machine::ProxyMachine;
use crate::seat::{Owed, OwedTo, Whose};
use base::limits::{LABEL_AGAIN_US, LABEL_LIBRARY_BYTES_MAX, LABELS_REFUSED_MAX};
use base::street::Now;
use client::Qos;
use std::collections::BTreeSet;
use wire::Arguments;
use wire::request::encode;

/// Who speaks.
const PROXY: &str = "zerohop-proxy";
/// What the upstream has to have, as commands are looked up.
const COMMAND: &str = "client|setinfo";

/// User, if one was named, and password, if there is any.
type Login = Option<(Option<Vec<u8>>, Vec<u8>)>;

/// Whether, and to whom, labels can be said.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// The upstream has them.
    are_known: bool,
    /// Logins that were refused them: each attempt would be a line in the upstream's log of refusals.
    refused: BTreeSet<Login>,
}

impl Labels {
    fn may(&self, identity: &Identity) -> bool {
        self.are_known && !self.refused.contains(&identity.login)
    }

    /// This one may not have any.
    pub fn refuse(&mut self, identity: &Identity) {
        if self.refused.len() >= LABELS_REFUSED_MAX {
            self.refused.clear();
        }
        self.refused.insert(identity.login.clone());
    }
}

/// That of a connection of a caller's own.
pub(crate) fn of_caller(caller: &Caller) -> Vec<u8> {
    of(&caller.whence, &caller.library)
}

fn of(whence: &Whence, library: &Library) -> Vec<u8> {
    let library = &library.name[..library.name.len().min(LABEL_LIBRARY_BYTES_MAX)];
    let separator = if library.is_empty() { "" } else { ";" };
    let label = [PROXY.as_bytes(), b"(", whence.peer.as_bytes(), separator.as_bytes(), library, b")"].concat();
    in_one_word(label)
}

/// That of one that so many share.
fn of_many<'a>((count, shown): (usize, impl Iterator<Item = &'a str>)) -> Vec<u8> {
    let callers = if count == 1 { "caller" } else { "callers" };
    let mut label = format!("{PROXY}({count}-{callers}");
    shown.for_each(|address| label.extend([";", address]));
    label.push(')');
    in_one_word(label.into_bytes())
}

/// A socket's path may have what no name of a library has.
fn in_one_word(mut label: Vec<u8>) -> Vec<u8> {
    label.iter_mut().filter(|byte| !(b'!'..=b'~').contains(byte)).for_each(|byte| *byte = b'_');
    label
}

/// The request that says it.
pub(crate) fn request(label: &[u8]) -> Vec<u8> {
    let mut request = Vec::new();
    encode([b"CLIENT".as_slice(), b"SETINFO", b"LIB-NAME", label], &mut request);
    request
}

/// A reply to `CLIENT INFO` or `CLIENT LIST` from the caller's own connection; `None` if it is none. What of its own line tells of the
/// proxy instead of the caller is as it would be without.
pub(crate) fn as_direct(whence: &Whence, described: &Described, reply: &[u8]) -> Option<Vec<u8>> {
    let line_end = reply.windows(2).position(|two| two == b"\r\n")?;
    let (head, text) = (&reply[..line_end], reply[line_end + 2..].strip_suffix(b"\r\n")?);
    let (mark, format, text) = match head.first()? {
        b'$' => ("$", &b""[..], text),
        b'=' => ("=", text.get(..4)?, &text[4..]),
        _ => return None,
    };
    let label = of(whence, &described.library);
    let mut is_found = false;
    let mut told = format.to_vec();
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let is_own = !is_found && (!described.is_list || is_labelled(line, &label));
        match is_own {
            true => own_line(whence, described, line, &mut told),
            false => told.extend_from_slice(line),
        }
        is_found |= is_own;
    }
    Some([mark.as_bytes(), told.len().to_string().as_bytes(), b"\r\n", &told, b"\r\n"].concat())
}

/// Whether it is the line of the connection that asked: others of the same path have the same label.
fn is_labelled(line: &[u8], label: &[u8]) -> bool {
    let has = |field: &[u8]| line.trim_ascii_end().split(|&byte| byte == b' ').any(|found| found == field);
    has(&[b"lib-name=", label].concat()) && has(b"cmd=client|list")
}

fn own_line(whence: &Whence, described: &Described, line: &[u8], out: &mut Vec<u8>) {
    let (line, end) = match line.strip_suffix(b"\n") {
        Some(line) => (line, &b"\n"[..]),
        None => (line, &b""[..]),
    };
    let age = described.age_s.to_string();
    for (index, field) in line.split(|&byte| byte == b' ').enumerate() {
        out.extend_from_slice(if index == 0 { b"" } else { b" " });
        let name = field.split(|&byte| byte == b'=').next().unwrap_or_default();
        let value = match name {
            b"addr" => whence.peer.as_bytes(),
            b"laddr" => whence.local.as_bytes(),
            b"name" => &described.name,
            b"age" => age.as_bytes(),
            b"lib-name" => &described.library.name,
            b"lib-ver" => &described.library.version,
            b"user" if described.user.is_some() => described.user.as_deref().unwrap_or_default(),
            _ => {
                out.extend_from_slice(field);
                continue;
            }
        };
        out.extend_from_slice(&[name, b"=", value].concat());
    }
    out.extend_from_slice(end);
}

impl ProxyMachine {
    /// The upstream said which commands it has.
    pub(crate) fn learn_labels(&mut self) {
        self.labels.are_known = self.table.has(COMMAND);
    }

    /// What the caller's own connection is to be called, if that is not what it is called already.
    pub(crate) fn label_for(&mut self, now: Now, caller: &Caller, number: usize) -> Option<Vec<u8>> {
        let seat = self.seats.get(number);
        if seat.lane.is_down(now.monotonic_us) || !self.labels.may(&seat.identity) {
            return None;
        }
        let label = of_caller(caller);
        (seat.label != label).then_some(label)
    }

    /// A caller's own connection says whose it is, ahead of what it is asked. Inside a transaction it would be one of its commands.
    pub(crate) fn label_own(&mut self, now: Now, caller: &Caller, number: usize) {
        if !caller.held.transaction {
            self.label_new(now, caller, number);
        }
    }

    /// The same of a connection on which nothing is begun.
    pub(crate) fn label_new(&mut self, now: Now, caller: &Caller, number: usize) {
        if let Some(label) = self.label_for(now, caller, number) {
            self.say_label(now, number, label);
            self.seats.touch(number);
        }
    }

    /// A lane on which something is about to leave says once in a while for whom it is, in the same write.
    #[inline]
    pub(crate) fn label_lane(&mut self, now: Now, number: usize) {
        let seat = self.seats.get(number);
        if seat.label_due_us > now.monotonic_us || !seat.lane.is_open() || !seat.lane.has_waiting() {
            return;
        }
        let Whose::Shared(group) = seat.whose else { return };
        seat.label_due_us = now.monotonic_us + LABEL_AGAIN_US;
        if !self.labels.may(&seat.identity) {
            return;
        }
        let label = of_many(self.seats.groups.get(group).callers());
        if self.seats.get(number).label != label {
            self.say_label(now, number, label);
        }
    }

    fn say_label(&mut self, now: Now, number: usize, label: Vec<u8>) {
        let owed = Owed { to: OwedTo::Label, ..Owed::NOBODY };
        let seat = self.seats.get(number);
        seat.lane.push_again(now.monotonic_us, 0, Qos::Batch, owed, &request(&label));
        seat.label = label;
    }

    /// The reply to a request that was just sent tells of the connection that it is sent on.
    pub(crate) fn note_described(&self, now: Now, caller: &mut Caller, arguments: Arguments<'_>) {
        let is = |word: &str| arguments.get(1).is_some_and(|known| known.eq_ignore_ascii_case(word.as_bytes()));
        if caller.held.transaction || !(is("info") || is("list")) {
            return;
        }
        let age_s = now.monotonic_us.saturating_sub(caller.whence.since_us) / 1_000_000;
        let (name, library) = (caller.name.clone(), caller.library.clone());
        let number = caller.order.next() - 1;
        let user = caller.user.as_ref().map(|user| user.name().to_vec());
        caller.described = Some(Box::new(Described { number, is_list: is("list"), age_s, name, library, user }));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn library(name: &str) -> Library {
        Library { name: name.as_bytes().to_vec(), version: Vec::new() }
    }

    fn from(peer: &str) -> Whence {
        Whence { peer: peer.to_owned(), local: "10.0.0.1:6380".to_owned(), ..Whence::default() }
    }

    fn described(is_list: bool) -> Described {
        Described { number: 0, is_list, age_s: 7, name: b"me".to_vec(), library: library("redis-py"), user: None }
    }

    fn bulk(text: &str) -> Vec<u8> {
        format!("${}\r\n{text}\r\n", text.len()).into_bytes()
    }

    #[test]
    fn a_label_is_one_word_however_its_caller_and_its_library_are_called() {
        let of = |peer: &str, name: &str| String::from_utf8(super::of(&from(peer), &library(name))).unwrap();
        assert_eq!(of("10.0.0.5:4242", ""), "zerohop-proxy(10.0.0.5:4242)");
        assert_eq!(of("[::1]:4242", "redis-py(django_v5)"), "zerohop-proxy([::1]:4242;redis-py(django_v5))");
        assert_eq!(of("/run/a b", ""), "zerohop-proxy(/run/a_b)");
        assert_eq!(of("a:1", &"x".repeat(500)).len(), "zerohop-proxy(a:1;)".len() + LABEL_LIBRARY_BYTES_MAX);
        let many = |count, shown: &[&'static str]| String::from_utf8(of_many((count, shown.iter().copied()))).unwrap();
        assert_eq!(many(1, &["a:1"]), "zerohop-proxy(1-caller;a:1)");
        assert_eq!(many(500, &["a:1", "b:2"]), "zerohop-proxy(500-callers;a:1;b:2)");
    }

    #[test]
    fn what_a_caller_reads_of_itself_is_as_without_a_proxy() {
        let whence = from("10.0.0.5:4242");
        let line = |addr: &str, name: &str, age: u32, library: &str, cmd: &str| {
            format!(
                "id=3 addr={addr} laddr=l:1 fd=8 name={name} age={age} idle=0 db=2 cmd={cmd} lib-name={library} lib-ver="
            )
        };
        let info = bulk(&(line("proxy:1", "", 500, "zerohop-proxy(10.0.0.5:4242;redis-py)", "client|info") + "\n"));
        let own = line("10.0.0.5:4242", "me", 7, "redis-py", "client|info").replace("l:1", "10.0.0.1:6380") + "\n";
        assert_eq!(as_direct(&whence, &described(false), &info), Some(bulk(&own)));
        let verbatim = format!("={}\r\ntxt:{own}\r\n", own.len() + 4).into_bytes();
        assert_eq!(as_direct(&whence, &described(false), &verbatim), Some(verbatim));

        let of_ann = Described { user: Some(b"ann".to_vec()), ..described(false) };
        let told = as_direct(&whence, &of_ann, &bulk(&format!("id=3 user=proxy name={}", "\n"))).unwrap();
        assert_eq!(told, bulk("id=3 user=ann name=me\n"), "whose login the store sees is not the caller's to know");

        let other = line("proxy:2", "you", 3, "zerohop-proxy(10.0.0.5:4243)", "get");
        let idle = line("proxy:3", "", 3, "zerohop-proxy(10.0.0.5:4242;redis-py)", "blpop");
        let mine = line("proxy:1", "", 500, "zerohop-proxy(10.0.0.5:4242;redis-py)", "client|list");
        let list = bulk(&format!("{other}\n{idle}\n{mine}\n{mine}\n"));
        let own = own.replace("client|info", "client|list");
        assert_eq!(as_direct(&whence, &described(true), &list), Some(bulk(&format!("{other}\n{idle}\n{own}{mine}\n"))));
        for other in [&b"-NOPERM no\r\n"[..], b":1\r\n", b"$-1\r\n", b"=3\r\nab\r\n"] {
            assert_eq!(as_direct(&whence, &described(true), other), None);
        }
    }
}
