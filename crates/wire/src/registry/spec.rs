//! One command's entry: what it is called, takes, does and who executes it.

use super::flags::{Categories, Flags};
use super::id::CommandId;
use super::keys::{Find, KeySpec};

/// Which crate executes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Values and keys: `commands`.
    Data,
    /// The connection's own state: `session`.
    Connection,
    /// The node as a whole: `shard`.
    Node,
}

/// Which cores a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spread {
    /// The owner of its one key.
    SingleKey,
    /// The owners of all its keys.
    MultiKey,
    /// Every core.
    AllCores,
    /// Whichever received it.
    Any,
}

/// What the differential test compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Oracle {
    /// redis-server 7.0.15.
    Redis7,
    /// Valkey 8.1 or newer.
    Valkey,
    /// A model in the test: no reference at hand has it, or answers depend on the node itself.
    Model,
}

/// Heading under which COMMAND DOCS and the manual list a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Strings and counters.
    String,
    /// Bits of strings.
    Bitmap,
    /// Keys of any type.
    Generic,
    /// Lists.
    List,
    /// MULTI and its kin.
    Transactions,
    /// The connection itself.
    Connection,
    /// The node.
    Server,
    /// Slots and instances.
    Cluster,
}

impl Group {
    /// As COMMAND DOCS prints it.
    pub fn name(self) -> &'static str {
        match self {
            Group::String => "string",
            Group::Bitmap => "bitmap",
            Group::Generic => "generic",
            Group::List => "list",
            Group::Transactions => "transactions",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Cluster => "cluster",
        }
    }

    const fn category(self) -> Categories {
        match self {
            Group::String => Categories::STRING,
            Group::Bitmap => Categories::BITMAP,
            Group::Generic => Categories::KEYSPACE,
            Group::List => Categories::LIST,
            Group::Transactions => Categories::TRANSACTION,
            Group::Connection => Categories::CONNECTION,
            Group::Server | Group::Cluster => Categories::EMPTY,
        }
    }
}

/// Everything known about one command or subcommand.
#[derive(Debug)]
pub struct CommandSpec {
    /// For `match`.
    pub id: CommandId,
    /// Lower case; of a subcommand its own name only.
    pub name: &'static str,
    /// As errors and COMMAND print it: `client|setname`.
    pub full_name: &'static str,
    /// Number of arguments with the name(s); negative: at least that many.
    pub arity: i16,
    /// Behaviour.
    pub flags: Flags,
    /// For ACL.
    pub categories: Categories,
    /// Who may run that one may run this one, too.
    pub permission: CommandId,
    /// Where its keys are; [`super::key_positions`] finds them.
    pub keys: &'static [KeySpec],
    /// Index of the first key for routing; 0 when it has none at a fixed place.
    pub first_key: i16,
    /// Index of the last key; negative counts from the end.
    pub last_key: i16,
    /// Distance between keys.
    pub key_step: i16,
    /// Hints for clients (`request_policy:all_shards` and the like).
    pub tips: &'static [&'static str],
    /// Version of Redis or Valkey that has it first; of Zerohop for its own.
    pub since: &'static str,
    /// Heading.
    pub group: Group,
    /// Cost, for people.
    pub complexity: &'static str,
    /// One sentence, for people.
    pub summary: &'static str,
    /// What follows the name, in the manual's notation: `[optional]`, `this | that`, `again...`, `TOKEN value`.
    pub syntax: &'static str,
    /// Of a container such as CLIENT.
    pub subcommands: &'static [CommandSpec],
    /// Who executes it.
    pub family: Family,
    /// Which cores it needs.
    pub spread: Spread,
    /// What it is compared with.
    pub oracle: Oracle,
}

impl CommandSpec {
    /// Whether that many arguments, the name(s) included, make sense.
    #[inline]
    pub fn accepts_count(&self, count: usize) -> bool {
        let needed = usize::from(self.arity.unsigned_abs());
        count == needed || (self.arity < 0 && count > needed)
    }

    /// Whether it may change data.
    #[inline]
    pub fn is_write(&self) -> bool {
        self.flags.contains(Flags::WRITE)
    }

    /// The subcommand of that name, in any case.
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static CommandSpec> {
        self.subcommands.iter().find(|subcommand| name.eq_ignore_ascii_case(subcommand.name.as_bytes()))
    }

    /// An entry with the defaults of its group; the methods below fill in the rest.
    pub(super) const fn new(id: CommandId, full_name: &'static str, arity: i16, group: Group) -> CommandSpec {
        let (family, spread) = match group {
            Group::String | Group::Bitmap | Group::Generic | Group::List => (Family::Data, Spread::SingleKey),
            Group::Transactions | Group::Connection => (Family::Connection, Spread::Any),
            Group::Server | Group::Cluster => (Family::Node, Spread::Any),
        };
        CommandSpec {
            id,
            name: own_name(full_name),
            full_name,
            arity,
            flags: Flags::EMPTY,
            categories: group.category().union(Categories::SLOW),
            permission: id,
            keys: &[],
            first_key: 0,
            last_key: 0,
            key_step: 0,
            tips: &[],
            since: "",
            group,
            complexity: "O(1)",
            summary: "",
            syntax: "",
            subcommands: &[],
            family,
            spread,
            oracle: Oracle::Redis7,
        }
    }

    /// Behaviour, and the categories that follow from it.
    pub(super) const fn flags(mut self, flags: Flags) -> CommandSpec {
        self.flags = flags;
        let mut categories = self.group.category();
        if flags.contains(Flags::WRITE) {
            categories = categories.union(Categories::WRITE);
        }
        if flags.contains(Flags::READONLY) {
            categories = categories.union(Categories::READ);
        }
        if flags.contains(Flags::ADMIN) {
            categories = categories.union(Categories::ADMIN).union(Categories::DANGEROUS);
        }
        if flags.contains(Flags::PUBSUB) {
            categories = categories.union(Categories::PUBSUB);
        }
        if flags.contains(Flags::BLOCKING) {
            categories = categories.union(Categories::BLOCKING);
        }
        let pace = if flags.contains(Flags::FAST) { Categories::FAST } else { Categories::SLOW };
        self.categories = categories.union(pace);
        self
    }

    /// Categories that do not follow from group and flags; after [`CommandSpec::flags`].
    pub(super) const fn also(mut self, categories: Categories) -> CommandSpec {
        self.categories = self.categories.union(categories);
        self
    }

    /// Takes back a category that group or flags imply; after [`CommandSpec::flags`].
    pub(super) const fn without(mut self, categories: Categories) -> CommandSpec {
        self.categories = self.categories.without(categories);
        self
    }

    /// Where the keys are; also the first, last and step that older clients read.
    pub(super) const fn keys(mut self, keys: &'static [KeySpec]) -> CommandSpec {
        self.keys = keys;
        let mut index = 0;
        while index < keys.len() {
            match keys[index].find {
                Find::Range { last, step, .. } => {
                    let first = keys[index].begin.index();
                    if self.first_key == 0 {
                        self.first_key = first;
                    }
                    self.last_key = if last < 0 { last } else { first + last };
                    self.key_step = step;
                }
                Find::Number { .. } => self.flags = self.flags.union(Flags::MOVABLE_KEYS),
            }
            index += 1;
        }
        self
    }

    pub(super) const fn since(mut self, version: &'static str) -> CommandSpec {
        self.since = version;
        self
    }

    pub(super) const fn complexity(mut self, text: &'static str) -> CommandSpec {
        self.complexity = text;
        self
    }

    /// Syntax after the name, and one sentence.
    pub(super) const fn doc(mut self, syntax: &'static str, summary: &'static str) -> CommandSpec {
        self.syntax = syntax;
        self.summary = summary;
        self
    }

    pub(super) const fn tips(mut self, tips: &'static [&'static str]) -> CommandSpec {
        self.tips = tips;
        self
    }

    pub(super) const fn subcommands(mut self, subcommands: &'static [CommandSpec]) -> CommandSpec {
        self.subcommands = subcommands;
        // A container does nothing itself, so its group's category belongs to the subcommands.
        self.categories = self.categories.without(self.group.category());
        self
    }

    pub(super) const fn family(mut self, family: Family) -> CommandSpec {
        self.family = family;
        self
    }

    pub(super) const fn spread(mut self, spread: Spread) -> CommandSpec {
        self.spread = spread;
        self
    }

    /// Whoever may run that one may run this one.
    pub(super) const fn permitted_as(mut self, permission: CommandId) -> CommandSpec {
        self.permission = permission;
        self
    }

    pub(super) const fn oracle(mut self, oracle: Oracle) -> CommandSpec {
        self.oracle = oracle;
        self
    }
}

/// `setname` of `client|setname`.
const fn own_name(full_name: &'static str) -> &'static str {
    let bytes = full_name.as_bytes();
    let mut index = 0;
    while index < bytes.len() {
        if bytes[index] == b'|' {
            return full_name.split_at(index + 1).1;
        }
        index += 1;
    }
    full_name
}
