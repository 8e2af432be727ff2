//! Questions of other members, answered by the library; and what is kept from it because it does not stand it.

use base::planted::{Bug, is_planted};
use openraft::async_runtime::Mutex;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse};

use super::convert::{
    appended, ballot, library_append, library_id, library_snapshot, library_take_over, library_vote,
    library_vote_request, voted,
};
use super::links::is_of_later_term;
use super::types::Raft;
use crate::format::entry::{Ballot, Content, EntryId};
use crate::format::frame::{Answer, Question};
use crate::format::snapshot_file::Snapshot;
use crate::host::channel::mutex::HostMutex;
use control::{Command, Table};

/// Whether everything in it is something that `control` can read.
pub fn is_readable(question: &Question) -> bool {
    match question {
        Question::Append(append) => append.entries.iter().all(|entry| match &entry.content {
            Content::Command(command) => Command::decode(command).is_ok(),
            Content::Blank | Content::Voters(_) => true,
        }),
        Question::Snapshot(_, snapshot) => Table::decode(&snapshot.table).is_ok(),
        Question::Vote(_) | Question::PreVote(_) | Question::TakeOver { .. } => true,
    }
}

/// What changes the log takes turns: nothing may be appended between the question whether a snapshot is known already and its
/// installation.
pub type Turns = HostMutex<()>;

/// `None` when there is no answer: who asked will ask again.
pub async fn serve(raft: &Raft, turns: &Turns, question: Question) -> Option<Answer> {
    Some(match question {
        Question::Append(append) => {
            let _turn = turns.lock().await;
            Answer::Appended(appended(&raft.append_entries(library_append(&append)).await.ok()?))
        }
        Question::Vote(wanted) => Answer::Voted(voted(&raft.vote(library_vote_request(&wanted)).await.ok()?)),
        Question::PreVote(wanted) => Answer::PreVoted(voted(&raft.pre_vote(library_vote_request(&wanted)).await.ok()?)),
        Question::Snapshot(ballot, snapshot) => {
            let _turn = turns.lock().await;
            Answer::Installed(install(raft, ballot, snapshot).await?)
        }
        Question::TakeOver { ballot, to, last } => {
            let result = raft.handle_transfer_leader(library_take_over(ballot, to, last)).await.ok()?;
            Answer::TakenOver(result.is_ok())
        }
    })
}

async fn install(raft: &Raft, leader: Ballot, snapshot: Snapshot) -> Option<Ballot> {
    if is_of_later_term(leader, snapshot.last) {
        return None;
    }
    if !is_planted(Bug::M43InnerSnapshotTaken)
        && let Some(answer) = known_already(raft, leader, snapshot.last).await
    {
        return Some(answer);
    }
    let installed = raft.install_full_snapshot(library_vote(leader), library_snapshot(snapshot)).await.ok()?;
    Some(ballot(&installed.vote))
}

/// A snapshot that ends inside the log is nothing new, and the library's cursor of submitted writes goes back when it is
/// installed (its own assertion says so). An empty append at its end asks the same: is the log right up to here?
async fn known_already(raft: &Raft, leader: Ballot, last: Option<EntryId>) -> Option<Ballot> {
    let last = last.map(library_id);
    let vote = library_vote(leader);
    let append = AppendEntriesRequest { vote, prev_log_id: last, entries: Vec::new(), leader_commit: last };
    match raft.append_entries(append).await.ok()? {
        AppendEntriesResponse::Success => Some(leader),
        AppendEntriesResponse::HigherVote(vote) => Some(ballot(&vote)),
        AppendEntriesResponse::Conflict | AppendEntriesResponse::PartialSuccess(_) => None,
    }
}
