//! Servers that turn out to be nodes of a cluster.

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
