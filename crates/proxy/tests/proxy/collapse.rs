//! Writes of which only the newest is sent: who hears what, and when.

use crate::store::{Session, Store};
use crate::street::Street;
use base::ConnectionId;
use proxy::{Changeable, Class, ClassNumber, Classes};

/// A proxy that collapses what begins with `doc:`, and a store that answers when the test says so.
struct World {
    street: Street,
    store: Store,
    session: Session,
}

impl World {
    fn new() -> World {
        let mut world =
            World { street: Street::collapsing("doc:"), store: Store::default(), session: Session::default() };
        let client = world.street.client();
        world.say(client, "PING");
        world.serve();
        assert_eq!(world.street.text(client), "+PONG\r\n");
        world
    }

    fn say(&mut self, client: ConnectionId, line: &str) {
        self.street.arrive(client, format!("{line}\r\n").as_bytes());
        self.street.settle();
    }

    fn upstream(&self) -> ConnectionId {
        self.street.upstream[0]
    }

    /// The store answers what was sent until nothing more is; what that was.
    fn serve(&mut self) -> String {
        let mut all = String::new();
        loop {
            let one = self.serve_once();
            if one.is_empty() {
                return all;
            }
            all += &one;
        }
    }

    /// The store answers what was sent; what that was.
    fn serve_once(&mut self) -> String {
        let upstream = self.upstream();
        let asked = self.street.take(upstream);
        let replies = self.session.take(&mut self.store, &asked);
        self.street.arrive(upstream, &replies);
        self.street.settle();
        String::from_utf8(asked).unwrap()
    }
}

fn set(key: &str, value: &str) -> String {
    format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n{value}\r\n", key.len(), value.len())
}

#[test]
fn the_newest_is_sent_once_the_first_is_answered_and_answers_all() {
    let mut world = World::new();
    let [a, b, c, reader] = [0; 4].map(|_| world.street.client());
    world.say(a, "SET doc:1 1");
    world.say(b, "SET doc:1 2");
    world.say(c, "SET doc:1 3");
    world.say(reader, "GET doc:1");
    assert_eq!(world.serve_once(), set("doc:1", "1"));
    let heard = [a, b, c, reader].map(|client| world.street.text(client));
    assert_eq!(heard, ["+OK\r\n", "", "", ""], "nobody else hears anything before a commit");
    assert_eq!(world.serve(), set("doc:1", "3"));
    assert_eq!([b, c, reader].map(|client| world.street.text(client)), ["+OK\r\n", "+OK\r\n", "$1\r\n3\r\n"]);
    // Nothing is kept of it: the store is asked again.
    world.say(reader, "GET doc:1");
    assert!(world.serve().contains("doc:1"));
    assert_eq!(world.street.text(reader), "$1\r\n3\r\n");
}

#[test]
fn a_pipeline_sees_its_own_writes_in_their_order() {
    let mut world = World::new();
    let client = world.street.client();
    world.street.arrive(
        client,
        b"SET doc:1 1\r\nGET doc:1\r\nSET doc:1 2\r\nSET doc:1 3\r\nGET doc:1\r\nGET other\r\nINCR doc:1\r\nGET doc:1\r\n",
    );
    world.street.settle();
    let sent = world.serve();
    assert!(!sent.contains(&set("doc:1", "2")), "{sent}");
    let expected = "+OK\r\n$1\r\n1\r\n+OK\r\n+OK\r\n$1\r\n3\r\n$-1\r\n:4\r\n$1\r\n4\r\n";
    assert_eq!(world.street.text(client), expected);
}

#[test]
fn plain_requests_of_other_keys_pass_and_nothing_else_does() {
    let mut world = World::new();
    let client = world.street.client();
    for line in ["SET doc:1 1", "SET doc:1 2", "GET other", "SET other 1 EX 10", "MGET doc:1", "GET another"] {
        world.say(client, line);
    }
    assert_eq!(world.serve_once(), set("doc:1", "1"));
    let sent = world.serve_once();
    assert!(sent.contains("\r\nother\r\n") && sent.contains("EX") && !sent.contains("MGET"), "{sent}");
    assert!(!sent.contains("another"), "what comes behind it waits, too: {sent}");
    assert!(world.serve().contains("MGET"));
    let heard = world.street.text(client);
    assert!(heard.starts_with("+OK\r\n+OK\r\n") && heard.ends_with("*1\r\n$1\r\n2\r\n$-1\r\n"), "{heard}");
}

#[test]
fn what_is_conditional_or_has_an_end_is_never_collapsed() {
    let mut world = World::new();
    let clients = [0; 4].map(|_| world.street.client());
    for (client, how) in clients.into_iter().zip(["", " NX", " EX 100", " IFEQ 1"]) {
        world.say(client, &format!("SET doc:1 7{how}"));
    }
    let sent = world.serve();
    assert_eq!(sent.matches("doc:1").count(), 4, "{sent}");
}

#[test]
fn other_databases_and_users_have_keys_of_their_own() {
    let mut world = World::new();
    let [here, there] = [0; 2].map(|_| world.street.client());
    world.say(there, "SELECT 3");
    let lane = world.street.upstream[1];
    let mut session = Session::default();
    let mut answer = |world: &mut World| {
        let asked = world.street.take(lane);
        let replies = session.take(&mut world.store, &asked);
        world.street.arrive(lane, &replies);
        world.street.settle();
        String::from_utf8(asked).unwrap()
    };
    answer(&mut world);
    world.say(here, "SET doc:1 1");
    world.say(there, "SET doc:1 2");
    assert_eq!(answer(&mut world), set("doc:1", "2"), "it waits for nobody");
    assert_eq!(world.serve(), set("doc:1", "1"));
    assert_eq!((world.store.get(0, b"doc:1"), world.store.get(3, b"doc:1")), (Some(1), Some(2)));
}

#[test]
fn a_refusal_is_heard_by_whom_it_concerns_and_reads_ask_the_store() {
    let mut world = World::new();
    let [a, b, reader] = [0; 3].map(|_| world.street.client());
    world.say(a, "SET doc:1 1");
    world.say(b, "SET doc:1 2");
    world.say(reader, "GET doc:1");
    world.serve_once();
    let upstream = world.upstream();
    assert_eq!(world.street.text(upstream), set("doc:1", "2"));
    world.street.arrive(upstream, b"-OOM no room\r\n");
    world.street.settle();
    assert_eq!([a, b, reader].map(|client| world.street.text(client)), ["+OK\r\n", "-OOM no room\r\n", ""]);
    world.serve();
    assert_eq!(world.street.text(reader), "$1\r\n1\r\n", "what its read would have seen was refused");
}

#[test]
fn behind_a_write_of_unknown_fate_nothing_of_the_key_is_sent() {
    let mut world = World::new();
    let [a, b, reader, other] = [0; 4].map(|_| world.street.client());
    world.say(a, "SET doc:1 1");
    world.say(b, "SET doc:1 2");
    world.say(reader, "GET doc:1");
    world.say(other, "SET doc:2 5");
    let upstream = world.upstream();
    let lost = world.street.text(upstream);
    assert_eq!(lost, set("doc:1", "1"), "the one of the other key waits for the batch");
    world.street.break_off(upstream);
    world.street.settle();
    assert!(world.street.closed.contains(&a), "as its own connection would have been");
    assert!(world.street.text(b).contains("this one was not sent"));
    world.session = Session::default();
    let sent = world.serve();
    assert!(!sent.contains(&set("doc:1", "2")) && sent.contains(&set("doc:2", "5")), "{sent}");
    assert_eq!((world.street.text(reader), world.street.text(other)), ("$-1\r\n".to_owned(), "+OK\r\n".to_owned()));
}

#[test]
fn a_store_that_is_away_is_said_to_be_to_all_that_wait() {
    let mut world = World::new();
    let clients = [0; 3].map(|_| world.street.client());
    let upstream = world.upstream();
    world.street.answers = false;
    world.street.break_off(upstream);
    world.street.settle();
    for (value, client) in clients.into_iter().enumerate() {
        world.say(client, &format!("SET doc:1 {value}"));
    }
    for client in clients {
        assert!(world.street.text(client).contains("does not answer"), "{client:?}");
    }
}

#[test]
fn callers_that_leave_do_not_take_their_writes_with_them() {
    let mut world = World::new();
    let [a, b] = [0; 2].map(|_| world.street.client());
    world.say(a, "SET doc:1 1");
    world.say(b, "SET doc:1 2");
    world.street.break_off(a);
    world.street.break_off(b);
    world.street.settle();
    assert_eq!(world.serve(), set("doc:1", "1") + &set("doc:1", "2"));
    // Nobody is left of the group while both were on their way; its number serves the next ones.
    let next = world.street.client();
    world.say(next, "GET doc:1");
    world.serve();
    assert_eq!(world.street.text(next), "$1\r\n2\r\n");
}

#[test]
fn prefixes_that_change_hold_behind_what_was_asked_before() {
    let mut world = World::new();
    let client = world.street.client();
    world.say(client, "SET doc:1 1");
    world.say(client, "SET doc:1 2");
    let classes = Classes::default();
    world.street.order(Changeable { classes, connections_max: 100, collapse: Vec::new(), users: None });
    world.say(client, "GET doc:1");
    assert_eq!(world.serve_once(), set("doc:1", "1"));
    assert_eq!(world.serve_once(), set("doc:1", "2"), "the read is behind it");
    world.serve();
    assert_eq!(world.street.text(client), "+OK\r\n+OK\r\n$1\r\n2\r\n");
}

#[test]
fn a_class_that_says_so_collapses_whatever_the_keys_are() {
    let mut world = World::new();
    let mut classes = Classes::default();
    classes.all.push(Class { name: "telemetry".to_owned(), collapses: true, ..Class::default() });
    classes.of_listeners = vec![None, Some(ClassNumber(1))];
    world.street.order(Changeable { classes, connections_max: 100, collapse: Vec::new(), users: None });
    let [a, b, c] = [0; 3].map(|_| world.street.client_through(1));
    let plain = world.street.client();
    for (value, client) in [a, b, c, plain].into_iter().enumerate() {
        world.say(client, &format!("SET any {value}"));
    }
    assert_eq!(world.serve(), set("any", "0") + &set("any", "3") + &set("any", "2"));
    assert!([a, b, c, plain].map(|client| world.street.text(client)).iter().all(|heard| heard == "+OK\r\n"));
}
