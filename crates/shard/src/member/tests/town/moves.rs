//! A move in a town: a table by which it is under way, and one by which it was handed over.

use base::{ConnectionId, Door, Event, NodeId, Slot};
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

    /// Everybody hears of a table in which these serve everything, in this order, all of them whole or only the first.
    pub fn tell_chain(&mut self, version: u64, members: &[usize], whole: usize) {
        self.tell_chains(version, &[(0, members, whole)]);
    }

    /// The same, of slots from these on each.
    pub fn tell_chains(&mut self, version: u64, chains: &[(u16, &[usize], usize)]) {
        let chain = |members: &[usize], whole| {
            let members = members.iter().map(|number| name(*number)).collect();
            Chain { epoch: version, members, whole }
        };
        let stretches = chains.iter().map(|(slot, members, whole)| (Slot::wrapping(*slot), chain(members, *whole)));
        let places = (0..self.nodes.len()).map(place).collect();
        let view = ClusterView::new(CLUSTER, version, places, stretches.collect());
        self.view = std::sync::Arc::new(view.with_chain_length(self.chain_length));
        for number in 0..self.nodes.len() {
            self.tell_view(number, std::sync::Arc::clone(&self.view));
        }
    }

    /// The node has a lease again.
    pub fn renew_lease(&mut self, node: NodeId) {
        self.give_lease(node.0 as usize - 1, u64::MAX);
    }

    /// A client of a node.
    pub fn client(&mut self, at: usize) -> ConnectionId {
        self.nodes[at].accept(Door::Cluster)
    }

    /// A client of the port for everybody.
    pub fn plain_client(&mut self, at: usize) -> ConnectionId {
        self.nodes[at].accept(Door::Standalone)
    }

    /// It sends these requests at once, and the town comes to rest; what it was answered.
    pub fn say(&mut self, at: usize, client: ConnectionId, requests: &[&str]) -> String {
        for request in requests {
            let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
            self.write(at, client, &command(&words));
        }
        self.settle().expect("nothing is wrong");
        self.answer(at, client).unwrap_or_default()
    }

    /// It sends a request, and nothing happens.
    pub fn write_words(&mut self, at: usize, client: ConnectionId, words: &[&str]) {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.write(at, client, &command(&words));
    }

    /// Everything that is on its way arrives, and everybody has a tick.
    pub fn step(&mut self) {
        while self.deliver_one(usize::MAX) {}
        (0..self.nodes.len()).for_each(|number| self.tick(number));
    }

    /// What a node's store takes, bytes.
    pub fn memory_at(&self, at: usize) -> usize {
        self.nodes[at].shard.store.memory_bytes()
    }

    /// Bytes of long values that come to a node over links, and whether a run that begins there now leaves their blocks to a replay.
    pub fn arriving_at(&self, at: usize) -> (usize, bool) {
        let shard = &self.nodes[at].shard;
        let links = &shard.membership.as_ref().expect("it is one of a town").links;
        let sealed = shard.log.as_ref().expect("it has one").sealed();
        let begin = shard.uploads.begin_of_runs(std::iter::empty(), links.begins_of_arriving(), &shard.store, sealed);
        (links.arriving_bytes(), begin.is_none_or(|begin| begin < sealed))
    }

    /// Bytes on the way to each follower of a node.
    pub fn backlogs_at(&self, at: usize) -> Vec<usize> {
        let links = &self.nodes[at].shard.membership.as_ref().expect("it is one of a town").links;
        links.lead_standings().map(|standing| standing.backlog_bytes).collect()
    }

    /// What a node has of a string, empty without one.
    pub fn string_at(&self, at: usize, name: &[u8]) -> Vec<u8> {
        self.nodes[at].copy_of(name).map(|(_, value)| value).unwrap_or_default()
    }

    /// The time of day of everybody.
    pub fn set_unix_ms(&mut self, unix_ms: u64) {
        self.unix_ms = unix_ms;
    }

    /// As [`Town::announce_whole`], and the town comes to rest.
    pub fn tell_whole(&mut self, version: u64) {
        self.announce_whole(version);
        self.settle().expect("nothing is wrong");
    }

    /// Everybody hears of the present table with every member whole, under the next version.
    pub fn announce_whole(&mut self, version: u64) {
        let chain = self.view.chain(Slot::wrapping(0)).clone();
        let chain = Chain { whole: chain.members.len(), ..chain };
        let places = (0..self.nodes.len()).map(place).collect();
        let view = ClusterView::new(CLUSTER, version + 1, places, vec![(Slot::wrapping(0), chain)]);
        self.view = std::sync::Arc::new(view.with_moves(self.view.moves().to_vec()));
        for number in 0..self.nodes.len() {
            self.tell_view(number, std::sync::Arc::clone(&self.view));
        }
    }

    /// How many clients of a node wait for copies.
    pub fn copy_waits(&self, at: usize) -> usize {
        self.nodes[at].shard.copy_waits.len()
    }

    /// It hangs up.
    pub fn hang_up(&mut self, at: usize, client: ConnectionId) {
        self.nodes[at].events.push(Event::Closed { connection: client });
    }

    /// The clock of everybody, microseconds.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Nothing happens for so long.
    pub fn pass_us(&mut self, us: u64) {
        self.now_us += us;
        self.unix_ms += us / 1000;
    }

    /// Keys that a node has of a key's slot.
    pub fn keys_of_slot(&self, at: usize, name: &[u8]) -> u32 {
        self.nodes[at].shard.store().slot_len(placement::slot_of(name))
    }

    /// A node is no more.
    pub fn kill(&mut self, number: usize) {
        self.nodes[number].is_up = false;
    }

    /// The first node is to keep everything still.
    pub fn ask_for_seal(&mut self) {
        self.tell(0, Control::Seal { id: 2 });
    }

    /// The hand-over of move `id` was refused: the first node's manager knows that it will not be.
    pub fn release(&mut self, id: u64) {
        self.tell(0, Control::Release { id });
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
