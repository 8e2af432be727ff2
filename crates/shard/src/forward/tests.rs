//! Requests that hop, and the table that changes before they arrive.

use base::{CoreId, Door, Entrance};

use crate::Durability;
use crate::one_core::{request, turn};
use crate::split_node::{PORTS, SplitNode};

const SHIFT: i32 = 100;

#[test]
fn who_lost_a_race_is_sent_to_the_kind_of_port_it_came_by() {
    let _turn = turn();
    for words in [&[&b"GET"[..], b"key"][..], &[b"BLPOP", b"key", b"0"]] {
        for port_shift in [0, SHIFT] {
            let mut node = SplitNode::new(3);
            let (owner, slot) = (node.owner(b"key"), placement::slot_of(b"key").number());
            assert_ne!(owner, CoreId(0), "it hops");
            node.connect(1, Door::Standalone, Entrance { is_sealed: port_shift != 0, port_shift, listener: 0 });
            let table = node.next_table(2, &[]);
            if words[0] == b"BLPOP" {
                // It waits there.
                node.send(1, &request(words));
                node.rest();
                node.tell_view(owner.0, &table);
            } else {
                node.tell_view(owner.0, &table);
                node.send(1, &request(words));
            }
            assert_eq!(node.told(1), "");
            node.rest();
            let port = i32::from(PORTS[1] + 1 + owner.0) + port_shift;
            assert_eq!(node.told(1), format!("-MOVED {slot} 10.0.0.1:{port}\r\n"), "{words:?}");
        }
    }
}

/// Its turn never comes: whoever unblocks it hears that all the same.
#[test]
fn who_unblocks_a_request_that_is_over_before_its_turn_is_answered() {
    let _turn = turn();
    let mut node = SplitNode::alone(3, Durability::Interval);
    let (owner, group) = (node.owner(b"key"), placement::slot_of(b"key").group());
    assert_ne!(owner, CoreId(0), "it hops");
    (1..3).for_each(|client| node.connect(client, Door::Standalone, Entrance::default()));
    node.send(1, &request(&[b"CLIENT", b"ID"]));
    let id = node.told(1).trim_start_matches(':').trim_end().to_owned();
    let owner = usize::from(owner.0);
    let lent = node.shards[owner].store.take_group(group).unwrap();
    node.send(1, &request(&[b"BLPOP", b"key", b"0"]));
    node.rest();
    assert_eq!(node.shards[owner].parked_hops.len(), 1, "its group is away");
    node.send(2, &request(&[b"CLIENT", b"UNBLOCK", id.as_bytes()]));
    node.rest();
    assert_eq!(node.told(2), "", "whether it waits is not known yet");
    node.leave(1);
    node.rest();
    assert_eq!(node.told(2), ":0\r\n");
    node.shards[owner].store.insert_group(lent);
}
