//! Nodes that are asked for more than they take: everybody gets on.

use crate::members::key_of;
use crate::several::World;
use base::ConnectionId;
use proxy::PolicyConfig;
use wire::request::encode;

fn requests(words: &[&[u8]], count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..count).for_each(|_| encode(words.iter().copied(), &mut bytes));
    bytes
}

/// Nodes do what lies there, and their replies arrive together, in this order.
fn work(world: &mut World, lanes: &[ConnectionId]) {
    for &lane in lanes {
        world.work(lane);
        let replies = world.owed.remove(&lane).unwrap();
        world.street.arrive(lane, &replies);
    }
    world.street.settle();
}

#[test]
fn a_request_over_two_nodes_that_are_always_full_gets_its_turn_at_both() {
    let mut world = World::new(2, PolicyConfig::SelfClocked, 100);
    let keys = [0, 1].map(|node| key_of(&world.cluster, node));
    let client = world.street.client();
    assert_eq!(world.ask(client, &format!("MGET {} {}", keys[0], keys[1])), "*2\r\n$-1\r\n$-1\r\n");
    let mut lanes: Vec<ConnectionId> = world.street.upstream.clone();
    assert_eq!(lanes.len(), 2, "one to each node");
    // Two for each node that have more to say than ever finds room.
    let value = vec![b'7'; 30 << 10];
    for key in &keys {
        for _ in 0..2 {
            let hog = world.street.client();
            world.street.arrive(hog, &requests(&[b"SET", key.as_bytes(), &value], 180));
            world.street.settle();
        }
    }
    world.street.arrive(client, &requests(&[b"MGET", keys[0].as_bytes(), keys[1].as_bytes()], 1));
    world.street.settle();
    let mut heard = String::new();
    for round in 0.. {
        assert!(round < 12, "it waits while others are served all the time");
        // Whoever has the turn at one finds that the others' callers were at the other one first.
        lanes.reverse();
        work(&mut world, &lanes);
        heard += &world.street.text(client);
        if !heard.is_empty() {
            break;
        }
    }
    assert_eq!(heard.matches("$").count(), 2, "{heard}");
    assert!(lanes.iter().all(|&lane| !world.street.take(lane).is_empty()), "both are still asked for more");
}
