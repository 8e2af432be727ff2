//! What operators say: which words are an order, and what the others are told.

use super::*;
use crate::member::migrations::Migrations;
use crate::order::Order;
use base::NodeId;
use placement::{Chain, InstanceId, Moving, NodePlace, SlotRange};

const ME: InstanceName = InstanceName { node: NodeId(1), core: CoreId(1) };

fn view() -> ClusterView {
    let place = |node| NodePlace {
        node: NodeId(node),
        host: format!("10.0.0.{node}"),
        port: 7000,
        cores: 2,
        is_up: true,
        incarnation: 1,
    };
    let chain = Chain { epoch: 1, members: vec![ME], whole: 1 };
    ClusterView::new([9; 16], 50, vec![place(1), place(2)], vec![(Slot::wrapping(0), chain)])
}

fn node() -> Node {
    Node {
        door: Door::Cluster,
        member: Some(Member { me: ME, view: Some(view()), has_lease: true, links: Default::default() }),
        ..Node::new()
    }
}

fn id(node: u32, core: u16) -> String {
    InstanceId::derive_in_cluster([9; 16], InstanceName { node: NodeId(node), core: CoreId(core) }).to_hex()
}

fn slots(first: u16, last: u16) -> SlotRange {
    SlotRange { first: Slot::wrapping(first), last: Slot::wrapping(last) }
}

fn ordered(words: &str) -> Result<Order, String> {
    let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    let mut node = node();
    let reply = node.send(&words);
    match (node.outcome, reply) {
        (NodeOutcome::Order(order), reply) if reply.is_empty() => Ok(order),
        (NodeOutcome::Done, reply) => Err(String::from_utf8_lossy(&reply).trim_end().to_owned()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn slots_move_in_the_words_of_valkey() {
    let (one, other) =
        (InstanceName { node: NodeId(2), core: CoreId(0) }, InstanceName { node: NodeId(2), core: CoreId(1) });
    let words = format!("cluster migrateslots slotsrange 0 9 20 29 node {} SLOTSRANGE 10 19 NODE 2.1", id(2, 0));
    assert_eq!(
        ordered(&words),
        Ok(Order::Move(vec![(slots(0, 9), one), (slots(20, 29), one), (slots(10, 19), other)]))
    );
    assert_eq!(ordered("cluster cancelslotmigrations"), Ok(Order::CancelMoves(ME)));
    for (words, error) in [
        ("cluster migrateslots slotsrange 0 9 node nobody", "-ERR Unknown node nobody"),
        ("cluster migrateslots slotsrange 9 0 node 2.0", "-ERR start slot number 9 is greater than end slot number 0"),
        ("cluster migrateslots slotsrange 0 16384 node 2.0", "-ERR Invalid or out of range slot"),
        ("cluster migrateslots slotsrange node 2.0 x y", "-ERR syntax error"),
        ("cluster migrateslots slotsrange 0 9 20 node 2.0", "-ERR syntax error"),
        ("cluster migrateslots slotsrange 0 9 node 2.0 more", "-ERR syntax error"),
        ("cluster migrateslots slots 0 9 node 2.0", "-ERR syntax error"),
    ] {
        let told = ordered(words).expect_err(words);
        assert!(told == error || words.contains("20 node") && told.contains("slot"), "{words}: {told}");
    }
}

#[test]
fn nodes_are_named_by_number_address_or_instance() {
    for name in ["2".to_owned(), "10.0.0.2:7000".to_owned(), id(2, 1), "2.1".to_owned()] {
        assert_eq!(ordered(&format!("zh.cluster drain {name}")), Ok(Order::Drain(NodeId(2))), "{name}");
    }
    assert_eq!(ordered("zh.cluster keep 1"), Ok(Order::Keep(NodeId(1))));
    assert_eq!(ordered("zh.cluster remove 2 abandon"), Ok(Order::Remove { node: NodeId(2), abandon: true }));
    assert_eq!(ordered(&format!("cluster forget {}", id(2, 0))), Ok(Order::Remove { node: NodeId(2), abandon: false }));
    assert_eq!(ordered("zh.cluster weigh 2 7"), Ok(Order::Weigh { node: NodeId(2), weight: 7 }));
    assert_eq!(ordered("zh.cluster rebalance"), Ok(Order::Rebalance));
    let both = Order::Configure { lease_ms: Some(500), chain_length: Some(3) };
    assert_eq!(ordered("zh.cluster configure LEASE-MS 500 chain-length 3"), Ok(both));
    for (words, error) in [
        ("zh.cluster drain 3", "-ERR Unknown node 3"),
        ("zh.cluster remove 2 now", "-ERR syntax error"),
        ("zh.cluster weigh 2 70000", "-ERR value is not an integer or out of range"),
        ("zh.cluster configure lease-ms 500 chain-length", "-ERR syntax error"),
        ("zh.cluster configure colour 5", "-ERR syntax error"),
        ("zh.cluster configure chain-length 300", "-ERR value is not an integer or out of range"),
    ] {
        assert_eq!(ordered(words), Err(error.to_owned()), "{words}");
    }
}

#[test]
fn a_node_on_its_own_says_how_to_be_one_of_several() {
    let mut alone = Node::new();
    for words in [&[&b"zh.cluster"[..], b"status"][..], &[b"zh.cluster", b"drain", b"1"]] {
        let reply = alone.send(words);
        assert_eq!(alone.outcome, NodeOutcome::Done);
        assert!(String::from_utf8_lossy(&reply).contains("start it with --cluster new"), "{reply:?}");
    }
}

#[test]
fn migrations_have_the_members_that_valkey_has() {
    let mut known = Migrations::default();
    let to = InstanceName { node: NodeId(2), core: CoreId(0) };
    let moving = Moving { id: 77, slots: slots(0, 9), from: ME, to, is_handed: false };
    let now = Now { monotonic_us: 0, unix_ms: 5_000 };
    known.note(now, ME, &view().with_moves(vec![moving]));
    let mut node = Node { protocol: Protocol::Resp3, ..node() };
    node.cores[1].migrations = known.list().copied().collect();
    let text = node.say("CLUSTER GETSLOTMIGRATIONS").replace("\r\n", " ");
    for part in [
        "*1 %9",
        "name $40 000000000000000000000000000000000000004d",
        "operation $6 EXPORT",
        "slot_ranges $3 0-9",
        &format!("target_node $40 {}", id(2, 0)),
        &format!("source_node $40 {}", id(1, 1)),
        "state $11 replicating",
        "create_time :5",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}
