//! A core as part of a cluster of several nodes: which slots it serves, and the links that carry what it logs.
//!
//! ```text
//!  request ─► lease? ─► first of its slot? ─► route …        no: foreign
//!  link    ─► follow ─► store, log ─► append ─► replicate ─► persisted
//! ```

pub mod migrations;

use std::sync::Arc;

use base::planted::{Bug, is_planted};
use base::{ConnectionId, CoreId, Effect, InstanceName, LogOrdinal, NodeId, Now};
use placement::{ClusterView, SlotSet};
use replica::{Fills, Held, Links};
use wire::trust::Token;

use crate::beside::MemberStanding;
use crate::expected::Expected;
use crate::hop::{Control, HopBatch};
use crate::member::migrations::Migrations;
use crate::node::{ClusterFacts, LinkFacts};
use crate::receive::Arrival;
use crate::seal::Seal;
use crate::shard::Shard;
use crate::strays::Strays;

/// See the module.
pub struct Membership {
    pub(crate) links: Links,
    /// The node may serve until then, microseconds; `None`: nobody gave it a lease yet.
    lease_until_us: Option<u64>,
    /// What followed is in this log group at the latest.
    logged: LogOrdinal,
    /// What the node's manager is told in this tick; in the mesh of hops it comes behind the last core.
    pub(crate) to_manager: HopBatch,
    /// Slots that are kept still, because somebody else is about to serve them.
    pub(crate) seal: Option<Seal>,
    /// Slots that this node is about to serve.
    pub(crate) expected: Expected,
    /// When the manager hears again what is wrong with a follower, while something is.
    doubts_us: u64,
    pub(crate) migrations: Migrations,
    pub(crate) strays: Strays,
    /// Slots of whose copies some are where there is no room.
    pub(crate) crowded: Option<SlotSet>,
    /// Until then it is believed that somebody reads here what others serve, microseconds.
    pub(crate) reads_until_us: u64,
}

/// Between two times that the manager is told of followers that are doubted, microseconds.
const DOUBTS_US: u64 = 20_000;

impl Membership {
    #[inline]
    fn has_lease(&self, now: Now) -> bool {
        if is_planted(Bug::M6LeaseSurvivesStop) {
            return self.lease_until_us.is_some_and(|until_us| until_us > 0);
        }
        now.monotonic_us < self.lease_until_us.unwrap_or(0)
    }

    /// What CLUSTER answers from.
    pub(crate) fn facts<'a>(&'a self, now: Now, links: &'a LinkFacts) -> ClusterFacts<'a> {
        let view = self.links.view().map(Arc::as_ref);
        ClusterFacts { me: self.links.me(), view, has_lease: self.has_lease(now), links }
    }

    pub(crate) fn standing(&self, now: Now) -> MemberStanding {
        MemberStanding {
            me: self.links.me(),
            view: self.links.view().cloned(),
            lease_left_us: self.lease_until_us.unwrap_or(0).saturating_sub(now.monotonic_us),
            links: self.link_facts(),
            distrusted: self.links.distrusted(),
            fills: self.links.fills(),
        }
    }

    pub(crate) fn link_facts(&self) -> LinkFacts {
        LinkFacts {
            offset: self.links.considered().0,
            followers: self.links.lead_standings().collect(),
            firsts: self.links.follow_standings().collect(),
        }
    }
}

impl Shard {
    /// Makes the core part of the cluster that has this token, in which nothing is served before a table and a lease have come. The
    /// first table says which node this is.
    ///
    /// # Panics
    /// In durability `memory`: links carry the log.
    pub fn join(&mut self, seed: u64, token: &Token) {
        assert!(self.log.is_some(), "a node of a cluster has a log");
        let me = InstanceName { node: NodeId(0), core: self.core };
        let links = Links::new(me, seed, token);
        self.membership = Some(Box::new(Membership {
            links,
            lease_until_us: None,
            logged: LogOrdinal(0),
            to_manager: HopBatch::default(),
            seal: None,
            expected: Expected::default(),
            doubts_us: 0,
            migrations: Migrations::default(),
            strays: Strays::default(),
            reads_until_us: 0,
            crowded: None,
        }));
    }

    /// A table came.
    pub(crate) fn set_view(&mut self, node: NodeId, view: Arc<ClusterView>) {
        let given = self.log.as_ref().map_or(LogOrdinal(0), storage::log::LogWriter::given);
        let Some(membership) = &mut self.membership else { return };
        let me = InstanceName { node, core: self.core };
        membership.links.set_name(me);
        membership.strays.end(&mut self.store);
        membership.strays.begin(self.now.monotonic_us, view.held_by(node), view.is_in_motion(node));
        let served = membership.links.served().clone();
        membership.migrations.note(self.now, me, &view);
        membership.links.set_view(view, &mut self.store, given);
        let lost = served.without(membership.links.served());
        let owes = !membership.seal.as_ref().is_some_and(|seal| seal.is_complete_for(&lost));
        if !lost.is_empty() && owes {
            // Whether what it has not acknowledged counts nobody will ever know here.
            self.end_held();
        }
        // Not before: what waited here for others' copies waits for nobody once others serve it.
        self.take_lanes();
        self.follow_slots();
        self.review_seal();
        self.note_expected();
        if !lost.is_empty() {
            self.redirect_waiters();
        }
        self.put_off.note();
    }

    fn take_lanes(&mut self) {
        if let Some(membership) = &self.membership {
            self.store.set_lanes(membership.links.lanes().clone());
        }
        self.advance_horizon();
    }

    /// The node may serve until then.
    pub(crate) fn set_lease(&mut self, until_us: u64) {
        if let Some(membership) = &mut self.membership {
            membership.lease_until_us = Some(until_us);
        }
    }

    /// Whether the node may answer: by this tick's clock.
    #[inline]
    pub(crate) fn has_lease(&self) -> bool {
        self.membership.as_deref().is_none_or(|membership| membership.has_lease(self.now))
    }

    /// Version of the cluster's table that is known here.
    pub fn table_version(&self) -> Option<u64> {
        self.membership.as_deref()?.links.view().map(|view| view.version())
    }

    /// What each follower holds of what this core serves, whole and in its log.
    pub fn held(&self) -> Vec<Held> {
        self.membership.as_deref().map(|membership| membership.links.held()).unwrap_or_default()
    }

    /// How many connections of other nodes were not believed.
    pub fn distrusted(&self) -> u64 {
        self.membership.as_deref().map_or(0, |membership| membership.links.distrusted())
    }

    /// What followers were filled with since this core's start.
    pub fn fills(&self) -> Fills {
        self.membership.as_deref().map(|membership| membership.links.fills()).unwrap_or_default()
    }

    /// The manager asked what followers have.
    pub(crate) fn tell_held(&mut self) {
        let table = self.table_version().unwrap_or(0);
        if let Some(membership) = &mut self.membership {
            let held = membership.links.tell_held();
            membership.to_manager.controls.push(Control::Held { table, held });
        }
    }

    /// What the manager is told in this tick.
    pub(crate) fn take_for_manager(&mut self) -> Option<(CoreId, HopBatch)> {
        let manager = CoreId(self.outbox.len() as u16);
        let membership = self.membership.as_deref_mut().filter(|membership| !membership.to_manager.is_empty())?;
        Some((manager, std::mem::take(&mut membership.to_manager)))
    }

    // --- connections of links ---

    pub(crate) fn on_link(&mut self, id: ConnectionId, address: String) {
        match &mut self.membership {
            Some(membership) => membership.links.on_accepted(id, address, self.now.monotonic_us),
            None => self.effects.push(Effect::Close { connection: id }),
        }
    }

    pub(crate) fn on_dialed(&mut self, token: u64, connection: Option<ConnectionId>) {
        if let Some(membership) = &mut self.membership {
            membership.links.on_dialed(token, connection, self.now.monotonic_us);
        }
    }

    pub(crate) fn on_link_sent(&mut self, id: ConnectionId) {
        if let Some(membership) = &mut self.membership {
            membership.links.on_sent(id);
        }
    }

    /// The other end sends no more; false: it is no link.
    pub(crate) fn end_link(&mut self, id: ConnectionId) -> bool {
        let Some(membership) = self.membership.as_deref_mut().filter(|membership| membership.links.knows(id)) else {
            return false;
        };
        membership.links.on_peer_closed(id);
        true
    }

    /// The connection is gone; false: it is no link.
    pub(crate) fn on_link_closed(&mut self, id: ConnectionId) -> bool {
        let Some(membership) = self.membership.as_deref_mut().filter(|membership| membership.links.knows(id)) else {
            return false;
        };
        membership.links.on_closed(id, self.now.monotonic_us);
        true
    }

    // --- stages of the tick ---

    /// The stage: what other nodes sent is done here as well.
    pub(crate) fn follow(&mut self, arrivals: &mut Vec<Arrival>, received: &[u8]) {
        let awaits_room = self.log.as_ref().is_some_and(|log| log.awaits_segment() || log.refusal().is_some());
        // Nobody but this core's log says how much may come from elsewhere: the rest waits with its connection.
        let log_bytes_max = if awaits_room { 0 } else { self.put_off.log_bytes_max() };
        let next = self.log.as_ref().map_or(LogOrdinal(1), storage::log::LogWriter::next_ordinal);
        let Some(membership) = &mut self.membership else { return };
        arrivals.retain(|arrival| {
            let is_of_link = membership.links.knows(arrival.connection);
            if is_of_link {
                membership.links.receive(arrival.connection, arrival.span.of(received));
            }
            !is_of_link
        });
        membership.links.greet(self.now.monotonic_us);
        // What a failed log cannot hold is not done either.
        if self.log.as_ref().is_none_or(|log| log.failure().is_none()) && !self.stopping {
            let has_more = membership.links.take_frames((&mut self.store, next), log_bytes_max);
            if has_more && !awaits_room {
                self.put_off.note();
            }
        }
        let logged = self.last_change_ordinal();
        if let Some(membership) = &mut self.membership {
            membership.logged = logged;
        }
        self.note_crowd();
    }

    /// The stage: what was logged goes to the followers, and what followed and is as durable as promised is acknowledged.
    pub(crate) fn replicate(&mut self) {
        let (promised, newest) = (self.logged_horizon(), self.last_change_ordinal());
        let durable = self.log.as_ref().map_or(LogOrdinal(0), storage::log::LogWriter::durable);
        let Some(membership) = &mut self.membership else { return };
        for effect in &self.effects {
            if let Effect::WriteLog { ordinal, bytes, .. } = effect {
                membership.links.replicate(*ordinal, bytes, &self.store, newest);
            }
        }
        membership.links.acknowledge(membership.logged, promised, durable);
        membership.links.tell_room(self.memory.is_full());
        if membership.links.has_suspects() && self.now.monotonic_us >= membership.doubts_us {
            membership.doubts_us = self.now.monotonic_us + DOUBTS_US;
            self.tell_held();
        }
        let has_lease = self.has_lease();
        self.look_after_copy_readers();
        let reads = self.reads_bound_us();
        let (now_us, has_served) = (self.now.monotonic_us, self.statistics.has_served());
        let Some(Membership { links, seal, to_manager, .. }) = self.membership.as_deref_mut() else { return };
        to_manager.controls.extend(links.end_distrusted(now_us).map(|text| Control::Distrusted { text }));
        links.ask(now_us, reads);
        if has_served {
            links.note_served(now_us);
        }
        let promise = has_lease.then(|| (&self.horizon, seal.as_ref().map(Seal::slots)));
        let hurries = seal.is_some() || !self.copy_waits.is_empty();
        links.go_on((now_us, hurries), (&self.store, newest), promise, &mut self.effects);
        links.let_go_of_spent(&mut self.store);
    }

    pub(crate) fn links_have_more(&self) -> bool {
        self.membership.as_deref().is_some_and(|membership| membership.links.has_more())
    }

    pub(crate) fn links_deadline_us(&self) -> Option<u64> {
        let membership = self.membership.as_deref()?;
        let doubts_us = membership.links.has_suspects().then_some(membership.doubts_us);
        let strays_us = membership.strays.deadline_us();
        let ask_at_us = self.reads_bound_us().and_then(|_| membership.links.ask_at_us());
        let expected_us = membership.expected.deadline_us();
        [membership.links.deadline_us(), doubts_us, self.seal_deadline_us(), ask_at_us, strays_us, expected_us]
            .into_iter()
            .flatten()
            .min()
    }
}

#[cfg(test)]
pub(crate) mod tests;
