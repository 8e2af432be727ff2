//! What must hold at every step, judged from what nodes tell, apart from anything the library believes.
//!
//! | rule | how |
//! |---|---|
//! | election safety | every vote that is marked as won names one node per term; a node grants one candidate per term |
//! | log matching | an id has one content and one predecessor, in whatever log it is appended |
//! | leader completeness | what was agreed in a term is in the log of every leader of a later one |
//! | state-machine safety | an index has one entry and one digest of the table, and is applied behind its predecessor |
//! | promises | an acknowledged command keeps its place, a read sees what was acknowledged before it began |

use std::collections::{BTreeMap, BTreeSet};

use crate::node::Node;
use crate::outbox::Fact;
use crate::types::{Applied, LogId};

type Id = (u64, u64);

/// What was seen so far.
#[derive(Default)]
pub struct Judge {
    won: BTreeMap<u64, u64>,
    granted: BTreeMap<(u64, u64), u64>,
    contents: BTreeMap<Id, (u32, Option<Id>)>,
    applied: BTreeMap<u64, (u64, u32)>,
    digests: BTreeMap<u64, u64>,
    /// Term of each index's entry, and the earliest term that is known to have agreed on it.
    agreed: BTreeMap<u64, (u64, u64)>,
    leaders: Vec<Leader>,
    /// The last entry of each node's table.
    tables: BTreeMap<u64, Option<u64>>,
    acknowledged: BTreeMap<u64, u64>,
    asked: BTreeSet<u64>,
}

struct Leader {
    term: u64,
    node: u64,
    purged: Option<u64>,
    log: BTreeMap<u64, u64>,
}

fn id_of(id: LogId) -> Id {
    (**id.committed_leader_id(), id.index())
}

impl Judge {
    /// A node has started; its table is what a snapshot says.
    pub fn on_start(&mut self, node: &Node) -> Result<(), String> {
        let state = node.table.state.borrow();
        let index = state.applied.map(|id| id.index());
        self.tables.insert(node.id(), index);
        index.map_or(Ok(()), |index| self.digest(index, state.digest))
    }

    /// What a node tells after a step.
    pub fn on_facts(&mut self, node: &Node, facts: Vec<Fact>) -> Result<(), String> {
        for fact in facts {
            self.on_fact(node, fact)?;
        }
        Ok(())
    }

    fn on_fact(&mut self, node: &Node, fact: Fact) -> Result<(), String> {
        match fact {
            Fact::Voted(vote) if vote.committed => self.on_won(node, vote.leader_id.term, vote.leader_id.voted_for),
            Fact::Voted(_) => Ok(()),
            Fact::Appended { id, crc, previous } => {
                let content = (crc, previous.map(id_of));
                let known = *self.contents.entry(id_of(id)).or_insert(content);
                match known == content {
                    true => Ok(()),
                    false => Err(format!("log matching: {id} is {content:?} at node {}, was {known:?}", node.id())),
                }
            }
            Fact::Applied { id, crc, digest } => self.on_applied(node, id, crc, digest),
            Fact::Installed { id, digest } => {
                let index = id.map(|id| id.index());
                let before = self.tables.insert(node.id(), index).flatten();
                if index < before {
                    return Err(format!("node {}'s table went back from {before:?} to {index:?}", node.id()));
                }
                index.map_or(Ok(()), |index| self.digest(index, digest))
            }
        }
    }

    fn on_won(&mut self, node: &Node, term: u64, leader: u64) -> Result<(), String> {
        let known = *self.won.entry(term).or_insert(leader);
        if known != leader {
            return Err(format!("election safety: nodes {known} and {leader} both lead term {term}"));
        }
        if leader != node.id() || self.leaders.iter().any(|known| known.term == term) {
            return Ok(());
        }
        let stored = node.store.stored.borrow();
        let log = stored.log.values().map(|entry| (entry.log_id.index(), id_of(entry.log_id).0)).collect();
        let purged = stored.purged.map(|id| id.index());
        let leader = Leader { term, node: leader, purged, log };
        let mut agreed = self.agreed.iter().filter(|(_, (_, by))| *by < term);
        agreed.try_for_each(|(index, (entry_term, _))| leader.must_have(*index, *entry_term))?;
        self.leaders.push(leader);
        Ok(())
    }

    fn on_applied(&mut self, node: &Node, id: LogId, crc: u32, digest: u64) -> Result<(), String> {
        let (term, index) = id_of(id);
        let before = self.tables.insert(node.id(), Some(index)).flatten();
        if index != before.map_or(0, |before| before + 1) {
            return Err(format!("node {} applied {index} behind {before:?}", node.id()));
        }
        let known = *self.applied.entry(index).or_insert((term, crc));
        if known != (term, crc) {
            return Err(format!("state-machine safety: {id} applied by node {}, was {known:?}", node.id()));
        }
        self.digest(index, digest)?;
        // A follower learns what is agreed from a leader of its vote's term, so it was agreed in that term or before.
        let vote_term = node.store.stored.borrow().vote.map_or(u64::MAX, |vote| vote.leader_id.term);
        let by = self.agreed.entry(index).or_insert((term, u64::MAX));
        if vote_term < by.1 {
            by.1 = vote_term;
            let mut later = self.leaders.iter().filter(|leader| leader.term > vote_term);
            later.try_for_each(|leader| leader.must_have(index, term))?;
        }
        Ok(())
    }

    fn digest(&mut self, index: u64, digest: u64) -> Result<(), String> {
        let known = *self.digests.entry(index).or_insert(digest);
        if known == digest { Ok(()) } else { Err(format!("tables differ at {index}: {known:x} and {digest:x}")) }
    }

    /// `node` told a candidate that it has its vote.
    pub fn on_granted(&mut self, node: u64, term: u64, candidate: u64) -> Result<(), String> {
        let known = *self.granted.entry((node, term)).or_insert(candidate);
        if known == candidate {
            return Ok(());
        }
        Err(format!("election safety: node {node} voted for {known} and for {candidate} in term {term}"))
    }

    /// A client asks for a command. Also the last place that was acknowledged to anybody before now.
    pub fn on_asked(&mut self, command: u64) -> u64 {
        self.asked.insert(command);
        self.floor()
    }

    /// The last place that was acknowledged to anybody.
    pub fn floor(&self) -> u64 {
        self.acknowledged.values().copied().max().unwrap_or(0)
    }

    /// The command was acknowledged; `floor` is what [`Judge::on_asked`] said when it was asked for.
    pub fn on_acknowledged(&mut self, command: u64, floor: u64, applied: &Applied) -> Result<(), String> {
        self.digest(applied.index, applied.digest)?;
        if applied.index <= floor {
            return Err(format!("promise: command {command} was put at {}, behind {floor} in time", applied.index));
        }
        self.acknowledged.insert(command, applied.index);
        Ok(())
    }

    /// A read was answered by a table of this state.
    pub fn on_read(&mut self, floor: u64, applied: &Applied) -> Result<(), String> {
        self.digest(applied.index, applied.digest)?;
        if applied.index >= floor {
            return Ok(());
        }
        Err(format!("promise: a read saw {} and {floor} had been acknowledged before it began", applied.index))
    }

    /// At the end: a table that is up to date has everything acknowledged and nothing that nobody asked for.
    pub fn on_end(&self, node: &Node) -> Result<(), String> {
        let state = node.table.state.borrow();
        if let Some(lost) = self.acknowledged.keys().find(|command| !state.commands.contains(command)) {
            return Err(format!("promise: command {lost} was acknowledged and node {} has it not", node.id()));
        }
        match state.commands.iter().find(|command| !self.asked.contains(command)) {
            Some(command) => Err(format!("command {command} was never asked for")),
            None => Ok(()),
        }
    }

    /// Leaders there were.
    pub fn elections(&self) -> u64 {
        self.leaders.len() as u64
    }

    /// Commands that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.len() as u64
    }
}

impl Leader {
    fn must_have(&self, index: u64, term: u64) -> Result<(), String> {
        if Some(index) <= self.purged || self.log.get(&index) == Some(&term) {
            return Ok(());
        }
        let has = self.log.get(&index);
        Err(format!(
            "leader completeness: {term}.{index} was agreed and node {}, leader of term {}, has {has:?}",
            self.node, self.term
        ))
    }
}
