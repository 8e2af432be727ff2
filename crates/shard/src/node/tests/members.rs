//! CLUSTER on an instance of a cluster of several nodes: what clients parse, in every form, and that the forms agree.

use super::*;
use base::NodeId;
use base::rng::Rng;
use placement::{Chain, NodePlace};
use std::collections::{BTreeMap, BTreeSet};

const SLOTS: u16 = 16384;

pub(super) fn name(node: u32, core: u16) -> InstanceName {
    InstanceName { node: NodeId(node), core: CoreId(core) }
}

fn place(node: u32) -> NodePlace {
    NodePlace { node: NodeId(node), host: format!("10.0.0.{node}"), port: 7000, cores: 2, is_up: true, incarnation: 1 }
}

fn view(nodes: Vec<NodePlace>, stretches: &[(u16, u64, &[InstanceName])]) -> ClusterView {
    let stretch = |&(first, epoch, members): &(u16, u64, &[InstanceName])| {
        (Slot::wrapping(first), Chain { epoch, members: members.to_vec(), whole: members.len() })
    };
    ClusterView::new([9; 16], 50, nodes, stretches.iter().map(stretch).collect())
}

/// Three nodes of two cores; each core of the first two is first of a quarter, and so is the last node's first one; copies lie on
/// the next node. The last node's second core serves nothing.
pub(super) fn three_nodes() -> ClusterView {
    let (a0, a1, b0, b1) = (name(1, 0), name(1, 1), name(2, 0), name(2, 1));
    let (c0, c1) = (name(3, 0), name(3, 1));
    view(
        (1..=3).map(place).collect(),
        &[
            (0, 11, &[a0, b0]),
            (4096, 12, &[a1, c1]),
            (8192, 13, &[b0, c0]),
            (12288, 14, &[b1, a1]),
            (14000, 15, &[c0, a0]),
        ],
    )
}

/// The instance `me` of a cluster with this view. Its core is the second one, as in all tests here.
pub(super) fn member(me: InstanceName, view: Option<ClusterView>) -> Node {
    let member = Member { me, view, has_lease: true, links: LinkFacts::default() };
    Node { door: Door::Cluster, member: Some(member), ..Node::new() }
}

/// One instance as a client has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    id: String,
    host: String,
    port: u16,
}

/// Who serves which slots, ascending; neighbours of one instance are one piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Served(Vec<(u16, u16, Seen)>);

impl Served {
    fn of(mut pieces: Vec<(u16, u16, Seen)>) -> Served {
        pieces.sort();
        let mut served: Vec<(u16, u16, Seen)> = Vec::new();
        for (first, last, seen) in pieces {
            assert!(first <= last && last < SLOTS, "{first} to {last}");
            assert!(served.last().is_none_or(|before| before.1 < first), "slot {first} twice");
            match served.last_mut() {
                Some(before) if before.1 + 1 == first && before.2 == seen => before.1 = last,
                _ => served.push((first, last, seen)),
            }
        }
        Served(served)
    }

    fn at(&self, slot: u16) -> Option<&Seen> {
        self.0.iter().find(|(first, last, _)| (*first..=*last).contains(&slot)).map(|(_, _, seen)| seen)
    }
}

/// What clients make of an answer: who serves, and the replicas of each primary.
#[derive(Debug, Default, PartialEq, Eq)]
struct Topology {
    slots: Served,
    replicas: BTreeMap<String, BTreeSet<Seen>>,
}

/// The first slot and the last one, and who else has them.
type Behind = Vec<(u16, u16, Vec<Seen>)>;

fn text(value: &Value) -> String {
    let Value::Bulk(text) = value else { panic!("{value:?}") };
    String::from_utf8(text.clone()).unwrap()
}

fn number(value: &Value) -> u16 {
    let Value::Integer(number) = value else { panic!("{value:?}") };
    u16::try_from(*number).unwrap()
}

fn list(value: &Value) -> &[Value] {
    let Value::Array(list) = value else { panic!("{value:?}") };
    list
}

fn node_of_slots(value: &Value) -> Seen {
    let [host, port, id, _] = list(value) else { panic!("{value:?}") };
    Seen { id: text(id), host: text(host), port: number(port) }
}

/// As CLUSTER SLOTS tells it: redis-py, go-redis, jedis, ioredis, redis-rs, valkey-glide.
fn from_slots(node: &mut Node) -> (Served, Behind) {
    let (mut pieces, mut behind) = (Vec::new(), Vec::new());
    for entry in list(&node.value("CLUSTER SLOTS")) {
        let [first, last, primary, replicas @ ..] = list(entry) else { panic!("{entry:?}") };
        pieces.push((number(first), number(last), node_of_slots(primary)));
        behind.push((number(first), number(last), replicas.iter().map(node_of_slots).collect()));
    }
    (Served::of(pieces), behind)
}

/// As CLUSTER NODES tells it: lettuce, redis-cli.
fn from_nodes(node: &mut Node) -> (Topology, Vec<String>) {
    let (mut pieces, mut replicas, mut flags_seen) = (Vec::new(), BTreeMap::new(), Vec::new());
    let nodes = node.text("CLUSTER NODES");
    for line in nodes.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [id, address, flags, primary, "0", "0", _epoch, _link, slots @ ..] = &words[..] else { panic!("{line}") };
        let (address, bus) = address.split_once('@').unwrap();
        let (host, port) = address.rsplit_once(':').unwrap();
        let seen = Seen { id: (*id).into(), host: host.into(), port: port.parse().unwrap() };
        assert_eq!(bus.split(',').next().unwrap().parse::<u16>().unwrap(), seen.port + 10_000);
        if flags.split(',').any(|flag| flag == "myself") {
            assert_eq!(node.text("CLUSTER MYID"), *id);
        }
        flags_seen.push((*flags).to_owned());
        if *primary != "-" {
            assert!(flags.contains("slave") && slots.is_empty(), "{line}");
            replicas.entry((*primary).to_owned()).or_insert_with(BTreeSet::new).insert(seen);
            continue;
        }
        assert!(flags.contains("master"), "{line}");
        for range in slots {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            pieces.push((first.parse().unwrap(), last.parse().unwrap(), seen.clone()));
        }
    }
    assert_eq!(flags_seen.iter().filter(|flags| flags.starts_with("myself,")).count(), 1, "{nodes}");
    (Topology { slots: Served::of(pieces), replicas }, flags_seen)
}

/// As CLUSTER SHARDS tells it, over either protocol.
fn from_shards(node: &mut Node) -> Topology {
    let pairs = |value: &Value| match value {
        Value::Map(pairs) => pairs.iter().map(|(key, value)| (text(key), value.clone())).collect(),
        flat => list(flat).chunks(2).map(|pair| (text(&pair[0]), pair[1].clone())).collect::<BTreeMap<_, _>>(),
    };
    let (mut pieces, mut replicas) = (Vec::new(), BTreeMap::new());
    for shard in list(&node.value("CLUSTER SHARDS")) {
        let shard = pairs(shard);
        let nodes: Vec<BTreeMap<String, Value>> = list(&shard["nodes"]).iter().map(pairs).collect();
        let seen = |node: &BTreeMap<String, Value>| {
            assert_eq!(node["ip"], node["endpoint"]);
            Seen { id: text(&node["id"]), host: text(&node["endpoint"]), port: number(&node["port"]) }
        };
        let roles: Vec<String> = nodes.iter().map(|node| text(&node["role"])).collect();
        assert_eq!(roles[0], "master");
        assert!(roles[1..].iter().all(|role| role == "replica"), "{roles:?}");
        let primary = seen(&nodes[0]);
        for range in list(&shard["slots"]).chunks(2) {
            pieces.push((number(&range[0]), number(&range[1]), primary.clone()));
        }
        if nodes.len() > 1 {
            replicas.insert(primary.id, nodes[1..].iter().map(seen).collect());
        }
    }
    Topology { slots: Served::of(pieces), replicas }
}

/// All forms over both protocols, which have to agree.
fn topology(node: &mut Node) -> Topology {
    let mut answers = Vec::new();
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        node.protocol = protocol;
        let (nodes, _) = from_nodes(node);
        assert_eq!(nodes, from_shards(node));
        let (slots, behind) = from_slots(node);
        assert_eq!(nodes.slots, slots);
        let primaries: BTreeSet<&Seen> = slots.0.iter().map(|(_, _, seen)| seen).collect();
        assert!(
            !behind.iter().flat_map(|(_, _, replicas)| replicas).any(|replica| primaries.contains(replica)),
            "an instance has one part"
        );
        for (primary, replicas) in &nodes.replicas {
            let Value::Array(lines) = node.value(&format!("CLUSTER REPLICAS {primary}")) else { panic!("no array") };
            let ids: BTreeSet<String> = lines.iter().map(|line| text(line).split(' ').next().unwrap().into()).collect();
            assert_eq!(ids, replicas.iter().map(|replica| replica.id.clone()).collect());
        }
        answers.push(nodes);
    }
    assert_eq!(answers[0], answers[1]);
    answers.remove(0)
}

#[test]
fn clients_whose_ports_lie_elsewhere_are_told_such_ports_of_all_nodes() {
    let mut node = member(name(3, 1), Some(three_nodes()));
    let ports = |topology: &Topology| -> Vec<u16> {
        let replicas = topology.replicas.values().flatten().map(|seen| seen.port);
        topology.slots.0.iter().map(|(_, _, seen)| seen.port).chain(replicas).collect()
    };
    let as_ever = ports(&topology(&mut node));
    node.port_shift = 100;
    assert_eq!(ports(&topology(&mut node)), as_ever.iter().map(|port| port + 100).collect::<Vec<_>>());
    node.port_shift = -7000;
    assert_eq!(ports(&topology(&mut node)), as_ever.iter().map(|port| port - 7000).collect::<Vec<_>>());
}

#[test]
fn three_nodes_are_described_in_redis_words() {
    let mut node = member(name(3, 1), Some(three_nodes()));
    let (_, behind) = from_slots(&mut node);
    let ids: Vec<String> =
        node.text("CLUSTER NODES").lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    let expected = [
        format!("{} 10.0.0.1:7001@17001 master - 0 0 11 connected 0-4095", ids[0]),
        format!("{} 10.0.0.1:7002@17002 master - 0 0 12 connected 4096-8191", ids[1]),
        format!("{} 10.0.0.2:7001@17001 master - 0 0 13 connected 8192-12287", ids[2]),
        format!("{} 10.0.0.2:7002@17002 master - 0 0 14 connected 12288-13999", ids[3]),
        format!("{} 10.0.0.3:7001@17001 master - 0 0 15 connected 14000-16383", ids[4]),
        format!("{} 10.0.0.3:7002@17002 myself,slave {} 0 0 12 connected", ids[5], ids[1]),
    ];
    assert_eq!(node.text("CLUSTER NODES"), expected.join("\n") + "\n");
    assert_eq!(node.value(&format!("CLUSTER REPLICAS {}", ids[1])), Value::Array(vec![bulk(expected[5].trim_end())]));
    let of_slots = |host: &str, port, id: &str| {
        Value::Array(vec![bulk(host), Value::Integer(port), bulk(id), Value::Array(vec![])])
    };
    let Value::Array(slots) = node.value("CLUSTER SLOTS") else { panic!("no array") };
    let (primary, replica) = (of_slots("10.0.0.1", 7002, &ids[1]), of_slots("10.0.0.3", 7002, &ids[5]));
    assert_eq!(slots[1], Value::Array(vec![Value::Integer(4096), Value::Integer(8191), primary, replica]));
    // The copies of who serves elsewhere are nothing that a client could use.
    assert_eq!(behind.iter().map(|(_, _, replicas)| replicas.len()).collect::<Vec<_>>(), [0, 1, 0, 0, 0]);
    assert_eq!((node.text("CLUSTER MYID"), node.text("CLUSTER MYSHARDID").len()), (ids[5].clone(), 40));
}

#[test]
fn info_counts_instances_slots_and_versions() {
    let mut node = member(name(3, 1), Some(three_nodes()));
    let info = node.text("CLUSTER INFO");
    for line in [
        "cluster_enabled:1",
        "cluster_state:ok",
        "cluster_slots_assigned:16384",
        "cluster_slots_ok:16384",
        "cluster_slots_fail:0",
        "cluster_known_nodes:6",
        "cluster_size:5",
        "cluster_current_epoch:50",
        "cluster_my_epoch:12",
    ] {
        assert!(info.contains(&format!("{line}\r\n")), "{line} in\n{info}");
    }
    assert!(node.text("INFO zerohop").contains("table_epoch:50\r\n"));
    // Nobody else will serve what this node has while it may not.
    node.member.as_mut().unwrap().has_lease = false;
    assert!(node.text("CLUSTER INFO").contains("cluster_state:fail\r\ncluster_slots_assigned:16384\r\n"));
}

#[test]
fn a_slot_that_nobody_serves_is_a_cluster_that_fails() {
    let (a, b) = (name(1, 0), name(2, 0));
    let mut node = member(a, Some(view(vec![place(1), place(2)], &[(0, 1, &[a, b]), (7, 1, &[]), (8, 1, &[b])])));
    let info = node.text("CLUSTER INFO");
    assert!(info.contains("cluster_state:fail\r\ncluster_slots_assigned:16383\r\n"), "{info}");
    assert!(topology(&mut node).slots.at(7).is_none());
    let down = NodePlace { is_up: false, ..place(2) };
    let mut node = member(a, Some(view(vec![place(1), down], &[(0, 1, &[a, b]), (8, 1, &[b])])));
    let info = node.text("CLUSTER INFO");
    assert!(info.contains("cluster_state:fail\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:8\r\n"), "{info}");
    let (_, flags) = from_nodes(&mut node);
    assert_eq!(flags, ["myself,master", "master", "master,fail", "master,fail"]);
    assert!(node.say("CLUSTER SHARDS").contains("health\r\n$6\r\nfailed\r\n"));
}

#[test]
fn without_a_table_nothing_is_served() {
    let mut node = member(name(3, 1), None);
    let info = node.text("CLUSTER INFO");
    assert!(info.contains("cluster_state:fail\r\ncluster_slots_assigned:0\r\n"), "{info}");
    assert!(info.contains("cluster_current_epoch:0\r\n") && info.contains("cluster_size:0\r\n"), "{info}");
    assert_eq!(node.say("CLUSTER SLOTS"), "*0\r\n");
    assert_eq!(topology(&mut node), Topology::default());
    assert!(node.text("INFO zerohop").contains("table_epoch:0\r\n"));
}

#[test]
fn a_named_host_is_told_as_one() {
    let a = name(1, 1);
    let named = NodePlace { host: "one.example.org".into(), ..place(1) };
    let mut node = member(a, Some(view(vec![named], &[(0, 1, &[a])])));
    let id = node.text("CLUSTER MYID");
    let line = format!("{id} one.example.org:7002@17002,one.example.org myself,master - 0 0 1 connected 0-16383\n");
    assert!(node.text("CLUSTER NODES").ends_with(&line));
    node.protocol = Protocol::Resp3;
    let Value::Array(slots) = node.value("CLUSTER SLOTS") else { panic!("no array") };
    let metadata = Value::Map(vec![(bulk("hostname"), bulk("one.example.org"))]);
    let primary = Value::Array(vec![bulk("one.example.org"), Value::Integer(7002), bulk(&id), metadata]);
    assert_eq!(slots, [Value::Array(vec![Value::Integer(0), Value::Integer(16383), primary])]);
    assert!(node.say("CLUSTER SHARDS").contains("$8\r\nhostname\r\n$15\r\none.example.org\r\n"));
    assert_eq!(topology(&mut node).slots.at(0).unwrap().host, "one.example.org");
}

#[test]
fn a_host_that_is_not_announced_is_the_one_asked() {
    let a = name(1, 1);
    let nameless = NodePlace { host: String::new(), ..place(1) };
    let mut node = member(a, Some(view(vec![nameless], &[(0, 1, &[a])])));
    assert_eq!(topology(&mut node).slots.at(9).unwrap().host, "10.1.2.3");
}

#[test]
fn instances_are_asked_about_by_their_ids() {
    let mut node = member(name(1, 1), Some(three_nodes()));
    let replica = from_nodes(&mut node).0.replicas.values().flatten().next().unwrap().id.clone();
    assert_eq!(node.say(&format!("CLUSTER SLAVES {replica}")), "-ERR The specified node is not a master\r\n");
    assert_eq!(node.say(&format!("CLUSTER COUNT-FAILURE-REPORTS {replica}")), ":0\r\n");
    assert_eq!(node.say("CLUSTER REPLICAS x"), "-ERR Unknown node x\r\n");
    let refused = node.say("CLUSTER FAILOVER");
    assert!(refused.starts_with("-ERR CLUSTER FAILOVER is not available: the cluster's managers"), "{refused}");
}

/// Any table: nodes of up to three cores, chains of up to three members on different nodes, some of nobody, some nodes down.
fn any_view(rng: &mut Rng) -> ClusterView {
    let count = 1 + rng.below(5) as u32;
    let nodes: Vec<NodePlace> = (1..=count)
        .map(|node| NodePlace { cores: 1 + rng.below(3) as u16, is_up: rng.chance(5, 6), ..place(node) })
        .collect();
    let mut starts: BTreeSet<u16> = (0..rng.below(20)).map(|_| rng.below(u64::from(SLOTS)) as u16).collect();
    starts.insert(0);
    // Few who serve: then others only have copies.
    let primaries = 1 + rng.below(u64::from(count)) as u32;
    let mut chain = || {
        let first = &nodes[rng.below(u64::from(primaries)) as usize];
        let mut members: Vec<InstanceName> = Vec::new();
        for place in std::iter::once(first).chain(nodes.iter().rev()).take(rng.below(4) as usize) {
            if members.iter().all(|member| member.node != place.node) {
                members.push(name(place.node.0, rng.below(u64::from(place.cores)) as u16));
            }
        }
        Chain { epoch: 1 + rng.below(9), whole: members.len(), members }
    };
    let stretches = starts.into_iter().map(|first| (Slot::wrapping(first), chain())).collect();
    ClusterView::new([9; 16], 50, nodes.clone(), stretches)
}

#[test]
fn every_form_says_what_the_table_says_whoever_is_asked() {
    let (mut with_replicas, mut with_holes) = (0, 0);
    for seed in 0..300 {
        let view = any_view(&mut Rng::new(seed));
        let of = |me| topology(&mut member(me, Some(view.clone())));
        let seen = of(name(1, 0));
        let last = view.nodes().last().unwrap();
        assert_eq!(seen, of(name(last.node.0, last.cores - 1)), "seed {seed}");
        let without_id = |seen: &Seen| Seen { id: String::new(), ..seen.clone() };
        let expected = view.stretches().filter_map(|(range, chain)| {
            let endpoint = view.endpoint(*chain.members.first()?);
            let seen = Seen { id: String::new(), host: endpoint.host, port: endpoint.port };
            Some((range.first.number(), range.last.number(), seen))
        });
        let told = seen.slots.0.iter().map(|(first, last, seen)| (*first, *last, without_id(seen)));
        assert_eq!(Served::of(told.collect()), Served::of(expected.collect()), "seed {seed}");
        // Behind a slot stand members of its chain.
        let (_, behind) = from_slots(&mut member(name(1, 0), Some(view.clone())));
        for (first, last, replicas) in behind {
            let within = |range: &placement::SlotRange| (first..=last).contains(&range.first.number());
            for (range, chain) in view.stretches().filter(|(range, _)| within(range)) {
                assert!(range.last.number() <= last, "seed {seed}");
                let ports: Vec<_> = chain.members[1..].iter().map(|member| view.endpoint(*member)).collect();
                let is_member = |seen: &Seen| ports.iter().any(|at| (&at.host, at.port) == (&seen.host, seen.port));
                assert!(replicas.iter().all(is_member), "seed {seed}, slots from {first}");
                with_replicas += replicas.len();
            }
        }
        with_holes += usize::from((0..SLOTS).any(|slot| seen.slots.at(slot).is_none()));
    }
    assert!(with_replicas > 300 && with_holes > 50, "{with_replicas} replicas, {with_holes} holes");
}
