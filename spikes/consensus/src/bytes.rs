//! Bytes of what is stored and sent: little endian, lengths before what they count, an option as a byte 0 or 1.

use std::collections::{BTreeMap, BTreeSet};

use openraft::{EmptyNode, EntryPayload, Membership};

use crate::types::{Command, Entry, LogId, Members, SnapshotMeta, Vote, log_id};

/// Appends values to bytes.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// One byte.
    pub fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    /// Eight bytes.
    pub fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A truth.
    pub fn truth(&mut self, value: bool) {
        self.byte(u8::from(value));
    }

    /// A length and so many bytes.
    pub fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// 1 and the value, or 0.
    pub fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Writer, T)) {
        self.truth(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// Term and index.
    pub fn log_id(&mut self, id: LogId) {
        self.number(**id.committed_leader_id());
        self.number(id.index());
    }

    /// Term, candidate, and whether it leads.
    pub fn vote(&mut self, vote: &Vote) {
        self.number(vote.leader_id.term);
        self.number(vote.leader_id.voted_for);
        self.truth(vote.committed);
    }

    fn membership(&mut self, membership: &Membership<u64, EmptyNode>) {
        self.number(membership.get_joint_config().len() as u64);
        for voters in membership.get_joint_config() {
            self.number(voters.len() as u64);
            voters.iter().for_each(|id| self.number(*id));
        }
        let nodes: Vec<u64> = membership.nodes().map(|(id, _)| *id).collect();
        self.number(nodes.len() as u64);
        nodes.iter().for_each(|id| self.number(*id));
    }

    /// Who votes, by which entry.
    pub fn members(&mut self, members: &Members) {
        self.option(*members.log_id(), Writer::log_id);
        self.membership(members.membership());
    }

    /// What a snapshot stands for.
    pub fn snapshot_meta(&mut self, meta: &SnapshotMeta) {
        self.option(meta.last_log_id, Writer::log_id);
        self.members(&meta.last_membership);
    }

    /// Id, kind and content of an entry.
    pub fn entry(&mut self, entry: &Entry) {
        self.log_id(entry.log_id);
        match &entry.payload {
            EntryPayload::Blank => self.byte(0),
            EntryPayload::Normal(command) => {
                self.byte(1);
                self.number(command.0);
            }
            EntryPayload::Membership(membership) => {
                self.byte(2);
                self.membership(membership);
            }
        }
    }
}

/// Takes values from bytes; `None` when they are no such value.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// Eight bytes.
    pub fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A truth.
    pub fn truth(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// A length and so many bytes.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    /// 1 and the value, or 0.
    pub fn option<T>(&mut self, read: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Option<Option<T>> {
        if self.truth()? { Some(Some(read(self)?)) } else { Some(None) }
    }

    /// A count and so many values. Each takes at least a byte, so a count cannot promise more than there is.
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Reader<'a>) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        if count > self.0.len() as u64 {
            return None;
        }
        (0..count).map(|_| read(self)).collect()
    }

    /// Term and index.
    pub fn log_id(&mut self) -> Option<LogId> {
        Some(log_id(self.number()?, self.number()?))
    }

    /// Term, candidate, and whether it leads.
    pub fn vote(&mut self) -> Option<Vote> {
        let mut vote = Vote::new(self.number()?, self.number()?);
        vote.committed = self.truth()?;
        Some(vote)
    }

    fn membership(&mut self) -> Option<Membership<u64, EmptyNode>> {
        let configs = self.list(|reader| Some(reader.list(Reader::number)?.into_iter().collect::<BTreeSet<u64>>()))?;
        let nodes = self.list(Reader::number)?;
        let nodes: BTreeMap<u64, EmptyNode> = nodes.into_iter().map(|id| (id, EmptyNode {})).collect();
        if configs.is_empty() {
            return Some(Membership::default());
        }
        Membership::new(configs, nodes).ok()
    }

    /// Who votes, by which entry.
    pub fn members(&mut self) -> Option<Members> {
        Some(Members::new(self.option(Reader::log_id)?, self.membership()?))
    }

    /// What a snapshot stands for.
    pub fn snapshot_meta(&mut self) -> Option<SnapshotMeta> {
        Some(SnapshotMeta { last_log_id: self.option(Reader::log_id)?, last_membership: self.members()? })
    }

    /// Id, kind and content of an entry.
    pub fn entry(&mut self) -> Option<Entry> {
        let log_id = self.log_id()?;
        let payload = match self.byte()? {
            0 => EntryPayload::Blank,
            1 => EntryPayload::Normal(Command(self.number()?)),
            2 => EntryPayload::Membership(self.membership()?),
            _ => return None,
        };
        Some(Entry { log_id, payload })
    }
}
