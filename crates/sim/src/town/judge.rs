//! The end of a town: everything comes back within a bounded time, all keys are read, and copies are equal.

use std::collections::BTreeSet;

use base::{Database, InstanceName, SLOT_COUNT, Slot};
use control::NodeState;
use storage::Value;

use super::oracle::number_of;
use super::{Item, LIVENESS_US, Phase, Town, clients};
use crate::checker::{self, Base};
use crate::client::OWN_KEYS;
use crate::history::{Action, Answer};
use crate::own::OwnAction;
use crate::swarm::Feature;
use crate::{own_model, workload};

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
            Phase::Healing { since_us } if self.is_well(since_us) => self.begin_audit(),
            Phase::Healing { since_us } if now_us > since_us + LIVENESS_US => self.violate(self.complaint()),
            Phase::Audit { .. } if self.clients.iter().all(|client| client.pending() == 0) => self.end_audit(),
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
    ///
    /// And every node has asked for its lease, and got it, since nothing goes wrong any more. Who was cut off for nearly a lease
    /// still has the one from before, which may end before the next renewal: then it refuses, as it must, is fenced and comes
    /// back, all of it by the trouble that just ended. From its first renewal on, each comes in time: who refuses then is wrong.
    fn is_well(&self, since_us: u64) -> bool {
        let (now_us, table) = (self.now_us(), self.oracle.table());
        let wanted = usize::from(table.settings().chain_length);
        let is_long = |(_, stretch): (_, &control::Stretch)| stretch.chain.len() == wanted;
        let is_whole = |(_, stretch): (_, &control::Stretch)| stretch.chain.whole_count() == stretch.chain.len();
        table.nodes().all(|node| node.state == NodeState::Up)
            && table.moves().is_empty()
            && table.stretches().all(is_whole)
            && table.stretches().all(is_long)
            && self.is_settled()
            && self.clients.iter().all(|client| client.pending() == 0)
            && self.members.iter().all(|member| member.may_serve(now_us) && member.granted().0 >= since_us)
    }

    fn complaint(&self) -> String {
        let nodes: Vec<_> = self.oracle.table().nodes().map(|node| (node.id().0, node.state)).collect();
        let stretches = self.oracle.table().stretches();
        let chains: Vec<_> = stretches.map(|(slots, stretch)| (slots.first.number(), stretch.chain)).collect();
        let knows: Vec<_> = self.members.iter().map(|member| member.knows()).collect();
        let (version, moves) = (self.oracle.table().version(), self.oracle.table().moves());
        let held: Vec<_> = self.members.iter().map(|member| member.all_held()).collect();
        let leases: Vec<_> = self.members.iter().map(super::nodes::Member::granted).collect();
        format!(
            "not whole again after {LIVENESS_US} us: {nodes:?} {chains:?} {moves:?} table {version} known {knows:?} held {held:?} \
             leases {leases:?}"
        )
    }

    fn begin_audit(&mut self) {
        self.phase = Phase::Audit { since_us: self.now_us() };
        self.read_own_keys();
        let number = self.clients.len();
        self.clients.push(clients::with_links(number, base::Door::Cluster, &self.draw, 1));
        for action in workload::audit(&self.draw.swarm) {
            let place = self.first_of(action.first_key().expect("an audit reads keys"));
            if let (true, Action::Get { key }) = (self.rng.chance(1, 2), &action) {
                // Writes are served again, too.
                let (key, token) = (key.clone(), self.clients[number].token());
                self.issue((number, place), Action::Append { key, token });
            }
            self.issue((number, place), action);
        }
    }

    /// Each client looks once at each set of its own keys; the model knows what there can be.
    fn read_own_keys(&mut self) {
        if !self.draw.swarm.weights.iter().any(|(feature, _)| *feature == Feature::Own) {
            return;
        }
        for (number, set) in (0..self.clients.len()).flat_map(|number| (0..OWN_KEYS).map(move |set| (number, set))) {
            let mut keys = workload::own_set(&self.clients[number], set);
            let place = self.first_of(&keys[0]);
            let action = match self.rng.chance(1, 2) {
                // Of one slot.
                true => OwnAction::GetAll { keys: keys.drain(..2).collect() },
                false => OwnAction::Range { key: keys.swap_remove(self.rng.below(2) as usize) },
            };
            self.issue((number, place), Action::Own(action));
        }
    }

    /// Where a key's first member stands among a client's links.
    fn first_of(&self, key: &str) -> usize {
        let first = self.oracle.table().stretch(placement::slot_of(key.as_bytes())).chain.primary();
        first.map_or(0, |first| self.place_of(number_of(first.node), first.core.0))
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
        let judged = judged.and_then(|()| own_model::check(&self.operations, false));
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
        let shared = workload::audit(&self.draw.swarm);
        let own = self.operations.iter().map(|operation| &operation.action).filter_map(Action::own);
        let keys = shared.iter().filter_map(Action::first_key).chain(own.flat_map(OwnAction::keys));
        for key in keys.collect::<BTreeSet<&str>>() {
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

#[cfg(test)]
mod tests {
    use super::super::network::MANAGERS;
    use super::super::{Item, Town, Wish, draw_town};
    use super::LOOK_US;

    /// A town that is whole, in which a node is cut off from the managers until its lease is nearly over, and nothing else goes
    /// wrong; what is judged of it from then on, at first so long before the end of that lease, or behind it, microseconds.
    fn cut_off(seed: u64, before_end_us: i64) -> Town {
        let mut town = draw_town(&Wish { faults: false, moves: false, readers: false, ..Wish::of(seed) }, false);
        (0..town.members.len()).for_each(|node| town.start(node));
        town.agenda.after(1, Item::Oracle);
        // Up to where it has just been granted its lease: nothing about that is on its way.
        let mut granted = town.members[0].granted();
        while town.members[0].granted() == granted || !town.is_settled() {
            granted = town.members[0].granted();
            town.step();
        }
        let now_us = town.now_us();
        let runs_us = (1..).find(|us| !town.members[0].may_serve(now_us + us)).expect("every lease ends");
        let for_us = (runs_us - LOOK_US).saturating_add_signed(-before_end_us);
        town.cut(vec![(0, MANAGERS), (MANAGERS, 0)], None, for_us);
        while !town.network.is_quiet() {
            town.step();
        }
        town.begin_healing();
        while !town.is_finished && town.violation.is_none() {
            town.step();
        }
        town
    }

    /// Town 650 in `commit` had such a node: it refused when its lease ended, as it must, and was fenced.
    #[test]
    fn a_lease_from_before_the_ways_were_free_makes_no_town_whole() {
        let (mut towns, mut fenced) = (0, 0);
        for before_end_us in [-15_000, -1_000, 0, 1, 30, 300, 3_000] {
            for seed in 0..12 {
                let town = cut_off(seed, before_end_us);
                assert_eq!(town.violation, None, "seed {seed}, {before_end_us} us, {:?}", town.draw);
                (towns, fenced) = (towns + 1, fenced + u64::from(town.met.promotions > 0));
            }
        }
        assert!(fenced > towns / 8 && fenced < towns, "{fenced} of {towns} were fenced");
    }
}
