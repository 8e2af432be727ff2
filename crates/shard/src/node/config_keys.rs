//! Every setting that CONFIG knows: its default, what it accepts and whether anything follows from it.

/// What values a setting takes, and how they are spelled when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any bytes.
    Text,
    /// `yes` or `no`.
    Boolean,
    /// A decimal number within bounds, both included.
    Integer(i64, i64),
    /// A number of bytes, with `kb`, `mb` or `gb` if wanted; read as plain bytes.
    Bytes,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Pairs of seconds and changes.
    SavePoints,
}

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Decided when the node starts.
    Fixed,
    /// Takes effect at once.
    Live,
    /// Kept, because clients and test suites set it; nothing follows from it here.
    Kept,
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct ConfigKey {
    /// Lower case, as Redis spells it.
    pub name: &'static str,
    /// Value at start, unless the operator says otherwise.
    pub default: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// What a change does.
    pub role: Role,
}

const fn key(name: &'static str, default: &'static str, kind: Kind, role: Role) -> ConfigKey {
    ConfigKey { name, default, kind, role }
}

const ANY: Kind = Kind::Integer(i64::MIN, i64::MAX);
const NATURAL: Kind = Kind::Integer(0, i64::MAX);
const NATURAL_32: Kind = Kind::Integer(0, i32::MAX as i64);
const EVICTION: Kind = Kind::Choice(&[
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
]);

const WHEN_FULL: Kind = Kind::Choice(&["refuse", "evict-lru", "evict-lfu", "evict-ttl", "tier"]);

/// In alphabetical order.
pub static KEYS: &[ConfigKey] = &[
    key("aclfile", "", Kind::Text, Role::Fixed),
    key("activedefrag", "no", Kind::Boolean, Role::Kept),
    key("active-expire-effort", "1", Kind::Integer(1, 10), Role::Kept),
    key("appendfilename", "", Kind::Text, Role::Fixed),
    key("appendfsync", "everysec", Kind::Choice(&["everysec", "always", "no"]), Role::Fixed),
    key("appendonly", "yes", Kind::Boolean, Role::Fixed),
    key("auto-aof-rewrite-min-size", "67108864", Kind::Bytes, Role::Kept),
    key("auto-aof-rewrite-percentage", "100", NATURAL_32, Role::Kept),
    key("bind", "127.0.0.1", Kind::Text, Role::Fixed),
    key("busy-reply-threshold", "5000", NATURAL, Role::Kept),
    key("client-output-buffer-limit", "normal 0 0 0 slave 0 0 0 pubsub 0 0 0", Kind::Text, Role::Kept),
    key("client-query-buffer-limit", "1073741824", Kind::Bytes, Role::Kept),
    key("close-on-oom", "no", Kind::Boolean, Role::Kept),
    key("cluster-allow-reads-when-down", "no", Kind::Boolean, Role::Kept),
    key("cluster-announce-ip", "", Kind::Text, Role::Fixed),
    key("cluster-enabled", "no", Kind::Boolean, Role::Fixed),
    key("cluster-node-timeout", "15000", NATURAL, Role::Kept),
    key("cluster-require-full-coverage", "yes", Kind::Boolean, Role::Kept),
    key("databases", "16", Kind::Integer(1, 16), Role::Fixed),
    key("dbfilename", "", Kind::Text, Role::Fixed),
    key("dir", "", Kind::Text, Role::Fixed),
    key("dynamic-hz", "yes", Kind::Boolean, Role::Kept),
    key("enable-debug-command", "no", Kind::Choice(&["no", "yes", "local"]), Role::Fixed),
    key("hash-max-listpack-entries", "128", NATURAL, Role::Kept),
    key("hash-max-listpack-value", "64", NATURAL, Role::Kept),
    key("hll-sparse-max-bytes", "3000", Kind::Bytes, Role::Kept),
    key("hz", "10", Kind::Integer(1, 500), Role::Kept),
    key("io-threads", "1", Kind::Integer(1, 128), Role::Fixed),
    key("jemalloc-bg-thread", "no", Kind::Boolean, Role::Kept),
    key("latency-monitor-threshold", "0", NATURAL, Role::Live),
    key("latency-tracking", "no", Kind::Boolean, Role::Live),
    key("lazyfree-lazy-eviction", "no", Kind::Boolean, Role::Kept),
    key("lazyfree-lazy-expire", "no", Kind::Boolean, Role::Kept),
    key("lazyfree-lazy-server-del", "no", Kind::Boolean, Role::Kept),
    key("lazyfree-lazy-user-del", "no", Kind::Boolean, Role::Kept),
    key("lazyfree-lazy-user-flush", "no", Kind::Boolean, Role::Kept),
    key("lfu-decay-time", "1", NATURAL_32, Role::Kept),
    key("lfu-log-factor", "10", NATURAL_32, Role::Kept),
    key("list-compress-depth", "0", NATURAL_32, Role::Kept),
    key("list-max-listpack-size", "-2", Kind::Integer(i32::MIN as i64, i32::MAX as i64), Role::Live),
    key("logfile", "", Kind::Text, Role::Fixed),
    key("loglevel", "notice", Kind::Choice(&["debug", "verbose", "notice", "warning", "nothing"]), Role::Kept),
    key("maxclients", "10000", Kind::Integer(1, u32::MAX as i64), Role::Fixed),
    key("maxmemory", "0", Kind::Bytes, Role::Live),
    key("maxmemory-clients", "0", Kind::Bytes, Role::Kept),
    key("maxmemory-policy", "noeviction", EVICTION, Role::Live),
    key("maxmemory-samples", "5", Kind::Integer(1, 64), Role::Kept),
    key("min-replicas-to-write", "0", NATURAL_32, Role::Kept),
    key("no-appendfsync-on-rewrite", "no", Kind::Boolean, Role::Kept),
    key("notify-keyspace-events", "", Kind::Text, Role::Kept),
    key("oom-score-adj", "no", Kind::Choice(&["no", "yes", "relative", "absolute"]), Role::Kept),
    key("port", "6379", Kind::Integer(0, 65535), Role::Fixed),
    key("proto-max-bulk-len", "536870912", Kind::Bytes, Role::Kept),
    key("protected-mode", "yes", Kind::Boolean, Role::Fixed),
    key("rdbcompression", "yes", Kind::Boolean, Role::Kept),
    key("repl-backlog-size", "1048576", Kind::Bytes, Role::Kept),
    key("repl-diskless-sync", "yes", Kind::Boolean, Role::Kept),
    key("repl-diskless-sync-delay", "5", NATURAL_32, Role::Kept),
    key("repl-ping-replica-period", "10", NATURAL_32, Role::Kept),
    key("repl-timeout", "60", NATURAL_32, Role::Kept),
    key("replica-read-only", "yes", Kind::Boolean, Role::Kept),
    key("replica-serve-stale-data", "yes", Kind::Boolean, Role::Kept),
    key("requirepass", "", Kind::Text, Role::Live),
    key("sanitize-dump-payload", "no", Kind::Choice(&["no", "yes", "clients"]), Role::Kept),
    key("save", "", Kind::SavePoints, Role::Kept),
    key("set-max-intset-entries", "512", NATURAL, Role::Kept),
    key("set-max-listpack-entries", "128", NATURAL, Role::Kept),
    key("set-max-listpack-value", "64", NATURAL, Role::Kept),
    key("slowlog-log-slower-than", "10000", ANY, Role::Live),
    key("slowlog-max-len", "128", NATURAL, Role::Live),
    key("stop-writes-on-bgsave-error", "yes", Kind::Boolean, Role::Kept),
    key("stream-node-max-bytes", "4096", Kind::Bytes, Role::Kept),
    key("stream-node-max-entries", "100", NATURAL, Role::Kept),
    key("tcp-backlog", "511", NATURAL_32, Role::Fixed),
    key("tcp-keepalive", "300", NATURAL_32, Role::Kept),
    key("timeout", "0", NATURAL_32, Role::Live),
    key("tls-auth-clients", "yes", Kind::Choice(&["no", "yes", "optional"]), Role::Fixed),
    key("tls-ca-cert-file", "", Kind::Text, Role::Fixed),
    key("tls-cert-file", "", Kind::Text, Role::Fixed),
    key("tls-key-file", "", Kind::Text, Role::Fixed),
    key("tls-port", "0", Kind::Integer(0, 65535), Role::Fixed),
    key("tracking-table-max-keys", "1000000", NATURAL, Role::Kept),
    key("unixsocket", "", Kind::Text, Role::Fixed),
    key("zerohop-cores", "1", Kind::Integer(1, 64), Role::Fixed),
    key("zerohop-durability", "interval", Kind::Choice(&["memory", "interval", "commit"]), Role::Fixed),
    key("zerohop-replica-staleness-ms-max", "300", Kind::Integer(0, 3_600_000), Role::Live),
    key("zerohop-when-full", "refuse", WHEN_FULL, Role::Fixed),
    key("zset-max-listpack-entries", "128", NATURAL, Role::Kept),
    key("zset-max-listpack-value", "64", NATURAL, Role::Kept),
];

/// Older spellings, and what they mean.
pub static ALIASES: &[(&str, &str)] = &[
    ("hash-max-ziplist-entries", "hash-max-listpack-entries"),
    ("hash-max-ziplist-value", "hash-max-listpack-value"),
    ("list-max-ziplist-size", "list-max-listpack-size"),
    ("lua-time-limit", "busy-reply-threshold"),
    ("min-slaves-to-write", "min-replicas-to-write"),
    ("repl-ping-slave-period", "repl-ping-replica-period"),
    ("slave-read-only", "replica-read-only"),
    ("slave-serve-stale-data", "replica-serve-stale-data"),
    ("zset-max-ziplist-entries", "zset-max-listpack-entries"),
    ("zset-max-ziplist-value", "zset-max-listpack-value"),
];
