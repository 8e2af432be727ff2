//! What each completion means: events for the machine, and the way of a slot from open over draining to free.

use super::Uring;
use super::ring::Completion;
use super::token::Operation;
use crate::batch_size::work_of;
use crate::event_list::EventList;
use base::ids::ConnectionId;
use base::street::{Event, Span};
use io_uring::opcode;
use rustix::io::Errno;

impl Uring {
    #[inline]
    pub(super) fn completed(&mut self, completion: Completion, events: &mut EventList) {
        match Operation::unpack(completion.token) {
            Operation::Receive(id) => self.received_completion(id, completion, events),
            Operation::Send(id) => self.send_completion(id, completion.outcome(), events),
            Operation::Listener(index) => {
                self.woken = true;
                self.acceptor.mark_ready(index);
                if !completion.more() {
                    self.watch_listener(index);
                }
            }
            Operation::Doorbell => {
                self.woken = true;
                if !completion.more() {
                    self.watch_doorbell();
                }
            }
            Operation::RunRead(place) => {
                self.woken = true;
                self.reads.end(place, completion.outcome());
            }
            Operation::Cancel => {}
        }
    }

    #[inline]
    fn received_completion(&mut self, id: ConnectionId, completion: Completion, events: &mut EventList) {
        let bytes = completion.outcome().unwrap_or(0);
        let start = completion.buffer().map(|buffer| self.buffers.take(buffer, bytes));
        let Some(connection) = self.table.in_slot(id) else {
            unreachable!("a slot is not freed while its receive is armed")
        };
        connection.receive_armed = completion.more();
        if !connection.open {
            return self.free_if_drained(id);
        }
        match (completion.outcome(), start) {
            (Ok(0), _) => {
                connection.peer_closed = true;
                self.ends += 1;
                events.push(Event::PeerClosed { connection: id });
            }
            (Ok(count), Some(start)) => {
                let changes_buffers = connection.note_received(count);
                self.taken.connections += 1;
                self.taken.work += work_of(count);
                events.push(Event::Received { connection: id, span: Span { start, len: count as u32 } });
                if !completion.more() {
                    self.arm_receive(id);
                } else if changes_buffers {
                    self.cancel_receive(id);
                }
            }
            (Ok(_), None) => unreachable!("bytes are received into provided buffers only"),
            (Err(Errno::NOBUFS), _) => {
                self.woken = true;
                self.starved.push(id);
            }
            (Err(Errno::CANCELED | Errno::INTR | Errno::AGAIN), _) => self.arm_receive(id),
            (Err(_), _) => self.broke(id, events),
        }
        self.tell_stilled(id, events);
    }

    /// Whether the receive that was to end has ended is looked at after each of its completions.
    #[inline]
    fn tell_stilled(&mut self, id: ConnectionId, events: &mut EventList) {
        if let Some(connection) = self.table.open(id)
            && connection.tells_stilled
            && !connection.receive_armed
        {
            connection.tells_stilled = false;
            events.push(Event::Stilled { connection: id });
        }
    }

    #[inline]
    fn send_completion(&mut self, id: ConnectionId, outcome: Result<usize, Errno>, events: &mut EventList) {
        let tick = self.tick;
        let Some(connection) = self.table.in_slot(id) else {
            unreachable!("a slot is not freed while its send is under way")
        };
        let buffer_bytes = connection.sending.as_ref().expect("a send that completes was under way").len();
        connection.sent_bytes += outcome.unwrap_or(0);
        let retry = match outcome {
            Ok(count) => count > 0 && connection.sent_bytes < buffer_bytes,
            Err(error) => matches!(error, Errno::INTR | Errno::AGAIN),
        };
        if connection.open && retry {
            connection.quiet_send_tick = None;
            return self.push_send(id);
        }
        let buffer = connection.sending.take().expect("checked above");
        self.sends_under_way -= 1;
        if !connection.open {
            return self.free_if_drained(id);
        }
        if connection.sent_bytes < buffer_bytes {
            return self.broke(id, events);
        }
        let quiet = connection.quiet_send_tick == Some(tick);
        let close = connection.closes_after_send;
        events.push_completion(Event::SendDone { connection: id, buffer }, quiet);
        if close {
            self.broke(id, events);
        }
    }

    /// The connection is over, by fault or by wish; its slot follows when the kernel has let go.
    pub(super) fn broke(&mut self, id: ConnectionId, events: &mut EventList) {
        let Some(connection) = self.table.open(id) else { return };
        connection.open = false;
        let sending = connection.sending.is_some();
        events.push(Event::Closed { connection: id });
        self.cancel_receive(id);
        if sending {
            let entry = opcode::AsyncCancel::new(Operation::Send(id).pack()).build();
            self.push(entry, Operation::Cancel);
        }
        self.free_if_drained(id);
    }

    fn free_if_drained(&mut self, id: ConnectionId) {
        let Some(connection) = self.table.in_slot(id) else { return };
        if !connection.open && !connection.receive_armed && connection.sending.is_none() {
            drop(self.table.release(id));
        }
    }
}
