//! A directory goes from the library to the server and back.

use rustix::process::Signal;
use zerohop::{Durability, Error, Store};

use crate::process::{Scratch, Server, run};

#[test]
fn what_the_library_wrote_the_server_serves_and_the_other_way_round() {
    let scratch = Scratch::new();
    let data = scratch.at("data");
    let long = "long".repeat(100_000);
    for (round, cores) in ["2", "1", "3"].into_iter().enumerate() {
        let durability = if round == 1 { Durability::Commit } else { Durability::Interval };
        let store = Store::options().durability(durability).open(&data).unwrap();
        for key in 0..200 {
            store.append(format!("key:{key}").as_bytes(), b"library ").unwrap();
        }
        store.put(b"long", long.as_bytes()).unwrap();
        let version = store.put(b"{tag}version", b"7").unwrap();
        if round > 0 {
            assert!(matches!(store.get(b"list").unwrap_err(), Error::WrongType { holds: "list", .. }));
            assert!(store.delete(b"list").unwrap());
        }
        // In use: the server says by whom.
        let refused = run(&["serve", "--port", "0", "--dir", &data]);
        let by = format!("is in use by process {} (a program that embeds the store)", std::process::id());
        assert!(refused.code == 3 && refused.errors.contains(&by), "{}", refused.errors);
        store.close().unwrap();

        let server = Server::serve(&["--dir", &data, "--cores", cores, "--io", "epoll"]);
        let expected = "library server ".repeat(round) + "library ";
        for key in [0, 57, 199] {
            assert_eq!(server.ask(&["get", &format!("key:{key}")]), expected.trim_end());
        }
        assert_eq!(server.ask(&["strlen", "long"]), "400000");
        let seen = server.ask(&["zh.get", "{tag}version"]);
        assert!(seen.contains('7') && seen.contains(&version.0.to_string()), "{seen}");
        assert_eq!(server.ask(&["dbsize"]), "202");
        for key in 0..200 {
            server.ask(&["append", &format!("key:{key}"), "server "]);
        }
        assert_eq!(server.ask(&["rpush", "list", "a", "b"]), "2");
        match round {
            // Runs only, then runs and log, then both again.
            0 => assert_eq!(server.stop(Signal::TERM).0, Some(0)),
            _ => server.kill(),
        }
        let store = Store::open(&data).unwrap();
        for key in 0..200 {
            let value = store.get(format!("key:{key}").as_bytes()).unwrap().unwrap();
            assert_eq!(value.to_vec(), "library server ".repeat(round + 1).into_bytes());
        }
        assert_eq!(store.get(b"long").unwrap().unwrap(), long.as_bytes());
        store.close().unwrap();
    }
}
