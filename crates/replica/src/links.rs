//! All links of an instance: towards those that hold copies of what it serves, and from those whose copies it holds.

mod connections;
mod frames;
mod tables;

use std::sync::Arc;

use base::rng::Rng;
use base::{ConnectionId, Effect, Horizon, InstanceName, Lanes, LogOrdinal, Slot};
use placement::{ClusterView, SlotSet};
use storage::{StageBegin, Store};
use wire::frame::Frame;
use wire::trust::{Distrusted, Speaker, Token};

use crate::follow::Follow;
use crate::forgotten::Forgotten;
use crate::lead::Lead;
use crate::pace::Pace;
use crate::peer::{Peer, Side};
use crate::standing::Fills;
use crate::wanted::Held;

/// How a link that leads stands with its follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    /// To be dialed at this time, microseconds.
    None { at_us: u64 },
    /// Dialed under this number.
    Dialing { token: u64 },
    /// Is to prove who it is, and to say where it stands.
    Greeting { connection: ConnectionId },
    /// Frames go over it.
    Going { connection: ConnectionId },
}

impl Contact {
    fn connection(self) -> Option<ConnectionId> {
        match self {
            Contact::Greeting { connection } | Contact::Going { connection } => Some(connection),
            Contact::None { .. } | Contact::Dialing { .. } => None,
        }
    }
}

/// See the module.
pub struct Links {
    pub(crate) me: InstanceName,
    rng: Rng,
    speaker: Speaker,
    distrusted: Distrusted,
    pub(crate) view: Option<Arc<ClusterView>>,
    pub(crate) leads: Vec<(Lead, Contact)>,
    lanes: Lanes,
    /// Numbers of the links whose followers a lane waits for.
    awaited: Vec<Vec<usize>>,
    pub(crate) follows: Vec<Follow>,
    forgotten: Forgotten,
    pub(crate) peers: Vec<Peer>,
    tokens: u64,
    /// The last log group that was looked at.
    pub(crate) considered: LogOrdinal,
    /// Connections to be closed.
    closing: Vec<ConnectionId>,
    pub(crate) served: SlotSet,
    /// Grows with everything that may change who has copies of what.
    news: u64,
    pub(crate) fills: Fills,
    pace: Pace,
    /// Of the last tick, microseconds.
    pub(crate) now_us: u64,
}

impl Links {
    /// Of an instance that has a cluster's token, and hears with the first table which of its nodes it is.
    pub fn new(me: InstanceName, seed: u64, token: &Token) -> Links {
        Links {
            me,
            rng: Rng::new(seed),
            speaker: Speaker::new(token, seed),
            distrusted: Distrusted::default(),
            view: None,
            leads: Vec::new(),
            lanes: Lanes::default(),
            awaited: Vec::new(),
            follows: Vec::new(),
            forgotten: Forgotten::default(),
            peers: Vec::new(),
            tokens: 0,
            considered: LogOrdinal(0),
            closing: Vec::new(),
            served: SlotSet::default(),
            news: 0,
            fills: Fills::default(),
            pace: Pace::default(),
            now_us: 0,
        }
    }

    /// The newest table that is known.
    #[inline]
    pub fn view(&self) -> Option<&Arc<ClusterView>> {
        self.view.as_ref()
    }

    /// Who it belongs to.
    pub fn me(&self) -> InstanceName {
        self.me
    }

    /// It has got its number, which stays.
    ///
    /// # Panics
    /// It has another one already.
    pub fn set_name(&mut self, me: InstanceName) {
        assert!(self.view.is_none() || self.me == me, "a node keeps its number");
        self.me = me;
    }

    /// Whether this instance serves `slot`; without a table it serves none.
    #[inline]
    pub fn serves(&self, slot: Slot) -> bool {
        self.served.contains(slot)
    }

    /// Slots that this instance serves.
    pub fn served(&self) -> &SlotSet {
        &self.served
    }

    /// The last log group that was looked at.
    pub fn considered(&self) -> LogOrdinal {
        self.considered
    }

    /// Another number than at some time before: what [`Links::copies`] counts may be another, too.
    pub fn news(&self) -> u64 {
        self.news
    }

    /// What each follower has whole, in its log, and what it is said to have so, and has not.
    pub fn held(&self) -> Vec<Held> {
        let held = |(lead, _): &(Lead, Contact)| Held {
            to: lead.to(),
            slots: lead.vouched(),
            suspects: lead.suspects().clone(),
            counted: lead.counted(),
        };
        self.leads.iter().map(held).collect()
    }

    /// As [`Links::held`]: the managers are told.
    pub fn tell_held(&mut self) -> Vec<Held> {
        self.leads.iter_mut().for_each(|(lead, _)| lead.note_told());
        self.held()
    }

    /// Whether a follower is said to have what it has not.
    pub fn has_suspects(&self) -> bool {
        self.leads.iter().any(|(lead, _)| !lead.suspects().is_empty())
    }

    /// Whether each member of the chains of `slots` that is whole has everything up to log group `until`.
    pub fn have_all(&self, slots: &SlotSet, until: LogOrdinal) -> bool {
        self.leads.iter().all(|(lead, _)| lead.has_all(slots, until))
    }

    /// A log group of this instance is written; `newest` has the last change that the store knows.
    pub fn replicate(&mut self, ordinal: LogOrdinal, group: &[u8], store: &Store, newest: LogOrdinal) {
        self.considered = ordinal;
        for number in 0..self.leads.len() {
            if !self.leads[number].0.replicate(ordinal, group, store, newest) {
                self.begin_life(number);
            }
        }
    }

    /// What was taken since the last call is in log group `logged` at the latest; the own log's promise holds up to `promised`,
    /// and against a power cut up to `durable`.
    pub fn acknowledge(&mut self, logged: LogOrdinal, promised: LogOrdinal, durable: LogOrdinal) {
        for (number, follow) in self.follows.iter_mut().enumerate() {
            follow.note_logged(logged);
            let Some(peer) = self.peers.iter_mut().find(|peer| peer.side == Side::Follow(number)) else { continue };
            let (persisted, synced) = (follow.persisted(promised), follow.synced(durable));
            if let Some(sequence) = synced {
                peer.send(&Frame::Synced { sequence });
            }
            if let Some(sequence) = persisted.filter(|persisted| synced.is_none_or(|synced| synced < *persisted)) {
                peer.send(&Frame::Persisted { sequence });
            }
        }
    }

    /// Those that are first of what this instance follows hear when it has no room any more, or has some again.
    pub fn tell_room(&mut self, is_full: bool) {
        for (number, follow) in self.follows.iter_mut().enumerate() {
            let Some(peer) = self.peers.iter_mut().find(|peer| peer.side == Side::Follow(number)) else { continue };
            if follow.tells_room(is_full) {
                peer.send(&Frame::Room { is_full });
            }
        }
    }

    /// Clients are served in this tick, and are to be left time.
    pub fn note_served(&mut self, now_us: u64) {
        self.pace.note_served(now_us);
    }

    /// Dials, fills and sends; `newest` is the log group of the store's last change. `promise`, while the node has its lease: how
    /// far things are committed, and the slots that are kept still. `hurries`: somebody waits for followers that no reply waits for.
    pub fn go_on(
        &mut self,
        (now_us, hurries): (u64, bool),
        (store, newest): (&Store, LogOrdinal),
        promise: Option<(&Horizon, Option<&SlotSet>)>,
        effects: &mut Vec<Effect>,
    ) {
        self.now_us = now_us;
        self.pace.begin(now_us);
        for (lead, contact) in &mut self.leads {
            let Some(view) = &self.view else { break };
            match *contact {
                Contact::None { at_us } if at_us <= now_us => {
                    self.tokens += 1;
                    *contact = Contact::Dialing { token: self.tokens };
                    effects.push(Effect::Dial { token: self.tokens, address: view.link_address(lead.to()) });
                }
                Contact::Going { connection } => {
                    if self.pace.is_open() {
                        self.pace.take(lead.fill((store, newest), &mut self.fills));
                    }
                    if let Some(peer) = self.peers.iter_mut().find(|peer| peer.id() == connection) {
                        lead.send(now_us, hurries, |frame| peer.offer(frame));
                        lead.slots_to_compare().into_iter().for_each(|slot| peer.send(&Frame::Compare { slot }));
                        if let Some((horizon, still)) = promise {
                            lead.confirm(horizon, still, peer);
                        }
                    }
                }
                _ => {}
            }
        }
        self.peers.iter_mut().for_each(|peer| peer.line.flush(effects));
        self.closing.sort_unstable();
        self.closing.dedup();
        effects.extend(self.closing.drain(..).map(|connection| Effect::Close { connection }));
    }

    /// Gives back what fills are done with.
    pub fn let_go_of_spent(&mut self, store: &mut Store) {
        let spent = self.leads.iter_mut().flat_map(|(lead, _)| lead.take_spent());
        spent.for_each(|spent| store.let_go_of_copied(spent));
    }

    /// Long values on their way here: where this instance's log has their first blocks.
    pub fn begins_of_arriving(&self) -> impl Iterator<Item = &StageBegin> {
        self.follows.iter().flat_map(|follow| follow.arriving.begins())
    }

    /// Bytes of long values on their way here.
    pub fn arriving_bytes(&self) -> usize {
        self.follows.iter().map(|follow| follow.arriving.bytes()).sum()
    }

    /// Whether what comes of a long value of `slot` is to wait: there is much on the way to a follower already.
    pub fn hold_long(&self, slot: Slot) -> bool {
        let holds = |(lead, contact): &(Lead, Contact)| lead.holds_long(slot, matches!(contact, Contact::Going { .. }));
        self.leads.iter().any(holds)
    }

    /// A long value of this slot is about to be logged, and will be written into another one so many bytes into a block of that: its
    /// followers hear it before they hear of its blocks.
    pub fn align(&mut self, slot: Slot, stage: u64, skip: u32) {
        let is_going = |contact: &Contact| matches!(contact, Contact::Going { .. });
        let leads = self.leads.iter().filter(|(lead, contact)| lead.takes_long(slot) && is_going(contact));
        for connection in leads.filter_map(|(_, contact)| contact.connection()) {
            if let Some(peer) = self.peers.iter_mut().find(|peer| peer.id() == connection) {
                peer.send(&Frame::Align { stage, skip });
            }
        }
    }

    /// Slots of whose copies some are where there is no room.
    pub fn crowded(&self) -> Option<SlotSet> {
        self.leads.iter().filter_map(|(lead, _)| lead.crowded()).reduce(|slots, others| slots.union(&others))
    }

    /// Slots whose replies wait for the same followers.
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The last log group that every follower has that replies of a lane wait for; lane 0 waits for all.
    #[inline]
    pub fn horizon(&self, lane: usize) -> LogOrdinal {
        let awaited = self.awaited.get(lane).into_iter().flatten();
        awaited.map(|number| self.leads[*number].0.horizon()).min().unwrap_or(LogOrdinal(u64::MAX))
    }

    /// Whether the next tick has something to fill.
    pub fn has_more(&self) -> bool {
        self.pace.is_open() && self.awaits_fill()
    }

    fn awaits_fill(&self) -> bool {
        self.leads.iter().any(|(lead, contact)| matches!(contact, Contact::Going { .. }) && lead.may_fill())
    }

    /// When something is to be dialed, to have been proved, or may be filled, microseconds.
    pub fn deadline_us(&self) -> Option<u64> {
        let due = |(lead, contact): &(Lead, Contact)| match contact {
            Contact::None { at_us } => Some(*at_us),
            Contact::Going { .. } => lead.gathers_until_us(),
            Contact::Dialing { .. } | Contact::Greeting { .. } => None,
        };
        let unproven = self.peers.iter().filter(|peer| peer.line.awaits_proof());
        let proofs = unproven.map(|peer| peer.line.proof_deadline_us());
        let fills = self.pace.opens_at_us().filter(|_| self.awaits_fill());
        self.leads.iter().filter_map(due).chain(proofs).chain(fills).min()
    }
}
