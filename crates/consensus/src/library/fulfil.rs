//! Proposals, fulfilled by the library.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use base::limits::{COMMAND_BYTES_MAX, MANAGERS_MAX};
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ClientWriteError, ForwardToLeader, LinearizableReadError, RaftError};
use openraft::{EmptyNode, ReadPolicy};

use super::machine::Machine;
use super::types::{Command, Raft, Types};
use crate::event::{Answer, Proposal, Refusal};

/// Do what is proposed, or say why not.
pub async fn fulfil(raft: &Raft, machine: &Machine, proposal: Proposal) -> Result<Answer, Refusal> {
    match proposal {
        Proposal::Begin(voters) => begin(raft, voters).await,
        Proposal::Agree(command) => {
            let bytes = command.encode();
            if bytes.len() > COMMAND_BYTES_MAX {
                return Err(Refusal::Refused(format!("a command of more than {COMMAND_BYTES_MAX} bytes")));
            }
            let done = raft.client_write(Command(bytes.into())).await.map_err(of_write)?;
            let outcome = done.data.outcome.expect("a command's answer is what the table said");
            Ok(Answer::Agreed { index: done.data.index, outcome })
        }
        Proposal::Read => {
            raft.ensure_linearizable(ReadPolicy::ReadIndex).await.map_err(of_read)?;
            machine.applied().map(|index| Answer::Readable { index }).ok_or(Refusal::Elsewhere { leader: None })
        }
        Proposal::Voters(voters) => change(raft, voters).await,
        Proposal::HandOver(to) => {
            raft.trigger().transfer_leader(to).await.map(|()| Answer::Done).map_err(|_| stopped())
        }
    }
}

async fn begin(raft: &Raft, voters: BTreeSet<u64>) -> Result<Answer, Refusal> {
    if too_many(voters.len()) {
        return Err(Refusal::Refused(format!("more than {MANAGERS_MAX} members")));
    }
    let nodes: BTreeMap<u64, EmptyNode> = voters.into_iter().map(|id| (id, EmptyNode {})).collect();
    match raft.initialize(nodes).await {
        Ok(()) => Ok(Answer::Done),
        Err(RaftError::Fatal(_)) => Err(stopped()),
        Err(RaftError::APIError(error)) => Err(refused(&error)),
    }
}

/// Whoever is new listens first, so that the change does not wait for a log that is still on its way. Who votes no more goes on
/// listening: a leader that is in the group no more, and is asked for another change, panics inside the library.
async fn change(raft: &Raft, voters: BTreeSet<u64>) -> Result<Answer, Refusal> {
    let listeners = listeners(raft);
    if too_many(listeners.union(&voters).count()) {
        return Err(Refusal::Refused(
            "more members, those that only listen included, than a group may have".to_owned(),
        ));
    }
    for id in voters.difference(&listeners) {
        raft.add_learner(*id, EmptyNode {}, false).await.map_err(of_write)?;
    }
    raft.change_membership(voters, true).await.map(|_| Answer::Done).map_err(of_write)
}

fn listeners(raft: &Raft) -> BTreeSet<u64> {
    raft.metrics().borrow_watched().membership_config.nodes().map(|(id, _)| *id).collect()
}

/// A group of more could not be read back.
fn too_many(members: usize) -> bool {
    members > MANAGERS_MAX
}

fn of_write(error: RaftError<Types, ClientWriteError<Types>>) -> Refusal {
    match error {
        RaftError::APIError(ClientWriteError::ForwardToLeader(forward)) => elsewhere(&forward),
        RaftError::APIError(ClientWriteError::LogEntryDiscarded(_)) | RaftError::Fatal(_) => Refusal::Unknown,
        RaftError::APIError(error) => refused(&error),
    }
}

/// A read that could not be made sure of changed nothing.
fn of_read(error: RaftError<Types, LinearizableReadError<Types>>) -> Refusal {
    match error {
        RaftError::APIError(LinearizableReadError::ForwardToLeader(forward)) => elsewhere(&forward),
        RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)) | RaftError::Fatal(_) => {
            Refusal::Elsewhere { leader: None }
        }
    }
}

fn elsewhere(forward: &ForwardToLeader<Types>) -> Refusal {
    Refusal::Elsewhere { leader: forward.leader_id }
}

fn refused(error: &dyn Debug) -> Refusal {
    Refusal::Refused(format!("{error:?}"))
}

fn stopped() -> Refusal {
    Refusal::Unknown
}
