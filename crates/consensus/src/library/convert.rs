//! The library's types from ours, and back.

use std::collections::{BTreeMap, BTreeSet};

use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, VoteRequest, VoteResponse,
};
use openraft::{EmptyNode, EntryPayload, Membership};

use super::types::{Command, LibraryEntry, LibrarySnapshot, LogId, Members, SnapshotMeta, Types, Vote, log_id};
use crate::format::entry::{Ballot, Content, Entry, EntryId, Voters, VotersSince};
use crate::format::frame::{Append, Appended, Question, VoteWanted, Voted};
use crate::format::snapshot_file::Snapshot;

/// Ours.
pub fn entry_id(id: LogId) -> EntryId {
    EntryId { term: **id.committed_leader_id(), index: id.index() }
}

/// The library's.
pub fn library_id(id: EntryId) -> LogId {
    log_id(id.term, id.index)
}

/// Ours.
pub fn ballot(vote: &Vote) -> Ballot {
    Ballot { term: vote.leader_id.term, candidate: vote.leader_id.voted_for, won: vote.committed }
}

/// The library's.
pub fn library_vote(ballot: Ballot) -> Vote {
    let mut vote = Vote::new(ballot.term, ballot.candidate);
    vote.committed = ballot.won;
    vote
}

/// Ours.
pub fn voters(membership: &Membership<u64, EmptyNode>) -> Voters {
    Voters {
        sets: membership.get_joint_config().clone(),
        listeners: membership.nodes().map(|(id, _)| *id).collect::<BTreeSet<u64>>(),
    }
}

/// The library's.
pub fn library_membership(voters: &Voters) -> Membership<u64, EmptyNode> {
    if voters.sets.is_empty() {
        return Membership::default();
    }
    let nodes: BTreeMap<u64, EmptyNode> = voters.listeners.iter().map(|id| (*id, EmptyNode {})).collect();
    Membership::new(voters.sets.clone(), nodes).expect("whoever votes listens")
}

/// The library's.
pub fn library_members(voters: &VotersSince) -> Members {
    Members::new(voters.since.map(library_id), library_membership(&voters.voters))
}

/// Ours.
pub fn entry(entry: &LibraryEntry) -> Entry {
    let content = match &entry.payload {
        EntryPayload::Blank => Content::Blank,
        EntryPayload::Normal(command) => Content::Command(command.0.clone()),
        EntryPayload::Membership(membership) => Content::Voters(voters(membership)),
    };
    Entry { id: entry_id(entry.log_id), content }
}

/// The library's.
pub fn library_entry(entry: &Entry) -> LibraryEntry {
    let payload = match &entry.content {
        Content::Blank => EntryPayload::Blank,
        Content::Command(command) => EntryPayload::Normal(Command(command.clone())),
        Content::Voters(voters) => EntryPayload::Membership(library_membership(voters)),
    };
    LibraryEntry { log_id: library_id(entry.id), payload }
}

/// Ours.
pub fn snapshot(meta: &SnapshotMeta, table: Vec<u8>) -> Snapshot {
    let since = meta.last_membership.log_id().map(entry_id);
    let voters = VotersSince { since, voters: voters(meta.last_membership.membership()) };
    Snapshot { last: meta.last_log_id.map(entry_id), voters, table }
}

/// The library's.
pub fn library_snapshot(snapshot: Snapshot) -> LibrarySnapshot {
    let last_membership = library_members(&snapshot.voters);
    let meta = SnapshotMeta { last_log_id: snapshot.last.map(library_id), last_membership };
    LibrarySnapshot { meta, snapshot: snapshot.table }
}

/// Ours.
pub fn append(request: &AppendEntriesRequest<Types>) -> Question {
    Question::Append(Append {
        ballot: ballot(&request.vote),
        before: request.prev_log_id.map(entry_id),
        agreed: request.leader_commit.map(entry_id),
        entries: request.entries.iter().map(entry).collect(),
    })
}

/// The library's.
pub fn library_append(append: &Append) -> AppendEntriesRequest<Types> {
    AppendEntriesRequest {
        vote: library_vote(append.ballot),
        prev_log_id: append.before.map(library_id),
        leader_commit: append.agreed.map(library_id),
        entries: append.entries.iter().map(library_entry).collect(),
    }
}

/// Ours.
pub fn appended(response: &AppendEntriesResponse<Types>) -> Appended {
    match response {
        AppendEntriesResponse::Success => Appended::Yes,
        AppendEntriesResponse::PartialSuccess(last) => Appended::UpTo(last.map(entry_id)),
        AppendEntriesResponse::Conflict => Appended::Other,
        AppendEntriesResponse::HigherVote(vote) => Appended::Later(ballot(vote)),
    }
}

/// The library's.
pub fn library_appended(appended: Appended) -> AppendEntriesResponse<Types> {
    match appended {
        Appended::Yes => AppendEntriesResponse::Success,
        Appended::UpTo(last) => AppendEntriesResponse::PartialSuccess(last.map(library_id)),
        Appended::Other => AppendEntriesResponse::Conflict,
        Appended::Later(ballot) => AppendEntriesResponse::HigherVote(library_vote(ballot)),
    }
}

/// Ours.
pub fn vote_wanted(request: &VoteRequest<Types>) -> VoteWanted {
    VoteWanted {
        ballot: ballot(&request.vote),
        last: request.last_log_id.map(entry_id),
        is_hand_over: request.leadership_transfer,
    }
}

/// The library's.
pub fn library_vote_request(wanted: &VoteWanted) -> VoteRequest<Types> {
    let mut request = VoteRequest::new(library_vote(wanted.ballot), wanted.last.map(library_id));
    request.leadership_transfer = wanted.is_hand_over;
    request
}

/// Ours.
pub fn voted(response: &VoteResponse<Types>) -> Voted {
    Voted {
        ballot: ballot(&response.vote),
        is_granted: response.vote_granted,
        last: response.last_log_id.map(entry_id),
    }
}

/// The library's.
pub fn library_voted(voted: &Voted) -> VoteResponse<Types> {
    VoteResponse::new(library_vote(voted.ballot), voted.last.map(library_id), voted.is_granted)
}

/// The library's.
pub fn library_installed(ballot: Ballot) -> SnapshotResponse<Types> {
    SnapshotResponse::new(library_vote(ballot))
}

/// Ours.
pub fn take_over(request: &TransferLeaderRequest<Types>) -> Question {
    Question::TakeOver {
        ballot: ballot(request.from_leader()),
        to: *request.to_node_id(),
        last: request.last_log_id().copied().map(entry_id),
    }
}

/// The library's.
pub fn library_take_over(from: Ballot, to: u64, last: Option<EntryId>) -> TransferLeaderRequest<Types> {
    TransferLeaderRequest::new(library_vote(from), to, last.map(library_id))
}
