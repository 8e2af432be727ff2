//! Bytes of what managers store and send. Nothing here knows the library: its types change with its versions, these bytes
//! must not.
//!
//! | file | owns |
//! |---|---|
//! | `bytes` | numbers, options and lists; a reader that never takes more than there is |
//! | `entry` | what is agreed on: ids, ballots, voters, entries |
//! | `log_file` | `managers.log`: head, groups, records; a torn tail told from damage |
//! | `snapshot_file` | `managers.snapshot` |
//! | `frame` | questions and answers between managers |

pub mod bytes;
pub mod entry;
pub mod frame;
pub mod log_file;
pub mod snapshot_file;

use std::fmt;

/// Why a file is refused. It is never guessed at, and never begun anew instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Which file.
    pub file: &'static str,
    /// Where in it, bytes from its begin.
    pub offset: u64,
    /// What is wrong there.
    pub reason: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at byte {}: {}", self.file, self.offset, self.reason)
    }
}

impl std::error::Error for Damage {}
