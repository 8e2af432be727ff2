//! What must hold at every step, judged from what members tell, apart from anything the library believes.
//!
//! | rule | how |
//! |---|---|
//! | election safety | every vote that is marked as won names one member per term; a member grants one candidate per term |
//! | log matching | an id has one content and one predecessor, in whatever log it is appended |
//! | leader completeness | what was agreed in a term is in the log of every leader of a later one |
//! | state-machine safety | an index has one entry and one digest of the table, and is applied behind its predecessor |
//! | promises | an acknowledged command keeps its place, a read sees what was acknowledged before it began |
//!
//! What a start reads is judged in `lives`.

mod lives;

use std::collections::{BTreeMap, BTreeSet};

use base::checksum::crc32c;
use consensus::Member;
use consensus::format::entry::{Content, Entry, EntryId};
use consensus::witness::Fact;

use lives::Life;

/// What was seen so far.
#[derive(Default)]
pub struct Judge {
    won: BTreeMap<u64, u64>,
    granted: BTreeMap<(u64, u64), u64>,
    contents: BTreeMap<EntryId, (u32, Option<EntryId>)>,
    applied: BTreeMap<u64, Entry>,
    digests: BTreeMap<u64, u32>,
    /// The earliest term that is known to have agreed on an index.
    agreed: BTreeMap<u64, u64>,
    leaders: Vec<Leader>,
    /// The last entry of each member's table.
    tables: BTreeMap<u64, Option<u64>>,
    lives: BTreeMap<u64, Life>,
    /// Commands by the place that they were acknowledged at.
    acknowledged: BTreeMap<u64, Vec<u8>>,
    asked: BTreeSet<Vec<u8>>,
}

struct Leader {
    term: u64,
    member: u64,
    purged: Option<u64>,
    log: BTreeMap<u64, u64>,
}

impl Judge {
    /// A member has started on what its disk held.
    pub fn on_start(&mut self, id: u64, member: &Member) -> Result<(), String> {
        self.lives
            .entry(id)
            .or_default()
            .on_start(&member.stored())
            .map_err(|words| format!("member {id}: {words}"))?;
        self.tables.insert(id, member.applied());
        member.applied().map_or(Ok(()), |index| self.digest(index, crc32c(&member.table().encode())))
    }

    /// Every write of the present life of `id` up to `ordinal` is durable.
    pub fn on_durable(&mut self, id: u64, ordinal: u64) {
        self.lives.entry(id).or_default().on_durable(ordinal);
    }

    /// What a member tells after a step.
    pub fn on_facts(&mut self, id: u64, member: &Member, facts: Vec<Fact>) -> Result<(), String> {
        for fact in facts {
            self.lives.entry(id).or_default().on_fact(&fact);
            self.on_fact(id, member, fact)?;
        }
        Ok(())
    }

    fn on_fact(&mut self, node: u64, member: &Member, fact: Fact) -> Result<(), String> {
        match fact {
            Fact::Voted { ballot, .. } if ballot.won => self.on_won(node, member, ballot.term, ballot.candidate),
            Fact::Voted { .. } | Fact::Cut { .. } | Fact::Purged { .. } => Ok(()),
            Fact::Appended { id, crc, previous, .. } => {
                let known = *self.contents.entry(id).or_insert((crc, previous));
                match known == (crc, previous) {
                    true => Ok(()),
                    false => Err(format!("log matching: {id} is {:?} at {node}, was {known:?}", (crc, previous))),
                }
            }
            Fact::Applied { entry, digest } => self.on_applied(node, member, entry, digest),
            Fact::Installed { last, digest } => {
                let index = last.map(|id| id.index);
                let before = self.tables.insert(node, index).flatten();
                if index < before {
                    return Err(format!("member {node}'s table went back from {before:?} to {index:?}"));
                }
                index.map_or(Ok(()), |index| self.digest(index, digest))
            }
        }
    }

    fn on_won(&mut self, node: u64, member: &Member, term: u64, leader: u64) -> Result<(), String> {
        let known = *self.won.entry(term).or_insert(leader);
        if known != leader {
            return Err(format!("election safety: members {known} and {leader} both lead term {term}"));
        }
        if leader != node || self.leaders.iter().any(|known| known.term == term) {
            return Ok(());
        }
        let stored = member.stored();
        let log = stored.log().values().map(|entry| (entry.id.index, entry.id.term)).collect();
        let leader = Leader { term, member: leader, purged: stored.purged().map(|id| id.index), log };
        let mut agreed = self.agreed.iter().filter(|(_, by)| **by < term);
        agreed.try_for_each(|(index, _)| leader.must_have(self.applied[index].id))?;
        self.leaders.push(leader);
        Ok(())
    }

    fn on_applied(&mut self, node: u64, member: &Member, entry: Entry, digest: u32) -> Result<(), String> {
        let id = entry.id;
        let before = self.tables.insert(node, Some(id.index)).flatten();
        if id.index != before.map_or(0, |before| before + 1) {
            return Err(format!("member {node} applied {id} behind {before:?}"));
        }
        if let Content::Command(command) = &entry.content
            && !self.asked.contains(&command[..])
        {
            return Err(format!("{id}, applied by member {node}, was never asked for"));
        }
        let known = self.applied.entry(id.index).or_insert_with(|| entry.clone());
        if *known != entry {
            return Err(format!("state-machine safety: member {node} applied {entry:?}, another one {known:?}"));
        }
        self.digest(id.index, digest)?;
        // A follower learns what is agreed from a leader of its vote's term, so it was agreed in that term or before.
        let vote_term = member.stored().vote().map_or(u64::MAX, |vote| vote.term);
        let by = self.agreed.entry(id.index).or_insert(u64::MAX);
        if vote_term < *by {
            *by = vote_term;
            let mut later = self.leaders.iter().filter(|leader| leader.term > vote_term);
            later.try_for_each(|leader| leader.must_have(id))?;
        }
        Ok(())
    }

    fn digest(&mut self, index: u64, digest: u32) -> Result<(), String> {
        let known = *self.digests.entry(index).or_insert(digest);
        if known == digest { Ok(()) } else { Err(format!("tables differ at {index}: {known:x} and {digest:x}")) }
    }

    /// `node` told a candidate that it has its vote.
    pub fn on_granted(&mut self, node: u64, term: u64, candidate: u64) -> Result<(), String> {
        let known = *self.granted.entry((node, term)).or_insert(candidate);
        if known == candidate {
            return Ok(());
        }
        Err(format!("election safety: member {node} voted for {known} and for {candidate} in term {term}"))
    }

    /// A client asks for a command.
    pub fn on_asked(&mut self, command: Vec<u8>) {
        self.asked.insert(command);
    }

    /// The last place that was acknowledged to anybody.
    pub fn floor(&self) -> u64 {
        self.acknowledged.keys().next_back().copied().unwrap_or(0)
    }

    /// The command was acknowledged at `index`; `floor` is what [`Judge::floor`] said when it was asked for.
    pub fn on_acknowledged(&mut self, command: Vec<u8>, floor: u64, index: u64) -> Result<(), String> {
        if index <= floor {
            return Err(format!("promise: a command was put at {index}, behind {floor} in time"));
        }
        let before = self.acknowledged.insert(index, command);
        if before.is_some() { Err(format!("promise: two commands were acknowledged at {index}")) } else { Ok(()) }
    }

    /// A read was answered by a table up to `index`.
    pub fn on_read(&mut self, floor: u64, index: u64) -> Result<(), String> {
        if index >= floor {
            return Ok(());
        }
        Err(format!("promise: a read saw {index} and {floor} had been acknowledged before it began"))
    }

    /// At the end: what stands at the place of an acknowledged command is that command.
    pub fn on_end(&self) -> Result<(), String> {
        let stands = |index: &u64| match self.applied.get(index).map(|entry| &entry.content) {
            Some(Content::Command(command)) => Some(command.to_vec()),
            _ => None,
        };
        match self.acknowledged.iter().find(|(index, command)| stands(index).as_ref() != Some(*command)) {
            Some((index, _)) => Err(format!("promise: another command stands at {index} than was acknowledged there")),
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
    fn must_have(&self, id: EntryId) -> Result<(), String> {
        let has = self.log.get(&id.index);
        if Some(id.index) <= self.purged || has == Some(&id.term) {
            return Ok(());
        }
        Err(format!(
            "leader completeness: {id} was agreed and member {}, leader of term {}, has {has:?}",
            self.member, self.term
        ))
    }
}
