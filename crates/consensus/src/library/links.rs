//! The library's view of the other members: a question each, and an answer in time or none.

use std::future::Future;
use std::rc::Rc;

use base::planted::{Bug, is_planted};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::{AnyError, EmptyNode, OptionalSend, RaftNetworkFactory, RaftNetworkV2};

use super::convert::{
    append, ballot, library_appended, library_installed, library_voted, snapshot, take_over, vote_wanted,
};
use super::types::{LibrarySnapshot, Types, Vote};
use crate::format::entry::{Ballot, EntryId};
use crate::format::frame::{Answer, Question};
use crate::post::Post;

/// Makes links.
pub struct Links(pub Rc<Post>);

/// The way to one member.
pub struct Link {
    to: u64,
    post: Rc<Post>,
}

impl RaftNetworkFactory<Types> for Links {
    type Network = Link;

    async fn new_client(&mut self, to: u64, _: &EmptyNode) -> Link {
        Link { to, post: self.0.clone() }
    }
}

fn no_answer() -> NetworkError<Types> {
    NetworkError::new(&AnyError::error("no answer in time"))
}

/// A leader that was replaced may still be sending, and what it then takes from the store is a snapshot of its successor. The
/// library's other end panics at that, so it is neither sent nor taken.
pub fn is_of_later_term(ballot: Ballot, last: Option<EntryId>) -> bool {
    last.is_some_and(|last| last.term > ballot.term) && !is_planted(Bug::M44LaterSnapshotTaken)
}

impl Link {
    async fn ask<T>(
        &self,
        question: Question,
        option: &RPCOption,
        take: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<T, NetworkError<Types>> {
        let answer = self.post.ask(self.to, &question, option.hard_ttl()).await;
        answer.and_then(take).ok_or_else(no_answer)
    }
}

impl RaftNetworkV2<Types> for Link {
    type SnapshotData = Vec<u8>;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        let take = |answer| if let Answer::Appended(answer) = answer { Some(library_appended(answer)) } else { None };
        Ok(self.ask(append(&rpc), &option, take).await?)
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        let take = |answer| if let Answer::Voted(answer) = answer { Some(library_voted(&answer)) } else { None };
        Ok(self.ask(Question::Vote(vote_wanted(&rpc)), &option, take).await?)
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        let take = |answer| if let Answer::PreVoted(answer) = answer { Some(library_voted(&answer)) } else { None };
        Ok(self.ask(Question::PreVote(vote_wanted(&rpc)), &option, take).await?)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        newest: LibrarySnapshot,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let (ballot, snapshot) = (ballot(&vote), snapshot(&newest.meta, newest.snapshot));
        if is_of_later_term(ballot, snapshot.last) {
            return Err(no_answer().into());
        }
        let take = |answer| if let Answer::Installed(answer) = answer { Some(library_installed(answer)) } else { None };
        Ok(self.ask(Question::Snapshot(ballot, snapshot), &option, take).await?)
    }

    async fn transfer_leader(
        &mut self,
        rpc: TransferLeaderRequest<Types>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RPCError<Types>> {
        // The library does not export its reasons to refuse: who asks a member that refuses sees no answer.
        let take = |answer| if answer == Answer::TakenOver(true) { Some(Ok(())) } else { None };
        Ok(self.ask(take_over(&rpc), &option, take).await?)
    }
}
