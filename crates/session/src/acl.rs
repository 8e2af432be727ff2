//! ACL: who the users of a node are, and what each of them may do. `docs/internals/acl.md` has the whole picture.
//!
//! ```text
//!  ACL SETUSER, a line of the file ──► rules ──► User ──┐
//!                                                       ├─► Users: the table, shared by all cores as it is
//!  AUTH name password ──► Users::authenticate ◄─────────┤
//!  request of a user with bounds ──► User::check ◄──────┘ ──► Ok, or Denial
//! ```
//!
//! - [`User`]: flags, hashes of passwords, and [`Selector`]s: commands, keys and channels
//! - [`Users`]: all of them, from and to the lines of a file
//! - [`Other`]: a command of another store, for who stands before one and decides by the same rules
//! - [`Denial`]: what was refused; [`AclLog`] remembers it

mod check;
mod commands;
mod describe;
mod log;
mod other;
mod patterns;
mod rules;
mod user;
mod users;

#[cfg(test)]
mod tests;

pub use check::{DRY_RUN_OK, Denial, DenialKind};
pub use log::{AclLog, Context, LogEntry, Reason};
pub use other::{Naming, Other, OtherKey};
pub use patterns::Access;
pub use rules::{RuleError, merge_selectors};
pub use user::{Selector, User};
pub use users::{DEFAULT_USER, Users, password_from};
