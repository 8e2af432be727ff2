//! The small commands about the node: time, saving, waiting for durability, role, shutdown, DEBUG.

use super::facts::NodeFacts;
use super::outcome::{CopiesAsked, NodeOutcome};
use super::replication;
use wire::number::parse_integer;
use wire::registry::{CommandId as Id, CommandSpec};
use wire::{Arguments, Reply, error};

/// Replaces every form of saving.
const NOTHING_TO_SAVE: &str = "there is no snapshot to make: every write is in the log already, see INFO persistence";
/// For a node that keeps no log.
const NOTHING_KEPT: &str = "there is no snapshot to make: this node keeps its data in memory only (durability memory)";
/// Redis's words.
const DEBUG_REFUSED: &str = "DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you \
    can run it from a local connection, otherwise you need to set this option in the configuration file, and then \
    restart the server.";

/// Commands without subcommands.
pub(super) fn execute(
    spec: &CommandSpec,
    arguments: Arguments<'_>,
    facts: &NodeFacts<'_>,
    reply: &mut Reply<'_>,
) -> NodeOutcome {
    match spec.id {
        Id::Time => write_time(facts, reply),
        Id::Lastsave => reply.integer((facts.gauges().log_synced_unix_ms / 1000) as i64),
        Id::Bgsave if !is_bgsave(arguments.from(1)) => error::SYNTAX.write(reply),
        Id::Save | Id::Bgsave | Id::Bgrewriteaof => {
            reply.error("ERR", if facts.keeps_log() { NOTHING_TO_SAVE } else { NOTHING_KEPT });
        }
        Id::Role => replication::write_role(facts, reply),
        Id::Wait => return wait(arguments, facts, reply),
        Id::Waitaof => return wait_durable(arguments, facts, reply),
        Id::Shutdown => return shutdown(arguments.from(1), reply),
        Id::Debug => match facts.config.value("enable-debug-command") {
            b"no" => reply.error("ERR", DEBUG_REFUSED),
            _ => error::unknown_subcommand(reply, "DEBUG", &arguments[1]),
        },
        _ => reply.error("ERR", &format!("'{}' is not available on this node", spec.full_name)),
    }
    NodeOutcome::Done
}

/// `BGSAVE [SCHEDULE]`.
fn is_bgsave(options: Arguments<'_>) -> bool {
    match options.get(0) {
        None => true,
        Some(word) => options.len() == 1 && word.eq_ignore_ascii_case(b"schedule"),
    }
}

/// Seconds and microseconds, as two strings.
fn write_time(facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    reply.array(2);
    reply.bulk_integer((facts.now.unix_ms / 1000) as i64);
    reply.bulk_integer((facts.now.unix_ms % 1000 * 1000) as i64);
}

/// `WAIT numreplicas timeout`. Of a node on its own no replica exists, so none will ever acknowledge: 0, and not after the timeout.
fn wait(arguments: Arguments<'_>, facts: &NodeFacts<'_>, reply: &mut Reply<'_>) -> NodeOutcome {
    let Some(wanted) = parse_integer(&arguments[1]) else {
        error::NOT_INTEGER.write(reply);
        return NodeOutcome::Done;
    };
    let Some(timeout_ms) = read_timeout(&arguments[2], reply) else { return NodeOutcome::Done };
    if facts.cluster.is_none() {
        reply.integer(0);
        return NodeOutcome::Done;
    }
    let timeout_ms = Some(timeout_ms).filter(|&timeout_ms| timeout_ms > 0);
    NodeOutcome::WaitCopies(CopiesAsked { local: None, replicas: usize::try_from(wanted).unwrap_or(0), timeout_ms })
}

/// `WAITAOF numlocal numreplicas timeout`.
fn wait_durable(arguments: Arguments<'_>, facts: &NodeFacts<'_>, reply: &mut Reply<'_>) -> NodeOutcome {
    let local = match parse_integer(&arguments[1]) {
        Some(number @ 0..=1) => number == 1,
        Some(_) => {
            reply.error("ERR", "value is out of range, value must between 0 and 1");
            return NodeOutcome::Done;
        }
        None => {
            error::NOT_INTEGER.write(reply);
            return NodeOutcome::Done;
        }
    };
    let Some(replicas) = parse_integer(&arguments[2]).and_then(|number| usize::try_from(number).ok()) else {
        error::NOT_POSITIVE.write(reply);
        return NodeOutcome::Done;
    };
    let Some(timeout_ms) = read_timeout(&arguments[3], reply) else { return NodeOutcome::Done };
    if local && !facts.keeps_log() {
        reply.error("ERR", "WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
        return NodeOutcome::Done;
    }
    let timeout_ms = Some(timeout_ms).filter(|&timeout_ms| timeout_ms > 0);
    match facts.cluster {
        None => NodeOutcome::WaitDurable { local, timeout_ms },
        Some(_) => NodeOutcome::WaitCopies(CopiesAsked { local: Some(local), replicas, timeout_ms }),
    }
}

/// Milliseconds; `None` when an error was written.
fn read_timeout(text: &[u8], reply: &mut Reply<'_>) -> Option<u64> {
    match parse_integer(text) {
        None => error::TIMEOUT_NOT_INTEGER.write(reply),
        Some(..0) => error::TIMEOUT_NEGATIVE.write(reply),
        Some(timeout_ms) => return Some(timeout_ms.cast_unsigned()),
    }
    None
}

/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`: the log is sealed in any case.
fn shutdown(options: Arguments<'_>, reply: &mut Reply<'_>) -> NodeOutcome {
    let is = |option: &[u8], names: &[&str]| names.iter().any(|name| option.eq_ignore_ascii_case(name.as_bytes()));
    let has = |name: &str| options.iter().any(|option| is(option, &[name]));
    let is_known = options.iter().all(|option| is(option, &["nosave", "save", "now", "force", "abort"]));
    if !is_known || (has("save") && has("nosave")) || (has("abort") && options.len() > 1) {
        error::SYNTAX.write(reply);
        return NodeOutcome::Done;
    }
    if has("abort") {
        reply.error("ERR", "No shutdown in progress.");
        return NodeOutcome::Done;
    }
    NodeOutcome::Shutdown
}
