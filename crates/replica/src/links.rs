//! All links of an instance: towards those that hold copies of what it serves, and from those whose copies it holds.

use std::sync::Arc;

use base::limits::FRAME_BYTES_MAX;
use base::rng::Rng;
use base::{ConnectionId, Effect, Horizon, InstanceName, Lanes, LogOrdinal, Slot};
use placement::{ClusterView, SlotSet};
use storage::{StageBegin, Store};
use wire::frame::{Frame, Opened};
use wire::line::{Line, bound_unproven};
use wire::trust::{Distrust, Distrusted, Greeted, Party, Purpose, Speaker, Token};

use crate::follow::{Follow, Taken};
use crate::forgotten::Forgotten;
use crate::lead::Lead;
use crate::pace::Pace;
use crate::peer::{Peer, Side};
use crate::standing::Fills;
use crate::wanted::{AllWanted, Held, wanted_of};

/// Before a connection that broke, or was not made, is tried again, microseconds.
const RETRY_US: u64 = 50_000;

/// What another node may connect for.
const PURPOSES: &[Purpose] = &[Purpose::Link];

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

    /// A table came; an older one than is known is not looked at. `given`: groups up to this one were passed on, or are in
    /// this tick.
    pub fn set_view(&mut self, view: Arc<ClusterView>, store: &mut Store, given: LogOrdinal) {
        if self.view.as_ref().is_some_and(|known| known.version() >= view.version()) {
            return;
        }
        self.considered = self.considered.max(given);
        // Who starts and is first at once is promoted as well: how far versions had gone when it was filled is not in its log.
        let served = view.served_by(self.me);
        served.without(&self.served).iter().for_each(|slot| store.promote(slot));
        self.set_leads(&view);
        self.forgotten.set_view(self.me, &view);
        let incarnation = view.incarnation(self.me.node).unwrap_or(0);
        self.follows.iter_mut().for_each(|follow| follow.set_view((self.me, &view)));
        self.speaker.set_name(view.cluster(), Party { name: self.me, incarnation });
        self.view = Some(view);
        self.served = served;
        self.news += 1;
    }

    /// A slot that nobody holds here is swept: who led it may have to be told.
    pub fn note_forgotten(&mut self, slot: Slot) {
        self.forgotten.note(slot, self.view.as_ref().map_or(0, |view| view.version()));
    }

    fn set_leads(&mut self, view: &ClusterView) {
        let AllWanted { of: wanted, lanes, awaited } = wanted_of(self.me, view);
        let gone = self.leads.iter().filter(|(lead, _)| !wanted.contains_key(&lead.to()));
        let gone: Vec<ConnectionId> = gone.filter_map(|(_, contact)| contact.connection()).collect();
        gone.into_iter().for_each(|id| self.let_go(id));
        self.leads.retain(|(lead, _)| wanted.contains_key(&lead.to()));
        for (to, wanted) in wanted {
            let number = self.leads.iter().position(|(lead, _)| lead.to() == to).unwrap_or_else(|| {
                let lead = Lead::new(to, self.rng.next_u64() | 1, self.considered);
                self.leads.push((lead, Contact::None { at_us: 0 }));
                self.leads.len() - 1
            });
            let known = self.view.as_ref().and_then(|known| known.incarnation(to.node));
            if known.is_some() && known != view.incarnation(to.node) {
                // It started again, and whoever tells so may be the first to.
                self.begin_life(number);
            }
            self.leads[number].0.set_slots(wanted, view.version(), |slot| view.chain(slot).epoch);
            self.leads[number].0.count_from(self.considered);
        }
        let number_of = |to: &InstanceName| self.leads.iter().position(|(lead, _)| lead.to() == *to);
        self.awaited = awaited.iter().map(|lane| lane.iter().filter_map(number_of).collect()).collect();
        self.lanes = lanes;
        self.renumber();
    }

    /// What the follower has of a link is of no use: nothing of the old life is sent or heard any more.
    fn begin_life(&mut self, number: usize) {
        let (lead, contact) = &mut self.leads[number];
        lead.begin_life(self.rng.next_u64() | 1);
        if let Some(id) = contact.connection() {
            *contact = Contact::None { at_us: 0 };
            self.let_go(id);
        }
    }

    /// A connection is to be closed, and heard no more until then.
    fn let_go(&mut self, id: ConnectionId) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.id() == id) {
            peer.line.close();
            peer.side = Side::Unknown;
        }
        self.closing.push(id);
    }

    /// Links have moved in their list.
    fn renumber(&mut self) {
        for peer in &mut self.peers {
            if matches!(peer.side, Side::Lead(_)) {
                let is_its = |(_, contact): &(Lead, Contact)| contact.connection() == Some(peer.id());
                match self.leads.iter().position(is_its) {
                    Some(number) => peer.side = Side::Lead(number),
                    None => peer.line.close(),
                }
            }
        }
    }

    // --- connections ---

    /// Whether a connection is one of a link.
    #[inline]
    pub fn knows(&self, id: ConnectionId) -> bool {
        !self.peers.is_empty() && self.peers.iter().any(|peer| peer.id() == id)
    }

    /// Somebody connected from `address`.
    pub fn on_accepted(&mut self, id: ConnectionId, address: String, now_us: u64) {
        self.peers.push(Peer::new(Line::accepted(now_us, id, address, PURPOSES), Side::Unknown));
        bound_unproven(self.peers.iter_mut().map(|peer| &mut peer.line));
    }

    /// What became of a dial.
    pub fn on_dialed(&mut self, token: u64, connection: Option<ConnectionId>, now_us: u64) {
        let number = self.leads.iter().position(|(_, contact)| *contact == Contact::Dialing { token });
        let (Some(number), Some(view)) = (number, &self.view) else {
            // The link is gone meanwhile.
            let Some(id) = connection else { return };
            self.peers.push(Peer::new(Line::accepted(now_us, id, String::new(), PURPOSES), Side::Unknown));
            return self.let_go(id);
        };
        let (lead, contact) = &mut self.leads[number];
        let Some(id) = connection else {
            *contact = Contact::None { at_us: now_us + RETRY_US };
            return;
        };
        *contact = Contact::Greeting { connection: id };
        let whom = (Purpose::Link, lead.to());
        let line = Line::dialed(now_us, (id, view.link_address(lead.to())), &mut self.speaker, whom);
        self.peers.push(Peer::new(line, Side::Lead(number)));
    }

    /// The street took what was to be sent.
    pub fn on_sent(&mut self, id: ConnectionId) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.id() == id) {
            peer.line.on_sent();
        }
    }

    /// The other end sends no more.
    pub fn on_peer_closed(&mut self, id: ConnectionId) {
        self.closing.push(id);
    }

    /// A connection is gone.
    pub fn on_closed(&mut self, id: ConnectionId, now_us: u64) {
        self.peers.retain(|peer| peer.id() != id);
        for (_, contact) in &mut self.leads {
            if contact.connection() == Some(id) {
                *contact = Contact::None { at_us: now_us + RETRY_US };
            }
        }
    }

    /// Bytes of a connection.
    pub fn receive(&mut self, id: ConnectionId, bytes: &[u8]) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.id() == id) {
            peer.line.receive(bytes);
        }
    }

    // --- frames ---

    /// Goes on with all handshakes.
    pub fn greet(&mut self, now_us: u64) {
        for peer in self.peers.iter_mut().filter(|peer| peer.line.awaits_proof()) {
            let Some(Greeted { from, .. }) = peer.line.greet(now_us, &mut self.speaker) else { continue };
            peer.from = Some(from.name);
            if let (Side::Lead(number), Some(view)) = (peer.side, &self.view) {
                peer.send(&Frame::Hello { life: self.leads[number].0.life(), table: view.version() });
            }
        }
    }

    /// What is not believed any more is closed. What whoever runs the node is to be told of that now.
    pub fn end_distrusted(&mut self, now_us: u64) -> Option<String> {
        for peer in &mut self.peers {
            let Some(why) = peer.line.take_distrust() else { continue };
            self.distrusted.note(peer.line.address(), why);
            self.closing.push(peer.id());
        }
        self.distrusted.poll(now_us)
    }

    /// How many connections of other nodes were not believed.
    pub fn distrusted(&self) -> u64 {
        self.distrusted.count()
    }

    /// Does what whole frames say, in log group `next`. Those that change the store wait while its log buffer has `log_bytes_max` and more; whether
    /// there may be such.
    pub fn take_frames(&mut self, (store, next): (&mut Store, LogOrdinal), log_bytes_max: usize) -> bool {
        let mut has_more = false;
        for number in 0..self.peers.len() {
            let is_full = |peer: &Peer, store: &Store| peer.side.changes_store() && store.log_bytes() >= log_bytes_max;
            while !is_full(&self.peers[number], store)
                && let Some(bytes) = self.take_frame(number, (store, next))
            {
                self.peers[number].line.skip(bytes);
            }
            has_more |= is_full(&self.peers[number], store);
        }
        self.follows.iter_mut().for_each(|follow| store.let_go_of_arrived(&mut follow.arriving));
        has_more
    }

    /// Does the next frame of a connection; its bytes. `None`: nothing can be done now.
    fn take_frame(&mut self, number: usize, (store, next): (&mut Store, LogOrdinal)) -> Option<usize> {
        let view = Arc::clone(self.view.as_ref()?);
        let Peer { side, from, line } = &mut self.peers[number];
        let (id, side, from) = (line.id(), *side, *from);
        let (frame, bytes) = match line.frame(FRAME_BYTES_MAX) {
            Opened::Incomplete => return None,
            Opened::Whole { kind, body, bytes } => (Frame::of(kind, body), bytes),
            Opened::Malformed(_) => (None, 0),
        };
        let Some(frame) = frame else {
            line.end(Distrust::Frame);
            return None;
        };
        match side {
            Side::Lead(lead) => self.leads[lead].0.heard_us = self.now_us,
            Side::Follow(follow) => self.follows[follow].heard_us = Some(self.now_us),
            Side::Unknown => {}
        }
        match (side, frame) {
            (Side::Follow(follow), Frame::Confirm { .. }) => self.follows[follow].on_confirm(&frame),
            (Side::Follow(follow), Frame::Compare { slot }) => {
                let answer = self.follows[follow].answer(slot, (self.me, &view), store);
                self.peers[number].answer(slot, &answer);
            }
            (Side::Follow(follow), _) => {
                let first = self.follows[follow].from();
                let taken = match self.forgotten.is_counted_on(&frame, first, view.version()) {
                    true => Taken::Broken("it counts on what was swept".to_owned()),
                    false => self.follows[follow].take(&frame, (self.me, &view), (store, next)),
                };
                return self.heed(number, taken).then_some(bytes);
            }
            (Side::Unknown, Frame::Hello { life, .. }) if from.is_some() => {
                let kept = store.slots_with_keys().collect();
                self.welcome(number, (from.expect("it was just looked"), life), &view, &kept);
            }
            (Side::Lead(lead), Frame::Welcome { life, taken, incarnation, .. })
                if view.incarnation(self.leads[lead].0.to().node) == Some(incarnation) =>
            {
                self.on_welcome(lead, id, (life, taken));
            }
            (Side::Lead(lead), Frame::Persisted { sequence }) => {
                self.news += 1;
                self.leads[lead].0.on_persisted(sequence);
            }
            (Side::Lead(lead), Frame::Kept { slots }) => self.leads[lead].0.on_kept(SlotSet::from_words(slots)),
            (Side::Lead(lead), Frame::Marks { slot, is_end, last, marks })
                if self.leads[lead].0.on_marks(slot, (is_end, last), marks) => {}
            (Side::Lead(lead), Frame::Room { is_full }) => self.leads[lead].0.is_full = is_full,
            (Side::Lead(lead), Frame::Ask { stamp }) => self.leads[lead].0.asked = Some(stamp),
            (Side::Lead(lead), Frame::Synced { sequence }) => {
                self.news += 1;
                self.leads[lead].0.on_synced(sequence);
            }
            // A newer table will come here, too.
            _ => self.break_off(number),
        }
        Some(bytes)
    }

    /// What a follower does after a frame; whether it is done with.
    fn heed(&mut self, number: usize, taken: Taken) -> bool {
        match taken {
            Taken::Done => return true,
            Taken::Later => return false,
            Taken::Refused => {
                let table = self.view.as_ref().map_or(0, |view| view.version());
                self.peers[number].send(&Frame::Refused { table });
            }
            Taken::Broken(_) => {
                if let Side::Follow(follow) = self.peers[number].side {
                    self.follows[follow].void();
                }
            }
        }
        self.break_off(number);
        false
    }

    fn welcome(&mut self, number: usize, (from, life): (InstanceName, u64), view: &ClusterView, kept: &SlotSet) {
        let follow = self.follows.iter().position(|follow| follow.from() == from).unwrap_or_else(|| {
            self.follows.push(Follow::new(from));
            self.follows.len() - 1
        });
        // An older connection of the same link may still bring what was sent before this one.
        for peer in self.peers.iter_mut().filter(|peer| peer.side == Side::Follow(follow)) {
            peer.line.close();
            self.closing.push(peer.id());
        }
        let taken = self.follows[follow].greet(life);
        let peer = &mut self.peers[number];
        peer.side = Side::Follow(follow);
        let incarnation = view.incarnation(self.me.node).unwrap_or(0);
        let life = self.follows[follow].life();
        peer.send(&Frame::Welcome { life, taken, table: view.version(), incarnation });
        peer.send(&Frame::Kept { slots: &kept.words() });
    }

    fn on_welcome(&mut self, number: usize, id: ConnectionId, (life, taken): (u64, u64)) {
        let (lead, contact) = &mut self.leads[number];
        if !lead.can_go_on(life, taken) {
            // The next connection begins the new life.
            return self.begin_life(number);
        }
        lead.go_on_from(taken);
        *contact = Contact::Going { connection: id };
    }

    fn break_off(&mut self, number: usize) {
        self.peers[number].line.close();
        self.closing.push(self.peers[number].id());
    }

    // --- stages of the tick ---

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
