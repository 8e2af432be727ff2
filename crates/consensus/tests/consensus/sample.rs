//! Values of every kind that is stored or sent, drawn from a seed.

use base::rng::Rng;
use consensus::format::entry::{Ballot, Content, Entry, EntryId, Voters, VotersSince};
use consensus::format::frame::{Answer, Append, Appended, Question, VoteWanted, Voted};
use consensus::format::log_file::{Group, LogWriter, Owner, Record};
use consensus::format::snapshot_file::Snapshot;

use crate::commands;

/// Whose files the samples are.
pub const OWNER: Owner = Owner { cluster: *b"a cluster's name", manager: 7 };

pub fn id(rng: &mut Rng) -> EntryId {
    EntryId { term: rng.below(1 << 40), index: rng.below(1 << 40) }
}

pub fn some_id(rng: &mut Rng) -> Option<EntryId> {
    rng.chance(2, 3).then(|| id(rng))
}

pub fn ballot(rng: &mut Rng) -> Ballot {
    Ballot { term: rng.below(1 << 40), candidate: rng.next_u64(), won: rng.chance(1, 2) }
}

pub fn voters(rng: &mut Rng) -> Voters {
    let sets: Vec<_> = (0..rng.below(3))
        .map(|_| (0..1 + rng.below(5)).map(|_| rng.below(8)).collect::<std::collections::BTreeSet<u64>>())
        .collect();
    let mut listeners: std::collections::BTreeSet<u64> = sets.iter().flatten().copied().collect();
    if rng.chance(1, 2) {
        listeners.insert(rng.below(20));
    }
    Voters { sets, listeners }
}

pub fn content(rng: &mut Rng) -> Content {
    match rng.below(4) {
        0 => Content::Blank,
        1 => Content::Voters(voters(rng)),
        _ => Content::Command(commands::draw(rng).encode().into()),
    }
}

pub fn record(rng: &mut Rng) -> Record {
    match rng.below(6) {
        0 => Record::Vote(ballot(rng)),
        1 => Record::Cut(some_id(rng)),
        2 => Record::Purged(id(rng)),
        3 => Record::Agreed(some_id(rng)),
        _ => Record::Entry(Entry { id: id(rng), content: content(rng) }),
    }
}

pub fn snapshot(rng: &mut Rng) -> Snapshot {
    let voters = VotersSince { since: some_id(rng), voters: voters(rng) };
    Snapshot { last: some_id(rng), voters, table: (0..rng.below(60)).map(|_| rng.next_u64() as u8).collect() }
}

fn append(rng: &mut Rng) -> Append {
    let before = some_id(rng);
    let first = before.map_or(0, |before| before.index + 1);
    let mut term = before.map_or(1, |before| before.term);
    let entries = (0..rng.below(6)).map(|at| {
        term += rng.below(2);
        Entry { id: EntryId { term, index: first + at }, content: content(rng) }
    });
    let entries: Vec<Entry> = entries.collect();
    let ballot = Ballot { term: term + rng.below(2), candidate: rng.next_u64(), won: true };
    Append { ballot, before, agreed: some_id(rng), entries }
}

pub fn question(rng: &mut Rng) -> Question {
    let wanted = |rng: &mut Rng| VoteWanted { ballot: ballot(rng), last: some_id(rng), is_hand_over: rng.chance(1, 2) };
    match rng.below(6) {
        0 => Question::Vote(wanted(rng)),
        1 => Question::PreVote(wanted(rng)),
        2 => Question::Snapshot(Ballot { won: true, ..ballot(rng) }, snapshot(rng)),
        3 => Question::TakeOver { ballot: ballot(rng), to: rng.next_u64(), last: some_id(rng) },
        _ => Question::Append(append(rng)),
    }
}

pub fn answer(rng: &mut Rng) -> Answer {
    let voted = |rng: &mut Rng| Voted { ballot: ballot(rng), is_granted: rng.chance(1, 2), last: some_id(rng) };
    match rng.below(8) {
        0 => Answer::Voted(voted(rng)),
        1 => Answer::PreVoted(voted(rng)),
        2 => Answer::Installed(ballot(rng)),
        3 => Answer::TakenOver(rng.chance(1, 2)),
        4 => Answer::Appended(Appended::Yes),
        5 => Answer::Appended(Appended::UpTo(some_id(rng))),
        6 => Answer::Appended(Appended::Other),
        _ => Answer::Appended(Appended::Later(ballot(rng))),
    }
}

/// A log's file: what it says, where its groups end, and up to where it was known to be synced when the last was sealed.
pub struct LogSample {
    pub bytes: Vec<u8>,
    pub records: Vec<Record>,
    /// End of each group, and how many records there are up to it; the file's birth first.
    pub ends: Vec<(usize, usize)>,
    pub synced: usize,
}

/// A file of `groups` groups behind its birth; each but the last two is known to be synced.
pub fn log(rng: &mut Rng, groups: usize) -> LogSample {
    let draw = |rng: &mut Rng| (0..1 + rng.below(3)).map(|_| record(rng)).collect::<Vec<Record>>();
    let group_of = |records: &[Record]| {
        let mut group = Group::default();
        records.iter().for_each(|record| group.add(record));
        group
    };
    let mut records = draw(rng);
    let (mut writer, mut bytes) = LogWriter::begin(&OWNER, 3, group_of(&records), 6000);
    let mut ends = vec![(writer.end() as usize, records.len())];
    let mut synced = writer.end() as usize;
    for number in 0..groups {
        let more = draw(rng);
        synced = ends[number.saturating_sub(1)].0;
        let (offset, sealed) = writer.seal(group_of(&more), synced as u64);
        bytes[offset as usize..][..sealed.len()].copy_from_slice(&sealed);
        records.extend(more);
        ends.push((writer.end() as usize, records.len()));
    }
    LogSample { bytes, records, ends, synced }
}
