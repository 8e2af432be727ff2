//! Keys of several slots: asked of their nodes at once where these can be, and slot by slot where a node refuses.

use crate::members::key_of;
use crate::several::World;
use client::cluster::slot_of;
use proxy::PolicyConfig;

/// A cluster of two whose nodes can be asked for several slots, and some keys that have values, four slots at each node.
fn world() -> (World, Vec<String>) {
    let mut world = World::new(2, PolicyConfig::SelfClocked, 100);
    world.cluster.store.has_merging = true;
    let client = world.street.client();
    let mut keys: Vec<String> = Vec::new();
    let count_at = |world: &World, keys: &[String], node: usize| {
        keys.iter().filter(|key| world.cluster.owners[usize::from(slot_of(key.as_bytes()).number())] == node).count()
    };
    for number in 0.. {
        let key = format!("k{number}");
        let node = world.cluster.owners[usize::from(slot_of(key.as_bytes()).number())];
        if count_at(&world, &keys, node) < 4 {
            assert_eq!(world.ask(client, &format!("SET {key} {number}")), "+OK\r\n");
            keys.push(key);
        }
        if keys.len() == 8 {
            break;
        }
    }
    (world, keys)
}

/// Of all keys, asked for in this order.
fn values(keys: &[String]) -> String {
    let value = |key: &String| format!("${}\r\n{}\r\n", key.len() - 1, &key[1..]);
    format!("*{}\r\n{}", keys.len(), keys.iter().map(value).collect::<String>())
}

#[test]
fn one_request_goes_to_each_node_and_the_reply_is_in_the_order_of_the_keys() {
    let (mut world, keys) = world();
    let client = world.street.client();
    assert_eq!(world.ask(client, &format!("MGET {}", keys.join(" "))), values(&keys));
    assert_eq!(world.cluster.asked, [(0, "zh.mget", 4), (1, "zh.mget", 4)]);
    world.cluster.asked.clear();
    let of_one = key_of(&world.cluster, 0);
    assert_eq!(world.ask(client, &format!("MGET {{{of_one}}}1 {{{of_one}}}2 {of_one}")), "*3\r\n$-1\r\n$-1\r\n$-1\r\n");
    assert_eq!(world.cluster.asked, [(0, "mget", 3)], "what is of one slot goes as it is");
}

#[test]
fn a_slot_that_went_is_asked_for_where_it_is_and_the_others_were_answered() {
    let (mut world, keys) = world();
    let client = world.street.client();
    assert_eq!(world.ask(client, &format!("MGET {}", keys.join(" "))), values(&keys));
    world.cluster.asked.clear();
    let moved = usize::from(slot_of(keys[0].as_bytes()).number());
    let to = 1 - world.cluster.owners[moved];
    world.cluster.owners[moved] = to;
    assert_eq!(world.ask(client, &format!("MGET {}", keys.join(" "))), values(&keys));
    assert_eq!(world.cluster.asked, [(0, "zh.mget", 4), (1, "zh.mget", 4), (to, "mget", 1)]);
    world.cluster.asked.clear();
    assert_eq!(world.ask(client, &format!("MGET {}", keys.join(" "))), values(&keys));
    let mut asked = world.cluster.asked.clone();
    asked.sort_unstable();
    let mut expected = [(to, "zh.mget", 5), (1 - to, "zh.mget", 3)];
    expected.sort_unstable();
    assert_eq!(asked, expected, "the table knows");
}

#[test]
fn a_node_without_a_lease_fails_its_keys_and_no_others() {
    let (mut world, keys) = world();
    let client = world.street.client();
    assert_eq!(world.ask(client, "PING"), "+PONG\r\n");
    world.cluster.refuses_merging = Some("-CLUSTERDOWN The cluster is down\r\n");
    let told = world.ask(client, &format!("MGET {}", keys.join(" ")));
    assert_eq!(told, format!("*8\r\n{}", "-CLUSTERDOWN The cluster is down\r\n".repeat(8)));
}

#[test]
fn what_asks_for_several_slots_leaves_a_node_that_stands_still() {
    let (mut world, keys) = world();
    let client = world.street.client();
    assert_eq!(world.ask(client, "PING"), "+PONG\r\n");
    world.still.insert(world.cluster.addresses[0].clone());
    assert_eq!(world.ask(client, &format!("MGET {}", keys.join(" "))), "");
    world.cluster.owners.iter_mut().for_each(|owner| *owner = 1);
    let mut told = String::new();
    for _ in 0..10 {
        world.settle();
        told += &world.street.text(client);
    }
    assert_eq!(told, values(&keys));
}

#[test]
fn nodes_that_cannot_are_not_asked_to() {
    let (mut world, keys) = (World::new(2, PolicyConfig::SelfClocked, 100), ["k0", "k1", "k2", "k3"]);
    let client = world.street.client();
    world.ask(client, &format!("MGET {}", keys.join(" ")));
    assert!(world.cluster.asked.iter().all(|(_, name, _)| *name == "mget"), "{:?}", world.cluster.asked);
}
