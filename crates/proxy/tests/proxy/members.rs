//! Who is asked in a cluster: members only, all of them where it takes all, and no more at a time than there may be.

use crate::cluster::Cluster;
use crate::several::World;
use base::limits::{NODE_SILENT_US_MAX, REDIRECTS_MAX};
use client::cluster::slot_of;
use proxy::PolicyConfig;

fn world(nodes: usize, connections_max: usize) -> World {
    World::new(nodes, PolicyConfig::SelfClocked, connections_max)
}

/// A key of which a node is the holder.
pub fn key_of(cluster: &Cluster, node: usize) -> String {
    let key = (0..).map(|number| format!("key:{number}"));
    let is_there = |key: &String| cluster.owners[usize::from(slot_of(key.as_bytes()).number())] == node;
    key.into_iter().find(is_there).unwrap()
}

#[test]
fn what_all_holders_know_is_asked_of_all() {
    let mut world = world(4, 100);
    let client = world.street.client();
    let mut keys: Vec<String> = (0..20).map(|number| format!("k{number}")).collect();
    keys.iter().for_each(|key| assert_eq!(world.ask(client, &format!("SET {key} 1")), "+OK\r\n"));
    assert_eq!(world.ask(client, "DBSIZE"), ":20\r\n");
    let names = |reply: &str| -> Vec<String> {
        let mut names: Vec<String> = reply.lines().filter(|line| line.starts_with('k')).map(str::to_owned).collect();
        names.sort();
        names
    };
    keys.sort();
    assert_eq!(names(&world.ask(client, "KEYS *")), keys);
    let (mut cursor, mut walked, mut steps) = ("0".to_owned(), String::new(), 0);
    loop {
        let reply = world.ask(client, &format!("SCAN {cursor}"));
        cursor = reply.lines().nth(2).unwrap().to_owned();
        walked += &reply;
        steps += 1;
        if cursor == "0" {
            break;
        }
    }
    assert_eq!((names(&walked), steps), (keys, 20));
    assert!(world.ask(client, "SCAN x").starts_with("-"), "the store refuses it");
}

#[test]
fn a_transaction_over_two_nodes_is_given_up_and_none_of_it_is_carried_out() {
    let mut world = world(2, 100);
    let client = world.street.client();
    let keys = [0, 1].map(|node| key_of(&world.cluster, node));
    let mut bytes = Vec::new();
    let mut say = |words: &[&str]| wire::request::encode(words.iter().map(|word| word.as_bytes()), &mut bytes);
    say(&["MULTI"]);
    say(&["ECHO", "x"]);
    keys.iter().for_each(|key| say(&["INCR", key]));
    say(&["EXEC"]);
    keys.iter().for_each(|key| say(&["GET", key]));
    world.street.arrive(client, &bytes);
    world.settle();
    let told = world.street.text(client);
    let lines: Vec<&str> = told.split("\r\n").map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(lines, ["+OK", "+QUEUED", "+QUEUED", "-CROSSSLOT", "-EXECABORT", "$-1", "$-1", ""], "{told}");
    assert_eq!(world.ask(client, "MULTI"), "+OK\r\n");
    assert!(world.ask(client, "NONSENSE").starts_with("-ERR unknown"));
    assert_eq!(world.ask(client, &format!("INCR {}", keys[0])), "+QUEUED\r\n");
    assert!(world.ask(client, "EXEC").starts_with("-EXECABORT"));
    assert_eq!(world.ask(client, &format!("GET {}", keys[0])), "$-1\r\n");
}

/// `COMMAND` has subcommands, and is a command without one.
#[test]
fn a_command_that_may_stand_alone_is_queued_before_the_first_key() {
    let mut world = world(2, 100);
    let client = world.street.client();
    let key = key_of(&world.cluster, 1);
    assert_eq!(world.ask(client, &format!("SET {key} 1")), "+OK\r\n");
    assert_eq!(world.ask(client, "MULTI"), "+OK\r\n");
    assert_eq!(world.ask(client, "COMMAND"), "+QUEUED\r\n");
    assert_eq!(world.ask(client, &format!("INCR {key}")), "+QUEUED\r\n");
    let told = world.ask(client, "EXEC");
    assert!(told.starts_with("*2\r\n*") && told.ends_with("\r\n:2\r\n"), "{told}");
}

#[test]
fn exec_with_arguments_ends_a_transaction_wherever_it_is() {
    let mut world = world(2, 100);
    let client = world.street.client();
    let key = key_of(&world.cluster, 1);
    for before in [&[][..], &["ECHO x".to_owned()], &[format!("SET {key} 1")]] {
        assert_eq!(world.ask(client, "MULTI"), "+OK\r\n");
        for request in before {
            assert_eq!(world.ask(client, request), "+QUEUED\r\n");
        }
        assert!(world.ask(client, "EXEC now").starts_with("-EXECABORT "), "{before:?}");
        assert_eq!(world.ask(client, "ECHO over"), "$4\r\nover\r\n", "{before:?}");
        assert_eq!(world.ask(client, &format!("GET {key}")), "$-1\r\n");
    }
    // Nothing is watched any more: its own change is none that matters.
    assert_eq!(world.ask(client, &format!("WATCH {key}")), "+OK\r\n");
    assert!(world.ask(client, "EXEC now").starts_with("-EXECABORT "));
    assert_eq!(world.ask(client, &format!("SET {key} 2")), "+OK\r\n");
    assert_eq!(world.ask(client, "MULTI"), "+OK\r\n");
    assert_eq!(world.ask(client, &format!("GET {key}")), "+QUEUED\r\n");
    assert_eq!(world.ask(client, "EXEC"), "*1\r\n$1\r\n2\r\n");
}

#[test]
fn a_node_that_names_a_stranger_is_not_believed_and_nothing_is_sent_there() {
    let mut world = world(3, 100);
    let client = world.street.client();
    let key = key_of(&world.cluster, 1);
    assert_eq!(world.ask(client, &format!("SET {key} 5")), "+OK\r\n");
    // Its slot went to somebody whom no member lists.
    world.cluster.addresses.push("6.6.6.6:666".to_owned());
    let honest = world.cluster.nodes_text_of_first(3);
    (0..3).for_each(|node| drop(world.cluster.lies.insert(node, honest.clone())));
    let slot = usize::from(slot_of(key.as_bytes()).number());
    world.cluster.owners[slot] = 3;
    let told = world.ask(client, &format!("GET {key}"));
    assert!(told.starts_with("-ERR ") && told.contains("6.6.6.6:666") && told.contains("no member"), "{told}");
    assert!(world.street.addresses.values().all(|address| address != "6.6.6.6:666"));
    // Once it is listed it may be gone to.
    world.cluster.lies.clear();
    assert_eq!(world.ask(client, &format!("GET {key}")), "$1\r\n5\r\n");
}

#[test]
fn nodes_that_send_a_request_around_are_left_after_a_bound() {
    let mut world = world(2, 100);
    let client = world.street.client();
    let key = key_of(&world.cluster, 0);
    world.ask(client, "PING");
    world.cluster.sends_around = true;
    let told = world.ask(client, &format!("GET {key}"));
    assert!(told.starts_with("-ERR sent on") && told.contains("disagree"), "{told}");
    assert_eq!(world.cluster.redirects, usize::from(REDIRECTS_MAX) + 1);
    world.cluster.sends_around = false;
    assert_eq!(world.ask(client, &format!("GET {key}")), "$-1\r\n");
}

#[test]
fn what_names_no_key_waits_for_the_first_key_however_long_it_is_within_the_bound() {
    let mut world = world(2, 100);
    let client = world.street.client();
    for node in [0, 1] {
        let key = key_of(&world.cluster, node);
        let text = "x".repeat(2 * base::limits::LONG_REQUEST_BYTES + 3);
        for words in ["MULTI".to_owned(), format!("ECHO {text}"), format!("SET {key} 1")] {
            let told = world.ask(client, &words);
            assert!(told == "+OK\r\n" || told == "+QUEUED\r\n", "{told}");
        }
        let told = world.ask(client, "EXEC");
        assert_eq!(told, format!("*2\r\n${}\r\n{text}\r\n+OK\r\n", text.len()));
    }
}

#[test]
fn one_correction_repairs_the_whole_table() {
    let mut world = world(3, 100);
    let client = world.street.client();
    world.ask(client, "PING");
    world.cluster.owners.iter_mut().for_each(|owner| *owner = (*owner + 1) % 3);
    for number in 0..50 {
        assert_eq!(world.ask(client, &format!("SET key:{number} 1")), "+OK\r\n");
    }
    assert_eq!(world.cluster.redirects, 1);
}

#[test]
fn a_lost_node_fails_its_keys_only_and_is_replaced_when_others_know() {
    let mut world = world(3, 100);
    let client = world.street.client();
    let keys: Vec<String> = (0..3).map(|node| key_of(&world.cluster, node)).collect();
    keys.iter().for_each(|key| drop(world.ask(client, &format!("SET {key} 7"))));
    let lost = world.cluster.addresses[1].clone();
    world.street.dead.insert(lost.clone());
    let mut lanes = world.street.upstream.clone();
    lanes.retain(|lane| world.street.addresses[lane] == lost);
    lanes.into_iter().for_each(|lane| world.street.break_off(lane));
    world.settle();
    assert_eq!(world.ask(client, &format!("GET {}", keys[0])), "$1\r\n7\r\n");
    let told = world.ask(client, &format!("MGET {} {} {}", keys[0], keys[1], keys[2]));
    assert!(
        told.starts_with("*3\r\n$1\r\n7\r\n-ERR ") && told.ends_with("\r\n$1\r\n7\r\n") && told.contains(&lost),
        "{told}"
    );
    let told = world.ask(client, &format!("DEL {} {}x {}", keys[0], keys[0], keys[1]));
    assert!(told.contains("2 of 3 keys were reached") || told.contains("1 of 3 keys were reached"), "{told}");
    // Its slots are another node's; the others know.
    world.cluster.owners.iter_mut().filter(|owner| **owner == 1).for_each(|owner| *owner = 2);
    for _ in 0..20 {
        world.settle();
        if world.ask(client, &format!("GET {}", keys[1])) == "$1\r\n7\r\n" {
            return;
        }
    }
    panic!("its keys were not found at their new holder");
}

/// A world of three in which the second node stands still, with a key of its; whose slots the third one has from now on.
fn still_world() -> (World, String) {
    let mut world = world(3, 100);
    let client = world.street.client();
    let keys: Vec<String> = (0..3).map(|node| key_of(&world.cluster, node)).collect();
    keys.iter().for_each(|key| drop(world.ask(client, &format!("SET {key} 7"))));
    // Its connections stay open, and nobody hears a word; the others know who has its slots.
    let still = world.cluster.addresses[1].clone();
    world.still.insert(still);
    world.cluster.owners.iter_mut().filter(|owner| **owner == 1).for_each(|owner| *owner = 2);
    (world, keys[1].clone())
}

fn say(world: &mut World, client: base::ConnectionId, words: &str) {
    let mut bytes = Vec::new();
    let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    wire::request::encode(words, &mut bytes);
    world.street.arrive(client, &bytes);
    world.street.tick();
    world.street.settle();
}

/// What went to the node that stands still, and nobody took.
fn at_still(world: &mut World) -> String {
    let still = world.cluster.addresses[1].clone();
    let mut lanes = world.street.upstream.clone();
    lanes.retain(|lane| world.street.addresses[lane] == still);
    lanes.into_iter().map(|lane| world.street.text(lane)).collect()
}

#[test]
fn who_waits_before_a_node_that_stands_still_goes_where_its_slots_are_by_then() {
    let (mut world, key) = still_world();
    let clients: Vec<_> = (0..4).map(|_| world.street.client()).collect();
    // One write is on its way when the others come: they wait, and so do reads.
    say(&mut world, clients[0], &format!("INCR {key}"));
    assert!(at_still(&mut world).contains("INCR"));
    say(&mut world, clients[1], &format!("INCR {key}"));
    say(&mut world, clients[2], &format!("GET {key}"));
    say(&mut world, clients[3], &format!("MGET {key} {key}x"));
    world.settle();
    world.settle();
    assert!(world.street.closed.contains(&clients[0]), "nobody knows what became of what was sent");
    assert_eq!(world.street.text(clients[1]), ":8\r\n", "what had not left is carried out once");
    assert_eq!(world.street.text(clients[2]), "$1\r\n8\r\n", "in the order in which it was asked");
    assert_eq!(world.street.text(clients[3]), "*2\r\n$1\r\n8\r\n$-1\r\n");
    assert_eq!(at_still(&mut world), "", "nothing more was sent there");
    assert_eq!(world.ask(clients[1], &format!("INCR {key}")), ":9\r\n");
}

#[test]
fn reads_that_were_sent_to_a_node_that_stands_still_are_asked_elsewhere_within_the_budget() {
    const READERS: usize = 1000;
    let (mut world, key) = still_world();
    let clients: Vec<_> = (0..READERS).map(|_| world.street.client()).collect();
    let mut bytes = Vec::new();
    wire::request::encode([b"GET".as_slice(), key.as_bytes()], &mut bytes);
    // In one tick, so that they leave in one batch.
    clients.iter().for_each(|&client| world.street.arrive(client, &bytes));
    world.street.tick();
    world.street.settle();
    assert_eq!(at_still(&mut world).matches("GET").count(), READERS);
    world.settle();
    world.settle();
    let answered = clients.iter().filter(|&&client| world.street.text(client) == "$1\r\n7\r\n").count();
    let closed = clients.iter().filter(|client| world.street.closed.contains(client)).count();
    assert_eq!(answered + closed, READERS);
    assert!((64..=64 + READERS / 10).contains(&answered), "{answered} of {READERS}");
}

/// Its slots stay its own: nobody leaves it, and who is a Zerohop hears of it, once in ten seconds, on a connection of its own.
#[test]
fn a_node_that_stands_still_is_reported_to_a_zerohop() {
    for takes_reports in [true, false] {
        let (mut world, key) = still_world();
        world.cluster.owners.iter_mut().zip(Cluster::of(3).owners).for_each(|(owner, before)| *owner = before);
        world.cluster.takes_reports = takes_reports;
        let client = world.street.client();
        say(&mut world, client, &format!("INCR {key}"));
        let before = world.street.upstream.len();
        let name = format!("{:040x}", 1);
        let mut moments = Vec::new();
        for _ in 0..24 {
            world.street.now_us += NODE_SILENT_US_MAX;
            world.settle();
            moments.push((world.cluster.asked_for_reports.len(), world.cluster.reports.len()));
        }
        assert_eq!((moments[0], moments[2]), ((0, 0), (1, usize::from(takes_reports))), "{moments:?}");
        let (asked, reports) = *moments.last().unwrap();
        assert!((2..=3).contains(&asked), "{moments:?}");
        assert_eq!(reports, if takes_reports { asked } else { 0 });
        assert!(world.cluster.reports.iter().all(|report| *report == (2, name.clone())), "{:?}", world.cluster.reports);
        // No caller's connection, and no more than one at a time.
        assert!(world.street.upstream.len() <= before + 2, "{} and {before}", world.street.upstream.len());
        assert!(!world.street.closed.contains(&client), "it is waited for");
    }
}

#[test]
fn ten_thousand_instances_are_reached_over_a_bounded_number_of_connections() {
    const MOST: usize = 256;
    let mut world = world(10_000, MOST);
    let clients: Vec<_> = (0..64).map(|_| world.street.client()).collect();
    world.ask(clients[0], "PING");
    for round in 0..100 {
        for (number, &client) in clients.iter().enumerate() {
            let key = (round * 64 + number) * 7919 % 100_000;
            world.street.arrive(client, format!("*2\r\n$4\r\nINCR\r\n$7\r\nk{key:06}\r\n").as_bytes());
        }
        world.settle();
        assert!(world.street.upstream.len() <= MOST, "{}", world.street.upstream.len());
        clients.iter().for_each(|&client| assert_eq!(world.street.text(client), ":1\r\n"));
    }
    let reached: std::collections::BTreeSet<&String> = world.street.addresses.values().collect();
    assert!(reached.len() > 2000, "{}", reached.len());
}
