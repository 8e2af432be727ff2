//! How each data command looks when it is well formed, in the language of [`crate::template`].

/// Commands that sequences tend to combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Strings and counters.
    String,
    /// Bits of strings.
    Bit,
    /// Keys of any type, and their expiry.
    Keyspace,
    /// Lists.
    List,
    /// MULTI and what belongs to it; placed by the sequence generator.
    Transaction,
    /// SELECT and other state of a connection.
    Connection,
    /// What a transaction answers otherwise: the clients of all cores, and options read in another order.
    Clients,
    /// What only a node of a cluster answers.
    Cluster,
    /// Commands about all keys of a database; they get sequences of their own.
    Global,
    /// What Redis 7.0 does not have and Valkey has.
    Newer,
    /// Conditional writes and own commands, judged by the model.
    Conditional,
}

/// One command of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Which commands it is combined with.
    pub family: Family,
    /// How often it is chosen within its family, relative to the others.
    pub weight: u64,
    /// Its template; the first word is its name.
    pub template: &'static str,
}

impl Entry {
    /// The command's name in capitals.
    pub fn name(&self) -> &'static str {
        self.template.split(' ').next().unwrap_or_default()
    }
}

const fn entry(family: Family, weight: u64, template: &'static str) -> Entry {
    Entry { family, weight, template }
}

use Family::{Bit, Clients, Cluster, Conditional, Connection, Global, Keyspace, List, Newer, String, Transaction};

/// Every command that the differential run generates.
pub const CATALOGUE: &[Entry] = &[
    entry(String, 8, "SET <s> <v> *[ NX | XX | GET | KEEPTTL | EX <sec> | PX <ms> | EXAT <at> | PXAT <pat> ]"),
    entry(String, 6, "SET <s> <v>"),
    entry(String, 6, "GET <s>"),
    entry(String, 4, "APPEND <s> <v>"),
    entry(String, 2, "STRLEN <s>"),
    entry(String, 2, "GETSET <s> <v>"),
    entry(String, 2, "GETDEL <s>"),
    entry(String, 3, "GETEX <s> *[ PERSIST | EX <sec> | PX <ms> | EXAT <at> | PXAT <pat> ]"),
    entry(String, 3, "GETRANGE <s> <i> <i>"),
    entry(String, 1, "SUBSTR <s> <i> <i>"),
    entry(String, 3, "SETRANGE <s> <off> <v>"),
    entry(String, 2, "SETNX <s> <v>"),
    entry(String, 2, "SETEX <s> <sec> <v>"),
    entry(String, 2, "PSETEX <s> <ms> <v>"),
    entry(String, 3, "INCR <s>"),
    entry(String, 2, "DECR <s>"),
    entry(String, 4, "INCRBY <s> <n>"),
    entry(String, 4, "DECRBY <s> <n>"),
    entry(String, 4, "INCRBYFLOAT <s> <f>"),
    entry(String, 2, "MGET +( <k> )"),
    entry(String, 2, "MSET +( <s> <v> )"),
    entry(String, 2, "MSETNX +( <s> <v> )"),
    entry(String, 2, "LCS <s> <s> *[ LEN | IDX | MINMATCHLEN <c> | WITHMATCHLEN ]"),
    entry(Bit, 4, "SETBIT <s> <bitoff> <bit>"),
    entry(Bit, 3, "GETBIT <s> <bitoff>"),
    entry(Bit, 4, "BITCOUNT <s> [ <i> <i> [ BIT | BYTE ] | <bi> <bi> BIT | <i> ]"),
    entry(Bit, 4, "BITPOS <s> <bit> [ <i> [ <i> [ BIT | BYTE ] ] | <bi> <bi> BIT ]"),
    entry(Bit, 4, "BITOP ( AND | OR | XOR ) <s> +( <s> )"),
    entry(Bit, 2, "BITOP NOT <s> +( <s> )"),
    entry(
        Bit,
        6,
        "BITFIELD <s> *[ GET <bittype> <bitoff> | SET <bittype> <bitoff> <n> | INCRBY <bittype> <bitoff> <n> | OVERFLOW ( WRAP | SAT | FAIL | <nonsense> ) ]",
    ),
    entry(Bit, 2, "BITFIELD_RO <s> *[ GET <bittype> <bitoff> | SET u8 0 1 ]"),
    entry(Keyspace, 4, "DEL +( <k> )"),
    entry(Keyspace, 2, "UNLINK +( <k> )"),
    entry(Keyspace, 3, "EXISTS +( <k> )"),
    entry(Keyspace, 2, "TOUCH +( <k> )"),
    entry(Keyspace, 3, "TYPE <k>"),
    entry(Keyspace, 3, "EXPIRE <k> <sec> *[ NX | XX | GT | LT ]"),
    entry(Keyspace, 3, "PEXPIRE <k> <ms> *[ NX | XX | GT | LT ]"),
    entry(Keyspace, 4, "EXPIREAT <k> <at> *[ NX | XX | GT | LT ]"),
    entry(Keyspace, 4, "PEXPIREAT <k> <pat> *[ NX | XX | GT | LT ]"),
    entry(Keyspace, 3, "TTL <k>"),
    entry(Keyspace, 3, "PTTL <k>"),
    entry(Keyspace, 3, "EXPIRETIME <k>"),
    entry(Keyspace, 3, "PEXPIRETIME <k>"),
    entry(Keyspace, 3, "PERSIST <k>"),
    entry(Keyspace, 4, "RENAME <k> <k>"),
    entry(Keyspace, 3, "RENAMENX <k> <k>"),
    entry(Keyspace, 4, "COPY <k> <k> *[ REPLACE | DB <db> ]"),
    entry(Keyspace, 3, "MOVE <k> <db>"),
    // No time to live that two servers count from different milliseconds; and what is popped off the end changes no meaning.
    entry(
        Keyspace,
        3,
        "RESTORE <k> ( 0 | 0 | 0 | -1 | 9223372036854775807 | <nonsense> ) <dump> *[ REPLACE | FREQ <c> ]",
    ),
    entry(Keyspace, 3, "RESTORE <k> <pat> <dump> ABSTTL REPLACE"),
    entry(Keyspace, 3, "OBJECT ENCODING <k>"),
    entry(Keyspace, 1, "OBJECT ( REFCOUNT | FREQ | IDLETIME | <nonsense> ) <k>"),
    entry(List, 6, "RPUSH <l> +( <e> )"),
    entry(List, 6, "LPUSH <l> +( <e> )"),
    entry(List, 3, "RPUSH <l> +( <v> )"),
    entry(List, 1, "RPUSH <l> <many>"),
    entry(List, 1, "LPUSH <l> <many>"),
    entry(List, 2, "RPUSHX <l> +( <e> )"),
    entry(List, 2, "LPUSHX <l> +( <e> )"),
    entry(List, 3, "LPOP <l> [ <c> ]"),
    entry(List, 3, "RPOP <l> [ <c> ]"),
    entry(List, 2, "LLEN <l>"),
    entry(List, 5, "LRANGE <l> <i> <i>"),
    entry(List, 3, "LINDEX <l> <i>"),
    entry(List, 3, "LSET <l> <i> <e>"),
    entry(List, 3, "LTRIM <l> <i> <i>"),
    entry(List, 3, "LREM <l> <i> <e>"),
    entry(List, 3, "LINSERT <l> ( BEFORE | AFTER | <nonsense> ) <e> <e>"),
    entry(List, 4, "LPOS <l> <e> *[ RANK <i> | COUNT <c> | MAXLEN <c> ]"),
    entry(List, 3, "LMOVE <l> <l> ( LEFT | RIGHT ) ( LEFT | RIGHT | <nonsense> )"),
    entry(List, 2, "RPOPLPUSH <l> <l>"),
    entry(List, 3, "LMPOP <counted> ( LEFT | RIGHT ) *[ COUNT <c> ]"),
    entry(List, 1, "BLPOP +( <l> ) <timeout>"),
    entry(List, 1, "BRPOP +( <l> ) <timeout>"),
    entry(List, 1, "BLMOVE <l> <l> ( LEFT | RIGHT ) ( LEFT | RIGHT ) <timeout>"),
    entry(List, 1, "BRPOPLPUSH <l> <l> <timeout>"),
    entry(List, 1, "BLMPOP <timeout> <counted> ( LEFT | RIGHT ) *[ COUNT <c> ]"),
    entry(Transaction, 1, "MULTI"),
    entry(Transaction, 1, "EXEC"),
    entry(Transaction, 1, "DISCARD"),
    entry(Transaction, 1, "WATCH +( <k> )"),
    entry(Transaction, 1, "UNWATCH"),
    entry(Connection, 1, "OBJECT HELP"),
    entry(Connection, 6, "SELECT <db>"),
    entry(Connection, 2, "PING [ <v> ]"),
    entry(Connection, 1, "ECHO <v>"),
    entry(Connection, 2, "<nonsense> <k> <v>"),
    entry(Connection, 1, "CLIENT SETNAME ( name | <nonsense> )"),
    entry(Connection, 1, "CLIENT GETNAME"),
    entry(Connection, 1, "CLIENT NO-EVICT ( ON | OFF | <nonsense> )"),
    entry(Connection, 1, "CLIENT REPLY ( ON | <nonsense> )"),
    entry(Clients, 1, "CLIENT UNBLOCK ( 9223372036854775807 | abc | -1 ) [ TIMEOUT | ERROR | <nonsense> ]"),
    entry(Connection, 1, "CLIENT ( CACHING YES | CACHING <nonsense> | GETREDIR | TRACKING OFF | <nonsense> )"),
    entry(Clients, 1, "CLIENT KILL ( <e> | ID abc | ID 0 | <nonsense> <e> )"),
    entry(Connection, 1, "CLIENT ( PAUSE abc | PAUSE -1 | PAUSE 1 <nonsense> | UNPAUSE )"),
    entry(Clients, 1, "CLIENT LIST ( TYPE <nonsense> | ID abc | <nonsense> )"),
    entry(Connection, 1, "HELLO ( 1 | 4 | abc | 4 AUTH <e> )"),
    entry(Clients, 1, "HELLO 3 AUTH nobody <e>"),
    entry(Connection, 1, "AUTH ( <e> | nobody <e> | default <e> )"),
    entry(Connection, 1, "WAIT ( 0 <c> | 1 1 | abc 1 | 0 -1 )"),
    entry(Connection, 1, "READONLY"),
    entry(Connection, 1, "READWRITE"),
    entry(Connection, 1, "ASKING"),
    entry(
        Cluster,
        3,
        "CLUSTER ( KEYSLOT <k> | <nonsense> | COUNTKEYSINSLOT ( -1 | 16384 | abc ) | GETKEYSINSLOT ( -1 | 16384 | abc ) 1 )",
    ),
    entry(
        Connection,
        1,
        "COMMAND GETKEYS ( SET <s> <v> | MGET +( <k> ) | LMPOP 2 <l> <l> LEFT | PING | <nonsense> <k> )",
    ),
    entry(Connection, 1, "COMMAND GETKEYSANDFLAGS ( SET <s> <v> [ GET ] | BITFIELD <s> *[ GET u8 0 | SET u8 0 1 ] )"),
    entry(Newer, 1, "CLIENT SETINFO ( LIB-NAME <e> | LIB-VER <e> | <nonsense> <e> )"),
    entry(Newer, 1, "CLIENT NO-TOUCH ( ON | OFF | <nonsense> )"),
    entry(Global, 3, "DBSIZE"),
    entry(Global, 3, "KEYS <glob>"),
    entry(Global, 3, "SCAN <cursor> *[ MATCH <glob> | COUNT <c> | TYPE ( string | list | <nonsense> ) ]"),
    entry(Global, 2, "RANDOMKEY"),
    entry(Global, 1, "FLUSHDB [ ASYNC | SYNC | <nonsense> ]"),
    entry(Global, 1, "FLUSHALL [ ASYNC | SYNC | <nonsense> ]"),
    entry(Conditional, 6, "SET <s> <e>"),
    entry(Conditional, 3, "SET <s> <e> *[ IFEQ <e> | IFNE <e> | GET ]"),
    entry(Conditional, 4, "SET <s> <e> ( IFEQ <e> | IFNE <e> | IFDEQ <digest> | IFDNE <digest> ) [ GET ]"),
    entry(Conditional, 3, "SET <s> <e> [ GET ] ( IFEQ <e> | IFNE <e> | IFDEQ <digest> | IFDNE <digest> )"),
    entry(Conditional, 4, "GET <s>"),
    entry(Conditional, 4, "DIGEST <s>"),
    entry(Conditional, 4, "DELIFEQ <s> <e>"),
    entry(Conditional, 4, "DELEX <s> [ IFEQ <e> | IFNE <e> | IFDEQ <digest> | IFDNE <digest> ]"),
    entry(Conditional, 4, "ZH.GET <s>"),
    entry(Conditional, 2, "ZH.MGET *[ <s> ]"),
    entry(Conditional, 2, "MSETEX 1 <s> <e> [ NX | XX ] [ EX 5000 | PX 5000000 | KEEPTTL ]"),
    entry(Conditional, 2, "MSETEX 2 <s> <e> <s> <e> [ NX | XX ]"),
    entry(Conditional, 2, "DEL <k>"),
    entry(Conditional, 2, "RPUSH <l> <e>"),
];

#[cfg(test)]
mod tests {
    use super::CATALOGUE;
    use crate::template::parse;

    #[test]
    fn every_template_parses() {
        for entry in CATALOGUE {
            assert!(!parse(entry.template).is_empty(), "{}", entry.template);
        }
    }
}
