//! A store that takes its time: it works on one request after the other, whichever connection brought it.

use crate::store::{Session, Store};
use crate::street::Street;
use base::ConnectionId;
use std::collections::{BTreeMap, VecDeque};
use wire::{ParseLimits, Parsed, parse};

/// What it takes for each request.
const REQUEST_US: u64 = 4;
/// From here to there.
const WAY_US: u64 = 30;
/// Replies leave when it has worked on so many requests of a connection.
const TURN: usize = 32;
/// The part of a long request or reply that others wait for: the rest goes to and fro while the store works on something else.
const WAITED_FOR_BYTES: u64 = 64 << 10;

/// See the module.
#[derive(Default)]
pub struct BusyStore {
    kib_ns: u64,
    store: Store,
    sessions: BTreeMap<ConnectionId, (Vec<u8>, Session)>,
    /// Requests on their way, as bytes, and replies.
    coming: VecDeque<(u64, ConnectionId, Vec<u8>)>,
    going: VecDeque<(u64, ConnectionId, Vec<u8>)>,
    free_ns: u64,
}

impl BusyStore {
    /// One that takes so long for each kibibyte of requests and replies beside, nanoseconds.
    pub fn of_kib_ns(kib_ns: u64) -> BusyStore {
        BusyStore { kib_ns, ..BusyStore::default() }
    }

    /// What the proxy sent is on its way from now on; what it was.
    pub fn take(&mut self, street: &mut Street) -> Vec<(ConnectionId, Vec<u8>)> {
        let all = street.upstream.clone().into_iter().map(|connection| (connection, street.take(connection)));
        let taken: Vec<_> = all.filter(|(_, bytes)| !bytes.is_empty()).collect();
        let at_us = street.now_us + WAY_US;
        self.coming.extend(taken.iter().map(|(connection, bytes)| (at_us, *connection, bytes.clone())));
        taken
    }

    /// As far as it comes; replies that are there arrive.
    pub fn work(&mut self, street: &mut Street) {
        let now_us = street.now_us;
        while let Some((_, connection, bytes)) = self.coming.pop_front_if(|(at_us, ..)| *at_us <= now_us) {
            self.serve(now_us, connection, &bytes);
        }
        while let Some((_, connection, replies)) = self.going.pop_front_if(|(at_us, ..)| *at_us <= now_us) {
            street.arrive(connection, &replies);
        }
    }

    fn serve(&mut self, now_us: u64, connection: ConnectionId, bytes: &[u8]) {
        let (kept, session) = self.sessions.entry(connection).or_default();
        kept.extend_from_slice(bytes);
        self.free_ns = self.free_ns.max(1000 * now_us);
        let (mut start, mut replies, mut spans) = (0, (0, Vec::new()), Vec::new());
        while let Parsed::Request { consumed } = parse(kept, start, &mut spans, &ParseLimits::AUTHENTICATED) {
            let reply = session.take(&mut self.store, &kept[start..start + consumed]);
            let bytes = ((consumed + reply.len()) as u64).min(WAITED_FOR_BYTES);
            self.free_ns += 1000 * REQUEST_US + self.kib_ns * bytes / 1024;
            replies.0 += 1;
            replies.1.extend_from_slice(&reply);
            if replies.0 == TURN {
                let (_, replies) = std::mem::take(&mut replies);
                self.going.push_back((self.free_ns / 1000 + WAY_US, connection, replies));
            }
            start += consumed;
            spans.clear();
        }
        kept.drain(..start);
        if replies.0 > 0 {
            self.going.push_back((self.free_ns / 1000 + WAY_US, connection, replies.1));
        }
    }
}
