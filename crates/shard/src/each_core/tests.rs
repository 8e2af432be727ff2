//! Commands over all keys of a node whose cores lend each other nothing, between requests that hop.

use base::{CoreId, Door, Entrance, Slot};
use placement::{Moving, SlotRange};

use crate::one_core::{request, turn};
use crate::split_node::{SplitNode, name};

/// A key of another core than that of the client.
fn far_key(node: &SplitNode) -> Vec<u8> {
    let names = (0..).map(|number: u32| format!("key:{number}").into_bytes());
    names.into_iter().find(|name| node.owner(name) != CoreId(0)).expect("the keys are spread")
}

/// The request and the question leave in one batch, of which questions are looked at first.
#[test]
fn a_question_to_every_core_does_not_overtake_what_was_sent_before_it() {
    let _turn = turn();
    for (question, answer) in [
        (&[&b"DBSIZE"[..]][..], ":1\r\n"),
        (&[b"KEYS", b"*"], "*1\r\n"),
        (&[b"RANDOMKEY"], "$"),
        (&[b"FLUSHALL"], "+OK\r\n"),
        (&[b"FLUSHDB"], "+OK\r\n"),
    ] {
        let mut node = SplitNode::new(2);
        let key = far_key(&node);
        node.connect(1, Door::Standalone, Entrance::default());
        node.send(1, &[request(&[b"SET", &key, b"value"]), request(question)].concat());
        node.rest();
        let told = node.told(1);
        assert!(told.starts_with("+OK\r\n") && told[5..].starts_with(answer), "{question:?}: {told}");
        let is_clear = question[0].starts_with(b"FLUSH");
        assert_eq!(node.ask(2, Door::Standalone, &[b"DBSIZE"]), if is_clear { ":0\r\n" } else { ":1\r\n" });
    }
}

/// One leaves each core, one comes to the second one.
#[test]
fn port_p_tells_of_the_moves_of_all_cores_and_an_instances_port_of_its_own() {
    let _turn = turn();
    let mut node = SplitNode::new(2);
    let slots = |first| SlotRange { first: Slot::wrapping(first), last: Slot::wrapping(first + 9) };
    let moving = |id, first, from, to| Moving { id, slots: slots(first), from, to, is_handed: false };
    let [first, second] = [0, 1].map(|core| name(1, core));
    let moves =
        [moving(7, 0, first, name(2, 0)), moving(9, 9000, second, name(2, 1)), moving(8, 8500, name(2, 1), second)];
    node.tell_table(1, &moves);
    node.rest();
    let mut ask = |client, door| {
        let told = node.ask(client, door, &[b"CLUSTER", b"GETSLOTMIGRATIONS"]).replace("\r\n", " ");
        let field = |map: &str, name: &str| {
            let (_, behind) = map.split_once(&format!(" {name} ")).expect("every map has it");
            behind.split(' ').nth(1).expect("a value").to_owned()
        };
        let maps: Vec<String> = told.split("*18").skip(1).map(str::to_owned).collect();
        maps.iter().map(|map| ["slot_ranges", "operation"].map(|name| field(map, name))).collect::<Vec<_>>()
    };
    let texts = |all: &[[&str; 2]]| all.iter().map(|pair| pair.map(str::to_owned)).collect::<Vec<_>>();
    let all = texts(&[["9000-9009", "EXPORT"], ["8500-8509", "IMPORT"], ["0-9", "EXPORT"]]);
    assert_eq!(ask(1, Door::Standalone), all);
    assert_eq!(ask(2, Door::Cluster), texts(&[["0-9", "EXPORT"]]));
}
