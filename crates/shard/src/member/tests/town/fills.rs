//! A fill in a town, whose follower has a processor less often than who fills it.

use super::Town;

/// Ticks of who fills for each of who is filled.
const TICKS_AHEAD: usize = 12;

impl Town {
    /// One node fills another one to the end: keys of the key's slot before and behind each tick that changed them.
    pub fn fill_slowly(&mut self, (from, to): (usize, usize), key: &[u8]) -> Vec<(u32, u32)> {
        let mut changes = Vec::new();
        for _ in 0..400 {
            self.get_ahead(from);
            let before = self.keys_of_slot(to, key);
            self.tick(to);
            let behind = self.keys_of_slot(to, key);
            changes.extend((behind != before).then_some((before, behind)));
        }
        changes
    }

    /// The same; bytes that the one that is filled said in each tick.
    pub fn bytes_of_ticks(&mut self, (from, to): (usize, usize)) -> Vec<usize> {
        (0..400)
            .map(|_| {
                self.get_ahead(from);
                self.tick(to);
                self.nodes[to].pipes.values().map(|pipe| pipe.bytes.len()).sum()
            })
            .collect()
    }

    /// The one that fills is far ahead, and all of it has arrived.
    pub fn get_ahead(&mut self, from: usize) {
        for _ in 0..TICKS_AHEAD {
            while let Some((number, view)) = self.views.pop_front() {
                self.tell_view(number, view);
            }
            self.tick(from);
            while self.deliver_one(usize::MAX) {}
        }
    }

    /// Version and value of a key at a node.
    pub fn copy_at(&self, at: usize, key: &[u8]) -> Option<(u64, Vec<u8>)> {
        self.nodes[at].copy_of(key)
    }
}
