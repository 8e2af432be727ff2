//! When the file `cluster` is written again.
//!
//! ```text
//!  other nodes, other voters    at once: whoever starts asks these
//!  only slots are elsewhere     a second later at the latest: nobody serves by what the file says of slots, and a move brings
//!                               several tables while everybody waits for the disk and the processor
//! ```

use control::Node;

use crate::identity::Identity;

/// So long after one write another one for the sake of slots, microseconds.
const SLOTS_WAIT_US: u64 = 1_000_000;

/// See the module.
#[derive(Default)]
pub(crate) struct Book {
    /// Versions of the table and of the voters that were looked at.
    seen: (u64, u64),
    nodes: Vec<Node>,
    written_us: Option<u64>,
    due_us: Option<u64>,
}

impl Book {
    /// This is known now. Whether it was not before.
    pub(crate) fn note(&mut self, now_us: u64, known: &Identity) -> bool {
        let (table, voters) = (known.table.version(), known.voters.version);
        if self.seen == (table, voters) {
            return false;
        }
        let are_others = self.seen.1 != voters || !known.table.nodes().eq(&self.nodes);
        let later_us = self.written_us.map_or(now_us, |at_us| now_us.max(at_us + SLOTS_WAIT_US));
        self.due_us = Some(if are_others { now_us } else { self.due_us.unwrap_or(later_us) });
        self.seen = (table, voters);
        self.nodes = known.table.nodes().cloned().collect();
        true
    }

    /// Whether it is to be written now; then it is.
    pub(crate) fn take_due(&mut self, now_us: u64) -> bool {
        let is_due = self.due_us.take_if(|due_us| *due_us <= now_us).is_some();
        self.written_us = if is_due { Some(now_us) } else { self.written_us };
        is_due
    }

    /// When it is to be written, if it is.
    pub(crate) fn deadline_us(&self) -> Option<u64> {
        self.due_us
    }
}

#[cfg(test)]
mod tests {
    use control::{Action, Command, Outcome, RequestId, Settings};

    use super::*;

    /// Another table, of the same nodes.
    fn change(known: &mut Identity) {
        let number = known.table.version() + 1;
        let settings = Settings { lease_ms: 300 + number as u32, ..known.table.settings() };
        let id = RequestId { proposer: 2, number };
        let outcome = known.table.apply(number, &Command { id, action: Action::Configure(settings) });
        assert!(matches!(outcome, Outcome::Changed { .. }), "{outcome:?}");
    }

    #[test]
    fn what_a_start_asks_for_is_written_at_once_and_slots_once_a_second() {
        let mut known = crate::rig::leading().identity.clone();
        let mut book = Book::default();
        assert!(book.note(5_000_000, &known) && book.take_due(5_000_000), "the first table");
        assert!(!book.note(5_000_000, &known) && !book.take_due(9_000_000) && book.deadline_us().is_none());
        for at_us in [5_100_000, 5_200_000, 5_300_000] {
            change(&mut known);
            assert!(book.note(at_us, &known) && !book.take_due(at_us));
            assert_eq!(book.deadline_us(), Some(6_000_000), "however many come");
        }
        assert!(book.take_due(6_000_000) && !book.take_due(7_000_000));
        known.voters.version += 1;
        assert!(book.note(6_100_000, &known) && book.take_due(6_100_000), "other voters");
        change(&mut known);
        assert!(book.note(9_000_000, &known) && book.take_due(9_000_000), "the last write is long ago");
    }
}
