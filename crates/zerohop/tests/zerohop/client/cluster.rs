//! Servers that turn out to be nodes of a cluster.

use std::time::Duration;

use super::futures::block_on;
use super::puppet::Puppet;
use zerohop::Client;
use zerohop::client::Error;

/// Two nodes that know each other; the second one has what begins with `away`.
fn pair(word: &'static str) -> (Puppet, Puppet, Client) {
    let (home, away) = (Puppet::new(), Puppet::new());
    for node in [&home, &away] {
        node.knows(&[&home.address, &away.address]);
    }
    home.sends_on("away", word, &away.address);
    let client = Client::open(&home.address).unwrap();
    (home, away, client)
}

/// Sets a key.
type Way = fn(&Client, &str) -> Result<(), Error>;

/// The ways to ask.
const WAYS: [Way; 3] = [
    |client, key| client.set(key, "v").wait(),
    |client, key| block_on(client.set(key, "v")),
    |client, key| client.set(key, "v").submit()?.wait().expect("nobody else takes it"),
];

#[test]
fn a_key_that_is_elsewhere_is_asked_there_and_straight_the_next_time() {
    for (number, set) in WAYS.into_iter().enumerate() {
        let (home, away, client) = pair("MOVED");
        set(&client, "here").unwrap();
        set(&client, "away").unwrap();
        assert_eq!(
            (home.value("here").is_some(), home.value("away"), away.value("away")),
            (true, None, Some(b"v".to_vec()))
        );
        assert_eq!((home.count("away"), away.count("away")), (1, 1), "way {number}");
        set(&client, "away").unwrap();
        assert_eq!(block_on(client.get("away")).unwrap(), Some(b"v".to_vec()));
        let by_name = client.command("STRLEN").arg("away").wait();
        assert!(matches!(by_name, Err(Error::Server(_))), "a puppet knows no STRLEN: {by_name:?}");
        assert_eq!((home.count("away"), away.count("away")), (1, 4), "way {number}: one miss is enough");
        assert_eq!(home.count("NODES"), 1, "way {number}");
    }
}

#[test]
fn who_is_sent_to_ask_asks_behind_asking_and_the_slot_stays() {
    for set in WAYS {
        let (home, away, client) = pair("ASK");
        set(&client, "away").unwrap();
        set(&client, "away").unwrap();
        assert_eq!((home.count("away"), away.count("away")), (2, 2));
        let seen = away.seen();
        for (number, (connection, words)) in seen.iter().enumerate().filter(|(_, (_, words))| words.len() > 1) {
            let before = seen[..number].iter().rfind(|(other, _)| other == connection);
            assert_eq!(before.map(|(_, words)| words.concat()), Some(b"ASKING".to_vec()), "{words:?}");
        }
    }
}

#[test]
fn a_place_that_is_no_member_is_not_gone_to() {
    for set in WAYS {
        let (home, away, client) = pair("MOVED");
        home.knows(&[&home.address]);
        let error = set(&client, "away").unwrap_err();
        assert!(matches!(&error, Error::SentAstray { place, .. } if *place == away.address), "{error}");
        assert!(error.to_string().contains("no member"), "{error}");
        assert_eq!(away.connections(), 0);
        set(&client, "here").unwrap();
    }
}

#[test]
fn nodes_that_disagree_are_not_asked_for_ever() {
    for set in WAYS {
        let (home, away, client) = pair("MOVED");
        away.sends_on("away", "MOVED", &home.address);
        let error = set(&client, "away").unwrap_err();
        assert!(error.to_string().contains("disagree"), "{error}");
        assert!((6..=7).contains(&(home.count("away") + away.count("away"))));
    }
}

#[test]
fn many_callers_that_are_sent_on_at_once_ask_for_the_members_once() {
    let (home, away, client) = pair("MOVED");
    // The first address of the table is the one that the client was told: the other one is news to all of them.
    std::thread::scope(|scope| {
        for caller in 0..16 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..20 {
                    let key = format!("away:{caller}:{round}");
                    WAYS[(caller + round) % WAYS.len()](client, &key).unwrap();
                    assert_eq!(block_on(client.get(&key)).unwrap(), Some(b"v".to_vec()));
                }
            });
        }
    });
    assert!(home.count("NODES") <= 2, "{}", home.count("NODES"));
    assert!(away.connections() <= 2);
}

/// Two nodes of which the second one, which had this key's slot, stands still; the first one has all slots by now.
pub fn silent_pair() -> (Puppet, Puppet, Client) {
    let (home, away) = (Puppet::new(), Puppet::new());
    for node in [&home, &away] {
        node.knows(&[&home.address, &away.address]);
    }
    home.sends_on("{away}", "MOVED", &away.address);
    let client = Client::open(&home.address).unwrap();
    client.set("{away}", "v").wait().unwrap();
    away.hold();
    home.sends_on("nothing", "MOVED", "");
    (home, away, client)
}

#[test]
fn who_waits_before_a_node_that_stands_still_goes_where_its_slots_are_by_then() {
    for (number, set) in WAYS.into_iter().enumerate() {
        let (home, away, client) = silent_pair();
        std::thread::scope(|scope| {
            let (client, away) = (&client, &away);
            let sent = scope.spawn(move || set(client, "{away}sent"));
            away.saw("{away}sent");
            let waiting: Vec<_> = (0..8)
                .map(|caller| scope.spawn(move || WAYS[(number + caller) % 3](client, &format!("{{away}}{caller}"))))
                .collect();
            let told = sent.join().unwrap();
            assert_eq!(told, Err(Error::Unknown { address: away.address.clone() }), "way {number}");
            waiting.into_iter().for_each(|caller| assert_eq!(caller.join().unwrap(), Ok(()), "way {number}"));
        });
        for caller in 0..8 {
            let key = format!("{{away}}{caller}");
            assert_eq!((home.count(&key), away.count(&key)), (1, 0), "way {number}, {key}: it had not left");
        }
        assert_eq!((home.count("{away}sent"), away.count("{away}sent")), (0, 1), "a write is never sent twice");
        assert!(home.count("NODES") >= 2 && away.count("NODES") == 0, "another one is asked");
    }
}

#[test]
fn a_read_that_was_sent_to_a_node_that_stands_still_is_asked_elsewhere() {
    for number in 0..3 {
        let (home, away, client) = silent_pair();
        home.knows(&[&home.address]);
        let value = match number {
            0 => client.get("{away}read").wait(),
            1 => block_on(client.get("{away}read")),
            _ => client.get("{away}read").submit().unwrap().wait().expect("nobody else takes it"),
        };
        assert_eq!(value, Ok(None), "way {number}");
        assert_eq!((home.count("{away}read"), away.count("{away}read")), (1, 1), "way {number}");
        // Nobody waits there any more, and late replies are nobody's.
        away.go_on();
        client.set("{away}read", "new").wait().unwrap();
        assert_eq!(client.get("{away}read").wait().unwrap(), Some(b"new".to_vec()), "way {number}");
    }
}

#[test]
fn a_node_that_stands_still_and_keeps_its_slots_is_reported_to_another_one_if_that_is_a_zerohop() {
    for is_zerohop in [true, false] {
        let (home, away, client) = silent_pair();
        // The second one in a list has no slots.
        home.knows(&[&away.address, &home.address]);
        if is_zerohop {
            home.be_zerohop();
        }
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| client.get("{away}").timeout(Duration::from_secs(30)).wait());
            while home.count("ZH.CLUSTER") == 0 {
                assert_eq!(away.count("ZH.CLUSTER"), 0, "it is told of itself");
                assert!(!waiting.is_finished(), "nobody is told");
                std::thread::yield_now();
            }
            let asked_on = home.saw("ZH.CLUSTER");
            let table_on = home.saw("NODES");
            assert_ne!(asked_on, table_on, "others' replies do not stand behind it");
            match is_zerohop {
                true => drop(home.saw("SUSPECT")),
                // It is asked for the table about as often as that takes.
                false => home.saw_times("NODES", home.count("NODES") + 3),
            }
            let reports: Vec<_> = home.seen().into_iter().filter(|(_, words)| words[0] == b"ZH.CLUSTER").collect();
            let words = |(_, words): &(usize, Vec<Vec<u8>>)| words.concat();
            let expected: &[&[u8]] = if is_zerohop { &[b"ZH.CLUSTERSUSPECTn0"] } else { &[] };
            assert_eq!(reports.iter().map(words).collect::<Vec<_>>(), expected);
            assert_eq!((away.count("ZH.CLUSTER"), away.count("NODES")), (0, 0), "it says nothing of itself");
            away.go_on();
            assert_eq!(waiting.join().unwrap(), Ok(Some(b"v".to_vec())), "it is waited for");
        });
    }
}
