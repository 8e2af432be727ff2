//! What nodes send each other: a request with a number, or the answer to one.
//!
//! ```text
//!  frame    = number:u64  kind:u8  body
//!  kind     = request 1..=5, its answer 128 + the same
//! ```

use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};

use crate::bytes::{Reader, Writer};
use crate::types::{SnapshotMeta, Types, Vote};

/// What is asked of a node.
pub enum Request {
    /// Entries of a leader, or none as a sign of life.
    Append(AppendEntriesRequest<Types>),
    /// Would you, and do you, vote for me?
    Vote(VoteRequest<Types>),
    /// Would you vote for me?
    PreVote(VoteRequest<Types>),
    /// A whole snapshot of a leader.
    Snapshot(Vote, SnapshotMeta, Vec<u8>),
    /// Take over.
    Transfer(TransferLeaderRequest<Types>),
}

/// What it answers.
pub enum Answer {
    /// To [`Request::Append`].
    Append(AppendEntriesResponse<Types>),
    /// To [`Request::Vote`].
    Vote(VoteResponse<Types>),
    /// To [`Request::PreVote`].
    PreVote(VoteResponse<Types>),
    /// To [`Request::Snapshot`].
    Snapshot(SnapshotResponse<Types>),
    /// To [`Request::Transfer`].
    Transfer(TransferLeaderResponse<Types>),
}

/// A request, or the answer to one.
pub enum Body {
    /// Asked.
    Request(Request),
    /// Answered.
    Answer(Answer),
}

const ANSWER: u8 = 128;

/// Names of the kinds, for the trace.
pub fn kind_name(kind: u8) -> &'static str {
    const NAMES: [[&str; 6]; 2] = [
        ["?", "append", "vote", "pre-vote", "snapshot", "transfer"],
        ["?", "appended", "voted", "pre-voted", "installed", "transferring"],
    ];
    NAMES[usize::from(kind >= ANSWER)].get(usize::from(kind % ANSWER)).copied().unwrap_or("?")
}

/// The kind of a frame.
pub fn kind_of(frame: &[u8]) -> u8 {
    frame.get(8).copied().unwrap_or(0)
}

/// The frame of a request.
pub fn encode_request(number: u64, request: &Request) -> Vec<u8> {
    let mut to = Writer::default();
    to.number(number);
    match request {
        Request::Append(append) => {
            to.byte(1);
            to.vote(&append.vote);
            to.option(append.prev_log_id, Writer::log_id);
            to.option(append.leader_commit, Writer::log_id);
            to.number(append.entries.len() as u64);
            append.entries.iter().for_each(|entry| to.entry(entry));
        }
        Request::Vote(vote) => {
            to.byte(2);
            vote_request(&mut to, vote);
        }
        Request::PreVote(vote) => {
            to.byte(3);
            vote_request(&mut to, vote);
        }
        Request::Snapshot(vote, meta, bytes) => {
            to.byte(4);
            to.vote(vote);
            to.snapshot_meta(meta);
            to.bytes(bytes);
        }
        Request::Transfer(transfer) => {
            to.byte(5);
            to.vote(transfer.from_leader());
            to.number(*transfer.to_node_id());
            to.option(transfer.last_log_id().copied(), Writer::log_id);
        }
    }
    to.0
}

fn vote_request(to: &mut Writer, vote: &VoteRequest<Types>) {
    to.vote(&vote.vote);
    to.option(vote.last_log_id, Writer::log_id);
    to.truth(vote.leadership_transfer);
}

/// The frame of an answer.
pub fn encode_answer(number: u64, answer: &Answer) -> Vec<u8> {
    let mut to = Writer::default();
    to.number(number);
    match answer {
        Answer::Append(appended) => {
            to.byte(ANSWER + 1);
            match appended {
                AppendEntriesResponse::Success => to.byte(0),
                AppendEntriesResponse::PartialSuccess(last) => {
                    to.byte(1);
                    to.option(*last, Writer::log_id);
                }
                AppendEntriesResponse::Conflict => to.byte(2),
                AppendEntriesResponse::HigherVote(vote) => {
                    to.byte(3);
                    to.vote(vote);
                }
            }
        }
        Answer::Vote(voted) => {
            to.byte(ANSWER + 2);
            vote_response(&mut to, voted);
        }
        Answer::PreVote(voted) => {
            to.byte(ANSWER + 3);
            vote_response(&mut to, voted);
        }
        Answer::Snapshot(installed) => {
            to.byte(ANSWER + 4);
            to.vote(&installed.vote);
        }
        Answer::Transfer(result) => {
            to.byte(ANSWER + 5);
            to.truth(result.is_ok());
        }
    }
    to.0
}

fn vote_response(to: &mut Writer, voted: &VoteResponse<Types>) {
    to.vote(&voted.vote);
    to.truth(voted.vote_granted);
    to.option(voted.last_log_id, Writer::log_id);
}

/// What a frame says; `None` when it is none.
pub fn decode(frame: &[u8]) -> Option<(u64, Body)> {
    let mut from = Reader(frame);
    let number = from.number()?;
    let kind = from.byte()?;
    let body = if kind < ANSWER {
        Body::Request(decode_request(kind, &mut from)?)
    } else {
        Body::Answer(decode_answer(kind - ANSWER, &mut from)?)
    };
    from.0.is_empty().then_some((number, body))
}

fn decode_request(kind: u8, from: &mut Reader) -> Option<Request> {
    Some(match kind {
        1 => Request::Append(AppendEntriesRequest {
            vote: from.vote()?,
            prev_log_id: from.option(Reader::log_id)?,
            leader_commit: from.option(Reader::log_id)?,
            entries: from.list(Reader::entry)?,
        }),
        2 => Request::Vote(decode_vote_request(from)?),
        3 => Request::PreVote(decode_vote_request(from)?),
        4 => Request::Snapshot(from.vote()?, from.snapshot_meta()?, from.bytes()?.to_vec()),
        5 => {
            let (leader, to) = (from.vote()?, from.number()?);
            Request::Transfer(TransferLeaderRequest::new(leader, to, from.option(Reader::log_id)?))
        }
        _ => return None,
    })
}

fn decode_vote_request(from: &mut Reader) -> Option<VoteRequest<Types>> {
    let mut request = VoteRequest::new(from.vote()?, from.option(Reader::log_id)?);
    request.leadership_transfer = from.truth()?;
    Some(request)
}

fn decode_vote_response(from: &mut Reader) -> Option<VoteResponse<Types>> {
    let (vote, granted) = (from.vote()?, from.truth()?);
    Some(VoteResponse::new(vote, from.option(Reader::log_id)?, granted))
}

fn decode_answer(kind: u8, from: &mut Reader) -> Option<Answer> {
    Some(match kind {
        1 => Answer::Append(match from.byte()? {
            0 => AppendEntriesResponse::Success,
            1 => AppendEntriesResponse::PartialSuccess(from.option(Reader::log_id)?),
            2 => AppendEntriesResponse::Conflict,
            3 => AppendEntriesResponse::HigherVote(from.vote()?),
            _ => return None,
        }),
        2 => Answer::Vote(decode_vote_response(from)?),
        3 => Answer::PreVote(decode_vote_response(from)?),
        4 => Answer::Snapshot(SnapshotResponse::new(from.vote()?)),
        // The library does not export its reasons to refuse: a refusal can be sent, but not be made of bytes.
        5 => from.truth()?.then_some(Answer::Transfer(Ok(())))?,
        _ => return None,
    })
}
