//! Decode, route, execute: windows of requests over all connections.

use base::limits::RECEIVE_BYTES;
use session::{Input, Rest};
use wire::registry::Resolved;
use wire::request::unquote_inline;
use wire::{Arguments, Parsed};

use crate::connection::Stall;
use crate::receive::Arrival;
use crate::route::{Hint, is_single_key};
use crate::shard::Shard;
use crate::window::{Decoded, Window};
use base::Span;

/// Bytes that a stalled connection may pile up before the street is told to read no more from it.
const STALLED_BYTES_MAX: usize = 4 * RECEIVE_BYTES;
/// Rounds in which connections that went on after a stall are served within one tick.
const RESUME_ROUNDS_MAX: usize = 4;

impl Shard {
    /// Serves all arrivals, then those connections whose stall ended meanwhile.
    pub(crate) fn serve(&mut self, mut arrivals: Vec<Arrival>, received: &[u8]) {
        self.note_company(&arrivals);
        self.serve_put_off(received);
        for arrival in arrivals.drain(..) {
            self.statistics.counters.input_bytes += u64::from(arrival.span.len);
            self.decode(arrival, received);
        }
        self.run_window(received);
        for _ in 0..RESUME_ROUNDS_MAX {
            if self.resume.is_empty() {
                break;
            }
            for connection in std::mem::take(&mut self.resume) {
                self.decode(Arrival { connection, span: Span::default() }, received);
            }
            self.run_window(received);
        }
        self.arrivals_scratch = arrivals;
        self.memory.lacking_bytes = None;
        self.end_hung_up();
    }

    pub(crate) fn decode(&mut self, arrival: Arrival, received: &[u8]) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(arrival.connection) else { return };
        connection.session.touch(now);
        let bytes = arrival.span.of(received);
        if connection.session.is_closing() || self.stopping {
            return;
        }
        if connection.stall != Stall::None {
            connection.input.append(bytes);
            return self.check_stalled_input(arrival.connection.index);
        }
        let index = arrival.connection.index;
        if connection.input.is_empty() {
            let start = arrival.span.start as usize;
            let rest = self.decode_bytes(index, received, start, start + bytes.len());
            self.keep_rest(index, Rest::Received(&received[rest..start + bytes.len()]));
            return self.resume_receive(index);
        }
        if !connection.input.append(bytes) {
            // The rest of the request may be what the street was told not to read.
            return self.resume_receive(index);
        }
        // What was decoded of it earlier in this tick comes first, and may stall it.
        self.run_window(received);
        let Some(connection) = self.connections.get_mut(arrival.connection) else { return };
        if connection.stall != Stall::None || connection.session.is_closing() {
            return self.check_stalled_input(index);
        }
        let whole = connection.input.take();
        let rest = self.decode_bytes(index, &whole, 0, whole.len());
        self.run_window(&whole);
        self.keep_rest(index, Rest::Taken(whole, rest));
        self.resume_receive(index);
    }

    /// Decodes the requests of one connection into the window, running it whenever it is full; where the rest begins.
    fn decode_bytes(&mut self, index: u32, base: &[u8], start: usize, end: usize) -> usize {
        let bytes = &base[..end];
        let mut at = start;
        while at < end {
            let Some(connection) = self.connections.at(index) else { return end };
            if connection.session.is_closing() {
                return end;
            }
            // It stalled, or did and already goes on: what was put back comes first.
            if connection.stall != Stall::None || !connection.input.is_empty() {
                return at;
            }
            let limits = Input::parse_limits(connection.session.is_authenticated());
            let first_span = self.window.spans.len();
            match connection.input.next(bytes, at, &mut self.window.spans, limits) {
                Parsed::Request { consumed } if connection.input.has_long() => {
                    let long = connection.input.take_long();
                    let spans = self.window.spans.split_off(first_span);
                    self.run_long(index, Arguments::new(&base[..at + consumed], &spans), long);
                    at += consumed;
                }
                Parsed::Request { consumed } => {
                    self.push_request(index, base, at..at + consumed, first_span);
                    at += consumed;
                    // Before login a request decides how the next one may be parsed.
                    if self.window.is_full() || !limits.authenticated {
                        self.run_window(base);
                    }
                }
                Parsed::Incomplete { .. } => return at,
                Parsed::Empty { consumed } => at += consumed,
                // What was decoded before it may stall the connection: then it waits, too.
                Parsed::Quoted { .. } if !self.window.requests.is_empty() => self.run_window(base),
                Parsed::Quoted { consumed } => {
                    self.run_quoted(index, &base[at..at + consumed]);
                    at += consumed;
                }
                Parsed::Error(error) => {
                    self.window.spans.truncate(first_span);
                    self.window.push(index, Decoded::Malformed(error), None, at..end, first_span);
                    return end;
                }
            }
        }
        at
    }

    #[inline]
    fn push_request(&mut self, index: u32, base: &[u8], place: std::ops::Range<usize>, first_span: usize) {
        let arguments = self.window.arguments_from(base, first_span);
        let resolved = wire::registry::resolve(arguments);
        let (hint, is_write) = match resolved {
            Resolved::Command(spec) if is_single_key(spec) => {
                let name = arguments.get(spec.first_key as usize).expect("the arity covers the key");
                let database = self.connections.at(index).map_or_else(Default::default, |c| c.session.database());
                let slot = placement::slot_of(name);
                let hash = self.store.key(name, database, slot).hash;
                (Some(Hint { slot, hash, database }), spec.is_write())
            }
            _ => (None, false),
        };
        self.window.has_writes |= is_write;
        self.window.push(index, Decoded::Request(resolved), hint, place, first_span);
    }

    /// An inline request with escapes: its arguments exist only once they are unquoted.
    fn run_quoted(&mut self, index: u32, line: &[u8]) {
        let mut unquoted = Vec::new();
        let mut window = Window::default();
        let decoded = match unquote_inline(line, &mut unquoted, &mut window.spans) {
            Ok(()) => Decoded::Request(wire::registry::resolve(Arguments::new(&unquoted, &window.spans))),
            Err(error) => Decoded::Malformed(error),
        };
        window.push(index, decoded, None, 0..unquoted.len(), 0);
        let outer = std::mem::replace(&mut self.window, window);
        self.run_window(&unquoted);
        self.window = outer;
    }

    /// Runs what was decoded: first all buckets are asked for, then all records, then the requests run in order.
    pub(crate) fn run_window(&mut self, base: &[u8]) {
        if self.window.requests.is_empty() {
            return;
        }
        let mut window = std::mem::take(&mut self.window);
        if window.requests.len() > 1 {
            self.prefetch(&window, base);
        }
        for index in 0..window.requests.len() {
            let request = window.requests[index];
            if request.is_put_back {
                continue;
            }
            let arguments = window.arguments(base, &request);
            if self.run_request(&request, arguments) {
                self.put_back(&mut window, index, base);
            }
        }
        window.clear();
        self.window = window;
    }

    fn prefetch(&self, window: &Window, base: &[u8]) {
        let keys = || {
            window.requests.iter().filter_map(|request| {
                let Hint { slot, hash, .. } = request.hint?;
                // Only position and group are used: the name's bytes do not matter here.
                Some(storage::Key { bytes: &base[..0], database: base::Database(0), slot, hash })
            })
        };
        keys().for_each(|key| self.store.prefetch_bucket(&key));
        if window.has_writes {
            keys().for_each(|key| self.store.prefetch_counters(&key));
        }
        keys().for_each(|key| self.store.prefetch_record(&key));
    }

    /// The request at `index` stalled its connection: it, if it has to run again, and what was decoded after it go back,
    /// in order.
    fn put_back(&mut self, window: &mut Window, index: usize, base: &[u8]) {
        let id = window.requests[index].connection;
        let Some(connection) = self.connections.at(id) else { return };
        let mut earlier = std::mem::take(&mut connection.repeat);
        window.take_after(id, index, base, &mut earlier);
        if !earlier.is_empty() {
            connection.input.put_back(&earlier);
        }
    }

    fn keep_rest(&mut self, index: u32, rest: Rest<'_>) {
        let Some(connection) = self.connections.at(index) else { return };
        if connection.session.is_closing() {
            return;
        }
        if connection.input.is_empty() {
            connection.input.keep(rest);
        } else {
            connection.input.append(match &rest {
                Rest::Received(bytes) => bytes,
                Rest::Taken(bytes, start) => &bytes[*start..],
            });
        }
    }

    fn check_stalled_input(&mut self, index: u32) {
        let Some(connection) = self.connections.at(index) else { return };
        if connection.input.len() > STALLED_BYTES_MAX && !connection.receive_paused {
            connection.receive_paused = true;
            let (id, is_held) = (connection.id, std::mem::replace(&mut connection.is_held, true));
            if !is_held {
                self.memory.held_requests.push(id);
            }
            self.effects.push(base::Effect::PauseReceive { connection: id });
        }
    }

    fn resume_receive(&mut self, index: u32) {
        let Some(connection) = self.connections.at(index) else { return };
        if connection.receive_paused && connection.stall == Stall::None {
            connection.receive_paused = false;
            self.effects.push(base::Effect::ResumeReceive { connection: connection.id });
        }
    }
}
