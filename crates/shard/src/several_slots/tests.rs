//! Keys of many slots asked of one core.

use base::{CoreId, Door, NodeId};

use crate::Durability;
use crate::member::tests::town::Town;
use crate::split_node::SplitNode;

/// Keys of so many slots that the core serves.
fn keys_of(node: &SplitNode, core: u16, count: usize) -> Vec<String> {
    let keys = (0..).map(|number| format!("k{number}")).filter(|key| node.owner(key.as_bytes()) == CoreId(core));
    keys.take(count).collect()
}

#[test]
fn what_a_core_has_is_told_and_of_the_rest_who_has_it() {
    let _turn = crate::one_core::turn();
    for mut node in [SplitNode::new(2), SplitNode::alone(2, Durability::Interval)] {
        let [here, there] = [0, 1].map(|core| keys_of(&node, core, 2));
        for (client, key) in here.iter().chain(&there).enumerate() {
            assert_eq!(node.ask(client as u32, Door::Standalone, &[b"SET", key.as_bytes(), b"v"]), "+OK\r\n");
        }
        let moved = |key: &str| format!("-MOVED {} ", placement::slot_of(key.as_bytes()).number());
        let words =
            [b"ZH.MGET", here[0].as_bytes(), there[0].as_bytes(), b"{absent}", here[1].as_bytes(), there[1].as_bytes()];
        let told = node.ask(10, Door::Cluster, &words);
        let lines: Vec<&str> = told.lines().collect();
        let absent = if node.owner(b"{absent}") == CoreId(0) { "$-1".to_owned() } else { moved("{absent}") };
        assert_eq!((lines[0], &lines[1..3], lines.len()), ("*5", &["$1", "v"][..], 8), "{told}");
        assert!(lines[3].starts_with(&moved(&there[0])) && lines[7].starts_with(&moved(&there[1])), "{told}");
        assert!(lines[4].starts_with(&absent) && lines[5..7] == ["$1", "v"], "{told}");
        // Whoever asks for one slot may ask for it there, too; whoever asks a plain port is answered by all cores, where they are one.
        assert_eq!(node.ask(11, Door::Cluster, &[b"ZH.MGET", here[0].as_bytes()]), "*1\r\n$1\r\nv\r\n");
        let told = node.ask(12, Door::Cluster, &[b"MGET", here[0].as_bytes(), here[1].as_bytes()]);
        assert!(told.starts_with("-CROSSSLOT "), "{told}");
        let long = vec![b'x'; base::limits::KEY_BYTES_MAX + 1];
        let told = node.ask(13, Door::Cluster, &[b"ZH.MGET", here[0].as_bytes(), &long]);
        assert!(told.starts_with("-ERR key is too long"), "{told}");
    }
}

#[test]
fn who_lost_everything_says_so_of_each_key() {
    let _turn = crate::one_core::turn();
    let mut node = SplitNode::new(2);
    let here = keys_of(&node, 0, 2);
    node.tell_table(2, &[]);
    node.rest();
    let told = node.ask(1, Door::Cluster, &[b"ZH.MGET", here[0].as_bytes(), here[1].as_bytes()]);
    assert_eq!((told.matches("-MOVED ").count(), told.lines().next()), (2, Some("*2")), "{told}");
}

#[test]
fn who_may_not_answer_says_nothing_of_any_key() {
    let _turn = crate::one_core::turn();
    let mut town = Town::new(1, 1);
    town.tell_chain(2, &[0], 1);
    let client = town.client(0);
    assert_eq!(town.say(0, client, &["SET a 1", "ZH.MGET a b"]), "+OK\r\n*2\r\n$1\r\n1\r\n$-1\r\n");
    town.end_lease(NodeId(1));
    assert_eq!(town.say(0, client, &["ZH.MGET a b"]), "-CLUSTERDOWN The cluster is down\r\n");
}

#[test]
fn a_transaction_is_of_one_slot_as_ever() {
    let _turn = crate::one_core::turn();
    let mut node = SplitNode::alone(1, Durability::Interval);
    let here = keys_of(&node, 0, 2);
    let client = 1;
    node.connect(client, Door::Cluster, base::Entrance::default());
    node.send(
        client,
        &[
            crate::one_core::request(&[b"MULTI"]),
            crate::one_core::request(&[b"ZH.MGET", here[0].as_bytes(), here[1].as_bytes()]),
        ]
        .concat(),
    );
    node.rest();
    let told = node.told(client);
    assert!(told.starts_with("+OK\r\n-CROSSSLOT "), "{told}");
}
