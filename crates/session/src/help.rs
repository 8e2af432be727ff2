//! `… HELP` of a container command, written from its registry entry.

use wire::Reply;
use wire::registry::CommandSpec;

/// The lines that Redis's HELP subcommands print: usage, then each subcommand with its one sentence.
pub fn write_help(container: &CommandSpec, reply: &mut Reply<'_>) {
    let name = container.name.to_ascii_uppercase();
    let others = container.subcommands.iter().filter(|subcommand| subcommand.name != "help");
    reply.array(3 + 2 * others.clone().count());
    reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for subcommand in others {
        reply.simple(format!("{} {}", subcommand.name.to_ascii_uppercase(), subcommand.syntax).trim_end());
        reply.simple(&format!("    {}", subcommand.summary));
    }
    reply.simple("HELP");
    reply.simple("    Print this help.");
}
