//! Third stage of a tick: new requests of the clients, and what they ask.

use super::ask::Ask;
use super::connection::Connection;
use super::handler::{Handler, Refusal, Taken};
use super::machine::{ServeMachine, Work};
use super::requests::{Asked, Pending};
use super::turn::Turn;

impl<H: Handler> ServeMachine<H> {
    /// Requests of all clients that sent something, as far as they may have more on their way.
    pub(super) fn read(&mut self, now_us: u64) -> Work {
        let mut work = Work::Nothing;
        let mut asks_on_their_way = self.upstream.owed() + self.held.len();
        for id in std::mem::take(&mut self.readable) {
            let Some(mut client) = self.take_client(id) else { continue };
            while !client.rest().is_empty() && client.may_read(&self.bounds) {
                match self.read_one(now_us, &mut client, &mut asks_on_their_way) {
                    true => work = Work::Something,
                    false => break,
                }
            }
            client.end_if_read();
            self.dirty.push(id);
            self.put_client(client);
        }
        work
    }

    /// Whether there was a whole request.
    fn read_one(&mut self, now_us: u64, client: &mut Connection<H::Connection>, asks_on_their_way: &mut usize) -> bool {
        let (mut asks, mut answer) = (Vec::new(), Vec::new());
        let mut turn = Turn::new(0, &mut asks, &mut answer);
        let (state, bytes) = client.parts();
        let taken = self.handler.read(state, bytes, &mut turn);
        let closes = turn.closes();
        match taken {
            Taken::Incomplete => {
                if client.rest().len() >= self.bounds.request_bytes_max {
                    client.answer_now(self.phrase(Refusal::TooLong), true);
                }
                return false;
            }
            Taken::Answered { bytes } => {
                client.take(bytes, now_us);
                client.answer_now(answer, closes);
            }
            Taken::Asked { bytes, request } => {
                client.take(bytes, now_us);
                match self.refusal(&asks, *asks_on_their_way) {
                    Some(refusal) => client.answer_now(self.phrase(refusal), closes),
                    None => {
                        *asks_on_their_way += asks.len();
                        let number = self.requests.next_number();
                        client.owe(number);
                        if closes {
                            client.read_no_more();
                        }
                        self.requests.begin(Pending::new(client.id, request, answer, closes));
                        self.ask_all(now_us, number, asks);
                    }
                }
            }
        }
        true
    }

    /// Whether these asks are too many. Either all are taken, or none: a request is not refused in part. Who asks nothing costs the
    /// store nothing.
    fn refusal(&self, asks: &[Ask], asks_on_their_way: usize) -> Option<Refusal> {
        let bounds = &self.bounds;
        let has_room = || {
            asks_on_their_way + asks.len() <= bounds.asks_max
                && self.requests.reply_bytes() <= bounds.reply_bytes_max
                && self.upstream.has_room(asks)
        };
        match asks.len() {
            0 => None,
            count if count > bounds.asks_per_request_max => Some(Refusal::TooWide),
            _ => (!has_room()).then_some(Refusal::Busy),
        }
    }

    /// Asks of a request that was taken.
    pub(super) fn ask_all(&mut self, now_us: u64, request: u64, asks: Vec<Ask>) {
        for ask in asks {
            let number = self.requests.add(request, Asked::new(ask, now_us, self.upstream.timeout_us()));
            let asked = self.requests.asked(number).expect("it was added just now");
            self.upstream.ask(now_us, number, asked, None);
        }
    }
}
