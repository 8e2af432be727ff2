//! The command registry: every command once, and everything that is derived from it (lookup, key positions, the
//! replies of COMMAND).

mod bits;
mod cluster;
mod connection;
mod describe;
mod docs;
mod flags;
mod id;
mod keys;
mod keyspace;
mod lists;
mod lookup;
mod own;
mod server;
mod spec;
mod strings;
pub mod syntax;
mod transactions;

pub use describe::{answer_command, write_help};
pub use flags::{Categories, Flags, KeyFlags};
pub use id::{COMMAND_ID_COUNT, CommandId};
pub use keys::{Begin, Find, KeyPosition, KeyPositionsError, KeySpec, key_positions, real_flags};
pub use lookup::{lookup, spec};
pub use spec::{CommandSpec, Family, Group, Oracle, Spread};

use crate::request::Arguments;

/// The groups in the order of their files; together every top-level command.
static GROUPS: [&[CommandSpec]; 9] = [
    &strings::COMMANDS,
    &bits::COMMANDS,
    &keyspace::COMMANDS,
    &lists::COMMANDS,
    &transactions::COMMANDS,
    &connection::COMMANDS,
    &server::COMMANDS,
    &cluster::COMMANDS,
    &own::COMMANDS,
];

/// Every top-level command, in the order of the registry.
pub fn all() -> impl Iterator<Item = &'static CommandSpec> {
    GROUPS.iter().flat_map(|group| group.iter())
}

/// What a request names.
#[derive(Clone, Copy, Debug)]
pub enum Resolved {
    /// A command, or the subcommand of a container: this one is to be executed.
    Command(&'static CommandSpec),
    /// No such command: [`crate::error::unknown_command`].
    UnknownCommand,
    /// A container without such a subcommand: [`crate::error::unknown_subcommand`].
    UnknownSubcommand(&'static CommandSpec),
    /// Known, but with this number of arguments it makes no sense: [`crate::error::wrong_arity`].
    WrongArity(&'static CommandSpec),
}

/// Finds what `arguments` name, down to the subcommand, and checks their number.
#[inline]
pub fn resolve(arguments: Arguments<'_>) -> Resolved {
    let Some(mut spec) = arguments.get(0).and_then(lookup) else { return Resolved::UnknownCommand };
    if !spec.subcommands.is_empty()
        && let Some(name) = arguments.get(1)
    {
        match spec.subcommand(name) {
            Some(subcommand) => spec = subcommand,
            None => return Resolved::UnknownSubcommand(spec),
        }
    }
    if spec.accepts_count(arguments.len()) { Resolved::Command(spec) } else { Resolved::WrongArity(spec) }
}
