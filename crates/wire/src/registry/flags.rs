//! Sets of flags of a command and of its keys, with the names COMMAND prints.

macro_rules! bit_set {
    ($(#[$doc:meta])* $type:ident { $($(#[$bit_doc:meta])* $name:ident = $bit:literal $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $type(u32);

        impl $type {
            $($(#[$bit_doc])* pub const $name: $type = $type(1 << $bit);)*
            const NAMES: &[($type, &str)] = &[$(($type::$name, $text)),*];

            /// No member.
            pub const EMPTY: $type = $type(0);

            /// Members of either.
            pub const fn union(self, other: $type) -> $type {
                $type(self.0 | other.0)
            }

            /// Members of this that `other` has not.
            pub const fn without(self, other: $type) -> $type {
                $type(self.0 & !other.0)
            }

            /// Whether all members of `other` are in.
            #[inline]
            pub const fn contains(self, other: $type) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether some member of `other` is in.
            #[inline]
            pub const fn intersects(self, other: $type) -> bool {
                self.0 & other.0 != 0
            }

            /// Names of the members as COMMAND prints them.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::NAMES.iter().filter(move |(bit, _)| self.contains(*bit)).map(|(_, name)| *name)
            }

            /// Names of all there are.
            pub fn all_names() -> impl Iterator<Item = &'static str> {
                Self::NAMES.iter().map(|(_, name)| *name)
            }

            /// The member of that name.
            pub fn named(text: &[u8]) -> Option<$type> {
                Self::NAMES.iter().find(|(_, name)| text.eq_ignore_ascii_case(name.as_bytes())).map(|(bit, _)| *bit)
            }
        }

        impl std::ops::BitOr for $type {
            type Output = $type;

            fn bitor(self, other: $type) -> $type {
                self.union(other)
            }
        }
    };
}

bit_set! {
    /// How a command behaves; Redis's names and meanings.
    Flags {
        /// May change data.
        WRITE = 0 "write";
        /// Only reads data.
        READONLY = 1 "readonly";
        /// May grow memory: refused above the limit.
        DENYOOM = 2 "denyoom";
        /// For operators.
        ADMIN = 3 "admin";
        /// Publish/subscribe.
        PUBSUB = 4 "pubsub";
        /// Not from scripts.
        NOSCRIPT = 5 "noscript";
        /// May make its connection wait.
        BLOCKING = 6 "blocking";
        /// Allowed while recovery is under way.
        LOADING = 7 "loading";
        /// Allowed on a replica that lost its primary.
        STALE = 8 "stale";
        /// Not shown by MONITOR.
        SKIP_MONITOR = 9 "skip_monitor";
        /// Not kept by SLOWLOG.
        SKIP_SLOWLOG = 10 "skip_slowlog";
        /// Implies ASKING.
        ASKING = 11 "asking";
        /// Constant or logarithmic time.
        FAST = 12 "fast";
        /// Allowed before authentication.
        NO_AUTH = 13 "no_auth";
        /// May be called without its keys.
        NO_MANDATORY_KEYS = 14 "no_mandatory_keys";
        /// Not while a replica loads in the background.
        NO_ASYNC_LOADING = 15 "no_async_loading";
        /// Not inside MULTI.
        NO_MULTI = 16 "no_multi";
        /// Allowed while a script hogs the node.
        ALLOW_BUSY = 17 "allow_busy";
        /// Keys cannot be told from first, last and step alone.
        MOVABLE_KEYS = 18 "movablekeys";
    }
}

bit_set! {
    /// The sets that ACL rules name with `@`.
    Categories {
        /// Keys and databases.
        KEYSPACE = 0 "keyspace";
        /// Reads data.
        READ = 1 "read";
        /// Changes data.
        WRITE = 2 "write";
        /// Sets.
        SET = 3 "set";
        /// Sorted sets.
        SORTEDSET = 4 "sortedset";
        /// Lists.
        LIST = 5 "list";
        /// Hashes.
        HASH = 6 "hash";
        /// Strings.
        STRING = 7 "string";
        /// Bits of strings.
        BITMAP = 8 "bitmap";
        /// HyperLogLog.
        HYPERLOGLOG = 9 "hyperloglog";
        /// Geography.
        GEO = 10 "geo";
        /// Streams.
        STREAM = 11 "stream";
        /// Publish/subscribe.
        PUBSUB = 12 "pubsub";
        /// For operators.
        ADMIN = 13 "admin";
        /// Constant or logarithmic time.
        FAST = 14 "fast";
        /// Everything else.
        SLOW = 15 "slow";
        /// May wait.
        BLOCKING = 16 "blocking";
        /// To be used with care.
        DANGEROUS = 17 "dangerous";
        /// The connection itself.
        CONNECTION = 18 "connection";
        /// MULTI and its kin.
        TRANSACTION = 19 "transaction";
        /// Scripts.
        SCRIPTING = 20 "scripting";
    }
}

bit_set! {
    /// What a command does with a key; Redis's names and meanings.
    KeyFlags {
        /// Reads value or metadata.
        RO = 0 "RO";
        /// Changes the value in place.
        RW = 1 "RW";
        /// Replaces the value.
        OW = 2 "OW";
        /// Removes the key.
        RM = 3 "RM";
        /// Gives the value away, or copies it.
        ACCESS = 4 "access";
        /// Changes the value.
        UPDATE = 5 "update";
        /// Adds without touching what is there.
        INSERT = 6 "insert";
        /// Deletes on purpose.
        DELETE = 7 "delete";
        /// Looks like a key and is none.
        NOT_KEY = 8 "not_key";
        /// Does not find all keys.
        INCOMPLETE = 9 "incomplete";
        /// Other arguments change what is done.
        VARIABLE_FLAGS = 10 "variable_flags";
    }
}
