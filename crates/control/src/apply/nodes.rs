//! Commands about nodes: who comes, is fenced, comes back, leaves; and the settings.

use base::limits::{
    CHAIN_MEMBERS_MAX, CORES_MAX, DOMAIN_BYTES_MAX, HOST_BYTES_MAX, LEASE_MS_MAX, LEASE_MS_MIN, NODES_MAX,
};
use base::{NodeId, SlotGroupId};
use placement::Epoch;

use crate::chain::{Chain, Member};
use crate::command::{Comeback, Founding, Settings};
use crate::node::{Newcomer, Node, NodeState};
use crate::refusal::{Flaw, Refusal};
use crate::stretch::{all_slots, slots_of};
use crate::table::Table;

/// Whether a host and a port can be an address.
pub(crate) fn is_address(host: &str, port: u16) -> bool {
    (1..=HOST_BYTES_MAX).contains(&host.len()) && port != 0
}

/// What is wrong with what a node says of itself.
pub(crate) fn flaw_of(facts: &Newcomer) -> Option<Flaw> {
    if !(1..=CORES_MAX).contains(&usize::from(facts.cores)) {
        return Some(Flaw::Cores);
    }
    if !is_address(&facts.host, facts.port) {
        return Some(Flaw::Address);
    }
    if facts.zone.len() > DOMAIN_BYTES_MAX {
        return Some(Flaw::Zone);
    }
    (!(1..=DOMAIN_BYTES_MAX).contains(&facts.machine.len())).then_some(Flaw::Machine)
}

/// What is wrong with settings.
pub(crate) fn flaw_of_settings(settings: &Settings) -> Option<Flaw> {
    if !(LEASE_MS_MIN..=LEASE_MS_MAX).contains(&settings.lease_ms) {
        return Some(Flaw::Lease);
    }
    (!(1..=CHAIN_MEMBERS_MAX).contains(&usize::from(settings.chain_length))).then_some(Flaw::ChainLength)
}

fn flawless(flaw: Option<Flaw>) -> Result<(), Refusal> {
    flaw.map_or(Ok(()), |flaw| Err(Refusal::Impossible(flaw)))
}

impl Table {
    pub(crate) fn create(&mut self, epoch: Epoch, founding: &Founding) -> Result<(), Refusal> {
        if self.is_created {
            return Err(Refusal::Created);
        }
        flawless(flaw_of(&founding.node))?;
        flawless(flaw_of_settings(&founding.settings))?;
        let node = Node { takes_share: false, ..Node::new(founding.node.clone()) };
        for group in SlotGroupId::all() {
            let owner = Member::whole(node.place(group));
            self.stretches.change(slots_of(group), epoch, |_, _| Chain::of(&[owner]));
        }
        self.nodes.insert(node.id(), node);
        self.is_created = true;
        self.cluster = founding.cluster;
        self.settings = founding.settings;
        self.lease_ms_longest = founding.settings.lease_ms;
        self.is_relaxed = founding.relaxed;
        Ok(())
    }

    pub(crate) fn join(&mut self, newcomer: &Newcomer) -> Result<(), Refusal> {
        flawless(flaw_of(newcomer))?;
        if newcomer.id.0 < self.node_floor || self.nodes.contains_key(&newcomer.id) {
            return Err(Refusal::NumberTaken(newcomer.id));
        }
        // Who is down there may have lost its disk: that is for an operator to say, before somebody else takes its place.
        self.address_is_free(newcomer.id, (&newcomer.host, newcomer.port), false)?;
        let has_identity = |node: &&Node| {
            newcomer.identity != [0; 32] && node.state != NodeState::Gone && node.facts.identity == newcomer.identity
        };
        if let Some(other) = self.nodes.values().find(has_identity) {
            return Err(Refusal::IdentityTaken(other.id()));
        }
        if self.nodes.len() == NODES_MAX {
            let gone = self.nodes.values().find(|node| node.state == NodeState::Gone).map(Node::id);
            let gone = gone.filter(|gone| *gone < newcomer.id).ok_or(Refusal::TooManyNodes)?;
            self.nodes.remove(&gone);
            self.node_floor = gone.0 + 1;
        }
        self.nodes.insert(newcomer.id, Node::new(newcomer.clone()));
        Ok(())
    }

    pub(crate) fn returned(&mut self, epoch: Epoch, comeback: &Comeback) -> Result<(), Refusal> {
        let Comeback { node: id, incarnation, host, port, cores, takes_address } = comeback;
        let node = self.known(*id)?;
        if node.state != NodeState::Down {
            return Err(Refusal::NodeIs(*id, node.state));
        }
        if *incarnation <= node.facts.incarnation {
            return Err(Refusal::OtherIncarnation(*id, node.facts.incarnation));
        }
        let facts = Newcomer {
            incarnation: *incarnation,
            host: host.clone(),
            port: *port,
            cores: *cores,
            ..node.facts.clone()
        };
        flawless(flaw_of(&facts))?;
        self.address_is_free(*id, (host, *port), *takes_address)?;
        let (had_cores, node) = (node.facts.cores, self.known_mut(*id)?);
        node.facts = facts;
        (node.state, node.takes_share) = (NodeState::Up, true);
        if node.facts.cores != had_cores {
            let node = node.clone();
            self.rehome(epoch, &node);
        }
        Ok(())
    }

    /// The node has another number of cores since it started: its groups are split anew, evenly.
    fn rehome(&mut self, epoch: Epoch, node: &Node) {
        for group in SlotGroupId::all() {
            let place = node.place(group);
            self.stretches.change(slots_of(group), epoch, |_, chain| {
                let moved = chain.iter().map(|member| match member.place.node == place.node {
                    true => Member { place, ..*member },
                    false => *member,
                });
                Chain::of(&moved.collect::<Vec<_>>())
            });
        }
    }

    pub(crate) fn fence(&mut self, id: NodeId, incarnation: u64) -> Result<(), Refusal> {
        let node = self.known_mut(id)?;
        if !node.state.has_lease() {
            return Err(Refusal::NodeIs(id, node.state));
        }
        if node.facts.incarnation != incarnation {
            return Err(Refusal::OtherIncarnation(id, node.facts.incarnation));
        }
        node.state = NodeState::Fenced;
        Ok(())
    }

    pub(crate) fn drain(&mut self, id: NodeId) -> Result<(), Refusal> {
        let node = self.known_mut(id)?;
        if node.state != NodeState::Up {
            return Err(Refusal::NodeIs(id, node.state));
        }
        (node.state, node.takes_share) = (NodeState::Draining, false);
        Ok(())
    }

    pub(crate) fn keep(&mut self, id: NodeId) -> Result<(), Refusal> {
        let node = self.known_mut(id)?;
        if node.state != NodeState::Draining {
            return Err(Refusal::NodeIs(id, node.state));
        }
        (node.state, node.takes_share) = (NodeState::Up, true);
        // Who is on its machine may have come beside it because it was as good as gone.
        let beside = |chain: &Chain| {
            let others = chain.iter().map(|member| member.place.node).filter(|_| chain.has(id));
            others.into_iter().find(|other| self.clash(id, *other))
        };
        match self.stretches.iter().find_map(|(_, stretch)| beside(&stretch.chain)) {
            Some(other) => Err(Refusal::OneMachine(id, other)),
            None => Ok(()),
        }
    }

    pub(crate) fn share(&mut self, id: NodeId, takes: bool) -> Result<(), Refusal> {
        let node = self.known_mut(id)?;
        if takes && node.state != NodeState::Up {
            return Err(Refusal::NodeIs(id, node.state));
        }
        node.takes_share = takes;
        Ok(())
    }

    /// What everybody's share is has changed.
    fn share_anew(&mut self) {
        self.nodes.values_mut().for_each(|node| node.takes_share |= node.state == NodeState::Up);
    }

    pub(crate) fn remove(&mut self, epoch: Epoch, id: NodeId, abandon: bool) -> Result<(), Refusal> {
        let node = self.known(id)?;
        let may_abandon = node.state == NodeState::Down && abandon;
        if matches!(node.state, NodeState::Fenced | NodeState::Gone) {
            return Err(Refusal::NodeIs(id, node.state));
        }
        let held = self.slots_held(id);
        if held > 0 && !may_abandon {
            return Err(Refusal::HoldsSlots(id, held));
        }
        self.stretches.change(all_slots(), epoch, |_, chain| chain.without(id));
        let node = self.known_mut(id)?;
        (node.state, node.takes_share) = (NodeState::Gone, false);
        if may_abandon {
            self.share_anew();
        }
        Ok(())
    }

    pub(crate) fn weigh(&mut self, id: NodeId, weight: u16) -> Result<(), Refusal> {
        let node = self.known_mut(id)?;
        if node.state == NodeState::Gone {
            return Err(Refusal::NodeIs(id, node.state));
        }
        node.facts.weight = weight;
        self.share_anew();
        Ok(())
    }

    pub(crate) fn configure(&mut self, settings: Settings) -> Result<(), Refusal> {
        flawless(flaw_of_settings(&settings))?;
        self.settings = settings;
        self.lease_ms_longest = self.lease_ms_longest.max(settings.lease_ms);
        Ok(())
    }

    /// Whether nobody else has an address; with `displaces` who is down there has it no more: it says where it is when it comes back.
    fn address_is_free(&self, who: NodeId, (host, port): (&str, u16), displaces: bool) -> Result<(), Refusal> {
        let has = |node: &&Node| {
            let has_it = node.is_reached() || (node.state == NodeState::Down && !displaces);
            node.id() != who && has_it && node.facts.port == port && node.facts.host == host
        };
        self.nodes.values().find(has).map_or(Ok(()), |other| Err(Refusal::AddressTaken(other.id())))
    }
}
