//! Who leads is gone, as somebody else found: the library itself knows silence only.

use openraft::async_runtime::WatchReceiver;
use openraft::raft::TransferLeaderRequest;

use super::types::Raft;

/// The library refuses its vote to others for a time after it heard who leads, and asks nobody for theirs. A hand-over ends that time,
/// and one to who leads does nothing else. Standing begins with the question who would vote for this member: whoever has not
/// found out yet would not, and nothing has changed.
pub async fn succeed(raft: &Raft, leader: u64, stands: bool) {
    let vote = {
        let metrics = raft.metrics();
        let metrics = metrics.borrow_watched();
        if metrics.current_leader != Some(leader) {
            return;
        }
        metrics.vote
    };
    let is_left = raft.handle_transfer_leader(TransferLeaderRequest::new(vote, leader, None)).await;
    if stands && is_left.is_ok() {
        // What comes of it is told by who leads then.
        drop(raft.trigger().elect(true).await);
    }
}
