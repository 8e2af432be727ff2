//! The library's view of the other nodes: a question each, and an answer in time or none.

use std::future::Future;
use std::rc::Rc;

use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse,
    VoteRequest, VoteResponse,
};
use openraft::{AnyError, EmptyNode, OptionalSend, RaftNetworkFactory, RaftNetworkV2};

use crate::frame::{Answer, Request};
use crate::outbox::{Outbox, Plant};
use crate::types::{LogId, Types, Vote};

type Snapshot = openraft::type_config::alias::SnapshotOf<Types, Vec<u8>>;

/// Makes links.
pub struct Links(pub Rc<Outbox>);

/// The way to one node.
pub struct Link {
    to: u64,
    outbox: Rc<Outbox>,
}

impl RaftNetworkFactory<Types> for Links {
    type Network = Link;

    async fn new_client(&mut self, to: u64, _: &EmptyNode) -> Link {
        Link { to, outbox: self.0.clone() }
    }
}

fn no_answer() -> NetworkError<Types> {
    NetworkError::new(&AnyError::error("no answer in time"))
}

/// A leader that was replaced may still be sending, and what it then takes from the store is a snapshot of its successor. The
/// library's other end panics at that, so it is neither sent nor taken.
pub fn is_of_later_term(vote: &Vote, last: Option<LogId>) -> bool {
    last.is_some_and(|last| last.committed_leader_id().term > vote.leader_id.term)
}

impl Link {
    async fn ask<T>(
        &self,
        request: Request,
        option: &RPCOption,
        take: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<T, NetworkError<Types>> {
        let answer = self.outbox.ask(self.to, request, option.hard_ttl()).await;
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
        let take = |answer| if let Answer::Append(answer) = answer { Some(answer) } else { None };
        Ok(self.ask(Request::Append(rpc), &option, take).await?)
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        let take = |answer| if let Answer::Vote(answer) = answer { Some(answer) } else { None };
        Ok(self.ask(Request::Vote(rpc), &option, take).await?)
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        let take = |answer| if let Answer::PreVote(answer) = answer { Some(answer) } else { None };
        Ok(self.ask(Request::PreVote(rpc), &option, take).await?)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        if is_of_later_term(&vote, snapshot.meta.last_log_id) && self.outbox.plant != Plant::LaterSnapshots {
            return Err(no_answer().into());
        }
        let take = |answer| if let Answer::Snapshot(answer) = answer { Some(answer) } else { None };
        let request = Request::Snapshot(vote, snapshot.meta, snapshot.snapshot);
        Ok(self.ask(request, &option, take).await?)
    }

    async fn transfer_leader(
        &mut self,
        rpc: TransferLeaderRequest<Types>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<Types>, RPCError<Types>> {
        let take = |answer| if let Answer::Transfer(answer) = answer { Some(answer) } else { None };
        Ok(self.ask(Request::Transfer(rpc), &option, take).await?)
    }
}
