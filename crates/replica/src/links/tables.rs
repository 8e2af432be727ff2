//! A newer table: which links there are, in which direction, and for what.

use std::sync::Arc;

use base::{ConnectionId, InstanceName, LogOrdinal, Slot};
use placement::ClusterView;
use storage::Store;
use wire::trust::Party;

use super::{Contact, Links};
use crate::lead::Lead;
use crate::peer::Side;
use crate::wanted::{AllWanted, wanted_of};

impl Links {
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
    pub(super) fn begin_life(&mut self, number: usize) {
        let (lead, contact) = &mut self.leads[number];
        lead.begin_life(self.rng.next_u64() | 1);
        if let Some(id) = contact.connection() {
            *contact = Contact::None { at_us: 0 };
            self.let_go(id);
        }
    }

    /// A connection is to be closed, and heard no more until then.
    pub(super) fn let_go(&mut self, id: ConnectionId) {
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
}
