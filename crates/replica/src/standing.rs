//! How the links of an instance stand: what ROLE and INFO tell.

use base::{InstanceName, LogOrdinal};

use crate::follow::Follow;
use crate::lead::Lead;
use crate::links::{Contact, Links};
use crate::peer::Side;

/// A link to a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadStanding {
    /// Who follows.
    pub to: InstanceName,
    /// It holds everything that it is to hold, whole.
    pub is_whole: bool,
    /// Whether there is a connection.
    pub is_connected: bool,
    /// It has everything up to this log group.
    pub has_until: LogOrdinal,
    /// How long it has not said anything while something was on its way, microseconds.
    pub silent_us: u64,
    /// It said that it has no room for more.
    pub is_full: bool,
    /// Bytes that went and that it has not said to have, or that are to go.
    pub backlog_bytes: usize,
}

/// A link from who is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowStanding {
    /// Who is first.
    pub from: InstanceName,
    /// Whether there is a connection.
    pub is_connected: bool,
    /// Frames taken in this life of the link.
    pub taken: u64,
    /// Since it said something, microseconds; `None`: it never did.
    pub silent_us: Option<u64>,
}

/// What followers were filled with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fills {
    /// Keys that a follower had already, as they are.
    pub kept_keys: u64,
    /// Copies of keys that were sent.
    pub sent_keys: u64,
}

impl Links {
    /// What followers of this instance were filled with since its start.
    pub fn fills(&self) -> Fills {
        self.fills
    }

    /// The links to followers.
    pub fn lead_standings(&self) -> impl Iterator<Item = LeadStanding> {
        let is_connected = |contact: &Contact| matches!(contact, Contact::Going { .. });
        self.leads.iter().map(move |(lead, contact)| self.lead_standing(lead, is_connected(contact)))
    }

    fn lead_standing(&self, lead: &Lead, is_connected: bool) -> LeadStanding {
        let has_until = lead.passed();
        let is_behind = has_until < self.considered;
        LeadStanding {
            to: lead.to(),
            is_whole: lead.is_whole(),
            is_connected,
            has_until,
            silent_us: if is_behind { self.now_us.saturating_sub(lead.heard_us) } else { 0 },
            is_full: lead.is_full,
            backlog_bytes: lead.backlog_bytes(),
        }
    }

    /// The links from those that are first.
    pub fn follow_standings(&self) -> impl Iterator<Item = FollowStanding> {
        self.follows.iter().enumerate().map(|(number, follow)| self.follow_standing(number, follow))
    }

    fn follow_standing(&self, number: usize, follow: &Follow) -> FollowStanding {
        FollowStanding {
            from: follow.from(),
            is_connected: self.peers.iter().any(|peer| peer.side == Side::Follow(number)),
            taken: follow.taken(),
            silent_us: follow.heard_us.map(|heard_us| self.now_us.saturating_sub(heard_us)),
        }
    }
}
