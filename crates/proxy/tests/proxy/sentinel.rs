//! A store that sentinels watch: puppets say where the master is, truly or not, while callers ask.

use crate::store::{Session, Store};
use crate::street::{NOBODY, Street, upstream};
use base::ConnectionId;
use proxy::{BySentinels, Classes, MasterName, PolicyConfig, ProxyMachine};
use std::collections::BTreeMap;

const SENTINELS: [&str; 3] = ["guard1:26379", "guard2:26379", "guard3:26379"];

/// What a server says that it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Master,
    Replica,
    /// It says nothing to whom it does not know.
    Silent,
}

/// Sentinels, servers with one store each, and the proxy before them.
struct World {
    street: Street<BySentinels>,
    /// Where each sentinel says that the master is; `None`: it knows no such name.
    named: BTreeMap<&'static str, Option<&'static str>>,
    parts: BTreeMap<&'static str, Part>,
    stores: BTreeMap<&'static str, Store>,
    sessions: BTreeMap<ConnectionId, Session>,
    /// Connections on which a sentinel was asked for news.
    watchers: Vec<ConnectionId>,
    /// What sentinels and servers were sent, by address.
    asked: Vec<(String, String)>,
    /// Servers and sentinels that take requests and answer nothing.
    mute: Vec<&'static str>,
    password: Option<&'static str>,
    /// Where each sentinel says that others are.
    known: Vec<String>,
}

impl World {
    fn new() -> World {
        World::with_login(None)
    }

    fn with_login(login: Option<(Option<String>, String)>) -> World {
        World::with_named(&SENTINELS, login)
    }

    /// So many of the sentinels are named to the proxy.
    fn with_named(named: &[&str], login: Option<(Option<String>, String)>) -> World {
        let addresses = vec![format!("sentinel://{}/shop", named.join(","))];
        let mut upstream = upstream(addresses, PolicyConfig::SelfClocked, 100);
        let master = MasterName { login, ..upstream.master.clone().unwrap() };
        upstream.master = Some(master.clone());
        let sentinels = upstream.addresses.clone();
        let proxy = ProxyMachine::new(upstream, Classes::default(), 7);
        World {
            street: Street::of(BySentinels::new(proxy, sentinels, master)),
            named: SENTINELS.into_iter().map(|sentinel| (sentinel, Some("one:6379"))).collect(),
            parts: BTreeMap::from([("one:6379", Part::Master), ("two:6379", Part::Replica)]),
            stores: ["one:6379", "two:6379"].into_iter().map(|server| (server, Store::default())).collect(),
            sessions: BTreeMap::new(),
            watchers: Vec::new(),
            asked: Vec::new(),
            mute: Vec::new(),
            password: None,
            known: SENTINELS.map(str::to_owned).to_vec(),
        }
    }

    /// Until nobody has anything to say.
    fn settle(&mut self) {
        loop {
            self.street.settle();
            let mut is_quiet = true;
            for connection in self.street.upstream.clone() {
                let bytes = self.street.take(connection);
                if !bytes.is_empty() {
                    is_quiet = false;
                    self.answer(connection, &bytes);
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    fn answer(&mut self, connection: ConnectionId, bytes: &[u8]) {
        let address = self.street.addresses[&connection].clone();
        let words = String::from_utf8_lossy(bytes).into_owned();
        self.asked.push((address.clone(), words.clone()));
        if self.mute.contains(&&address[..]) {
            return;
        }
        let reply = match SENTINELS.into_iter().find(|sentinel| *sentinel == address) {
            Some(sentinel) => self.as_sentinel(connection, sentinel, &words),
            None => self.as_server(connection, &address, bytes),
        };
        self.street.arrive(connection, &reply);
    }

    fn as_sentinel(&mut self, connection: ConnectionId, sentinel: &'static str, words: &str) -> Vec<u8> {
        let mut reply = String::new();
        if words.contains("AUTH") {
            let is_right = self.password.is_some_and(|password| words.contains(password));
            reply += if is_right { "+OK\r\n" } else { "-WRONGPASS that is not it\r\n" };
        }
        if words.contains("sentinels") {
            let row = |place: &String| {
                let (host, port) = place.rsplit_once(':').unwrap();
                let words = ["ip", host, "port", port, "flags", "sentinel"];
                let words = words.map(|word| format!("${}\r\n{word}\r\n", word.len()));
                format!("*6\r\n{}", words.concat())
            };
            let known: Vec<String> = self.known.iter().filter(|place| *place != sentinel).map(row).collect();
            reply += &format!("*{}\r\n{}", known.len(), known.concat());
        }
        if words.contains("get-master-addr-by-name") {
            assert!(words.contains("$4\r\nshop\r\n"), "{words}");
            reply += &match self.named[sentinel].map(|place| place.rsplit_once(':').unwrap()) {
                Some((host, port)) => format!("*2\r\n${}\r\n{host}\r\n${}\r\n{port}\r\n", host.len(), port.len()),
                None => "*-1\r\n".to_owned(),
            };
        }
        if words.contains("+switch-master") {
            self.watchers.push(connection);
            reply += "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n";
        }
        if words.contains("PING") {
            reply += "*2\r\n$4\r\npong\r\n$0\r\n\r\n";
        }
        reply.into_bytes()
    }

    fn as_server(&mut self, connection: ConnectionId, address: &str, bytes: &[u8]) -> Vec<u8> {
        let (&server, &part) = self.parts.get_key_value(address).unwrap();
        if bytes.starts_with(b"*1\r\n$4\r\nROLE\r\n") {
            return match part {
                Part::Master => b"*3\r\n$6\r\nmaster\r\n:7\r\n*0\r\n".to_vec(),
                Part::Replica => b"*2\r\n$5\r\nslave\r\n$3\r\none\r\n".to_vec(),
                Part::Silent => b"-NOAUTH Authentication required.\r\n".to_vec(),
            };
        }
        if part == Part::Replica && bytes.windows(4).any(|word| word == b"INCR") {
            return b"-READONLY You can't write against a read only replica.\r\n".to_vec();
        }
        let store = self.stores.get_mut(server).unwrap();
        self.sessions.entry(connection).or_default().take(store, bytes)
    }

    fn ask(&mut self, client: ConnectionId, request: &str) -> String {
        let mut bytes = Vec::new();
        wire::request::encode(request.split(' ').map(str::as_bytes).collect::<Vec<_>>(), &mut bytes);
        self.street.arrive(client, &bytes);
        self.settle();
        self.street.text(client)
    }

    /// The other server is the master from now on, and the first one is what it becomes.
    fn switch(&mut self, old: Part) {
        self.parts.insert("one:6379", old);
        self.parts.insert("two:6379", Part::Master);
        self.named.values_mut().for_each(|place| *place = Some("two:6379"));
    }

    /// Those who asked for news hear this.
    fn tell(&mut self, text: &str) {
        for watcher in self.watchers.clone() {
            let news = format!("*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n${}\r\n{text}\r\n", text.len());
            if self.street.upstream.contains(&watcher) {
                self.street.arrive(watcher, news.as_bytes());
            }
        }
    }

    /// All connections to a place break.
    fn lose(&mut self, address: &str) {
        for connection in self.to(address) {
            self.street.break_off(connection);
        }
    }

    /// Connections to a place that are open.
    fn to(&self, address: &str) -> Vec<ConnectionId> {
        let is_there = |connection: &ConnectionId| self.street.addresses[connection] == address;
        self.street.upstream.iter().copied().filter(is_there).collect()
    }

    fn pass(&mut self, us: u64) {
        self.street.pass(us);
        self.settle();
    }
}

#[test]
fn the_master_is_asked_for_by_name_and_seen_to_be_one_before_anything_is_sent_there() {
    let mut world = World::new();
    let client = world.street.client();
    assert_eq!(world.ask(client, "INCR a"), ":1\r\n");
    let order: Vec<&str> = world.asked.iter().map(|(address, _)| address.as_str()).take(2).collect();
    assert_eq!(order, ["guard1:26379", "one:6379"]);
    assert!(world.asked[1].1.contains("ROLE") && !world.asked[1].1.contains("INCR"));
    assert_eq!(world.to("guard1:26379").len(), 1, "it is watched");
    assert!(world.to("guard2:26379").is_empty() && world.to("one:6379").len() == 1, "the probe is gone");
}

#[test]
fn who_knows_nothing_or_leads_to_no_master_is_passed_over() {
    for (named, part) in [(None, Part::Replica), (Some("two:6379"), Part::Replica), (Some("three:6379"), Part::Replica)]
    {
        let mut world = World::new();
        world.street.dead.insert("three:6379".to_owned());
        world.street.dead.insert("guard2:26379".to_owned());
        world.named.insert("guard1:26379", named);
        world.parts.insert("two:6379", part);
        let client = world.street.client();
        assert_eq!(world.ask(client, "INCR a"), ":1\r\n");
        assert_eq!(world.to("guard3:26379").len(), 1);
        assert_eq!(world.stores["one:6379"].version(), 1);
        let told: Vec<&str> =
            world.asked.iter().filter(|(to, _)| to == "two:6379").map(|(_, words)| words.as_str()).collect();
        assert!(told.iter().all(|words| *words == "*1\r\n$4\r\nROLE\r\n"), "a replica is asked nothing else: {told:?}");
    }
}

#[test]
fn a_master_that_tells_strangers_nothing_is_believed() {
    let mut world = World::new();
    world.parts.insert("one:6379", Part::Silent);
    let client = world.street.client();
    assert_eq!(world.ask(client, "INCR a"), ":1\r\n");
}

#[test]
fn where_no_sentinel_leads_to_the_master_callers_hear_what_each_said_and_go_on_when_one_does() {
    let mut world = World::new();
    world.street.dead.insert("guard1:26379".to_owned());
    world.named.insert("guard2:26379", None);
    world.named.insert("guard3:26379", Some("two:6379"));
    let client = world.street.client();
    let told = world.ask(client, "INCR a");
    for part in [
        format!("guard1:26379 does not answer: {NOBODY}").as_str(),
        "guard2:26379 knows no master of that name",
        "guard3:26379 names two:6379, which is no master but a slave",
        "sentinel:shop",
        "was not carried out",
    ] {
        assert!(told.starts_with("-ERR ") && told.contains(part), "{part}: {told}");
    }
    world.named.insert("guard2:26379", Some("one:6379"));
    world.pass(2_000_000);
    assert_eq!(world.ask(client, "INCR a"), ":1\r\n");
}

#[test]
fn who_does_not_answer_in_time_is_passed_over_sentinel_and_server() {
    let mut world = World::new();
    world.mute = vec!["guard1:26379", "two:6379"];
    world.named.insert("guard2:26379", Some("two:6379"));
    let client = world.street.client();
    assert_eq!(world.ask(client, "INCR a"), "");
    world.pass(2_500_000);
    assert_eq!(world.street.text(client), "");
    world.pass(2_500_000);
    assert_eq!(world.street.text(client), ":1\r\n");
}

#[test]
fn a_failover_under_requests_loses_none_that_was_acknowledged_applies_none_twice_and_asks_reads_again() {
    let mut world = World::new();
    let [writer, reader] = [0, 1].map(|_| world.street.client());
    assert_eq!(world.ask(writer, "INCR a"), ":1\r\n");
    world.stores.insert("two:6379", Store::default());
    world.mute = vec!["one:6379"];
    // The two are out when the master is gone: one at a time, as lanes send.
    assert_eq!(world.ask(reader, "GET a"), "");
    world.lose("one:6379");
    world.street.dead.insert("one:6379".to_owned());
    world.settle();
    world.pass(200_000);
    // The sentinels have not noticed yet: what has not left is refused, and says whom they name.
    let told = world.street.text(reader);
    assert!(told.contains("names one:6379, where nobody answers") && told.contains("not carried out"), "{told}");
    let told = world.ask(writer, "INCR a");
    assert!(told.contains("not carried out"), "{told}");
    world.mute.clear();
    world.switch(Part::Replica);
    world.pass(2_000_000);
    assert_eq!(world.ask(writer, "INCR a"), ":1\r\n", "the other store has not heard of the first");
    assert_eq!(world.ask(reader, "GET a"), "$1\r\n1\r\n");
}

#[test]
fn what_was_out_when_the_master_changed_is_unknown_if_it_writes_and_asked_again_if_it_reads() {
    for (request, is_read) in [("INCR a", false), ("GET a", true)] {
        let mut world = World::new();
        let client = world.street.client();
        assert_eq!(world.ask(client, "GET a"), "$-1\r\n");
        world.mute = vec!["one:6379"];
        assert_eq!(world.ask(client, request), "");
        world.switch(Part::Replica);
        world.tell("shop one 6379 two 6379");
        world.settle();
        world.pass(200_000);
        assert_eq!(world.to("two:6379").len(), usize::from(is_read), "{request}");
        assert_eq!(world.street.closed.contains(&client), !is_read, "{request}");
        assert_eq!(world.street.text(client), if is_read { "$-1\r\n" } else { "" });
        assert_eq!(world.stores["two:6379"].version(), 0, "nothing is applied twice");
    }
}

#[test]
fn news_of_another_master_are_followed_when_that_one_says_so_and_news_of_others_are_not() {
    let mut world = World::new();
    let client = world.street.client();
    assert_eq!(world.ask(client, "INCR a"), ":1\r\n");
    let asked = world.asked.len();
    world.tell("other one 6379 two 6379");
    world.settle();
    world.pass(200_000);
    assert_eq!(world.asked.len(), asked);
    // A sentinel that cries wolf is asked again, and nothing changes.
    world.tell("shop one 6379 two 6379");
    world.settle();
    world.pass(200_000);
    assert!(world.asked.len() > asked && world.to("one:6379").len() == 1 && world.to("two:6379").is_empty());
    world.switch(Part::Replica);
    world.tell("shop one 6379 two 6379");
    world.settle();
    world.pass(200_000);
    assert!(world.to("one:6379").is_empty());
    assert_eq!(world.ask(client, "INCR a"), ":1\r\n");
    assert_eq!(world.to("two:6379").len(), 1);
}

#[test]
fn who_is_no_master_any_more_when_it_answers_a_dial_is_not_used() {
    let mut world = World::new();
    let [first, second] = [0, 1].map(|_| world.street.client());
    assert_eq!(world.ask(first, "INCR a"), ":1\r\n");
    world.street.slow.insert("one:6379".to_owned());
    // In another database, so on a lane of its own.
    assert_eq!(world.ask(second, "SELECT 1"), "");
    world.switch(Part::Replica);
    world.tell("shop one 6379 two 6379");
    world.settle();
    world.pass(200_000);
    world.street.hurry();
    world.settle();
    assert_eq!(world.street.text(second), "+OK\r\n");
    assert_eq!(world.ask(second, "INCR a"), ":1\r\n");
    assert!(world.to("one:6379").is_empty());
}

#[test]
fn a_master_that_takes_no_writes_any_more_makes_the_sentinels_be_asked() {
    let mut world = World::new();
    let client = world.street.client();
    assert_eq!(world.ask(client, "INCR a"), ":1\r\n");
    // Nobody tells: the news are lost.
    world.switch(Part::Replica);
    let told = world.ask(client, "INCR a");
    assert!(told.starts_with("-READONLY "), "as it would be told directly: {told}");
    world.pass(200_000);
    assert_eq!(world.ask(client, "INCR a"), ":1\r\n");
    assert!(world.to("one:6379").is_empty() && world.to("two:6379").len() == 1);
}

#[test]
fn a_sentinel_that_is_gone_is_replaced_and_the_master_is_kept() {
    let mut world = World::new();
    let client = world.street.client();
    assert_eq!(world.ask(client, "INCR a"), ":1\r\n");
    let lane = world.to("one:6379");
    world.lose("guard1:26379");
    world.street.dead.insert("guard1:26379".to_owned());
    world.settle();
    world.pass(200_000);
    assert_eq!((world.to("guard2:26379").len(), world.to("one:6379")), (1, lane.clone()));
    // One that has become mute is noticed by its silence, and by nothing sooner.
    world.mute = vec!["guard2:26379"];
    world.pass(5_000_000);
    assert_eq!(world.to("guard2:26379").len(), 1);
    world.pass(5_000_000);
    world.pass(200_000);
    assert!(world.to("guard2:26379").is_empty() && world.to("guard3:26379").len() == 1);
    // All gone: who is connected goes on.
    world.street.dead.extend(SENTINELS.map(str::to_owned));
    world.lose("guard3:26379");
    world.settle();
    world.pass(200_000);
    assert_eq!(world.ask(client, "INCR a"), ":2\r\n");
    assert_eq!(world.to("one:6379"), lane);
    // And when one is back it is watched again without anybody asking.
    world.mute.clear();
    world.street.dead.clear();
    world.pass(1_000_000);
    assert_eq!(SENTINELS.iter().map(|sentinel| world.to(sentinel).len()).sum::<usize>(), 1);
}

#[test]
fn the_sentinels_password_is_theirs_alone() {
    for (password, is_right) in [("secret", true), ("wrong", false)] {
        let mut world = World::with_login(Some((Some("watcher".to_owned()), password.to_owned())));
        world.password = Some("secret");
        let client = world.street.client();
        let told = world.ask(client, "INCR a");
        assert_eq!(told == ":1\r\n", is_right, "{told}");
        assert!(is_right || (told.contains("--sentinel-password-file") && told.contains("WRONGPASS")), "{told}");
        let servers = world.asked.iter().filter(|(address, _)| !address.starts_with("guard"));
        assert!(servers.into_iter().all(|(_, words)| !words.contains(password)));
    }
}

#[test]
fn sentinels_that_the_named_ones_know_are_asked_when_these_are_gone() {
    let mut world = World::with_named(&SENTINELS[..1], None);
    let client = world.street.client();
    assert_eq!(world.ask(client, "INCR a"), ":1\r\n");
    for gone in ["guard1:26379", "guard2:26379"] {
        world.street.dead.insert(gone.to_owned());
        world.lose(gone);
        world.settle();
        world.pass(200_000);
    }
    assert_eq!(world.to("guard3:26379").len(), 1, "the second one knew it, too");
    world.switch(Part::Replica);
    world.tell("shop one 6379 two 6379");
    world.settle();
    world.pass(200_000);
    assert_eq!(world.ask(client, "INCR a"), ":1\r\n", "the other store has not heard of the first");
}

#[test]
fn who_leads_to_no_master_is_believed_of_no_other_sentinel() {
    let mut world = World::with_named(&SENTINELS[..1], None);
    world.named.insert("guard1:26379", Some("two:6379"));
    world.known = vec!["evil:26379".to_owned()];
    world.street.dead.insert("evil:26379".to_owned());
    let client = world.street.client();
    for _ in 0..3 {
        let mut told = world.ask(client, "INCR a");
        world.pass(2_000_000);
        told += &world.street.text(client);
        assert!(told.contains("no master but a slave") && !told.contains("evil"), "{told}");
    }
}

#[test]
fn no_more_sentinels_are_known_than_there_may_be_and_the_named_ones_always() {
    let mut world = World::new();
    world.known = (0..100).map(|number| format!("crowd{number}:26379")).collect();
    world.street.dead.extend(world.known.clone());
    let client = world.street.client();
    assert_eq!(world.ask(client, "INCR a"), ":1\r\n");
    world.street.dead.extend(SENTINELS.map(str::to_owned));
    world.street.dead.insert("one:6379".to_owned());
    world.lose("guard1:26379");
    world.lose("one:6379");
    world.settle();
    world.pass(200_000);
    let mut told = world.ask(client, "INCR a");
    world.pass(2_000_000);
    told += &world.street.text(client);
    assert!(SENTINELS.iter().all(|sentinel| told.contains(sentinel)), "{told}");
    assert_eq!(told.matches("crowd").count(), base::limits::SENTINELS_MAX - SENTINELS.len(), "{told}");
}
