//! The client library against a node: threads and tasks that share connections, which others kill under them.

use std::sync::atomic::{AtomicBool, Ordering};

use zerohop::Client;
use zerohop::client::{Error, Reply};

use crate::process::{PATIENCE, Server};

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
