//! Spare: the file of a run that a newer one replaces becomes that of the next run.
//!
//! ```text
//!   g17-old.run ── replaced, and nobody pins it ──► spare ── the next run begins, in its place ── published ──► g18-next.run
//!                                                    └── a stop, a failure, no room among the spares ──► removed
//! ```
//!
//! Its blocks are there, so nothing is allocated or freed; and a file system that looks through what was removed of late before it
//! makes a file has nothing to look through. Until the next run is published it keeps its name, as a run that a newer one replaces: a
//! start removes such files unread, whatever is in them.

use std::collections::VecDeque;

/// See the module. Oldest first.
#[derive(Default)]
pub(super) struct Spares {
    files: VecDeque<(String, u64)>,
}

impl Spares {
    /// Whether the file is kept: as many as runs may settle together, of which the last may exceed `bytes_max`. Those that settled need
    /// no more room as files that wait, and each of the next round finds one.
    #[must_use]
    pub(super) fn keep(&mut self, (name, bytes): (&str, u64), bytes_max: u64) -> bool {
        let has_room = self.bytes() < bytes_max;
        if has_room {
            self.files.push_back((name.to_owned(), bytes));
        }
        has_room
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }

    /// A file for the next run.
    pub(super) fn take(&mut self) -> Option<String> {
        self.files.pop_front().map(|(name, _)| name)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// All of them, to be removed.
    pub(super) fn give_up(&mut self) -> Vec<String> {
        self.files.drain(..).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Spares;

    #[test]
    fn as_many_wait_as_settle_together_and_one_however_long() {
        let mut spares = Spares::default();
        let kept = ["a", "b", "c", "d", "e"].map(|name| spares.keep((name, 30), 100));
        assert_eq!(kept, [true, true, true, true, false], "the last one may exceed it");
        assert_eq!(spares.take().as_deref(), Some("a"), "the oldest becomes the next one");
        assert!(spares.keep(("f", 30), 100));
        assert_eq!(spares.give_up(), ["b", "c", "d", "f"]);
        assert!(spares.keep(("long", 1000), 100) && !spares.keep(("next", 1), 100));
    }
}
