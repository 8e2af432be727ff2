//! ACL: there is one user, `default`, who may do everything once the password is given.

use super::facts::NodeFacts;
use wire::registry::{Categories, CommandId as Id, CommandSpec, all, spec as registry_entry, write_help};
use wire::{Arguments, Reply, error};

/// ACL and its subcommands.
pub(super) fn execute(spec: &CommandSpec, arguments: Arguments<'_>, facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    match spec.id {
        Id::AclWhoami => reply.bulk(b"default"),
        Id::AclUsers => {
            reply.array(1);
            reply.bulk(b"default");
        }
        Id::AclList => {
            let password =
                if facts.config.password().is_some() { "sanitize-payload" } else { "nopass sanitize-payload" };
            reply.array(1);
            reply.bulk(format!("user default on {password} ~* &* +@all").as_bytes());
        }
        Id::AclGetuser if &arguments[2] == b"default" => write_default_user(facts, reply),
        Id::AclGetuser => reply.null_array(),
        Id::AclCat => write_categories(arguments.from(2), reply),
        Id::AclLog => match arguments.get(2) {
            Some(word) if word.eq_ignore_ascii_case(b"reset") => reply.ok(),
            _ => reply.array(0),
        },
        Id::AclGenpass => reply.error("ERR", "ACL GENPASS is not available: make passwords where they are kept"),
        _ => write_help(registry_entry(Id::Acl), reply),
    }
}

/// The password itself is not shown, nor a hash of it.
fn write_default_user(facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    let flags: &[&str] = if facts.config.password().is_some() { &["on"] } else { &["on", "nopass"] };
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    reply.bulk(b"passwords");
    reply.array(0);
    for (field, value) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"selectors");
    reply.array(0);
}

/// `ACL CAT [category]`.
fn write_categories(arguments: Arguments<'_>, reply: &mut Reply<'_>) {
    let Some(name) = arguments.get(0) else {
        let names: Vec<&str> = Categories::all_names().collect();
        reply.array(names.len());
        return names.iter().for_each(|name| reply.bulk(name.as_bytes()));
    };
    if arguments.len() > 1 {
        return error::SYNTAX.write(reply);
    }
    let Some(category) = Categories::named(name) else {
        return reply.error_bytes("ERR", &[b"Unknown category '", name, b"'"].concat());
    };
    let leaves = |spec: &'static CommandSpec| {
        let itself = if spec.subcommands.is_empty() { std::slice::from_ref(spec) } else { spec.subcommands };
        itself.iter()
    };
    let members: Vec<&str> =
        all().flat_map(leaves).filter(|spec| spec.categories.contains(category)).map(|spec| spec.full_name).collect();
    reply.array(members.len());
    members.iter().for_each(|name| reply.bulk(name.as_bytes()));
}
