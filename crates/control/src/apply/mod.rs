//! What each command does to the table, by what it is about. A command that is refused half way leaves a copy that is thrown
//! away, so no handler undoes anything.

pub(crate) mod chains;
mod moves;
pub(crate) mod nodes;
