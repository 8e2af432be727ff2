//! A move in a town: a table by which it is under way, and one by which it was handed over.

use base::{ConnectionId, Door, Slot};
use placement::{Chain, ClusterView, Moving, SlotRange};

use super::{CLUSTER, KEYS, Town, command, key_name, name, place};
use crate::hop::Control;

/// All slots, from node 1 to node 2.
fn moving(is_handed: bool) -> Moving {
    let slots = SlotRange { first: Slot::wrapping(0), last: Slot::wrapping(16383) };
    Moving { id: 2, slots, from: name(0), to: name(1), is_handed }
}

impl Town {
    /// Everybody hears of a table in which these serve everything, in this order, and of the move: before it is handed over
    /// the first is the only one of whom it is known that it has everything.
    pub fn tell_table(&mut self, version: u64, members: &[usize], is_handed: bool) {
        let members: Vec<_> = members.iter().map(|number| name(*number)).collect();
        let chain = Chain { epoch: version, whole: if is_handed { members.len() } else { 1 }, members };
        let places = (0..self.nodes.len()).map(place).collect();
        let view = ClusterView::new(CLUSTER, version, places, vec![(Slot::wrapping(0), chain)]);
        self.view = std::sync::Arc::new(view.with_moves(vec![moving(is_handed)]));
        for number in 0..self.nodes.len() {
            self.tell_view(number, std::sync::Arc::clone(&self.view));
        }
    }

    /// Sets every key at the node that serves it; how many each one serves.
    pub fn set_all(&mut self) -> Vec<usize> {
        let mut counts = vec![0; self.nodes.len()];
        for key in 0..KEYS {
            let first = self.first_of(key);
            counts[first] += 1;
            self.begin(first, &[b"SET", &key_name(key), b"value"]);
        }
        self.settle().expect("nothing is wrong");
        counts
    }

    fn first_of(&self, key: u64) -> usize {
        self.view.first(placement::slot_of(&key_name(key))).expect("somebody serves it").node.0 as usize - 1
    }

    /// Copies anywhere of the keys that each node serves.
    pub fn copies(&self) -> Vec<usize> {
        let mut counts = vec![0; self.nodes.len()];
        for key in 0..KEYS {
            counts[self.first_of(key)] += self.nodes.iter().filter(|node| node.copy(key).is_some()).count();
        }
        counts
    }

    /// A node is no more.
    pub fn kill(&mut self, number: usize) {
        self.nodes[number].is_up = false;
    }

    /// The first node is to keep everything still.
    pub fn ask_for_seal(&mut self) {
        self.tell(0, Control::Seal { id: 2 });
    }

    /// Whether the first node told its manager that it does.
    pub fn is_sealed(&mut self) -> bool {
        self.nodes[0].told.iter().any(|control| matches!(control, Control::Sealed { id: 2, .. }))
    }

    /// A client of a node asks, and nothing more happens.
    pub fn begin(&mut self, at: usize, words: &[&[u8]]) -> ConnectionId {
        let connection = self.nodes[at].accept(Door::Cluster);
        self.write(at, connection, &command(words));
        self.tick(at);
        connection
    }

    /// What it was answered by now.
    pub fn answer(&mut self, at: usize, connection: ConnectionId) -> Option<String> {
        let bytes = self.nodes[at].replies.remove(&connection)?;
        Some(String::from_utf8(bytes).expect("text"))
    }
}
