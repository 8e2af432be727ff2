//! What a member is told, and what it asks of the world.

use std::collections::BTreeSet;

use control::{Command, Outcome};

/// What happened outside.
#[derive(Clone, Debug)]
pub enum Event {
    /// Every write up to this one survives a power cut.
    Durable {
        /// Of the last one that does.
        ordinal: u64,
    },
    /// A write or a sync failed. It is never tried again: what the disk has now nobody knows.
    WriteFailed {
        /// For whoever reads why the member stopped.
        reason: String,
    },
    /// Bytes of another manager came. Its connection has seen to it that it is that manager, of this cluster.
    Received {
        /// From whom.
        from: u64,
        /// What.
        frame: Vec<u8>,
    },
    /// Somebody wants something; [`Effect::Answered`] with the same token follows.
    Proposed {
        /// Chosen by who asks; no other proposal under way has it.
        token: u64,
        /// What.
        proposal: Proposal,
    },
    /// Who leads was found to be gone, by other means than its silence. Another one is believed from now on, should it ask for votes;
    /// whether anybody has more votes than one is asked before anything changes.
    LeaderGone {
        /// Who: nothing happens if somebody else leads by now.
        leader: u64,
        /// This member stands for election.
        stands: bool,
    },
    /// Finish: who waits is answered, and nothing else is done any more.
    Stop,
}

/// What a member can be asked for.
#[derive(Clone, Debug)]
pub enum Proposal {
    /// Begin a group of these voters; this member is one of them, and none of them ever agreed on anything.
    Begin(BTreeSet<u64>),
    /// Agree on a command.
    Agree(Command),
    /// Read: answered when this member's table has everything that was acknowledged to anybody before now.
    Read,
    /// Exactly these vote from now on; those who did not listen before do so first, and who votes no more goes on listening.
    Voters(BTreeSet<u64>),
    /// Hand over to a member; answered when that was begun.
    HandOver(u64),
}

/// What came of a proposal.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The command is agreed and applied.
    Agreed {
        /// Index of its entry.
        index: u64,
        /// What the table said.
        outcome: Outcome,
    },
    /// The table may be read now.
    Readable {
        /// Index of the last entry in it.
        index: u64,
    },
    /// Done, or, with a hand-over, begun.
    Done,
}

/// Why nothing is known to have come of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// This member does not lead, or could not show that it still does. Nothing happened.
    Elsewhere {
        /// Who leads, as far as it knows.
        leader: Option<u64>,
    },
    /// It may have happened, or happen yet: ask the table.
    Unknown,
    /// Too many proposals are under way. Nothing happened.
    Busy,
    /// It is not possible. Nothing happened.
    Refused(String),
}

/// What a member asks of the world. Writes are performed in the order of their ordinals, each synced before
/// [`Event::Durable`] names it.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Write into the log's file, which has room there, and sync it.
    Write {
        /// Its number.
        ordinal: u64,
        /// Where, bytes from the begin.
        offset: u64,
        /// Whole groups.
        bytes: Vec<u8>,
    },
    /// A new log's file: written, synced, renamed over the old one, the directory synced. Later writes go to it.
    ReplaceLog {
        /// Its number.
        ordinal: u64,
        /// The new content.
        bytes: Vec<u8>,
    },
    /// A new snapshot's file, in the same way.
    ReplaceSnapshot {
        /// Its number.
        ordinal: u64,
        /// The new content.
        bytes: Vec<u8>,
    },
    /// Send a frame; it may be lost, doubled or late.
    Send {
        /// To whom.
        to: u64,
        /// What.
        frame: Vec<u8>,
    },
    /// A proposal ended.
    Answered {
        /// Which.
        token: u64,
        /// How.
        result: Result<Answer, Refusal>,
    },
    /// This member's view is another one.
    Changed(View),
    /// The member has fallen silent, and does nothing any more: it is to be dropped, and may be started again on what the disk
    /// holds.
    Failed {
        /// Why.
        reason: String,
    },
}

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Is sent entries, and does not vote.
    Listener,
    /// Votes.
    Follower,
    /// Wants to lead.
    Candidate,
    /// Was elected. Whether it still leads only a read or a command that was answered shows.
    Leader,
}

/// What a member thinks the group is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Itself.
    pub role: Role,
    /// The term it is in.
    pub term: u64,
    /// Who leads that term, if it knows.
    pub leader: Option<u64>,
    /// Who votes: one set, or two while that changes; as its log has it, agreed or not.
    pub voters: Vec<BTreeSet<u64>>,
    /// Index of the entry that says so; 0 if there is none.
    pub voters_index: u64,
    /// The version of its table: the index of the last command that changed it.
    pub version: u64,
}
