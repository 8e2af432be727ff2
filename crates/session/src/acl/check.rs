//! Whether a user may run a request.

use wire::registry::{CommandSpec, KeyPosition, key_positions, real_flags};
use wire::{Arguments, Reply};

use super::other::Other;
use super::patterns::Access;
use super::user::{Selector, User};

/// What is refused. Later ones say more: a selector that allows the command and not the key is nearer to a yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DenialKind {
    /// The command.
    Command,
    /// A key of it.
    Key,
    /// A channel of it.
    Channel,
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denial {
    /// Of what.
    pub kind: DenialKind,
    /// The argument that it is about: of a key its place.
    pub argument: usize,
}

/// What ACL DRYRUN answers where nothing is refused.
pub const DRY_RUN_OK: &str = "OK";

impl User {
    /// Whether the request may run. It fits the command's arity.
    ///
    /// # Errors
    /// What is refused, by the selector that comes nearest to allowing it.
    pub fn check(&self, spec: &CommandSpec, arguments: Arguments<'_>) -> Result<(), Denial> {
        if self.is_unbounded() {
            return Ok(());
        }
        self.nearest(|selector| selector.check(spec, arguments))
    }

    /// The same of a command that this store does not have, as whoever has it describes it.
    ///
    /// # Errors
    /// As [`User::check`].
    pub fn check_other(&self, other: &Other<'_>, arguments: Arguments<'_>) -> Result<(), Denial> {
        if self.is_unbounded() {
            return Ok(());
        }
        self.nearest(|selector| selector.check_other(other, arguments))
    }

    fn nearest(&self, check: impl Fn(&Selector) -> Result<(), Denial>) -> Result<(), Denial> {
        let mut nearest = Denial { kind: DenialKind::Command, argument: 0 };
        for selector in &self.selectors {
            match check(selector) {
                Ok(()) => return Ok(()),
                Err(denial) => nearest = nearest.max(denial),
            }
        }
        Err(nearest)
    }
}

impl Selector {
    fn check(&self, spec: &CommandSpec, arguments: Arguments<'_>) -> Result<(), Denial> {
        if !self.commands.allows(spec, arguments) {
            return Err(Denial { kind: DenialKind::Command, argument: 0 });
        }
        if self.all_keys || spec.keys.is_empty() {
            return Ok(());
        }
        let mut positions: Vec<KeyPosition> = Vec::new();
        // A request that contradicts itself gets its own error and touches nothing.
        if key_positions(spec, arguments, &mut positions).is_err() {
            return Ok(());
        }
        for KeyPosition { index, flags } in positions {
            let key = arguments.get(index).expect("positions are within the arguments");
            let needed = Access::needed(real_flags(spec, arguments, flags));
            if !self.patterns.iter().any(|pattern| pattern.allows(key, needed)) {
                return Err(Denial { kind: DenialKind::Key, argument: index });
            }
        }
        Ok(())
    }
}

impl Denial {
    /// The reply to the request.
    pub fn write(self, user: &User, spec: &CommandSpec, reply: &mut Reply<'_>) {
        self.write_named(user, spec.full_name, reply);
    }

    /// The same of a command that goes by this name.
    pub fn write_named(self, user: &User, full_name: &str, reply: &mut Reply<'_>) {
        reply.error_bytes("NOPERM", &self.text(user, full_name));
    }

    /// EXEC itself is refused, and so the transaction is over.
    pub fn write_abort(self, user: &User, spec: &CommandSpec, reply: &mut Reply<'_>) {
        let text = [b"Transaction discarded because of: NOPERM ", self.text(user, spec.full_name).as_slice()].concat();
        reply.error_bytes("EXECABORT", &text);
    }

    /// The reply in place of a queued command's, when EXEC finds that it may no longer run.
    pub fn write_changed(self, reply: &mut Reply<'_>) {
        let reason = match self.kind {
            DenialKind::Command => "no permission to execute the command or subcommand",
            DenialKind::Key => "no permission to touch the specified keys",
            DenialKind::Channel => "no permission to access one of the channels used as arguments to the command",
        };
        let text = format!(
            "ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no \
             longer allowed for the following reason: {reason}"
        );
        reply.error("NOPERM", &text);
    }

    fn text(self, user: &User, full_name: &str) -> Vec<u8> {
        match self.kind {
            DenialKind::Command => self.long_text(user, full_name, b""),
            DenialKind::Key => b"No permissions to access a key".to_vec(),
            DenialKind::Channel => b"No permissions to access a channel".to_vec(),
        }
    }

    /// What ACL DRYRUN answers: with the key or channel, because whoever asks it may know.
    pub fn long_text(self, user: &User, full_name: &str, object: &[u8]) -> Vec<u8> {
        let name = user.name();
        let of = |what: &'static [u8]| [b"User ", name, b" has no permissions to access the '", object, what].concat();
        match self.kind {
            DenialKind::Command => {
                [b"User ", name, b" has no permissions to run the '", full_name.as_bytes(), b"' command"].concat()
            }
            DenialKind::Key => of(b"' key"),
            DenialKind::Channel => of(b"' channel"),
        }
    }
}
