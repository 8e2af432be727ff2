//! Every node command against facts that are made up.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use super::*;
use crate::timing::{Event, TimingRequest};
use base::{CoreId, Door, InstanceName, Now, Slot, Span};
use placement::{ClusterView, NodeTable};
use session::acl::Users;
use wire::registry::{Family, Resolved, resolve};
use wire::reply_parse::{Value, parse_reply};
use wire::{Protocol, Reply};

mod config;
mod members;
mod orders;
mod replication;

/// The node is part of a cluster.
struct Member {
    me: InstanceName,
    view: Option<ClusterView>,
    has_lease: bool,
    links: LinkFacts,
}

struct Node {
    identity: NodeIdentity,
    process: ProcessFacts,
    /// How often it was asked of the operating system.
    process_asked: Cell<u32>,
    config: Config,
    users: Users,
    table: NodeTable,
    member: Option<Member>,
    cores: Vec<CoreFacts>,
    door: Door,
    port_shift: i32,
    protocol: Protocol,
    outcome: NodeOutcome,
}

impl Node {
    fn new() -> Node {
        let mut cores = vec![CoreFacts::default(), CoreFacts::default()];
        for (core, facts) in cores.iter_mut().enumerate() {
            facts.statistics.counters.commands = 10 + core as u64;
            facts.statistics.gaps.add(base::TickGap { begin_us: 7, us: 100 * core as u64 });
            facts.statistics.calls(Id::Get).executed = 3;
            facts.statistics.count_error(wire::ErrorCode::new(b"WRONGTYPE"));
            facts.gauges.connections = 2;
            facts.gauges.record_bytes = 1 << 20;
            facts.keyspace[0] = KeyspaceFacts { keys: 5, expiring: 1 };
        }
        let identity = NodeIdentity {
            run_id: "a".repeat(40),
            process_id: 77,
            port: 6379,
            durability: "interval".into(),
            io_driver: "epoll".into(),
            cores: 2,
            ..NodeIdentity::default()
        };
        Node {
            identity,
            process: ProcessFacts {
                resident_bytes: 5 << 20,
                resident_private_bytes: 3 << 20,
                resident_file_bytes: 2 << 20,
                cpu_user_us: 1_250_000,
                ..ProcessFacts::default()
            },
            process_asked: Cell::new(0),
            config: Config::default(),
            users: Users::default(),
            table: NodeTable::even([7; 16], 2, "", 6380).unwrap(),
            member: None,
            cores,
            door: Door::Standalone,
            port_shift: 0,
            protocol: Protocol::Resp2,
            outcome: NodeOutcome::Done,
        }
    }

    fn cluster(&self) -> Option<ClusterFacts<'_>> {
        let Member { me, view, has_lease, links } = self.member.as_ref()?;
        Some(ClusterFacts { me: *me, view: view.as_ref(), has_lease: *has_lease, links })
    }

    /// Executes one request of words; a change of settings is applied.
    fn say(&mut self, request: &str) -> String {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        String::from_utf8(self.send(&words)).unwrap()
    }

    fn send(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let (mut bytes, mut spans, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for word in words {
            spans.push(Span { start: bytes.len() as u32, len: word.len() as u32 });
            bytes.extend_from_slice(word);
        }
        let arguments = Arguments::new(&bytes, &spans);
        let Resolved::Command(spec) = resolve(arguments) else { panic!("{arguments:?}") };
        assert_eq!(spec.family, Family::Node, "{arguments:?}");
        let process = || {
            self.process_asked.update(|count| count + 1);
            self.process
        };
        let facts = NodeFacts {
            now: Now { monotonic_us: 90_000_000_000, unix_ms: 1_700_000_000_123 },
            door: self.door,
            core: CoreId(1),
            local: "10.1.2.3:6381",
            port_shift: self.port_shift,
            identity: &self.identity,
            process: &process,
            config: &self.config,
            users: &self.users,
            user: self.users.default_user(),
            table: &self.table,
            cluster: self.cluster(),
            cores: &self.cores,
        };
        self.outcome = execute(spec, arguments, &facts, &mut Reply::new(&mut out, self.protocol));
        if let NodeOutcome::ConfigChanged(changes) = &self.outcome {
            self.config.apply(changes);
        }
        out
    }

    fn value(&mut self, request: &str) -> Value {
        let reply = self.say(request);
        let (value, used) = parse_reply(reply.as_bytes()).unwrap().unwrap();
        assert_eq!(used, reply.len(), "exactly one reply to {request}");
        value
    }

    /// The text of a bulk reply.
    fn text(&mut self, request: &str) -> String {
        match self.value(request) {
            Value::Bulk(text) | Value::Verbatim(_, text) => String::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

#[test]
fn every_node_command_gives_exactly_one_reply_or_an_outcome() {
    let specs = wire::registry::all().flat_map(|spec| match spec.subcommands {
        [] => std::slice::from_ref(spec).iter(),
        subcommands => subcommands.iter(),
    });
    let mut count = 0;
    for spec in specs.filter(|spec| spec.family == Family::Node) {
        for (door, protocol) in [(Door::Standalone, Protocol::Resp2), (Door::Cluster, Protocol::Resp3)] {
            if matches!(plan(spec, door), NodePlan::Keys(_)) {
                continue;
            }
            let mut node = Node { door, protocol, ..Node::new() };
            let mut words: Vec<&[u8]> = spec.full_name.split('|').map(str::as_bytes).collect();
            words.resize(words.len().max(spec.arity.unsigned_abs().into()), b"1");
            let reply = node.send(&words);
            match parse_reply(&reply).unwrap() {
                Some((_, used)) => assert_eq!(used, reply.len(), "{} replies twice", spec.full_name),
                None => {
                    assert!(reply.is_empty() && node.outcome != NodeOutcome::Done, "{} is silent", spec.full_name);
                }
            }
            count += 1;
        }
    }
    assert!(count > 100, "{count} commands were tried");
}

#[test]
fn info_has_what_clients_read() {
    let mut node = Node::new();
    let text = node.text("INFO");
    for line in [
        "redis_version:7.2.4",
        "server_name:zerohop",
        "redis_mode:standalone",
        "process_id:77",
        "tcp_port:6379",
        "uptime_in_seconds:90000",
        "connected_clients:4",
        "used_memory:2097152",
        "used_memory_human:2.00M",
        "used_memory_rss:5242880",
        "used_memory_rss_private:3145728",
        "used_memory_rss_program:2097152",
        "used_memory_rss_shared:0",
        "loading:0",
        "aof_enabled:1",
        "total_commands_processed:21",
        "role:master",
        "connected_slaves:0",
        "used_cpu_user:1.250000",
        "errorstat_WRONGTYPE:count=2",
        "cluster_enabled:0",
        "db0:keys=10,expires=2,avg_ttl=0",
        "io_driver:epoll",
        "tick_gap_us_max:100",
        "tick_gaps_core1:7+100",
    ] {
        assert!(text.contains(&format!("{line}\r\n")), "{line} in\n{text}");
    }
    assert!(!text.contains("cmdstat_"), "not among the default sections");
    assert!(node.text("INFO everything").contains("cmdstat_get:calls=6,usec=0,usec_per_call=0.00,rejected_calls=0,"));
}

/// Files are read for it, which every client that learns a table would wait for.
#[test]
fn only_who_tells_of_the_process_asks_the_operating_system() {
    let mut node = Node::new();
    for request in ["CLUSTER SLOTS", "CLUSTER INFO", "CONFIG GET *", "COMMAND COUNT", "INFO clients", "LATENCY LATEST"]
    {
        node.say(request);
    }
    assert_eq!(node.process_asked.take(), 0);
    for (request, count) in [("INFO memory", 1), ("INFO cpu", 1), ("MEMORY STATS", 1), ("MEMORY DOCTOR", 1)] {
        node.say(request);
        assert_eq!(node.process_asked.take(), count, "{request}");
    }
}

#[test]
fn info_takes_several_sections_and_ignores_unknown_ones() {
    let mut node = Node::new();
    let text = node.text("INFO Replication keyspace");
    assert!(text.starts_with("# Replication\r\n") && text.contains("\r\n\r\n# Keyspace\r\n"), "{text}");
    assert!(!text.contains("# Server"));
    assert_eq!(node.text("INFO nonsense"), "");
    node.door = Door::Cluster;
    let text = node.text("INFO server cluster");
    assert!(text.contains("redis_mode:cluster\r\n") && text.contains("tcp_port:6381\r\n"));
    assert!(text.contains("cluster_enabled:1\r\n"));
}

#[test]
fn cluster_describes_the_table_in_every_form() {
    let mut node = Node::new();
    let id = |core: usize, node: &Node| node.table.instances()[core].id.to_hex();
    let Value::Array(slots) = node.value("CLUSTER SLOTS") else { panic!("no array") };
    let primary = Value::Array(vec![bulk("10.1.2.3"), Value::Integer(6380), bulk(&id(0, &node)), Value::Array(vec![])]);
    assert_eq!(slots[0], Value::Array(vec![Value::Integer(0), Value::Integer(8191), primary]));
    assert_eq!(slots.len(), 2);
    assert_eq!(node.text("CLUSTER MYID"), id(1, &node));
    assert_eq!(node.text("CLUSTER MYSHARDID"), node.table.instances()[1].shard_id.to_hex());
    let nodes = node.text("CLUSTER NODES");
    assert!(
        nodes.contains(&format!("{} 10.1.2.3:6381@16381 myself,master - 0 0 1 connected 8192-16383\n", id(1, &node)))
    );
    let info = node.text("CLUSTER INFO");
    assert!(info.contains("cluster_state:ok\r\n") && info.contains("cluster_slots_assigned:16384\r\n"));
    assert!(info.contains("cluster_known_nodes:2\r\n"));
    node.protocol = Protocol::Resp3;
    let Value::Array(shards) = node.value("CLUSTER SHARDS") else { panic!("no array") };
    let Value::Map(shard) = &shards[1] else { panic!("no map") };
    assert_eq!(shard[0], (bulk("slots"), Value::Array(vec![Value::Integer(8192), Value::Integer(16383)])));
    let Value::Array(members) = &shard[1].1 else { panic!("no array") };
    let Value::Map(member) = &members[0] else { panic!("no map") };
    assert!(
        member.contains(&(bulk("endpoint"), bulk("10.1.2.3"))) && member.contains(&(bulk("health"), bulk("online")))
    );
}

#[test]
fn cluster_answers_about_slots_and_instances() {
    let mut node = Node::new();
    assert_eq!(node.say("CLUSTER KEYSLOT foo"), ":12182\r\n");
    node.say("CLUSTER COUNTKEYSINSLOT 7");
    assert_eq!(node.outcome, NodeOutcome::CountKeysInSlot(Slot::wrapping(7)));
    assert_eq!(node.say("CLUSTER COUNTKEYSINSLOT 16384"), "-ERR Invalid slot\r\n");
    node.say("CLUSTER GETKEYSINSLOT 7 3");
    assert_eq!(node.outcome, NodeOutcome::KeysInSlot { slot: Slot::wrapping(7), count: 3 });
    assert_eq!(node.say("CLUSTER GETKEYSINSLOT 7 -1"), "-ERR Invalid slot or number of keys\r\n");
    assert_eq!(node.say("CLUSTER GETKEYSINSLOT x 1"), "-ERR value is not an integer or out of range\r\n");
    assert_eq!(node.say("CLUSTER REPLICAS x"), "-ERR Unknown node x\r\n");
    let id = node.table.instances()[0].id.to_hex();
    assert_eq!(node.say(&format!("CLUSTER REPLICAS {id}")), "*0\r\n");
    let refused = node.say("CLUSTER MEET 127.0.0.1 7000");
    assert!(refused.starts_with("-ERR CLUSTER MEET is not available") && refused.contains("--cores"), "{refused}");
}

#[test]
fn time_role_and_saving() {
    let mut node = Node::new();
    assert_eq!(node.value("TIME"), Value::Array(vec![bulk("1700000000"), bulk("123000")]));
    assert_eq!(node.value("ROLE"), Value::Array(vec![bulk("master"), Value::Integer(0), Value::Array(vec![])]));
    node.cores[1].gauges.log_synced_unix_ms = 5_000;
    assert_eq!(node.say("LASTSAVE"), ":5\r\n");
    for request in ["BGSAVE foo", "BGSAVE SCHEDULE foo"] {
        assert_eq!(node.say(request), "-ERR syntax error\r\n");
    }
    for request in ["SAVE", "BGSAVE", "BGSAVE schedule", "BGREWRITEAOF"] {
        assert!(node.say(request).contains("every write is in the log already"), "{request}");
    }
    node.identity.durability = "memory".into();
    assert!(node.say("SAVE").contains("in memory only"));
}

#[test]
fn waiting_for_replicas_and_for_the_disk() {
    let mut node = Node::new();
    assert_eq!(node.say("WAIT 1 0"), ":0\r\n");
    assert_eq!(node.say("WAIT x 0"), "-ERR value is not an integer or out of range\r\n");
    assert_eq!(node.say("WAIT 1 -1"), "-ERR timeout is negative\r\n");
    assert_eq!(node.say("WAITAOF 1 0 50"), "");
    assert_eq!(node.outcome, NodeOutcome::WaitDurable { local: true, timeout_ms: Some(50) });
    node.say("WAITAOF 0 0 0");
    assert_eq!(node.outcome, NodeOutcome::WaitDurable { local: false, timeout_ms: None });
    assert_eq!(node.say("WAITAOF 2 0 0"), "-ERR value is out of range, value must between 0 and 1\r\n");
    assert_eq!(node.say("WAITAOF 1 -1 0"), "-ERR value is out of range, must be positive\r\n");
    node.identity.durability = "memory".into();
    assert!(node.say("WAITAOF 1 0 0").starts_with("-ERR WAITAOF cannot be used"));
}

#[test]
fn shutdown_and_debug() {
    let mut node = Node::new();
    assert_eq!(node.say("SHUTDOWN NOSAVE NOW"), "");
    assert_eq!(node.outcome, NodeOutcome::Shutdown);
    assert_eq!(node.say("SHUTDOWN SAVE NOSAVE"), "-ERR syntax error\r\n");
    assert_eq!(node.say("SHUTDOWN ABORT"), "-ERR No shutdown in progress.\r\n");
    assert_eq!(node.outcome, NodeOutcome::Done);
    assert!(node.say("DEBUG SLEEP 1").starts_with("-ERR DEBUG command not allowed."));
}

#[test]
fn slowlog_latency_and_memory() {
    let mut node = Node::new();
    assert_eq!(node.say("SLOWLOG GET 10"), "");
    assert_eq!(node.outcome, NodeOutcome::Timing(TimingRequest::SlowGet(Some(10))));
    for count in ["-2", "a", "9223372036854775808"] {
        let told = node.say(&format!("SLOWLOG GET {count}"));
        assert_eq!(told, "-ERR count should be greater than or equal to -1\r\n");
    }
    assert_eq!(node.say("SLOWLOG GET -1"), "");
    assert_eq!(node.outcome, NodeOutcome::Timing(TimingRequest::SlowGet(None)));
    assert_eq!(node.say("LATENCY RESET fork command"), "");
    assert_eq!(node.outcome, NodeOutcome::Timing(TimingRequest::Reset(vec![Event::Command])));
    assert_eq!(node.say("LATENCY HISTORY fork"), "*0\r\n");
    assert_eq!(node.say("LATENCY GRAPH fork"), "-ERR No samples available for event 'fork'\r\n");
    assert_eq!(node.say("MEMORY USAGE k"), "");
    assert_eq!(node.outcome, NodeOutcome::MemoryUsage);
    node.protocol = Protocol::Resp3;
    let Value::Map(stats) = node.value("MEMORY STATS") else { panic!("no map") };
    assert!(stats.contains(&(bulk("total.allocated"), Value::Integer(2 << 20))));
    assert!(stats.contains(&(bulk("keys.count"), Value::Integer(10))));
    assert!(node.text("MEMORY DOCTOR").starts_with("Nothing is wrong"));
    node.config.preset("maxmemory", b"1mb").unwrap();
    assert!(node.text("MEMORY DOCTOR").contains("writes that need memory are refused"));
}

#[test]
fn one_user_may_do_everything() {
    let mut node = Node::new();
    assert_eq!(node.text("ACL WHOAMI"), "default");
    assert_eq!(node.value("ACL LIST"), Value::Array(vec![bulk("user default on nopass sanitize-payload ~* &* +@all")]));
    assert_eq!(node.say("ACL GETUSER nobody"), "$-1\r\n");
    let Value::Array(user) = node.value("ACL GETUSER default") else { panic!("no array") };
    assert_eq!((user.len(), &user[0]), (12, &bulk("flags")));
    assert_eq!(node.say("ACL CAT nonsense"), "-ERR Unknown category 'nonsense'\r\n");
    let Value::Array(strings) = node.value("ACL CAT string") else { panic!("no array") };
    assert!(strings.contains(&bulk("get")) && !strings.contains(&bulk("lpush")));
}

#[test]
fn standalone_asks_all_cores_and_a_cluster_client_one() {
    let info = wire::registry::spec(Id::Info);
    assert_eq!((plan(info, Door::Standalone), plan(info, Door::Cluster)), (NodePlan::Gather, NodePlan::Here));
    let scan = wire::registry::spec(Id::Scan);
    assert_eq!(plan(scan, Door::Cluster), NodePlan::Keys(KeysKind::Scan));
}
