//! ACL: what it tells, and what it leaves to the shard because all cores have to know.

use super::facts::NodeFacts;
use super::outcome::{AclRequest, NodeOutcome};
use crate::access::AclOrder;
use session::acl::{DEFAULT_USER, DRY_RUN_OK, DenialKind};
use wire::number::parse_integer;
use wire::registry::{
    Categories, CommandId as Id, CommandSpec, Resolved, all, resolve, spec as registry_entry, write_help,
};
use wire::{Arguments, Reply, error};

/// Entries that ACL LOG shows unless it is told how many; Redis's number.
const LOG_COUNT_DEFAULT: usize = 10;
/// Bits of ACL GENPASS, unless it is told how many, and at most; Redis's numbers.
const PASSWORD_BITS: (i64, i64) = (256, 4096);

/// ACL and its subcommands.
pub(super) fn execute(
    spec: &CommandSpec,
    arguments: Arguments<'_>,
    facts: &NodeFacts<'_>,
    reply: &mut Reply<'_>,
) -> NodeOutcome {
    let owned = |arguments: Arguments<'_>| arguments.iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
    let order = match spec.id {
        Id::AclSetuser => AclOrder::Set { name: arguments[2].to_vec(), rules: owned(arguments.from(3)) },
        Id::AclDeluser if arguments.from(2).iter().any(|name| name == DEFAULT_USER) => {
            reply.error("ERR", "The 'default' user cannot be removed");
            return NodeOutcome::Done;
        }
        Id::AclDeluser => AclOrder::Remove(owned(arguments.from(2))),
        Id::AclSave => AclOrder::Save,
        Id::AclLoad => AclOrder::Load,
        Id::AclLog => return plan_log(arguments, reply),
        Id::AclGenpass => return plan_password(arguments, reply),
        _ => {
            tell(spec, arguments, facts, reply);
            return NodeOutcome::Done;
        }
    };
    NodeOutcome::Acl(AclRequest::Order(order))
}

fn tell(spec: &CommandSpec, arguments: Arguments<'_>, facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    match spec.id {
        Id::AclWhoami => reply.bulk(facts.user.name()),
        Id::AclUsers => {
            reply.array(facts.users.iter().len());
            facts.users.iter().for_each(|user| reply.bulk(user.name()));
        }
        Id::AclList => {
            reply.array(facts.users.iter().len());
            facts.users.iter().for_each(|user| reply.bulk(&user.line()));
        }
        Id::AclGetuser => match facts.users.get(&arguments[2]) {
            Some(user) => user.write_details(reply),
            None => reply.null(),
        },
        Id::AclDryrun => dry_run(arguments, facts, reply),
        Id::AclCat => write_categories(arguments.from(2), reply),
        _ => write_help(registry_entry(Id::Acl), reply),
    }
}

/// `ACL LOG [count | RESET]`.
fn plan_log(arguments: Arguments<'_>, reply: &mut Reply<'_>) -> NodeOutcome {
    let request = match arguments.get(2) {
        _ if arguments.len() > 3 => {
            error::unknown_subcommand(reply, "acl", &arguments[1]);
            return NodeOutcome::Done;
        }
        Some(word) if word.eq_ignore_ascii_case(b"reset") => AclRequest::ResetLog,
        Some(word) => match parse_integer(word) {
            Some(count) => AclRequest::Log(usize::try_from(count).unwrap_or(0)),
            None => {
                error::NOT_INTEGER.write(reply);
                return NodeOutcome::Done;
            }
        },
        None => AclRequest::Log(LOG_COUNT_DEFAULT),
    };
    NodeOutcome::Acl(request)
}

/// `ACL GENPASS [bits]`.
fn plan_password(arguments: Arguments<'_>, reply: &mut Reply<'_>) -> NodeOutcome {
    let (bits_default, bits_max) = PASSWORD_BITS;
    let bits = match arguments.get(2) {
        _ if arguments.len() > 3 => {
            error::unknown_subcommand(reply, "acl", &arguments[1]);
            return NodeOutcome::Done;
        }
        None => bits_default,
        Some(word) => match parse_integer(word) {
            Some(bits) => bits,
            None => {
                error::NOT_INTEGER.write(reply);
                return NodeOutcome::Done;
            }
        },
    };
    if !(1..=bits_max).contains(&bits) {
        let text = format!(
            "ACL GENPASS argument must be the number of bits for the output password, a positive number up to {bits_max}"
        );
        reply.error("ERR", &text);
        return NodeOutcome::Done;
    }
    NodeOutcome::Acl(AclRequest::Password { bits: bits as usize })
}

/// `ACL DRYRUN username command [arg]...`: whether the user may, without running it.
fn dry_run(arguments: Arguments<'_>, facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    let (name, request) = (&arguments[2], arguments.from(3));
    let Some(user) = facts.users.get(name) else {
        return reply.error_bytes("ERR", &[b"User '", name, b"' not found"].concat());
    };
    let spec = match resolve(request) {
        Resolved::Command(spec) => spec,
        Resolved::WrongArity(spec) => return error::wrong_arity(reply, spec.full_name),
        Resolved::UnknownCommand | Resolved::UnknownSubcommand(_) => {
            return reply.error_bytes("ERR", &[b"Command '", &request[0], b"' not found"].concat());
        }
    };
    match user.check(spec, request) {
        Ok(()) => reply.simple(DRY_RUN_OK),
        Err(denial) => {
            let object = if denial.kind == DenialKind::Command { b"" } else { &request[denial.argument] };
            reply.bulk(&denial.long_text(user, spec.full_name, object));
        }
    }
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
