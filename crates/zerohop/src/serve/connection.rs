//! One client: the bytes that it sent, the answers that it is owed in its order, and the bytes that it is sent.
//!
//! ```text
//!  received ─► input ─► request ─► owed │ 7: …  │ 8: answer │ 9: …  │    8 waits for 7
//!                                       └─► output ─► one send under way
//! ```

use super::options::Bounds;
use base::ConnectionId;
use base::limits::OUTPUT_PAUSE_BYTES;
use base::street::Effect;
use std::collections::VecDeque;

/// An answer that is owed.
struct Owed {
    /// Of which request, if it is not answered yet.
    request: Option<u64>,
    answer: Vec<u8>,
    /// The connection ends behind it.
    closes: bool,
}

/// See the module. `C` is what the handler knows of it.
pub(super) struct Connection<C> {
    pub id: ConnectionId,
    pub state: C,
    input: Vec<u8>,
    /// How much of it is taken.
    taken: usize,
    owed: VecDeque<Owed>,
    output: Vec<u8>,
    /// A buffer for the next send.
    spare: Vec<u8>,
    is_sending: bool,
    is_paused: bool,
    /// Requests that are there wait until some were answered.
    is_stalled: bool,
    /// No request is read any more; or none behind those that are there.
    is_last: bool,
    has_ended: bool,
    is_closing: bool,
    /// Since when it owes us the rest of a request, or any; microseconds.
    pub waits_since_us: u64,
}

impl<C> Connection<C> {
    pub fn new(id: ConnectionId, state: C, now_us: u64) -> Connection<C> {
        Connection {
            id,
            state,
            input: Vec::new(),
            taken: 0,
            owed: VecDeque::new(),
            output: Vec::new(),
            spare: Vec::new(),
            is_sending: false,
            is_paused: false,
            is_stalled: false,
            is_last: false,
            has_ended: false,
            is_closing: false,
            waits_since_us: now_us,
        }
    }

    /// It sent something.
    pub fn append(&mut self, bytes: &[u8], now_us: u64) {
        if self.is_last {
            return;
        }
        if self.rest().is_empty() {
            self.waits_since_us = now_us;
        }
        self.input.drain(..std::mem::take(&mut self.taken));
        self.input.extend_from_slice(bytes);
    }

    /// What no request has taken.
    pub fn rest(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// What the handler knows, and what no request has taken.
    pub fn parts(&mut self) -> (&mut C, &[u8]) {
        (&mut self.state, &self.input[self.taken..])
    }

    /// A request took so many bytes.
    pub fn take(&mut self, bytes: usize, now_us: u64) {
        assert!((1..=self.rest().len()).contains(&bytes), "a request is some of the bytes that were shown");
        self.taken += bytes;
        self.waits_since_us = now_us;
    }

    /// No more requests are read of it.
    pub fn read_no_more(&mut self) {
        self.is_last = true;
        (self.input, self.taken) = (Vec::new(), 0);
    }

    /// It sends no more.
    pub fn ends_when_read(&mut self) {
        self.has_ended = true;
    }

    /// The requests that are there were read, as far as they may be: if it sends no more, what is left is none.
    pub fn end_if_read(&mut self) {
        if self.has_ended && !self.is_stalled {
            self.read_no_more();
        }
    }

    /// Whether another request may be read. If only too much is on its way, [`flush`](Connection::flush) says when.
    pub fn may_read(&mut self, bounds: &Bounds) -> bool {
        self.is_stalled = self.is_full(bounds);
        !self.is_last && !self.is_stalled
    }

    fn is_full(&self, bounds: &Bounds) -> bool {
        self.owed.len() >= bounds.pipeline_max || self.output.len() >= OUTPUT_PAUSE_BYTES
    }

    /// An answer is owed to this request.
    pub fn owe(&mut self, request: u64) {
        self.owed.push_back(Owed { request: Some(request), answer: Vec::new(), closes: false });
    }

    /// Answered at once, behind what is owed already.
    pub fn answer_now(&mut self, answer: Vec<u8>, closes: bool) {
        self.owed.push_back(Owed { request: None, answer, closes });
        if closes {
            self.read_no_more();
        }
    }

    /// The answer to a request.
    pub fn answer(&mut self, request: u64, answer: Vec<u8>, closes: bool) {
        // Not if the connection ends behind an earlier one.
        let Some(owed) = self.owed.iter_mut().find(|owed| owed.request == Some(request)) else { return };
        (owed.request, owed.answer, owed.closes) = (None, answer, closes);
        if closes {
            self.read_no_more();
        }
    }

    /// Requests that are not answered.
    pub fn unanswered(&self) -> impl Iterator<Item = u64> {
        self.owed.iter().filter_map(|owed| owed.request)
    }

    /// Whether nothing is owed to it and nothing on its way.
    pub fn is_at_rest(&self) -> bool {
        self.owed.is_empty() && self.output.is_empty() && !self.is_sending
    }

    /// Answers whose turn it is leave. Whether there is room again for requests that wait in its input.
    pub fn flush(&mut self, bounds: &Bounds, now_us: u64, effects: &mut Vec<Effect>) -> bool {
        while let Some(owed) = self.owed.pop_front_if(|owed| owed.request.is_none()) {
            self.output.extend_from_slice(&owed.answer);
            self.waits_since_us = now_us;
            if owed.closes {
                // What was asked behind it is not answered.
                self.owed.clear();
            }
        }
        if !self.output.is_empty() && !self.is_sending {
            let buffer = std::mem::replace(&mut self.output, std::mem::take(&mut self.spare));
            effects.push(Effect::Send { connection: self.id, buffer });
            self.is_sending = true;
        }
        if self.is_last && self.owed.is_empty() && self.output.is_empty() {
            self.close(effects);
        }
        !self.is_closing && self.pace(bounds, effects)
    }

    /// Stops reading from who has too much on its way, and reads again from who has not.
    fn pace(&mut self, bounds: &Bounds, effects: &mut Vec<Effect>) -> bool {
        let (connection, is_full) = (self.id, self.is_full(bounds));
        match (is_full, self.is_paused) {
            (true, false) => effects.push(Effect::PauseReceive { connection }),
            (false, true) => effects.push(Effect::ResumeReceive { connection }),
            _ => {}
        }
        self.is_paused = is_full;
        !is_full && std::mem::take(&mut self.is_stalled)
    }

    /// Closes it behind what is being sent.
    pub fn close(&mut self, effects: &mut Vec<Effect>) {
        self.read_no_more();
        if !std::mem::replace(&mut self.is_closing, true) {
            effects.push(Effect::Close { connection: self.id });
        }
    }

    /// Whether an answer waits for the street to have sent the one before it.
    pub fn awaits_sent(&self) -> bool {
        self.is_sending && !self.output.is_empty()
    }

    /// The kernel took what was sent.
    pub fn sent(&mut self, mut buffer: Vec<u8>) {
        self.is_sending = false;
        if buffer.capacity() <= OUTPUT_PAUSE_BYTES {
            buffer.clear();
            self.spare = buffer;
        }
    }
}
