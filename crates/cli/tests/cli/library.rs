//! The client library against a node: threads and tasks that share connections, which others kill under them.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use zerohop::Client;
use zerohop::client::{Error, Reply};

use crate::cluster::Three;
use crate::process::{PATIENCE, Server, run};

/// What one thread was told: additions that were done, and those of which nobody knows.
fn live(client: &Client, caller: usize, rounds: usize) -> (i64, i64) {
    let (mut done, mut unknown, mut last) = (0, 0, 0);
    for round in 0..rounds {
        match client.incr(format!("count:{caller}"), 1).wait() {
            Ok(count) => {
                done += 1;
                assert!(count > last && count <= done + unknown, "caller {caller}: {count} after {last}");
                last = count;
            }
            Err(Error::Unknown { .. }) => unknown += 1,
            Err(error) => panic!("{error}"),
        }
        let (key, value) = (format!("value:{caller}"), format!("{caller} in {round}"));
        let is_set = client.set(&key, &value).wait().is_ok();
        // Only who was unlucky often is not answered.
        match client.get(&key).wait() {
            Ok(got) if is_set => assert_eq!(got, Some(value.into_bytes())),
            Ok(_) | Err(Error::Lost { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        let list = format!("list:{caller}");
        if let Ok(length) = client.command("RPUSH").arg(&list).arg(round).query::<i64>().wait() {
            let newest = client.command("LINDEX").arg(&list).arg(-1).query::<Option<String>>().wait();
            assert!(!matches!(newest, Ok(newest) if newest.as_deref() != Some(&round.to_string())), "{length}");
        }
    }
    (done, unknown)
}

#[test]
fn threads_get_their_own_while_connections_are_killed() {
    for io in ["epoll", "auto"] {
        let node = Server::serve(&["--io", io, "--cores", "2"]);
        let client = Client::options().timeout(PATIENCE).open(&format!("redis://127.0.0.1:{}", node.port)).unwrap();
        let killer = Client::options().timeout(PATIENCE).open(&format!("127.0.0.1:{}", node.port)).unwrap();
        let ends = AtomicBool::new(false);
        let (told, kills) = std::thread::scope(|scope| {
            let (client, ends) = (&client, &ends);
            let kills = scope.spawn(|| {
                let mut kills = 0;
                while !ends.load(Ordering::Acquire) {
                    let kill = killer.command("CLIENT KILL").args(["TYPE", "NORMAL", "SKIPME", "YES"]);
                    kills += kill.query::<i64>().wait().unwrap();
                }
                kills
            });
            let all: Vec<_> = (0..64).map(|caller| scope.spawn(move || live(client, caller, 60))).collect();
            let told: Vec<(i64, i64)> = all.into_iter().map(|caller| caller.join().unwrap()).collect();
            ends.store(true, Ordering::Release);
            (told, kills.join().unwrap())
        });
        assert!(kills > 3, "{kills}");
        for (caller, (done, unknown)) in told.into_iter().enumerate() {
            let value: i64 = node.ask(&["get", &format!("count:{caller}")]).parse().unwrap();
            assert!((done..=done + unknown).contains(&value), "{caller}: {done} + {unknown} unknown became {value}");
        }
    }
}

#[test]
fn a_node_that_comes_back_is_found() {
    let node = Server::serve(&[]);
    let client = Client::options().timeout(PATIENCE).open(&format!("127.0.0.1:{}", node.port)).unwrap();
    client.set("a", "1").wait().unwrap();
    let block = node.kill_for_another().unwrap();
    let error = loop {
        match client.set("a", "2").wait() {
            Err(Error::Unknown { .. }) => {}
            other => break other.unwrap_err(),
        }
    };
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let _node = Server::serve_on(block, &[]);
    while client.set("a", "2").wait().is_err() {
        std::thread::yield_now();
    }
    assert_eq!(client.get("a").wait().unwrap(), Some(b"2".to_vec()));
}

#[test]
fn logins_databases_and_protocols_are_said_first() {
    let node = Server::serve(&[]);
    let place = format!("127.0.0.1:{}", node.port);
    let third = Client::open(&format!("redis://{place}/3")).unwrap();
    third.set("a", "of the third").wait().unwrap();
    assert_eq!(Client::open(&place).unwrap().get("a").wait().unwrap(), None);
    assert_eq!(Client::options().database(3).open(&place).unwrap().get("a").wait().unwrap().unwrap(), b"of the third");
    let map = Client::options().resp3().open(&place).unwrap().command("CONFIG GET").arg("port").wait().unwrap();
    assert!(matches!(map, Reply::Map(_)), "{map:?}");
    assert_eq!(node.ask(&["acl", "setuser", "ann", "on", ">secret", "+@all", "~*"]), "OK");
    let ann = Client::open(&format!("redis://ann:secret@{place}")).unwrap();
    assert_eq!(ann.command("ACL WHOAMI").query::<String>().wait().unwrap(), "ann");
    let error = Client::open(&format!("redis://ann:wrong@{place}")).unwrap().get("a").wait().unwrap_err();
    assert!(matches!(&error, Error::Refused { error, .. } if error.code() == "WRONGPASS"), "{error}");
}

/// Adds one to a key, in each of the three ways to ask in turn.
pub fn add(client: &Client, round: usize, key: &str) -> Result<i64, Error> {
    let call = client.incr(key, 1);
    match round % 3 {
        0 => call.wait(),
        1 => block_on(call),
        _ => call.submit()?.wait().expect("nobody else takes it"),
    }
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn cores_of_a_node_are_asked_straight_after_one_miss() {
    const KEYS: usize = 300;
    let node = Server::serve(&["--cores", "2"]);
    // The port of the first core only: the other one is a node of its own to clients of clusters.
    let client = Client::options().timeout(PATIENCE).open(&format!("127.0.0.1:{}", node.port + 1)).unwrap();
    let round = |round| {
        let before = client.traffic().requests;
        (0..KEYS)
            .for_each(|key| assert_eq!(add(&client, round + key, &format!("key:{key}")).unwrap(), round as i64 + 1));
        client.traffic().requests - before
    };
    assert_eq!(round(0), KEYS as u64 + 2, "one miss, and one question");
    assert_eq!(round(1), KEYS as u64);
}

/// Ends everybody's work, also when its owner panics.
pub struct EndOnDrop<'a>(pub &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Whether slots went to a node that did not have all of them. On a busy machine moves are called off: they are ordered again.
pub fn has_moved(slots: &str, node: &str, port: &str) -> bool {
    loop {
        let run = run(&["cluster", "move", slots, "--to", node, "-p", port]);
        if run.code == 0 {
            return true;
        }
        // Who has which slots at first is the cluster's choice: one of the three may have these.
        if run.errors.contains("the destination serves all of these slots already") {
            return false;
        }
        assert!(run.errors.contains("a move was called off"), "{}{}", run.output, run.errors);
    }
}

#[test]
fn every_addition_counts_once_while_slots_move() {
    const CALLERS: usize = 6;
    let three = Three::new();
    three.await_whole();
    let place = format!("127.0.0.1:{}", three.node(0).port + 1);
    let client = Client::options().timeout(PATIENCE).open(&place).unwrap();
    let ends = AtomicBool::new(false);
    let rounds: Vec<usize> = std::thread::scope(|scope| {
        let (client, ends) = (&client, &ends);
        let caller = |caller: usize| {
            move || {
                // Who fails ends it for all.
                let _end = EndOnDrop(ends);
                let mut rounds = 0;
                while !ends.load(Ordering::Acquire) {
                    for key in 0..50 {
                        let sum = add(client, rounds + key, &format!("{caller}:{key}"));
                        assert_eq!(sum, Ok(rounds as i64 + 1), "caller {caller}, key {key}");
                    }
                    rounds += 1;
                }
                rounds
            }
        };
        let callers: Vec<_> = (0..CALLERS).map(|number| scope.spawn(caller(number))).collect();
        let _end = EndOnDrop(ends);
        let port = three.node(0).port.to_string();
        let mut moves = 0;
        for slots in ["0-5000", "9000-16000", "3000-12000"] {
            for node in ["1", "2", "3"] {
                moves += usize::from(has_moved(slots, node, &port));
            }
        }
        assert!(moves >= 6, "{moves}");
        ends.store(true, Ordering::Release);
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let straggler = Client::options().timeout(PATIENCE).open(&place).unwrap();
    for (caller, rounds) in rounds.into_iter().enumerate() {
        assert!(rounds > 0);
        for key in 0..50 {
            let sum: String = straggler.command("GET").arg(format!("{caller}:{key}")).query().wait().unwrap();
            assert_eq!(sum, rounds.to_string(), "caller {caller}, key {key}");
        }
    }
}
