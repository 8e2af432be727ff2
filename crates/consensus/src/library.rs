//! What the library is given, and what it gives: nobody outside knows its types.
//!
//! | file | owns |
//! |---|---|
//! | `types` | which parts of the library are chosen |
//! | `convert` | its types from ours, and back |
//! | `options` | its settings |
//! | `store` | its view of the log |
//! | `machine` | its view of the table |
//! | `links` | its view of the other members |
//! | `serve` | questions of others, answered by it |
//! | `fulfil` | proposals, fulfilled by it |
//! | `succeed` | what it does when who leads is gone |

pub mod convert;
pub mod fulfil;
pub mod links;
pub mod machine;
pub mod options;
pub mod serve;
pub mod store;
pub mod succeed;
pub mod types;

use openraft::ServerState;
use openraft::async_runtime::WatchReceiver;

use crate::event::{Role, View};
use types::Raft;

/// What the library says of itself; the reason if it has stopped.
pub fn view(raft: &Raft, version: u64) -> (View, Option<String>) {
    let metrics = raft.metrics();
    let metrics = metrics.borrow_watched();
    let role = match metrics.state {
        ServerState::Learner => Role::Listener,
        ServerState::Follower => Role::Follower,
        ServerState::Candidate => Role::Candidate,
        ServerState::Leader => Role::Leader,
        ServerState::Shutdown => Role::Listener,
    };
    let view = View {
        role,
        term: metrics.current_term,
        leader: metrics.current_leader,
        voters: metrics.membership_config.membership().get_joint_config().clone(),
        voters_index: metrics.membership_config.log_id().map_or(0, |id| id.index()),
        version,
    };
    (view, metrics.running_state.as_ref().err().map(|error| format!("{error:?}")))
}
