//! The gate every request passes: does it exist, may it run, does it run now. Redis's order of questions, so that the
//! same request gets the same first error.

use crate::acl::{Context, Denial};
use crate::output::Output;
use crate::session::{ReplyMode, Session};
use wire::Arguments;
use wire::error;
use wire::registry::{CommandId, CommandSpec, Flags, Resolved};

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
pub enum Gate {
    /// Execute it.
    Run(&'static CommandSpec),
    /// Inside MULTI: once it may run here (slot, memory), [`Session::queue`] it; otherwise reply and
    /// [`Session::spoil`].
    Queue(&'static CommandSpec),
    /// An error was written.
    Refused,
    /// The user may not run it. An error was written; ACL LOG is to know.
    Denied(&'static CommandSpec, Denial, Context),
}

impl Session {
    /// Decides about one request. Nothing but two branches for a connection of a user without bounds outside MULTI.
    #[inline]
    pub fn gate(&mut self, resolved: Resolved, arguments: Arguments<'_>, output: &mut Output) -> Gate {
        if let Resolved::Command(spec) = resolved
            && self.plain
        {
            self.last_command = Some(spec);
            return Gate::Run(spec);
        }
        self.gate_slowly(resolved, arguments, output)
    }

    #[cold]
    fn gate_slowly(&mut self, resolved: Resolved, arguments: Arguments<'_>, output: &mut Output) -> Gate {
        self.advance_reply_mode(output);
        let reply = &mut output.reply(self.protocol);
        let spec = match resolved {
            Resolved::Command(spec) => spec,
            Resolved::UnknownCommand => {
                error::unknown_command(reply, arguments);
                return self.refused();
            }
            Resolved::UnknownSubcommand(container) => {
                error::unknown_subcommand(reply, container.name, arguments.get(1).unwrap_or_default());
                return self.refused();
            }
            Resolved::WrongArity(spec) if spec.id == CommandId::Exec => {
                reply.error(
                    "EXECABORT",
                    "Transaction discarded because of: wrong number of arguments for 'exec' command",
                );
                // What is watched is so no more, as behind any EXEC, also outside MULTI.
                self.unwatch();
                self.drop_transaction();
                return Gate::Refused;
            }
            Resolved::WrongArity(spec) => {
                error::wrong_arity(reply, spec.full_name);
                return self.refused();
            }
        };
        self.last_command = Some(spec);
        if !self.authenticated && !spec.flags.contains(Flags::NO_AUTH) {
            if spec.id == CommandId::Exec {
                reply.error("EXECABORT", "Transaction discarded because of: NOAUTH Authentication required.");
                self.drop_transaction();
                return Gate::Refused;
            }
            error::NO_AUTH.write(reply);
            return self.refused();
        }
        let is_queued = self.transaction.is_some() && !runs_inside_multi(spec.id);
        if is_queued && spec.flags.contains(Flags::NO_MULTI) {
            error::NOT_IN_TRANSACTION.write(reply);
            return self.refused();
        }
        if let Err(denial) = self.user.check(spec, arguments) {
            let context = if self.transaction.is_some() { Context::Multi } else { Context::Toplevel };
            match spec.id {
                CommandId::Exec => {
                    denial.write_abort(&self.user, spec, reply);
                    self.drop_transaction();
                }
                _ => {
                    denial.write(&self.user, spec, reply);
                    self.spoil();
                }
            }
            return Gate::Denied(spec, denial, context);
        }
        if is_queued {
            return Gate::Queue(spec);
        }
        if self.turns_replies_on(spec, arguments) {
            self.reply_mode = ReplyMode::On;
            output.set_muted(false);
            self.settle();
        }
        Gate::Run(spec)
    }

    fn refused(&mut self) -> Gate {
        self.spoil();
        Gate::Refused
    }

    /// Whether this request is answered, unless it turns that on itself.
    fn advance_reply_mode(&mut self, output: &mut Output) {
        self.reply_mode = match self.reply_mode {
            ReplyMode::SkipNext => ReplyMode::Skip,
            ReplyMode::Skip | ReplyMode::On => ReplyMode::On,
            ReplyMode::Off => ReplyMode::Off,
        };
        output.set_muted(self.reply_mode != ReplyMode::On);
        self.settle();
    }

    /// CLIENT REPLY ON is answered whatever held before it. RESET ends OFF, but as in Redis not the SKIP that is about it.
    fn turns_replies_on(&self, spec: &CommandSpec, arguments: Arguments<'_>) -> bool {
        match spec.id {
            CommandId::ClientReply => arguments.get(2).is_some_and(|mode| mode.eq_ignore_ascii_case(b"on")),
            CommandId::Reset => self.reply_mode == ReplyMode::Off,
            _ => false,
        }
    }
}

/// The commands that a transaction's own life consists of.
fn runs_inside_multi(id: CommandId) -> bool {
    use CommandId::{Discard, Exec, Multi, Quit, Reset, Watch};
    matches!(id, Exec | Discard | Multi | Watch | Quit | Reset)
}
