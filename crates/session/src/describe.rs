//! One line of CLIENT LIST: fields and their order as Redis 7.2 prints them.

use crate::session::Session;
use crate::transaction::Transaction;
use base::{Door, Now};
use std::io::Write;

/// What the session's two sides hold; the session itself does not know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buffers<'a> {
    /// Bytes of an incomplete request.
    pub input_bytes: usize,
    /// Memory that keeps them, bytes.
    pub input_capacity: usize,
    /// Reply bytes that have not left.
    pub output_bytes: usize,
    /// Whether it waits for another's write (ZH.WAIT, BLPOP…).
    pub blocked: bool,
    /// What EXEC runs at this moment.
    pub running: Option<&'a Transaction>,
}

impl Session {
    /// Appends its line of CLIENT LIST, with the line end.
    pub fn describe(&self, now: Now, buffers: Buffers<'_>, out: &mut Vec<u8>) {
        let age_s = now.monotonic_us.saturating_sub(self.created_us) / 1_000_000;
        let idle_s = now.monotonic_us.saturating_sub(self.active_us) / 1_000_000;
        let transaction = self.transaction.as_deref().or(buffers.running);
        let queued = transaction.map_or(-1, |transaction| transaction.len() as i64);
        let queue_bytes = transaction.map_or(0, Transaction::bytes);
        let total = size_of::<Session>() + buffers.input_capacity + buffers.output_bytes + queue_bytes;
        let (id, peer, local) = (self.client_id, &self.peer, &self.local);
        write_all(out, format_args!("id={id} addr={peer} laddr={local} fd={} name=", self.connection.index));
        out.extend_from_slice(&self.name);
        write_all(
            out,
            format_args!(
                " age={age_s} idle={idle_s} flags={} db={} sub=0 psub=0 ssub=0 multi={queued} watch={} qbuf={} \
                 qbuf-free={} argv-mem=0 multi-mem={queue_bytes} rbs=0 rbp=0 obl={} oll=0 omem={} tot-mem={total} \
                 events=r cmd={} user=",
                self.flag_letters(transaction.is_some(), buffers.blocked),
                self.database.0,
                self.watched_count(),
                buffers.input_bytes,
                buffers.input_capacity.saturating_sub(buffers.input_bytes),
                buffers.output_bytes,
                buffers.output_bytes,
                self.last_command.map_or("NULL", |spec| spec.full_name),
            ),
        );
        out.extend_from_slice(self.user.name());
        write_all(out, format_args!(" redir=-1 resp={} lib-name=", self.protocol.number()));
        out.extend_from_slice(&self.library_name);
        out.extend_from_slice(b" lib-ver=");
        out.extend_from_slice(&self.library_version);
        out.push(b'\n');
    }

    fn flag_letters(&self, in_transaction: bool, blocked: bool) -> String {
        let is_socket_file = self.door == Door::Standalone && self.peer.starts_with('/');
        let flags = [
            (in_transaction, 'x'),
            (blocked, 'b'),
            (self.closing, 'c'),
            (is_socket_file, 'U'),
            (self.read_only, 'r'),
            (self.no_evict, 'e'),
            (self.no_touch, 'T'),
        ];
        let letters: String = flags.into_iter().filter(|(set, _)| *set).map(|(_, letter)| letter).collect();
        if letters.is_empty() { "N".to_string() } else { letters }
    }
}

fn write_all(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a Vec cannot fail");
}
