//! Commands that this store does not have: who stands before another one decides about those by the same rules.

use super::check::{Denial, DenialKind};
use super::patterns::Access;
use super::user::Selector;
use wire::registry::Categories;
use wire::{Arguments, glob};

/// A key of such a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherKey {
    /// Index of the argument.
    pub index: usize,
    /// What is done with it.
    pub needed: Access,
}

/// A request of such a command.
#[derive(Clone, Copy, Debug)]
pub struct Other<'a> {
    /// In lower case: `hset`, `xgroup|create`.
    pub full_name: &'a str,
    /// Those that whoever has it puts it in.
    pub categories: Categories,
    /// Its keys; `None` if nobody can tell them all, which asks for a selector with all keys.
    pub keys: Option<&'a [OtherKey]>,
    /// Indices of its channels.
    pub channels: &'a [usize],
    /// These are patterns, which are allowed only as they are written.
    pub are_patterns: bool,
}

impl Selector {
    pub(super) fn check_other(&self, other: &Other<'_>, arguments: Arguments<'_>) -> Result<(), Denial> {
        let container = other.full_name.split('|').count();
        if !self.commands.allows_other(other.full_name, arguments.get(container), other.categories) {
            return Err(Denial { kind: DenialKind::Command, argument: 0 });
        }
        if !self.all_keys {
            let Some(keys) = other.keys else { return Err(Denial { kind: DenialKind::Key, argument: 0 }) };
            let is_allowed = |key: &&OtherKey| {
                let word = arguments.get(key.index);
                word.is_some_and(|word| self.patterns.iter().any(|pattern| pattern.allows(word, key.needed)))
            };
            if let Some(key) = keys.iter().find(|key| !is_allowed(key)) {
                return Err(Denial { kind: DenialKind::Key, argument: key.index });
            }
        }
        let refused = other.channels.iter().find(|&&index| !self.allows_channel(&arguments[index], other.are_patterns));
        match refused {
            Some(&argument) => Err(Denial { kind: DenialKind::Channel, argument }),
            None => Ok(()),
        }
    }

    fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        let allows = |known: &Vec<u8>| match is_pattern {
            true => known == channel,
            false => glob::matches(known, channel, false),
        };
        self.all_channels || self.channels.iter().any(allows)
    }
}

/// Which commands rules may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Those of the registry.
    Own,
    /// Those of Redis and Valkey, and of modules, whose names have a dot.
    Any,
}

impl Naming {
    pub(super) fn knows(self, name: &[u8]) -> bool {
        if self == Naming::Own {
            return false;
        }
        let Ok(name) = std::str::from_utf8(name) else { return false };
        let name = name.to_ascii_lowercase();
        let container = name.split('|').next().unwrap_or_default();
        let has = |wanted: &str| OTHERS.iter().flat_map(|line| line.split(' ')).any(|known| known == wanted);
        let is_word = name.bytes().all(|byte| (b'!'..=b'~').contains(&byte));
        is_word && (has(&name) || has(container) || container.trim_matches('.').contains('.'))
    }
}

/// Redis 7.2 and Valkey 8, beyond the registry: a misspelt one is refused, as they do. What the registry has, too, does no harm here.
const OTHERS: [&str; 16] = [
    "hdel hexists hexpire hexpireat hexpiretime hget hgetall hgetdel hgetex hincrby hincrbyfloat hkeys hlen hmget hmset",
    "hpersist hpexpire hpexpireat hpexpiretime hpttl hrandfield hscan hset hsetex hsetnx hstrlen httl hvals",
    "sadd scard sdiff sdiffstore sinter sintercard sinterstore sismember smembers smismember smove spop srandmember srem",
    "sscan sunion sunionstore bzmpop bzpopmax bzpopmin zadd zcard zcount zdiff zdiffstore zincrby zinter zintercard",
    "zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore zrangestore zrank",
    "zrem zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore",
    "zunion zunionstore geoadd geodist geohash geopos georadius georadius_ro georadiusbymember georadiusbymember_ro",
    "geosearch geosearchstore pfadd pfcount pfdebug pfmerge pfselftest xack xadd xautoclaim xclaim xdel xgroup xinfo xlen",
    "xpending xrange xread xreadgroup xrevrange xsetid xtrim publish subscribe unsubscribe psubscribe punsubscribe pubsub",
    "spublish ssubscribe sunsubscribe eval eval_ro evalsha evalsha_ro fcall fcall_ro script function blmove blmpop blpop",
    "brpop brpoplpush lmpop lcs sort sort_ro dump restore restore-asking migrate move copy object wait waitaof randomkey",
    "acl bgrewriteaof bgsave debug failover latency lolwut memory module monitor psync replconf replicaof role save",
    "shutdown slaveof slowlog swapdb sync time lastsave asking readonly readwrite substr getset rpoplpush expiretime",
    "client|caching client|getredir client|kill client|no-evict client|no-touch client|pause client|reply client|tracking",
    "client|trackinginfo client|unblock client|unpause client|capa client|import-source client|id client|list",
    "config|resetstat config|rewrite commandlog cluster|slot-stats memory|doctor memory|purge memory|stats memory|usage",
];
