//! The error replies, word for word: clients switch on the first word, people search for the rest.

use crate::{Arguments, Reply};
use base::Slot;

/// An error reply without parameters: code and text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// First word; what clients switch on.
    pub code: &'static str,
    /// The rest of the line.
    pub text: &'static str,
}

impl ErrorReply {
    /// An error of the house; use the constants below where one fits.
    pub const fn new(code: &'static str, text: &'static str) -> ErrorReply {
        ErrorReply { code, text }
    }

    /// Appends the reply.
    pub fn write(self, reply: &mut Reply<'_>) {
        reply.error(self.code, self.text);
    }
}

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal;)*) => {
        $($(#[$doc])* pub const $name: ErrorReply = ErrorReply::new($code, $text);)*

        /// Every constant of this page, for tests and documentation.
        pub const ALL: &[ErrorReply] = &[$($name),*];
    };
}

errors! {
    /// The key holds another type.
    WRONG_TYPE = "WRONGTYPE" "Operation against a key holding the wrong kind of value";
    /// Options do not fit together, or one is unknown.
    SYNTAX = "ERR" "syntax error";
    /// An argument or value is no 64-bit integer.
    NOT_INTEGER = "ERR" "value is not an integer or out of range";
    /// An argument or value is no number.
    NOT_FLOAT = "ERR" "value is not a valid float";
    /// A count, cursor or the like is outside its range.
    OUT_OF_RANGE = "ERR" "value is out of range";
    /// A count below zero.
    NOT_POSITIVE = "ERR" "value is out of range, must be positive";
    /// INCR or DECR would leave 64 bits.
    OVERFLOW = "ERR" "increment or decrement would overflow";
    /// DECRBY of the smallest integer.
    DECREMENT_OVERFLOW = "ERR" "decrement would overflow";
    /// INCRBYFLOAT without a finite result.
    NAN_OR_INFINITY = "ERR" "increment would produce NaN or Infinity";
    /// RENAME, LSET and others that need the key.
    NO_SUCH_KEY = "ERR" "no such key";
    /// LSET and others outside the list.
    INDEX_OUT_OF_RANGE = "ERR" "index out of range";
    /// SETRANGE and the like before the beginning.
    OFFSET_OUT_OF_RANGE = "ERR" "offset is out of range";
    /// A value above the limit would result.
    STRING_TOO_LONG = "ERR" "string exceeds maximum allowed size (proto-max-bulk-len)";
    /// A key above [`base::limits::KEY_BYTES_MAX`].
    KEY_TOO_LONG = "ERR" "key is longer than 65535 bytes";
    /// SETBIT and GETBIT beyond the longest value.
    BIT_OFFSET = "ERR" "bit offset is not an integer or out of range";
    /// A bit that is neither 0 nor 1.
    BIT_VALUE = "ERR" "bit is not an integer or out of range";
    /// BITPOS for a bit that is neither 0 nor 1.
    BIT_ARGUMENT = "ERR" "The bit argument must be 1 or 0.";
    /// BITFIELD's type.
    BITFIELD_TYPE = "ERR" "Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
    /// BITFIELD's OVERFLOW.
    BITFIELD_OVERFLOW = "ERR" "Invalid OVERFLOW type specified";
    /// BITOP NOT with several sources.
    BITOP_NOT = "ERR" "BITOP NOT must be called with a single source key.";
    /// LCS with both result forms.
    LCS_OPTIONS = "ERR" "If you want both the length and indexes, please just use IDX.";
    /// LCS of something else than strings.
    LCS_NOT_STRING = "ERR" "The specified keys must contain string values";
    /// LPOS COUNT below zero.
    COUNT_NEGATIVE = "ERR" "COUNT can't be negative";
    /// LPOS MAXLEN below zero.
    MAXLEN_NEGATIVE = "ERR" "MAXLEN can't be negative";
    /// LMPOP and BLMPOP without a key.
    NUMKEYS_NOT_POSITIVE = "ERR" "numkeys should be greater than 0";
    /// LMPOP and BLMPOP of nothing.
    COUNT_NOT_POSITIVE = "ERR" "count should be greater than 0";
    /// EXPIRE's conditions.
    EXPIRE_NX_WITH_OTHERS = "ERR" "NX and XX, GT or LT options at the same time are not compatible";
    /// EXPIRE's conditions.
    EXPIRE_GT_WITH_LT = "ERR" "GT and LT options at the same time are not compatible";
    /// OBJECT FREQ without an LFU policy.
    NOT_LFU = "ERR" "An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.";
    /// SLOWLOG GET below -1.
    SLOWLOG_COUNT = "ERR" "count should be greater than or equal to -1";
    /// CLIENT SETNAME and HELLO SETNAME.
    CLIENT_NAME = "ERR" "Client names cannot contain spaces, newlines or special characters.";
    /// CLIENT KILL without a match.
    NO_SUCH_CLIENT = "ERR" "No such client";
    /// LPOS RANK 0.
    LPOS_RANK = "ERR" "RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list";
    /// SELECT outside the databases.
    DATABASE_OUT_OF_RANGE = "ERR" "DB index is out of range";
    /// SELECT on a cluster port.
    SELECT_IN_CLUSTER = "ERR" "SELECT is not allowed in cluster mode";
    /// MOVE on a cluster port.
    MOVE_IN_CLUSTER = "ERR" "MOVE is not allowed in cluster mode";
    /// CLUSTER COUNTKEYSINSLOT and others beyond the slots.
    INVALID_SLOT = "ERR" "Invalid slot";
    /// CLUSTER GETKEYSINSLOT beyond the slots, or of less than no keys.
    INVALID_SLOT_OR_COUNT = "ERR" "Invalid slot or number of keys";
    /// COPY onto itself, MOVE into the same database.
    SAME_OBJECT = "ERR" "source and destination objects are the same";
    /// SCAN with a cursor that is none.
    INVALID_CURSOR = "ERR" "invalid cursor";
    /// A blocking command's timeout.
    TIMEOUT_NEGATIVE = "ERR" "timeout is negative";
    /// A blocking command's timeout.
    TIMEOUT_NOT_FLOAT = "ERR" "timeout is not a float or out of range";
    /// ZH.WAIT's and WAIT's timeout.
    TIMEOUT_NOT_INTEGER = "ERR" "timeout is not an integer or out of range";
    /// MULTI inside MULTI.
    NESTED_MULTI = "ERR" "MULTI calls can not be nested";
    /// EXEC outside MULTI.
    EXEC_WITHOUT_MULTI = "ERR" "EXEC without MULTI";
    /// DISCARD outside MULTI.
    DISCARD_WITHOUT_MULTI = "ERR" "DISCARD without MULTI";
    /// WATCH inside MULTI.
    WATCH_INSIDE_MULTI = "ERR" "WATCH inside MULTI is not allowed";
    /// An error while queueing spoiled the transaction.
    EXEC_ABORT = "EXECABORT" "Transaction discarded because of previous errors.";
    /// A password is owed.
    NO_AUTH = "NOAUTH" "Authentication required.";
    /// HELLO without AUTH where a password is owed.
    NO_AUTH_HELLO = "NOAUTH" "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";
    /// The password is not that one.
    WRONG_PASSWORD = "WRONGPASS" "invalid username-password pair or user is disabled.";
    /// AUTH where no password is set.
    NO_PASSWORD_SET = "ERR" "AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?";
    /// HELLO with a version that is neither 2 nor 3.
    NO_PROTOCOL = "NOPROTO" "unsupported protocol version";
    /// HELLO with a version that is no number.
    PROTOCOL_NOT_INTEGER = "ERR" "Protocol version is not an integer or out of range";
    /// Keys of one command in several slots, on a cluster port.
    CROSS_SLOT = "CROSSSLOT" "Keys in request don't hash to the same slot";
    /// Recovery is under way.
    LOADING = "LOADING" "Redis is loading the dataset in memory";
    /// A write while the memory limit is reached.
    OUT_OF_MEMORY = "OOM" "command not allowed when used memory > 'maxmemory'.";
    /// The same of a node that follows the key's slot.
    COPIES_OUT_OF_MEMORY = "OOM" "command not allowed when used memory > 'maxmemory' of a node that has copies: raise it there, or move slots away from it";
    /// One command or EXEC whose changes exceed `LOG_UNIT_BYTES_MAX`.
    UNIT_TOO_LONG = "ERR" "this command or transaction would write more than 1280 MiB of values to the log at once: move long values in separate commands, and a long list element by element (LMOVE)";
    /// A reply to a forwarded request above `OUTPUT_BYTES_MAX`.
    REPLY_TOO_LONG = "ERR" "the reply would be longer than 1 GiB: ask for less at once";
    /// A write after the log failed.
    LOG_FAILED = "MISCONF" "Errors writing to the log: writes are refused until the disk is repaired and the node restarted";
    /// Refused for now; the client may try again.
    BUSY = "BUSY" "the node is overloaded, try again";
    /// Several keys of which some are under way to another owner.
    TRY_AGAIN = "TRYAGAIN" "Multiple keys request during rehashing of slot";
    /// No owner for the slot.
    CLUSTER_DOWN = "CLUSTERDOWN" "Hash slot not served";
    /// A blocked client was told to go on.
    UNBLOCKED = "UNBLOCKED" "client unblocked via CLIENT UNBLOCK";
    /// A blocked client's key moved away.
    UNBLOCKED_MOVED = "UNBLOCKED" "force unblock from blocking operation, instance state changed (master -> replica?)";
    /// A write on a replica's connection.
    READ_ONLY = "READONLY" "You can't write against a read only replica.";
    /// No password set and the client is not local.
    DENIED = "DENIED" "Zerohop listens beyond this machine without a password: set --requirepass-file, or connect from the machine itself";
    /// The user may not run this.
    NO_PERMISSION = "NOPERM" "this user has no permissions to run this command";
    /// Above the limit of connections.
    MAX_CLIENTS = "ERR" "max number of clients reached";
    /// CLUSTER outside a cluster.
    CLUSTER_DISABLED = "ERR" "This instance has cluster support disabled";
    /// A command that would not fit a transaction.
    NOT_IN_TRANSACTION = "ERR" "Command not allowed inside a transaction";
    /// COMMAND GETKEYS of a command without keys.
    NO_KEY_ARGUMENTS = "ERR" "The command has no key arguments";
    /// COMMAND GETKEYS of something unknown.
    INVALID_COMMAND = "ERR" "Invalid command specified";
    /// COMMAND GETKEYS with a number of arguments that does not fit.
    INVALID_ARGUMENT_COUNT = "ERR" "Invalid number of arguments specified for command";
    /// COMMAND GETKEYS with keys that cannot be found.
    INVALID_ARGUMENTS = "ERR" "Invalid arguments specified for command";
}

/// Bytes of the arguments that an unknown command's error repeats, and of its name.
const ECHO_BYTES_MAX: usize = 128;

/// `ERR unknown command 'foo', with args beginning with: 'a' 'b' `; for an unknown command.
pub fn unknown_command(reply: &mut Reply<'_>, arguments: Arguments<'_>) {
    let name = arguments.get(0).unwrap_or_default();
    let mut echoed = Vec::new();
    for argument in arguments.from(1) {
        if echoed.len() >= ECHO_BYTES_MAX {
            break;
        }
        let room = ECHO_BYTES_MAX - echoed.len();
        echoed.push(b'\'');
        echoed.extend_from_slice(c_string(argument, room));
        echoed.extend_from_slice(b"' ");
    }
    let mut text = b"unknown command '".to_vec();
    text.extend_from_slice(c_string(name, ECHO_BYTES_MAX));
    text.extend_from_slice(b"', with args beginning with: ");
    text.extend_from_slice(&echoed);
    reply.error_bytes("ERR", &text);
}

/// `ERR unknown subcommand 'foo'. Try CLIENT HELP.`
pub fn unknown_subcommand(reply: &mut Reply<'_>, container: &str, subcommand: &[u8]) {
    let mut text = b"unknown subcommand '".to_vec();
    text.extend_from_slice(c_string(subcommand, ECHO_BYTES_MAX));
    text.extend_from_slice(b"'. Try ");
    text.extend_from_slice(container.to_ascii_uppercase().as_bytes());
    text.extend_from_slice(b" HELP.");
    reply.error_bytes("ERR", &text);
}

/// `ERR wrong number of arguments for 'client|setname' command`; `full_name` as the registry spells it.
pub fn wrong_arity(reply: &mut Reply<'_>, full_name: &str) {
    reply.error("ERR", &format!("wrong number of arguments for '{full_name}' command"));
}

/// `ERR Unknown category 'foo'`; for ACL CAT.
pub fn unknown_category(reply: &mut Reply<'_>, category: &[u8]) {
    quoted(reply, "Unknown category ", category);
}

/// `ERR Unknown node foo`; for CLUSTER REPLICAS and others that name an instance.
pub fn unknown_node(reply: &mut Reply<'_>, id: &[u8]) {
    let mut whole = b"Unknown node ".to_vec();
    whole.extend_from_slice(c_string(id, ECHO_BYTES_MAX));
    reply.error_bytes("ERR", &whole);
}

/// `ERR Unknown option or number of arguments for CONFIG SET - 'foo'`.
pub fn unknown_parameter(reply: &mut Reply<'_>, parameter: &[u8]) {
    quoted(reply, "Unknown option or number of arguments for CONFIG SET - ", parameter);
}

/// A text that ends with what the client sent, in quotes and up to a zero byte.
pub fn quoted(reply: &mut Reply<'_>, text: &str, echoed: &[u8]) {
    let mut whole = text.as_bytes().to_vec();
    whole.push(b'\'');
    whole.extend_from_slice(c_string(echoed, ECHO_BYTES_MAX));
    whole.push(b'\'');
    reply.error_bytes("ERR", &whole);
}

/// `ERR invalid expire time in 'set' command`.
pub fn invalid_expire_time(reply: &mut Reply<'_>, name: &str) {
    reply.error("ERR", &format!("invalid expire time in '{name}' command"));
}

/// `MOVED 3999 127.0.0.1:6381`; an empty host means the one the client is connected to.
pub fn moved(reply: &mut Reply<'_>, slot: Slot, host: &str, port: u16) {
    reply.error("MOVED", &format!("{} {host}:{port}", slot.number()));
}

/// The text as C's `%.*s` prints it: up to `len_max` bytes and up to the first NUL.
pub fn c_string(bytes: &[u8], len_max: usize) -> &[u8] {
    let bytes = &bytes[..bytes.len().min(len_max)];
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

/// EXEC of a transaction with a command that is not taken now: nothing of it ran.
pub fn exec_refused(reply: &mut Reply<'_>, code: &str, text: &str) {
    reply.error("EXECABORT", &format!("Transaction discarded because of: {code} {text}"));
}
