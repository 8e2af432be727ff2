//! Who is in which class, and what an operator changes while callers are there.

use crate::store::{Session, Store};
use crate::street::Street;
use base::ConnectionId;
use client::Qos;
use proxy::{Changeable, Class, ClassNumber, Classes};
use std::collections::BTreeMap;

const FAST: Qos = Qos::Within { us: 1_000 };
const SLOW: Qos = Qos::Within { us: 50_000 };

struct World {
    street: Street,
    store: Store,
    sessions: BTreeMap<ConnectionId, Session>,
}

impl World {
    fn new(classes: Classes) -> World {
        World { street: Street::with_classes(classes), store: Store::default(), sessions: BTreeMap::new() }
    }

    /// The store answers until nothing is asked any more.
    fn settle(&mut self) {
        loop {
            self.street.settle();
            let asked: Vec<(ConnectionId, Vec<u8>)> = self.asked();
            if asked.is_empty() {
                return;
            }
            for (lane, bytes) in asked {
                let replies = self.sessions.entry(lane).or_default().take(&mut self.store, &bytes);
                self.street.arrive(lane, &replies);
            }
        }
    }

    fn asked(&mut self) -> Vec<(ConnectionId, Vec<u8>)> {
        let lanes = self.street.upstream.clone();
        let asked = lanes.into_iter().map(|lane| (lane, self.street.take(lane)));
        asked.filter(|(_, bytes)| !bytes.is_empty()).collect()
    }

    fn ask(&mut self, client: ConnectionId, line: &str) -> String {
        self.street.arrive(client, format!("{line}\r\n").as_bytes());
        self.settle();
        self.street.text(client)
    }

    /// What a caller's class is, as it is told.
    fn class(&mut self, client: ConnectionId) -> String {
        let told = self.ask(client, "ZH.QOS");
        told.split("\r\n").nth(4).unwrap_or_else(|| panic!("{told:?}")).to_owned()
    }

    fn change(&mut self, classes: Classes) {
        self.street.order(Changeable { classes, connections_max: 100, collapse: Vec::new(), users: None });
    }
}

/// Those classes, one for each place where one is named.
fn classes(of_listeners: &[Option<Qos>], of_users: &[(&str, Qos)]) -> Classes {
    let mut all = vec![Class::default()];
    let mut number = |qos: Qos| {
        all.push(Class { name: all.len().to_string(), qos, ..Class::default() });
        ClassNumber(all.len() as u16 - 1)
    };
    let of_listeners = of_listeners.iter().map(|qos| qos.map(&mut number)).collect();
    let of_users = of_users.iter().map(|(user, qos)| (user.as_bytes().to_vec(), number(*qos))).collect();
    Classes { of_listeners, of_users, all, ..Classes::default() }
}

#[test]
fn the_caller_says_it_or_else_its_user_or_else_its_listener() {
    let mut world = World::new(classes(&[None, Some(SLOW)], &[("ann", FAST), ("default", Qos::Single)]));
    let [first, second] = [0, 1].map(|listener| world.street.client_through(listener));
    assert_eq!([world.class(first), world.class(second)], ["batch", "50000us"]);
    assert_eq!(world.ask(second, "AUTH ann right"), "+OK\r\n");
    assert_eq!(world.class(second), "1000us");
    assert_eq!(world.ask(second, "AUTH right"), "+OK\r\n");
    assert_eq!(world.class(second), "single", "who gives a password alone is the default user");
    assert_eq!(world.ask(second, "ZH.QOS 7ms"), "+OK\r\n");
    assert_eq!(world.ask(second, "AUTH ann right"), "+OK\r\n");
    assert_eq!(world.class(second), "7000us");
    assert_eq!(world.ask(second, "RESET"), "+RESET\r\n");
    assert_eq!(world.class(second), "50000us");
    let third = world.street.client_through(7);
    assert_eq!(world.class(third), "batch", "of that listener nothing is said");
}

#[test]
fn a_refused_login_changes_no_class() {
    let mut world = World::new(classes(&[Some(SLOW)], &[("ann", FAST)]));
    let client = world.street.client_through(0);
    assert!(world.ask(client, "AUTH ann wrong").starts_with("-WRONGPASS"));
    assert_eq!(world.class(client), "50000us");
}

#[test]
fn callers_that_are_there_follow_a_change_and_those_that_said_it_do_not() {
    let mut world = World::new(classes(&[], &[]));
    let [follows, said] = [0, 0].map(|listener| world.street.client_through(listener));
    assert_eq!(world.ask(said, "ZH.QOS single"), "+OK\r\n");
    assert_eq!(world.class(follows), "batch");
    world.change(classes(&[Some(FAST)], &[]));
    assert_eq!([world.class(follows), world.class(said)], ["1000us", "single"]);
    world.change(classes(&[], &[]));
    assert_eq!([world.class(follows), world.class(said)], ["batch", "single"]);
}

#[test]
fn a_request_of_the_new_class_waits_for_those_of_the_old_one() {
    let mut world = World::new(classes(&[], &[]));
    let client = world.street.client_through(0);
    assert_eq!(world.ask(client, "SET n 1"), "+OK\r\n");
    world.street.arrive(client, b"INCR n\r\n");
    world.street.settle();
    let [(lane, first)] = world.asked().try_into().unwrap();
    // From now on it has another lane, on which its next request would overtake the one that is out.
    world.change(classes(&[Some(FAST)], &[]));
    world.street.arrive(client, b"GET n\r\n");
    world.street.settle();
    assert_eq!(world.asked(), [], "it waits");
    let reply = world.sessions.entry(lane).or_default().take(&mut world.store, &first);
    world.street.arrive(lane, &reply);
    world.settle();
    assert_eq!(world.street.text(client), ":2\r\n$1\r\n2\r\n");
    assert_eq!(world.street.upstream.len(), 2, "one lane for each hurry");
}
