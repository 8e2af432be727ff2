//! What a null server owes one connection, of either kind.

use super::NullPlan;
use super::long::{LongOwed, LongReplies};
use super::owed::{Owed, Replies};

/// What any connection can be sent.
#[derive(Debug)]
pub struct AllReplies {
    short: Replies,
    long: Option<LongReplies>,
}

impl AllReplies {
    /// The replies of `plan`.
    pub fn new(plan: &NullPlan) -> AllReplies {
        AllReplies { short: Replies::new(plan), long: plan.long.map(LongReplies::new) }
    }

    fn long(&self) -> &LongReplies {
        self.long.as_ref().expect("only who listens for long values accepts such a connection")
    }
}

/// See [`Owed`] and [`LongOwed`].
#[derive(Clone, Copy, Debug)]
pub enum Account {
    Short(Owed),
    Long(LongOwed),
}

impl Account {
    /// Of a new connection.
    pub fn new(is_long: bool) -> Account {
        if is_long { Account::Long(LongOwed::default()) } else { Account::Short(Owed::default()) }
    }

    pub fn is_long(&self) -> bool {
        matches!(self, Account::Long(_))
    }

    pub fn received(&mut self, bytes: &[u8], replies: &AllReplies) {
        match self {
            Account::Short(owed) => owed.received(bytes.len(), &replies.short),
            Account::Long(owed) => owed.received(bytes, replies.long()),
        }
    }

    pub fn next<'a>(&self, replies: &'a AllReplies) -> &'a [u8] {
        match self {
            Account::Short(owed) => owed.next(&replies.short),
            Account::Long(owed) => owed.next(replies.long()),
        }
    }

    pub fn sent(&mut self, bytes: usize, replies: &AllReplies) {
        match self {
            Account::Short(owed) => owed.sent(bytes, &replies.short),
            Account::Long(owed) => owed.sent(bytes, replies.long()),
        }
    }
}
