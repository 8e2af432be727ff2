//! Which commands a selector allows: a bit by command id, first arguments of commands that are not allowed as a whole,
//! and the rules as they were given, because they are shown again.

use std::collections::BTreeMap;

use wire::Arguments;
use wire::registry::{COMMAND_ID_COUNT, Categories, CommandId, CommandSpec, Flags, all, lookup};

use super::other::Naming;
use super::patterns::has_spaces;
use super::rules::RuleError;

const WORDS: usize = COMMAND_ID_COUNT.div_ceil(64);

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct CommandSet {
    /// Everything without a look: `+@all` and nothing taken back since.
    all: bool,
    /// The last of `+@all` and `-@all`; what the shown rules begin with.
    begins_with_all: bool,
    bits: [u64; WORDS],
    first_arguments: BTreeMap<CommandId, Vec<Vec<u8>>>,
    /// What was given since, in order and without what a later one made void: allowed or not, and the name.
    rules: Vec<(bool, Vec<u8>)>,
}

impl CommandSet {
    /// `+@all`, `-@all`.
    pub fn set_all(&mut self, allowed: bool) {
        let bits = if allowed { [u64::MAX; WORDS] } else { [0; WORDS] };
        *self = CommandSet { all: allowed, begins_with_all: allowed, bits, ..CommandSet::default() };
    }

    /// Whether nothing needs to be looked at.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// `+get`, `-client|list`, `+select|0`; `name` without the sign.
    pub fn set_command(&mut self, name: &[u8], allowed: bool, naming: Naming) -> Result<(), RuleError> {
        match self.set_own_command(name, allowed) {
            Err(RuleError::Unknown) if naming.knows(name) => {
                self.all &= allowed;
                self.note_rule(name, allowed);
                Ok(())
            }
            done => done,
        }
    }

    fn set_own_command(&mut self, name: &[u8], allowed: bool) -> Result<(), RuleError> {
        let bar = name.iter().rposition(|byte| *byte == b'|');
        let Some(bar) = bar.filter(|_| allowed) else {
            let spec = find(name).ok_or(RuleError::Unknown)?;
            self.set(spec, allowed);
            self.note_rule(spec.full_name.as_bytes(), allowed);
            return Ok(());
        };
        let (command, sub) = (&name[..bar], &name[bar + 1..]);
        let spec = find(command).ok_or(RuleError::Unknown)?;
        if command.contains(&b'|') {
            return Err(RuleError::FirstArgumentOfSubcommand);
        }
        if sub.is_empty() || has_spaces(sub) {
            return Err(RuleError::Syntax);
        }
        match spec.subcommands.is_empty() {
            false => self.set(spec.subcommand(sub).ok_or(RuleError::Unknown)?, true),
            true => {
                let firsts = self.first_arguments.entry(spec.id).or_default();
                if !firsts.iter().any(|first| first.eq_ignore_ascii_case(sub)) {
                    firsts.push(sub.to_vec());
                }
            }
        }
        self.note_rule(name, true);
        Ok(())
    }

    /// `+@read`, `-@dangerous`; `name` without sign and `@`.
    pub fn set_category(&mut self, name: &[u8], allowed: bool) -> Result<(), RuleError> {
        let category = Categories::named(name).ok_or(RuleError::Unknown)?;
        // Others' commands may be in it, though none of ours is.
        self.all &= allowed;
        let is_in = |spec: &CommandSpec| spec.categories.contains(category);
        for spec in all() {
            if is_in(spec) {
                self.set(spec, allowed);
            }
            spec.subcommands.iter().filter(|spec| is_in(spec)).for_each(|spec| self.set(spec, allowed));
        }
        self.note_rule(&[b"@", name].concat(), allowed);
        Ok(())
    }

    /// A command with all its subcommands.
    fn set(&mut self, spec: &CommandSpec, allowed: bool) {
        self.all &= allowed;
        self.first_arguments.remove(&spec.id);
        for id in std::iter::once(spec.id).chain(spec.subcommands.iter().map(|spec| spec.id)) {
            let (word, bit) = (id as usize / 64, 1 << (id as usize % 64));
            match allowed {
                true => self.bits[word] |= bit,
                false => self.bits[word] &= !bit,
            }
        }
    }

    /// The rule takes the place of those about the same, and of those about parts of it.
    fn note_rule(&mut self, name: &[u8], allowed: bool) {
        let name = name.to_ascii_lowercase();
        self.rules.retain(|(_, other)| {
            let rest = other.strip_prefix(name.as_slice());
            !rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'|')
        });
        self.rules.push((allowed, name));
    }

    /// Whether the request may run as far as its command goes.
    #[inline]
    pub fn allows(&self, spec: &CommandSpec, arguments: Arguments<'_>) -> bool {
        let has = |id: usize| self.bits[id / 64] >> (id % 64) & 1 == 1;
        self.all
            || has(spec.id as usize)
            || has(spec.permission as usize)
            || spec.flags.contains(Flags::NO_AUTH)
            || self.allows_first_argument(spec, arguments)
    }

    #[cold]
    fn allows_first_argument(&self, spec: &CommandSpec, arguments: Arguments<'_>) -> bool {
        let Some(firsts) = self.first_arguments.get(&spec.id) else { return false };
        arguments.get(1).is_some_and(|given| firsts.iter().any(|first| first.eq_ignore_ascii_case(given)))
    }

    /// Whether a command that is not in the registry may run, as far as that goes: the rules in their order decide.
    pub fn allows_other(&self, full_name: &str, first: Option<&[u8]>, categories: Categories) -> bool {
        let fits = |rule: &[u8]| match rule.strip_prefix(b"@") {
            Some(name) => Categories::named(name).is_some_and(|category| categories.contains(category)),
            None => names(rule, full_name.as_bytes(), first),
        };
        let last = self.rules.iter().rfind(|(_, rule)| fits(rule));
        self.all || last.map_or(self.begins_with_all, |(allowed, _)| *allowed)
    }

    /// As rules, separated by spaces.
    pub fn write(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(if self.begins_with_all { b"+@all" } else { b"-@all" });
        for (allowed, name) in &self.rules {
            text.extend_from_slice(if *allowed { b" +" } else { b" -" });
            text.extend_from_slice(name);
        }
    }
}

/// Whether a rule is about a command: by its name, by its container's, or by its first argument.
fn names(rule: &[u8], full_name: &[u8], first: Option<&[u8]>) -> bool {
    if let Some(rest) = full_name.strip_prefix(rule) {
        return rest.is_empty() || rest[0] == b'|';
    }
    let rest = rule.strip_prefix(full_name).and_then(|rest| rest.strip_prefix(b"|"));
    rest.is_some_and(|given| first.is_some_and(|first| first.eq_ignore_ascii_case(given)))
}

/// A command, or `container|subcommand`.
fn find(name: &[u8]) -> Option<&'static CommandSpec> {
    match name.iter().position(|byte| *byte == b'|') {
        None => lookup(name),
        Some(bar) => lookup(&name[..bar])?.subcommand(&name[bar + 1..]),
    }
}
