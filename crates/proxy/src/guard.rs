//! Between a caller and its own connection that have become one, where the proxy decides what the caller may do: requests are looked at
//! one by one, and one that is refused is replaced by one that every store answers with an error, whose place its reply takes. So
//! replies keep their order, and a transaction that it was part of is given up by the store.
//!
//! ```text
//!  caller ── SUBSCRIBE secret ─► refused ── ZH.REFUSED.7 ─► store
//!  caller ◄─ -NOPERM … ◄──────── in place of ◄─ -ERR unknown command 'ZH.REFUSED.7' …
//! ```

use crate::admission::{Judgement, REFUSED};
use crate::caller::Caller;
use crate::machine::ProxyMachine;
use base::limits::CALLER_REQUESTS_MAX;
use base::street::{Effect, Now};
use std::collections::VecDeque;
use wire::Arguments;
use wire::reply_parse::MalformedReply;
use wire::reply_scan::ReplyScan;
use wire::request::encode;

/// What such a connection is at.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    /// Between `MULTI` and `EXEC`.
    pub is_in_transaction: bool,
    /// The number of the last one that was refused, and the replies that are due for them.
    number: u64,
    refused: VecDeque<(u64, Vec<u8>)>,
    /// `RESET` is on its way, and behind it the proxy's own login.
    resets: usize,
    /// The next reply is that to the proxy's own login.
    skips_one: bool,
    scan: ReplyScan,
    /// The beginning of a reply.
    kept: Vec<u8>,
}

impl Guard {
    /// The request in place of one that is answered with `reply`.
    pub fn refuse(&mut self, reply: Vec<u8>) -> Vec<u8> {
        self.number += 1;
        self.refused.push_back((self.number, reply));
        let mut request = Vec::new();
        encode([format!("{}.{}", String::from_utf8_lossy(REFUSED), self.number).as_bytes()], &mut request);
        request
    }

    /// The store's bytes, as the caller is to see them.
    pub fn down(&mut self, bytes: &[u8]) -> Result<Vec<u8>, MalformedReply> {
        let mut kept = std::mem::take(&mut self.kept);
        kept.extend_from_slice(bytes);
        let (mut start, mut out) = (0, Vec::with_capacity(kept.len()));
        while let Some(length) = self.scan.advance(&kept[start..])? {
            self.put(&kept[start..start + length], &mut out);
            start += length;
        }
        kept.drain(..start);
        self.kept = kept;
        Ok(out)
    }

    fn put(&mut self, reply: &[u8], out: &mut Vec<u8>) {
        if std::mem::take(&mut self.skips_one) {
            return;
        }
        if self.resets > 0 && reply == wire::reply::RESET {
            self.resets -= 1;
            self.skips_one = true;
        }
        let Some(number) = refused_number(reply) else { return out.extend_from_slice(reply) };
        // Those before it were not answered: the caller had asked for silence.
        while let Some((found, reply)) = self.refused.pop_front_if(|(found, _)| *found <= number) {
            if found == number {
                out.extend_from_slice(&reply);
            }
        }
    }
}

/// Of the error that a refused request gets: which one that was.
fn refused_number(reply: &[u8]) -> Option<u64> {
    let text = reply.strip_prefix(b"-ERR unknown command ")?.get(1..)?;
    let (name, rest) = text.split_at_checked(REFUSED.len())?;
    if !name.eq_ignore_ascii_case(REFUSED) {
        return None;
    }
    let digits = rest.strip_prefix(b".")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

impl ProxyMachine {
    /// Decides about a request of a caller that is one with its own connection.
    pub(crate) fn admit_relayed(
        &mut self,
        now: Now,
        caller: &mut Caller,
        arguments: Arguments<'_>,
        request: &[u8],
        effects: &mut Vec<Effect>,
    ) {
        let judgement = self.judge(now, caller, arguments);
        let is = |word: &[u8]| arguments[0].eq_ignore_ascii_case(word);
        let is_reset = is(b"reset") && arguments.len() == 1;
        if is_reset {
            self.welcome(caller);
            (caller.name, caller.classes_version) = (Vec::new(), 0);
        }
        let mut login = Vec::new();
        if let Some((user, password)) = self.login.as_ref().filter(|_| is_reset) {
            let words: Vec<&[u8]> =
                [b"AUTH".as_slice()].into_iter().chain(user.as_deref()).chain([&password[..]]).collect();
            encode(words, &mut login);
        }
        let Some(relay) = &mut caller.relay else { return };
        let Some(guard) = &mut relay.guard else { return };
        guard.resets += usize::from(!login.is_empty());
        let up = match judgement {
            Judgement::Pass => {
                match () {
                    () if is(b"multi") && arguments.len() == 1 => guard.is_in_transaction = true,
                    () if is(b"exec") || is(b"discard") || is_reset => guard.is_in_transaction = false,
                    () => {}
                }
                if is(b"hello")
                    && let Some(version @ (b"2" | b"3")) = arguments.get(1)
                {
                    caller.identity.protocol = version[0] - b'0';
                }
                [request, &login].concat()
            }
            Judgement::Instead(request) => request,
            Judgement::Answer(reply) | Judgement::Refuse(reply) => guard.refuse(reply),
            // The store gives the transaction up by itself.
            Judgement::Abort(_) => {
                guard.is_in_transaction = false;
                [&guard.refuse(Vec::new())[..], request].concat()
            }
            Judgement::Wait(_) => return,
        };
        if guard.refused.len() > CALLER_REQUESTS_MAX {
            effects.push(Effect::Close { connection: caller.id });
            caller.is_closing = true;
        }
        relay.up(caller.id, &up, effects);
        self.desk.dirty.push(caller.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_takes_the_place_of_the_stores_error_however_it_comes() {
        let mut request = Guard::default();
        assert_eq!(request.refuse(Vec::new()), b"*1\r\n$12\r\nzh.refused.1\r\n");
        let stream = b"+OK\r\n-ERR unknown command 'zh.refused.2', with args beginning with: \r\n:1\r\n-ERR x\r\n";
        for split in 0..=stream.len() {
            let mut guard = Guard::default();
            guard.refuse(b"-not answered\r\n".to_vec());
            guard.refuse(b"-NOPERM\r\n".to_vec());
            let mut out = guard.down(&stream[..split]).expect("replies");
            out.extend(guard.down(&stream[split..]).expect("replies"));
            assert_eq!(out, b"+OK\r\n-NOPERM\r\n:1\r\n-ERR x\r\n", "{split}");
        }
        assert_eq!(refused_number(b"-ERR unknown command `zh.refused.17`, with\r\n"), Some(17));
        assert_eq!(refused_number(b"-ERR unknown command 'get'\r\n"), None);
    }

    #[test]
    fn the_reply_to_the_proxys_own_login_behind_a_reset_is_nobodys() {
        let mut guard = Guard { resets: 1, ..Guard::default() };
        assert_eq!(
            guard.down(b"+PONG\r\n+RESET\r\n+OK\r\n+PONG\r\n").expect("replies"),
            b"+PONG\r\n+RESET\r\n+PONG\r\n"
        );
    }
}
