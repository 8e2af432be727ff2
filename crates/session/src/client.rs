//! CLIENT and its subcommands.

use crate::execute::{ConnectionContext, ConnectionOutcome};
use crate::filter::ClientFilter;
use crate::name;
use crate::session::{ReplyMode, Session};
use wire::number::parse_integer;
use wire::registry::{CommandId as Id, CommandSpec, spec as registry_entry, write_help};
use wire::{Arguments, Reply, error};

impl Session {
    pub(crate) fn execute_client(
        &mut self,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        context: &ConnectionContext<'_>,
        reply: &mut Reply<'_>,
    ) -> ConnectionOutcome {
        match spec.id {
            Id::ClientId => reply.integer(self.client_id as i64),
            Id::ClientGetname if self.name.is_empty() => reply.null(),
            Id::ClientGetname => reply.bulk(&self.name),
            Id::ClientSetname => self.set_name(&arguments[2], reply),
            Id::ClientSetinfo => self.set_info(&arguments[2], &arguments[3], reply),
            Id::ClientInfo => {
                let mut line = Vec::new();
                self.describe(context.now, context.buffers, &mut line);
                reply.verbatim(b"txt", &line);
            }
            Id::ClientNoEvict => set_switch(&mut self.no_evict, &arguments[2], reply),
            Id::ClientNoTouch => set_switch(&mut self.no_touch, &arguments[2], reply),
            Id::ClientReply => self.set_reply_mode(&arguments[2], reply),
            Id::ClientGetredir => reply.integer(-1),
            Id::ClientTracking => tracking(arguments, reply),
            Id::ClientTrackinginfo => tracking_info(reply),
            Id::ClientCaching => reply.error("ERR", CACHING_WITHOUT_TRACKING),
            Id::ClientHelp => write_help(registry_entry(Id::Client), reply),
            Id::ClientList => {
                return ClientFilter::for_list(arguments, reply).map_or(DONE, ConnectionOutcome::ListClients);
            }
            Id::ClientKill => return self.kill(arguments, context, reply),
            Id::ClientPause => return pause(arguments, reply),
            Id::ClientUnpause => {
                reply.ok();
                return ConnectionOutcome::Unpause;
            }
            Id::ClientUnblock => return unblock(arguments, reply),
            _ => reply.error("ERR", &format!("'{}' is not available on this connection", spec.full_name)),
        }
        DONE
    }

    fn set_name(&mut self, name: &[u8], reply: &mut Reply<'_>) {
        if let Some(name) = name::accept(reply, "Client names", name) {
            self.name = name;
            reply.ok();
        }
    }

    fn set_info(&mut self, option: &[u8], value: &[u8], reply: &mut Reply<'_>) {
        let (what, field) = match option.to_ascii_lowercase().as_slice() {
            b"lib-name" => ("lib-name", &mut self.library_name),
            b"lib-ver" => ("lib-ver", &mut self.library_version),
            _ => return error::quoted(reply, "Unrecognized option ", option),
        };
        if let Some(value) = name::accept(reply, what, value) {
            *field = value;
            reply.ok();
        }
    }

    /// OFF and SKIP are not answered; ON took effect at the gate or does in EXEC, so that it is.
    fn set_reply_mode(&mut self, mode: &[u8], reply: &mut Reply<'_>) {
        match mode.to_ascii_lowercase().as_slice() {
            b"on" => {
                // A SKIP before it in the same EXEC is about the request behind EXEC.
                if self.reply_mode != ReplyMode::SkipNext {
                    self.reply_mode = ReplyMode::On;
                }
                reply.ok();
            }
            b"off" => self.reply_mode = ReplyMode::Off,
            b"skip" if self.reply_mode == ReplyMode::Off => {}
            b"skip" => self.reply_mode = ReplyMode::SkipNext,
            _ => error::SYNTAX.write(reply),
        }
        self.settle();
    }

    fn kill(
        &self,
        arguments: Arguments<'_>,
        context: &ConnectionContext<'_>,
        reply: &mut Reply<'_>,
    ) -> ConnectionOutcome {
        if arguments.len() == 3 {
            let filter = ClientFilter { peer: Some(arguments[2].to_vec()), ..ClientFilter::default() };
            return ConnectionOutcome::KillClients { filter, by_address: true };
        }
        let filter = ClientFilter::for_kill((self.client_id, context.users), arguments, reply);
        filter.map_or(DONE, |filter| ConnectionOutcome::KillClients { filter, by_address: false })
    }
}

/// There is no tracking here, so CLIENT CACHING always comes at the wrong time.
const CACHING_WITHOUT_TRACKING: &str =
    "CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled";

const DONE: ConnectionOutcome = ConnectionOutcome::Done;

fn set_switch(switch: &mut bool, text: &[u8], reply: &mut Reply<'_>) {
    match text.to_ascii_lowercase().as_slice() {
        b"on" => *switch = true,
        b"off" => *switch = false,
        _ => return error::SYNTAX.write(reply),
    }
    reply.ok();
}

/// `CLIENT TRACKING on | off [option…]`.
fn tracking(arguments: Arguments<'_>, reply: &mut Reply<'_>) {
    let mut options = arguments.from(3).iter();
    while let Some(option) = options.next() {
        let known = match option.to_ascii_lowercase().as_slice() {
            b"bcast" | b"optin" | b"optout" | b"noloop" => true,
            b"redirect" | b"prefix" => options.next().is_some(),
            _ => false,
        };
        if !known {
            return error::SYNTAX.write(reply);
        }
    }
    match arguments[2].to_ascii_lowercase().as_slice() {
        b"off" => reply.ok(),
        b"on" => reply.error("ERR", "client side caching is not supported yet: this node sends no invalidations"),
        _ => error::SYNTAX.write(reply),
    }
}

fn tracking_info(reply: &mut Reply<'_>) {
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(1);
    reply.bulk(b"off");
    reply.bulk(b"redirect");
    reply.integer(-1);
    reply.bulk(b"prefixes");
    reply.array(0);
}

/// `CLIENT PAUSE timeout [WRITE | ALL]`.
fn pause(arguments: Arguments<'_>, reply: &mut Reply<'_>) -> ConnectionOutcome {
    let writes_only = match arguments.get(3).map(<[u8]>::to_ascii_lowercase).as_deref() {
        _ if arguments.len() > 4 => {
            wrong_use(reply, &arguments[1]);
            return DONE;
        }
        None | Some(b"all") => false,
        Some(b"write") => true,
        Some(_) => {
            reply.error("ERR", "CLIENT PAUSE mode must be WRITE or ALL");
            return DONE;
        }
    };
    match parse_integer(&arguments[2]) {
        None => error::TIMEOUT_NOT_INTEGER.write(reply),
        Some(..0) => error::TIMEOUT_NEGATIVE.write(reply),
        Some(timeout_ms) => {
            reply.ok();
            return ConnectionOutcome::Pause { timeout_ms: timeout_ms.cast_unsigned(), writes_only };
        }
    }
    DONE
}

/// `CLIENT UNBLOCK id [TIMEOUT | ERROR]`.
fn unblock(arguments: Arguments<'_>, reply: &mut Reply<'_>) -> ConnectionOutcome {
    let with_error = match arguments.get(3).map(<[u8]>::to_ascii_lowercase).as_deref() {
        _ if arguments.len() > 4 => {
            wrong_use(reply, &arguments[1]);
            return DONE;
        }
        None | Some(b"timeout") => false,
        Some(b"error") => true,
        Some(_) => {
            reply.error("ERR", "CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
            return DONE;
        }
    };
    match parse_integer(&arguments[2]) {
        Some(id) => ConnectionOutcome::Unblock { client_id: id.cast_unsigned(), with_error },
        None => {
            error::NOT_INTEGER.write(reply);
            DONE
        }
    }
}

fn wrong_use(reply: &mut Reply<'_>, subcommand: &[u8]) {
    let text = [b"unknown subcommand or wrong number of arguments for '", subcommand, b"'. Try CLIENT HELP."].concat();
    reply.error_bytes("ERR", &text);
}
