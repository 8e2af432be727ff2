//! The end of a town: everything comes back within a bounded time, all keys are read, and copies are equal.

use base::{Database, InstanceName, SLOT_COUNT, Slot};
use control::NodeState;
use storage::Value;

use super::oracle::number_of;
use super::{Item, LIVENESS_US, Phase, Town, clients};
use crate::checker::{self, Base};
use crate::history::{Action, Answer};
use crate::workload;

/// Between two looks, microseconds.
const LOOK_US: u64 = 20_000;

/// What a member has of a key: version, expiry, value.
type Copy = Option<(u64, Option<u64>, Vec<u8>)>;

impl Town {
    /// The last client is done, and nothing goes wrong any more.
    pub(super) fn begin_healing(&mut self) {
        self.phase = Phase::Healing { since_us: self.now_us() };
        self.oracle.keep_all();
        self.agenda.after(LOOK_US, Item::Liveness);
    }

    pub(super) fn liveness_turn(&mut self) {
        self.agenda.after(LOOK_US, Item::Liveness);
        let now_us = self.now_us();
        match self.phase {
            Phase::Working => {}
            Phase::Healing { .. } if self.is_well() => self.begin_audit(),
            Phase::Healing { since_us } if now_us > since_us + LIVENESS_US => self.violate(self.complaint()),
            Phase::Audit { .. } if self.clients.last().is_some_and(|auditor| auditor.pending() == 0) => {
                self.end_audit()
            }
            Phase::Audit { since_us } if now_us > since_us + LIVENESS_US => {
                self.violate("an auditor waits for ever".to_owned());
            }
            Phase::Copies { since_us } => match self.compare_copies() {
                Ok(()) => {
                    self.met.kept_keys = self.members.iter().map(super::nodes::Member::kept_keys).sum();
                    self.met.swept_keys = self.members.iter().map(super::nodes::Member::swept_keys).sum();
                    self.is_finished = true;
                }
                Err(words) if now_us > since_us + LIVENESS_US => self.violate(words),
                Err(_) => {}
            },
            Phase::Healing { .. } | Phase::Audit { .. } => {}
        }
    }

    /// Everybody is up, every chain is as long as it shall be and whole, and nobody waits for a reply.
    fn is_well(&self) -> bool {
        let table = self.oracle.table();
        let wanted = usize::from(table.settings().chain_length);
        let is_long = |(_, stretch): (_, &control::Stretch)| stretch.chain.len() == wanted;
        let is_whole = |(_, stretch): (_, &control::Stretch)| stretch.chain.whole_count() == stretch.chain.len();
        table.nodes().all(|node| node.state == NodeState::Up)
            && table.moves().is_empty()
            && table.stretches().all(is_whole)
            && table.stretches().all(is_long)
            && self.is_settled()
            && self.members.iter().all(super::nodes::Member::may_serve)
            && self.clients.iter().all(|client| client.pending() == 0)
    }

    fn complaint(&self) -> String {
        let nodes: Vec<_> = self.oracle.table().nodes().map(|node| (node.id().0, node.state)).collect();
        let stretches = self.oracle.table().stretches();
        let chains: Vec<_> = stretches.map(|(slots, stretch)| (slots.first.number(), stretch.chain)).collect();
        let knows: Vec<_> = self.members.iter().map(|member| member.knows()).collect();
        let (version, moves) = (self.oracle.table().version(), self.oracle.table().moves());
        let held: Vec<_> = self.members.iter().map(|member| member.all_held()).collect();
        format!(
            "not whole again after {LIVENESS_US} us: {nodes:?} {chains:?} {moves:?} table {version} known {knows:?} held {held:?}"
        )
    }

    fn begin_audit(&mut self) {
        self.phase = Phase::Audit { since_us: self.now_us() };
        let number = self.clients.len();
        self.clients.push(clients::with_links(number, base::Door::Cluster, &self.draw, 1));
        for action in workload::audit(&self.draw.swarm) {
            let slot = placement::slot_of(action.first_key().expect("an audit reads keys").as_bytes());
            let first = self.oracle.table().stretch(slot).chain.primary();
            let place = first.map_or(0, |first| self.place_of(number_of(first.node), first.core.0));
            if let (true, Action::Get { key }) = (self.rng.chance(1, 2), &action) {
                // Writes are served again, too.
                let (key, token) = (key.clone(), self.clients[number].token());
                self.issue((number, place), Action::Append { key, token });
            }
            self.issue((number, place), action);
        }
    }

    fn end_audit(&mut self) {
        let auditor = self.clients.len() - 1;
        // A disk is without room now and then, and says so.
        let is_right = |answer: &Answer| match answer {
            Answer::Reply(_) => true,
            Answer::Refused(words) => words.contains("until there is room for the log"),
            _ => false,
        };
        let unanswered =
            |operation: &&crate::history::Operation| operation.client == auditor && !is_right(&operation.answer);
        if let Some(words) = self.operations.iter().find(unanswered).map(|operation| format!("{operation:?}")) {
            return self.violate(format!("everything is whole, and yet: {words}"));
        }
        let audit: Vec<_> = self.operations.iter().filter(|operation| operation.client == auditor).cloned().collect();
        let judged = checker::check_span(&self.operations, &Base::default());
        let judged = judged.and_then(|()| checker::unit::check_base(&self.operations, &Base::of(&audit)));
        if let Err(words) = judged.and_then(|()| self.check_readers(&audit)) {
            return self.violate(words);
        }
        self.phase = Phase::Copies { since_us: self.now_us() };
    }

    /// Every member of every chain has the same keys, versions and values, and nobody else has any.
    fn compare_copies(&self) -> Result<(), String> {
        let store = |place: InstanceName| {
            self.members[number_of(place.node)].street.machine(place.core.0).map(shard::Shard::store)
        };
        let keys_in = |place: InstanceName, slot: Slot| {
            store(place).and_then(|store| store.group(slot.group())).map_or(0, |group| group.keys_in_slot(slot))
        };
        for slot in (0..SLOT_COUNT).map(Slot::wrapping) {
            let chain = self.oracle.table().stretch(slot).chain;
            self.look_for_strays(slot, &chain)?;
            let counts: Vec<u32> = chain.iter().map(|member| keys_in(member.place, slot)).collect();
            if counts.iter().any(|count| *count != counts[0]) {
                return Err(format!("slot {} has {counts:?} keys at {chain:?}", slot.number()));
            }
        }
        for action in workload::audit(&self.draw.swarm) {
            let key = action.first_key().expect("an audit reads keys");
            let chain = self.oracle.table().stretch(placement::slot_of(key.as_bytes())).chain;
            let copies: Vec<Copy> =
                chain.iter().map(|member| store(member.place).and_then(|store| copy(store, key))).collect();
            if copies.iter().any(|copy| *copy != copies[0]) {
                return Err(format!("{key} differs between {chain:?}: {copies:?}"));
            }
        }
        Ok(())
    }
}

impl Town {
    /// Who is no member of a slot's chain has nothing of it, if nobody has to wait long for that.
    fn look_for_strays(&self, slot: Slot, chain: &control::Chain) -> Result<(), String> {
        if self.draw.stray_quiet_us >= LIVENESS_US {
            return Ok(());
        }
        let is_member = |number: &usize| chain.iter().any(|member| number_of(member.place.node) == *number);
        for number in (0..self.members.len()).filter(|number| !is_member(number)) {
            let keys: u32 = self.members[number].street.machines().map(|shard| shard.store().slot_len(slot)).sum();
            if keys > 0 {
                return Err(format!(
                    "node {number} has {keys} keys of slot {}, which is others': {chain:?}",
                    slot.number()
                ));
            }
        }
        Ok(())
    }
}

fn copy(store: &storage::Store, key: &str) -> Copy {
    let key = store.key(key.as_bytes(), Database(0), placement::slot_of(key.as_bytes()));
    let group = store.group(key.group())?;
    let record = group.record(group.find(&key)?);
    let value = match record.value {
        Value::String { text, .. } => text.pieces(0..text.len()).flatten().copied().collect(),
        Value::List(list) => {
            let mut encoding = Vec::new();
            list.encode(&mut encoding);
            encoding
        }
        Value::Cold => Vec::new(),
    };
    Some((record.version.0, record.expire_at_ms, value))
}
