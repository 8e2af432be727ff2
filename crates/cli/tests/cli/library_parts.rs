//! The client library before a real cluster: requests whose keys are of many slots, while these move and while a node goes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use zerohop::Client;
use zerohop::client::{Call, Error, FromReply, ServerError};

use crate::cluster::Three;
use crate::library::{EndOnDrop, block_on, has_moved};
use crate::process::{PATIENCE, Server};

/// Asks in one of the three ways.
fn ask<T: FromReply>(way: usize, call: Call<'_, T>) -> Result<T, Error> {
    match way % 3 {
        0 => call.wait(),
        1 => block_on(call),
        _ => call.submit()?.wait().expect("nobody else takes it"),
    }
}

fn open(port: u16) -> Client {
    Client::options().timeout(PATIENCE).open(&format!("127.0.0.1:{port}")).unwrap()
}

/// One round of a caller over all of its keys, each part of it in another way.
fn round(client: &Client, keys: &[String], round: usize) {
    let value = |key: &String| format!("{key} in {round}").into_bytes();
    ask(round, client.mset(keys.iter().map(|key| (key, value(key))))).unwrap();
    let values = ask(round + 1, client.mget(keys)).unwrap();
    assert!(keys.iter().zip(&values).all(|(key, got)| *got == Some(value(key))), "{values:?}");
    let one = round % keys.len();
    assert_eq!(client.get(&keys[one]).wait().unwrap(), values[one]);
    let count = |way, name, keys: &[String]| ask(way, client.command(name).args(keys).query::<usize>()).unwrap();
    let half = keys.len() / 2;
    assert_eq!(count(round + 2, "EXISTS", keys), keys.len());
    assert_eq!(count(round, "DEL", &keys[..half]), half);
    assert_eq!(count(round + 1, "UNLINK", keys), keys.len() - half);
    assert_eq!(count(round, "TOUCH", keys), 0);
    assert_eq!(ask(round + 2, client.mget(keys)).unwrap(), vec![None; keys.len()]);
}

#[test]
fn keys_of_several_cores_are_asked_at_once() {
    let node = Server::serve(&["--cores", "2"]);
    let keys: Vec<String> = (0..100).map(|key| format!("key:{key}")).collect();
    // The port of everybody carries it out in one piece; that of a core refuses it once.
    for port in [node.port, node.port + 1] {
        let client = open(port);
        (0..6).for_each(|number| round(&client, &keys, number));
    }
}

#[test]
fn keys_of_many_slots_are_reached_while_slots_move() {
    const CALLERS: usize = 4;
    let three = Three::new();
    three.await_whole();
    let client = open(three.node(0).port + 1);
    let ends = AtomicBool::new(false);
    let rounds: Vec<usize> = std::thread::scope(|scope| {
        let (client, ends) = (&client, &ends);
        let caller = |caller: usize| {
            move || {
                // Who fails ends it for all.
                let _end = EndOnDrop(ends);
                let keys: Vec<String> = (0..60).map(|key| format!("{caller}:{key}")).collect();
                let mut rounds = 0;
                while !ends.load(Ordering::Acquire) {
                    round(client, &keys, caller + rounds);
                    rounds += 1;
                }
                rounds
            }
        };
        let callers: Vec<_> = (0..CALLERS).map(|number| scope.spawn(caller(number))).collect();
        let _end = EndOnDrop(ends);
        let port = three.node(0).port.to_string();
        let mut moves = 0;
        for slots in ["0-5000", "9000-16000"] {
            for node in ["1", "2", "3"] {
                moves += usize::from(has_moved(slots, node, &port));
            }
        }
        assert!(moves >= 4, "{moves}");
        ends.store(true, Ordering::Release);
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert!(rounds.iter().all(|rounds| *rounds > 0), "{rounds:?}");
}

/// What one look at all keys said: how many were read. What is not the whole says so.
fn look(client: &Client, way: usize, keys: &[String]) -> usize {
    let all = keys.len();
    let is_partly = |error: &Error| matches!(error, Error::Partly { reached, all: of, .. } if *of == all && (1..all).contains(reached));
    match ask(way, client.command("EXISTS").args(keys).query::<usize>()) {
        Ok(count) => assert_eq!(count, all),
        Err(error) => assert!(is_partly(&error), "{error}"),
    }
    match ask(way, client.mget(keys)) {
        Ok(values) => assert!(keys.iter().zip(values).all(|(key, value)| value.as_deref() == Some(key.as_bytes()))),
        Err(error) => assert!(is_partly(&error), "{error}"),
    }
    let each = client.command("MGET").args(keys).query::<Vec<Result<Option<String>, ServerError>>>();
    let values = ask(way, each).unwrap();
    let is_right = |(key, value): (&String, &Result<Option<String>, _>)| match value {
        Ok(value) => value.as_ref() == Some(key),
        Err(_) => true,
    };
    assert!(values.len() == all && keys.iter().zip(&values).all(is_right), "{values:?}");
    values.iter().filter(|value| value.is_ok()).count()
}

#[test]
fn keys_of_a_node_that_is_gone_are_counted_until_it_is_back() {
    let mut three = Three::new();
    three.await_whole();
    let client = open(three.node(0).port + 1);
    let keys: Vec<String> = (0..100).map(|key| format!("key:{key}")).collect();
    ask(0, client.mset(keys.iter().map(|key| (key, key)))).unwrap();
    assert_eq!(look(&client, 0, &keys), keys.len());
    let block = three.kill(2);
    for way in 0..3 {
        let read = look(&client, way, &keys);
        assert!(read > 0 && read < keys.len(), "way {way}: {read}");
    }
    three.start(2, block);
    let begun = Instant::now();
    for way in 0.. {
        let read = look(&client, way, &keys);
        if read == keys.len() {
            break;
        }
        assert!(read > 0 && begun.elapsed() < PATIENCE, "{read} were read last");
    }
}
