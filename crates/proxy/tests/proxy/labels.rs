//! For whom connections are, as the store is told.

use crate::store::{Session, Store};
use crate::street::Street;
use base::ConnectionId;
use proxy::PolicyConfig;
use std::collections::BTreeMap;
use wire::request::encode;

/// A proxy before a store, with all that was said on each connection to it.
struct Scene {
    street: Street,
    store: Store,
    sessions: BTreeMap<ConnectionId, Session>,
    said: BTreeMap<ConnectionId, String>,
    /// Labels are answered with an error.
    refuses: bool,
}

fn scene(store: Store) -> Scene {
    let street = Street::new(PolicyConfig::SelfClocked);
    Scene { street, store, sessions: BTreeMap::new(), said: BTreeMap::new(), refuses: false }
}

fn request(words: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(words.split(' ').map(str::as_bytes).collect::<Vec<_>>(), &mut bytes);
    bytes
}

impl Scene {
    /// Until nobody has anything to say.
    fn settle(&mut self) {
        self.street.settle();
        loop {
            let mut is_quiet = true;
            for connection in self.street.upstream.clone() {
                let bytes = self.street.take(connection);
                let mut replies = self.sessions.entry(connection).or_default().take(&mut self.store, &bytes);
                let text = String::from_utf8(bytes).unwrap();
                if self.refuses && text.contains("SETINFO") {
                    assert_eq!(replies.split_off(replies.len() - 5), b"+OK\r\n", "the label comes last");
                    replies.extend_from_slice(b"-NOPERM no\r\n");
                }
                *self.said.entry(connection).or_default() += &text;
                if !replies.is_empty() {
                    is_quiet = false;
                    self.street.arrive(connection, &replies);
                }
            }
            if is_quiet {
                break;
            }
            self.street.settle();
        }
    }

    fn ask(&mut self, client: ConnectionId, words: &str) -> String {
        self.street.arrive(client, &request(words));
        self.settle();
        self.street.text(client)
    }

    /// The labels that were said on a connection.
    fn labels(&self, place: usize) -> Vec<&str> {
        let said = self.said.values().nth(place).unwrap();
        said.split("LIB-NAME\r\n").skip(1).map(|rest| rest.split("\r\n").nth(1).unwrap()).collect()
    }
}

#[test]
fn a_lane_says_how_many_share_it_and_again_when_that_changed_for_ten_seconds() {
    let mut scene = scene(Store::of_today());
    let clients: Vec<ConnectionId> = (0..12).map(|_| scene.street.client()).collect();
    assert_eq!(scene.ask(clients[0], "GET a"), "$-1\r\n");
    assert_eq!(scene.labels(0), ["zerohop-proxy(1-caller;10.0.1.0:4242)"]);
    for &client in &clients {
        scene.ask(client, "GET a");
    }
    assert_eq!(scene.labels(0).len(), 1, "not with each caller that comes");
    scene.street.pass(10_000_001);
    scene.settle();
    assert_eq!(scene.labels(0).len(), 1, "not while nobody asks anything");
    scene.ask(clients[0], "GET a");
    let shown: Vec<String> = (0..8).map(|index| format!(";10.0.1.{index}:4242")).collect();
    assert_eq!(scene.labels(0)[1..], [format!("zerohop-proxy(12-callers{})", shown.concat())]);
    scene.street.pass(10_000_001);
    scene.ask(clients[0], "GET a");
    assert_eq!(scene.labels(0).len(), 2, "what is still true is not said again");
}

#[test]
fn a_callers_own_connection_has_its_name_ahead_of_its_request_and_the_next_one_that_of_the_next() {
    let mut scene = scene(Store::of_today());
    let [one, other] = [scene.street.client(), scene.street.client()];
    scene.ask(one, "CLIENT SETINFO LIB-NAME redis-py");
    for _ in 0..3 {
        assert_eq!(scene.ask(one, "BLPOP a 1"), "*-1\r\n");
    }
    assert_eq!(scene.labels(1), ["zerohop-proxy(10.0.1.0:4242;redis-py)"], "once, while nobody else has it");
    let own = scene.said.values().nth(1).unwrap();
    assert!(own.find("SETINFO").unwrap() < own.find("BLPOP").unwrap(), "{own}");
    scene.ask(other, "BLPOP a 1");
    assert_eq!(scene.labels(1).last(), Some(&"zerohop-proxy(10.0.1.1:4242)"));
    // One after the other, and what it said first is heard by nobody.
    let subscribed = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
    assert_eq!(scene.ask(one, "CLIENT SETNAME me"), "+OK\r\n");
    assert_eq!(scene.ask(one, "SUBSCRIBE c"), subscribed);
    assert_eq!(scene.labels(1).last(), Some(&"zerohop-proxy(10.0.1.0:4242;redis-py)"));
}

#[test]
fn a_store_without_labels_is_sent_none_and_one_that_refuses_them_one() {
    let mut old = scene(Store::default());
    let client = old.street.client();
    for words in ["GET a", "BLPOP a 1", "MULTI", "GET a", "EXEC"] {
        old.ask(client, words);
    }
    assert!(old.said.values().all(|said| !said.contains("SETINFO")), "{:?}", old.said);

    let mut strict = scene(Store::of_today());
    strict.refuses = true;
    let [one, other] = [strict.street.client(), strict.street.client()];
    for client in [one, other] {
        for words in ["GET a", "BLPOP a 1", "MULTI", "GET a", "EXEC"] {
            strict.ask(client, words);
        }
        strict.street.pass(10_000_001);
    }
    let said: String = strict.said.values().cloned().collect();
    assert_eq!(said.matches("SETINFO").count(), 1, "{said}");
}
