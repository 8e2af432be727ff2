//! Every bound of the system on one page, with the sum that justifies it. `docs/limits.md` is checked against it.

/// Longest key, bytes. Fits the 16-bit length of the record header.
pub const KEY_BYTES_MAX: usize = 65_535;
/// Longest value and longest bulk of a request, bytes: Redis's `proto-max-bulk-len`.
pub const VALUE_BYTES_MAX: usize = 512 << 20;
/// Most arguments of one request: Redis's bound.
pub const ARGUMENTS_MAX: usize = 1 << 20;
/// Longest inline request, bytes: Redis's bound.
pub const INLINE_BYTES_MAX: usize = 64 << 10;
/// Bytes of one request that is not complete yet: Redis's `client-query-buffer-limit`.
pub const REQUEST_BYTES_MAX: usize = 1 << 30;
/// Most arguments of one request before authentication (CVE-2021-32675).
pub const ARGUMENTS_UNAUTHENTICATED_MAX: usize = 10;
/// Longest bulk of a request before authentication, bytes (CVE-2021-32675).
pub const BULK_UNAUTHENTICATED_MAX: usize = 16 << 10;
/// Users of one node. Every one may be looked at by each core that gets a new table.
pub const ACL_USERS_MAX: usize = 4096;
/// Rules of one user as ACL LIST shows them, bytes: with as many users as there may be, all of them take 256 MiB.
pub const ACL_USER_BYTES_MAX: usize = 64 << 10;
/// Refusals that one core remembers for ACL LOG: Redis's `acllog-max-len`.
pub const ACL_LOG_ENTRIES_MAX: usize = 128;
/// Bytes that ACL LOG remembers of a key and of a name: whoever presents a name of 512 MiB is to find it again, not to fill memory.
pub const ACL_LOG_TEXT_BYTES_MAX: usize = 4 << 10;
/// Words that SLOWLOG keeps of a command, and bytes of each; Redis's numbers.
pub const SLOW_ARGUMENTS: usize = 32;
/// See [`SLOW_ARGUMENTS`].
pub const SLOW_ARGUMENT_BYTES: usize = 128;
/// Seconds of which LATENCY keeps the longest wait, per event; Redis's number.
pub const LATENCY_SAMPLES: usize = 160;
/// Longest file of users, bytes: all users with all rules.
pub const ACL_FILE_BYTES_MAX: usize = ACL_USERS_MAX * ACL_USER_BYTES_MAX;
/// Unsent reply bytes of one connection before its requests are no longer read: a client that does not read its
/// replies stops being served, not buffered.
pub const OUTPUT_PAUSE_BYTES: usize = 1 << 20;
/// Unsent reply bytes of a connection that owes a password before it is closed (CVE-2025-21605).
pub const OUTPUT_UNAUTHENTICATED_MAX: usize = 16 << 10;
/// Unsent reply bytes of one connection before it is closed, without those of long values, which are not copied.
pub const OUTPUT_BYTES_MAX: usize = 1 << 30;
/// Connections of one core; 2 cores reach Redis's `maxclients` of 10,000.
pub const CONNECTIONS_PER_CORE_MAX: usize = 10_000;
/// Cores (instances) of one node: at most 16 contiguous slot ranges each, so that CLUSTER SLOTS stays small.
pub const CORES_MAX: usize = 64;
/// Numbered databases of the standalone personality.
pub const DATABASE_COUNT: u8 = 16;
/// Bytes one receive may deliver; also how much one connection executes per tick (fairness).
pub const RECEIVE_BYTES: usize = 16 << 10;
/// Receive buffers of one core: 256 x 16 KiB = 4 MiB of address space, touched only as far as used.
pub const RECEIVE_BUFFERS: usize = 256;
/// The same for connections that bring long values or pipelines of many, so that others do not wait for theirs: 1 MiB.
pub const BULK_RECEIVE_BUFFERS: usize = 64;
/// Room of one core for what a layer makes of received bytes in one tick: all receive buffers, once more; 5 MiB of address
/// space, touched only as far as used.
pub const LAYER_ROOM_BYTES: usize = (RECEIVE_BUFFERS + BULK_RECEIVE_BUFFERS) * RECEIVE_BYTES;
/// Gaps between ticks that a core remembers, the longest ones: a list that one line of INFO shows.
pub const TICK_GAPS_KEPT: usize = 16;
/// Shortest gap between ticks that is told, microseconds: an eighth of what a core may take, so that a busy core is not
/// told about itself all the time.
pub const TICK_GAP_TOLD_US: u64 = 250;
/// Requests that are decoded, prefetched and executed together; two cache lines each stay within a first-level cache.
pub const PREFETCH_WINDOW: usize = 32;
/// Nominal size of a log segment, bytes. Every core has up to three that hold nothing needed: what is left of the present one,
/// the next one, and what nobody needs of the first; and up to 32 that become the next ones, where what the disk may hold has room. With
/// longer ones less of that would be log.
pub const SEGMENT_BYTES: u64 = 8 << 20;
/// Size of the first segment of a core's log, bytes: a start has to make it before anything is served, and most of what
/// small stores reserve is given back only at the next start.
pub const FIRST_SEGMENT_BYTES: u64 = 1 << 20;
/// Segments, 64 MiB, that a core may have on the disk beside twice its records, while that is below `DISK_SEGMENTS_MIN`: with fewer,
/// small stores would write runs all the time.
pub const LOG_SEGMENTS_MIN: u64 = 8;
/// Segments, 512 MiB, from which on a core has no more on the disk than twice its keys and values.
pub const DISK_SEGMENTS_MIN: u64 = 64;
/// The part of a run that its file may have as room behind it: what is left of the run that had the file before. Runs of a store whose
/// keys are spread evenly differ by about as much, so that most files keep their lengths.
pub const RUN_ROOM_SHARE: u64 = 128;
/// Segments of log that are not synced, 64 MiB, above which writers wait for the sync under way.
pub const LOG_UNSYNCED_SEGMENTS_MAX: u64 = 8;
/// Segments of log that are not synced, 16 MiB, above which the next sync does not wait for its time.
pub const LOG_SYNC_SEGMENTS: u64 = 2;
/// Bytes of log records after which a core serves no further request in this tick; the next tick goes on. A segment and
/// twice what all receive buffers hold: only requests that copy what is stored (COPY, RENAME, LMOVE) reach
/// it.
pub const LOG_GROUP_BYTES: usize = SEGMENT_BYTES as usize;
/// Bytes of log records of one command or EXEC over all its cores; what would exceed it is refused, because one group
/// has to hold it whole. Above the records of the largest request, so only what copies stored values is ever refused.
pub const LOG_UNIT_BYTES_MAX: usize = 1280 << 20;
/// Longest piece of a value in one log record, bytes; a longer value is logged as pieces.
pub const LOG_PIECE_BYTES_MAX: usize = 64 << 10;
/// Shortest lease of a backup's pins, milliseconds: the copying side renews it between two pieces of a file.
pub const BACKUP_LEASE_MS_MIN: u64 = 1000;
/// The same, unless asked for otherwise.
pub const BACKUP_LEASE_MS_DEFAULT: u64 = 60_000;
/// Longest lease of a backup's pins, milliseconds: a client that died withholds what it pinned no longer. A node has one
/// backup at a time, which withholds at most what the directory had when it began.
pub const BACKUP_LEASE_MS_MAX: u64 = 3_600_000;
/// Reads of runs for requests that a core has under way: more than a disk works on at once. Values on their way take as many
/// times the longest record, 4 MiB; what else is wanted waits, and who wants it is a connection or one of its forwarded
/// requests.
pub const VALUE_READS_MAX: usize = 64;
/// Reads of the run before that a walk has under way, of up to 256 KiB each: 4 MiB.
pub const WALK_READS_MAX: usize = 16;
/// Commands queued by one MULTI.
pub const TRANSACTION_COMMANDS_MAX: usize = 1 << 16;
/// Bytes queued by one MULTI, without long arguments.
pub const TRANSACTION_BYTES_MAX: usize = 256 << 20;
/// Bytes of long arguments, in blocks, queued by one MULTI: two of the longest.
pub const TRANSACTION_LONG_BYTES_MAX: usize = 1 << 30;
/// Codes of errors that are told apart where errors are counted, and one for all others: Redis's bound. Codes are constants of the
/// code, some forty.
pub const ERROR_CODES_MAX: usize = 128;
/// Longest code of an error that is counted, bytes; Redis's bound.
pub const ERROR_CODE_BYTES_MAX: usize = 32;
/// Keys watched by one connection.
pub const WATCHED_KEYS_MAX: usize = 1 << 16;
/// Waiters (ZH.WAIT, blocked pops, and in a cluster WAIT and WAITAOF) of one core; those of other cores' wide waits, one per connection, come on top.
pub const WAITERS_MAX: usize = 1 << 16;
/// Requests forwarded to other cores and not answered, per connection.
pub const HOPS_PENDING_PER_CONNECTION_MAX: usize = 1024;
/// Bytes of the replies in one batch between two cores after which forwarded requests wait for the next tick: a few
/// long values fill it, and the batch counts its bytes with 32 bits.
pub const HOP_BATCH_BYTES: usize = 16 << 20;
/// Machines of one node that talk in its mesh: its cores, and beside them its manager and its admin port.
pub const MACHINES_MAX: usize = CORES_MAX + 2;
/// Connections of the admin port at once: a few collectors and a person. When one more comes, the one that has been there longest
/// and is not being answered goes.
pub const ADMIN_CONNECTIONS_MAX: usize = 16;
/// Longest head of a request to the admin port, bytes: line and headers.
pub const ADMIN_HEAD_BYTES_MAX: usize = 8 << 10;
/// Headers of a request to the admin port.
pub const ADMIN_HEADERS_MAX: usize = 64;
/// How long a connection of the admin port may take from its beginning to the last byte of its answer, milliseconds: collectors
/// give up after ten seconds.
pub const ADMIN_CONNECTION_MS_MAX: u64 = 10_000;
/// How long the admin port waits for what cores and the manager say of themselves, milliseconds: sixteen times the longest gap between
/// two ticks that is known of, so that who has not answered by then stands still.
pub const ADMIN_ANSWER_MS_MAX: u64 = 1000;
/// Time between two rounds of questions of the admin port, milliseconds: whoever asks it without end
/// takes one or two hundredths of a core (docs/internals/metrics.md).
pub const ADMIN_ROUND_MS_MIN: u64 = 50;
/// Batches waiting in one core's mailbox; cores send at most one each per tick, so CORES_MAX x 16 ticks of delay.
pub const MAILBOX_BATCHES_MAX: usize = 1024;
/// Nodes of one cluster's table, those that are gone included until room is needed: a thousand and a few.
pub const NODES_MAX: usize = 1024;
/// Members of a chain: the longest chain that can be configured. One that is full has no room for the destination of a move.
pub const CHAIN_MEMBERS_MAX: usize = 5;
/// Contiguous slot ranges of which one instance is first, so that CLUSTER SLOTS stays small. Plans keep to it; a promotion may
/// exceed it, because a failover is never refused.
pub const RANGES_PER_INSTANCE_MAX: usize = 16;
/// Slot ranges on their way at once: 16 for each of 64 instances of one node that joins.
pub const MOVES_MAX: usize = 1024;
/// Wishes of operators under way at a node's manager.
pub const ORDERS_MAX: usize = 64;
/// Moves of which an instance remembers what became of them; Valkey keeps a thousand.
pub const MIGRATIONS_KEPT_MAX: usize = 128;
/// Bytes of a host's name in the table: DNS's bound.
pub const HOST_BYTES_MAX: usize = 255;
/// Bytes of the name of a zone or a machine.
pub const DOMAIN_BYTES_MAX: usize = 64;
/// Replacements that one promotion names: as many as there are moves. Chains beyond are filled up by later commands.
pub const REPLACEMENTS_MAX: usize = 1024;
/// Who proposed commands lately: managers, and operators' programs of which each is one. Who proposed longest ago is forgotten.
pub const PROPOSERS_MAX: usize = 256;
/// Answers that the table remembers for one proposer: more than it has under way at once. With 256 proposers 280 kB at most.
pub const REQUESTS_PER_PROPOSER_MAX: usize = 32;
/// Shortest lease of a node, milliseconds: several round trips of a busy network, five times.
pub const LEASE_MS_MIN: u32 = 50;
/// The same, unless configured otherwise: a primary that is killed is replaced within 300 ms, and one that stands still for 190 ms
/// never is.
pub const LEASE_MS_DEFAULT: u32 = 250;
/// Longest lease of a node, milliseconds: nobody wants to wait longer for a replacement.
pub const LEASE_MS_MAX: u32 = 60_000;
/// Members of the managers' group at once, those that only listen included: five vote, and while they change five others do.
pub const MANAGERS_MAX: usize = 16;
/// Longest command to the agreed table, bytes, encoded: a promotion with all its replacements takes some 12 KiB.
pub const COMMAND_BYTES_MAX: usize = 64 << 10;
/// Longest agreed table, bytes, encoded: 1,024 nodes, 16,384 stretches of five members and the answers remembered take 3 MB.
pub const TABLE_BYTES_MAX: usize = 16 << 20;
/// Entries of one frame between managers: with the longest commands 4 MiB.
pub const APPEND_ENTRIES_MAX: usize = 64;
/// Longest frame between managers, bytes: a whole table and what stands around it.
pub const MANAGER_FRAME_BYTES_MAX: usize = TABLE_BYTES_MAX + (64 << 10);
/// Questions of other managers that one manager works on; what comes then is dropped, as a network drops it. Four of each of
/// the others.
pub const MANAGER_QUESTIONS_MAX: usize = 64;
/// Proposals that one manager has under way; more are refused at once. Every node of a large cluster asks for something.
pub const PROPOSALS_MAX: usize = 4096;
/// Entries of the managers' log between two snapshots.
pub const SNAPSHOT_ENTRIES: u64 = 1024;
/// Room that the managers' log has at least, bytes: some thousand commands before it is written anew.
pub const MANAGERS_LOG_BYTES_MIN: u64 = 1 << 20;

/// Requests of one bucket of a client's batcher; one that has them goes at once. What a server takes from one connection in some
/// ticks.
pub const BATCH_ITEMS_MAX: usize = 16 << 10;
/// Bytes of one bucket of a client's batcher; one that has them goes at once, a longer request alone.
pub const BATCH_BYTES_MAX: usize = 1 << 20;
/// Bytes that wait for one destination of a client, above which callers are held back; one request more may be on top.
pub const BATCHES_WAITING_BYTES_MAX: usize = 4 << 20;
/// Bytes of batches to one destination of a client that are not answered, above which nothing goes.
pub const BATCHES_IN_FLIGHT_BYTES_MAX: usize = 16 << 20;
/// Batches to one destination of a client that are not answered: as many as one connection may have requests when each goes alone.
pub const BATCHES_IN_FLIGHT_MAX: usize = 16 << 10;
/// Work of a client for one destination, waiting or out, above which callers are held back, microseconds as estimated: at four
/// fifths of what it can do a destination has worked off 0.3 seconds in one and a half.
pub const BATCH_WORK_US_MAX: u64 = 300_000;
/// Requests of a client to one destination, waiting or out, that are taken whatever work they are estimated to be: estimates of
/// few batches may be far off.
pub const BATCH_ITEMS_UNJUDGED: usize = 256;
/// Empty vectors that a client's batcher keeps for reuse, of at most twice BATCH_BYTES_MAX each.
pub const BATCH_SPARES_MAX: usize = 4;
/// Callers that wait for collapsed writes to one destination of a client: as many as a core has waiters.
pub const COLLAPSE_WAITERS_MAX: usize = WAITERS_MAX;
/// Prefixes of keys whose writes a proxy collapses: each `SET` and `GET` is compared with all of them.
pub const COLLAPSE_PREFIXES_MAX: usize = 64;
/// Longest interval that an operator may give a batching policy, microseconds: longer than any client waits.
pub const POLICY_INTERVAL_US_MAX: u64 = 1_000_000;

const _: () = assert!(BULK_UNAUTHENTICATED_MAX <= INLINE_BYTES_MAX);
const _: () = assert!(OUTPUT_BYTES_MAX > VALUE_BYTES_MAX);
// Requests, which stop at half of the 32 bits, and then one reply after the other.
const _: () = assert!(u32::MAX as usize / 2 + HOP_BATCH_BYTES + OUTPUT_BYTES_MAX < u32::MAX as usize);
const _: () = assert!(LOG_GROUP_BYTES >= 2 * RECEIVE_BUFFERS * RECEIVE_BYTES);
// MSET of the largest request: half of the arguments are keys, each a record with a header and a few lengths.
const _: () = assert!(LOG_UNIT_BYTES_MAX > REQUEST_BYTES_MAX + ARGUMENTS_MAX / 2 * 64);
// What is never refused because it carries no value (DEL, LPOP) names its keys in the request. Together they fit the 32
// bits of a group's length.
const _: () = assert!(LOG_GROUP_BYTES + LOG_UNIT_BYTES_MAX + 2 * REQUEST_BYTES_MAX < u32::MAX as usize);
const _: () = assert!(BATCHES_WAITING_BYTES_MAX >= 2 * BATCH_BYTES_MAX);
const _: () = assert!(SEGMENT_BYTES > 4 * LOG_PIECE_BYTES_MAX as u64);
/// Longest frame between nodes, bytes: a log group, its unit and a head.
pub const FRAME_BYTES_MAX: usize = LOG_UNIT_BYTES_MAX + 2 * LOG_GROUP_BYTES;
/// Longest frame by which nodes prove to each other that they may speak, bytes: two names, a number by chance and a proof. Nothing
/// longer is read of who has proved nothing.
pub const HANDSHAKE_FRAME_BYTES_MAX: usize = 128;
/// Connections of other nodes that have proved nothing yet, of one core or manager: a round trip is enough for who can, so the
/// oldest of more is ended.
pub const UNPROVEN_CONNECTIONS_MAX: usize = 64;
/// How long a connection of another node may prove nothing, milliseconds: some times as long as the slowest network's round trip.
pub const UNPROVEN_MS_MAX: u64 = 3000;
/// Bytes that a link keeps until its follower has persisted them, beside twice the longest frame among them; with more its follower is filled
/// anew.
pub const LINK_BACKLOG_BYTES_MAX: usize = 64 << 20;
/// Sets of followers that replies of one core wait for apart from each other, one byte per slot; slots beyond wait for all followers.
pub const LANES_MAX: usize = 256;
/// Bytes of a link on their way to its follower, above which nothing is filled: a write that the follower has to have waits behind
/// them. With 4 MiB writes stood still for 90 ms while 61,000 keys moved, with this for 21 (`cargo x bench moves`).
pub const LINK_FILL_BYTES_MAX: usize = 256 << 10;
/// Keys of a slot that two nodes compare before it is filled; a slot with more of them is filled anew.
pub const COMPARED_KEYS_MAX: u32 = 16_384;
/// Slots that a follower was asked about, and that are not filled yet.
pub const COMPARED_SLOTS_MAX: usize = 32;
/// Bytes of a TLS client's handshake: a chain of certificates takes some 10 KiB.
pub const TLS_HANDSHAKE_BYTES_MAX: usize = 64 << 10;
/// How long a TLS client may take for its handshake, milliseconds.
pub const TLS_HANDSHAKE_MS_MAX: u64 = 10_000;
/// Steps of handshakes that a core does in one tick, so that those already served wait for a few signatures at most; the
/// others come next.
pub const TLS_HANDSHAKE_STEPS_PER_TICK_MAX: usize = 4;
/// Bytes received of a TLS connection that are no whole record or message yet, or found no room in this tick.
pub const TLS_UNOPENED_BYTES_MAX: usize = 96 << 10;
/// Bytes of replies that are made ciphertext at once, per connection; the next ones when those are sent.
pub const TLS_SEAL_BYTES: usize = 256 << 10;
/// Bytes of TLS's own messages that wait for a client which reads nothing; with more it is closed.
pub const TLS_OWN_BYTES_MAX: usize = 64 << 10;
/// How long a TLS connection that is to be closed may take nothing of its last replies, milliseconds.
pub const TLS_CLOSE_MS_MAX: u64 = 10_000;
/// Requests of one client of the proxy that are on their way; no more is read from it until one is answered.
pub const CALLER_REQUESTS_MAX: usize = 1024;
/// Bytes of one batch of the proxy; twice as many may be out on one lane.
pub const LANE_BATCH_BYTES_MAX: usize = 128 << 10;
/// Callers of the proxy that want their replies within so long have a lane of their own, microseconds.
pub const HURRY_US_MAX: u64 = 10_000;
/// A longer request does not travel with those of others, bytes: it goes on a connection of its caller's own.
pub const LONG_REQUEST_BYTES: usize = 64 << 10;
/// Connections to the upstream that were one caller's own and wait for another one, of one core.
pub const IDLE_OWN_CONNECTIONS_MAX: usize = 16;
/// Addresses of callers in the label of a connection that many of them share; of the others it says how many they are.
pub const LABEL_ADDRESSES_MAX: usize = 8;
/// Bytes of a caller's own library in the label of a connection to the upstream.
pub const LABEL_LIBRARY_BYTES_MAX: usize = 64;
/// Shortest time between two labels of one shared connection, microseconds: each is a request more.
pub const LABEL_AGAIN_US: u64 = 10_000_000;
/// Logins of which a core remembers that the upstream lets them have no labels.
pub const LABELS_REFUSED_MAX: usize = 256;
/// Buffers that a core of the proxy keeps for its next replies.
pub const SPARE_BUFFERS_MAX: usize = 256;
/// Host names that a process looks up at the same time, each on a thread that ends with it: the system may take half a minute for one
/// that nobody answers for. 64 stacks of which little is touched.
pub const LOOKUPS_MAX: usize = 64;
/// Shortest and longest wait before a node that did not answer is dialed again, microseconds.
pub const REDIAL_US_MIN: u64 = 10_000;
/// See [`REDIAL_US_MIN`].
pub const REDIAL_US_MAX: u64 = 1_000_000;

/// Addresses of cluster nodes that a client's routing table tells apart, those of nodes that are gone included: ten times the
/// thousand nodes that Redis Cluster is made for.
pub const ROUTED_NODES_MAX: usize = 16_384;

/// Corrections (`MOVED`, `ASK`) that one request follows before its caller gets an error: nodes that disagree for longer are broken.
pub const REDIRECTS_MAX: u8 = 6;

/// Shortest time between two questions for the routing table, microseconds.
pub const TABLE_ASKED_US_MIN: u64 = 100_000;

/// A node of a cluster that owes a reply for so long may stand still, or be gone without a word: another one is asked who has its slots,
/// microseconds. Longer than what most requests take, shorter than what callers wait.
pub const NODE_SILENT_US_MAX: u64 = 500_000;

/// So long the answer to such a question is waited for before another node is asked, microseconds.
pub const TABLE_ANSWER_US_MAX: u64 = 2_000_000;

/// How long a sentinel, or the server that it names, may take to be dialed and to answer before the next sentinel is asked,
/// microseconds. A name's look-up and a dial take [`TABLE_ANSWER_US_MAX`] at most.
pub const SENTINEL_ANSWER_US_MAX: u64 = 2_500_000;
/// Shortest time between two searches for a master, microseconds.
pub const SENTINEL_ASKED_US_MIN: u64 = 100_000;
/// When the sentinels are asked again of whom none led to the master, microseconds.
pub const SENTINEL_AGAIN_US: u64 = 1_000_000;
/// After so long without a word a sentinel that is watched is asked whether it is there, and after as long again given up,
/// microseconds.
pub const SENTINEL_QUIET_US_MAX: u64 = 5_000_000;
/// Bytes of one answer of a sentinel; an address, a role with some replicas or a message has fewer.
pub const SENTINEL_REPLY_BYTES_MAX: usize = 64 << 10;

/// Sentinels that a core asks: those that were named, and others that these know.
pub const SENTINELS_MAX: usize = 16;

/// Bytes of a transaction in a cluster that wait in the proxy for its first key, which says where it goes: what a caller has to keep
/// ready in any case, four times. With more it goes to any node, which refuses the keys of others.
pub const NOWHERE_BYTES_MAX: usize = 4 * LONG_REQUEST_BYTES;

/// Requests that wait for an answer to such a question.
pub const REDIRECTS_HELD_MAX: usize = 16_384;

/// Bytes of a part of a request over several slots, if it has more than one key: parts are answered beside others.
pub const SPLIT_PART_BYTES_MAX: usize = 16 << 10;

/// After so long without a caller or a request a connection to the upstream is closed, microseconds.
pub const LANE_IDLE_US_MAX: u64 = 60_000_000;

/// Connections of one core of the proxy to its upstream, unless it is told otherwise. Beyond that the one that was not used for the
/// longest time makes room; one with requests on their way never does.
pub const UPSTREAM_CONNECTIONS_MAX: usize = 4096;

/// Places where a proxy listens: each is a descriptor of every core.
pub const PROXY_LISTENERS_MAX: usize = 32;

/// Classes of callers that one proxy tells apart, those of earlier versions of its file included: each is a set of counters of every
/// core, and some fifty lines of what a collector reads.
pub const PROXY_CLASSES_MAX: usize = 256;

/// Largest weight of a class, against the 1 of one of which nothing is said. More would let the others wait for longer than what may
/// lie at the store takes.
pub const PROXY_WEIGHT_MAX: u32 = 100;

/// Requests of one program's client library that wait or are not answered, on one connection; as many replies at most wait to be
/// taken by who submitted their requests.
pub const CLIENT_REQUESTS_MAX: usize = 65_536;
/// Bytes that the client library takes from a connection at once.
pub const CLIENT_RECEIVE_BYTES: usize = 64 << 10;

/// Bytes of an application's protocol that may be no whole request (`zerohop::serve`), unless it says otherwise: twice the 8 KiB
/// that servers of HTTP commonly allow for a head. All of them are looked at again with each piece that comes.
pub const SERVED_REQUEST_BYTES_MAX: usize = 16 << 10;
/// Time that a client of an application may take for a request, and be silent between two, microseconds.
pub const SERVED_SILENCE_US_MAX: u64 = 60_000_000;
/// Requests of one client of an application that are on their way; no more is read from it until one is answered.
pub const SERVED_PIPELINE_MAX: usize = 64;
/// Asks to the store of one round of one request of an application.
pub const ASKS_PER_REQUEST_MAX: usize = 4096;
/// Asks to the store of one core that are on their way, above which requests that ask more are refused: what one lane has places for.
pub const ASKS_PER_CORE_MAX: usize = CLIENT_REQUESTS_MAX;
/// Bytes of replies to requests of one core that are not answered, above which further ones are refused; half of the longest value,
/// so that a long one among many short ones does not refuse anybody.
pub const SERVED_REPLY_BYTES_MAX: usize = 256 << 20;
/// Replies that complete nothing and are handled in one tick: at a microsecond each a quarter of a tick's time.
pub const REPLIES_MERGED_PER_TICK_MAX: usize = 256;

/// Bytes of one message between a proxy and the process that takes over from it: a listener, or a caller with the part of a request that
/// it sent so far. Less than the kernel lets lie between two processes (`net.core.wmem_default`).
pub const HANDOVER_BYTES_MAX: usize = 64 << 10;
/// Connections that were handed over to a core and that it has not taken yet.
pub const ARRIVALS_MAX: usize = 64;
/// How long the new process may take until it is ready, and the old one to say go, milliseconds.
pub const HANDOVER_READY_MS_MAX: u64 = 30_000;
/// Callers that a core of a proxy looks at for a handover in one tick: some tens of microseconds.
pub const HANDOVERS_PER_TICK_MAX: usize = 64;
/// When a caller that could not be handed over because the way was full is tried again, microseconds.
pub const HANDOVER_AGAIN_US: u64 = 10_000;
