//! SLOWLOG and LATENCY. No command is timed on its own, so both are always empty; INFO has the longest tick.

use wire::number::parse_integer;
use wire::registry::{CommandId as Id, CommandSpec, spec as registry_entry, write_help};
use wire::{Arguments, Reply, error};

/// SLOWLOG and its subcommands.
pub(super) fn execute_slowlog(spec: &CommandSpec, arguments: Arguments<'_>, reply: &mut Reply<'_>) {
    match spec.id {
        Id::SlowlogGet if arguments.len() > 3 => error::wrong_arity(reply, spec.full_name),
        Id::SlowlogGet => match arguments.get(2).map(parse_integer) {
            None | Some(Some(-1..)) => reply.array(0),
            Some(_) => error::SLOWLOG_COUNT.write(reply),
        },
        Id::SlowlogLen => reply.integer(0),
        Id::SlowlogReset => reply.ok(),
        _ => write_help(registry_entry(Id::Slowlog), reply),
    }
}

/// LATENCY and its subcommands.
pub(super) fn execute_latency(spec: &CommandSpec, arguments: Arguments<'_>, reply: &mut Reply<'_>) {
    match spec.id {
        Id::LatencyLatest | Id::LatencyHistory => reply.array(0),
        Id::LatencyReset => reply.integer(0),
        Id::LatencyHistogram => reply.map(0),
        Id::LatencyGraph => {
            let text = [b"No samples available for event '", &arguments[2], b"'"].concat();
            reply.error_bytes("ERR", &text);
        }
        Id::LatencyDoctor => {
            reply.verbatim(b"txt", b"Single commands are not timed here. See tick_gap_us_max in INFO zerohop.");
        }
        _ => write_help(registry_entry(Id::Latency), reply),
    }
}
