//! The replies of COMMAND and its subcommands, and of every container's HELP, all from the registry.

use super::docs::write_docs;
use super::keys::{Find, KeyPosition, KeySpec, key_positions, real_flags};
use super::spec::CommandSpec;
use super::{Categories, CommandId, all, lookup};
use crate::request::Arguments;
use crate::{Reply, error, glob};

/// Answers COMMAND or the subcommand `id` of it; `arguments` begins with the word COMMAND.
pub fn answer_command(id: CommandId, arguments: Arguments<'_>, reply: &mut Reply<'_>) {
    match id {
        CommandId::CommandCount => reply.integer(all().count() as i64),
        CommandId::CommandInfo if arguments.len() > 2 => write_infos(arguments.from(2), reply),
        CommandId::CommandDocs => write_docs(arguments.from(2), reply),
        CommandId::CommandList => write_list(arguments.from(2), reply),
        CommandId::CommandGetkeys => write_keys(arguments.from(2), false, reply),
        CommandId::CommandGetkeysandflags => write_keys(arguments.from(2), true, reply),
        CommandId::CommandHelp => write_help(super::spec(CommandId::Command), reply),
        _ => {
            reply.array(all().count());
            all().for_each(|spec| write_info(spec, reply));
        }
    }
}

/// Answers HELP of a container: its subcommands with syntax and summary.
pub fn write_help(container: &CommandSpec, reply: &mut Reply<'_>) {
    let name = container.name.to_ascii_uppercase();
    reply.array(1 + 2 * container.subcommands.len());
    reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for subcommand in container.subcommands {
        let line = format!("{} {}", subcommand.name.to_ascii_uppercase(), subcommand.syntax);
        reply.simple(line.trim_end());
        reply.simple(&format!("    {}", subcommand.summary));
    }
}

/// The command of that name, or with `container|subcommand` a subcommand.
pub(super) fn find(name: &[u8]) -> Option<&'static CommandSpec> {
    match name.iter().position(|&byte| byte == b'|') {
        None => lookup(name),
        Some(bar) => lookup(&name[..bar])?.subcommand(&name[bar + 1..]),
    }
}

fn write_infos(names: Arguments<'_>, reply: &mut Reply<'_>) {
    reply.array(names.len());
    for name in names {
        match find(name) {
            Some(spec) => write_info(spec, reply),
            None => reply.null(),
        }
    }
}

/// The ten fields of Redis 7.
fn write_info(spec: &CommandSpec, reply: &mut Reply<'_>) {
    reply.array(10);
    reply.bulk(spec.full_name.as_bytes());
    reply.integer(i64::from(spec.arity));
    write_statuses(spec.flags.names(), "", reply);
    reply.integer(i64::from(spec.first_key));
    reply.integer(i64::from(spec.last_key));
    reply.integer(i64::from(spec.key_step));
    write_statuses(spec.categories.names(), "@", reply);
    reply.set(spec.tips.len());
    spec.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(spec.keys.len());
    spec.keys.iter().for_each(|keys| write_key_spec(keys, reply));
    match spec.subcommands {
        [] => reply.set(0),
        subcommands => {
            reply.array(subcommands.len());
            subcommands.iter().for_each(|subcommand| write_info(subcommand, reply));
        }
    }
}

fn write_statuses(names: impl Iterator<Item = &'static str>, prefix: &str, reply: &mut Reply<'_>) {
    let names: Vec<&str> = names.collect();
    reply.set(names.len());
    names.iter().for_each(|name| reply.simple(&format!("{prefix}{name}")));
}

fn write_key_spec(keys: &KeySpec, reply: &mut Reply<'_>) {
    reply.map(3);
    reply.bulk(b"flags");
    write_statuses(keys.flags.names(), "", reply);
    write_search("begin_search", "index", &[("index", keys.begin.index())], reply);
    match keys.find {
        Find::Range { last, step, limit } => {
            write_search("find_keys", "range", &[("lastkey", last), ("keystep", step), ("limit", limit)], reply);
        }
        Find::Number { number, first, step } => {
            write_search(
                "find_keys",
                "keynum",
                &[("keynumidx", number), ("firstkey", first), ("keystep", step)],
                reply,
            );
        }
    }
}

fn write_search(name: &str, kind: &str, numbers: &[(&str, i16)], reply: &mut Reply<'_>) {
    reply.bulk(name.as_bytes());
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(numbers.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(i64::from(*number));
    }
}

/// Names of all commands and subcommands, or of those that pass FILTERBY.
fn write_list(filter: Arguments<'_>, reply: &mut Reply<'_>) {
    let is =
        |index: usize, word: &str| filter.get(index).is_some_and(|text| text.eq_ignore_ascii_case(word.as_bytes()));
    let by = filter.get(2).unwrap_or_default();
    let passes: Box<dyn Fn(&CommandSpec) -> bool> = match filter.len() {
        0 => Box::new(|_| true),
        3 if is(0, "filterby") && is(1, "module") => Box::new(|_| false),
        3 if is(0, "filterby") && is(1, "aclcat") => {
            let category = Categories::named(by);
            Box::new(move |spec| category.is_some_and(|category| spec.categories.contains(category)))
        }
        3 if is(0, "filterby") && is(1, "pattern") => {
            Box::new(move |spec| glob::matches(by, spec.full_name.as_bytes(), true))
        }
        _ => return error::SYNTAX.write(reply),
    };
    let with_subcommands = all().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands));
    let listed: Vec<&CommandSpec> = with_subcommands.filter(|spec| passes(spec)).collect();
    reply.array(listed.len());
    listed.iter().for_each(|spec| reply.bulk(spec.full_name.as_bytes()));
}

/// The keys of `request`, a whole request.
fn write_keys(request: Arguments<'_>, with_flags: bool, reply: &mut Reply<'_>) {
    let Some(mut spec) = request.get(0).and_then(lookup) else { return error::INVALID_COMMAND.write(reply) };
    if let Some(subcommand) = request.get(1).and_then(|name| spec.subcommand(name)) {
        spec = subcommand;
    }
    if spec.keys.is_empty() {
        return error::NO_KEY_ARGUMENTS.write(reply);
    }
    if !spec.accepts_count(request.len()) {
        return error::INVALID_ARGUMENT_COUNT.write(reply);
    }
    let mut positions: Vec<KeyPosition> = Vec::new();
    if key_positions(spec, request, &mut positions).is_err() {
        return error::INVALID_ARGUMENTS.write(reply);
    }
    reply.array(positions.len());
    for position in positions {
        if with_flags {
            reply.array(2);
        }
        reply.bulk(&request[position.index]);
        if with_flags {
            write_statuses(real_flags(spec, request, position.flags).names(), "", reply);
        }
    }
}
