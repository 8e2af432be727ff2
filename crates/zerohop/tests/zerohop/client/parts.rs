//! Requests whose keys are of several slots of a cluster.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::cluster::silent_pair;
use super::futures::block_on;
use super::puppet::{Puppet, in_vain};
use zerohop::Client;
use zerohop::client::{Call, Error, FromReply, Reply, ServerError};

/// Three nodes with a third of the slots each, and a client that was told the first one.
fn three() -> ([Puppet; 3], Client) {
    let nodes = [Puppet::new(), Puppet::new(), Puppet::new()];
    Puppet::share(&[(&nodes[0], 0), (&nodes[1], 5000), (&nodes[2], 11_000)]);
    let client = Client::open(&nodes[0].address).unwrap();
    (nodes, client)
}

/// Asks in one of the three ways.
fn ask<T: FromReply>(way: usize, call: Call<'_, T>) -> Result<T, Error> {
    match way {
        0 => call.wait(),
        1 => block_on(call),
        _ => call.submit()?.wait().expect("nobody else takes it"),
    }
}

/// Keys that all nodes have some of, and two of one slot.
fn keys(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("key:{number}")).chain(["{a}1".to_owned(), "{a}2".to_owned()]).collect()
}

fn value_of(key: &str) -> Vec<u8> {
    format!("value of {key}").into_bytes()
}

fn fill(nodes: &[Puppet; 3], client: &Client, keys: &[String]) {
    client.mset(keys.iter().map(|key| (key, value_of(key)))).wait().unwrap();
    assert!(nodes.iter().all(|node| keys.iter().any(|key| node.value(key).is_some())));
}

/// Requests of that name that all nodes together got.
fn count(nodes: &[Puppet; 3], name: &str) -> usize {
    nodes.iter().map(|node| node.count(name)).sum()
}

#[test]
fn values_come_in_the_order_of_their_keys_however_they_are_asked_for() {
    for (way, moved_first) in (0..3).flat_map(|way| [(way, false), (way, true)]) {
        let (nodes, client) = three();
        if moved_first {
            nodes.iter().for_each(Puppet::says_moved_first);
        }
        let keys = keys(60);
        ask(way, client.mset(keys.iter().map(|key| (key, value_of(key))))).unwrap();
        // The first request of all was refused whole, once.
        assert_eq!((count(&nodes, "NODES"), nodes[0].seen()[0].1.len()), (1, 1 + 2 * keys.len()), "way {way}");
        let parts = keys.len() - 1;
        assert_eq!(count(&nodes, "MSET"), 1 + parts, "way {way}: two keys are of one slot");
        let wanted: Vec<&str> = keys.iter().rev().map(String::as_str).chain(["nothing", "key:1"]).collect();
        let values = ask(way, client.mget(&wanted)).unwrap();
        let single: Vec<_> = wanted.iter().map(|key| client.get(key).wait().unwrap()).collect();
        assert_eq!(values, single, "way {way}");
        assert_eq!(values[0], Some(value_of("{a}2")));
        for (name, asked, expected) in
            [("exists", 62, 62), ("TOUCH", 62, 62), ("Unlink", 10, 10), ("DEL", 62, 52), ("EXISTS", 62, 0)]
        {
            // A puppet knows names as they are written in its part.
            let name = name.to_uppercase();
            let number = ask(way, client.command(&name).args(&keys[..asked]).query::<usize>()).unwrap();
            assert_eq!(number, expected, "way {way}: {name}");
        }
        assert_eq!(ask(way, client.mget(&keys)).unwrap(), vec![None; keys.len()]);
    }
}

#[test]
fn all_parts_leave_in_one_write_for_each_node_before_one_is_answered() {
    for way in 0..3 {
        let (nodes, client) = three();
        let keys = keys(60);
        fill(&nodes, &client, &keys);
        let (requests, writes) = (client.traffic().requests, client.traffic().writes);
        nodes.iter().for_each(Puppet::hold);
        std::thread::scope(|scope| {
            let (client, keys) = (&client, &keys);
            let caller = scope.spawn(move || ask(way, client.mget(keys)));
            for node in &nodes {
                let own = keys.iter().filter(|key| node.value(key).is_some()).count();
                let shared = usize::from(node.value("{a}1").is_some());
                while node.count("MGET") < own - shared {
                    assert!(!caller.is_finished(), "way {way}: it gave up before all parts had left");
                    std::thread::yield_now();
                }
            }
            assert_eq!(client.traffic().requests - requests, keys.len() as u64 - 1);
            assert_eq!(client.traffic().writes - writes, 3, "way {way}");
            nodes.iter().for_each(Puppet::go_on);
            let values = caller.join().unwrap().unwrap();
            assert!(keys.iter().zip(values).all(|(key, value)| value == Some(value_of(key))));
        });
    }
}

#[test]
fn a_part_whose_slot_went_elsewhere_follows_by_itself() {
    for (word, way) in ["MOVED", "ASK"].into_iter().flat_map(|word| (0..3).map(move |way| (word, way))) {
        let (home, away) = (Puppet::new(), Puppet::new());
        home.takes_part(0, &[(0, home.address.clone())]);
        home.knows(&[&home.address, &away.address]);
        home.sends_on("away", word, &away.address);
        let client = Client::open(&home.address).unwrap();
        let keys = ["here", "away:1", "away:2", "there", "away:3"];
        ask(way, client.mset(keys.map(|key| (key, value_of(key))))).unwrap();
        assert_eq!((home.value("away:1"), away.value("away:1")), (None, Some(value_of("away:1"))), "{word}");
        assert_eq!(ask(way, client.mget(keys)).unwrap(), keys.map(|key| Some(value_of(key))));
        assert_eq!(away.count("ASKING"), if word == "ASK" { 6 } else { 0 }, "way {way}");
        // Once is enough, unless it was for this once.
        let (parts, sent_on) = (keys.len(), if word == "ASK" { 6 } else { 3 });
        assert_eq!(
            (home.count("MSET") + home.count("MGET"), away.count("MGET")),
            (1 + 2 * parts - 6 + sent_on, 3),
            "{word}"
        );
    }
}

/// Two nodes that answer, and a third that is not there.
fn three_without_one() -> ([Puppet; 2], Client) {
    let nodes = [Puppet::new(), Puppet::new()];
    let nobody = "127.0.0.1:1".to_owned();
    let all = [(0, nodes[0].address.clone()), (5000, nodes[1].address.clone()), (11_000, nobody)];
    nodes[0].takes_part(0, &all);
    nodes[1].takes_part(5000, &all);
    let client = Client::open(&nodes[0].address).unwrap();
    (nodes, client)
}

#[test]
fn what_could_not_be_reached_is_told_and_counted() {
    for way in 0..3 {
        let (nodes, client) = three_without_one();
        let keys = keys(30);
        let is_there = |key: &&String| placement::slot_of(key.as_bytes()).number() < 11_000;
        let there = keys.iter().filter(is_there).count();
        assert!(there > 0 && there < keys.len());
        let error = ask(way, client.mset(keys.iter().map(|key| (key, value_of(key))))).unwrap_err();
        let is_counted = |error: &Error| matches!(error, Error::Partly { reached, all, .. } if (*reached, *all) == (there, keys.len()));
        assert!(is_counted(&error) && error.to_string().contains("not carried out"), "way {way}: {error}");
        assert!(keys.iter().filter(is_there).all(|key| nodes.iter().any(|node| node.value(key).is_some())));
        let error = ask(way, client.mget(&keys)).unwrap_err();
        assert!(is_counted(&error) && error.to_string().contains("127.0.0.1:1"), "way {way}: {error}");
        let each = client.command("MGET").args(&keys).query::<Vec<Result<Option<Vec<u8>>, ServerError>>>();
        for (key, value) in keys.iter().zip(ask(way, each).unwrap()) {
            match is_there(&key) {
                true => assert_eq!(value, Ok(Some(value_of(key)))),
                false => assert_eq!(value.unwrap_err().code(), "NOREPLY"),
            }
        }
        let reply = ask(way, client.command("MGET").args(&keys)).unwrap();
        assert!(matches!(reply, Reply::Array(items) if items.len() == keys.len()));
        let gone = ask(way, client.command("DEL").args(&keys)).unwrap_err();
        assert!(is_counted(&gone), "way {way}: {gone}");
    }
}

#[test]
fn who_does_not_know_what_became_of_a_part_says_so() {
    for way in 0..3 {
        let (nodes, client) = three();
        let keys = keys(30);
        fill(&nodes, &client, &keys);
        nodes[1].cut_after(1);
        let error = ask(way, client.command("DEL").args(&keys)).unwrap_err();
        let Error::Partly { reached, all, error } = error else { panic!("way {way}: {error}") };
        assert!(reached > 0 && reached < all && all == keys.len(), "way {way}: {reached}");
        assert!(matches!(*error, Error::Unknown { .. }), "way {way}: {error}");
        // One that is the only one to be asked.
        nodes[1].cut_after(1);
        let theirs: Vec<&String> = keys.iter().filter(|key| nodes[1].value(key).is_some()).take(2).collect();
        let error = ask(way, client.command("DEL").args(theirs)).unwrap_err();
        assert!(matches!(error, Error::Unknown { .. }), "way {way}: {error}");
    }
}

#[test]
fn a_node_that_refuses_even_the_parts_is_not_asked_for_ever() {
    for way in 0..3 {
        let node = Puppet::new();
        node.refuses("CROSSSLOT");
        let client = Client::open(&node.address).unwrap();
        let error = ask(way, client.mget(["a", "b", "c"])).unwrap_err();
        assert!(matches!(&error, Error::Server(error) if error.code() == "CROSSSLOT"), "way {way}: {error}");
        assert_eq!((node.count("MGET"), node.count("NODES")), (4, 1), "way {way}");
        // What has no parts stays refused as it is.
        let error = ask(way, client.command("SUNION").args(["a", "b"])).unwrap_err();
        assert!(matches!(&error, Error::Server(error) if error.code() == "CROSSSLOT"), "way {way}: {error}");
        assert_eq!(node.count("SUNION"), 1);
    }
}

#[test]
fn one_server_is_asked_once_and_never_for_a_table() {
    let node = Puppet::new();
    let client = Client::open(&node.address).unwrap();
    for way in 0..3 {
        ask(way, client.mset([("a", "1"), ("b", "2")])).unwrap();
        assert_eq!(ask(way, client.mget(["b", "a"])).unwrap(), [Some(b"2".to_vec()), Some(b"1".to_vec())]);
    }
    assert_eq!((node.seen().len(), node.count("NODES")), (6, 0));
}

#[test]
fn who_waits_no_longer_leaves_nothing_behind() {
    let (nodes, client) = three();
    let keys = keys(30);
    fill(&nodes, &client, &keys);
    let others = |name: &str| nodes[0].count(name) + nodes[2].count(name);
    nodes[1].hold();
    // A future that is dropped, and a thread whose time is over.
    {
        let mut call = pin!(client.mget(&keys));
        assert!(matches!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    }
    let in_part = |error: Error, after| match error {
        Error::Partly { reached, error, .. } => Some((reached, *error, after)),
        Error::TimedOut { .. } => None,
        _ => panic!("{error}"),
    };
    let (reached, error, after) =
        in_vain(|after| in_part(client.mget(&keys).timeout(after).wait().unwrap_err(), after));
    assert!(reached > 0 && error.to_string().contains(&format!("within {after:?}")), "{error}");
    let delete = |after| client.command("DEL").args(&keys).timeout(after).wait();
    let (_, error, after) = in_vain(|after| in_part(delete(after).unwrap_err(), after));
    assert!(matches!(&error, Error::TimedOut { after: told, .. } if *told == after), "{error}");
    assert!(others("MGET") > 0);
    nodes[1].go_on();
    // Late replies are nobody's; those deletions were carried out nevertheless.
    assert_eq!(client.mget(&keys).wait().unwrap(), vec![None; keys.len()]);
    fill(&nodes, &client, &keys);
    assert_eq!(block_on(client.mget(&keys)).unwrap()[3], Some(value_of("key:3")));
}

#[test]
fn who_waits_for_a_table_in_vain_is_told_so() {
    let (nodes, client) = in_vain(|after| {
        let (nodes, client) = three();
        nodes[0].hold_after("CROSSSLOT");
        let error = client.mget(["a", "b", "c"]).timeout(after).wait().unwrap_err();
        assert!(matches!(&error, Error::TimedOut { after: told, .. } if *told == after), "{error}");
        nodes[0].is_holding().then_some((nodes, client))
    });
    assert_eq!(count(&nodes, "MGET"), 1);
    nodes[0].go_on();
    assert_eq!(client.mget(["a", "b", "c"]).wait().unwrap(), [None, None, None]);
}

#[test]
fn tickets_of_parts_outlive_their_client_with_an_error() {
    let (nodes, client) = three();
    let keys = keys(30);
    fill(&nodes, &client, &keys);
    nodes.iter().for_each(Puppet::hold);
    let ticket = client.command("DEL").args(&keys).submit().unwrap();
    drop(client);
    assert_eq!(ticket.wait(), Some(Err(Error::Closed)));
}

#[test]
fn many_threads_and_tasks_get_their_own() {
    let (nodes, client) = three();
    std::thread::scope(|scope| {
        for caller in 0..16 {
            let client = &client;
            scope.spawn(move || {
                let keys: Vec<String> = (0..20).map(|key| format!("{caller}:{key}")).collect();
                for round in 0..30 {
                    let value = |key: &String| format!("{key} in {round}").into_bytes();
                    ask(round % 3, client.mset(keys.iter().map(|key| (key, value(key))))).unwrap();
                    let values = ask((round + caller) % 3, client.mget(&keys)).unwrap();
                    assert!(keys.iter().zip(values).all(|(key, got)| got == Some(value(key))));
                    assert_eq!(client.get(&keys[0]).wait().unwrap(), Some(value(&keys[0])));
                }
            });
        }
    });
    assert!(count(&nodes, "NODES") >= 1);
}

#[test]
fn parts_that_were_sent_to_a_node_that_stands_still_are_asked_elsewhere() {
    for way in 0..3 {
        let (home, away, client) = silent_pair();
        home.knows(&[&home.address]);
        assert_eq!(ask(way, client.mget(["here", "{away}1", "{away}2"])), Ok(vec![None; 3]), "way {way}");
        assert_eq!((home.count("{away}1"), away.count("{away}1")), (1, 1), "way {way}");
        away.go_on();
    }
}
